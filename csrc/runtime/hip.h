// The HIP functions that the package calls, as a table filled by dlsym: from libmi350emu on `cdna`,
// from the runtime that torch has already mapped on a ROCm build. No HIP header is needed to build.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace mi350::runtime {

using hipError_t = int;  // 0 = hipSuccess
using hipStream_t = void*;
using hipEvent_t = void*;
using hipModule_t = void*;
using hipFunction_t = void*;

// Name, return type, arguments. One row per function, real HIP signatures.
#define MI350_HIP_FUNCTIONS(F)                                                                      \
  F(hipGetDeviceCount, hipError_t, (int*))                                                          \
  F(hipSetDevice, hipError_t, (int))                                                                \
  F(hipGetDevice, hipError_t, (int*))                                                               \
  F(hipDeviceSynchronize, hipError_t, ())                                                           \
  F(hipMalloc, hipError_t, (void**, size_t))                                                        \
  F(hipFree, hipError_t, (void*))                                                                   \
  F(hipMemcpyAsync, hipError_t, (void*, const void*, size_t, int, hipStream_t))                     \
  F(hipMemsetAsync, hipError_t, (void*, int, size_t, hipStream_t))                                  \
  F(hipStreamCreateWithFlags, hipError_t, (hipStream_t*, unsigned))                                 \
  F(hipStreamDestroy, hipError_t, (hipStream_t))                                                    \
  F(hipStreamSynchronize, hipError_t, (hipStream_t))                                                \
  F(hipStreamQuery, hipError_t, (hipStream_t))                                                      \
  F(hipStreamWaitEvent, hipError_t, (hipStream_t, hipEvent_t, unsigned))                            \
  F(hipStreamIsCapturing, hipError_t, (hipStream_t, int*))                                          \
  F(hipEventCreateWithFlags, hipError_t, (hipEvent_t*, unsigned))                                   \
  F(hipEventDestroy, hipError_t, (hipEvent_t))                                                      \
  F(hipEventRecord, hipError_t, (hipEvent_t, hipStream_t))                                          \
  F(hipEventSynchronize, hipError_t, (hipEvent_t))                                                  \
  F(hipEventQuery, hipError_t, (hipEvent_t))                                                        \
  F(hipEventElapsedTime, hipError_t, (float*, hipEvent_t, hipEvent_t))                              \
  F(hipModuleLoadData, hipError_t, (hipModule_t*, const void*))                                     \
  F(hipModuleUnload, hipError_t, (hipModule_t))                                                     \
  F(hipModuleGetFunction, hipError_t, (hipFunction_t*, hipModule_t, const char*))                   \
  F(hipModuleLaunchKernel, hipError_t,                                                              \
    (hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,           \
     hipStream_t, void**, void**))                                                                  \
  F(hipGetErrorString, const char*, (hipError_t))                                                   \
  F(hipGetLastError, hipError_t, ())

struct Hip {
#define MI350_FIELD(fn, ret, args) ret(*fn) args = nullptr;
  MI350_HIP_FUNCTIONS(MI350_FIELD)
#undef MI350_FIELD
  std::string path;  // of the library that serves it
};

}  // namespace mi350::runtime
