// HIP's C functions: modules, kernels, launches, occupancy.
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

#include "emu_counters.h"
#include "hip_types.h"
#include "memory.h"

MI350_HIP int hipEventRecord(void* event, void* stream);

namespace mi350::emu {
namespace {

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
Function function_of(const void* handle) {
  std::lock_guard lock(registry().mutex);
  auto it = registry().functions.find(reinterpret_cast<uintptr_t>(handle));
  return it == registry().functions.end() ? Function{} : it->second;
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

std::string triple(unsigned x, unsigned y, unsigned z) {
  return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

// The grid and the workgroup against the device and the kernel.
hipError_t check_shape(const Launch& l) {
  const KernelInfo& k = *l.kernel;
  const auto& b = l.block;
  const auto& g = l.grid;
  const std::string block = triple(b[0], b[1], b[2]);
  if (g[0] == 0 || g[1] == 0 || g[2] == 0) {
    return fail(hipErrorInvalidConfiguration,
                k.name + ": grid must not be empty, got " + triple(g[0], g[1], g[2]));
  }
  if (b[0] == 0 || b[1] == 0 || b[2] == 0 || uint64_t{b[0]} * b[1] * b[2] > kMaxBlock || b[0] > kMaxBlock ||
      uint64_t{b[0]} * b[1] > kMaxBlock) {
    return fail(hipErrorInvalidConfiguration, k.name + ": workgroup must have 1 to 1024 work-items, got " + block);
  }
  for (size_t a = 0; a < 3; ++a) {
    if (uint64_t{g[a]} * b[a] > std::numeric_limits<uint32_t>::max()) {
      return fail(hipErrorInvalidConfiguration,
                  k.name + ": grid times workgroup must fit 32 bits in every dimension, got " +
                      triple(g[0], g[1], g[2]) + " times " + block);
    }
    if (k.required_workgroup_size[a] != 0 && k.required_workgroup_size[a] != b[a]) {
      return fail(
          hipErrorInvalidConfiguration,
          k.name + ": the kernel requires a workgroup of " +
              triple(k.required_workgroup_size[0], k.required_workgroup_size[1], k.required_workgroup_size[2]) +
              ", got " + block);
    }
  }
  if (l.work_items() > k.max_workgroup_size) {
    return fail(hipErrorLaunchFailure, k.name + ": the kernel was compiled for at most " +
                                           std::to_string(k.max_workgroup_size) +
                                           " work-items in a workgroup, got " + block);
  }
  if (uint64_t{k.group_segment_bytes} + l.dynamic_lds_bytes > kLdsBytes) {
    return fail(hipErrorInvalidValue, k.name + ": a workgroup has 163840 bytes of LDS, the kernel asks for " +
                                          std::to_string(k.group_segment_bytes) + " static and " +
                                          std::to_string(l.dynamic_lds_bytes) + " dynamic");
  }
  return hipSuccess;
}

bool is_hidden(const KernelArgument& a) { return a.kind.rfind("hidden_", 0) == 0; }
uint32_t explicit_bytes(const KernelInfo& k) {
  uint32_t end = 0;
  for (const KernelArgument& a : k.args) {
    if (!is_hidden(a)) end = std::max(end, a.offset + a.size);
  }
  return end;
}

// The form with one pointer per argument.
hipError_t gather(const KernelInfo& k, void** params, std::vector<uint8_t>& kernarg) {
  kernarg.assign(std::max(k.kernarg_bytes, explicit_bytes(k)), 0);
  size_t n = 0;
  for (const KernelArgument& a : k.args) {
    if (is_hidden(a)) continue;
    if (params == nullptr || params[n] == nullptr) {
      return fail(hipErrorInvalidValue, k.name + ": argument " + std::to_string(n) + " (" +
                                            std::to_string(a.size) + " bytes at offset " +
                                            std::to_string(a.offset) + ") has no value");
    }
    std::memcpy(kernarg.data() + a.offset, params[n++], a.size);
  }
  if (k.args.empty() && params != nullptr && k.kernarg_bytes != 0) {
    return fail(hipErrorInvalidValue,
                k.name + ": the code object does not describe its arguments, pass them through `extra`");
  }
  return hipSuccess;
}

// The form with one buffer: {1, pointer, 2, pointer to size, 3}.
hipError_t read_extra(const KernelInfo& k, void** extra, std::vector<uint8_t>& kernarg) {
  enum : uintptr_t { kEnd = 3, kPointer = 1, kSize = 2 };
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  for (int n = 0;; n += 2) {
    const auto key = reinterpret_cast<uintptr_t>(extra[n]);
    if (key == kEnd) break;
    if (key == kPointer) data = static_cast<const uint8_t*>(extra[n + 1]);
    else if (key == kSize && extra[n + 1] != nullptr) bytes = *static_cast<const size_t*>(extra[n + 1]);
    else
      return fail(hipErrorInvalidValue,
                  k.name +
                      ": `extra` must hold HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END, got key " +
                      std::to_string(key));
    if (n > 8) return fail(hipErrorInvalidValue, k.name + ": `extra` has no HIP_LAUNCH_PARAM_END");
  }
  const uint32_t needed = explicit_bytes(k);
  if (bytes < needed || (data == nullptr && bytes != 0)) {
    return fail(hipErrorInvalidValue, k.name + ": the argument buffer must have " + std::to_string(needed) +
                                          " bytes, got " + std::to_string(data == nullptr ? 0 : bytes));
  }
  constexpr size_t kMostKernargBytes = 1 << 20;
  if (bytes > kMostKernargBytes)
    return fail(hipErrorInvalidValue, k.name + ": an argument buffer of " + std::to_string(bytes) + " bytes");
  kernarg.assign(data, data + bytes);
  return hipSuccess;
}

hipError_t run(const Launch& l, void* stream) {
  const uint64_t begin = realtime_ns();
  LaunchOutcome outcome = run_launch(l);
  count_launch(l, outcome, begin, realtime_ns(), stream);
  switch (outcome.result) {
    case LaunchResult::kDone: return hipSuccess;
    case LaunchResult::kIllegalAddress: return fail(hipErrorIllegalAddress, outcome.report);
    case LaunchResult::kNoProgress: return fail(hipErrorLaunchTimeOut, outcome.report);
    case LaunchResult::kFault: break;
  }
  return fail(hipErrorLaunchFailure, outcome.report);
}

hipError_t launch(const void* handle, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block, unsigned lds,
                  void* stream, void** params, void** extra) {
  const Function f = function_of(handle);
  if (f.kernel == nullptr)
    return fail(hipErrorInvalidHandle, "hipModuleLaunchKernel: unknown function, or its module was unloaded");
  int device;
  if (!stream_known(stream, &device))
    return fail(hipErrorInvalidHandle, f.kernel->name + ": unknown or destroyed stream");
  if (device != f.module->device) {
    return fail(hipErrorInvalidHandle, f.kernel->name + ": the kernel was loaded on device " +
                                           std::to_string(f.module->device) +
                                           ", the stream belongs to device " + std::to_string(device));
  }
  if (params != nullptr && extra != nullptr) {
    return fail(hipErrorInvalidValue,
                f.kernel->name + ": arguments must come through kernelParams or extra, got both");
  }
  Launch l;
  l.object = f.module->object.get();
  l.kernel = f.kernel;
  l.grid = grid;
  l.block = block;
  l.dynamic_lds_bytes = lds;
  if (const std::string why = read_settings(&l.settings); !why.empty())
    return fail(hipErrorInvalidValue, f.kernel->name + ": " + why);
  if (hipError_t e = check_shape(l)) return e;
  if (hipError_t e =
          extra != nullptr ? read_extra(*f.kernel, extra, l.kernarg) : gather(*f.kernel, params, l.kernarg))
    return e;
  return run(l, stream);
}

// Workgroups of one compute unit, by registers, waves and LDS.
int workgroups_per_unit(const KernelInfo& k, uint32_t block, size_t dynamic_lds) {
  constexpr uint32_t kSimds = 4, kRegisters = 512, kWavesPerSimd = 8, kGranule = 8;
  if (block == 0 || block > std::min(kMaxBlock, k.max_workgroup_size)) return 0;
  const uint32_t registers = std::max(kGranule, (k.vgprs + kGranule - 1) / kGranule * kGranule);
  const uint32_t per_simd = std::min(kWavesPerSimd, kRegisters / std::min(registers, kRegisters));
  const uint32_t waves = (block + kLanes - 1) / kLanes;
  const size_t lds = k.group_segment_bytes + dynamic_lds;
  if (lds > kLdsBytes) return 0;
  const size_t by_lds = lds == 0 ? kSimds * kWavesPerSimd : kLdsBytes / lds;
  return static_cast<int>(std::min<size_t>(per_simd * kSimds / waves, by_lds));
}

}  // namespace

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
  for (const Variable& v : m->object->variables) {
    if (v.name != name) continue;
    if (address != nullptr) *address = reinterpret_cast<void*>(v.address);
    if (bytes != nullptr) *bytes = v.bytes;
    return hipSuccess;
  }
  return fail(hipErrorNotFound, std::string("hipModuleGetGlobal: the code object has no variable ") + name);
}

MI350_HIP hipError_t hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                           unsigned by, unsigned bz, unsigned lds, void* stream, void** params,
                                           void** extra) {
  return launch(f, {gx, gy, gz}, {bx, by, bz}, lds, stream, params, extra);
}
MI350_HIP hipError_t hipModuleLaunchCooperativeKernel(void* f, unsigned gx, unsigned gy, unsigned gz,
                                                      unsigned bx, unsigned by, unsigned bz, unsigned lds,
                                                      void* stream, void** params) {
  return launch(f, {gx, gy, gz}, {bx, by, bz}, lds, stream, params, nullptr);
}
// This one takes the grid in work-items.
MI350_HIP hipError_t hipExtModuleLaunchKernel(void* f, unsigned wx, unsigned wy, unsigned wz, unsigned bx,
                                              unsigned by, unsigned bz, size_t lds, void* stream, void** params,
                                              void** extra, void* start, void* stop, unsigned) {
  if (bx == 0 || by == 0 || bz == 0 || wx % bx != 0 || wy % by != 0 || wz % bz != 0) {
    return fail(hipErrorInvalidConfiguration,
                "hipExtModuleLaunchKernel: the grid must be whole workgroups, got " + triple(wx, wy, wz) +
                    " work-items in workgroups of " + triple(bx, by, bz));
  }
  if (start != nullptr) hipEventRecord(start, stream);
  const hipError_t e =
      launch(f, {wx / bx, wy / by, wz / bz}, {bx, by, bz}, static_cast<unsigned>(lds), stream, params, extra);
  if (stop != nullptr) hipEventRecord(stop, stream);
  return e;
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
  *grid = static_cast<int>(most / best) * kComputeUnits;
  return hipSuccess;
}

}  // namespace mi350::emu
