// HIP's C functions: allocation, copies, host memory, pointer queries. All copies are done when they return.
#include <cstring>
#include <string>

#include "hip_types.h"
#include "memory.h"

namespace mi350::emu {
namespace {

constexpr auto kDeviceKinds = {RangeKind::kDevice, RangeKind::kManaged};
constexpr auto kHostKinds = {RangeKind::kHost};

uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }
std::string number(uint64_t v) { return std::to_string(v); }

hipError_t allocate(void** out, size_t bytes, RangeKind kind, const char* function, int device = current_device()) {
  if (out == nullptr) return fail(hipErrorInvalidValue, std::string(function) + ": null pointer");
  *out = nullptr;
  if (bytes == 0) return hipSuccess;
  if (device_count() == 0) return fail(hipErrorNoDevice, std::string(function) + ": no device");
  *out = AllocationMap::get().allocate(bytes, kind, device);
  if (*out != nullptr) return hipSuccess;
  return fail(hipErrorOutOfMemory, std::string(function) + ": the host has no " + number(bytes) + " bytes left");
}

hipError_t release(void* p, std::initializer_list<RangeKind> kinds, const char* function) {
  if (p == nullptr || AllocationMap::get().remove(address(p), kinds)) return hipSuccess;
  return fail(hipErrorInvalidValue,
              std::string(function) + ": " + hex(address(p)) +
                  " is not the start of a live allocation: " + AllocationMap::get().describe(address(p)));
}

// A side of a copy: inside one known range, or memory of the host where that is allowed.
hipError_t check_side(const void* p, size_t bytes, bool must_be_known, bool write, const char* function,
                      const char* side) {
  Range r;
  std::string what = std::string(function) + ": " + side + " " + hex(address(p));
  if (p == nullptr) return fail(hipErrorInvalidValue, what + " is null");
  if (!AllocationMap::get().find(address(p), &r)) {
    if (!must_be_known) return hipSuccess;
    return fail(hipErrorInvalidValue,
                what + " is not device memory: " + AllocationMap::get().describe(address(p)));
  }
  if (write && !r.writable) return fail(hipErrorInvalidValue, what + " is read-only");
  if (bytes <= r.hi - address(p)) return hipSuccess;
  return fail(hipErrorInvalidValue,
              what + ": " + number(bytes) + " bytes run " + number(bytes - (r.hi - address(p))) +
                  " past the end of its range, at " + AllocationMap::get().describe(address(p)));
}

hipError_t copy(void* dst, const void* src, size_t bytes, int kind, const char* function) {
  if (kind < kHostToHost || kind > kDefaultKind) {
    return fail(hipErrorInvalidMemcpyDirection, std::string(function) + ": unknown kind " + std::to_string(kind));
  }
  if (bytes == 0) return hipSuccess;
  const bool dst_device = kind == kHostToDevice || kind == kDeviceToDevice;
  const bool src_device = kind == kDeviceToHost || kind == kDeviceToDevice;
  if (hipError_t e = check_side(dst, bytes, dst_device, true, function, "destination")) return e;
  if (hipError_t e = check_side(src, bytes, src_device, false, function, "source")) return e;
  std::memmove(dst, src, bytes);
  return hipSuccess;
}

// Copies between devices need no peer access, but the caller must know where the memory is.
hipError_t check_home(const void* p, int device, const char* function, const char* side) {
  Range r;
  if (hipError_t e = check_device(device)) return e;
  const bool known = AllocationMap::get().find(address(p), &r);
  if (!known || r.kind != RangeKind::kDevice || r.device == device) return hipSuccess;
  return fail(hipErrorInvalidValue, std::string(function) + ": " + side + " " + hex(address(p)) +
                                        " lies on device " + std::to_string(r.device) + ", not on device " +
                                        std::to_string(device));
}
hipError_t copy_between(void* dst, int to, const void* src, int from, size_t bytes, const char* function) {
  if (bytes == 0) return hipSuccess;
  if (hipError_t e = check_home(dst, to, function, "destination")) return e;
  if (hipError_t e = check_home(src, from, function, "source")) return e;
  return copy(dst, src, bytes, kDeviceToDevice, function);
}

template <typename T>
hipError_t fill(void* dst, T value, size_t count, const char* function) {
  if (count == 0) return hipSuccess;
  if (count > (1ull << 47) / sizeof(T))
    return fail(hipErrorInvalidValue, std::string(function) + ": count " + number(count));
  if (hipError_t e = check_side(dst, count * sizeof(T), true, true, function, "destination")) return e;
  if constexpr (sizeof(T) == 1) {
    std::memset(dst, value, count);
  } else {
    for (size_t i = 0; i < count; ++i) std::memcpy(static_cast<char*>(dst) + i * sizeof(T), &value, sizeof(T));
  }
  return hipSuccess;
}

}  // namespace

