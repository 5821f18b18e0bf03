// hipModuleLaunchKernel with the argument buffer in its `extra` form.
#include "runtime/launch.h"

#include <atomic>
#include <ctime>

#include <c10/util/Exception.h>

#include "runtime/find_hip.h"
#include "runtime/profiler.h"

namespace mi350::runtime {
namespace {

// HIP_LAUNCH_PARAM_* of hip_runtime_api.h.
void* const kParamBufferPointer = reinterpret_cast<void*>(1);
void* const kParamBufferSize = reinterpret_cast<void*>(2);
void* const kParamEnd = reinterpret_cast<void*>(3);

std::atomic<bool> noop{false};

// Of CLOCK_REALTIME, as the profiler wants it.
uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

bool emulated(const Target& target) { return target.key.hip == &emulator(); }

std::string emulator_report(const Target& target) {
  if (!emulated(target)) return "";
  const auto report = reinterpret_cast<const char* (*)()>(emulator_symbol("mi350emuLastReport"))();
  return report == nullptr || *report == '\0' ? "" : std::string("\n") + report;
}

}  // namespace

void set_noop_launch(bool on) { noop.store(on, std::memory_order_relaxed); }

bool is_capturing(const Target& target) {
  int status = 0;
  return target.key.hip->hipStreamIsCapturing(target.stream, &status) != 0 || status != 0;
}

hipError_t launch(const Target& target, int kernel, const Launch& shape, const void* args, size_t size) {
  const hipFunction_t function = load_function(target.key, kernel);
  if (noop.load(std::memory_order_relaxed)) return 0;
  void* extra[] = {kParamBufferPointer, const_cast<void*>(args), kParamBufferSize, &size, kParamEnd};
  // The emulator has run the kernel when its launch returns; on a GPU the vendor's tracer records it.
  const bool record = profiling() && emulated(target);
  const uint64_t begin = record ? now_ns() : 0;
  const hipError_t error = target.key.hip->hipModuleLaunchKernel(
      function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block, 1, 1, shape.lds_bytes,
      target.stream, nullptr, extra);
  if (record && error == 0) {
    record_kernel(kernel_name(kernel).symbol, begin, now_ns(), shape.grid.data(), shape.block,
                  target.key.device, reinterpret_cast<uint64_t>(target.stream));
  }
  return error;
}

void raise_launch_error(const Target& target, hipError_t error, int kernel, const std::string& op,
                        const std::string& problem) {
  TORCH_CHECK(false, op, ": kernel ", kernel_name(kernel).symbol, " failed on device ", target.key.device,
              " with HIP error ", error, " (", target.key.hip->hipGetErrorString(error),
              "); problem: ", problem, emulator_report(target));
}

}  // namespace mi350::runtime
