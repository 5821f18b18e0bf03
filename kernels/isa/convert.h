// Conversions between float and the 16-bit types, and lane exchanges of packed results.
#pragma once
#include "types.h"

namespace mi350 {

MI350_DEVICE float to_f32(Bf16, uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}
MI350_DEVICE float to_f32(F16, uint16_t bits) { return static_cast<float>(__builtin_bit_cast(F16, bits)); }

// Round to nearest even; fp16 overflows to infinity.
MI350_DEVICE U32x2 pack4(Bf16, F32x4 v) { return __builtin_bit_cast(U32x2, __builtin_convertvector(v, Bf16x4)); }
MI350_DEVICE U32x2 pack4(F16, F32x4 v) { return __builtin_bit_cast(U32x2, __builtin_convertvector(v, F16x4)); }

MI350_DEVICE F32x4 unpack4(Bf16, U32x2 v) { return __builtin_convertvector(__builtin_bit_cast(Bf16x4, v), F32x4); }
MI350_DEVICE F32x4 unpack4(F16, U32x2 v) { return __builtin_convertvector(__builtin_bit_cast(F16x4, v), F32x4); }

// Lanes 32..63 of `low` trade places with lanes 0..31 of `high`.
MI350_DEVICE void permlane32_swap(uint32_t& low, uint32_t& high) {
  const auto pair = __builtin_amdgcn_permlane32_swap(low, high, false, false);
  low = pair[0];
  high = pair[1];
}

}  // namespace mi350
