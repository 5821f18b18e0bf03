// f16 vector arithmetic. Operands arrive as float and the result is rounded to f16 once: a float sum or
// product of two halves rounds to the right half; fused forms go through double and round to odd.
#include <cmath>

#include "exec_lanes.h"
#include "float_rules.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

bool ieee_mode(const Wave& w) { return w.mode & kModeIeee; }

float fused(float a, float b, float c) { return round_to_odd(static_cast<double>(a) * b + c); }
// Multiply and add with the product rounded to f16 first, both by MODE.
Rounding rounding_of(const Wave& w) { return static_cast<Rounding>(w.mode >> 2 & 3); }
float separate(float a, float b, float c, Rounding how) {
  if (how == Rounding::kNearest) return half_to_float(float_to_half(a * b)) + c;
  return half_to_float(encode(kF16, static_cast<double>(a) * b, how)) + c;
}

float fract(float x) { return std::fmin(x - std::floor(x), 0x1.ffcp-1f); }
float scale(float x, int e) {
  const int limited = e < -60 ? -60 : e > 60 ? 60 : e;
  return x * static_cast<float>(power_of_two(limited));
}
float mantissa_part(float x) {
  int e;
  return std::isfinite(x) ? std::frexp(x, &e) : x;
}
int32_t exponent_part(float x) {
  int e = 0;
  if (std::isfinite(x) && x != 0) std::frexp(x, &e);
  return e;
}

float fixup(float quotient, float denominator, float numerator) {
  const float sign = std::signbit(denominator) != std::signbit(numerator) ? -1.0f : 1.0f;
  if (is_nan(numerator)) return quiet(numerator);
  if (is_nan(denominator)) return quiet(denominator);
  if ((denominator == 0 && numerator == 0) || (std::isinf(denominator) && std::isinf(numerator)))
    return float_of(0xffc00000);
  if (denominator == 0 || std::isinf(numerator)) return sign * float_of(0x7f800000);
  if (std::isinf(denominator) || numerator == 0) return sign * 0.0f;
  return std::copysign(quotient, sign);
}

}  // namespace

#define HALF1(name, expression) \
  void name(Wave& w, const Inst& i) { lanes<F16, F16>(w, i, [](float a) { return expression; }); }
#define HALF2(name, expression)                                              \
  void name(Wave& w, const Inst& i) {                                        \
    lanes<F16, F16, F16>(w, i, [](float a, float b) { return expression; }); \
  }
#define HALF3(name, d, expression) \
  void name(Wave& w, const Inst& i) { \
    const bool ieee = ieee_mode(w); \
    lanes<d, F16, F16, F16>(w, i, [ieee](float a, float b, float c) { (void)ieee; return expression; }); \
  }
#define HALF_SEPARATE(name, d) \
  void name(Wave& w, const Inst& i) { \
    const Rounding how = rounding_of(w); \
    lanes<d, F16, F16, F16>(w, i, [how](float a, float b, float c) { return separate(a, b, c, how); }); \
  }

HALF2(v_add_f16, a + b)
HALF2(v_sub_f16, a - b)
HALF2(v_subrev_f16, b - a)
HALF2(v_mul_f16, a * b)
void v_min_f16(Wave& w, const Inst& i) {
  const bool ieee = ieee_mode(w);
  lanes<F16, F16, F16>(w, i, [ieee](float a, float b) { return min_number(a, b, ieee); });
}
void v_max_f16(Wave& w, const Inst& i) {
  const bool ieee = ieee_mode(w);
  lanes<F16, F16, F16>(w, i, [ieee](float a, float b) { return max_number(a, b, ieee); });
}
HALF3(v_min3_f16, F16, min_number(min_number(a, b, ieee), c, ieee))
HALF3(v_max3_f16, F16, max_number(max_number(a, b, ieee), c, ieee))
HALF3(v_med3_f16, F16, median(a, b, c, ieee))
HALF3(v_fma_f16, F16Keep, fused(a, b, c))
HALF3(v_fma_legacy_f16, F16, fused(a, b, c))
HALF_SEPARATE(v_mad_f16, F16Keep)
HALF_SEPARATE(v_mad_legacy_f16, F16)
HALF_SEPARATE(v_madmk_f16, F16Keep)
HALF_SEPARATE(v_madak_f16, F16Keep)
void v_mac_f16(Wave& w, const Inst& i) {
  const Rounding how = rounding_of(w);
  lanes<F16Keep, F16, F16, Old<F16>>(w, i,
                                     [how](float a, float b, float d) { return separate(a, b, d, how); });
}
HALF3(v_div_fixup_f16, F16Keep, fixup(a, b, c))
HALF3(v_div_fixup_legacy_f16, F16, fixup(a, b, c))
HALF1(v_floor_f16, __builtin_floorf(a))
HALF1(v_ceil_f16, __builtin_ceilf(a))
HALF1(v_trunc_f16, __builtin_truncf(a))
HALF1(v_rndne_f16, __builtin_rintf(a))
HALF1(v_fract_f16, fract(a))
HALF1(v_frexp_mant_f16, mantissa_part(a))
void v_frexp_exp_i16_f16(Wave& w, const Inst& i) {
  lanes<I16, F16>(w, i, [](float a) { return exponent_part(a); });
}
void v_ldexp_f16(Wave& w, const Inst& i) {
  lanes<F16, F16, I16>(w, i, [](float a, int32_t e) { return scale(a, e); });
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