MI350_HIP hipError_t hipMalloc(void** p, size_t bytes) {
  return allocate(p, bytes, RangeKind::kDevice, "hipMalloc");
}
MI350_HIP hipError_t hipExtMallocWithFlags(void** p, size_t bytes, unsigned) {
  return allocate(p, bytes, RangeKind::kDevice, "hipExtMallocWithFlags");
}
MI350_HIP hipError_t hipMallocManaged(void** p, size_t bytes, unsigned) {
  return allocate(p, bytes, RangeKind::kManaged, "hipMallocManaged");
}
MI350_HIP hipError_t hipMallocAsync(void** p, size_t bytes, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMallocAsync")) return e;
  int device;
  stream_known(stream, &device);
  return allocate(p, bytes, RangeKind::kDevice, "hipMallocAsync", device);
}
MI350_HIP hipError_t hipFree(void* p) { return release(p, kDeviceKinds, "hipFree"); }
MI350_HIP hipError_t hipFreeAsync(void* p, void* stream) {
  if (hipError_t e = check_stream(stream, "hipFreeAsync")) return e;
  return release(p, kDeviceKinds, "hipFreeAsync");
}
MI350_HIP hipError_t hipHostMalloc(void** p, size_t bytes, unsigned) {
  return allocate(p, bytes, RangeKind::kHost, "hipHostMalloc");
}
MI350_HIP hipError_t hipHostAlloc(void** p, size_t bytes, unsigned) {
  return allocate(p, bytes, RangeKind::kHost, "hipHostAlloc");
}
MI350_HIP hipError_t hipMallocHost(void** p, size_t bytes) {
  return allocate(p, bytes, RangeKind::kHost, "hipMallocHost");
}
MI350_HIP hipError_t hipHostFree(void* p) { return release(p, kHostKinds, "hipHostFree"); }
MI350_HIP hipError_t hipFreeHost(void* p) { return release(p, kHostKinds, "hipFreeHost"); }
MI350_HIP hipError_t hipHostRegister(void* p, size_t bytes, unsigned) {
  if (p == nullptr || bytes == 0) return fail(hipErrorInvalidValue, "hipHostRegister: null pointer or no bytes");
  if (AllocationMap::get().add(address(p), bytes, RangeKind::kRegistered, current_device())) return hipSuccess;
  return fail(hipErrorHostMemoryAlreadyRegistered,
              "hipHostRegister: " + number(bytes) + " bytes at " + hex(address(p)) + " overlap a known range");
}
MI350_HIP hipError_t hipHostUnregister(void* p) {
  if (p != nullptr && AllocationMap::get().remove(address(p), {RangeKind::kRegistered})) return hipSuccess;
  return fail(hipErrorHostMemoryNotRegistered, "hipHostUnregister: " + hex(address(p)) + " was not registered");
}
MI350_HIP hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned) {
  Range r;
  if (device == nullptr) return fail(hipErrorInvalidValue, "hipHostGetDevicePointer: null pointer");
  if (!AllocationMap::get().find(address(host), &r)) {
    return fail(hipErrorInvalidValue,
                "hipHostGetDevicePointer: " + hex(address(host)) + " is not pinned or registered");
  }
  *device = host;
  return hipSuccess;
}

