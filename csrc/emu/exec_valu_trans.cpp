// Transcendental vector operations. Computed in double by branch-free series, so that the loops vectorise and
// the f32 results are within 1 ulp; f32 forms flush denormal inputs and results as the hardware does.
#include <cmath>

#include "exec_lanes.h"
#include "float_rules.h"
#include "two_over_pi.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

float flush_f32(float x) { return (bits_of(x) & 0x7f800000) ? x : float_of(bits_of(x) & 0x80000000); }

// 2^x for the float range: n = round(x), Taylor series of e^(f ln 2) on |f| <= 1/2.
double exp2_series(double x) {
  const double limited = x < -1000 ? -1000 : x > 1000 ? 1000 : x;
  constexpr double kRound = 0x1.8p52;
  const double n = (limited + kRound) - kRound, t = (limited - n) * 0.69314718055994530942;
  double sum = 1 + t * (1.0 / 9);
  for (int k = 8; k >= 1; --k) sum = 1 + t * sum * (1.0 / k);
  const auto exponent = static_cast<int64_t>(bits_of(limited + kRound) - bits_of(kRound));
  return sum * double_of(static_cast<uint64_t>(exponent + 1023) << 52);
}
float exp2_value(float x) { return is_nan(x) ? quiet(x) : static_cast<float>(exp2_series(x)); }

// log2 of a positive normal double: m in [sqrt(1/2), sqrt(2)), s = (m-1)/(m+1), 2/ln 2 (s + s^3/3 + ...).
double log2_series(double x) {
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const uint64_t shifted = bits_of(x) - kRootHalf;
  const auto exponent = static_cast<int64_t>(shifted) >> 52;
  const double m = double_of((shifted & 0x000fffffffffffff) + kRootHalf);
  const double s = (m - 1) / (m + 1), q = s * s;
  double sum = 1.0 / 17;
  for (int k = 15; k >= 1; k -= 2) sum = sum * q + 1.0 / k;
  return static_cast<double>(exponent) + sum * s * 2.8853900817779268147;
}
float log2_value(float x) {
  const float logarithm = static_cast<float>(log2_series(x > 0 ? static_cast<double>(x) : 1.0));
  const float special = x == 0 ? float_of(0xff800000) : float_of(0x7fc00000);
  const float number = x == float_of(0x7f800000) ? x : logarithm;
  return x > 0 ? number : is_nan(x) ? quiet(x) : special;
}

// The argument counts turns; beyond 256 of them the hardware gives up.
float sin_value(float x) {
  if (!std::isfinite(x)) return float_of(0x7fc00000);
  if (std::fabs(x) > 256) return 0.0f;
  const double turns = static_cast<double>(x) - std::rint(static_cast<double>(x));
  return static_cast<float>(std::sin(turns * 6.28318530717958647693));
}
float cos_value(float x) {
  if (!std::isfinite(x)) return float_of(0x7fc00000);
  if (std::fabs(x) > 256) return 1.0f;
  const double turns = static_cast<double>(x) - std::rint(static_cast<double>(x));
  return static_cast<float>(std::cos(turns * 6.28318530717958647693));
}

float rsqrt_value(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }

// Bits [53 * segment + shift, +53) of 2/pi, as a double scaled for large arguments.
double pi_segment(double x, uint32_t segment) {
  const int exponent = static_cast<int>(bits_of(x) >> 52 & 0x7ff);
  int shift = static_cast<int>(segment & 31) * 53;
  if (exponent > 1077) shift += exponent - 1077;
  uint64_t digits = 0;
  for (int n = 0; n < 53; ++n) {
    const int at = shift + n;
    const uint64_t bit = at < kTwoOverPiBits ? kTwoOverPi[at / 64] >> (63 - at % 64) & 1 : 0;
    digits = digits << 1 | bit;
  }
  int scale = -53 - shift;
  if (exponent >= 1968) scale += 128;
  return std::ldexp(static_cast<double>(digits), scale);
}

}  // namespace

#define TRANS(base, expression) \
  void base##_f32(Wave& w, const Inst& i) { \
    lanes<F32, F32>(w, i, [](float x) { const float a = flush_f32(x); return flush_f32(expression); }); \
  } \
  void base##_f16(Wave& w, const Inst& i) { lanes<F16, F16>(w, i, [](float a) { return expression; }); }

TRANS(v_exp, exp2_value(a))
TRANS(v_log, log2_value(a))
TRANS(v_rcp, 1.0f / a)
TRANS(v_rsq, rsqrt_value(a))
TRANS(v_sqrt, __builtin_sqrtf(a))
TRANS(v_sin, sin_value(a))
TRANS(v_cos, cos_value(a))
void v_rcp_iflag_f32(Wave& w, const Inst& i) { v_rcp_f32(w, i); }
void v_exp_legacy_f32(Wave& w, const Inst& i) { v_exp_f32(w, i); }
void v_log_legacy_f32(Wave& w, const Inst& i) { v_log_f32(w, i); }
void v_rcp_f64(Wave& w, const Inst& i) { lanes<F64, F64>(w, i, [](double a) { return 1.0 / a; }); }
void v_rsq_f64(Wave& w, const Inst& i) {
  lanes<F64, F64>(w, i, [](double a) { return 1.0 / __builtin_sqrt(a); });
}
void v_sqrt_f64(Wave& w, const Inst& i) { lanes<F64, F64>(w, i, [](double a) { return __builtin_sqrt(a); }); }
void v_trig_preop_f64(Wave& w, const Inst& i) {
  lanes<F64, F64, U32>(w, i, [](double a, uint32_t segment) { return pi_segment(a, segment); });
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
