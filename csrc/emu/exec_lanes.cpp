// What is unusual about a vector instruction: operands that are not plain registers before the lane loop,
// results that are not plain writes after it.
#include "exec_lanes.h"

#include <cfenv>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

void fill(Lanes& lanes, uint32_t value) {
  for (uint32_t& lane : lanes) lane = value;
}

bool is_inline_float(uint16_t code) { return code >= kFloatHalf && code <= 248; }

// The denormal bits of MODE: inputs kept (1), results kept (2).
uint32_t denormal_mode(const Wave& w, bool f32) { return (w.mode >> (f32 ? 4 : 6)) & 3; }

// Flushes by magnitude: f16 travels as float, so its limit is 2^-14.
void flush(Lanes& lanes, uint32_t least_normal) {
  for (uint32_t& lane : lanes) lane = (lane & 0x7fffffff) < least_normal ? lane & 0x80000000 : lane;
}
constexpr uint32_t least_normal(Repr repr) { return repr == Repr::kHalf ? 0x38800000 : 0x00800000; }

void widen_half(const uint32_t* in, Lanes& out) {
  for (int l = 0; l < kLanes; ++l) out[l] = bits_of(half_to_float(in[l]));
}

void select_sdwa(const uint32_t* in, uint8_t sel, bool sext, Lanes& out) {
  const int shift = sel < 4 ? 8 * sel : sel == 5 ? 16 : 0, width = sel < 4 ? 8 : sel < 6 ? 16 : 32;
  for (int l = 0; l < kLanes; ++l) {
    const uint32_t up = (in[l] >> shift) << (32 - width);
    out[l] = sext ? static_cast<uint32_t>(static_cast<int32_t>(up) >> (32 - width)) : up >> (32 - width);
  }
}

uint32_t merge_sdwa(const Inst& i, uint32_t old, uint32_t value) {
  if (i.dst_sel >= 6) return value;
  const int shift = i.dst_sel < 4 ? 8 * i.dst_sel : i.dst_sel == 5 ? 16 : 0;
  const uint32_t mask = i.dst_sel < 4 ? 0xff : 0xffff, part = (value & mask) << shift;
  if (i.dst_unused == 2) return (old & ~(mask << shift)) | part;
  const bool negative = part >> (shift + (i.dst_sel < 4 ? 7 : 15)) & 1;
  const uint32_t above = ~((mask << shift) | ((1u << shift) - 1));
  return part | (i.dst_unused == 1 && negative ? above : 0);
}

void change_sign(Lanes& lanes, bool abs, bool neg, uint32_t sign) {
  const uint32_t keep = abs ? ~sign : ~0u, flip = neg ? sign : 0;
  for (uint32_t& lane : lanes) lane = (lane & keep) ^ flip;
}

// Source lane of a DPP control for lane l; -1 = outside of the row or wave.
int dpp_source(uint32_t ctrl, int l) {
  const int row = l & ~15, in_row = l & 15, n = ctrl & 15;
  const auto within = [&](int lane) { return lane >= 0 && lane < 16 ? row + lane : -1; };
  if (ctrl < 0x100) return (l & ~3) + ((ctrl >> (2 * (l & 3))) & 3);
  if (ctrl <= 0x10f) return within(in_row + n);
  if (ctrl <= 0x11f) return within(in_row - n);
  if (ctrl <= 0x12f) return row + ((in_row - n) & 15);
  switch (ctrl) {
    case 0x130: return l < 63 ? l + 1 : -1;
    case 0x134: return (l + 1) & 63;
    case 0x138: return l - 1;
    case 0x13c: return (l - 1) & 63;
    case 0x140: return row + 15 - in_row;
    case 0x141: return (l & ~7) + 7 - (l & 7);
    case 0x142: return row - 1;
    case 0x143: return l < 32 ? -1 : 31;
    default: return ctrl >= 0x150 ? row + n : -1;
  }
}

void permute_dpp(const Scope& s, const uint32_t* in, Lanes& out) {
  for (int l = 0; l < kLanes; ++l) out[l] = s.dpp_lane[l] < 0 ? 0 : in[s.dpp_lane[l]];
}