MI350_HIP hipError_t hipHostGetFlags(unsigned* flags, void* host) {
  Range r;
  if (flags == nullptr) return fail(hipErrorInvalidValue, "hipHostGetFlags: null pointer");
  if (!AllocationMap::get().find(address(host), &r) ||
      (r.kind != RangeKind::kHost && r.kind != RangeKind::kRegistered))
    return fail(hipErrorInvalidValue, "hipHostGetFlags: " + hex(address(host)) + " is not pinned or registered");
  *flags = 0;
  return hipSuccess;
}

MI350_HIP hipError_t hipMemcpy(void* dst, const void* src, size_t bytes, int kind) {
  return copy(dst, src, bytes, kind, "hipMemcpy");
}
MI350_HIP hipError_t hipMemcpyAsync(void* dst, const void* src, size_t bytes, int kind, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMemcpyAsync")) return e;
  return copy(dst, src, bytes, kind, "hipMemcpyAsync");
}
MI350_HIP hipError_t hipMemcpyWithStream(void* dst, const void* src, size_t bytes, int kind, void* stream) {
  return hipMemcpyAsync(dst, src, bytes, kind, stream);
}
MI350_HIP hipError_t hipMemcpyHtoD(void* dst, void* src, size_t bytes) {
  return copy(dst, src, bytes, kHostToDevice, "hipMemcpyHtoD");
}
MI350_HIP hipError_t hipMemcpyDtoH(void* dst, void* src, size_t bytes) {
  return copy(dst, src, bytes, kDeviceToHost, "hipMemcpyDtoH");
}
MI350_HIP hipError_t hipMemcpyDtoD(void* dst, void* src, size_t bytes) {
  return copy(dst, src, bytes, kDeviceToDevice, "hipMemcpyDtoD");
}
MI350_HIP hipError_t hipMemcpyHtoDAsync(void* dst, void* src, size_t bytes, void* stream) {
  return hipMemcpyAsync(dst, src, bytes, kHostToDevice, stream);
}
MI350_HIP hipError_t hipMemcpyDtoHAsync(void* dst, void* src, size_t bytes, void* stream) {
  return hipMemcpyAsync(dst, src, bytes, kDeviceToHost, stream);
}
MI350_HIP hipError_t hipMemcpyDtoDAsync(void* dst, void* src, size_t bytes, void* stream) {
  return hipMemcpyAsync(dst, src, bytes, kDeviceToDevice, stream);
}
MI350_HIP hipError_t hipMemcpyPeer(void* dst, int to, const void* src, int from, size_t bytes) {
  return copy_between(dst, to, src, from, bytes, "hipMemcpyPeer");
}
MI350_HIP hipError_t hipMemcpyPeerAsync(void* dst, int to, const void* src, int from, size_t bytes, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMemcpyPeerAsync")) return e;
  return copy_between(dst, to, src, from, bytes, "hipMemcpyPeerAsync");
}
MI350_HIP hipError_t hipMemset(void* dst, int value, size_t bytes) {
  return fill<uint8_t>(dst, static_cast<uint8_t>(value), bytes, "hipMemset");
}
MI350_HIP hipError_t hipMemsetAsync(void* dst, int value, size_t bytes, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMemsetAsync")) return e;
  return fill<uint8_t>(dst, static_cast<uint8_t>(value), bytes, "hipMemsetAsync");
}
MI350_HIP hipError_t hipMemsetD8(void* dst, unsigned char value, size_t count) {
  return fill<uint8_t>(dst, value, count, "hipMemsetD8");
}
MI350_HIP hipError_t hipMemsetD16(void* dst, unsigned short value, size_t count) {
  return fill<uint16_t>(dst, value, count, "hipMemsetD16");
}
MI350_HIP hipError_t hipMemsetD32(void* dst, int value, size_t count) {
  return fill<uint32_t>(dst, static_cast<uint32_t>(value), count, "hipMemsetD32");
}
MI350_HIP hipError_t hipMemsetD8Async(void* dst, unsigned char value, size_t count, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMemsetD8Async")) return e;
  return hipMemsetD8(dst, value, count);
}
MI350_HIP hipError_t hipMemsetD16Async(void* dst, unsigned short value, size_t count, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMemsetD16Async")) return e;
  return hipMemsetD16(dst, value, count);
}
MI350_HIP hipError_t hipMemsetD32Async(void* dst, int value, size_t count, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMemsetD32Async")) return e;
  return hipMemsetD32(dst, value, count);
}

