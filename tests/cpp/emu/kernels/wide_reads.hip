// Transpose reads of every width, one wave: rows of `stride` bytes per lane, the result registers as they come.
#include "device.h"

typedef __attribute__((address_space(3))) u8* LdsBytes;

#define FILL(stride)                                                                \
  __shared__ __attribute__((aligned(16))) u8 tile[64 * stride];                     \
  for (u32 n = 0; n < stride; ++n) tile[lane_x() * stride + n] = in[lane_x() * stride + n]; \
  barrier();                                                                        \
  const u32 at = (u32)(u64)(LdsBytes)tile + lane_x() * stride

#define READ(name, mnemonic, stride, type, dwords)                                  \
  KERNEL name(u32* out, const u8* in) {                                             \
    FILL(stride);                                                                   \
    type v;                                                                         \
    asm volatile(mnemonic " %0, %1\n s_waitcnt lgkmcnt(0)" : "=v"(v) : "v"(at));    \
    for (u32 d = 0; d < dwords; ++d) out[lane_x() * dwords + d] = v[d];             \
  }

typedef u32 u32x3 __attribute__((ext_vector_type(3)));
READ(tr_b16, "ds_read_b64_tr_b16", 8, u32x2, 2)
READ(tr_b8, "ds_read_b64_tr_b8", 8, u32x2, 2)
READ(tr_b4, "ds_read_b64_tr_b4", 8, u32x2, 2)
READ(tr_b6, "ds_read_b96_tr_b6", 16, u32x3, 3)
READ(b64, "ds_read_b64", 8, u32x2, 2)
READ(b96, "ds_read_b96", 16, u32x3, 3)
READ(b128, "ds_read_b128", 16, u32x4, 4)

// Misaligned by 4: an error.
KERNEL tr_misaligned(u32* out, const u8* in) {
  FILL(8);
  u32x2 v;
  asm volatile("ds_read_b64_tr_b16 %0, %1 offset:4\n s_waitcnt lgkmcnt(0)" : "=v"(v) : "v"(at));
  out[lane_x()] = v[0];
}

// LDS of 512 bytes: lane l reads 8 bytes at 16 l and writes there; beyond the end reads give 0, writes vanish.
KERNEL lds_bounds(u32* out) {
  __shared__ __attribute__((aligned(16))) u32 tile[128];
  for (u32 n = lane_x(); n < 128; n += 64) tile[n] = n + 1;
  barrier();
  const u32 at = (u32)(u64)(LdsBytes)(u8*)tile + lane_x() * 16;
  u32x2 v;
  asm volatile("ds_read_b64 %0, %1\n s_waitcnt lgkmcnt(0)\n ds_write_b64 %1, %0 offset:8\n s_waitcnt lgkmcnt(0)" : "=&v"(v) : "v"(at) : "memory");
  out[lane_x() * 2] = v[0];
  out[lane_x() * 2 + 1] = v[1];
}
