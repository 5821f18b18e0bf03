// Matrix instructions: d = a * b + d, one overload per element type; the name gives M x N.
// Lane l holds row (a) or column (b) l % M, and k in ascending chunks of 16 bytes by l / M.
// 32x32: register r of lane l holds row 8 * (r / 4) + 4 * (l / 32) + r % 4, column l % 32.
// 16x16: register r of lane l holds row 4 * (l / 16) + r, column l % 16.
#pragma once
#include "types.h"

namespace mi350 {

// k = 16
MI350_DEVICE F32x16 mfma_32x32(Bf16x8 a, Bf16x8 b, F32x16 d) {
  return __builtin_amdgcn_mfma_f32_32x32x16_bf16(a, b, d, 0, 0, 0);
}
MI350_DEVICE F32x16 mfma_32x32(F16x8 a, F16x8 b, F32x16 d) {
  return __builtin_amdgcn_mfma_f32_32x32x16_f16(a, b, d, 0, 0, 0);
}
// k = 32
MI350_DEVICE F32x4 mfma_16x16(Bf16x8 a, Bf16x8 b, F32x4 d) {
  return __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, d, 0, 0, 0);
}
MI350_DEVICE F32x4 mfma_16x16(F16x8 a, F16x8 b, F32x4 d) {
  return __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, d, 0, 0, 0);
}

// Four instructions of k = 2 (32x32) or 4 (16x16): element e of every lane group is one step, so the
// order of k differs from memory order, equally in a and b. Those of 16x16 make two sums
// of 8 k, which go into d at the end: fewer roundings in a row, and shorter waits. (Four sums: registers spill
// where a gather holds its k tile in them.)
MI350_DEVICE F32x16 mfma_32x32(F32x4 a, F32x4 b, F32x16 d) {
#pragma unroll
  for (int e = 0; e < 4; ++e) d = __builtin_amdgcn_mfma_f32_32x32x2f32(a[e], b[e], d, 0, 0, 0);
  return d;
}
MI350_DEVICE F32x4 mfma_16x16(F32x4 a, F32x4 b, F32x4 d) {
  F32x4 even{}, odd{};
#pragma unroll
  for (int e = 0; e < 4; e += 2) {
    even = __builtin_amdgcn_mfma_f32_16x16x4f32(a[e], b[e], even, 0, 0, 0);
    odd = __builtin_amdgcn_mfma_f32_16x16x4f32(a[e + 1], b[e + 1], odd, 0, 0, 0);
  }
  return d + (even + odd);
}

// Block-scaled FP8 E4M3 (OCP): k = 64, one E8M0 scale byte per row and 32 k, in byte 0 of lane
// row + 32 * (k / 32). A lane's 32 bytes are k = 16 * (l / 32) + 0..15, then 32 more.
MI350_DEVICE F32x16 mfma_scale_32x32_fp8(I32x8 a, int scale_a, I32x8 b, int scale_b, F32x16 d) {
  return __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(a, b, d, 0, 0, 0, scale_a, 0, scale_b);
}

}  // namespace mi350
