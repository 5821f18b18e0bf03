// HIP's C functions: rows with a pitch, and hints about where memory should lie.
#include <cstdint>

#include "hip_types.h"
#include "memory.h"

MI350_HIP int hipMalloc(void** p, size_t bytes);
MI350_HIP int hipMemcpy(void* dst, const void* src, size_t bytes, int kind);
MI350_HIP int hipMemset(void* dst, int value, size_t bytes);

namespace mi350::emu {
namespace {

constexpr size_t kPitch = 256;

hipError_t check_pitch(size_t pitch, size_t width, const char* function) {
  if (pitch >= width) return hipSuccess;
  return fail(hipErrorInvalidPitchValue, std::string(function) + ": a pitch of " + std::to_string(pitch) +
                                                      " bytes is less than the row of " + std::to_string(width));
}

}  // namespace

MI350_HIP hipError_t hipMallocPitch(void** p, size_t* pitch, size_t width, size_t height) {
  if (p == nullptr || pitch == nullptr) return fail(hipErrorInvalidValue, "hipMallocPitch: null pointer");
  size_t bytes;
  if (width > SIZE_MAX - kPitch || __builtin_mul_overflow((width + kPitch - 1) / kPitch * kPitch, height, &bytes))
    return fail(hipErrorInvalidValue, "hipMallocPitch: too large");
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return hipMalloc(p, bytes);
}

MI350_HIP hipError_t hipMemcpy2D(void* dst, size_t to_pitch, const void* src, size_t from_pitch, size_t width,
                                 size_t height, int kind) {
  if (width == 0 || height == 0) return hipSuccess;
  if (hipError_t e = check_pitch(to_pitch, width, "hipMemcpy2D")) return e;
  if (hipError_t e = check_pitch(from_pitch, width, "hipMemcpy2D")) return e;
  for (size_t row = 0; row < height; ++row) {
    if (hipError_t e = hipMemcpy(static_cast<char*>(dst) + row * to_pitch,
                                 static_cast<const char*>(src) + row * from_pitch, width, kind))
      return e;
  }
  return hipSuccess;
}
MI350_HIP hipError_t hipMemcpy2DAsync(void* dst, size_t to_pitch, const void* src, size_t from_pitch, size_t width,
                                      size_t height, int kind, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMemcpy2DAsync")) return e;
  return hipMemcpy2D(dst, to_pitch, src, from_pitch, width, height, kind);
}
MI350_HIP hipError_t hipMemset2D(void* dst, size_t pitch, int value, size_t width, size_t height) {
  if (width == 0 || height == 0) return hipSuccess;
  if (hipError_t e = check_pitch(pitch, width, "hipMemset2D")) return e;
  for (size_t row = 0; row < height; ++row) {
    if (hipError_t e = hipMemset(static_cast<char*>(dst) + row * pitch, value, width)) return e;
  }
  return hipSuccess;
}
MI350_HIP hipError_t hipMemset2DAsync(void* dst, size_t pitch, int value, size_t width, size_t height, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMemset2DAsync")) return e;
  return hipMemset2D(dst, pitch, value, width, height);
}

// Hints: all memory is the host's.
MI350_HIP hipError_t hipMemAdvise(const void* p, size_t bytes, int, int) {
  Range r;
  if (bytes != 0 && AllocationMap::get().find(reinterpret_cast<uint64_t>(p), &r)) return hipSuccess;
  return fail(hipErrorInvalidValue, "hipMemAdvise: " + hex(reinterpret_cast<uint64_t>(p)) + " is in no allocation");
}
MI350_HIP hipError_t hipMemPrefetchAsync(const void* p, size_t bytes, int, void* stream) {
  if (hipError_t e = check_stream(stream, "hipMemPrefetchAsync")) return e;
  return hipMemAdvise(p, bytes, 0, 0);
}

}  // namespace mi350::emu
