// Arithmetic that clang compiled for gfx950 gives the host's bits.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "convert.h"
#include "emulated_device.h"

namespace mi350::emu {
namespace {

using test::Buffer;

constexpr uint32_t kCount = 1000;

float to_half(float x) { return base::half_to_float(base::float_to_half(x)); }

struct FloatResult { const char* what; std::function<float(float, float)> host; };
const FloatResult kFloatResults[] = {
    {"x / y", [](float x, float y) { return x / y; }},
    {"sqrt x", [](float x, float) { return std::sqrt(x); }},
    {"floor x", [](float x, float) { return std::floor(x); }},
    {"rint x", [](float x, float) { return std::rint(x); }},
    {"trunc y", [](float, float y) { return std::trunc(y); }},
    {"min", [](float x, float y) { return std::fmin(x, y); }},
    {"max", [](float x, float y) { return std::fmax(x, y); }},
    {"fma", [](float x, float y) { return std::fma(x, y, x); }},
    {"to f16", [](float x, float) { return to_half(x); }},
    {"to bf16", [](float x, float) { return base::bfloat_to_float(base::float_to_bfloat(x)); }},
    {"f64 x / y", [](float x, float y) { return static_cast<float>(static_cast<double>(x) / y); }},
    {"f16 x / y",
     [](float x, float y) {
       return to_half(base::round_to_odd(static_cast<double>(to_half(x)) / to_half(y)));
     }},
    {"select", [](float x, float y) { return x < y ? x : -y; }},
    {"ldexp", [](float x, float) { return std::ldexp(x, -3); }},
    {"copysign", [](float x, float y) { return std::copysign(x, y); }},
    {"f64 sqrt",
     [](float x, float) { return static_cast<float>(std::sqrt(std::fabs(static_cast<double>(x)))); }},
    {"packed fma 0", [](float x, float y) { return std::fma(x, y, y); }},
    {"packed fma 1", [](float x, float y) { return std::fma(y, y, x); }},
    {"packed f16 add 0", [](float x, float y) { return to_half(to_half(x) + to_half(y)); }},
    {"packed f16 add 1", [](float, float y) { return to_half(to_half(y) + to_half(y)); }},
};

TEST(CompiledArithmetic, FloatsGiveTheHostsBits) {
  std::mt19937 random(3);
  std::vector<float> a(kCount), b(kCount);
  const auto number = [&](uint32_t i) {
    const float exponent =
        std::uniform_real_distribution<float>(-30, 30)(random) / static_cast<float>(i % 3 + 1);
    return std::exp2(exponent) * (random() % 2 ? 1.0f : -1.0f);
  };
  for (uint32_t i = 0; i < kCount; ++i) { a[i] = number(i); b[i] = number(i); }
  a[0] = 0;
  b[1] = 0;
  a[2] = std::numeric_limits<float>::infinity();
  b[3] = std::numeric_limits<float>::quiet_NaN();
  a[4] = 1e-40f;
  a[5] = 3e38f;
  constexpr size_t kResults = std::size(kFloatResults);
  Buffer<float> da(a), db(b), out(kCount * kResults);
  ASSERT_EQ(test::launch(test::kernel("arithmetic", "float_arithmetic"), {16}, da.get(), db.get(), out.get(),
                         kCount),
            test::kSuccess)
      << test::report();
  const std::vector<float> got = out.read();
  for (size_t k = 0; k < kResults; ++k)
    for (uint32_t i = 0; i < kCount; ++i) {
      const float expected = kFloatResults[k].host(a[i], b[i]), result = got[k * kCount + i];
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(result) : result == expected)
          << kFloatResults[k].what << " of " << a[i] << " and " << b[i] << ": " << result << ", expected "
          << expected;
    }
}

struct IntegerResult {
  const char* what;
  std::function<uint64_t(uint32_t, uint32_t, uint64_t, uint64_t)> host;
};
#define INT_RESULT(what, e) \
  {what, []([[maybe_unused]] uint32_t x, [[maybe_unused]] uint32_t y, [[maybe_unused]] uint64_t w, \
            [[maybe_unused]] uint64_t v) -> uint64_t { \
     [[maybe_unused]] const auto sx = static_cast<int32_t>(x), sy = static_cast<int32_t>(y); \
     return static_cast<uint64_t>(e); \
   }}
const IntegerResult kIntegerResults[] = {
    INT_RESULT("x / y", x / (y | 1)),
    INT_RESULT("x % y", x % (y | 1)),
    INT_RESULT("signed x / y", int64_t{sx} / (sy | 1)),
    INT_RESULT("signed x % y", int64_t{sx} % (sy | 1)),
    INT_RESULT("popcount", std::popcount(x)),
    INT_RESULT("leading zeros", std::countl_zero(x | 1)),
    INT_RESULT("trailing zeros", std::countr_zero(x | 0x80000000u)),
    INT_RESULT("64-bit quotient", w / (v | 1)),
    INT_RESULT("64-bit remainder", w % (v | 1)),
    INT_RESULT("64-bit product", w * v >> 32),
    INT_RESULT("64-bit arithmetic shift", static_cast<int64_t>(w) >> (y & 63)),
    INT_RESULT("64-bit left shift", w << (y & 63) >> 32),
    INT_RESULT("byte swap", __builtin_bswap32(x)),
    INT_RESULT("rotate", std::rotl(x, 7)),
    INT_RESULT("16-bit product", static_cast<int16_t>(x) * static_cast<int16_t>(y)),
    INT_RESULT("16-bit sum", static_cast<uint16_t>(x + y)),
    INT_RESULT("minimum", sx < sy ? sx : sy),
    INT_RESULT("high product", int64_t{sx} * sy >> 32),
    INT_RESULT("64-bit difference", (w - v) >> 32),
    INT_RESULT("64-bit comparison", static_cast<int64_t>(w) < static_cast<int64_t>(v)),
    INT_RESULT("sum of bytes", static_cast<int8_t>(x) + static_cast<int8_t>(x >> 16)),
    INT_RESULT("through f32, signed", static_cast<int64_t>(static_cast<float>(sx))),
    INT_RESULT("through f32, unsigned", static_cast<uint64_t>(static_cast<float>(x))),
};

TEST(CompiledArithmetic, IntegersGiveTheHostsBits) {
  std::mt19937 random(4);
  std::vector<uint32_t> a(kCount), b(kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    a[i] = random() >> random() % 32;
    b[i] = random() >> random() % 32;
    if (i % 5 == 0) a[i] = ~a[i];
  }
  constexpr size_t kResults = std::size(kIntegerResults);
  Buffer<uint32_t> da(a), db(b), out(kCount * kResults);
  ASSERT_EQ(test::launch(test::kernel("arithmetic", "integer_arithmetic"), {16}, da.get(), db.get(),
                         out.get(), kCount),
            test::kSuccess)
      << test::report();
  const std::vector<uint32_t> got = out.read();
  for (size_t k = 0; k < kResults; ++k)
    for (uint32_t i = 0; i < kCount; ++i) {
      const uint64_t w = uint64_t{a[i]} << 32 | b[i],
                     v = uint64_t{b[i]} << 32 | static_cast<uint32_t>(a[i] * 7u);
      EXPECT_EQ(got[k * kCount + i], static_cast<uint32_t>(kIntegerResults[k].host(a[i], b[i], w, v)))
          << kIntegerResults[k].what << " of " << a[i] << " and " << b[i];
    }
}

}  // namespace
}  // namespace mi350::emu
