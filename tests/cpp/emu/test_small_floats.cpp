// fp8, bf8, fp6, bf6 and fp4: every code, every neighbourhood, stochastic rounding and the v_cvt_scalef32
// family, all opcodes, selectors and extreme scales. References: values by ldexp, rounding by search
// among all values.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <regex>

#include "exec_fixture.h"

namespace mi350::emu {
namespace {

struct Small {
  int exponent_bits, mantissa_bits, bias;
  enum { kIeee, kNanOnly, kNone } specials;
  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  double value(uint32_t code) const {
    const uint32_t mantissa = code & ((1u << mantissa_bits) - 1), top = (1u << exponent_bits) - 1;
    const uint32_t exponent = code >> mantissa_bits & top;
    const double sign = code >> (bits() - 1) & 1 ? -1 : 1;
    if (specials == kIeee && exponent == top) return mantissa ? NAN : sign * INFINITY;
    if (specials == kNanOnly && exponent == top && mantissa + 1 == 1u << mantissa_bits) return NAN;
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    return sign * (exponent ? std::ldexp(1 + fraction, static_cast<int>(exponent) - bias)
                            : std::ldexp(fraction, 1 - bias));
  }
  uint32_t sign() const { return 1u << (bits() - 1); }
  uint32_t largest() const {
    uint32_t code = sign() - 1;
    while (!std::isfinite(value(code))) --code;
    return code;
  }
  // What a value beyond the largest becomes without saturation.
  uint32_t beyond() const {
    return specials == kIeee      ? (((1u << exponent_bits) - 1) << mantissa_bits)
           : specials == kNanOnly ? sign() - 1
                                  : largest();
  }
};
const Small kF16{5, 10, 15, Small::kIeee}, kBf16{8, 7, 127, Small::kIeee}, kFp8{4, 3, 7, Small::kNanOnly},
    kBf8{5, 2, 15, Small::kIeee}, kFp6{2, 3, 1, Small::kNone}, kBf6{3, 2, 3, Small::kNone},
    kFp4{2, 1, 1, Small::kNone};
const Small& named(const std::string& name) {
  return name == "f16"    ? kF16
         : name == "bf16" ? kBf16
         : name == "fp8"  ? kFp8
         : name == "bf8"  ? kBf8
         : name == "fp6"  ? kFp6
         : name == "bf6"  ? kBf6
                          : kFp4;
}

// The two codes around |x| and how far x is between them, in [0, 1).
struct Between {
  uint32_t low;
  double share;
  bool over;
};
Between between(const Small& f, double magnitude) {
  uint32_t low = 0, high = f.largest() + 1;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (f.value(middle) <= magnitude ? low : high) = middle;
  }
  // Above the largest value the next step would be as wide as the last one.
  const double step =
      low < f.largest() ? f.value(low + 1) - f.value(low) : f.value(low) - f.value(low - 1);
  const double share = (magnitude - f.value(low)) / step;
  return {low, share, share >= 1};
}
uint32_t finish(const Small& f, bool negative, uint32_t code, bool over, bool saturate) {
  if (over || code > f.largest()) code = saturate ? f.largest() : f.beyond();
  return code | (negative ? f.sign() : 0);
}
bool any_nan(const Small& f, double x, uint32_t got) {
  return std::isnan(x) && (f.specials == Small::kNone || std::isnan(f.value(got)));
}
uint32_t nearest(const Small& f, double x, bool saturate) {
  const Between b = between(f, std::fabs(x));
  const bool up = b.share > 0.5 || (b.share == 0.5 && b.low % 2);
  return finish(f, std::signbit(x), b.low + up, b.over, saturate);
}
// A 32-bit random fraction is added below the last place, then the rest is cut off.
uint32_t stochastic(const Small& f, double x, uint32_t random, bool saturate) {
  const Between b = between(f, std::fabs(x));
  const bool up = b.share + random * 0x1p-32 >= 1;
  return finish(f, std::signbit(x), b.low + up, b.over, saturate);
}

struct SmallFloats : ExecTest {
  std::mt19937 random{5};
  static uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
  bool saturates() const { return w.mode >> 23 & 1; }
};

TEST_F(SmallFloats, PackedConversionsOfEveryNeighbourhood) {
  for (const auto& [name, f] : {std::pair{"v_cvt_pk_fp8_f32", kFp8}, std::pair{"v_cvt_pk_bf8_f32", kBf8}})
    for (uint32_t overflow : {0u, 1u << 23}) {
      w.mode = kUsualMode | overflow;
      std::vector<float> inputs{INFINITY, 1e30f};
      for (uint32_t code = 0; code <= f.largest(); ++code) {
        const double low = f.value(code), high = code < f.largest() ? f.value(code + 1) : low * 1.125;
        for (double x : {low, (low + high) / 2})
          for (float neighbour : {std::nextafter(static_cast<float>(x), 0.0f), static_cast<float>(x),
                                  std::nextafter(static_cast<float>(x), INFINITY)})
            inputs.push_back(neighbour);
      }
      for (size_t first = 0; first < inputs.size(); first += kLanes) {
        for (int l = 0; l < kLanes; ++l) {
          reg(1, l) = bits(inputs[(first + static_cast<size_t>(l)) % inputs.size()]);
          reg(2, l) = reg(1, l) ^ 0x80000000;
          reg(3, l) = 0x12345678;
        }
        Inst i = inst(v(3), v(1), v(2));
        i.op_sel = first % 128 ? 8 : 0;
        run(name, i);
        for (int l = 0; l < kLanes; ++l) {
          const uint32_t want =
              nearest(f, as_float(1, l), overflow) | nearest(f, as_float(2, l), overflow) << 8;
          ASSERT_EQ(reg(3, l), i.op_sel ? want << 16 | 0x5678 : 0x12340000 | want)
              << name << " " << as_float(1, l);
        }
      }
    }
}

TEST_F(SmallFloats, EveryCodeWidensFromEveryByte) {
  for (const auto& [name, pair, f] : {std::tuple{"v_cvt_f32_fp8", "v_cvt_pk_f32_fp8", kFp8},
                                      std::tuple{"v_cvt_f32_bf8", "v_cvt_pk_f32_bf8", kBf8}})
    for (uint32_t first = 0; first < 256; first += kLanes) {
      for (uint32_t l = 0; l < kLanes; ++l) reg(1, l) = (first + l) * 0x01010101u ^ 0x00ff5a3cu;
      for (uint8_t select = 0; select < 4; ++select) {
        Inst i = inst(v(3), v(1));
        i.lane_mode = LaneMode::kSdwa;
        i.src0_sel = select;
        run(name, i);
        Inst words = i;
        words.dst = v(4);
        words.src0_sel = static_cast<uint8_t>(4 + select % 2);
        run(pair, words);
        for (int l = 0; l < kLanes; ++l) {
          const auto check = [&](float got, uint32_t code) {
            const double want = f.value(code & 0xff);
            ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                         : got == want && std::signbit(got) == std::signbit(want))
                << name << code;
          };
          check(as_float(3, l), reg(1, l) >> (8 * select));
          check(as_float(4, l), reg(1, l) >> (16 * (select % 2)));
          check(as_float(5, l), reg(1, l) >> (16 * (select % 2) + 8));
        }
      }
    }
}

