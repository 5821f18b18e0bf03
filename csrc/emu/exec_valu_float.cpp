// f32 and f64 vector arithmetic: sums, products, fused forms, minima, rounding to integers, exponents, and
// the three division steps.
#include <cmath>
#include <limits>

#include "exec_lanes.h"
#include "float_rules.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

bool ieee_mode(const Wave& w) { return w.mode & kModeIeee; }

// x * 2^e with one rounding, for any e.
float scale(float x, int e) {
  const int limited = e < -600 ? -600 : e > 600 ? 600 : e;
  return static_cast<float>(static_cast<double>(x) * power_of_two(limited));
}
double scale(double x, int e) { return std::ldexp(x, e); }

float fract(float x) { return std::fmin(x - std::floor(x), 0x1.fffffep-1f); }
double fract(double x) { return std::fmin(x - std::floor(x), 0x1.fffffffffffffp-1); }

int exponent_field(float x) { return static_cast<int>(bits_of(x) >> 23 & 0xff); }
int exponent_field(double x) { return static_cast<int>(bits_of(x) >> 52 & 0x7ff); }

template <class T> T mantissa_part(T x) {
  int e;
  return std::isfinite(x) ? std::frexp(x, &e) : x;
}
template <class T> int32_t exponent_part(T x) {
  int e = 0;
  if (std::isfinite(x) && x != 0) std::frexp(x, &e);
  return e;
}

// Parameters of the division steps: exponent distance near overflow, scaling, smallest numerator exponent,
// exponent distance of a vanishing quotient.
template <class T> struct Division;
template <> struct Division<float> {
  static constexpr int kFar = 96, kScale = 64, kTiny = 23, kVanish = -150, kTop = 255, kBias = 127;
};
template <> struct Division<double> {
  static constexpr int kFar = 768, kScale = 128, kTiny = 53, kVanish = -1075, kTop = 2047, kBias = 1023;
};

template <class T> bool denormal(T x) { return x != 0 && exponent_field(x) == 0; }

// v_div_scale: `x` is the denominator or the numerator, scaled so that the Newton steps stay in range;
// `later` asks v_div_fmas to undo it in the quotient.
template <class T> T scale_operand(T x, T denominator, T numerator, bool& later) {
  using P = Division<T>;
  const bool is_denominator = bits_of(x) == bits_of(denominator),
             is_numerator = bits_of(x) == bits_of(numerator);
  later = false;
  if (numerator == 0 || denominator == 0) return std::numeric_limits<T>::quiet_NaN();
  if (!std::isfinite(numerator) || !std::isfinite(denominator)) return x;
  const T inverse = T(1) / denominator, quotient = numerator / denominator;
  if (exponent_field(numerator) - exponent_field(denominator) >= P::kFar) {
    later = true;
    return is_denominator ? scale(x, P::kScale) : x;
  }
  if (denormal(denominator)) return scale(x, P::kScale);
  const bool small_inverse = denormal(inverse) || inverse == 0,
             small_quotient = denormal(quotient) || quotient == 0;
  if (small_inverse && small_quotient) {
    later = true;
    return is_denominator ? scale(x, -P::kScale) : x;
  }
  if (small_inverse) return scale(x, -P::kScale);
  if (small_quotient) {
    later = true;
    return is_numerator ? scale(x, P::kScale) : x;
  }
  return exponent_field(numerator) <= P::kTiny ? scale(x, P::kScale) : x;
}

// v_min_f32, v_max_f32: the rules for NaN and for zeros of unlike sign only where a lane needs them.
template <bool kMax> void extreme_f32(Wave& w, const Inst& i) {
  const bool ieee = ieee_mode(w);
  Scope s(w, i);
  with_sources<F32, F32>(s, [&](const auto& a, const auto& b) {
    uint32_t special = 0;
    for (int l = 0; l < kLanes; ++l)
      special |= uint32_t{is_nan(a[l])} | uint32_t{is_nan(b[l])} | uint32_t{a[l] == b[l] && bits_of(a[l]) != bits_of(b[l])};
    if (special == 0)
      run_lanes<F32>(s, [](float x, float y) { return (kMax ? x > y : x < y) ? x : y; }, a, b);
    else
      run_lanes<F32>(s, [ieee](float x, float y) { return extreme<kMax>(x, y, ieee); }, a, b);
  });
}

template <class K> void div_scale(Wave& w, const Inst& i) {
  using T = typename K::T;
  const uint64_t mask = lane_mask<K, K, K>(w, i, [](T x, T d, T n) {
    bool later;
    scale_operand(x, d, n, later);
    return later;
  });
  lanes<K, K, K, K>(w, i, [](T x, T d, T n) {
    bool later;
    return scale_operand(x, d, n, later);
  });
  write_s64(w, i.sdst, mask);
}

