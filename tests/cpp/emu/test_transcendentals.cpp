// Accuracy of the transcendental instructions against the host's double and long double functions: f32
// within 1 ulp (denormals flushed), f16 correctly rounded or 1 ulp off for all 65536 inputs, f64 within 1
// ulp (1.5 for v_rsq_f64), special values.
#include <cmath>
#include <functional>
#include <random>

#include "exec_fixture.h"

namespace mi350::emu {
namespace {

struct Transcendentals : ExecTest {
  std::mt19937_64 random{21};
};

using Real = std::function<double(double)>;
double turns(double x) { return 2 * M_PI * (x - std::rint(x)); }
const struct {
  const char* name;
  Real f;
  double least, most;
} kFunctions[] = {{"v_exp", [](double x) { return std::exp2(x); }, -INFINITY, INFINITY},
                  {"v_log", [](double x) { return std::log2(x); }, 0, INFINITY},
                  {"v_rcp", [](double x) { return 1 / x; }, -INFINITY, INFINITY},
                  {"v_rsq", [](double x) { return 1 / std::sqrt(x); }, 0, INFINITY},
                  {"v_sqrt", [](double x) { return std::sqrt(x); }, 0, INFINITY},
                  {"v_sin", [](double x) { return std::sin(turns(x)); }, -256, 256},
                  {"v_cos", [](double x) { return std::cos(turns(x)); }, -256, 256}};

double half_value(uint32_t h) {
  const double sign = h & 0x8000 ? -1 : 1;
  const uint32_t exponent = h >> 10 & 31, mantissa = h & 1023;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25)
                          : std::ldexp(mantissa, -24));
}

TEST_F(Transcendentals, SinglePrecisionIsWithinOneUlpEverywhere) {
  for (const auto& f : kFunctions)
    for (int round = 0; round < 400; ++round) {
      for (int l = 0; l < kLanes; ++l) {
        auto x = static_cast<uint32_t>(random());
        if (round % 2) x = (x & 0x807fffff) | (100 + random() % 40) << 23;  // moderate sizes
        reg(1, l) = x;
      }
      run(std::string(f.name) + "_f32", inst(v(3), v(1)));
      for (int l = 0; l < kLanes; ++l) {
        double x = as_float(1, l);
        if (std::fabs(x) < 0x1p-126) x = std::copysign(0, x);
        if (!(x >= f.least && x <= f.most)) continue;
        const double want = f.f(x), got = as_float(3, l);
        const bool trig = f.name[2] == 's' && f.name[3] == 'i';
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(got)) << f.name << x;
          continue;
        }
        if (std::fabs(want) < 0x1p-126) {
          ASSERT_LE(std::fabs(got), 0x1p-126) << f.name << x;
          continue;
        }
        const auto rounded = static_cast<float>(want);
        if (std::isinf(rounded)) {
          ASSERT_EQ(got, rounded) << f.name << x;
          continue;
        }
        const double ulp = std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded);
        ASSERT_LE(std::fabs(got - want), ulp + (trig ? 1e-16 : 0)) << f.name << " of " << x;
      }
    }
}

TEST_F(Transcendentals, HalfPrecisionOfAllInputsIsWithinOneUlp) {
  for (const auto& f : kFunctions)
    for (uint32_t first = 0; first < 65536; first += kLanes) {
      for (uint32_t l = 0; l < kLanes; ++l) reg(1, static_cast<int>(l)) = first + l;
      run(std::string(f.name) + "_f16", inst(v(3), v(1)));
      for (int l = 0; l < kLanes; ++l) {
        const double x = half_value(reg(1, l)), got = half_value(reg(3, l));
        if (std::isnan(x)) {
          ASSERT_TRUE(std::isnan(got)) << f.name;
          continue;
        }
        if (!(x >= f.least && x <= f.most)) continue;
        const double want = f.f(x);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(got)) << f.name << x;
          continue;
        }
        if (std::fabs(want) >= 65520) {
          ASSERT_EQ(got, std::copysign(INFINITY, want)) << f.name << x;
          continue;
        }
        const double ulp = std::ldexp(1, std::max(std::ilogb(want == 0 ? 0x1p-24 : want), -14) - 10);
        ASSERT_LE(std::fabs(got - want), ulp) << f.name << " of " << x;
      }
    }
}

TEST_F(Transcendentals, DoublePrecisionReciprocalsAndRoots) {
  for (int round = 0; round < 300; ++round) {
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t x = (random() & 0x000fffffffffffff) | (2 + random() % 2040) << 52;
      reg(2, l) = static_cast<uint32_t>(x);
      reg(3, l) = static_cast<uint32_t>(x >> 32);
    }
    const struct {
      const char* name;
      long double ulps;
      std::function<long double(long double)> f;
    } cases[] = {{"v_rcp_f64", 1, [](long double x) { return 1 / x; }},
                 {"v_sqrt_f64", 1, [](long double x) { return std::sqrt(x); }},
                 {"v_rsq_f64", 1.5L,
                  [](long double x) { return 1 / std::sqrt(x); }}};  // an estimate of 1e-8 in hardware
    for (const auto& c : cases) {
      run(c.name, inst(v(4), v(2)));
      for (int l = 0; l < kLanes; ++l) {
        const long double want = c.f(as_double(2, l));
        const double rounded = static_cast<double>(want);
        const double ulp = std::nextafter(rounded, INFINITY) - rounded;
        ASSERT_LE(std::fabs(static_cast<long double>(as_double(4, l)) - want), c.ulps * ulp)
            << c.name << as_double(2, l);
      }
    }
  }
}

TEST_F(Transcendentals, SpecialValuesAreTheManuals) {
  const float inf = INFINITY;
  const struct {
    const char* name;
    float x;
    double want;
  } cases[] = {{"v_exp_f32", inf, inf},    {"v_exp_f32", -inf, 0},  {"v_exp_f32", 128, inf},
               {"v_exp_f32", 0, 1},        {"v_log_f32", inf, inf}, {"v_log_f32", 0, -inf},
               {"v_log_f32", -0.0f, -inf}, {"v_log_f32", -1, NAN},  {"v_log_f32", 1, 0},
               {"v_rcp_f32", inf, 0},      {"v_rcp_f32", 0, inf},   {"v_rcp_f32", -0.0f, -inf},
               {"v_rsq_f32", 0, inf},      {"v_rsq_f32", inf, 0},   {"v_rsq_f32", -1, NAN},
               {"v_rsq_f32", -0.0f, -inf}, {"v_sqrt_f32", -1, NAN}, {"v_sqrt_f32", -0.0f, -0.0},
               {"v_sqrt_f32", inf, inf},   {"v_sin_f32", inf, NAN}, {"v_cos_f32", -inf, NAN},
               {"v_sin_f32", 0.25f, 1},    {"v_cos_f32", 0.5f, -1}};
  for (const auto& c : cases) {
    set(1, c.x);
    run(c.name, inst(v(3), v(1)));
    const double got = as_float(3, 0);
    EXPECT_TRUE(std::isnan(c.want) ? std::isnan(got)
                                   : got == c.want && std::signbit(got) == std::signbit(c.want))
        << c.name << " of " << c.x << " is " << got;
  }
}

}  // namespace
}  // namespace mi350::emu