// How many of the 2^32 random words round up: the rounding is monotone in them, so the threshold says it.
uint64_t count_up(const std::function<bool(uint32_t)>& up) {
  uint64_t low = 0, high = 1ull << 32;  // first word that rounds up
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (up(static_cast<uint32_t>(middle))) high = middle;
    else low = middle + 1;
  }
  return (1ull << 32) - low;
}

TEST_F(SmallFloats, StochasticRoundingGoesUpForExactlyItsShareOfAllRandomWords) {
  const struct {
    const char* name;
    const Small& f;
  } cases[] = {{"v_cvt_sr_fp8_f32", kFp8},
               {"v_cvt_sr_bf8_f32", kBf8},
               {"v_cvt_sr_f16_f32", kF16},
               {"v_cvt_sr_bf16_f32", kBf16}};
  for (const auto& c : cases)
    for (float x : {1.0f, 1.01f, 1.0624f, 3.3f, -7.77f, 0.019f, -0.0021f, 100.5f}) {
      const Between b = between(c.f, std::fabs(x));
      const auto code = [&](uint32_t word) {
        set(1, x);
        set(2, word);
        set(3, 0u);
        run(c.name, inst(v(3), v(1), v(2)));
        return reg(3, 7);
      };
      const uint32_t low = b.low | (x < 0 ? c.f.sign() : 0);
      const uint64_t up = count_up([&](uint32_t word) {
        const uint32_t got = code(word);
        EXPECT_TRUE(got == low || got == low + 1) << c.name << " " << x;
        return got == low + 1;
      });
      EXPECT_EQ(static_cast<double>(up), b.share * 0x1p32) << c.name << " of " << x;
      for (int k = 0; k < 50; ++k) {
        const uint32_t word = random();
        ASSERT_EQ(code(word), stochastic(c.f, x, word, false)) << c.name << " " << x;
      }
    }
}

