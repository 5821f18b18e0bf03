// Arithmetic as clang compiles it, one result array per expression: what the handlers do together in the
// sequences for division, square root, 64-bit integers, conversions and packed halves.
#include "device.h"

typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef float float2 __attribute__((ext_vector_type(2)));

#define RESULT(e) out[(k++) * n + i] = (e);

KERNEL float_arithmetic(const float* a, const float* b, float* out, u32 n) {
  const u32 i = index_x();
  if (i >= n) return;
  const float x = a[i], y = b[i];
  const float2 p = float2{x, y} * float2{y, y} + float2{y, x};
  const half2 h = half2{(_Float16)x, (_Float16)y} + half2{(_Float16)y, (_Float16)y};
  u32 k = 0;
  RESULT(x / y)
  RESULT(__builtin_sqrtf(x))
  RESULT(__builtin_floorf(x))
  RESULT(__builtin_rintf(x))
  RESULT(__builtin_truncf(y))
  RESULT(__builtin_fminf(x, y))
  RESULT(__builtin_fmaxf(x, y))
  RESULT(__builtin_fmaf(x, y, x))
  RESULT((float)(_Float16)x)
  RESULT((float)(__bf16)x)
  RESULT((float)((double)x / (double)y))
  RESULT((float)((_Float16)x / (_Float16)y))
  RESULT(x < y ? x : -y)
  RESULT(__builtin_ldexpf(x, -3))
  RESULT(__builtin_copysignf(x, y))
  RESULT((float)__builtin_sqrt(__builtin_fabs((double)x)))
  RESULT(p.x)
  RESULT(p.y)
  RESULT((float)h.x)
  RESULT((float)h.y)
}

KERNEL integer_arithmetic(const u32* a, const u32* b, u32* out, u32 n) {
  const u32 i = index_x();
  if (i >= n) return;
  const u32 x = a[i], y = b[i];
  const int sx = (int)x, sy = (int)y;
  const u64 w = (u64)x << 32 | y, v = (u64)y << 32 | x * 7u;
  u32 k = 0;
  RESULT(x / (y | 1))
  RESULT(x % (y | 1))
  RESULT((u32)(sx / (sy | 1)))
  RESULT((u32)(sx % (sy | 1)))
  RESULT((u32)__builtin_popcount(x))
  RESULT((u32)__builtin_clz(x | 1))
  RESULT((u32)__builtin_ctz(x | 0x80000000u))
  RESULT((u32)(w / (v | 1)))
  RESULT((u32)(w % (v | 1)))
  RESULT((u32)(w * v >> 32))
  RESULT((u32)((long long)w >> (y & 63)))
  RESULT((u32)(w << (y & 63) >> 32))
  RESULT(__builtin_bswap32(x))
  RESULT(x << 7 | x >> 25)
  RESULT((u32)((short)x * (short)y))
  RESULT((u16)(x + y))
  RESULT((u32)(sx < sy ? sx : sy))
  RESULT((u32)((long long)sx * sy >> 32))
  RESULT((u32)((w - v) >> 32))
  RESULT((u32)((long long)w < (long long)v))
  RESULT((u32)((signed char)x + (signed char)(x >> 16)))
  RESULT((u32)((long long)(float)sx))
  RESULT((u32)(u64)(float)x)
}
