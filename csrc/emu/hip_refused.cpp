// HIP functions that callers look for and that the emulator refuses by name: it captures no graphs, shares
// nothing between processes, maps no virtual memory and knows no kernels compiled into the calling program.
#include <string>

#include "hip_types.h"

namespace mi350::emu {
namespace {

hipError_t refuse(const char* function, const char* why) {
  return fail(hipErrorNotSupported, std::string(function) + ": " + why);
}

struct Dim3 { unsigned x, y, z; };
struct Handle { char bytes[64]; };

constexpr const char* kNoGraphs = "the emulator does not capture graphs";
constexpr const char* kOneProcess = "the emulator's memory belongs to one process";
constexpr const char* kNoVirtualMemory = "the emulator has no virtual memory management: use hipMalloc";
constexpr const char* kNoPools = "the emulator has no memory pools: hipMallocAsync works without one";

}  // namespace

#define REFUSE(function, why, ...) \
  MI350_HIP hipError_t function(__VA_ARGS__) { return refuse(#function, why); }

REFUSE(hipStreamEndCapture, kNoGraphs, void*, void**)
REFUSE(hipGraphCreate, kNoGraphs, void**, unsigned)
REFUSE(hipGraphInstantiate, kNoGraphs, void**, void*, void**, char*, size_t)
REFUSE(hipGraphInstantiateWithFlags, kNoGraphs, void**, void*, unsigned long long)
REFUSE(hipGraphLaunch, kNoGraphs, void*, void*)
REFUSE(hipGraphDestroy, kNoGraphs, void*)
REFUSE(hipGraphExecDestroy, kNoGraphs, void*)
REFUSE(hipGraphGetNodes, kNoGraphs, void*, void**, size_t*)
REFUSE(hipStreamUpdateCaptureDependencies, kNoGraphs, void*, void**, size_t, unsigned)

REFUSE(hipIpcGetMemHandle, kOneProcess, Handle*, void*)
REFUSE(hipIpcOpenMemHandle, kOneProcess, void**, Handle, unsigned)
REFUSE(hipIpcCloseMemHandle, kOneProcess, void*)
REFUSE(hipIpcGetEventHandle, kOneProcess, Handle*, void*)
REFUSE(hipIpcOpenEventHandle, kOneProcess, void**, Handle)

REFUSE(hipMemCreate, kNoVirtualMemory, void**, size_t, const void*, unsigned long long)
REFUSE(hipMemRelease, kNoVirtualMemory, void*)
REFUSE(hipMemAddressReserve, kNoVirtualMemory, void**, size_t, size_t, void*, unsigned long long)
REFUSE(hipMemAddressFree, kNoVirtualMemory, void*, size_t)
REFUSE(hipMemMap, kNoVirtualMemory, void*, size_t, size_t, void*, unsigned long long)
REFUSE(hipMemUnmap, kNoVirtualMemory, void*, size_t)
REFUSE(hipMemSetAccess, kNoVirtualMemory, void*, size_t, const void*, size_t)
REFUSE(hipMemGetAllocationGranularity, kNoVirtualMemory, size_t*, const void*, int)
REFUSE(hipMemExportToShareableHandle, kNoVirtualMemory, void*, void*, int, unsigned long long)
REFUSE(hipMemImportFromShareableHandle, kNoVirtualMemory, void**, void*, int)

REFUSE(hipDeviceGetDefaultMemPool, kNoPools, void**, int)
REFUSE(hipDeviceGetMemPool, kNoPools, void**, int)
REFUSE(hipDeviceSetMemPool, kNoPools, int, void*)
REFUSE(hipMemPoolCreate, kNoPools, void**, const void*)
REFUSE(hipMemPoolDestroy, kNoPools, void*)
REFUSE(hipMemPoolSetAttribute, kNoPools, void*, int, void*)
REFUSE(hipMemPoolGetAttribute, kNoPools, void*, int, void*)
REFUSE(hipMemPoolTrimTo, kNoPools, void*, size_t)
REFUSE(hipMallocFromPoolAsync, kNoPools, void**, size_t, void*, void*)

// Of kernels and variables that a compiler put into the calling program the emulator hears nothing.
namespace {
hipError_t not_registered(const char* function) {
  return fail(hipErrorInvalidDeviceFunction,
              std::string(function) + ": kernels compiled into a program are unknown to the emulator: load their "
                                      "code object with hipModuleLoad");
}
}  // namespace
MI350_HIP hipError_t hipLaunchKernel(const void*, Dim3, Dim3, void**, size_t, void*) {
  return not_registered("hipLaunchKernel");
}
MI350_HIP hipError_t hipExtLaunchKernel(const void*, Dim3, Dim3, void**, size_t, void*, void*, void*, int) {
  return not_registered("hipExtLaunchKernel");
}
MI350_HIP hipError_t hipLaunchCooperativeKernel(const void*, Dim3, Dim3, void**, unsigned, void*) {
  return not_registered("hipLaunchCooperativeKernel");
}
MI350_HIP hipError_t hipGetFuncBySymbol(void**, const void*) { return not_registered("hipGetFuncBySymbol"); }

}  // namespace mi350::emu