const uint32_t* raw_source(Scope& s, int n, Repr repr, Lanes& scratch) {
  const uint16_t code = s.i.src[n];
  if (is_vector(code)) return s.w.vgpr[gpr_index(s.w, code, n)];
  const bool as_half = repr == Repr::kHalf || repr == Repr::kHalfBits;
  fill(scratch, as_half && is_inline_float(code) ? inline_f16(code) : read_s32(s.w, s.i, code));
  return scratch.data();
}

void copy(const uint32_t* from, Lanes& to) {
  if (from != to.data()) std::memcpy(to.data(), from, sizeof(Lanes));
}

// Widening, sign modifiers and the flush of inputs.
const uint32_t* as_value(Scope& s, const uint32_t* in, Repr repr, bool abs, bool neg, Lanes& scratch) {
  const bool floating = repr == Repr::kFloat32 || repr == Repr::kHalf;
  const bool flushes = floating && !(denormal_mode(s.w, repr == Repr::kFloat32) & 1);
  if (repr != Repr::kHalf && !flushes && !abs && !neg) return in;
  if (repr == Repr::kHalf) widen_half(in, scratch); else copy(in, scratch);
  if (abs || neg) change_sign(scratch, abs, neg, is_16(repr) && repr != Repr::kHalf ? 0x8000 : 0x80000000);
  if (flushes) flush(scratch, least_normal(repr));
  return scratch.data();
}

void shift_high_half(const uint32_t* in, Lanes& out) {
  for (int l = 0; l < kLanes; ++l) out[l] = in[l] >> 16;
}

}  // namespace

uint32_t gpr_index(const Wave& w, uint16_t code, int operand) {
  const uint32_t index = code - kVgpr0;
  if (!(w.mode & kModeGprIndex) || index >= 256) return index;
  return (w.sgpr[kM0] >> (12 + operand)) & 1 ? (index + (w.sgpr[kM0] & 0xff)) & 0xff : index;
}

void Scope::prepare_dpp() {
  const uint64_t exec = w.exec();
  for (int l = 0; l < kLanes; ++l) {
    const int from = dpp_source(i.dpp_ctrl, l);
    const bool valid = from >= 0 && lane_on(exec, from);
    const bool masked = !((i.row_mask >> (l / 16)) & 1) || !((i.bank_mask >> ((l & 15) / 4)) & 1);
    dpp_lane[l] = static_cast<int8_t>(valid ? from : -1);
    if (masked || (!valid && !i.bound_ctrl)) write &= ~(1ull << l);
  }
}

