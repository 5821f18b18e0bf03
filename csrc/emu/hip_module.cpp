// HIP's C functions: modules, kernels, occupancy.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dispatch.h"
#include "hip_function.h"
#include "memory.h"

namespace mi350::emu {
namespace {

// Modules and functions by handle. A handle is counted up and never used again.
struct Registry {
  std::mutex mutex;
  std::unordered_map<uintptr_t, std::shared_ptr<Module>> modules;
  std::unordered_map<uintptr_t, Function> functions;
  std::unordered_map<const KernelInfo*, uintptr_t> handles;
  uintptr_t next = 0x100000;
};
Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

std::shared_ptr<Module> module_of(void* handle) {
  std::lock_guard lock(registry().mutex);
  auto it = registry().modules.find(reinterpret_cast<uintptr_t>(handle));
  return it == registry().modules.end() ? nullptr : it->second;
}
// HIP itself ends the process when a module is asked for something with another device current.
hipError_t check_here(const Module& m, const char* function) {
  if (m.device == current_device()) return hipSuccess;
  return fail(hipErrorInvalidContext, std::string(function) + ": the module was loaded on device " +
                                          std::to_string(m.device) + ", the current device is " +
                                          std::to_string(current_device()));
}

bool is_foreign(const std::string& why) {
  return why.find("foreign processor") != std::string::npos || why.find("built for") != std::string::npos ||
         why.find("no entry for gfx950") != std::string::npos;
}

hipError_t load(void** out, std::span<const uint8_t> file, const char* function) {
  std::string why;
  std::unique_ptr<CodeObject> object = load_code_object(file, &why);
  if (object == nullptr) {
    return fail(is_foreign(why) ? hipErrorNoBinaryForGpu : hipErrorInvalidImage,
                std::string(function) + ": " + why);
  }
  make_executable(object->program);
  auto module = std::make_shared<Module>();
  module->device = current_device();
  // Without variables nothing in the image is meant to change.
  AllocationMap::get().add(reinterpret_cast<uint64_t>(object->image.get()), object->image_bytes, RangeKind::kCode,
                           module->device, !object->variables.empty());
  module->object = std::move(object);
  std::lock_guard lock(registry().mutex);
  registry().next += 16;
  registry().modules[registry().next] = std::move(module);
  *out = reinterpret_cast<void*>(registry().next);
  return hipSuccess;
}

}  // namespace

Function function_of(const void* handle) {
  std::lock_guard lock(registry().mutex);
  auto it = registry().functions.find(reinterpret_cast<uintptr_t>(handle));
  return it == registry().functions.end() ? Function{} : it->second;
}

MI350_HIP hipError_t hipModuleLoadData(void** module, const void* image) {
  if (module == nullptr || image == nullptr) return fail(hipErrorInvalidValue, "hipModuleLoadData: null pointer");
  const size_t bytes = code_object_bytes(image);
  if (bytes == 0)
    return fail(hipErrorInvalidImage, "hipModuleLoadData: neither an ELF file nor an offload bundle");
  return load(module, {static_cast<const uint8_t*>(image), bytes}, "hipModuleLoadData");
}
MI350_HIP hipError_t hipModuleLoadDataEx(void** module, const void* image, unsigned, void*, void**) {
  return hipModuleLoadData(module, image);
}
MI350_HIP hipError_t hipModuleLoad(void** module, const char* path) {
  if (module == nullptr || path == nullptr) return fail(hipErrorInvalidValue, "hipModuleLoad: null pointer");
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(hipErrorFileNotFound, std::string("hipModuleLoad: cannot open ") + path);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return load(module, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "hipModuleLoad");
}
MI350_HIP hipError_t hipModuleUnload(void* module) {
  std::shared_ptr<Module> held;  // destroyed after the lock: that waits for running kernels
  std::lock_guard lock(registry().mutex);
  auto it = registry().modules.find(reinterpret_cast<uintptr_t>(module));
  if (it == registry().modules.end())
    return fail(hipErrorInvalidHandle, "hipModuleUnload: unknown or unloaded module");
  held = std::move(it->second);
  registry().modules.erase(it);
  for (const KernelInfo& k : held->object->kernels) {
    auto handle = registry().handles.find(&k);
    if (handle == registry().handles.end()) continue;
    registry().functions.erase(handle->second);
    registry().handles.erase(handle);
  }
  return hipSuccess;
}
MI350_HIP hipError_t hipModuleGetFunction(void** function, void* module, const char* name) {
  if (function == nullptr || name == nullptr)
    return fail(hipErrorInvalidValue, "hipModuleGetFunction: null pointer");
  std::shared_ptr<Module> m = module_of(module);
  if (m == nullptr) return fail(hipErrorInvalidHandle, "hipModuleGetFunction: unknown or unloaded module");
  if (hipError_t e = check_here(*m, "hipModuleGetFunction")) return e;
  const KernelInfo* k = m->object->find_kernel(name);
  if (k == nullptr)
    return fail(hipErrorNotFound, std::string("hipModuleGetFunction: the code object has no kernel ") + name);
  std::lock_guard lock(registry().mutex);
  auto [it, fresh] = registry().handles.try_emplace(k, registry().next + 16);
  if (fresh) {
    registry().next += 16;
    registry().functions[it->second] = {std::move(m), k};
  }
  *function = reinterpret_cast<void*>(it->second);
  return hipSuccess;
}
MI350_HIP hipError_t hipModuleGetGlobal(void** address, size_t* bytes, void* module, const char* name) {
  if (name == nullptr) return fail(hipErrorInvalidValue, "hipModuleGetGlobal: null pointer");
  std::shared_ptr<Module> m = module_of(module);
  if (m == nullptr) return fail(hipErrorInvalidHandle, "hipModuleGetGlobal: unknown or unloaded module");
  if (hipError_t e = check_here(*m, "hipModuleGetGlobal")) return e;
  for (const Variable& v : m->object->variables) {
    if (v.name != name) continue;
    if (address != nullptr) *address = reinterpret_cast<void*>(v.address);
    if (bytes != nullptr) *bytes = v.bytes;
    return hipSuccess;
  }
  return fail(hipErrorNotFound, std::string("hipModuleGetGlobal: the code object has no variable ") + name);
}

MI350_HIP hipError_t hipFuncGetAttributes(hipFuncAttributes* out, const void* function) {
  const Function f = function_of(function);
  if (out == nullptr) return fail(hipErrorInvalidValue, "hipFuncGetAttributes: null pointer");
  if (f.kernel == nullptr) return fail(hipErrorInvalidDeviceFunction, "hipFuncGetAttributes: unknown function");
  std::memset(out, 0, sizeof *out);
  out->localSizeBytes = f.kernel->private_segment_bytes;
  out->sharedSizeBytes = f.kernel->group_segment_bytes;
  out->numRegs = static_cast<int>(f.kernel->vgprs);
  out->maxThreadsPerBlock = static_cast<int>(f.kernel->max_workgroup_size);
  out->maxDynamicSharedSizeBytes = static_cast<int>(kLdsBytes - f.kernel->group_segment_bytes);
  return hipSuccess;
}
MI350_HIP hipError_t hipFuncGetAttribute(int* value, int attribute, void* function) {
  enum { kMaxThreads = 0, kShared = 1, kConst = 2, kLocal = 3, kRegisters = 4, kMaxDynamicShared = 8 };
  hipFuncAttributes a;
  if (value == nullptr) return fail(hipErrorInvalidValue, "hipFuncGetAttribute: null pointer");
  if (hipError_t e = hipFuncGetAttributes(&a, function)) return e;
  switch (attribute) {
    case kMaxThreads: *value = a.maxThreadsPerBlock; break;
    case kShared: *value = static_cast<int>(a.sharedSizeBytes); break;
    case kConst: *value = 0; break;
    case kLocal: *value = static_cast<int>(a.localSizeBytes); break;
    case kRegisters: *value = a.numRegs; break;
    case kMaxDynamicShared: *value = a.maxDynamicSharedSizeBytes; break;
    default:
      return fail(hipErrorInvalidValue, "hipFuncGetAttribute: unknown attribute " + std::to_string(attribute));
  }
  return hipSuccess;
}
// Any dynamic LDS up to the device's limit is granted without asking.
MI350_HIP hipError_t hipFuncSetAttribute(const void* function, int attribute, int value) {
  constexpr int kMaxDynamicShared = 8;
  const Function f = function_of(function);
  if (f.kernel == nullptr) return fail(hipErrorInvalidDeviceFunction, "hipFuncSetAttribute: unknown function");
  const auto limit = static_cast<int64_t>(kLdsBytes) - f.kernel->group_segment_bytes;
  if (attribute == kMaxDynamicShared && (value < 0 || value > limit)) {
    return fail(hipErrorInvalidValue, f.kernel->name + ": dynamic LDS can be at most " + std::to_string(limit) +
                                          " bytes, got " + std::to_string(value));
  }
  return hipSuccess;
}
MI350_HIP hipError_t hipFuncSetCacheConfig(const void*, int) { return hipSuccess; }
MI350_HIP hipError_t hipFuncSetSharedMemConfig(const void*, int) { return hipSuccess; }

MI350_HIP hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int block,
                                                                        size_t dynamic_lds) {
  const Function f = function_of(function);
  if (blocks == nullptr || block <= 0)
    return fail(hipErrorInvalidValue, "occupancy: null pointer or empty workgroup");
  if (f.kernel == nullptr) return fail(hipErrorInvalidDeviceFunction, "occupancy: unknown function");
  *blocks = workgroups_per_unit(*f.kernel, static_cast<uint32_t>(block), dynamic_lds);
  return hipSuccess;
}
MI350_HIP hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* function,
                                                                                 int block, size_t dynamic_lds,
                                                                                 unsigned) {
  return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block, dynamic_lds);
}
MI350_HIP hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block,
                                                                  size_t dynamic_lds) {
  return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, const_cast<void*>(function), block,
                                                            dynamic_lds);
}
MI350_HIP hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, void* function,
                                                             size_t dynamic_lds, int limit) {
  const Function f = function_of(function);
  if (grid == nullptr || block == nullptr) return fail(hipErrorInvalidValue, "occupancy: null pointer");
  if (f.kernel == nullptr) return fail(hipErrorInvalidDeviceFunction, "occupancy: unknown function");
  uint32_t best = kLanes, most = 0;
  for (uint32_t size = kLanes; size <= kMaxBlock && (limit <= 0 || size <= static_cast<uint32_t>(limit));
       size += kLanes) {
    const uint32_t items = size * static_cast<uint32_t>(workgroups_per_unit(*f.kernel, size, dynamic_lds));
    if (items >= most && items > 0) {
      most = items;
      best = size;
    }
  }
  *block = static_cast<int>(best);
  *grid = static_cast<int>(most / best) * machine().units;
  return hipSuccess;
}

}  // namespace mi350::emu
