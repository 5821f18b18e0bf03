// v_cvt_scalef32_*: conversions between f32, f16, bf16 and the small floats with a power-of-two scale. The
// scale is the exponent field E of an f32: to small divides by 2^(E-127), from small multiplies. Every form
// is one loop over elements: gathered, scaled, rounded, packed little-endian from the low end of the result.
#include "exec_lanes.h"
#include "small_tables.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

enum class Wider : uint8_t { kF32, kF16, kBf16 };
constexpr int kMostRegisters = 32;

constexpr int bits_per(Format f) { return 1 + f.exponent_bits + f.mantissa_bits; }
constexpr int registers_of(Wider t, int elements) { return t == Wider::kF32 ? elements : (elements + 1) / 2; }

constexpr double scale_factor(uint32_t scale, bool divide) {
  const int exponent = static_cast<int>(scale >> 23 & 0xff);
  if (exponent == 255) return double_of(0x7ff8000000000000);
  return power_of_two(divide ? 127 - exponent : exponent - 127);
}

float wider_value(Wider t, uint32_t word, int half) {
  if (t == Wider::kF32) return float_of(word);
  const uint32_t bits = half ? word >> 16 : word & 0xffff;
  return t == Wider::kF16 ? half_to_float(bits) : bfloat_to_float(bits);
}

constexpr uint32_t next_random(uint32_t x) { return (x << 1) ^ (x >> 31 ? 197u : 0u); }

void put_bits(uint32_t* words, int at, int width, uint32_t code) {
  words[at / 32] |= code << (at % 32);
  if (at % 32 + width > 32) words[at / 32 + 1] |= code >> (32 - at % 32);
}
uint32_t get_bits(const uint32_t* words, int at, int width) {
  uint32_t code = words[at / 32] >> (at % 32);
  if (at % 32 + width > 32) code |= words[at / 32 + 1] << (32 - at % 32);
  return code & ((1u << width) - 1);
}

// The instruction without OP_SEL, which means something else here than a source half.
Inst without_op_sel(const Inst& i) {
  Inst plain = i;
  plain.op_sel = 0;
  return plain;
}

// Writes `total` bits per lane: a byte by OP_SEL 3:2, a half by OP_SEL 3, or whole registers.
void put_result(Scope& s, uint8_t op_sel, int total, uint32_t (*out)[kLanes]) {
  const uint32_t index = gpr_index(s.w, s.i.dst, 3);
  const int registers = (total + 31) / 32;
  const int shift = total == 8 ? 8 * (op_sel >> 2) : total == 16 ? 16 * (op_sel >> 3) : 0;
  const uint32_t mask = total >= 32 ? ~0u : ((1u << total) - 1) << shift;
  for (int r = 0; r < registers; ++r) {
    Lanes merged;
    const uint32_t* old = s.w.vgpr[index + r];
    for (int l = 0; l < kLanes; ++l) merged[l] = (old[l] & ~mask) | (out[r][l] << shift & mask);
    write_masked(s, index + r, merged);
  }
}

// element(e, l) is the value to convert.
template <class Gather>
void narrow(Scope& s, uint8_t op_sel, Format f, int elements, int scale_source, bool random, Gather element) {
  Lanes scale_scratch, random_scratch;
  const uint32_t* scale = fetch_lanes(s, scale_source, Repr::kBits32, scale_scratch);
  const uint32_t* seed = random ? fetch_lanes(s, 1, Repr::kBits32, random_scratch) : scale;
  const bool saturate = s.w.mode & kModeFp16Overflow;
  const Rounding rounding = random ? Rounding::kRandom : Rounding::kNearest;
  const int width = bits_per(f);
  uint32_t out[6][kLanes] = {};
  for (int l = 0; l < kLanes; ++l) {
    const double factor = scale_factor(scale[l], true);
    uint32_t words[7] = {}, noise = seed[l];
    for (int e = 0; e < elements; ++e, noise = next_random(noise))
      put_bits(words, e * width, width, encode(f, element(e, l) * factor, rounding, saturate, noise));
    for (int r = 0; r < 6; ++r) out[r][l] = words[r];
  }
  put_result(s, op_sel, elements * width, out);
}

// Two f32 sources.
void narrow_f32_pair(Wave& w, const Inst& i, Format f) {
  const Inst plain = without_op_sel(i);
  Scope s(w, plain);
  Lanes sa, sb;
  const uint32_t* source[2] = {fetch_lanes(s, 0, Repr::kFloat32, sa), fetch_lanes(s, 1, Repr::kFloat32, sb)};
  narrow(s, i.op_sel, f, 2, 2, false, [&](int e, int l) { return float_of(source[e][l]); });
}

