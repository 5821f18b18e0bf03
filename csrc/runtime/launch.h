// One kernel launch: kernarg by buffer, current stream, error check.
#pragma once
#include <cstddef>
#include <string>

#include "plan.h"
#include "runtime/module_cache.h"

namespace mi350::runtime {

// Where a call runs. `stream` is the native handle of the device's current stream.
struct Target {
  ModuleKey key;
  hipStream_t stream;
};

// For measuring host cost: every launch succeeds and does nothing.
void set_noop_launch(bool on);

// True while the target's stream records a graph: nothing may be loaded then.
bool is_capturing(const Target& target);

// Launches `kernel` with `size` bytes of arguments; returns HIP's error code.
hipError_t launch(const Target& target, int kernel, const Launch& shape, const void* args, size_t size);

// Raises RuntimeError: op, kernel, problem, HIP's error and, from the emulator, its report.
[[noreturn]] void raise_launch_error(const Target& target, hipError_t error, int kernel,
                                     const std::string& op, const std::string& problem);

}  // namespace mi350::runtime
