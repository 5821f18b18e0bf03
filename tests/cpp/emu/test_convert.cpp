// convert.h against formulas that share nothing with it: values by ldexp, rounding by search over all codes.
#include "convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace mi350::emu::base {
namespace {

struct Named { const char* name; Format format; int bits; };
const Named kFormats[] = {{"f16", kF16, 16}, {"bf16", kBf16, 16}, {"fp8", kFp8, 8}, {"bf8", kBf8, 8},
                          {"fp6", kFp6, 6},  {"bf6", kBf6, 6},    {"fp4", kFp4, 4}};

double formula(const Format& f, uint32_t code) {
  const uint32_t mantissa = code % (1u << f.mantissa_bits);
  const uint32_t exponent = code / (1u << f.mantissa_bits) % (1u << f.exponent_bits);
  const double sign = code / (1u << (f.mantissa_bits + f.exponent_bits)) % 2 ? -1 : 1;
  const bool top = exponent == (1u << f.exponent_bits) - 1;
  if (f.specials == Specials::kIeee && top)
    return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (f.specials == Specials::kNanOnly && top && mantissa == (1u << f.mantissa_bits) - 1) return std::nan("");
  const double fraction = std::ldexp(mantissa, -f.mantissa_bits);
  return exponent ? sign * std::ldexp(1 + fraction, static_cast<int>(exponent) - f.bias)
                  : sign * std::ldexp(fraction, 1 - f.bias);
}

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

// Finite non-negative values in the order of their codes.
std::vector<double> magnitudes(const Named& n) {
  std::vector<double> values;
  for (uint32_t code = 0; code <= largest_finite(n.format); ++code) values.push_back(formula(n.format, code));
  return values;
}

uint32_t nearest_code(const std::vector<double>& values, double x) {
  const auto above = std::lower_bound(values.begin(), values.end(), x);
  if (above == values.begin()) return 0;
  const auto high = static_cast<uint32_t>(above - values.begin()), low = high - 1;
  const double up = *above - x, down = x - values[low];
  return up < down || (up == down && high % 2 == 0) ? high : low;
}

TEST(Convert, EveryCodeOfEveryFormatDecodesToItsFormula) {
  for (const Named& n : kFormats)
    for (uint32_t code = 0; code < (1u << n.bits); ++code)
      ASSERT_TRUE(same(decode(n.format, code), formula(n.format, code))) << n.name << " code " << code;
}

TEST(Convert, EveryHalfWidensToItsFormula) {
  for (uint32_t h = 0; h < 65536; ++h) ASSERT_TRUE(same(half_to_float(h), formula(kF16, h))) << h;
  for (uint32_t h = 0; h < 65536; ++h) ASSERT_TRUE(same(bfloat_to_float(h), formula(kBf16, h))) << h;
}

TEST(Convert, EveryNumberSurvivesTheRoundTrip) {
  for (const Named& n : kFormats)
    for (uint32_t code = 0; code < (1u << n.bits); ++code) {
      const double value = formula(n.format, code);
      if (std::isnan(value)) continue;
      ASSERT_EQ(encode(n.format, value), code) << n.name;
      if (n.bits != 16) continue;
      ASSERT_EQ(n.name[0] == 'b' ? float_to_bfloat(value) : float_to_half(value), code) << n.name;
    }
}

TEST(Convert, MidpointsRoundToEvenAndTheirNeighboursDoNot) {
  for (const Named& n : kFormats) {
    const auto values = magnitudes(n);
    for (uint32_t low = 0; low + 1 < values.size(); ++low) {
      const double middle = (values[low] + values[low + 1]) / 2;
      const double less = std::nextafter(static_cast<float>(middle), 0.0f);
      const double more = std::nextafter(static_cast<float>(middle), std::numeric_limits<float>::infinity());
      const uint32_t even = low % 2 ? low + 1 : low, sign = 1u << (n.bits - 1);
      ASSERT_EQ(encode(n.format, middle), even) << n.name << " above code " << low;
      ASSERT_EQ(encode(n.format, -middle), even | sign) << n.name << " above code " << low;
      ASSERT_EQ(encode(n.format, less), low) << n.name;
      ASSERT_EQ(encode(n.format, more), low + 1) << n.name;
      if (n.bits != 16 || static_cast<float>(middle) != middle) continue;
      const auto narrow = [&](double x) { return n.name[0] == 'b' ? float_to_bfloat(x) : float_to_half(x); };
      ASSERT_EQ(narrow(middle), even) << n.name << " above code " << low;
      ASSERT_EQ(narrow(less), low) << n.name;
      ASSERT_EQ(narrow(more), low + 1) << n.name;
    }
  }
}

TEST(Convert, RandomValuesRoundAsASearchOverAllCodesSays) {
  std::mt19937 random(1);
  for (const Named& n : kFormats) {
    const auto values = magnitudes(n);
    std::uniform_real_distribution<double> exponent(std::log2(values[1]) - 3, std::log2(values.back()));
    for (int k = 0; k < 20000; ++k) {
      const auto x = static_cast<float>(std::exp2(exponent(random)));
      if (x > values.back()) continue;
      const uint32_t expected = nearest_code(values, x);
      ASSERT_EQ(encode(n.format, x), expected) << n.name << " " << x;
      if (n.bits != 16) continue;
      ASSERT_EQ(n.name[0] == 'b' ? float_to_bfloat(x) : float_to_half(x), expected) << x;
    }
  }
}

TEST(Convert, DirectedRoundingGoesToTheNeighbourOnItsSide) {
  for (const Named& n : kFormats) {
    const auto values = magnitudes(n);
    const uint32_t sign = 1u << (n.bits - 1);
    for (uint32_t low = 0; low + 1 < values.size(); ++low) {
      const double x = values[low] + 0.75 * (values[low + 1] - values[low]);
      ASSERT_EQ(encode(n.format, x, Rounding::kZero), low) << n.name;
      ASSERT_EQ(encode(n.format, x, Rounding::kDown), low) << n.name;
      ASSERT_EQ(encode(n.format, x, Rounding::kUp), low + 1) << n.name;
      ASSERT_EQ(encode(n.format, -x, Rounding::kZero), low | sign) << n.name;
      ASSERT_EQ(encode(n.format, -x, Rounding::kDown), (low + 1) | sign) << n.name;
      ASSERT_EQ(encode(n.format, -x, Rounding::kUp), low | sign) << n.name;
    }
  }
}

TEST(Convert, RandomRoundingIsUpForTheShareOfTheDistance) {
  for (const Named& n : kFormats) {
    const auto values = magnitudes(n);
    const auto low = static_cast<uint32_t>(values.size() / 2);
    const double x = values[low] + 0.25 * (values[low + 1] - values[low]);
    ASSERT_EQ(encode(n.format, x, Rounding::kRandom, false, 0xbfffffff), low) << n.name;
    ASSERT_EQ(encode(n.format, x, Rounding::kRandom, false, 0xc0000000), low + 1) << n.name;
    ASSERT_EQ(encode(n.format, values[low], Rounding::kRandom, false, 0xffffffff), low) << n.name;
  }
}

TEST(Convert, OverflowIsInfinityNanOrTheLargestAsTheFormatHasThem) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(encode(kF16, 65519.0), 0x7bffu);
  EXPECT_EQ(encode(kF16, 65520.0), 0x7c00u);
  EXPECT_EQ(encode(kF16, -1e6, Rounding::kZero), 0xfbffu);
  EXPECT_EQ(encode(kF16, 1e6, Rounding::kNearest, true), 0x7bffu);
  EXPECT_EQ(encode(kBf16, 3.4e38f), 0x7f80u);
  EXPECT_EQ(encode(kFp8, 464.0), 0x7eu);
  EXPECT_EQ(encode(kFp8, 465.0), 0x7fu);
  EXPECT_EQ(encode(kFp8, -1e9, Rounding::kNearest, true), 0xfeu);
  EXPECT_EQ(encode(kFp8, infinity), 0x7fu);
  EXPECT_EQ(encode(kBf8, 61440.0), 0x7cu);
  EXPECT_EQ(encode(kBf8, infinity), 0x7cu);
  EXPECT_EQ(encode(kBf8, infinity, Rounding::kNearest, true), 0x7bu);
  EXPECT_EQ(encode(kFp6, 100.0), 0x1fu);
  EXPECT_EQ(encode(kBf6, -100.0), 0x3fu);
  EXPECT_EQ(encode(kFp4, 1e30), 7u);
  EXPECT_EQ(float_to_half(65519.0f), 0x7bffu);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00u);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::infinity()), 0xfc00u);
}

