// Sums, products and fused multiply-adds of f16, f32 and f64 in every rounding and denormal mode against
// exact integer arithmetic.
#include <cmath>
#include <random>

#include "exact_number.h"
#include "exec_fixture.h"

namespace mi350::emu {
namespace {

using exact::Ieee, exact::Number, exact::Parts;

struct ExactArithmetic : ExecTest {
  std::mt19937_64 random{11};

  // Random codes that like the edges: denormals, near overflow, few mantissa bits, neighbours of each
  // other.
  uint64_t code(const Ieee& f, uint64_t other) {
    const int bits = f.exponent_bits + f.mantissa_bits;
    const uint64_t top = (1ull << f.exponent_bits) - 1, sign = (random() & 1) << bits,
                   mantissa_mask = (1ull << f.mantissa_bits) - 1;
    uint64_t exponent = random() % (top + 1), mantissa = random() & mantissa_mask;
    switch (random() % 8) {
      case 0: exponent = random() % 3; break;
      case 1: exponent = top - random() % 3; break;
      case 2: exponent = top / 2 + random() % 5; break;
      case 3: return (other ^ (random() % 4)) ^ (random() & 1) << bits;
      case 4:
        mantissa = (1ull << (random() % static_cast<uint64_t>(f.mantissa_bits))) - (random() & 1);
        break;
      case 5: exponent = (other >> f.mantissa_bits & top) ^ (random() & 1); break;
      default: break;
    }
    return sign | exponent << f.mantissa_bits | (mantissa & mantissa_mask);
  }
  void put(int r, int lane, const Ieee& f, uint64_t v) {
    reg(r, lane) = static_cast<uint32_t>(v);
    if (f.mantissa_bits == 52) reg(r + 1, lane) = static_cast<uint32_t>(v >> 32);
  }
  uint64_t get(int r, int lane, const Ieee& f) {
    if (f.mantissa_bits == 52) return reg(r, lane) | static_cast<uint64_t>(reg(r + 1, lane)) << 32;
    return reg(r, lane) & (f.mantissa_bits == 10 ? 0xffffu : ~0u);
  }
};

bool denormal(const Ieee& f, uint64_t v) {
  const uint64_t top = (1ull << f.exponent_bits) - 1;
  return (v >> f.mantissa_bits & top) == 0;
}
uint64_t sign_bit(const Ieee& f) { return 1ull << (f.exponent_bits + f.mantissa_bits); }
bool is_nan_code(const Ieee& f, uint64_t v) { return exact::parts(f, v).nan; }

enum Operation { kAdd, kMultiply, kFused };
struct Case {
  const char* name;
  Ieee format;
  Operation operation;
};

// a + b, a * b, or a * b + c of codes after the flush of inputs; NaN as ~0.
uint64_t expected(const Ieee& f, Operation op, uint64_t ca, uint64_t cb, uint64_t cc,
                  exact::Direction how, bool flush_in, bool flush_out) {
  const auto flush = [&](uint64_t v) { return flush_in && denormal(f, v) ? v & sign_bit(f) : v; };
  const uint64_t one = (sign_bit(f) >> 1) - (1ull << f.mantissa_bits);
  const Parts a = exact::parts(f, flush(ca)), b = exact::parts(f, op == kAdd ? one : flush(cb)),
              c = exact::parts(f, op == kAdd        ? flush(cb)
                                  : op == kMultiply ? 0
                                                    : flush(cc));
  const uint64_t infinity = sign_bit(f) - (1ull << f.mantissa_bits);
  if (a.nan || b.nan || c.nan) return ~0ull;
  const bool product_negative = a.negative != b.negative;
  if (a.infinite || b.infinite) {
    if ((a.infinite && !b.infinite && b.mantissa == 0) || (b.infinite && !a.infinite && a.mantissa == 0))
      return ~0ull;
    if (c.infinite && c.negative != product_negative) return ~0ull;
    return infinity | (product_negative ? sign_bit(f) : 0);
  }
  if (c.infinite) return infinity | (c.negative ? sign_bit(f) : 0);
  const Number p = exact::product(a, b), sum = op == kMultiply ? p : p + exact::value(c);
  if (sum.zero()) {
    bool negative = product_negative;
    if (op != kMultiply && product_negative != c.negative) negative = how == exact::kDown;
    return negative ? sign_bit(f) : 0;
  }
  const uint64_t result = exact::round_to(sum, f, how);
  return flush_out && denormal(f, result) ? result & sign_bit(f) : result;
}

TEST_F(ExactArithmetic, EveryRoundingAndDenormalModeOfSumsProductsAndFusedForms) {
  const Case cases[] = {
      {"v_add_f32", exact::kSingle, kAdd},      {"v_mul_f32", exact::kSingle, kMultiply},
      {"v_fma_f32", exact::kSingle, kFused},    {"v_add_f64", exact::kDouble, kAdd},
      {"v_mul_f64", exact::kDouble, kMultiply}, {"v_fma_f64", exact::kDouble, kFused},
      {"v_add_f16", exact::kHalf, kAdd},        {"v_mul_f16", exact::kHalf, kMultiply},
      {"v_fma_f16", exact::kHalf, kFused}};
  for (const Case& c : cases)
    for (uint32_t how = 0; how < 4; ++how)
      for (uint32_t denormals = 0; denormals < 4; ++denormals)
        for (int round = 0; round < 20; ++round) {
          const bool single = c.format.mantissa_bits == 23;
          w.mode = 0x300 | how << (single ? 0 : 2) | denormals << (single ? 4 : 6);
          for (int l = 0; l < kLanes; ++l) {
            const uint64_t a = code(c.format, random()), b = code(c.format, a),
                           addend = code(c.format, b);
            put(2, l, c.format, a);
            put(4, l, c.format, b);
            put(6, l, c.format, addend);
          }
          run(c.name, inst(v(8), v(2), v(4), c.operation == kFused ? v(6) : uint16_t{kNoOperand}));
          for (int l = 0; l < kLanes; ++l) {
            const uint64_t a = get(2, l, c.format), b = get(4, l, c.format), addend = get(6, l, c.format);
            const uint64_t want =
                expected(c.format, c.operation, a, b, addend, static_cast<exact::Direction>(how),
                         !(denormals & 1), !(denormals & 2));
            const uint64_t got = get(8, l, c.format);
            ASSERT_TRUE(want == ~0ull ? is_nan_code(c.format, got) : got == want)
                << c.name << " rounding " << how << " denormals " << denormals << std::hex << ": " << a
                << " " << b << " " << addend << " gives " << got << ", expected " << want;
          }
        }
}

// The packed forms are two scalar ones; v_mad and v_mac round the product first.
TEST_F(ExactArithmetic, PackedAndTwiceRoundedHalfForms) {
  const Ieee half = exact::kHalf;
  for (uint32_t how = 0; how < 4; ++how)
    for (int round = 0; round < 60; ++round) {
      const auto direction = static_cast<exact::Direction>(how);
      w.mode = 0x3f0 | how << 2;
      for (int l = 0; l < kLanes; ++l)
        for (int r = 1; r < 4; ++r)
          reg(r, l) = static_cast<uint32_t>(code(half, random()) | code(half, random()) << 16);
      std::memcpy(w.vgpr[4], w.vgpr[3], sizeof w.vgpr[4]);
      std::memcpy(w.vgpr[6], w.vgpr[3], sizeof w.vgpr[6]);
      run("v_pk_fmac_f16", inst(v(4), v(1), v(2)));
      Inst packed = inst(v(5), v(1), v(2), v(3));
      packed.op_sel_hi = 7;
      run("v_pk_fma_f16", packed);
      run("v_mac_f16", inst(v(6), v(1), v(2)));
      run("v_mad_f16", inst(v(7), v(1), v(2), v(3)));
      const auto same = [&](uint64_t want, uint32_t got) {
        return want == ~0ull ? is_nan_code(half, got) : got == want;
      };
      for (int l = 0; l < kLanes; ++l) {
        const auto part = [&](int r, int n) { return reg(r, l) >> (16 * n) & 0xffffull; };
        for (int n = 0; n < 2; ++n) {
          const uint64_t want = expected(half, kFused, part(1, n), part(2, n), part(3, n), direction, false, false);
          ASSERT_TRUE(same(want, static_cast<uint32_t>(part(4, n)))) << n << " " << how;
          ASSERT_TRUE(same(want, static_cast<uint32_t>(part(5, n)))) << n << " " << how;
        }
        const uint64_t product = expected(half, kMultiply, part(1, 0), part(2, 0), 0, direction, false, false);
        const uint64_t sum =
            product == ~0ull ? product : expected(half, kAdd, product, part(3, 0), 0, direction, false, false);
        ASSERT_TRUE(same(sum, static_cast<uint32_t>(part(6, 0)))) << std::hex << part(1, 0) << " " << part(2, 0);
        ASSERT_TRUE(same(sum, static_cast<uint32_t>(part(7, 0)))) << std::hex << part(1, 0) << " " << part(2, 0);
      }
    }
}

// f32 to f16 in all modes, from every neighbourhood: code values, midpoints, and one f32 step to each
// side.
TEST_F(ExactArithmetic, ConversionsToHalfInEveryModeFromEveryNeighbourhood) {
  const Ieee half = exact::kHalf, single = exact::kSingle;
  std::vector<uint32_t> inputs;
  for (uint32_t h = 0; h < 0x7c00; ++h) {
    // exact f32 codes of the half and of the point midway to the next one
    const Parts p = exact::parts(half, h);
    Number at = exact::value(p), middle = at;
    middle.add_magnitude(1, p.exponent - 1);
    for (const Number* x : {&at, &middle}) {
      const auto code =
          x->zero() ? 0 : static_cast<uint32_t>(exact::round_to(*x, single, exact::kNearest));
      for (int step = -1; step <= 1; ++step)
        if (static_cast<int64_t>(code) + step >= 0) inputs.push_back(code + static_cast<uint32_t>(step));
    }
  }
  for (uint32_t how = 0; how < 4; ++how)
    for (uint32_t overflow : {0u, 1u << 23}) {
      w.mode = 0x3f0 | how << 2 | overflow;
      for (size_t first = 0; first < inputs.size(); first += kLanes) {
        for (int l = 0; l < kLanes; ++l)
          reg(1, l) = inputs[(first + static_cast<size_t>(l)) % inputs.size()] | (l % 2 ? 0x80000000 : 0);
        run("v_cvt_f16_f32", inst(v(3), v(1)));
        for (int l = 0; l < kLanes; ++l) {
          const Number x = exact::value(exact::parts(single, reg(1, l)));
          uint64_t want =
              x.zero() ? reg(1, l) >> 16 : exact::round_to(x, half, static_cast<exact::Direction>(how));
          if (overflow && (want & 0x7fff) == 0x7c00) --want;
          ASSERT_EQ(reg(3, l), want) << std::hex << reg(1, l) << " rounding " << how;
        }
      }
    }
}

TEST_F(ExactArithmetic, ConversionsToBrainFloatAndBackAndFromDouble) {
  for (uint32_t b = 0; b < 0x7f80; b += 1) {
    const int l = static_cast<int>(b % kLanes);
    reg(1, l) = b << 16 | (b * 0x9e37u & 0xffff);
    reg(2, l) = b << 16 | 0x8000 | 0x80000000;
    if (l != kLanes - 1) continue;
    run("v_cvt_pk_bf16_f32", inst(v(3), v(1), v(2)));
    for (int k = 0; k < kLanes; ++k)
      for (int n = 0; n < 2; ++n) {
        const Number x = exact::value(exact::parts(exact::kSingle, reg(1 + n, k)));
        const uint64_t want = x.zero() ? 0 : exact::round_to(x, exact::kBrain, exact::kNearest);
        ASSERT_EQ(reg(3, k) >> (16 * n) & 0xffff, want) << std::hex << reg(1 + n, k);
      }
  }
  for (uint32_t how = 0; how < 4; ++how) {
    w.mode = 0x3f0 | how;
    for (int round = 0; round < 100; ++round) {
      for (int l = 0; l < kLanes; ++l) {
        const uint64_t x = (random() & 0x800fffffffffffff) | (768 + random() % 512) << 52;
        put(2, l, exact::kDouble, random() % 3 ? x : x & ~((1ull << 28) - 1));
      }
      run("v_cvt_f32_f64", inst(v(8), v(2)));
      for (int l = 0; l < kLanes; ++l) {
        const Number x = exact::value(exact::parts(exact::kDouble, get(2, l, exact::kDouble)));
        ASSERT_EQ(reg(8, l), exact::round_to(x, exact::kSingle, static_cast<exact::Direction>(how)))
            << how;
      }
    }
  }
}

}  // namespace
}  // namespace mi350::emu
