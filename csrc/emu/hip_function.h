// Modules and functions behind their handles, shared by the HIP functions that load and that launch.
#pragma once
#include <memory>

#include "code_object.h"
#include "hip_types.h"
#include "memory.h"

namespace mi350::emu {

struct Module {
  std::unique_ptr<CodeObject> object;
  int device = 0;
  ~Module() {
    if (object) AllocationMap::get().remove(reinterpret_cast<uint64_t>(object->image.get()), {RangeKind::kCode});
  }
};
struct Function {
  std::shared_ptr<Module> module;
  const KernelInfo* kernel = nullptr;
};

// An empty one for a handle that is unknown or whose module was unloaded.
Function function_of(const void* handle);

}  // namespace mi350::emu
