// Kernels that end: arguments, ids, LDS, barriers, scratch, atomics, buffer and LDS-load forms.
#include "device.h"

KERNEL copy_dwords(u32* out, const u32* in, u32 n) {
  if (index_x() < n) out[index_x()] = in[index_x()];
}
KERNEL copy_wide(u32x4* out, const u32x4* in, u32 n) {
  if (index_x() < n) out[index_x()] = in[index_x()];
}
KERNEL scale_add(float* y, const float* x, float a, u8 flag, u64 n) {
  if (index_x() < n) y[index_x()] += flag ? a * x[index_x()] : 0.0f;
}

// One row of seven words per work-item: three ids, three group ids, linear local id.
KERNEL ids(u32* out) {
  const u32 x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y(), z = __builtin_amdgcn_workitem_id_z();
  const u32 gx = __builtin_amdgcn_workgroup_id_x(), gy = __builtin_amdgcn_workgroup_id_y(), gz = __builtin_amdgcn_workgroup_id_z();
  const u32 bx = __builtin_amdgcn_workgroup_size_x(), by = __builtin_amdgcn_workgroup_size_y(), bz = __builtin_amdgcn_workgroup_size_z();
  const u32 nx = __builtin_amdgcn_grid_size_x() / bx, ny = __builtin_amdgcn_grid_size_y() / by;
  const u32 local = x + bx * (y + by * z);
  const u32 at = ((gz * ny + gy) * nx + gx) * bx * by * bz + local;
  const u32 row[7] = {x, y, z, gx, gy, gz, local};
  for (int n = 0; n < 7; ++n) out[7 * at + n] = row[n];
}

// The first hidden arguments: block counts, group sizes and remainders.
KERNEL hidden(u32* out) {
  const auto* p = (const u32 __attribute__((address_space(4)))*)__builtin_amdgcn_implicitarg_ptr();
  if (lane_x() < 6) out[lane_x()] = p[lane_x()];
}

KERNEL transpose(u32* out, const u32* in) {  // 32 x 32, 256 work-items
  __shared__ u32 tile[32][33];
  for (u32 n = lane_x(); n < 1024; n += 256) tile[n / 32][n % 32] = in[n];
  barrier();
  for (u32 n = lane_x(); n < 1024; n += 256) out[n] = tile[n % 32][n / 32];
}

extern __shared__ u32 dynamic[];
KERNEL reverse_dynamic(u32* out, const u32* in, u32 n) {  // n dwords of dynamic LDS
  for (u32 i = lane_x(); i < n; i += size_x()) dynamic[i] = in[i];
  barrier();
  for (u32 i = lane_x(); i < n; i += size_x()) out[i] = dynamic[n - 1 - i];
}

// Waves meet at barriers of different pcs; wave 3 ends early.
KERNEL barriers_at_different_pcs(u32* out) {
  __shared__ u32 turn[4];
  const u32 wave = __builtin_amdgcn_readfirstlane(lane_x() / 64);
  if (wave == 3) return;
  for (u32 n = 0; n < 5; ++n) {
    if (wave == 0) {
      turn[0] = n + 1;
      barrier();
    } else {
      turn[wave] = 10 * wave + n;
      barrier();
    }
    if (lane_x() % 64 == 0) out[4 * n + wave] = turn[0] * 100 + turn[(wave + 1) % 3];
    barrier();
  }
}

__attribute__((noinline)) __device__ u32 pick(const u32* table, u32 n) { return table[n]; }
KERNEL scratch(u32* out, u32 n) {
  u32 table[64];
  for (u32 i = 0; i < 64; ++i) table[i] = i * i + lane_x();
  table[n & 63] += 1000;
  out[index_x()] = pick(table, (lane_x() + n) & 63);
}