// The quotient's own size says which way v_div_scale went.
template <class T> T undo_scale(T fused, T estimate, bool later) {
  if (!later) return fused;
  return scale(fused,
               exponent_field(estimate) > Division<T>::kBias ? Division<T>::kScale : -Division<T>::kScale);
}

template <class K> void div_fmas(Wave& w, const Inst& i) {
  using T = typename K::T;
  Scope s(w, i);
  s.round_by_mode(std::is_same_v<K, F32>);
  const uint64_t vcc = w.vcc();
  with_sources<K, K, K>(s, [&](const auto& a, const auto& b, const auto& c) {
    alignas(64) std::array<T, kLanes> value;
    for (int l = 0; l < kLanes; ++l) value[l] = undo_scale<T>(std::fma(a[l], b[l], c[l]), c[l], vcc >> l & 1);
    if constexpr (is_64<K>) {
      Wide out = std::bit_cast<Wide>(value);
      commit_wide(s, out, true);
    } else {
      Lanes out = std::bit_cast<Lanes>(value);
      commit_lanes(s, out, Repr::kFloat32, false);
    }
  });
}

template <class T> T fixup(T quotient, T denominator, T numerator) {
  using P = Division<T>;
  const T sign = std::signbit(denominator) != std::signbit(numerator) ? T(-1) : T(1);
  if (is_nan(numerator)) return quiet(numerator);
  if (is_nan(denominator)) return quiet(denominator);
  if ((denominator == 0 && numerator == 0) || (std::isinf(denominator) && std::isinf(numerator)))
    return std::copysign(std::numeric_limits<T>::quiet_NaN(), T(-1));
  if (denominator == 0 || std::isinf(numerator)) return sign * std::numeric_limits<T>::infinity();
  if (std::isinf(denominator) || numerator == 0) return sign * T(0);
  if (exponent_field(numerator) - exponent_field(denominator) < P::kVanish) return sign * T(0);
  // The steps overflowed on the way: so does the quotient.
  return is_nan(quotient) ? sign * std::numeric_limits<T>::infinity() : std::copysign(quotient, sign);
}

}  // namespace

#define FLOAT1(name, kind, expression) \
  void name(Wave& w, const Inst& i) { lanes<kind, kind>(w, i, [](auto a) { return expression; }); }
#define FLOAT2(name, kind, expression)                                        \
  void name(Wave& w, const Inst& i) {                                         \
    lanes<kind, kind, kind>(w, i, [](auto a, auto b) { return expression; }); \
  }
#define FLOAT3(name, kind, expression) \
  void name(Wave& w, const Inst& i) { \
    lanes<kind, kind, kind, kind>(w, i, [](auto a, auto b, auto c) { return expression; }); \
  }
#define FLOAT2_IEEE(name, kind, expression) \
  void name(Wave& w, const Inst& i) { \
    const bool ieee = ieee_mode(w); \
    lanes<kind, kind, kind>(w, i, [ieee](auto a, auto b) { return expression; }); \
  }
#define FLOAT3_IEEE(name, kind, expression) \
  void name(Wave& w, const Inst& i) { \
    const bool ieee = ieee_mode(w); \
    lanes<kind, kind, kind, kind>(w, i, [ieee](auto a, auto b, auto c) { return expression; }); \
  }

