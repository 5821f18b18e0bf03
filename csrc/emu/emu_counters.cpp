// Counters of the process and the hook that sees every launch.
#include "emu_counters.h"

#include <time.h>

#include <atomic>
#include <mutex>

#include "emu_api.h"

namespace mi350::emu {
namespace {

std::mutex mutex;
Mi350EmuCounters sums{};
std::atomic<Mi350EmuLaunchHook> hook{nullptr};

}  // namespace

uint64_t realtime_ns() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

void count_launch(const Launch& launch, const LaunchOutcome& o, uint64_t begin_ns, uint64_t end_ns, void* stream) {
  {
    std::lock_guard lock(mutex);
    ++sums.launches;
    sums.workgroups += o.workgroups;
    sums.instructions += o.counters.instructions;
    sums.mfma_instructions += o.counters.mfma_instructions;
    sums.mfma_flops += o.counters.mfma_flops;
    sums.global_bytes += o.counters.global_bytes;
    sums.lds_bytes += o.counters.lds_bytes;
    sums.kernel_ns += end_ns - begin_ns;
  }
  if (Mi350EmuLaunchHook call = hook.load()) call(launch.kernel->name.c_str(), begin_ns, end_ns, stream);
}

}  // namespace mi350::emu

#define MI350_API __attribute__((visibility("default")))

MI350_API void mi350emuCounters(Mi350EmuCounters* out) {
  if (out == nullptr) return;
  std::lock_guard lock(mi350::emu::mutex);
  *out = mi350::emu::sums;
}
MI350_API void mi350emuResetCounters() {
  std::lock_guard lock(mi350::emu::mutex);
  mi350::emu::sums = {};
}
MI350_API void mi350emuSetLaunchHook(Mi350EmuLaunchHook call) { mi350::emu::hook = call; }
