// Rules of the hardware's float operations that C++ operators do not have: minimum and maximum with NaN and
// signed zeros, median, classes.
#pragma once
#include "convert.h"

namespace mi350::emu::MI350_EMU_LEVEL {

template <class T> constexpr bool is_nan(T x) { return x != x; }
constexpr float quiet(float x) { return float_of(bits_of(x) | 0x00400000); }
constexpr double quiet(double x) { return double_of(bits_of(x) | 0x0008000000000000); }

// v_min, v_max: a number beats NaN, -0 < +0; in IEEE mode a signalling NaN wins, quieted.
template <bool kMax, class T> constexpr T extreme(T a, T b, bool ieee) {
  const auto ua = bits_of(a), ub = bits_of(b);
  const T zero = std::bit_cast<T>(kMax ? ua & ub : ua | ub);
  const T ordered = a == b ? zero : (kMax ? a > b : a < b) ? a : b;
  const T number = is_nan(a) ? b : is_nan(b) ? a : ordered;
  return ieee && is_signalling(ua) ? quiet(a) : ieee && is_signalling(ub) ? quiet(b) : number;
}
template <class T> constexpr T min_number(T a, T b, bool ieee) { return extreme<false>(a, b, ieee); }
template <class T> constexpr T max_number(T a, T b, bool ieee) { return extreme<true>(a, b, ieee); }

template <class T> constexpr T median(T a, T b, T c, bool ieee) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return min_number(min_number(a, b, ieee), c, ieee);
  const T top = max_number(max_number(a, b, ieee), c, ieee);
  return top == a ? max_number(b, c, ieee) : top == b ? max_number(a, c, ieee) : max_number(a, b, ieee);
}

// IEEE 754-2019 minimum and maximum: NaN wins.
template <bool kMax, class T> constexpr T extreme3(T a, T b, T c) {
  if (is_nan(a)) return quiet(a);
  if (is_nan(b)) return quiet(b);
  if (is_nan(c)) return quiet(c);
  return extreme<kMax>(extreme<kMax>(a, b, false), c, false);
}

// Bits of v_cmp_class: sNaN, qNaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
constexpr uint32_t class_of(uint64_t bits, int exponent_bits, int mantissa_bits) {
  const uint64_t mantissa = bits & ((uint64_t{1} << mantissa_bits) - 1);
  const uint64_t top = (uint64_t{1} << exponent_bits) - 1, exponent = bits >> mantissa_bits & top;
  const bool negative = bits >> (mantissa_bits + exponent_bits) & 1;
  if (exponent == top && mantissa) return mantissa >> (mantissa_bits - 1) ? 2 : 1;
  if (exponent == top) return negative ? 4 : 512;
  if (exponent) return negative ? 8 : 256;
  if (mantissa) return negative ? 16 : 128;
  return negative ? 32 : 64;
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
