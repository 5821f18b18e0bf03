// HIP's C functions around a device: contexts, peers, limits and flags, functions by name.
// Signatures and codes: hip_runtime_api.h of ROCm 7.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "hip_types.h"
#include "machine.h"
#include "memory.h"

MI350_HIP int hipSetDevice(int device);

namespace mi350::emu {
namespace {

void* context_of(int device) { return reinterpret_cast<void*>(static_cast<uintptr_t>(device) + 1); }
hipError_t null_pointer(const char* function) {
  return fail(hipErrorInvalidValue, std::string(function) + ": null pointer");
}

// A peer is another device than the current one.
hipError_t check_peer(int peer, const char* function) {
  if (hipError_t e = check_device(peer)) return e;
  if (peer != current_device()) return hipSuccess;
  return fail(hipErrorInvalidDevice,
              std::string(function) + ": device " + std::to_string(peer) + " is the current device, not a peer");
}

}  // namespace

// Contexts are the primary contexts of the devices: handle = device + 1.
MI350_HIP hipError_t hipCtxGetCurrent(void** context) {
  if (context == nullptr) return null_pointer("hipCtxGetCurrent");
  *context = context_of(current_device());
  return hipSuccess;
}
MI350_HIP hipError_t hipCtxSetCurrent(void* context) {
  return context == nullptr ? static_cast<hipError_t>(hipSuccess)
                            : hipSetDevice(static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1);
}
MI350_HIP hipError_t hipCtxPushCurrent(void* context) { return hipCtxSetCurrent(context); }
MI350_HIP hipError_t hipCtxPopCurrent(void** context) {
  return context == nullptr ? static_cast<hipError_t>(hipSuccess) : hipCtxGetCurrent(context);
}
MI350_HIP hipError_t hipCtxCreate(void** context, unsigned, int device) {
  if (context == nullptr) return null_pointer("hipCtxCreate");
  if (hipError_t e = hipSetDevice(device)) return e;
  *context = context_of(device);
  return hipSuccess;
}
MI350_HIP hipError_t hipCtxDestroy(void* context) {
  return context != nullptr ? static_cast<hipError_t>(hipSuccess)
                            : fail(hipErrorInvalidValue, "hipCtxDestroy: null context");
}
MI350_HIP hipError_t hipCtxGetDevice(int* device) {
  if (device == nullptr) return null_pointer("hipCtxGetDevice");
  *device = current_device();
  return hipSuccess;
}
MI350_HIP hipError_t hipCtxSynchronize() { return hipSuccess; }
MI350_HIP hipError_t hipDevicePrimaryCtxRetain(void** context, int device) {
  if (context == nullptr) return null_pointer("hipDevicePrimaryCtxRetain");
  if (hipError_t e = check_device(device)) return e;
  *context = context_of(device);
  return hipSuccess;
}
MI350_HIP hipError_t hipDevicePrimaryCtxRelease(int device) { return check_device(device); }
MI350_HIP hipError_t hipDevicePrimaryCtxReset(int device) { return check_device(device); }
MI350_HIP hipError_t hipDevicePrimaryCtxSetFlags(int device, unsigned) { return check_device(device); }
MI350_HIP hipError_t hipDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (flags != nullptr) *flags = 0;
  if (active != nullptr) *active = 1;
  return check_device(device);
}

MI350_HIP hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return null_pointer("hipDeviceCanAccessPeer");
  if (hipError_t e = check_device(device)) return e;
  if (hipError_t e = check_device(peer)) return e;
  *can = device != peer;
  return hipSuccess;
}
MI350_HIP hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return fail(hipErrorInvalidValue, "hipDeviceEnablePeerAccess: flags must be 0");
  if (hipError_t e = check_peer(peer, "hipDeviceEnablePeerAccess")) return e;
  if (!AllocationMap::get().set_peer_access(current_device(), peer, true)) return hipSuccess;
  return fail(hipErrorPeerAccessAlreadyEnabled, "hipDeviceEnablePeerAccess: device " +
                                                    std::to_string(current_device()) + " already reaches device " +
                                                    std::to_string(peer));
}
MI350_HIP hipError_t hipDeviceDisablePeerAccess(int peer) {
  if (hipError_t e = check_peer(peer, "hipDeviceDisablePeerAccess")) return e;
  if (AllocationMap::get().set_peer_access(current_device(), peer, false)) return hipSuccess;
  return fail(hipErrorPeerAccessNotEnabled, "hipDeviceDisablePeerAccess: device " +
                                                std::to_string(current_device()) + " does not reach device " +
                                                std::to_string(peer));
}
MI350_HIP hipError_t hipDeviceGetP2PAttribute(int* value, int attribute, int from, int to) {
  enum { kRank = 0, kAccess = 1, kAtomics = 2, kArrays = 3 };
  if (value == nullptr || from == to || attribute < kRank || attribute > kArrays)
    return fail(hipErrorInvalidValue, "hipDeviceGetP2PAttribute: two devices and an attribute from 0 to 3");
  if (hipError_t e = check_device(from)) return e;
  if (hipError_t e = check_device(to)) return e;
  *value = attribute == kAccess || attribute == kAtomics;
  return hipSuccess;
}