uint32_t next_random(uint32_t x) { return x << 1 ^ (x & 0x80000000 ? 197u : 0u); }

// One opcode of the family, read from its name.
struct Scaled {
  std::string name, to, from;
  bool stochastic = false;
  int elements = 1;
  bool two_groups = false;
  bool narrows() const { return to.size() == 3 && to != "f32" && to != "f16"; }
};
std::vector<Scaled> family() {
  std::vector<Scaled> all;
  const std::regex form("v_cvt_scalef32_(sr_)?(pk_|pk32_|2xpk16_)?([a-z0-9]+)_([a-z0-9]+)");
  for (size_t n = 0; n < kIsaRows; ++n) {
    std::cmatch m;
    if (!std::regex_match(kIsa[n].mnemonic, m, form)) continue;
    Scaled s;
    s.name = kIsa[n].mnemonic;
    s.stochastic = m[1].matched;
    s.elements = m[2] == "pk_" ? 2 : m[2] == "pk32_" || m[2] == "2xpk16_" ? 32 : 1;
    s.two_groups = m[2] == "2xpk16_";
    s.to = m[3];
    s.from = m[4];
    all.push_back(s);
  }
  return all;
}
int width(const std::string& type) { return type == "f32" ? 32 : named(type).bits(); }
double decoded(const std::string& type, uint32_t code) {
  return type == "f32" ? static_cast<double>(std::bit_cast<float>(code)) : named(type).value(code);
}

struct ScaledConversions : SmallFloats {
  static constexpr int kSource = 32, kSecond = 64, kDestination = 96, kScale = 20, kRandom = 21;

