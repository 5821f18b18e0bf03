// LDS instructions. Addresses are pointers into the kernel's LDS; the compiler counts lgkmcnt.
#pragma once
#include "types.h"

namespace mi350 {

MI350_DEVICE U32x4 ds_read_b128(LdsBytes at) {
  return *reinterpret_cast<__attribute__((address_space(3))) U32x4*>(at);
}
MI350_DEVICE uint32_t ds_read_b32(LdsBytes at) {
  return *reinterpret_cast<__attribute__((address_space(3))) uint32_t*>(at);
}
MI350_DEVICE void ds_write_b128(LdsBytes at, U32x4 v) {
  *reinterpret_cast<__attribute__((address_space(3))) U32x4*>(at) = v;
}

// Within 16 lanes: lane s supplies 4 elements of source row s; lane l receives element l % 4 of the rows
// l / 4, 4 + l / 4, 8 + l / 4, 12 + l / 4.
// WARNING: EXEC must be full.
MI350_DEVICE U32x2 ds_read_b64_tr_b16(LdsBytes at) {
  return __builtin_bit_cast(U32x2, __builtin_amdgcn_ds_read_tr16_b64_v4i16(
      reinterpret_cast<__attribute__((address_space(3))) I16x4*>(at)));
}

// The 32-bit LDS address that M0 takes.
MI350_DEVICE uint32_t lds_address(LdsBytes at) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at)); }

}  // namespace mi350