TEST(Convert, NanStaysNanWhereThereIsOne) {
  const float nan = std::nanf("");
  EXPECT_EQ(float_to_half(nan) & 0x7e00, 0x7e00u);
  EXPECT_EQ(float_to_half(std::bit_cast<float>(0x7f800001u)) & 0x7e00, 0x7e00u);
  EXPECT_EQ(float_to_bfloat(std::bit_cast<float>(0xff800001u)), 0xffc0u);
  EXPECT_EQ(encode(kFp8, nan), 0x7fu);
  EXPECT_EQ(encode(kBf8, nan) & 0x7e, 0x7eu);
  EXPECT_TRUE(std::isnan(e8m0_to_double(255)));
}

TEST(Convert, BlockScalesArePowersOfTwo) {
  for (uint32_t x = 0; x < 255; ++x) ASSERT_EQ(e8m0_to_double(x), std::ldexp(1.0, static_cast<int>(x) - 127));
}

TEST(Convert, RoundToOddThenHalfEqualsOneRounding) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-26, 15);
  const auto values = magnitudes(kFormats[0]);
  for (int k = 0; k < 50000; ++k) {
    // Just beside a midpoint, closer than float can tell.
    const auto code = static_cast<uint32_t>(random() % (values.size() - 1));
    const double middle = (values[code] + values[code + 1]) / 2;
    const double x = middle * (1 + (random() % 2 ? 1 : -1) * 0x1p-40);
    ASSERT_EQ(float_to_half(round_to_odd(x)), nearest_code(values, x)) << code;
    const double y = std::exp2(exponent(random));
    ASSERT_EQ(float_to_half(round_to_odd(y)), nearest_code(values, y)) << y;
  }
}

TEST(Convert, InlineConstantsAreTheNumbersTheyName) {
  const double named[] = {0.5, -0.5, 1, -1, 2, -2, 4, -4};
  for (uint32_t n = 0; n < 8; ++n) {
    EXPECT_EQ(half_to_float(inline_f16(240 + n)), named[n]);
    EXPECT_EQ(std::bit_cast<double>(inline_f64(240 + n)), named[n]);
  }
  EXPECT_NEAR(half_to_float(inline_f16(248)), 0.15915494309189535, 1e-4);
  EXPECT_EQ(std::bit_cast<double>(inline_f64(248)), 0.15915494309189532);
}

}  // namespace
}  // namespace mi350::emu::base
