// HIP's C functions: initialisation, devices, properties, errors.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstdio>
#include <cstring>
#include <utility>

#include "hip_types.h"
#include "machine.h"
#include "memory.h"
#include "report.h"

namespace mi350::emu {
namespace {

thread_local int thread_device = 0;
thread_local hipError_t thread_error = hipSuccess;

constexpr int kVersion = 70051831;  // HIP 7.0
constexpr int kClockKhz = 2'400'000;
constexpr int kMemoryClockKhz = 2'000'000;
constexpr int kBusBits = 8192;
constexpr int kL2Bytes = 4 << 20;
constexpr size_t kBoardBytes = 288ull << 30;

// Device memory is host memory, so no more than the host has.
size_t total_bytes() {
  static const size_t bytes = std::min<size_t>(
      kBoardBytes, static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  return bytes;
}

struct ErrorName { hipError_t code; const char *name, *text; };
constexpr ErrorName kErrors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {hipErrorInvalidPitchValue, "hipErrorInvalidPitchValue", "invalid pitch argument"},
    {hipErrorInvalidSymbol, "hipErrorInvalidSymbol", "invalid device symbol"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorInvalidContext, "hipErrorInvalidContext", "invalid device context"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {hipErrorUnsupportedLimit, "hipErrorUnsupportedLimit", "limit is not supported on this architecture"},
    {hipErrorPeerAccessUnsupported, "hipErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {hipErrorInvalidSource, "hipErrorInvalidSource", "device kernel image is invalid"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources",
     "out of resources: too many requested for launch"},
    {hipErrorLaunchTimeOut, "hipErrorLaunchTimeOut", "the launch timed out and was terminated"},
    {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {hipErrorPeerAccessNotEnabled, "hipErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {hipErrorContextIsDestroyed, "hipErrorContextIsDestroyed", "context is destroyed"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorCooperativeLaunchTooLarge, "hipErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

const ErrorName* find_error(hipError_t code) {
  for (const ErrorName& e : kErrors) {
    if (e.code == code) return &e;
  }
  return nullptr;
}

void fill_limits(hipDeviceProp_t& p) {
  p.sharedMemPerBlock = p.sharedMemPerBlockOptin = p.sharedMemPerMultiprocessor = kLdsBytes;
  p.maxSharedMemoryPerMultiProcessor = kLdsBytes;
  p.regsPerBlock = p.regsPerMultiprocessor = 131072;
  p.warpSize = 64;
  p.maxThreadsPerBlock = kMaxBlock;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 2;
  for (int& n : p.maxThreadsDim) n = kMaxBlock;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65536;
  p.memPitch = 2147483647;
}

void fill_properties(hipDeviceProp_t& p, int device) {
  std::memset(&p, 0, sizeof p);
  std::strcpy(p.name, "AMD Instinct MI350X (emulated)");
  std::memcpy(p.uuid, "torch-mi350-emu", 15);
  p.uuid[15] = static_cast<char>('0' + device);
  std::strcpy(p.gcnArchName, "gfx950:sramecc+:xnack-");
  fill_limits(p);
  p.totalGlobalMem = total_bytes();
  p.totalConstMem = 2147483647;
  p.clockRate = kClockKhz;
  p.clockInstructionRate = 100000;
  p.memoryClockRate = kMemoryClockKhz;
  p.memoryBusWidth = kBusBits;
  p.l2CacheSize = kL2Bytes;
  p.major = 9;
  p.minor = 5;
  p.multiProcessorCount = machine().units;
  p.concurrentKernels = p.canMapHostMemory = p.unifiedAddressing = p.hostRegisterSupported = 1;
  p.canUseHostPointerForRegisteredMem = p.streamPrioritiesSupported = p.ECCEnabled = p.isLargeBar = 1;
  p.asyncEngineCount = 8;
  p.cooperativeLaunch = 1;
  p.textureAlignment = p.texturePitchAlignment = 256;
  p.pciDomainID = 0;
  p.pciBusID = device + 1;
  p.arch = 0x1ffff & ~(1u << 16);  // all features but dynamic parallelism
}

// Enumerators of hipDeviceAttribute_t with a value other than 0.
hipError_t attribute(const hipDeviceProp_t& p, int attr, int* out) {
  const int lds = static_cast<int>(kLdsBytes);
  switch (attr) {
    case 0: *out = p.ECCEnabled; break;
    case 2: *out = p.asyncEngineCount; break;
    case 3: case 4: case 8: case 10: case 78: case 85: case 90: case 10011: case 10014: case 10016: *out = 1; break;
    case 5: *out = p.clockRate; break;
    case 19: *out = p.l2CacheSize; break;
    case 23: *out = p.major; break;
    case 61: *out = p.minor; break;
    case 25: *out = p.maxBlocksPerMultiProcessor; break;
    case 26: case 27: case 28: case 56: *out = static_cast<int>(kMaxBlock); break;
    case 29: *out = p.maxGridSize[0]; break;
    case 30: case 31: *out = p.maxGridSize[1]; break;
    case 57: *out = p.maxThreadsPerMultiProcessor; break;
    case 58: case 83: *out = 2147483647; break;
    case 59: *out = p.memoryBusWidth; break;
    case 60: *out = p.memoryClockRate; break;
    case 63: case 10015: *out = p.multiProcessorCount; break;
    case 67: *out = p.pciBusID; break;
    case 71: case 72: *out = p.regsPerBlock; break;
    case 74: case 75: case 76: case 10002: *out = lds; break;
    case 81: case 82: *out = 256; break;
    case 84: *out = static_cast<int>(std::min<size_t>(p.totalGlobalMem, 2147483647)); break;
    case 87: *out = p.warpSize; break;
    case 10017: *out = p.clockInstructionRate; break;
    case 10018: *out = machine().xcds; break;
    case 10019: *out = 512; break;
    default:
      if ((attr > 92 && attr < 10000) || attr < 0 || attr > 10020) {
        return fail(hipErrorInvalidValue, "hipDeviceGetAttribute: unknown attribute " + std::to_string(attr));
      }
      *out = 0;
  }
  return hipSuccess;
}

}  // namespace

hipError_t fail(hipError_t code, const std::string& sentence) {
  thread_error = code;
  if (!sentence.empty()) set_last_report(sentence);
  return code;
}
int current_device() { return thread_device; }
int device_count() { return machine().devices; }
hipError_t check_device(int device) {
  Machine m;
  if (const std::string why = read_machine(&m); !why.empty()) return fail(hipErrorInvalidValue, why);
  if (device >= 0 && device < m.devices) return hipSuccess;
  return fail(hipErrorInvalidDevice, "device " + std::to_string(device) + " does not exist: the emulator has " +
                                         std::to_string(m.devices) + " (TORCH_MI350_EMU_DEVICES)");
}
std::string hex(uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

MI350_HIP hipError_t hipInit(unsigned flags) {
  Machine m;
  if (const std::string why = read_machine(&m); !why.empty()) return fail(hipErrorInvalidValue, why);
  return flags == 0 ? hipSuccess : fail(hipErrorInvalidValue, "hipInit: flags must be 0");
}
MI350_HIP hipError_t hipDriverGetVersion(int* version) {
  if (version == nullptr) return fail(hipErrorInvalidValue, "hipDriverGetVersion: null pointer");
  *version = kVersion;
  return hipSuccess;
}
MI350_HIP hipError_t hipRuntimeGetVersion(int* version) { return hipDriverGetVersion(version); }

MI350_HIP hipError_t hipGetDeviceCount(int* count) {
  if (count == nullptr) return fail(hipErrorInvalidValue, "hipGetDeviceCount: null pointer");
  Machine m;
  *count = 0;
  if (const std::string why = read_machine(&m); !why.empty()) return fail(hipErrorInvalidValue, why);
  *count = m.devices;
  return *count > 0 ? hipSuccess : fail(hipErrorNoDevice, "the emulator has no device: TORCH_MI350_EMU_DEVICES=0");
}
MI350_HIP hipError_t hipSetDevice(int device) {
  if (hipError_t e = check_device(device)) return e;
  thread_device = device;
  return hipSuccess;
}
MI350_HIP hipError_t hipGetDevice(int* device) {
  if (device == nullptr) return fail(hipErrorInvalidValue, "hipGetDevice: null pointer");
  *device = thread_device;
  return hipSuccess;
}
MI350_HIP hipError_t hipDeviceGet(int* handle, int device) {
  if (handle == nullptr) return fail(hipErrorInvalidValue, "hipDeviceGet: null pointer");
  if (hipError_t e = check_device(device)) return e;
  *handle = device;
  return hipSuccess;
}
MI350_HIP hipError_t hipDeviceGetName(char* name, int bytes, int device) {
  if (name == nullptr || bytes <= 0) return fail(hipErrorInvalidValue, "hipDeviceGetName: no room for the name");
  if (hipError_t e = check_device(device)) return e;
  hipDeviceProp_t p;
  fill_properties(p, device);
  std::strncpy(name, p.name, static_cast<size_t>(bytes));
  name[bytes - 1] = 0;
  return hipSuccess;
}
MI350_HIP hipError_t hipDeviceGetAttribute(int* value, int attr, int device) {
  if (value == nullptr) return fail(hipErrorInvalidValue, "hipDeviceGetAttribute: null pointer");
  if (hipError_t e = check_device(device)) return e;
  hipDeviceProp_t p;
  fill_properties(p, device);
  return attribute(p, attr, value);
}
MI350_HIP hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t* out, int device) {
  if (out == nullptr) return fail(hipErrorInvalidValue, "hipGetDeviceProperties: null pointer");
  if (hipError_t e = check_device(device)) return e;
  fill_properties(*out, device);
  return hipSuccess;
}
// The unversioned symbol has had two layouts; programs compiled since ROCm 6 bind to R0600.
MI350_HIP hipError_t hipGetDeviceProperties(hipDeviceProp_t* out, int device) {
  return hipGetDevicePropertiesR0600(out, device);
}
MI350_HIP hipError_t hipDeviceTotalMem(size_t* bytes, int device) {
  if (bytes == nullptr) return fail(hipErrorInvalidValue, "hipDeviceTotalMem: null pointer");
  if (hipError_t e = check_device(device)) return e;
  *bytes = total_bytes();
  return hipSuccess;
}
MI350_HIP hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total) {
  const size_t used = AllocationMap::get().bytes_in_use(thread_device);
  if (free_bytes != nullptr) *free_bytes = total_bytes() > used ? total_bytes() - used : 0;
  if (total != nullptr) *total = total_bytes();
  return hipSuccess;
}
// Every call has finished its work when it returns.
MI350_HIP hipError_t hipDeviceSynchronize() { return hipSuccess; }
MI350_HIP hipError_t hipDeviceReset() { return hipSuccess; }
MI350_HIP hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 1;
  if (greatest != nullptr) *greatest = -1;
  return hipSuccess;
}
MI350_HIP hipError_t hipDeviceGetPCIBusId(char* text, int bytes, int device) {
  if (text == nullptr || bytes < 13) return fail(hipErrorInvalidValue, "hipDeviceGetPCIBusId: needs 13 bytes");
  if (hipError_t e = check_device(device)) return e;
  std::snprintf(text, static_cast<size_t>(bytes), "0000:%02x:00.0", device + 1);
  return hipSuccess;
}

MI350_HIP const char* hipGetErrorString(hipError_t code) {
  const ErrorName* e = find_error(code);
  return e != nullptr ? e->text : "unknown error";
}
MI350_HIP const char* hipGetErrorName(hipError_t code) {
  const ErrorName* e = find_error(code);
  return e != nullptr ? e->name : "hipErrorUnknown";
}
MI350_HIP hipError_t hipDrvGetErrorString(hipError_t code, const char** text) {
  if (text == nullptr || find_error(code) == nullptr) return hipErrorInvalidValue;
  *text = hipGetErrorString(code);
  return hipSuccess;
}
MI350_HIP hipError_t hipDrvGetErrorName(hipError_t code, const char** text) {
  if (text == nullptr || find_error(code) == nullptr) return hipErrorInvalidValue;
  *text = hipGetErrorName(code);
  return hipSuccess;
}
MI350_HIP hipError_t hipGetLastError() { return std::exchange(thread_error, static_cast<hipError_t>(hipSuccess)); }
MI350_HIP hipError_t hipPeekAtLastError() { return thread_error; }

}  // namespace mi350::emu
