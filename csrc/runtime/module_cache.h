// Kernels by number, and the loaded function of each per device. A kernel's code object is loaded from the
// package's code_objects folder when a device first needs it; after that a lookup is one atomic load.
#pragma once
#include <string>

#include "runtime/hip.h"

namespace mi350::runtime {

constexpr int kMaxKernels = 512;
constexpr int kMaxDevices = 16;

struct KernelName {
  const char* symbol;
  const char* object;  // file in code_objects/; null: a name for the ledger, nothing to launch
};

// Numbers the kernels of one table; returns the number of the first. Throws c10::Error beyond kMaxKernels.
int add_kernels(const KernelName* names, int count);
int kernel_count();
const KernelName& kernel_name(int kernel);

// One HIP home on one device. `slot` tells homes apart.
struct ModuleKey {
  const Hip* hip;
  int slot;    // 0, 1 or 2
  int device;  // < kMaxDevices
};

// The loaded function, or null if it was never loaded here.
hipFunction_t loaded_function(const ModuleKey& key, int kernel);
// Loads it if need be. Throws c10::Error that names the file and HIP's error.
hipFunction_t load_function(const ModuleKey& key, int kernel);

}  // namespace mi350::runtime
