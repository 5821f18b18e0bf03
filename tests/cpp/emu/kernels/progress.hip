// Kernels whose workgroups depend on each other: split-k with a scalar semaphore, stream-k, chains in both
// directions, a barrier over a group of neighbours.
#include "device.h"

__device__ inline u32 groups_x() { return __builtin_amdgcn_grid_size_x() / size_x(); }
__device__ inline u32 agent_load(const u32* p) { return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT); }
__device__ inline void agent_store(u32* p, u32 v) { __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT); }
__device__ inline void wait_stores() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent"); }

__device__ inline u32 scalar_poll(const u32* p) {
  u32 v;
  asm volatile("s_load_dword %0, %1, 0x0 glc\n s_waitcnt lgkmcnt(0)" : "=s"(v) : "s"(p) : "memory");
  return v;
}

// Slice 0 of a tile zeroes it and opens the semaphore with the number of slices; every slice waits for that, adds
// its part and counts the semaphore down, back to the 0 that the next launch needs. Slices are the grid's `axis`.
__device__ inline void split_k_slice(u32* c, u32* semaphores, u32 tile, u32 slice, u32 slices) {
  u32* const semaphore = semaphores + tile;
  u32* const out = c + tile * size_x() + lane_x();
  if (slice == 0) {
    *out = 0;
    wait_stores();
    barrier();
    asm volatile("s_store_dword %0, %1, 0x0 glc\n s_waitcnt lgkmcnt(0)" ::"s"(slices), "s"(semaphore) : "memory");
  }
  while (scalar_poll(semaphore) == 0) {}
  __hip_atomic_fetch_add(out, (slice + 1) * (tile + 1) + lane_x(), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  wait_stores();
  barrier();
  if (__builtin_amdgcn_readfirstlane(lane_x() / 64) == 0) {
    const u32 limit = ~0u;
    asm volatile("s_atomic_dec %0, %1, 0x0\n s_waitcnt lgkmcnt(0)" ::"s"(limit), "s"(semaphore) : "memory");
  }
}
// Slices far apart in the order of ids (the slowest axis), and next to each other (the fastest).
KERNEL split_k_far(u32* c, u32* semaphores, u32 slices) {
  split_k_slice(c, semaphores, group_x(), __builtin_amdgcn_workgroup_id_z(), slices);
}
KERNEL split_k_near(u32* c, u32* semaphores, u32 slices) {
  split_k_slice(c, semaphores, __builtin_amdgcn_workgroup_id_y(), group_x(), slices);
}

// Every workgroup has an equal share of all iterations of all tiles. Who has the first iteration of a tile adds
// up what the workgroups behind it left in their workspace; the others leave their part there.
KERNEL stream_k(u32* out, u32* parts, u32* flags, u32 tiles, u32 iterations) {
  const u32 g = group_x(), groups = groups_x(), all = tiles * iterations, l = lane_x();
  u32 at = static_cast<u64>(all) * g / groups;
  const u32 end = static_cast<u64>(all) * (g + 1) / groups;
  while (at < end) {
    const u32 tile = at / iterations, last = (tile + 1) * iterations < end ? (tile + 1) * iterations : end;
    const bool first = at == tile * iterations;
    u32 sum = 0;
    for (; at < last; ++at) sum += (at + 1) * 3 + l;
    if (!first) {
      parts[g * size_x() + l] = sum;
      wait_stores();
      barrier();
      if (l == 0) agent_store(flags + g, 1);
      continue;
    }
    for (u32 next = g + 1, done = last; done < (tile + 1) * iterations; ++next) {
      while (agent_load(flags + next) == 0) __builtin_amdgcn_s_sleep(1);
      sum += __builtin_nontemporal_load(parts + next * size_x() + l);
      done = static_cast<u64>(all) * (next + 1) / groups;
    }
    out[tile * size_x() + l] = sum;
  }
}

// Workgroup g consumes what g - 1 (forward) or g + 1 (backward) produced.
__device__ inline void chain(u32* values, u32* flags, bool has_source, u32 source) {
  const u32 g = group_x(), l = lane_x();
  u32 v = 1;
  if (has_source) {
    while (agent_load(flags + source) == 0) {}
    v += __builtin_nontemporal_load(values + source * size_x() + l);
  }
  values[g * size_x() + l] = v;
  wait_stores();
  barrier();
  if (l == 0) agent_store(flags + g, 1);
}
KERNEL chain_forward(u32* values, u32* flags) { chain(values, flags, group_x() > 0, group_x() - 1); }
KERNEL chain_backward(u32* values, u32* flags) {
  chain(values, flags, group_x() + 1 < groups_x(), group_x() + 1);
}

// Neighbours in groups of `size` meet: all of a group must be on the device at once, the others need not.
KERNEL neighbours_meet(u32* arrived, u32* out, u32 size) {
  u32* const count = arrived + group_x() / size;
  if (lane_x() == 0) {
    __hip_atomic_fetch_add(count, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
    while (agent_load(count) < size) __builtin_amdgcn_s_sleep(1);
  }
  barrier();
  out[index_x()] = agent_load(count);
}

// Where a workgroup runs: XCC_ID, and the unit of HW_ID.
KERNEL places(u32* xcc, u32* unit) {
  u32 x, id;
  asm volatile("s_getreg_b32 %0, hwreg(HW_REG_XCC_ID)" : "=s"(x));
  asm volatile("s_getreg_b32 %0, hwreg(HW_REG_HW_ID)" : "=s"(id));
  if (lane_x() != 0) return;
  xcc[group_x()] = x;
  unit[group_x()] = ((id >> 8) & 15) | ((id >> 13) & 7) << 4;
}
