// Faults on LDS, each with its corrected twin (kFixed): order between waves, loads to LDS in flight, bounds.
#include "device.h"

typedef __attribute__((address_space(3))) u32* LdsWords;

__device__ inline void write_lds(u32 at, u32 value) {
  asm volatile("ds_write_b32 %0, %1" ::"v"(at), "v"(value) : "memory");
}
__device__ inline u32 read_lds(u32 at) {
  u32 v;
  asm volatile("ds_read_b32 %0, %1\n s_waitcnt lgkmcnt(0)" : "=v"(v) : "v"(at) : "memory");
  return v;
}
// The wave's 64 dwords at `from` land at LDS offset `to`.
__device__ inline void load_to_lds(const u32* from, u32 to) {
  asm volatile("s_mov_b32 m0, %0\n s_nop 0\n global_load_lds_dword %1, off" ::"s"(to), "v"(from)
               : "memory");
}
__device__ inline void wait_lds() { asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory"); }
template <int kLeft> __device__ inline void wait_loads() { asm volatile("s_waitcnt vmcnt(%0)" ::"n"(kLeft) : "memory"); }
__device__ inline void bare_barrier() { asm volatile("s_barrier" ::: "memory"); }
__device__ inline u32 wave() { return __builtin_amdgcn_readfirstlane(lane_x() / 64); }
__device__ inline u32 offset_of(const u32* tile) { return (u32)(u64)(LdsWords)tile; }

#define PAIR(name, signature, arguments)                                  \
  template <bool kFixed> __device__ void name signature;                  \
  KERNEL name##_fault signature { name<false> arguments; }                \
  KERNEL name##_fixed signature { name<true> arguments; }                 \
  template <bool kFixed> __device__ void name signature

// Two waves: each reads what the other wrote.
PAIR(race, (u32* out), (out)) {
  __shared__ u32 tile[128];
  const u32 at = offset_of(tile) + 4 * lane_x();
  write_lds(at, lane_x() + 1);
  wait_lds();
  if (kFixed) bare_barrier();
  out[lane_x()] = read_lds(at ^ 256);
}
// The barrier orders only what was waited for.
PAIR(unwaited, (u32* out), (out)) {
  __shared__ u32 tile[128];
  const u32 at = offset_of(tile) + 4 * lane_x();
  write_lds(at, lane_x() + 1);
  if (kFixed) wait_lds();
  bare_barrier();
  out[lane_x()] = read_lds(at ^ 256);
}
// A word is overwritten while the other wave may still read it.
PAIR(overwrite, (u32* out), (out)) {
  __shared__ u32 tile[128];
  const u32 at = offset_of(tile) + 4 * lane_x();
  write_lds(at, lane_x() + 1);
  wait_lds();
  bare_barrier();
  const u32 v = read_lds(at ^ 256);
  if (kFixed) bare_barrier();
  write_lds(at, v);
  wait_lds();
  out[lane_x()] = v;
}
// Bytes of one dword written by two waves are no race; the fault is on one byte.
PAIR(bytes, (u32* out), (out)) {
  __shared__ u32 tile[64];
  const u32 at = offset_of(tile) + 4 * (lane_x() & 63) + (kFixed ? wave() : 0);
  asm volatile("ds_write_b8 %0, %1\n s_waitcnt lgkmcnt(0)" ::"v"(at), "v"(lane_x()) : "memory");
  bare_barrier();
  out[lane_x()] = read_lds(offset_of(tile) + 4 * (lane_x() & 63)) & 0xff;
}
// Sums by atomics of both waves need no order among each other, their reader does.
PAIR(sum, (u32* out), (out)) {
  __shared__ u32 tile[64];
  const u32 at = offset_of(tile) + 4 * (lane_x() & 63);
  if (wave() == 0) write_lds(at, 0);
  wait_lds();
  bare_barrier();
  asm volatile("ds_add_u32 %0, %1\n s_waitcnt lgkmcnt(0)" ::"v"(at), "v"(lane_x()) : "memory");
  if (kFixed) bare_barrier();
  out[lane_x()] = read_lds(at);
}
PAIR(bounds, (u32* out), (out)) {
  __shared__ u32 tile[64];
  const u32 at = offset_of(tile) + 4 * lane_x();
  write_lds(at, lane_x());
  wait_lds();
  out[lane_x()] = read_lds(kFixed ? at : at + 12);
}

// One wave reads its own load to LDS before the wait.
PAIR(dma_unwaited, (u32* out, const u32* in), (out, in)) {
  __shared__ u32 tile[64];
  load_to_lds(in + lane_x(), offset_of(tile));
  if (kFixed) wait_loads<0>();
  out[lane_x()] = read_lds(offset_of(tile) + 4 * lane_x());
  wait_loads<0>();
}
// A word is written while the wave's own load to it may still land.
PAIR(dma_own_write, (u32* out, const u32* in), (out, in)) {
  __shared__ u32 tile[64];
  const u32 at = offset_of(tile) + 4 * lane_x();
  load_to_lds(in + lane_x(), offset_of(tile));
  if (kFixed) wait_loads<0>();
  write_lds(at, lane_x());
  wait_lds();
  wait_loads<0>();
  out[lane_x()] = read_lds(at);
}
// Two loads to LDS, and a wait that lets the newer one fly on: only the older may be read.
PAIR(dma_short_wait, (u32* out, const u32* in), (out, in)) {
  __shared__ u32 tile[128];
  load_to_lds(in + lane_x(), offset_of(tile));
  load_to_lds(in + 64 + lane_x(), offset_of(tile) + 256);
  wait_loads<1>();
  out[lane_x()] = read_lds(offset_of(tile) + 4 * lane_x() + (kFixed ? 0 : 256));
  wait_loads<0>();
}
// Every wave waits for its own loads; without the barrier the other wave's may still fly.
PAIR(dma_no_barrier, (u32* out, const u32* in), (out, in)) {
  __shared__ u32 tile[128];
  load_to_lds(in + lane_x(), offset_of(tile) + 256 * wave());
  wait_loads<0>();
  if (kFixed) bare_barrier();
  out[lane_x()] = read_lds(offset_of(tile) + ((4 * lane_x()) ^ 256));
}
// The barrier comes, the wait only after it.
PAIR(dma_late_wait, (u32* out, const u32* in), (out, in)) {
  __shared__ u32 tile[128];
  load_to_lds(in + lane_x(), offset_of(tile) + 256 * wave());
  if (kFixed) wait_loads<0>();
  bare_barrier();
  out[lane_x()] = read_lds(offset_of(tile) + ((4 * lane_x()) ^ 256));
  wait_loads<0>();
}
// The next tile is loaded over words that the other wave may still read.
PAIR(dma_overwrite, (u32* out, const u32* in), (out, in)) {
  __shared__ u32 tile[128];
  const u32 base = offset_of(tile);
  load_to_lds(in + lane_x(), base + 256 * wave());
  wait_loads<0>();
  bare_barrier();
  const u32 v = read_lds(base + ((4 * lane_x()) ^ 256));
  if (kFixed) bare_barrier();
  load_to_lds(in + lane_x(), base + 256 * wave());
  wait_loads<0>();
  bare_barrier();
  out[lane_x()] = v + read_lds(base + ((4 * lane_x()) ^ 256));
}
// The read is issued before the barrier but waited for only after it.
PAIR(late_read, (u32* out, const u32* in), (out, in)) {
  __shared__ u32 tile[128];
  const u32 at = offset_of(tile) + 4 * lane_x();
  u32 v;
  write_lds(at, 3);
  wait_lds();
  bare_barrier();
  if (kFixed) asm volatile("ds_read_b32 %0, %1\n s_waitcnt lgkmcnt(0)\n s_barrier" : "=v"(v) : "v"(at ^ 256) : "memory");
  else asm volatile("ds_read_b32 %0, %1\n s_barrier" : "=v"(v) : "v"(at ^ 256) : "memory");
  load_to_lds(in + lane_x(), offset_of(tile) + 256 * wave());
  wait_lds();
  wait_loads<0>();
  out[lane_x()] = v;
}
PAIR(dma_at_end, (u32* out, const u32* in), (out, in)) {
  __shared__ u32 tile[64];
  out[lane_x()] = 1;
  wait_loads<0>();
  load_to_lds(in + lane_x(), offset_of(tile));
  if (kFixed) wait_loads<0>();
  asm volatile("s_endpgm");
}
// The wait stands among instructions that VSKIP passes over: it counts, the write beside it does not happen.
PAIR(dma_vskip, (u32* out, const u32* in), (out, in)) {
  __shared__ u32 tile[64];
  const u32 at = offset_of(tile) + 4 * lane_x();
  load_to_lds(in + lane_x(), offset_of(tile));
  asm volatile("s_setvskip 1, 0\n ds_write_b32 %0, %0" ::"v"(at) : "memory");
  if (kFixed) wait_loads<0>();
  asm volatile("s_setvskip 0, 0" ::: "memory");
  out[lane_x()] = read_lds(at);
  wait_loads<0>();
}

// Conflicts: all lanes in one bank, or side by side.
PAIR(banks, (u32* out), (out)) {
  __shared__ u32 tile[64 * 64];
  const u32 at = offset_of(tile) + (kFixed ? 4 : 256) * lane_x();
  write_lds(at, lane_x());
  wait_lds();
  out[lane_x()] = read_lds(at);
}
