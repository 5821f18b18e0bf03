// Decode goldens: LDS, transpose reads, atomics, buffer and global forms, scratch, permutes, control flow.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
typedef int int4v __attribute__((ext_vector_type(4)));
typedef short s16x4 __attribute__((ext_vector_type(4)));
typedef int i32x2 __attribute__((ext_vector_type(2)));
typedef int i32x3 __attribute__((ext_vector_type(3)));
typedef __fp16 h16x2 __attribute__((ext_vector_type(2)));
#define LDS(type, pointer) (__attribute__((address_space(3))) type*)(pointer)

static __device__ unsigned lane() { return __builtin_amdgcn_workitem_id_x(); }

extern "C" __global__ void lds(int* o, const int* a, const long* c, int n) {
  __shared__ __attribute__((aligned(128))) int m[8192];
  __shared__ unsigned char bytes[1024];
  __shared__ float sums[64];
  unsigned t = lane();
  m[t] = a[t]; m[t + 64] = a[t + 64]; m[t + n] = 3; bytes[t] = (unsigned char)a[t];
  ((int4v*)m)[t + 128] = ((const int4v*)a)[t]; ((long*)m)[t + 512] = c[t];
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
  o[t] = m[t ^ 5] + m[(t ^ 5) + 64] + bytes[t ^ 1] + (int)((long*)m)[t ^ 3] + ((int4v*)m)[t ^ 9].z + ((signed char*)bytes)[t] + ((short*)m)[t] + ((unsigned short*)m)[t + 7];
  __hip_atomic_fetch_add(&m[t & 7], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); __hip_atomic_fetch_max(&m[9], n, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  o[t + 64] = __hip_atomic_exchange(&m[11], n, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); __hip_atomic_fetch_add(&sums[t & 3], 1.5f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  int want = 4; __hip_atomic_compare_exchange_strong(&m[12], &want, 5, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); o[t + 128] = want;
  s16x4 r16 = __builtin_amdgcn_ds_read_tr16_b64_v4i16(LDS(s16x4, m + t * 2)); i32x2 r8 = __builtin_amdgcn_ds_read_tr8_b64_v2i32(LDS(i32x2, m + t * 2));
  i32x2 r4 = __builtin_amdgcn_ds_read_tr4_b64_v2i32(LDS(i32x2, m + t * 2)); i32x3 r6 = __builtin_amdgcn_ds_read_tr6_b96_v3i32(LDS(i32x3, m + t * 4));
  o[t + 192] = r16.x + r8.x + r4.y + r6.z;
  o[t + 256] = __builtin_amdgcn_ds_bpermute((int)t * 4, a[t]) + __builtin_amdgcn_ds_permute((int)t * 4, a[t]) + __builtin_amdgcn_ds_swizzle(a[t], 0x041f) + __builtin_amdgcn_ds_swizzle(a[t], 0x80e4);
}

extern "C" __global__ void globals(int* o, const int* a, float* f, double* d, unsigned long* u, const unsigned char* b) {
  unsigned t = lane();
  __hip_atomic_fetch_add(o + t, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); __hip_atomic_fetch_or(u + t, 6ul, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  o[t + 64] = __hip_atomic_fetch_min(o + 3, 7, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM); __hip_atomic_fetch_add(f + t, 1.0f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(d + t, 1.0, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); unsigned long want = 9; __hip_atomic_compare_exchange_strong(u + 3, &want, 4ul, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  u[t + 99] = want + b[t] + ((const unsigned short*)b)[t + 5] + ((const signed char*)b)[t + 1000];
  __builtin_nontemporal_store(a[t], o + t + 128); ((int4v*)o)[t + 99] = __builtin_nontemporal_load((const int4v*)a + t); ((unsigned char*)o)[t] = 3; ((short*)o)[t + 4000] = (short)a[t];
  o[t + 64] = __hip_atomic_load(a + t, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM); __hip_atomic_store(o + t, 5, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}

extern "C" __global__ void buffers(int* o, const void* a, int n) {
  __shared__ char stage[16384];
  __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc((void*)a, 0, n, 0x00027000);
  int t = (int)lane();
  __builtin_amdgcn_raw_ptr_buffer_load_lds(r, LDS(void, stage), 16, t * 16, 0, 0, 0); __builtin_amdgcn_raw_ptr_buffer_load_lds(r, LDS(void, stage + 4096), 4, t * 4, n, 64, 0);
  __builtin_amdgcn_s_waitcnt(0x0f70);
  __builtin_amdgcn_s_barrier();
  int4v x = __builtin_amdgcn_raw_buffer_load_b128(r, t * 16, n, 0); int y = __builtin_amdgcn_raw_buffer_load_b32(r, 0, n, 0); short h = __builtin_amdgcn_raw_buffer_load_b16(r, t * 2 + 24, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b128(x, r, t * 16 + 32, 0, 2); __builtin_amdgcn_raw_buffer_store_b32(y, r, t * 4, n, 1); __builtin_amdgcn_raw_buffer_store_b8((char)h, r, t, 0, 0);
  o[t] = ((int*)stage)[t];
}

extern "C" __global__ void lanes_and_flow(int* o, const int* a, int n) {
  unsigned t = lane();
  int x = a[t];
  x += __builtin_amdgcn_update_dpp(0, x, 0x111, 0xf, 0xf, true); x += __builtin_amdgcn_update_dpp(x, x, 0x142, 0xa, 0xf, false); x += __builtin_amdgcn_update_dpp(x, x, 0x1b, 0xf, 0xf, true);
  x += __builtin_amdgcn_readlane(x, n) + __builtin_amdgcn_readfirstlane(x);
  auto swapped = __builtin_amdgcn_permlane32_swap(x, n, false, false); x += swapped[0];
  auto swapped16 = __builtin_amdgcn_permlane16_swap(x, n, false, false); x ^= swapped16[1];
  int stack[32];
  for (int k = 0; k < 32; ++k) stack[k] = a[k] * x;
  for (int k = 0; k < n; ++k) {
    if (x & 1) x = stack[x & 31] + k; else x >>= 1;
    if (x == 77) break;
    switch (x & 7) { case 0: x += 5; break; case 1: x ^= n; break; case 2: x = -x; break; case 3: o[k] = x; break; case 4: x *= 3; break; case 5: x -= k; break; default: x |= 8; }
  }
  unsigned long mask = __builtin_amdgcn_ballot_w64(x > 3);
  o[t] = x + (int)mask + (int)(__builtin_readcyclecounter() & 1) + (int)__builtin_amdgcn_s_getreg(0xf814);
  __builtin_amdgcn_s_sleep(2); __builtin_amdgcn_s_setprio(1);
}
