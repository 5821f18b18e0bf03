// Kernel launches on `cdna` as torch.profiler events: the symbol under the aten op that launched it, with
// device time. On ROCm the vendor's tracer does this; nothing here runs there.
//
// What a user passes:
//   profile()                                  activities default to all supported ones: CPU and PrivateUse1
//   profile(activities=[CPU, PrivateUse1])     the same, spelled out; torch also calls it ProfilerActivity.CDNA
//   profile(activities=[PrivateUse1])          kernels without the aten ops that caused them
//   profile(activities=[CPU])                  no kernels: `profiling()` stays false and nothing is recorded
#pragma once
#include <atomic>
#include <cstdint>

namespace mi350::runtime {

// Registers the `cdna` activity profiler with torch. Idempotent; leaves another package's profiler alone.
void install_profiler();

extern std::atomic<bool> g_profiling;

// A session records kernels now. One relaxed load: the cost of a launch when nobody profiles.
inline bool profiling() { return g_profiling.load(std::memory_order_relaxed); }

// One launch that has ended, called on the thread that launched it, inside the aten op that caused it.
// Times in ns of CLOCK_REALTIME. `symbol` is copied.
void record_kernel(const char* symbol, uint64_t begin_ns, uint64_t end_ns, const unsigned grid[3], unsigned block,
                   int device, uint64_t stream);

}  // namespace mi350::runtime