  uint32_t take(int base, int lane, int at, int count) {
    uint32_t code = 0;
    for (int n = 0; n < count; ++n) code |= (reg(base + (at + n) / 32, lane) >> ((at + n) % 32) & 1) << n;
    return code;
  }
  uint32_t source_code(const Scaled& s, int lane, int e, int first_bit) {
    const int bits = width(s.from);
    if (s.two_groups) return reg((e % 2 ? kSecond : kSource) + e / 2, lane);
    return take(kSource, lane, first_bit + e * bits, bits);
  }
  void fill_source(const Scaled& s, int lane, int scale) {
    const bool f32 = s.from == "f32", f16 = s.from == "f16";
    for (int r = 0; r < 32; ++r)
      for (int base : {kSource, kSecond}) {
        uint32_t x = random();
        const uint32_t near =
            static_cast<uint32_t>(std::clamp(scale + static_cast<int>(random() % 20) - 10, 0, 254));
        if (f32) x = (x & 0x807fffff) | near << 23;
        if (f32 && random() % 4 == 0) x &= 0xfff00000;
        if (s.from == "bf16") x = (x & 0x807f807f) | near << 23 | near << 7;
        if (f16 && random() % 3 == 0) x &= 0xff00ff00;
        if (random() % 40 == 0)
          x = f16                   ? 0x7c00fe00
              : s.from == "bf16"    ? 0x7f80ffc0
              : f32 && random() % 2 ? 0x7fc00000
                                    : 0xff800000;
        reg(base + r, lane) = x;
      }
  }
  void check_narrow(const Scaled& s, uint8_t op_sel, uint32_t scale) {
    const Small& f = named(s.to);
    const int total = s.elements * f.bits(), shift = total == 8    ? 8 * (op_sel >> 2)
                                                     : total == 16 ? 16 * (op_sel >> 3)
                                                                   : 0;
    for (int l = 0; l < kLanes; ++l) {
      uint32_t word = reg(kRandom, l);
      for (int e = 0; e < s.elements; ++e, word = next_random(word)) {
        const bool pair_of_f32 = s.elements == 2 && s.from == "f32" && !s.stochastic;
        const uint32_t raw = pair_of_f32 ? reg(e ? kSecond : kSource, l) : source_code(s, l, e, 0);
        const double x =
            scale == 255 ? NAN : std::ldexp(decoded(s.from, raw), 127 - static_cast<int>(scale));
        const uint32_t got = take(kDestination, l, shift + e * f.bits(), f.bits());
        if (any_nan(f, x, got)) continue;
        const uint32_t want = std::isinf(x)  ? finish(f, x < 0, 0, true, saturates())
                              : s.stochastic ? stochastic(f, x, word, saturates())
                                             : nearest(f, x, saturates());
        ASSERT_EQ(got, want) << s.name << " scale " << scale << " element " << e << " of " << x
                             << " op_sel " << int{op_sel};
      }
      if (total < 32) {
        const uint32_t mask = ((1u << total) - 1) << shift;
        ASSERT_EQ(reg(kDestination, l) & ~mask, 0xdeadbeefu & ~mask) << s.name << ": the other bits stay";
      }
    }
  }
  void check_widen(const Scaled& s, uint8_t op_sel, uint32_t scale) {
    const int bits = width(s.from), result = width(s.to);
    const int first = s.elements == 32          ? 0
                      : s.elements * bits == 16 ? 16 * (op_sel & 1)
                                                : 8 * (op_sel & 3);
    const int shift = s.elements * result == 16 ? 16 * (op_sel >> 3) : 0;
    for (int l = 0; l < kLanes; ++l)
      for (int e = 0; e < s.elements; ++e) {
        const double x = scale == 255 ? NAN
                                      : std::ldexp(decoded(s.from, source_code(s, l, e, first)),
                                                   static_cast<int>(scale) - 127);
        const uint32_t got = take(kDestination, l, shift + e * result, result);
        if (std::isnan(x)) {
          ASSERT_TRUE(std::isnan(decoded(s.to, got))) << s.name;
          continue;
        }
        const uint32_t want = s.to == "f32"   ? bits_of_f32(x)
                              : std::isinf(x) ? finish(named(s.to), x < 0, 0, true, false)
                                              : nearest(named(s.to), x, false);
        ASSERT_EQ(got, want) << s.name << " scale " << scale << " element " << e << " of " << x
                             << " op_sel " << int{op_sel};
      }
  }
  static uint32_t bits_of_f32(double x) { return bits(static_cast<float>(x)); }
};

TEST_F(ScaledConversions, EveryOpcodeSelectorAndScale) {
  const auto all = family();
  ASSERT_EQ(all.size(), 49u);
  for (const Scaled& s : all)
    for (uint32_t overflow : {0u, 1u << 23})
      for (uint32_t scale : {0u, 1u, 100u, 126u, 127u, 130u, 200u, 254u, 255u})
        for (int op_sel = 0; op_sel < 16; op_sel += s.elements == 32 ? 16 : s.narrows() ? 4 : 1) {
          w.mode = kUsualMode | overflow;
          for (int l = 0; l < kLanes; ++l) {
            fill_source(s, l, static_cast<int>(scale));
            reg(kRandom, l) = random();
            reg(kScale, l) = scale << 23 | (random() & 0x807fffff);
            for (int r = 0; r < 32; ++r) reg(kDestination + r, l) = 0xdeadbeef;
          }
          const bool pair_of_f32 = s.narrows() && s.elements == 2 && s.from == "f32" && !s.stochastic;
          Inst i = inst(v(kDestination), v(kSource), v(kScale));
          if (s.stochastic) i.src[1] = v(kRandom);
          if (pair_of_f32 || s.two_groups) i.src[1] = v(kSecond);
          if (s.stochastic || pair_of_f32 || s.two_groups) i.src[2] = v(kScale);
          i.op_sel = static_cast<uint8_t>(op_sel);
          // Where the destination is narrow the high op_sel bits name its part, else the low ones the
          // source's.
          run(s.name, i);
          if (s.narrows()) check_narrow(s, i.op_sel, scale);
          else check_widen(s, i.op_sel, scale);
          if (HasFatalFailure()) return;
        }
}

}  // namespace
}  // namespace mi350::emu
