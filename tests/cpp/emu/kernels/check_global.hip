// Faults on global memory, each with its corrected twin: bounds with and without a descriptor, order between
// workgroups, barriers that never complete.
#include "device.h"

__device__ inline u32 wave() { return __builtin_amdgcn_readfirstlane(lane_x() / 64); }

// One dword a lane from `at` on.
KERNEL load_at(u32* out, const u32* in, u32 at) {
  u32 v;
  asm volatile("global_load_dword %0, %1, off\n s_waitcnt vmcnt(0)" : "=v"(v) : "v"(in + at + lane_x()));
  out[lane_x()] = v;
}
KERNEL store_at(u32* out, u32 at) {
  asm volatile("global_store_dword %0, %1, off\n s_waitcnt vmcnt(0)" ::"v"(out + at + lane_x()), "v"(lane_x())
               : "memory");
}
// Through a descriptor of `records` bytes, from byte offset `at` on.
__device__ inline __attribute__((ext_vector_type(4))) u32 descriptor(const u32* base, u32 records) {
  const u64 p = (u64)base;
  return {(u32)p, (u32)(p >> 32) & 0xffff, records, 0x00020000};
}
KERNEL buffer_load_at(u32* out, const u32* in, u32 records, u32 at) {
  u32 v;
  asm volatile("buffer_load_dword %0, %1, %2, 0 offen\n s_waitcnt vmcnt(0)"
               : "=v"(v) : "v"(at + 4 * lane_x()), "s"(descriptor(in, records)));
  out[lane_x()] = v;
}
KERNEL buffer_store_at(u32* out, u32 records, u32 at) {
  asm volatile("buffer_store_dword %0, %1, %2, 0 offen\n s_waitcnt vmcnt(0)" ::"v"(lane_x()),
               "v"(at + 4 * lane_x()), "s"(descriptor(out, records)) : "memory");
}
KERNEL scalar_load_at(u32* out, const u32* in, u32 records, u32 at) {
  u32 v;
  asm volatile("s_buffer_load_dword %0, %1, %2\n s_waitcnt lgkmcnt(0)"
               : "=s"(v) : "s"(descriptor(in, records)), "s"(at));
  out[lane_x()] = v;
}

// Workgroup 0 hands 64 dwords to workgroup 1 by a flag; released and acquired, or not.
template <bool kFixed> __device__ void hand_over(u32* out, u32* data, u32* flag) {
  constexpr int kRelease = kFixed ? __ATOMIC_RELEASE : __ATOMIC_RELAXED;
  constexpr int kAcquire = kFixed ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED;
  if (group_x() == 0) {
    data[lane_x()] = lane_x() + 7;
    asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
    __hip_atomic_store(flag, 1, kRelease, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    while (__hip_atomic_load(flag, kAcquire, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
    u32 v;
    asm volatile("global_load_dword %0, %1, off\n s_waitcnt vmcnt(0)" : "=v"(v) : "v"(data + lane_x()) : "memory");
    out[lane_x()] = v;
  }
}
KERNEL hand_over_fault(u32* out, u32* data, u32* flag) { hand_over<false>(out, data, flag); }
KERNEL hand_over_fixed(u32* out, u32* data, u32* flag) { hand_over<true>(out, data, flag); }

// Wave 1 waits for wave 0 to say something that it says only behind the barrier.
template <bool kFixed> __device__ void meet(u32* out, u32* flag) {
  if (wave() == 1 && !kFixed) {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
  }
  barrier();
  if (wave() == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  out[lane_x()] = 1;
}
KERNEL meet_fault(u32* out, u32* flag) { meet<false>(out, flag); }
KERNEL meet_fixed(u32* out, u32* flag) { meet<true>(out, flag); }

// Lanes a line apart, or side by side.
KERNEL apart(u32* out, const u32* in, u32 step) {
  u32 v;
  asm volatile("global_load_dword %0, %1, off\n s_waitcnt vmcnt(0)" : "=v"(v) : "v"(in + step * lane_x()));
  out[lane_x()] = v;
}
