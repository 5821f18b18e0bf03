// Kernels that the emulator must stop, and kernels that wait for other workgroups.
#include "device.h"

KERNEL load_byte(u8* out, const u8* in, u64 at) { out[0] = in[at]; }
KERNEL store_byte(u8* out, u64 at, u8 value) { out[at] = value; }
KERNEL load_wide(u32x4* out, const u8* in, u64 at) {
  u32x4 v;
  asm volatile("global_load_dwordx4 %0, %1, off\n s_waitcnt vmcnt(0)" : "=v"(v) : "v"(in + at));
  out[0] = v;
}
KERNEL store_one_lane(u32* out, u32 n, u32 bad_lane) {
  u32* p = lane_x() == bad_lane ? out + n : out;
  *p = lane_x();
}
KERNEL load_scalar(u32* out, const u32* in, u32 at) {
  u32 v;
  asm volatile("s_load_dword %0, %1, 0\n s_waitcnt lgkmcnt(0)" : "=s"(v) : "s"(in + at));
  out[0] = v;
}

KERNEL unknown_instruction(u32* out) {
  out[0] = 1;
  asm volatile(".long 0xffffffff");
  out[1] = 1;
}
KERNEL traps(u32* out) {
  out[0] = 1;
  __builtin_trap();
}

KERNEL endless(u32* out) {
  for (u32 n = 0;; ++n) asm volatile("" ::"v"(n));
}
KERNEL endless_poll(const u32* flag, u32* out) {
  while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
  out[0] = 1;
}
KERNEL endless_barrier(u32* out) {
  for (;;) __builtin_amdgcn_s_barrier();
}
KERNEL wave_never_comes(u32* out) {
  if (__builtin_amdgcn_readfirstlane(lane_x() / 64) == 1) {
    for (;;) __builtin_amdgcn_s_sleep(1);
  }
  barrier();
  out[0] = 1;
}

// Work that takes long but goes on: `turns` loads of changing addresses, one store at the end.
KERNEL long_sum(u32* out, const u32* in, u32 n, u32 turns) {
  u32 sum = 0;
  for (u32 t = 0; t < turns; ++t) sum += __builtin_nontemporal_load(in + (t * 64 + lane_x()) % n);
  out[lane_x()] = sum;
}

// Workgroup g waits for g + 1: they can end only in the order opposite to their start.
KERNEL wait_for_next(u32* flags, u32* order, u32* tickets) {
  const u32 g = group_x(), groups = __builtin_amdgcn_grid_size_x() / size_x();
  if (lane_x() != 0) return;
  if (g + 1 < groups) {
    while (__hip_atomic_load(flags + g + 1, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
  }
  order[g] = __hip_atomic_fetch_add(tickets, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_store(flags + g, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}

// Split-k semaphore: every workgroup adds to the sum after its predecessors, polling with a scalar load.
KERNEL in_order(u32* semaphore, u32* sum) {
  const u32 g = group_x();
  u32 seen;
  do {
    asm volatile("s_load_dword %0, %1, 0 glc\n s_waitcnt lgkmcnt(0)" : "=s"(seen) : "s"(semaphore));
    if (seen != g) __builtin_amdgcn_s_sleep(1);
  } while (seen != g);
  barrier();
  if (lane_x() == 0) {
    *sum = *sum * 3 + g;
    __hip_atomic_store(semaphore, g + 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  }
}

// All workgroups meet twice, as cooperative kernels do.
KERNEL grid_barrier(u32* arrived, u32* out) {
  const u32 groups = __builtin_amdgcn_grid_size_x() / size_x();
  for (u32 turn = 1; turn <= 2; ++turn) {
    barrier();
    if (lane_x() == 0) {
      __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
      while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < turn * groups) __builtin_amdgcn_s_sleep(2);
    }
    barrier();
  }
  out[index_x()] = __hip_atomic_load(arrived, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
