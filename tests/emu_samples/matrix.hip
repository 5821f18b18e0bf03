// Decode goldens: MFMA of every type, scaled MFMA, SMFMAC and the conversions around them.
#define __global__ __attribute__((global))
typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
typedef _Float16 h16x4 __attribute__((ext_vector_type(4)));
typedef _Float16 h16x8 __attribute__((ext_vector_type(8)));
typedef float f32x2 __attribute__((ext_vector_type(2)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef double f64x4 __attribute__((ext_vector_type(4)));
typedef int i32x4 __attribute__((ext_vector_type(4)));
typedef int i32x8 __attribute__((ext_vector_type(8)));

extern "C" __global__ void matrix(f32x4* o, f32x16* w, const bf16x8* a, const h16x8* h, const h16x4* k, const i32x8* f, i32x4* i, f64x4* d, const long* b, const float* s) {
  unsigned t = __builtin_amdgcn_workitem_id_x();
  f32x4 c = o[t];
  f32x16 g = w[t];
  c = __builtin_amdgcn_mfma_f32_16x16x32_bf16(a[t], a[t + 64], c, 0, 0, 0); c = __builtin_amdgcn_mfma_f32_16x16x32_f16(h[t], h[t + 64], c, 0, 0, 0);
  g = __builtin_amdgcn_mfma_f32_32x32x16_bf16(a[t], a[t + 64], g, 0, 0, 0); c = __builtin_amdgcn_mfma_f32_16x16x16f16(k[t], k[t + 64], c, 0, 0, 0);
  c = __builtin_amdgcn_mfma_f32_16x16x4f32(s[t], s[t + 64], c, 0, 0, 0); c = __builtin_amdgcn_mfma_f32_4x4x4f16(k[t], k[t + 64], c, 2, 1, 4);
  c = __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(b[t], b[t + 64], c, 0, 0, 0);
  c = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(f[t], f[t + 64], c, 4, 4, 0, (int)b[t], 0, (int)b[t + 64]); c = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(f[t], f[t + 64], c, 0, 2, 3, (int)b[t], 1, (int)b[t + 64]);
  g = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(f[t], f[t + 64], g, 1, 4, 2, (int)b[t], 0, (int)b[t + 64]);
  c = __builtin_amdgcn_smfmac_f32_16x16x64_bf16(a[t], __builtin_bit_cast(__attribute__((ext_vector_type(16))) __bf16, f[t]), c, (int)b[t], 0, 1);
  i[t] = __builtin_amdgcn_mfma_i32_16x16x64_i8(i[t], i[t + 64], i[t + 128], 0, 0, 0); d[t] = __builtin_amdgcn_mfma_f64_16x16x4f64((double)b[t], (double)b[t + 64], d[t], 0, 0, 0);
  int packed = __builtin_amdgcn_cvt_pk_fp8_f32(s[t], s[t + 64], 0, false); packed = __builtin_amdgcn_cvt_pk_bf8_f32(s[t], s[t + 64], packed, true);
  packed = (int)__builtin_amdgcn_cvt_scalef32_pk_fp4_f32((unsigned)packed, s[t], s[t + 1], s[t + 2], 1);
  f32x2 wide = __builtin_amdgcn_cvt_pk_f32_fp8(packed, true); f32x2 four = __builtin_amdgcn_cvt_scalef32_pk_f32_fp4((unsigned)packed, s[t], 2);
  i[t + 64].x = packed + (int)(wide.x + four.y + __builtin_amdgcn_cvt_f32_fp8(packed, 2));
  o[t] = c;
  w[t] = g;
}
