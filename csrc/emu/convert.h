// Every number format of gfx950 that C++ has no type for, and nothing else.
//
//   format  s e m  bias  specials                       format  s e m  bias  specials
//   f16     1 5 10  15   IEEE                           fp6     1 2 3    1   none
//   bf16    1 8 7  127   IEEE                           bf6     1 3 2    3   none
//   fp8     1 4 3    7   NaN 0x7f/0xff, no infinity     fp4     1 2 1    1   none
//   bf8     1 5 2   15   IEEE                           e8m0    0 8 0  127   NaN 0xff
//
// half_to_float and float_to_half have no branches, so that loops over 64 lanes vectorise; encode<Format>
// covers every rounding. All is constexpr.
#pragma once
#include <bit>
#include <cstdint>

#ifndef MI350_EMU_LEVEL
#define MI350_EMU_LEVEL base
#endif

namespace mi350::emu::MI350_EMU_LEVEL {

enum class Specials : uint8_t { kIeee, kNanOnly, kNone };
struct Format { int exponent_bits, mantissa_bits, bias; Specials specials; };

inline constexpr Format kF16{5, 10, 15, Specials::kIeee};
inline constexpr Format kBf16{8, 7, 127, Specials::kIeee};
inline constexpr Format kFp8{4, 3, 7, Specials::kNanOnly};
inline constexpr Format kBf8{5, 2, 15, Specials::kIeee};
inline constexpr Format kFp6{2, 3, 1, Specials::kNone};
inline constexpr Format kBf6{3, 2, 3, Specials::kNone};
inline constexpr Format kFp4{2, 1, 1, Specials::kNone};

// The order of MODE.FP_ROUND; kRandom adds a 32-bit fraction and truncates.
enum class Rounding : uint8_t { kNearest = 0, kUp = 1, kDown = 2, kZero = 3, kRandom = 4 };

constexpr uint32_t bits_of(float f) { return std::bit_cast<uint32_t>(f); }
constexpr uint64_t bits_of(double d) { return std::bit_cast<uint64_t>(d); }
constexpr float float_of(uint32_t u) { return std::bit_cast<float>(u); }
constexpr double double_of(uint64_t u) { return std::bit_cast<double>(u); }

// 2^e for -1074 <= e <= 1023.
constexpr double power_of_two(int e) {
  return e >= -1022 ? double_of(static_cast<uint64_t>(e + 1023) << 52) : double_of(uint64_t{1} << (e + 1074));
}

constexpr bool is_nan_bits(uint32_t u) { return (u & 0x7fffffff) > 0x7f800000; }
constexpr bool is_signalling(uint32_t u) { return is_nan_bits(u) && !(u & 0x00400000); }
constexpr bool is_signalling(uint64_t u) {
  return (u & ~(1ull << 63)) > 0x7ff0000000000000 && !(u & 0x0008000000000000);
}

constexpr float half_to_float(uint32_t h) {
  const uint32_t magnitude = h & 0x7fff, sign = (h & 0x8000) << 16;
  const uint32_t normal = (magnitude << 13) + 0x38000000;
  // Without its sign: while the host rounds down, x - x is -0.
  const uint32_t denormal =
      bits_of(float_of(0x38800000 | (magnitude << 13)) - float_of(0x38800000)) & 0x7fffffff;
  const uint32_t special = (magnitude << 13) | 0x7f800000;
  const uint32_t finite = magnitude < 0x400 ? denormal : normal;
  return float_of(sign | (magnitude >= 0x7c00 ? special : finite));
}

// Round to nearest even. NaN keeps the top of its payload and becomes quiet.
constexpr uint32_t float_to_half(float f) {
  const uint32_t u = bits_of(f), magnitude = u & 0x7fffffff, sign = (u >> 16) & 0x8000;
  const uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  const uint32_t denormal = bits_of(float_of(magnitude < 0x38800000 ? magnitude : 0) + 0.5f) - 0x3f000000;
  const uint32_t finite = magnitude < 0x38800000 ? denormal : normal;
  const uint32_t limited = magnitude >= 0x477ff000 ? 0x7c00 : finite;
  const uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  return sign | (magnitude > 0x7f800000 ? nan : limited);
}

constexpr float bfloat_to_float(uint32_t h) { return float_of(h << 16); }

constexpr uint32_t float_to_bfloat(float f) {
  const uint32_t u = bits_of(f);
  const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return is_nan_bits(u) ? (u >> 16) | 0x40 : rounded;
}

constexpr float decode(Format f, uint32_t bits) {
  const uint32_t mantissa_mask = (1u << f.mantissa_bits) - 1, exponent_mask = (1u << f.exponent_bits) - 1;
  const uint32_t mantissa = bits & mantissa_mask, exponent = (bits >> f.mantissa_bits) & exponent_mask;
  const bool negative = (bits >> (f.mantissa_bits + f.exponent_bits)) & 1;
  const uint32_t sign = negative ? 0x80000000u : 0;
  const bool top = exponent == exponent_mask;
  if (f.specials == Specials::kIeee && top)
    return float_of(sign | 0x7f800000 | (mantissa << (23 - f.mantissa_bits)));
  if (f.specials == Specials::kNanOnly && top && mantissa == mantissa_mask)
    return float_of(sign | 0x7fc00000);
  const int scale = (exponent ? static_cast<int>(exponent) : 1) - f.bias - f.mantissa_bits;
  const uint32_t integer = mantissa | (exponent ? 1u << f.mantissa_bits : 0);
  const double value = static_cast<double>(integer) * power_of_two(scale);
  return static_cast<float>(negative ? -value : value);
}

constexpr uint32_t largest_finite(Format f) {
  const uint32_t all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.specials == Specials::kIeee) return all - (1u << f.mantissa_bits);
  return f.specials == Specials::kNanOnly ? all - 1 : all;
}

