// Decode goldens: integer, float, half, bfloat16, double and packed arithmetic, division, conversions.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef short short2v __attribute__((ext_vector_type(2)));
typedef __bf16 bf16x2 __attribute__((ext_vector_type(2)));

static __device__ unsigned lane() { return __builtin_amdgcn_workitem_id_x(); }

extern "C" __global__ void integers(int* o, const int* a, const unsigned* b, const long* c, int n) {
  unsigned t = lane();
  int x = a[t], y = a[t + 64];
  unsigned u = b[t], v = b[t + 64];
  long p = c[t], q = c[t + 64];
  o[t * 32 + 0] = x / y; o[t * 32 + 1] = x % n; o[t * 32 + 2] = (int)(u / v); o[t * 32 + 3] = (int)(u % 7u);
  o[t * 32 + 4] = x * y + n; o[t * 32 + 5] = (int)((p * q) >> 32); o[t * 32 + 6] = (int)(p / (q | 1));
  o[t * 32 + 7] = __builtin_popcount(u) + __builtin_clz(v | 1) + __builtin_ctz(u | 4); o[t * 32 + 8] = (x << (y & 31)) ^ (x >> 3);
  o[t * 32 + 9] = (int)__builtin_bitreverse32(u); o[t * 32 + 10] = (int)__builtin_bswap32(v);
  o[t * 32 + 11] = x > y ? x : y; o[t * 32 + 12] = (u < v ? u : v) + (x < 3 ? 3 : x > 90 ? 90 : x);
  o[t * 32 + 13] = (int)(p << (q & 63)); o[t * 32 + 14] = (int)((unsigned long)p >> 13); o[t * 32 + 15] = (int)(p + q * 3);
  o[t * 32 + 16] = (short)x * (short)y + (signed char)x; o[t * 32 + 17] = (int)((u & 0xffffff) * (v & 0xffffff));
  o[t * 32 + 18] = (x & ~y) | (n ^ x) | 0x12345; o[t * 32 + 19] = (int)((u >> 5) & 0x3f); o[t * 32 + 20] = (x << 7) >> 25;
  o[t * 32 + 21] = (u << 3) + v + 1; o[t * 32 + 22] = __builtin_amdgcn_perm(u, v, 0x03010200); o[t * 32 + 23] = __builtin_amdgcn_alignbyte(u, v, 2);
  o[t * 32 + 24] = __builtin_amdgcn_sad_u8(u, v, 3); o[t * 32 + 25] = __builtin_amdgcn_ubfe(u, 3, v); o[t * 32 + 26] = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

extern "C" __global__ void floats(float* o, const float* a, double* d, const double* e) {
  unsigned t = lane();
  float x = a[t], y = a[t + 64], z = a[t + 128];
  double p = e[t], q = e[t + 64];
  o[t * 24 + 0] = x / y; o[t * 24 + 1] = __builtin_sqrtf(x); o[t * 24 + 2] = __builtin_fmaf(x, y, z); o[t * 24 + 3] = -x * __builtin_fabsf(y) + 2.0f;
  o[t * 24 + 4] = __builtin_floorf(x) + __builtin_ceilf(y) + __builtin_truncf(z) + __builtin_rintf(x); o[t * 24 + 5] = __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f);
  o[t * 24 + 6] = (float)(int)x + (float)(unsigned)y; o[t * 24 + 7] = (float)p; o[t * 24 + 8] = __builtin_amdgcn_exp2f(x) + __builtin_amdgcn_logf(y);
  o[t * 24 + 9] = __builtin_amdgcn_rcpf(x) * __builtin_amdgcn_rsqf(y); o[t * 24 + 10] = __builtin_amdgcn_sinf(x) + __builtin_amdgcn_cosf(y);
  o[t * 24 + 11] = __builtin_ldexpf(x, (int)y); o[t * 24 + 12] = __builtin_amdgcn_fmed3f(x, y, z); o[t * 24 + 13] = x * 0.15915494f + 1.0e30f;
  o[t * 24 + 14] = __builtin_isnan(x) ? 1.0f : __builtin_isinf(y) ? 2.0f : z; o[t * 24 + 15] = __builtin_copysignf(x, y); o[t * 24 + 16] = (float)(long)x;
  o[t * 24 + 17] = __builtin_amdgcn_fractf(x) + (float)(unsigned char)(int)y; o[t * 24 + 18] = __builtin_amdgcn_frexp_mantf(x) + (float)__builtin_amdgcn_frexp_expf(y);
  d[t * 12 + 0] = p / q; d[t * 12 + 1] = __builtin_fma(p, q, 0.5); d[t * 12 + 2] = p * q + p - 3.0; d[t * 12 + 3] = __builtin_sqrt(p);
  d[t * 12 + 4] = __builtin_floor(p) + __builtin_trunc(q); d[t * 12 + 5] = (double)(int)x + (double)(long)q; d[t * 12 + 6] = __builtin_fmax(p, q); d[t * 12 + 7] = __builtin_ldexp(p, 3);
  d[t * 12 + 8] = p < q ? p : (double)y; d[t * 12 + 9] = __builtin_fabs(p) * -q;
}

extern "C" __global__ void halves(half2* o, const half2* a, float2* f, const float2* g, short2v* s, const short2v* r, bf16x2* w, const bf16x2* m) {
  unsigned t = lane();
  half2 x = a[t], y = a[t + 64];
  o[t * 12 + 0] = x + y; o[t * 12 + 1] = x * y; o[t * 12 + 2] = x * y + a[t + 128]; o[t * 12 + 3] = -x; o[t * 12 + 4] = (half2){x.y, y.x};
  o[t * 12 + 5] = (half2){x.x / y.y, (_Float16)__builtin_sqrtf((float)x.y)}; o[t * 12 + 6] = __builtin_elementwise_max(x, y); o[t * 12 + 7] = (half2){(_Float16)((float)x.x * (float)y.x + 1.0f), (_Float16)(short)y.y};
  o[t * 12 + 8] = __builtin_elementwise_min(x, y) * (half2){0.5f, 2.0f}; o[t * 12 + 9] = (half2){x.x > y.x ? x.x : (_Float16)4.0f, __builtin_elementwise_floor(x.y)};
  float2 p = g[t], q = g[t + 64];
  f[t * 4 + 0] = p * q; f[t * 4 + 1] = p + q; f[t * 4 + 2] = __builtin_elementwise_fma(p, q, g[t + 128]); f[t * 4 + 3] = p * (float2){2.0f, 2.0f};
  short2v i = r[t], j = r[t + 64];
  s[t * 8 + 0] = i + j; s[t * 8 + 1] = i * j; s[t * 8 + 2] = i << j; s[t * 8 + 3] = i >> (j & 15); s[t * 8 + 4] = __builtin_elementwise_max(i, j); s[t * 8 + 5] = i - j; s[t * 8 + 6] = i * j + i;
  w[t * 2 + 0] = (bf16x2){(__bf16)p.x, (__bf16)p.y}; w[t * 2 + 1] = m[t] * m[t + 64] + m[t + 128];
}