MI350_HIP hipError_t hipGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return null_pointer("hipGetDeviceFlags");
  *flags = 0;
  return hipSuccess;
}
MI350_HIP hipError_t hipSetDeviceFlags(unsigned) { return hipSuccess; }
MI350_HIP hipError_t hipDeviceGetCacheConfig(int* config) {
  if (config == nullptr) return null_pointer("hipDeviceGetCacheConfig");
  *config = 0;
  return hipSuccess;
}
MI350_HIP hipError_t hipDeviceSetCacheConfig(int) { return hipSuccess; }
MI350_HIP hipError_t hipDeviceGetSharedMemConfig(int* config) {
  if (config == nullptr) return null_pointer("hipDeviceGetSharedMemConfig");
  *config = 1;  // banks of four bytes
  return hipSuccess;
}
MI350_HIP hipError_t hipDeviceSetSharedMemConfig(int) { return hipSuccess; }
MI350_HIP hipError_t hipDeviceGetLimit(size_t* value, int limit) {
  enum { kStack = 0, kPrintf = 1, kHeap = 2 };
  if (value == nullptr) return null_pointer("hipDeviceGetLimit");
  switch (limit) {
    case kStack: *value = 1024; return hipSuccess;
    case kPrintf: *value = 1 << 20; return hipSuccess;
    case kHeap: *value = 4 << 20; return hipSuccess;
    default: return fail(hipErrorUnsupportedLimit, "hipDeviceGetLimit: limit " + std::to_string(limit));
  }
}
MI350_HIP hipError_t hipDeviceSetLimit(int limit, size_t) {
  size_t unused;
  return hipDeviceGetLimit(&unused, limit);
}
MI350_HIP hipError_t hipDeviceComputeCapability(int* major, int* minor, int device) {
  if (major == nullptr || minor == nullptr) return null_pointer("hipDeviceComputeCapability");
  if (hipError_t e = check_device(device)) return e;
  *major = 9;
  *minor = 5;
  return hipSuccess;
}
MI350_HIP hipError_t hipDeviceGetByPCIBusId(int* device, const char* text) {
  if (device == nullptr || text == nullptr) return null_pointer("hipDeviceGetByPCIBusId");
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 || domain + slot + function != 0)
    return fail(hipErrorInvalidValue, std::string("hipDeviceGetByPCIBusId: no device at ") + text);
  if (hipError_t e = check_device(static_cast<int>(bus) - 1)) return e;
  *device = static_cast<int>(bus) - 1;
  return hipSuccess;
}

// Any function of this library. Nothing changed its signature since the oldest version that may ask (6.0).
MI350_HIP hipError_t hipGetProcAddress(const char* name, void** function, int version, uint64_t flags, int* status) {
  enum { kFound = 0, kNotFound = 1, kVersion = 2 };
  if (name == nullptr || function == nullptr) return null_pointer("hipGetProcAddress");
  *function = nullptr;
  static void* const self = [] {
    Dl_info info;
    return dladdr(reinterpret_cast<void*>(&hipSetDevice), &info) != 0
               ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_LOCAL) : nullptr;
  }();
  const bool ours = std::strncmp(name, "hip", 3) == 0;
  *function = ours ? dlsym(self != nullptr ? self : RTLD_DEFAULT, name) : nullptr;
  if (status != nullptr) *status = *function != nullptr ? kFound : kNotFound;
  if (*function != nullptr) return hipSuccess;
  return fail(hipErrorInvalidValue, std::string("hipGetProcAddress: the emulator has no function ") + name);
}

}  // namespace mi350::emu