// Elements in one register or a group of registers; the last source is the scale.
void narrow_group(Wave& w, const Inst& i, Format f, Wider from, int elements, bool random) {
  Inst plain = without_op_sel(i);
  if (from != Wider::kF32 || elements > 1) plain.neg = plain.abs = 0;
  Scope s(w, plain);
  Lanes scratch;
  const uint32_t* single =
      fetch_lanes(s, 0, from == Wider::kF32 && elements == 1 ? Repr::kFloat32 : Repr::kBits32, scratch);
  const bool grouped = is_vector(i.src[0]) && registers_of(from, elements) > 1;
  const uint32_t (*group)[kLanes] = grouped ? &w.vgpr[gpr_index(w, i.src[0], 0)] : nullptr;
  const int per_register = from == Wider::kF32 ? 1 : 2;
  narrow(s, i.op_sel, f, elements, random ? 2 : 1, random, [&](int e, int l) {
    return wider_value(from, grouped ? group[e / per_register][l] : single[l], e % per_register);
  });
}

// Even elements from the first group of 16 registers, odd ones from the second.
void narrow_two_groups(Wave& w, const Inst& i, Format f) {
  Scope s(w, i);
  const uint32_t(*group[2])[kLanes] = {&w.vgpr[gpr_index(w, i.src[0], 0)],
                                       &w.vgpr[gpr_index(w, i.src[1], 1)]};
  narrow(s, 0, f, 32, 2, false, [&](int e, int l) { return float_of(group[e % 2][e / 2][l]); });
}

uint32_t narrow_once(Wider to, double value) {
  const float rounded = to == Wider::kF16 ? round_to_odd(value) : static_cast<float>(value);
  if (to == Wider::kF32) return bits_of(rounded);
  return to == Wider::kF16 ? float_to_half(rounded) : float_to_bfloat(rounded);
}

// `elements` small floats, starting at `first_bit` of the source, to f32, f16 or bf16.
template <size_t N>
void widen(Wave& w, const Inst& i, const std::array<float, N>& values, Wider to, int elements,
           int first_bit) {
  Inst plain = without_op_sel(i);
  plain.neg = plain.abs = 0;
  Scope s(w, plain);
  Lanes scratch, scale_scratch;
  const uint32_t* single = fetch_lanes(s, 0, Repr::kBits32, scratch);
  const uint32_t* scale = fetch_lanes(s, 1, Repr::kBits32, scale_scratch);
  constexpr int width = N == 256 ? 8 : N == 64 ? 6 : 4;
  const int source_registers = elements * width > 32 ? 6 : 1;
  const uint32_t base = source_registers > 1 ? gpr_index(w, i.src[0], 0) : 0;
  uint32_t out[kMostRegisters][kLanes] = {};
  for (int l = 0; l < kLanes; ++l) {
    uint32_t words[7] = {single[l]};
    for (int r = 1; r < source_registers; ++r) words[r] = w.vgpr[base + r][l];
    const double factor = scale_factor(scale[l], false);
    for (int e = 0; e < elements; ++e) {
      const uint32_t code = narrow_once(to, values[get_bits(words, first_bit + e * width, width)] * factor);
      if (to == Wider::kF32) out[e][l] = code;
      else out[e / 2][l] |= code << (16 * (e % 2));
    }
  }
  const int total = elements * (to == Wider::kF32 ? 32 : 16);
  put_result(s, i.op_sel, total, out);
}

int source_half(const Inst& i) { return 16 * (i.op_sel & 1); }
int source_byte(const Inst& i) { return 8 * (i.op_sel & 3); }

}  // namespace

#define NARROW8(format, f)                                                                    \
  void v_cvt_scalef32_pk_##format##_f32(Wave& w, const Inst& i) { narrow_f32_pair(w, i, f); } \
  void v_cvt_scalef32_sr_##format##_f32(Wave& w, const Inst& i) {                             \
    narrow_group(w, i, f, Wider::kF32, 1, true);                                              \
  }                                                                                           \
  void v_cvt_scalef32_pk_##format##_f16(Wave& w, const Inst& i) {                             \
    narrow_group(w, i, f, Wider::kF16, 2, false);                                             \
  }                                                                                           \
  void v_cvt_scalef32_sr_##format##_f16(Wave& w, const Inst& i) {                             \
    narrow_group(w, i, f, Wider::kF16, 1, true);                                              \
  }                                                                                           \
  void v_cvt_scalef32_pk_##format##_bf16(Wave& w, const Inst& i) {                            \
    narrow_group(w, i, f, Wider::kBf16, 2, false);                                            \
  }                                                                                           \
  void v_cvt_scalef32_sr_##format##_bf16(Wave& w, const Inst& i) {                            \
    narrow_group(w, i, f, Wider::kBf16, 1, true);                                             \
  }
