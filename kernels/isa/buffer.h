// Buffer instructions: a raw descriptor {base, size in bytes}, per-lane 32-bit byte offsets. A lane whose
// offset is at or past the size reads zero and stores nothing.
#pragma once
#include "types.h"

namespace mi350 {

// Offset of a lane that must not touch memory: past every size that raw_descriptor can hold.
constexpr uint32_t kNowhere = 0x80000000u;
constexpr uint32_t kMaxRecords = 0x7fffffffu;
constexpr uint32_t kRawBufferWord3 = 0x00027000u;

struct Descriptor {
  uint64_t base;
  uint32_t bytes;
};

MI350_DEVICE __amdgpu_buffer_rsrc_t resource(const Descriptor& d) {
  return __builtin_amdgcn_make_buffer_rsrc(reinterpret_cast<void*>(d.base), 0, d.bytes, kRawBufferWord3);
}

// 64 x 16 bytes straight to LDS at lds + 16 * lane. `lds` is uniform; completion counts on vmcnt.
// Assembly, because for the builtin the compiler drains vmcnt before every LDS read that may alias.
// WARNING: s_nop covers the wait state between an M0 write and its use, which the compiler does not
// insert inside assembly.
MI350_DEVICE void buffer_load_dwordx4_lds(uint32_t lds, const Descriptor& d, uint32_t offset) {
  const U32x4 words = {static_cast<uint32_t>(d.base), static_cast<uint32_t>(d.base >> 32), d.bytes, kRawBufferWord3};
  asm volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tbuffer_load_dwordx4 %1, %2, 0 offen lds"
               :: "s"(lds), "v"(offset), "s"(words) : "memory");
}

MI350_DEVICE uint8_t buffer_load_ubyte(const Descriptor& d, uint32_t offset) {
  return __builtin_amdgcn_raw_buffer_load_b8(resource(d), offset, 0, 0);
}
MI350_DEVICE uint16_t buffer_load_ushort(const Descriptor& d, uint32_t offset) {
  return __builtin_amdgcn_raw_buffer_load_b16(resource(d), offset, 0, 0);
}
MI350_DEVICE uint32_t buffer_load_dword(const Descriptor& d, uint32_t offset) {
  return __builtin_amdgcn_raw_buffer_load_b32(resource(d), offset, 0, 0);
}
MI350_DEVICE U32x2 buffer_load_dwordx2(const Descriptor& d, uint32_t offset) {
  return __builtin_amdgcn_raw_buffer_load_b64(resource(d), offset, 0, 0);
}
MI350_DEVICE U32x4 buffer_load_dwordx4(const Descriptor& d, uint32_t offset) {
  return __builtin_amdgcn_raw_buffer_load_b128(resource(d), offset, 0, 0);
}

MI350_DEVICE void buffer_store_short(const Descriptor& d, uint32_t offset, uint16_t v) {
  __builtin_amdgcn_raw_buffer_store_b16(v, resource(d), offset, 0, 0);
}
MI350_DEVICE void buffer_store_dword(const Descriptor& d, uint32_t offset, uint32_t v) {
  __builtin_amdgcn_raw_buffer_store_b32(v, resource(d), offset, 0, 0);
}
MI350_DEVICE void buffer_store_dwordx2(const Descriptor& d, uint32_t offset, U32x2 v) {
  __builtin_amdgcn_raw_buffer_store_b64(v, resource(d), offset, 0, 0);
}
MI350_DEVICE void buffer_store_dwordx4(const Descriptor& d, uint32_t offset, U32x4 v) {
  __builtin_amdgcn_raw_buffer_store_b128(v, resource(d), offset, 0, 0);
}

}  // namespace mi350
