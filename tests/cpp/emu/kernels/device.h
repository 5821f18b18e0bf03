// What the test kernels need of HIP, on a stock clang without its headers.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define KERNEL extern "C" __global__ void

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef short s16x4 __attribute__((ext_vector_type(4)));

__device__ inline u32 lane_x() { return __builtin_amdgcn_workitem_id_x(); }
__device__ inline u32 group_x() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ inline u32 size_x() { return __builtin_amdgcn_workgroup_size_x(); }
__device__ inline u32 index_x() { return group_x() * size_x() + lane_x(); }
__device__ inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