NARROW8(fp8, kFp8)
NARROW8(bf8, kBf8)

void v_cvt_scalef32_pk_fp4_f32(Wave& w, const Inst& i) { narrow_f32_pair(w, i, kFp4); }
void v_cvt_scalef32_pk_fp4_f16(Wave& w, const Inst& i) { narrow_group(w, i, kFp4, Wider::kF16, 2, false); }
void v_cvt_scalef32_pk_fp4_bf16(Wave& w, const Inst& i) { narrow_group(w, i, kFp4, Wider::kBf16, 2, false); }
void v_cvt_scalef32_sr_pk_fp4_f32(Wave& w, const Inst& i) { narrow_group(w, i, kFp4, Wider::kF32, 2, true); }
void v_cvt_scalef32_sr_pk_fp4_f16(Wave& w, const Inst& i) { narrow_group(w, i, kFp4, Wider::kF16, 2, true); }
void v_cvt_scalef32_sr_pk_fp4_bf16(Wave& w, const Inst& i) {
  narrow_group(w, i, kFp4, Wider::kBf16, 2, true);
}

#define NARROW6(format, f)                                                                          \
  void v_cvt_scalef32_2xpk16_##format##_f32(Wave& w, const Inst& i) { narrow_two_groups(w, i, f); } \
  void v_cvt_scalef32_sr_pk32_##format##_f32(Wave& w, const Inst& i) {                              \
    narrow_group(w, i, f, Wider::kF32, 32, true);                                                   \
  }                                                                                                 \
  void v_cvt_scalef32_pk32_##format##_f16(Wave& w, const Inst& i) {                                 \
    narrow_group(w, i, f, Wider::kF16, 32, false);                                                  \
  }                                                                                                 \
  void v_cvt_scalef32_pk32_##format##_bf16(Wave& w, const Inst& i) {                                \
    narrow_group(w, i, f, Wider::kBf16, 32, false);                                                 \
  }                                                                                                 \
  void v_cvt_scalef32_sr_pk32_##format##_f16(Wave& w, const Inst& i) {                              \
    narrow_group(w, i, f, Wider::kF16, 32, true);                                                   \
  }                                                                                                 \
  void v_cvt_scalef32_sr_pk32_##format##_bf16(Wave& w, const Inst& i) {                             \
    narrow_group(w, i, f, Wider::kBf16, 32, true);                                                  \
  }
NARROW6(fp6, kFp6)
NARROW6(bf6, kBf6)

#define WIDEN8(format, values)                                   \
  void v_cvt_scalef32_pk_f32_##format(Wave& w, const Inst& i) {  \
    widen(w, i, values, Wider::kF32, 2, source_half(i));         \
  }                                                              \
  void v_cvt_scalef32_pk_f16_##format(Wave& w, const Inst& i) {  \
    widen(w, i, values, Wider::kF16, 2, source_half(i));         \
  }                                                              \
  void v_cvt_scalef32_pk_bf16_##format(Wave& w, const Inst& i) { \
    widen(w, i, values, Wider::kBf16, 2, source_half(i));        \
  }                                                              \
  void v_cvt_scalef32_f32_##format(Wave& w, const Inst& i) {     \
    widen(w, i, values, Wider::kF32, 1, source_byte(i));         \
  }                                                              \
  void v_cvt_scalef32_f16_##format(Wave& w, const Inst& i) {     \
    widen(w, i, values, Wider::kF16, 1, source_byte(i));         \
  }
WIDEN8(fp8, kFp8Values)
WIDEN8(bf8, kBf8Values)

void v_cvt_scalef32_pk_f32_fp4(Wave& w, const Inst& i) {
  widen(w, i, kFp4Values, Wider::kF32, 2, source_byte(i));
}
void v_cvt_scalef32_pk_f16_fp4(Wave& w, const Inst& i) {
  widen(w, i, kFp4Values, Wider::kF16, 2, source_byte(i));
}
void v_cvt_scalef32_pk_bf16_fp4(Wave& w, const Inst& i) {
  widen(w, i, kFp4Values, Wider::kBf16, 2, source_byte(i));
}

#define WIDEN6(format, values) \
  void v_cvt_scalef32_pk32_f32_##format(Wave& w, const Inst& i) { widen(w, i, values, Wider::kF32, 32, 0); } \
  void v_cvt_scalef32_pk32_f16_##format(Wave& w, const Inst& i) { widen(w, i, values, Wider::kF16, 32, 0); } \
  void v_cvt_scalef32_pk32_bf16_##format(Wave& w, const Inst& i) { widen(w, i, values, Wider::kBf16, 32, 0); }
WIDEN6(fp6, kFp6Values)
WIDEN6(bf6, kBf6Values)

}  // namespace mi350::emu::MI350_EMU_LEVEL