FLOAT2(v_add_f32, F32, a + b)
FLOAT2(v_sub_f32, F32, a - b)
FLOAT2(v_subrev_f32, F32, b - a)
FLOAT2(v_mul_f32, F32, a * b)
FLOAT2(v_mul_legacy_f32, F32, a == 0 || b == 0 ? 0.0f : a * b)
FLOAT3(v_fma_f32, F32, __builtin_fmaf(a, b, c))
FLOAT3(v_fmamk_f32, F32, __builtin_fmaf(a, b, c))
FLOAT3(v_fmaak_f32, F32, __builtin_fmaf(a, b, c))
void v_fmac_f32(Wave& w, const Inst& i) {
  lanes<F32, F32, F32, Old<F32>>(w, i, [](float a, float b, float d) { return __builtin_fmaf(a, b, d); });
}
void v_min_f32(Wave& w, const Inst& i) { extreme_f32<false>(w, i); }
void v_max_f32(Wave& w, const Inst& i) { extreme_f32<true>(w, i); }
FLOAT3_IEEE(v_min3_f32, F32, min_number(min_number(a, b, ieee), c, ieee))
FLOAT3_IEEE(v_max3_f32, F32, max_number(max_number(a, b, ieee), c, ieee))
FLOAT3_IEEE(v_med3_f32, F32, median(a, b, c, ieee))
FLOAT3(v_minimum3_f32, F32, extreme3<false>(a, b, c))
FLOAT3(v_maximum3_f32, F32, extreme3<true>(a, b, c))
FLOAT1(v_floor_f32, F32, __builtin_floorf(a))
FLOAT1(v_ceil_f32, F32, __builtin_ceilf(a))
FLOAT1(v_trunc_f32, F32, __builtin_truncf(a))
FLOAT1(v_fract_f32, F32, fract(a))
FLOAT1(v_frexp_mant_f32, F32, mantissa_part(a))
void v_frexp_exp_i32_f32(Wave& w, const Inst& i) {
  lanes<I32, F32>(w, i, [](float a) { return exponent_part(a); });
}
void v_ldexp_f32(Wave& w, const Inst& i) {
  lanes<F32, F32, I32>(w, i, [](float a, int32_t e) { return scale(a, e); });
}
// To nearest whatever MODE says.
void v_rndne_f32(Wave& w, const Inst& i) {
  Scope s(w, i);
  with_sources<F32>(s,
                    [&](const auto& a) { run_lanes<F32>(s, [](float x) { return __builtin_rintf(x); }, a); });
}

FLOAT2(v_add_f64, F64, a + b)
FLOAT2(v_mul_f64, F64, a * b)
FLOAT3(v_fma_f64, F64, __builtin_fma(a, b, c))
void v_fmac_f64(Wave& w, const Inst& i) {
  lanes<F64, F64, F64, Old<F64>>(w, i, [](double a, double b, double d) { return __builtin_fma(a, b, d); });
}
FLOAT2_IEEE(v_min_f64, F64, min_number(a, b, ieee))
FLOAT2_IEEE(v_max_f64, F64, max_number(a, b, ieee))
FLOAT1(v_floor_f64, F64, __builtin_floor(a))
FLOAT1(v_ceil_f64, F64, __builtin_ceil(a))
FLOAT1(v_trunc_f64, F64, __builtin_trunc(a))
FLOAT1(v_fract_f64, F64, fract(a))
FLOAT1(v_frexp_mant_f64, F64, mantissa_part(a))
void v_frexp_exp_i32_f64(Wave& w, const Inst& i) {
  lanes<I32, F64>(w, i, [](double a) { return exponent_part(a); });
}
void v_ldexp_f64(Wave& w, const Inst& i) {
  lanes<F64, F64, I32>(w, i, [](double a, int32_t e) { return scale(a, e); });
}
void v_rndne_f64(Wave& w, const Inst& i) {
  Scope s(w, i);
  with_sources<F64>(s,
                    [&](const auto& a) { run_lanes<F64>(s, [](double x) { return __builtin_rint(x); }, a); });
}

void v_div_scale_f32(Wave& w, const Inst& i) { div_scale<F32>(w, i); }
void v_div_scale_f64(Wave& w, const Inst& i) { div_scale<F64>(w, i); }
void v_div_fmas_f32(Wave& w, const Inst& i) { div_fmas<F32>(w, i); }
void v_div_fmas_f64(Wave& w, const Inst& i) { div_fmas<F64>(w, i); }
FLOAT3(v_div_fixup_f32, F32, fixup(a, b, c))
FLOAT3(v_div_fixup_f64, F64, fixup(a, b, c))

// Cube maps: face 0..5 by the largest coordinate, the face's two coordinates, twice the major one.
namespace {
struct Cube { float face, s, t, major; };
Cube cube(float x, float y, float z) {
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  if (az >= ax && az >= ay) return z < 0 ? Cube{5, -x, -y, 2 * z} : Cube{4, x, -y, 2 * z};
  if (ay >= ax) return y < 0 ? Cube{3, x, -z, 2 * y} : Cube{2, x, z, 2 * y};
  return x < 0 ? Cube{1, z, -y, 2 * x} : Cube{0, -z, -y, 2 * x};
}
}  // namespace
FLOAT3(v_cubeid_f32, F32, cube(a, b, c).face)
FLOAT3(v_cubesc_f32, F32, cube(a, b, c).s)
FLOAT3(v_cubetc_f32, F32, cube(a, b, c).t)
FLOAT3(v_cubema_f32, F32, cube(a, b, c).major)

}  // namespace mi350::emu::MI350_EMU_LEVEL
