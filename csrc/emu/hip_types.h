// The HIP runtime's C types and codes that the exported functions use: names, values and layouts are the ABI.
// Layout of hipDeviceProp_t is the one of hipGetDevicePropertiesR0600 (ROCm 6 and later).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#define MI350_HIP extern "C" __attribute__((visibility("default")))

namespace mi350::emu {

using hipError_t = int;
enum HipError : int {
  hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2, hipErrorInvalidConfiguration = 9,
  hipErrorInvalidPitchValue = 12, hipErrorInvalidSymbol = 13, hipErrorInvalidDevicePointer = 17, hipErrorInvalidMemcpyDirection = 21,
  hipErrorInvalidDeviceFunction = 98, hipErrorNoDevice = 100, hipErrorInvalidDevice = 101,
  hipErrorInvalidImage = 200, hipErrorInvalidContext = 201, hipErrorNoBinaryForGpu = 209,
  hipErrorUnsupportedLimit = 215, hipErrorPeerAccessUnsupported = 217, hipErrorInvalidSource = 300,
  hipErrorFileNotFound = 301, hipErrorInvalidHandle = 400, hipErrorNotFound = 500,
  hipErrorNotReady = 600, hipErrorIllegalAddress = 700, hipErrorLaunchOutOfResources = 701,
  hipErrorLaunchTimeOut = 702, hipErrorPeerAccessAlreadyEnabled = 704, hipErrorPeerAccessNotEnabled = 705,
  hipErrorContextIsDestroyed = 709, hipErrorHostMemoryAlreadyRegistered = 712,
  hipErrorHostMemoryNotRegistered = 713, hipErrorLaunchFailure = 719, hipErrorCooperativeLaunchTooLarge = 720,
  hipErrorNotSupported = 801, hipErrorUnknown = 999,
};

enum HipMemcpyKind : int { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kDefaultKind };

struct hipDeviceProp_t {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
  int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D[2], maxTexture2DMipmap[2];
  int maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap;
  int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
  int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3];
  int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount;
  int unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess;
  int computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch;
  int cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseHipArraySupported, hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingHipArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
  int reserved[63], hipReserved[32];
  char gcnArchName[256];
  size_t maxSharedMemoryPerMultiProcessor;
  int clockInstructionRate;
  unsigned arch;  // bit field of features
  unsigned *hdpMemFlushCntl, *hdpRegFlushCntl;
  int cooperativeMultiDeviceUnmatchedFunc, cooperativeMultiDeviceUnmatchedGridDim;
  int cooperativeMultiDeviceUnmatchedBlockDim, cooperativeMultiDeviceUnmatchedSharedMem, isLargeBar, asicRevision;
};
static_assert(offsetof(hipDeviceProp_t, gcnArchName) == 1160 && sizeof(hipDeviceProp_t) == 1472);

struct hipPointerAttribute_t {
  int type;  // 0 unregistered, 1 host, 2 device, 3 managed
  int device;
  void *devicePointer, *hostPointer;
  int isManaged;
  unsigned allocationFlags;
};

struct hipFuncAttributes {
  int binaryVersion, cacheModeCA;
  size_t constSizeBytes, localSizeBytes;
  int maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs, preferredShmemCarveout, ptxVersion;
  size_t sharedSizeBytes;
};

struct hipLaunchAttribute {
  int id;
  char pad[4];
  unsigned value[16];  // a union of 64 bytes
};
struct HIP_LAUNCH_CONFIG {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void* hStream;
  hipLaunchAttribute* attrs;
  unsigned numAttrs;
};
static_assert(sizeof(hipLaunchAttribute) == 72 && sizeof(HIP_LAUNCH_CONFIG) == 56);

// What the device looks like to a program; the rest is in machine.h.
constexpr uint32_t kLdsBytes = 160 * 1024;
constexpr uint32_t kMaxBlock = 1024;

// Shared by the hip_*.cpp files: the error of the calling thread, the sentence behind it, the current device.
hipError_t fail(hipError_t code, const std::string& sentence);
int current_device();
int device_count();
hipError_t check_device(int device);  // exists, and the machine's variables are good
bool stream_known(void* stream, int* device);
hipError_t check_stream(void* stream, const char* function);
std::string hex(uint64_t v);

}  // namespace mi350::emu