// `scaled` >= 0 to an integer.
constexpr double round_magnitude(double scaled, Rounding how, bool negative, uint32_t random) {
  const double whole = static_cast<double>(static_cast<uint64_t>(scaled));
  const double rest = scaled - whole;
  switch (how) {
    case Rounding::kNearest: {
      const bool odd = static_cast<uint64_t>(whole) & 1;
      return whole + (rest > 0.5 || (rest == 0.5 && odd) ? 1 : 0);
    }
    case Rounding::kUp: return whole + (rest > 0 && !negative ? 1 : 0);
    case Rounding::kDown: return whole + (rest > 0 && negative ? 1 : 0);
    case Rounding::kZero: return whole;
    case Rounding::kRandom: return whole + (rest + random * 0x1p-32 >= 1 ? 1 : 0);
  }
  return whole;
}

// Any rounding into any format, sign bit included. A value beyond the largest finite one becomes that one if
// `saturate` or the format has no special values, else infinity or, without infinities, NaN.
constexpr uint32_t encode(Format f, double value, Rounding how = Rounding::kNearest, bool saturate = false,
                          uint32_t random = 0) {
  const uint64_t u = bits_of(value);
  const bool negative = u >> 63;
  const uint32_t sign = static_cast<uint32_t>(negative) << (f.exponent_bits + f.mantissa_bits);
  const uint32_t all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1, largest = largest_finite(f);
  const uint32_t infinity = all - ((1u << f.mantissa_bits) - 1);
  const uint32_t beyond = f.specials == Specials::kIeee      ? infinity
                          : f.specials == Specials::kNanOnly ? all
                                                             : largest;
  const double magnitude = double_of(u & ~(1ull << 63));
  if (magnitude != magnitude) {
    if (f.specials == Specials::kNone) return sign | largest;
    if (f.specials == Specials::kNanOnly) return sign | all;
    return sign | infinity | (1u << (f.mantissa_bits - 1));
  }
  const int least = 1 - f.bias;
  int exponent = static_cast<int>((u >> 52) & 0x7ff) - 1023;
  if (exponent == 1024) return sign | (saturate ? largest : beyond);
  if (exponent < least) exponent = least;
  const double integer =
      round_magnitude(magnitude * power_of_two(f.mantissa_bits - exponent), how, negative, random);
  // The integer carries the hidden bit, so a denormal or a carry into the next binade lands in the right
  // code.
  const uint32_t code =
      static_cast<uint32_t>(integer) + (static_cast<uint32_t>(exponent - least) << f.mantissa_bits);
  if (code <= largest) return sign | code;
  const bool towards_zero = how == Rounding::kZero || (how == Rounding::kUp && negative) ||
                            (how == Rounding::kDown && !negative);
  return sign | (saturate || towards_zero ? largest : beyond);
}

constexpr double e8m0_to_double(uint32_t bits) {
  return (bits & 0xff) == 0xff ? double_of(0x7ff8000000000000)
                               : power_of_two(static_cast<int>(bits & 0xff) - 127);
}

// Inline constants 240..248 (0.5, 1, 2, 4, their negatives, 1/(2 pi)) as the three float widths hold them.
constexpr uint32_t inline_f16(uint32_t code) {
  constexpr uint32_t table[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
  return table[code - 240];
}
constexpr uint64_t inline_f64(uint32_t code) {
  constexpr double table[8] = {0.5, -0.5, 1, -1, 2, -2, 4, -4};
  return code == 248 ? 0x3fc45f306dc9c882 : bits_of(table[code - 240]);
}

// The nearest float, or the odd one of its two neighbours if inexact: a further rounding to 22 bits or fewer
// then gives what one rounding would have given.
constexpr float round_to_odd(double d) {
  const float nearest = static_cast<float>(d);
  const uint32_t u = bits_of(nearest);
  const double back = nearest;
  const bool fix = back != d && d == d && !(u & 1) && (u & 0x7f800000) != 0x7f800000;
  const double a = d < 0 ? -d : d, b = back < 0 ? -back : back;
  return float_of(fix ? (a > b ? u + 1 : u - 1) : u);
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