void Scope::set_rounding(bool f32) {
  constexpr int host[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  std::fesetround(host[(w.mode >> (f32 ? 0 : 2)) & 3]);
  rounding = true;
}

void Scope::restore_rounding() { std::fesetround(FE_TONEAREST); }

uint64_t scalar_wide(const Wave& w, const Inst& i, uint16_t code, bool as_float) {
  if (is_inline_float(code)) return inline_f64(code);
  if (code == kLiteral) return as_float ? static_cast<uint64_t>(i.literal) << 32 : i.literal;
  return read_s64(w, i, code);
}

namespace {
// What DPP and SDWA make of a source.
const uint32_t* moved_source(Scope& s, int n, Repr repr, Lanes& scratch) {
  const uint32_t* in = raw_source(s, n, repr, scratch);
  if (s.i.lane_mode == LaneMode::kDpp && n == 0) { permute_dpp(s, in, scratch); in = scratch.data(); }
  if (s.i.lane_mode == LaneMode::kSdwa && n < 2) {
    select_sdwa(in, n ? s.i.src1_sel : s.i.src0_sel, n ? s.i.src1_sext : s.i.src0_sext, scratch);
    in = scratch.data();
  }
  return in;
}
}  // namespace

const uint32_t* fetch_lanes(Scope& s, int n, Repr repr, Lanes& scratch) {
  const uint32_t* in = moved_source(s, n, repr, scratch);
  if (is_16(repr) && (s.i.op_sel >> n) & 1) { shift_high_half(in, scratch); in = scratch.data(); }
  return as_value(s, in, repr, (s.i.abs >> n) & 1, (s.i.neg >> n) & 1, scratch);
}

const uint32_t* fetch_packed(Scope& s, int n, int half, Repr repr, Lanes& scratch) {
  const uint32_t* in = moved_source(s, n, repr, scratch);
  if (((half ? s.i.op_sel_hi : s.i.op_sel) >> n) & 1) { shift_high_half(in, scratch); in = scratch.data(); }
  return as_value(s, in, repr, false, ((half ? s.i.abs : s.i.neg) >> n) & 1, scratch);
}

const uint32_t* fetch_old(Scope& s, Repr repr, Lanes& scratch) {
  const uint32_t* in = s.w.vgpr[gpr_index(s.w, s.i.dst, 3)];
  if (is_16(repr) && s.i.op_sel & 8) { shift_high_half(in, scratch); in = scratch.data(); }
  return as_value(s, in, repr, false, false, scratch);
}

void fetch_wide(Scope& s, int n, bool as_float, Wide& out) {
  const uint16_t code = s.i.src[n];
  if (is_vector(code)) {
    const uint32_t index = gpr_index(s.w, code, n);
    const uint32_t *low = s.w.vgpr[index], *high = s.w.vgpr[(index + 1) & 511];
    const bool dpp = s.i.lane_mode == LaneMode::kDpp && n == 0;
    for (int l = 0; l < kLanes; ++l) {
      const int from = dpp ? s.dpp_lane[l] : l;
      out[l] = from < 0 ? 0 : low[from] | static_cast<uint64_t>(high[from]) << 32;
    }
  } else {
    const uint64_t value = scalar_wide(s.w, s.i, code, as_float);
    for (uint64_t& lane : out) lane = value;
  }
  const bool abs = (s.i.abs >> n) & 1, neg = (s.i.neg >> n) & 1;
  if (abs) for (uint64_t& lane : out) lane &= ~(1ull << 63);
  if (neg) for (uint64_t& lane : out) lane ^= 1ull << 63;
  if (as_float && !(denormal_mode(s.w, false) & 1))
    for (uint64_t& lane : out) if (!((lane >> 52) & 0x7ff)) lane &= 1ull << 63;
}

void fetch_old_wide(Scope& s, Wide& out) {
  const uint32_t index = gpr_index(s.w, s.i.dst, 3);
  for (int l = 0; l < kLanes; ++l)
    out[l] = s.w.vgpr[index][l] | static_cast<uint64_t>(s.w.vgpr[index + 1][l]) << 32;
}

void fetch_mask(Scope& s, Lanes& out) {
  const uint64_t mask = read_s64(s.w, s.i, s.i.src[2]);
  for (int l = 0; l < kLanes; ++l) out[l] = (mask >> l) & 1;
}

namespace {

void clamp_unit(const Wave& w, Lanes& lanes) {
  const bool nan_to_zero = w.mode & kModeDx10Clamp;
  for (uint32_t& lane : lanes) {
    const float x = float_of(lane);
    const float limited = x > 1 ? 1.0f : x > 0 ? x : 0.0f;
    lane = x != x && !nan_to_zero ? lane : bits_of(limited);
  }
}

void scale_omod(Lanes& lanes, uint8_t omod) {
  const float factor = omod == 1 ? 2.0f : omod == 2 ? 4.0f : 0.5f;
  for (uint32_t& lane : lanes) lane = bits_of(float_of(lane) * factor);
}

// FP16_OVFL: a finite value beyond the range becomes the largest half, an infinity stays one.
void narrow_half(const Wave& w, Lanes& lanes) {
  const auto rounding = static_cast<Rounding>((w.mode >> 2) & 3);
  const bool saturate = w.mode & kModeFp16Overflow;
  if (rounding == Rounding::kNearest && !saturate) {
    for (uint32_t& lane : lanes) lane = float_to_half(float_of(lane));
    return;
  }
  for (uint32_t& lane : lanes) {
    const bool infinite = (lane & 0x7fffffff) == 0x7f800000;
    lane = encode(kF16, float_of(lane), rounding, saturate && !infinite);
  }
}

}  // namespace

void finish_lanes(Scope& s, Lanes& out, Repr repr) {
  if (is_16(repr) && repr != Repr::kHalf)
    for (uint32_t& lane : out) lane &= 0xffff;
  if (repr != Repr::kFloat32 && repr != Repr::kHalf) return;
  const bool flushes = !(denormal_mode(s.w, repr == Repr::kFloat32) & 2);
  // The manual: output modifiers are ignored while result denormals are on.
  if (s.i.omod && flushes) scale_omod(out, s.i.omod);
  if (s.i.clamp) clamp_unit(s.w, out);
  if (flushes) flush(out, least_normal(repr));
  if (repr == Repr::kHalf) narrow_half(s.w, out);
}

void write_masked(Scope& s, uint32_t index, const Lanes& out) {
  uint32_t* to = s.w.vgpr[index & 511];
  if (s.full) { std::memcpy(to, out.data(), sizeof(Lanes)); return; }
#if defined(__AVX512F__)
  for (int l = 0; l < kLanes; l += 16)
    _mm512_mask_storeu_epi32(to + l, static_cast<__mmask16>(s.write >> l), _mm512_loadu_si512(&out[l]));
#else
  for (int l = 0; l < kLanes; ++l) if (lane_on(s.write, l)) to[l] = out[l];
#endif
}

void commit_lanes(Scope& s, Lanes& out, Repr repr, bool keep_half) {
  finish_lanes(s, out, repr);
  const uint32_t index = gpr_index(s.w, s.i.dst, 3);
  const uint32_t* old = s.w.vgpr[index];
  if (s.i.lane_mode == LaneMode::kSdwa) {
    for (int l = 0; l < kLanes; ++l) out[l] = merge_sdwa(s.i, old[l], out[l]);
  } else if (is_16(repr) && s.i.op_sel & 8) {
    for (int l = 0; l < kLanes; ++l) out[l] = (old[l] & 0xffff) | out[l] << 16;
  } else if (keep_half) {
    for (int l = 0; l < kLanes; ++l) out[l] = (old[l] & 0xffff0000) | out[l];
  }
  write_masked(s, index, out);
}

void commit_wide(Scope& s, Wide& out, bool as_float) {
  if (as_float) {
    const bool flushes = !(denormal_mode(s.w, false) & 2), nan_to_zero = s.w.mode & kModeDx10Clamp;
    const double factor = s.i.omod == 1 ? 2 : s.i.omod == 2 ? 4 : s.i.omod == 3 ? 0.5 : 1;
    for (uint64_t& lane : out) {
      double x = double_of(lane);
      if (flushes && s.i.omod) x *= factor;
      if (s.i.clamp && (x == x || nan_to_zero)) x = x > 1 ? 1 : x > 0 ? x : 0;
      lane = bits_of(x);
      if (flushes && !((lane >> 52) & 0x7ff)) lane &= 1ull << 63;
    }
  }
  Lanes low, high;
  for (int l = 0; l < kLanes; ++l) {
    low[l] = static_cast<uint32_t>(out[l]);
    high[l] = static_cast<uint32_t>(out[l] >> 32);
  }
  const uint32_t index = gpr_index(s.w, s.i.dst, 3);
  write_masked(s, index, low);
  write_masked(s, index + 1, high);
}

uint64_t pack_mask(const Lanes& bits) {
  uint64_t mask = 0;
#if defined(__AVX512F__)
  for (int l = 0; l < kLanes; l += 16) {
    const __m512i group = _mm512_loadu_si512(&bits[l]);
    mask |= static_cast<uint64_t>(_mm512_test_epi32_mask(group, group)) << l;
  }
#else
  for (int l = 0; l < kLanes; ++l) mask |= static_cast<uint64_t>(bits[l]) << l;
#endif
  return mask;
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