KERNEL count(u32* counters, float* sum, u64* wide) {
  __hip_atomic_fetch_add(counters + lane_x() % 4, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(wide, 3ull, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __builtin_amdgcn_global_atomic_fadd_f32((float __attribute__((address_space(1)))*)sum, 0.5f);
}

__device__ u32 variable = 41;
KERNEL bump(u32* out) {
  if (lane_x() == 0) out[0] = ++variable;
}

// Work-item i loads 16 bytes at 16 i + shift through a descriptor of `bytes` bytes.
KERNEL buffer_load(u32x4* out, u32* in, u32 bytes, u32 shift) {
  __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, bytes, 0x00027000);
  out[lane_x()] = __builtin_amdgcn_raw_buffer_load_b128(r, lane_x() * 16 + shift, 0, 0);
}
// A stride alone does not make a buffer structured: without an index num_records are bytes.
KERNEL buffer_load_stride(u32x4* out, u32* in, u32 bytes) {
  __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 4, bytes, 0x00020000);
  out[lane_x()] = __builtin_amdgcn_raw_buffer_load_b128(r, lane_x() * 16, 0, 0);
}
KERNEL buffer_load_soffset(u32x4* out, u32* in, u32 bytes, u32 soffset) {
  __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, bytes, 0x00027000);
  out[lane_x()] = __builtin_amdgcn_raw_buffer_load_b128(r, lane_x() * 16, soffset, 0);
}
KERNEL buffer_store(u32* data, u32 bytes) {
  __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(data, 0, bytes, 0x00027000);
  const u32 n = lane_x() * 4;
  __builtin_amdgcn_raw_buffer_store_b128(u32x4{n, n + 1, n + 2, n + 3}, r, lane_x() * 16, 0, 0);
}

typedef __attribute__((address_space(3))) void* LdsPointer;
KERNEL buffer_load_lds(u32* out, u32* in, u32 bytes) {
  __shared__ u32 tile[320];
  tile[lane_x() + 256] = 7;
  tile[lane_x()] = 7;
  __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, bytes, 0x00027000);
  __builtin_amdgcn_raw_ptr_buffer_load_lds(r, (LdsPointer)tile, 16, lane_x() * 16, 0, 0, 0);
  __builtin_amdgcn_s_waitcnt(0);
  barrier();
  for (u32 n = lane_x(); n < 320; n += 64) out[n] = tile[n];
}
KERNEL global_load_lds(u32* out, u32* in) {
  __shared__ u32 tile[64];
  __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)(in + 63 - lane_x()), (LdsPointer)tile, 4, 0, 0);
  __builtin_amdgcn_s_waitcnt(0);
  barrier();
  out[lane_x()] = tile[lane_x()];
}

// One wave: 16 rows of 4 elements per group of 16 lanes.
KERNEL transpose_read(u16* out, const u16* in) {
  __shared__ __attribute__((aligned(16))) u16 tile[256];
  for (u32 n = 0; n < 4; ++n) tile[lane_x() * 4 + n] = in[lane_x() * 4 + n];
  barrier();
  const s16x4 v = __builtin_amdgcn_ds_read_tr16_b64_v4i16((__attribute__((address_space(3))) s16x4*)(tile + lane_x() * 4));
  for (u32 n = 0; n < 4; ++n) out[lane_x() * 4 + n] = (u16)v[n];
}

KERNEL lane_moves(u32* out) {
  const u32 x = lane_x() * 3 + 1;
  out[lane_x()] = __builtin_amdgcn_ds_bpermute(((lane_x() + 5) % 64) * 4, x);
  out[64 + lane_x()] = __builtin_amdgcn_ds_permute(((lane_x() + 5) % 64) * 4, x);
  out[128 + lane_x()] = __builtin_amdgcn_ds_swizzle(x, 0x041f);  // xor 1
  out[192 + lane_x()] = __builtin_amdgcn_ds_swizzle(x, 0x801b);  // quad reversed
}

KERNEL narrow(u8* bytes, short* words, u32* out) {
  const u32 n = lane_x();
  out[n] = bytes[n] + (u32)(int)words[n];
  bytes[n] = (u8)(n + 1);
  words[n] = (short)-(int)n;
}

KERNEL clocks(u64* out, u32* xcc) {
  const u64 a = __builtin_readcyclecounter();
  u32 id;
  asm volatile("s_getreg_b32 %0, hwreg(HW_REG_XCC_ID)" : "=s"(id));
  const u64 b = __builtin_readcyclecounter();
  if (lane_x() == 0) {
    out[2 * group_x()] = a;
    out[2 * group_x() + 1] = b;
    xcc[group_x()] = id;
  }
}

// Wave 0 overwrites what wave 1 reads, 200 instructions later and with no barrier between.
KERNEL late_overwrite(u32* out) {
  __shared__ u32 words[128];
  words[lane_x()] = 1;
  barrier();
  if (lane_x() < 64) {
    asm volatile(".rept 200\ns_nop 0\n.endr" ::: "memory");
    words[lane_x() + 64] = 2;
  } else {
    out[lane_x() - 64] = words[lane_x()];
  }
}
