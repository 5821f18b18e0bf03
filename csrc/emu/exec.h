// Operand access for the exec_<family>.cpp handlers. A handler is semantics only: it names its inputs,
// the lane loop and EXEC live here.
//
// exec_*.cpp and handlers.cpp are compiled once per vector extension (MI350_EMU_LEVEL = base, v3, v4);
// everything they define sits in that namespace so that the linker never mixes them.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "isa.h"
#include "wave.h"

#ifndef MI350_EMU_LEVEL
#define MI350_EMU_LEVEL base
#endif

namespace mi350::emu::MI350_EMU_LEVEL {

inline uint32_t inline_constant(uint16_t code, uint32_t literal) {
  if (code >= 128 && code <= 192) return code - 128;
  if (code >= 193 && code <= 208) return static_cast<uint32_t>(192 - static_cast<int>(code));
  switch (code) {
    case 240: return 0x3f000000; case 241: return 0xbf000000;
    case 242: return 0x3f800000; case 243: return 0xbf800000;
    case 244: return 0x40000000; case 245: return 0xc0000000;
    case 246: return 0x40800000; case 247: return 0xc0800000;
    case 248: return 0x3e22f983;
    case kLiteral: return literal;
    default: return 0;
  }
}

// Flat addresses of LDS and of private memory: above every host pointer. The limits are the last byte.
constexpr uint64_t kSharedAperture = 1ull << 48, kPrivateAperture = 2ull << 48;
inline uint64_t aperture(uint16_t code) {
  const uint64_t base = code <= kSharedLimit ? kSharedAperture : kPrivateAperture;
  return code == kSharedBase || code == kPrivateBase ? base : base | 0xffffffffu;
}

// Scalar sources: 32 and 64 bit. Float inline constants of 16- and 64-bit operations are widened or
// narrowed by the caller (inline_f16, inline_f64 in convert.h).
inline uint32_t read_s32(const Wave& w, const Inst& i, uint16_t code) {
  if (code < 128) return w.sgpr[code];
  if (code == kVccz) return w.vcc() == 0;
  if (code == kExecz) return w.exec() == 0;
  if (code == kScc) return w.scc;
  return inline_constant(code, i.literal);
}
inline uint64_t read_s64(const Wave& w, const Inst& i, uint16_t code) {
  if (code < 128) { uint64_t v; std::memcpy(&v, &w.sgpr[code], 8); return v; }
  if (code >= kSharedBase && code <= kPrivateLimit) return aperture(code);
  return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(read_s32(w, i, code))));
}
inline void write_s32(Wave& w, uint16_t code, uint32_t v) { if (code < 128) w.sgpr[code] = v; }
inline void write_s64(Wave& w, uint16_t code, uint64_t v) { if (code < 127) std::memcpy(&w.sgpr[code], &v, 8); }

inline bool is_vector(uint16_t code) { return code >= kVgpr0 && code < kAcc0 + 256; }
inline uint32_t* vreg(Wave& w, uint16_t code) { return w.vgpr[code - kVgpr0]; }

// 64 lanes of a 32-bit source: a register as it stands, or a scalar broadcast into `scratch`.
using Lanes = std::array<uint32_t, kLanes>;
inline const uint32_t* read_lanes(Wave& w, const Inst& i, uint16_t code, Lanes& scratch) {
  if (is_vector(code)) return vreg(w, code);
  scratch.fill(read_s32(w, i, code));
  return scratch.data();
}

inline bool exec_full(const Wave& w) { return w.exec() == ~0ull; }
inline bool lane_on(uint64_t exec, int lane) { return (exec >> lane) & 1; }

}  // namespace mi350::emu::MI350_EMU_LEVEL
