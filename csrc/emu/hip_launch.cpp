// HIP's C functions: launches, in both forms of passing arguments. Error codes: HIP's own matrix of its launch
// functions (rocm-systems, hip-tests, hipLaunchErrorCodeMatrix).
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "dispatch.h"
#include "emu_counters.h"
#include "hip_function.h"

MI350_HIP int hipEventRecord(void* event, void* stream);

namespace mi350::emu {
namespace {

std::string triple(unsigned x, unsigned y, unsigned z) {
  return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

// Which code an impossible grid or workgroup is differs between HIP's launch functions.
struct ShapeErrors { hipError_t grid, block; };
constexpr ShapeErrors kModuleErrors{hipErrorInvalidValue, hipErrorInvalidValue};
constexpr ShapeErrors kExtErrors{hipErrorInvalidValue, hipErrorInvalidConfiguration};
constexpr ShapeErrors kDriverErrors{hipErrorInvalidConfiguration, hipErrorInvalidConfiguration};

// The grid and the workgroup against the device and the kernel.
hipError_t check_shape(const Launch& l, size_t dynamic_lds, const ShapeErrors& errors) {
  const KernelInfo& k = *l.kernel;
  const auto& b = l.block;
  const auto& g = l.grid;
  const std::string block = triple(b[0], b[1], b[2]);
  if (g[0] == 0 || g[1] == 0 || g[2] == 0) {
    return fail(errors.grid,
                k.name + ": grid must not be empty, got " + triple(g[0], g[1], g[2]));
  }
  if (b[0] == 0 || b[1] == 0 || b[2] == 0 || uint64_t{b[0]} * b[1] * b[2] > kMaxBlock || b[0] > kMaxBlock ||
      uint64_t{b[0]} * b[1] > kMaxBlock) {
    return fail(errors.block, k.name + ": workgroup must have 1 to 1024 work-items, got " + block);
  }
  for (size_t a = 0; a < 3; ++a) {
    if (uint64_t{g[a]} * b[a] > std::numeric_limits<uint32_t>::max()) {
      return fail(errors.grid,
                  k.name + ": grid times workgroup must fit 32 bits in every dimension, got " +
                      triple(g[0], g[1], g[2]) + " times " + block);
    }
    if (k.required_workgroup_size[a] != 0 && k.required_workgroup_size[a] != b[a]) {
      return fail(
          errors.block,
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
  if (dynamic_lds > kLdsBytes - std::min(k.group_segment_bytes, kLdsBytes)) {
    return fail(hipErrorInvalidValue, k.name + ": a workgroup has 163840 bytes of LDS, the kernel asks for " +
                                          std::to_string(k.group_segment_bytes) + " static and " +
                                          std::to_string(dynamic_lds) + " dynamic");
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

struct Shape {
  std::array<uint32_t, 3> grid, block;
  size_t lds = 0;
  bool cooperative = false;
};

// The device of stream, kernel and thread must be one.
hipError_t check_device_of(const Function& f, void* stream) {
  int device;
  if (hipError_t e = check_stream(stream, f.kernel->name.c_str())) return e;
  stream_known(stream, &device);
  if (device != current_device()) {
    return fail(hipErrorInvalidHandle, f.kernel->name + ": the stream belongs to device " + std::to_string(device) +
                                           ", the current device is " + std::to_string(current_device()));
  }
  if (device == f.module->device) return hipSuccess;
  return fail(hipErrorInvalidDevice, f.kernel->name + ": the kernel was loaded on device " +
                                         std::to_string(f.module->device) + " and launched on device " +
                                         std::to_string(device));
}

// Workgroups of a cooperative launch wait for each other, so all must be resident.
hipError_t check_cooperative(const Launch& l) {
  const uint64_t most = resident_workgroups(l.machine, *l.kernel, l.work_items(), l.dynamic_lds_bytes);
  if (l.workgroups() <= most) return hipSuccess;
  return fail(hipErrorCooperativeLaunchTooLarge,
              l.kernel->name + ": a cooperative launch can have " + std::to_string(most) +
                  " workgroups of this size on " + std::to_string(l.machine.units) + " compute units, got " +
                  std::to_string(l.workgroups()));
}

hipError_t launch(const void* handle, const Shape& shape, void* stream, void** params, void** extra,
                  const ShapeErrors& errors) {
  const Function f = function_of(handle);
  if (f.kernel == nullptr)
    return fail(hipErrorInvalidHandle, "hipModuleLaunchKernel: unknown function, or its module was unloaded");
  if (hipError_t e = check_device_of(f, stream)) return e;
  if (params != nullptr && extra != nullptr) {
    return fail(hipErrorInvalidValue,
                f.kernel->name + ": arguments must come through kernelParams or extra, got both");
  }
  Launch l;
  l.object = f.module->object.get();
  l.kernel = f.kernel;
  l.device = f.module->device;
  l.grid = shape.grid;
  l.block = shape.block;
  if (const std::string why = read_settings(&l.settings); !why.empty())
    return fail(hipErrorInvalidValue, f.kernel->name + ": " + why);
  if (const std::string why = read_machine(&l.machine); !why.empty())
    return fail(hipErrorInvalidValue, f.kernel->name + ": " + why);
  if (hipError_t e = check_shape(l, shape.lds, errors)) return e;
  l.dynamic_lds_bytes = static_cast<uint32_t>(shape.lds);
  if (shape.cooperative) {
    if (hipError_t e = check_cooperative(l)) return e;
  }
  if (hipError_t e =
          extra != nullptr ? read_extra(*f.kernel, extra, l.kernarg) : gather(*f.kernel, params, l.kernarg))
    return e;
  return run(l, stream);
}

}  // namespace

MI350_HIP hipError_t hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                           unsigned by, unsigned bz, unsigned lds, void* stream, void** params,
                                           void** extra) {
  return launch(f, {{gx, gy, gz}, {bx, by, bz}, lds}, stream, params, extra, kModuleErrors);
}
MI350_HIP hipError_t hipModuleLaunchCooperativeKernel(void* f, unsigned gx, unsigned gy, unsigned gz,
                                                      unsigned bx, unsigned by, unsigned bz, unsigned lds,
                                                      void* stream, void** params) {
  return launch(f, {{gx, gy, gz}, {bx, by, bz}, lds, true}, stream, params, nullptr, kModuleErrors);
}

MI350_HIP hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG* c, void* f, void** params, void** extra) {
  constexpr int kCooperative = 2, kClusterDimension = 4;
  if (c == nullptr || (c->numAttrs != 0 && c->attrs == nullptr))
    return fail(hipErrorInvalidValue, "hipDrvLaunchKernelEx: no configuration, or attributes without a list");
  Shape shape{{c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes};
  for (unsigned n = 0; n < c->numAttrs; ++n) {
    const hipLaunchAttribute& a = c->attrs[n];
    if (a.id == kCooperative) shape.cooperative = a.value[0] != 0;
    if (a.id == kClusterDimension && (a.value[0] > 1 || a.value[1] > 1 || a.value[2] > 1))
      return fail(hipErrorNotSupported, "hipDrvLaunchKernelEx: gfx950 has no workgroup clusters");
  }
  return launch(f, shape, c->hStream, params, extra, kDriverErrors);
}

// These take the grid in work-items.
MI350_HIP hipError_t hipExtModuleLaunchKernel(void* f, unsigned wx, unsigned wy, unsigned wz, unsigned bx,
                                              unsigned by, unsigned bz, size_t lds, void* stream, void** params,
                                              void** extra, void* start, void* stop, unsigned) {
  if (bx == 0 || by == 0 || bz == 0)
    return fail(hipErrorInvalidConfiguration, "hipExtModuleLaunchKernel: empty workgroup " + triple(bx, by, bz));
  if (wx % bx != 0 || wy % by != 0 || wz % bz != 0) {
    return fail(hipErrorInvalidValue,
                "hipExtModuleLaunchKernel: the grid must be whole workgroups, got " + triple(wx, wy, wz) +
                    " work-items in workgroups of " + triple(bx, by, bz));
  }
  if (start != nullptr) hipEventRecord(start, stream);
  const hipError_t e =
      launch(f, {{wx / bx, wy / by, wz / bz}, {bx, by, bz}, lds}, stream, params, extra, kExtErrors);
  if (stop != nullptr) hipEventRecord(stop, stream);
  return e;
}
MI350_HIP hipError_t hipHccModuleLaunchKernel(void* f, unsigned wx, unsigned wy, unsigned wz, unsigned bx,
                                              unsigned by, unsigned bz, size_t lds, void* stream, void** params,
                                              void** extra, void* start, void* stop) {
  return hipExtModuleLaunchKernel(f, wx, wy, wz, bx, by, bz, lds, stream, params, extra, start, stop, 0);
}

}  // namespace mi350::emu