MI350_HIP hipError_t hipPointerGetAttributes(hipPointerAttribute_t* out, const void* p) {
  Range r;
  if (out == nullptr || p == nullptr) return fail(hipErrorInvalidValue, "hipPointerGetAttributes: null pointer");
  std::memset(out, 0, sizeof *out);
  if (!AllocationMap::get().find(address(p), &r)) {  // unregistered host memory is an answer, not an error
    out->device = -2;
    return hipSuccess;
  }
  const bool host = r.kind == RangeKind::kHost || r.kind == RangeKind::kRegistered;
  out->isManaged = r.kind == RangeKind::kManaged;
  out->type = out->isManaged ? 3 : host ? 1 : 2;
  out->device = r.device;
  out->devicePointer = const_cast<void*>(p);
  out->hostPointer = host || out->isManaged ? const_cast<void*>(p) : nullptr;
  return hipSuccess;
}
MI350_HIP hipError_t hipPointerGetAttribute(void* out, int attribute, void* p) {
  enum {
    kMemoryType = 2,
    kDevicePointer = 3,
    kHostPointer = 4,
    kBufferId = 7,
    kIsManaged = 8,
    kOrdinal = 9,
    kStart = 11,
    kSize = 12,
    kMapped = 13
  };
  Range r;
  if (out == nullptr) return fail(hipErrorInvalidValue, "hipPointerGetAttribute: null pointer");
  if (!AllocationMap::get().find(address(p), &r)) {
    return fail(hipErrorInvalidValue,
                "hipPointerGetAttribute: " + hex(address(p)) + " is not device, pinned or registered memory");
  }
  const bool host = r.kind == RangeKind::kHost || r.kind == RangeKind::kRegistered;
  switch (attribute) {
    case kMemoryType:
      *static_cast<unsigned*>(out) = r.kind == RangeKind::kManaged ? 3 : host ? 1 : 2;
      return hipSuccess;
    case kDevicePointer: *static_cast<void**>(out) = p; return hipSuccess;
    case kHostPointer: *static_cast<void**>(out) = host ? p : nullptr; return hipSuccess;
    case kBufferId: *static_cast<uint64_t*>(out) = r.lo; return hipSuccess;
    case kIsManaged: *static_cast<bool*>(out) = r.kind == RangeKind::kManaged; return hipSuccess;
    case kOrdinal: *static_cast<int*>(out) = r.device; return hipSuccess;
    case kStart: *static_cast<uint64_t*>(out) = r.lo; return hipSuccess;
    case kSize: *static_cast<size_t*>(out) = r.hi - r.lo; return hipSuccess;
    case kMapped: *static_cast<bool*>(out) = true; return hipSuccess;
    default: return fail(hipErrorNotSupported, "hipPointerGetAttribute: attribute " + std::to_string(attribute));
  }
}
MI350_HIP hipError_t hipMemGetAddressRange(void** base, size_t* bytes, void* p) {
  Range r;
  if (!AllocationMap::get().find(address(p), &r))
    return fail(hipErrorNotFound, "hipMemGetAddressRange: " + hex(address(p)) + " is in no allocation");
  if (base != nullptr) *base = reinterpret_cast<void*>(r.lo);
  if (bytes != nullptr) *bytes = r.hi - r.lo;
  return hipSuccess;
}

}  // namespace mi350::emu
