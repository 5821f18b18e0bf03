// Integer vector operations against 128-bit arithmetic with and without CLAMP, sums of absolute
// differences, and minimum, maximum and median of floats by the manual's rules.
#include <cmath>
#include <functional>
#include <random>

#include "exec_fixture.h"

namespace mi350::emu {
namespace {

using Wide = __int128;

struct ExactIntegers : ExecTest {
  std::mt19937 random{9};
  uint32_t edge() {
    constexpr uint32_t kEdges[] = {0,        1,          2,          0x7f,       0x80,       0xff,
                                   0x7fff,   0x8000,     0xffff,     0x10000,    0x7fffff,   0x800000,
                                   0xffffff, 0x7fffffff, 0x80000000, 0xffffffff, 0xffff8000, 0x00ff00ff};
    return random() % 3 ? random() : kEdges[random() % std::size(kEdges)];
  }
};

struct Kind {
  int bits;
  bool is_signed;
};
constexpr Kind kU32{32, false}, kI32{32, true}, kU16{16, false}, kI16{16, true}, kU24{24, false},
    kI24{24, true};
Wide read(Kind k, uint32_t x) {
  const Wide low = x & ((1ull << k.bits) - 1);
  return k.is_signed && low >> (k.bits - 1) ? low - (Wide{1} << k.bits) : low;
}
Wide limit(Kind k, Wide x) {
  const Wide low = k.is_signed ? -(Wide{1} << (k.bits - 1)) : 0, high = low + (Wide{1} << k.bits) - 1;
  return x < low ? low : x > high ? high : x;
}

struct IntegerCase {
  const char* name;
  Kind result, a, b, c;
  std::function<Wide(Wide, Wide, Wide)> exact;
};

TEST_F(ExactIntegers, ArithmeticWrapsAndClampSaturates) {
  const auto add = [](Wide a, Wide b, Wide) { return a + b; };
  const auto sub = [](Wide a, Wide b, Wide) { return a - b; };
  const auto reversed = [](Wide a, Wide b, Wide) { return b - a; };
  const auto mul = [](Wide a, Wide b, Wide) { return a * b; };
  const auto mad = [](Wide a, Wide b, Wide c) { return a * b + c; };
  const IntegerCase cases[] = {{"v_add_u32", kU32, kU32, kU32, kU32, add},
                               {"v_sub_u32", kU32, kU32, kU32, kU32, sub},
                               {"v_subrev_u32", kU32, kU32, kU32, kU32, reversed},
                               {"v_add_i32", kI32, kI32, kI32, kI32, add},
                               {"v_sub_i32", kI32, kI32, kI32, kI32, sub},
                               {"v_add_u16", kU16, kU16, kU16, kU16, add},
                               {"v_sub_u16", kU16, kU16, kU16, kU16, sub},
                               {"v_subrev_u16", kU16, kU16, kU16, kU16, reversed},
                               {"v_add_i16", kI16, kI16, kI16, kI16, add},
                               {"v_sub_i16", kI16, kI16, kI16, kI16, sub},
                               {"v_mad_u16", kU16, kU16, kU16, kU16, mad},
                               {"v_mad_i16", kI16, kI16, kI16, kI16, mad},
                               {"v_mad_legacy_u16", kU16, kU16, kU16, kU16, mad},
                               {"v_mad_legacy_i16", kI16, kI16, kI16, kI16, mad},
                               {"v_mad_u32_u16", kU32, kU16, kU16, kU32, mad},
                               {"v_mad_i32_i16", kI32, kI16, kI16, kI32, mad},
                               {"v_mad_u32_u24", kU32, kU24, kU24, kU32, mad},
                               {"v_mad_i32_i24", kI32, kI24, kI24, kI32, mad},
                               {"v_mul_u32_u24", kU32, kU24, kU24, kU32, mul},
                               {"v_mul_i32_i24", kI32, kI24, kI24, kI32, mul}};
  for (const IntegerCase& c : cases)
    for (bool clamp : {false, true})
      for (int round = 0; round < 40; ++round) {
        for (int l = 0; l < kLanes; ++l)
          for (int r = 1; r < 4; ++r) reg(r, l) = edge();
        Inst i = inst(v(4), v(1), v(2), v(3));
        i.clamp = clamp;
        run(c.name, i);
        for (int l = 0; l < kLanes; ++l) {
          const Wide exact = c.exact(read(c.a, reg(1, l)), read(c.b, reg(2, l)), read(c.c, reg(3, l)));
          const uint32_t mask = c.result.bits == 32 ? ~0u : 0xffff;
          ASSERT_EQ(reg(4, l) & mask,
                    static_cast<uint32_t>(clamp ? limit(c.result, exact) : exact) & mask)
              << c.name << (clamp ? " clamp " : " ") << std::hex << reg(1, l) << " " << reg(2, l) << " "
              << reg(3, l);
        }
      }
}

TEST_F(ExactIntegers, PackedArithmeticSaturatesEachHalf) {
  const struct {
    const char* name;
    Kind k;
    std::function<Wide(Wide, Wide, Wide)> exact;
  } cases[] = {{"v_pk_add_u16", kU16, [](Wide a, Wide b, Wide) { return a + b; }},
               {"v_pk_sub_u16", kU16, [](Wide a, Wide b, Wide) { return a - b; }},
               {"v_pk_add_i16", kI16, [](Wide a, Wide b, Wide) { return a + b; }},
               {"v_pk_sub_i16", kI16, [](Wide a, Wide b, Wide) { return a - b; }},
               {"v_pk_mad_u16", kU16, [](Wide a, Wide b, Wide c) { return a * b + c; }},
               {"v_pk_mad_i16", kI16, [](Wide a, Wide b, Wide c) { return a * b + c; }},
               {"v_pk_mul_lo_u16", kU16, [](Wide a, Wide b, Wide) { return a * b; }},
               {"v_pk_max_i16", kI16, [](Wide a, Wide b, Wide) { return a > b ? a : b; }},
               {"v_pk_min_u16", kU16, [](Wide a, Wide b, Wide) { return a < b ? a : b; }}};
  for (const auto& c : cases)
    for (bool clamp : {false, true})
      for (int select = 0; select < 64; ++select) {
        for (int l = 0; l < kLanes; ++l)
          for (int r = 1; r < 4; ++r) reg(r, l) = edge();
        Inst i = inst(v(4), v(1), v(2), v(3));
        i.clamp = clamp;
        i.op_sel = static_cast<uint8_t>(select & 7);
        i.op_sel_hi = static_cast<uint8_t>(select >> 3);
        run(c.name, i);
        for (int l = 0; l < kLanes; ++l)
          for (int half = 0; half < 2; ++half) {
            const int bits = half ? i.op_sel_hi : i.op_sel;
            const auto source = [&](int n) {
              return read(c.k, reg(1 + n, l) >> (bits >> n & 1 ? 16 : 0) & 0xffff);
            };
            const Wide exact = c.exact(source(0), source(1), source(2));
            ASSERT_EQ(reg(4, l) >> (16 * half) & 0xffff,
                      static_cast<uint32_t>(clamp ? limit(c.k, exact) : exact) & 0xffff)
                << c.name << " half " << half << " select " << select;
          }
      }
}

uint32_t byte(uint64_t x, int n) { return static_cast<uint32_t>(x >> (8 * n)) % 256; }
// Bytes of the reference that are 0 are left out of the masked sums.
uint32_t distance(uint32_t a, uint32_t reference, bool masked) {
  uint32_t sum = 0;
  for (int n = 0; n < 4; ++n)
    if (!masked || byte(reference, n))
      sum += static_cast<uint32_t>(
          std::abs(static_cast<int>(byte(a, n)) - static_cast<int>(byte(reference, n))));
  return sum;
}

TEST_F(ExactIntegers, SumsOfAbsoluteDifferencesTruncateOrSaturate) {
  for (int round = 0; round < 60; ++round) {
    const bool clamp = round % 2;
    const auto run = [&](std::string_view name, Inst i) {
      i.clamp = clamp;
      ExecTest::run(name, i);
    };
    const auto fit = [&](Wide x, int bits) {
      return static_cast<uint32_t>(clamp ? limit({bits, false}, x) : x & ((Wide{1} << bits) - 1));
    };
    for (int l = 0; l < kLanes; ++l)
      for (int r = 1; r < 12; ++r) reg(r, l) = random() % 4 ? random() : random() & 0xff00ff00;
    run("v_sad_u8", inst(v(20), v(1), v(2), v(3)));
    run("v_sad_hi_u8", inst(v(21), v(1), v(2), v(3)));
    run("v_msad_u8", inst(v(22), v(1), v(2), v(3)));
    run("v_sad_u16", inst(v(23), v(1), v(2), v(3)));
    run("v_sad_u32", inst(v(24), v(1), v(2), v(3)));
    run("v_qsad_pk_u16_u8", inst(v(26), v(4), v(2), v(6)));
    run("v_mqsad_pk_u16_u8", inst(v(28), v(4), v(2), v(6)));
    run("v_mqsad_u32_u8", inst(v(30), v(4), v(2), v(8)));
    for (int l = 0; l < kLanes; ++l) {
      const uint32_t a = reg(1, l), b = reg(2, l), c = reg(3, l);
      ASSERT_EQ(reg(20, l), fit(Wide{distance(a, b, false)} + c, 32));
      ASSERT_EQ(reg(21, l), fit((Wide{distance(a, b, false)} << 16) + c, 32));
      ASSERT_EQ(reg(22, l), fit(Wide{distance(a, b, true)} + c, 32));
      const auto far = [](int64_t x, int64_t y) { return static_cast<uint32_t>(x > y ? x - y : y - x); };
      ASSERT_EQ(reg(23, l), fit(Wide{far(a & 0xffff, b & 0xffff)} + far(a >> 16, b >> 16) + c, 32));
      ASSERT_EQ(reg(24, l), fit(Wide{far(a, b)} + c, 32));
      const uint64_t window = reg(4, l) | static_cast<uint64_t>(reg(5, l)) << 32;
      for (int n = 0; n < 4; ++n) {
        const auto part = static_cast<uint32_t>(window >> (8 * n));
        const uint32_t addend = reg(6 + n / 2, l) >> (16 * (n % 2)) & 0xffff;
        ASSERT_EQ(reg(26 + n / 2, l) >> (16 * (n % 2)) & 0xffff,
                  fit(distance(part, b, false) + addend, 16))
            << n;
        ASSERT_EQ(reg(28 + n / 2, l) >> (16 * (n % 2)) & 0xffff,
                  fit(distance(part, b, true) + addend, 16))
            << n;
        ASSERT_EQ(reg(30 + n, l), fit(Wide{distance(part, b, true)} + reg(8 + n, l), 32)) << n;
      }
    }
  }
}

constexpr uint32_t kSpecials[] = {0,          0x80000000, 1,          0x80000001, 0x3f800000,
                                  0xbf800000, 0x40000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                  0xffc00123, 0x7f800001, 0xff812345};
bool nan(uint32_t x) { return (x & 0x7fffffff) > 0x7f800000; }
bool signalling(uint32_t x) { return nan(x) && !(x & 0x400000); }
float number(uint32_t x) { return std::bit_cast<float>(x); }

// The manual's order of cases for v_min and v_max.
uint32_t extreme(bool max, uint32_t a, uint32_t b, bool ieee) {
  if (ieee && signalling(a)) return a | 0x400000;
  if (ieee && signalling(b)) return b | 0x400000;
  if (nan(a)) return b;
  if (nan(b)) return a;
  const bool zeros = number(a) == 0 && number(b) == 0;
  if (zeros && a != b) return max ? 0 : 0x80000000;
  return max ? (number(a) > number(b) ? a : b) : (number(a) < number(b) ? a : b);
}
uint32_t three(bool max, uint32_t a, uint32_t b, uint32_t c, bool ieee) {
  return extreme(max, extreme(max, a, b, ieee), c, ieee);
}
uint32_t median(uint32_t a, uint32_t b, uint32_t c, bool ieee) {
  if (nan(a) || nan(b) || nan(c)) return three(false, a, b, c, ieee);
  const float top = number(three(true, a, b, c, ieee));
  if (top == number(a)) return extreme(true, b, c, ieee);
  return top == number(b) ? extreme(true, a, c, ieee) : extreme(true, a, b, ieee);
}

TEST_F(ExactIntegers, FloatMinimaMaximaAndMediansOfEverySpecialValue) {
  for (uint32_t mode : {0xf0u, 0x1f0u, 0x2f0u, 0x3f0u})
    for (bool clamp : {false, true})
      for (uint32_t a : kSpecials)
        for (uint32_t b : kSpecials) {
          w.mode = mode;
          const bool ieee = mode & 0x200, dx10 = mode & 0x100;
          set(1, a);
          set(2, b);
          for (int l = 0; l < kLanes; ++l)
            reg(3, l) = kSpecials[static_cast<size_t>(l) % std::size(kSpecials)];
          const auto finish = [&](uint32_t x) -> uint32_t {
            if (!clamp) return x;
            if (nan(x)) return dx10 ? 0 : x;
            return number(x) > 1 ? 0x3f800000 : number(x) > 0 ? x : 0;
          };
          Inst two = inst(v(4), v(1), v(2)), all = inst(v(4), v(1), v(2), v(3));
          two.clamp = all.clamp = clamp;
          for (bool max : {false, true}) {
            run(max ? "v_max_f32" : "v_min_f32", two);
            ASSERT_EQ(reg(4, 0), finish(extreme(max, a, b, ieee)))
                << std::hex << a << " " << b << " mode " << mode;
            run(max ? "v_max3_f32" : "v_min3_f32", all);
            for (int l = 0; l < 13; ++l) ASSERT_EQ(reg(4, l), finish(three(max, a, b, reg(3, l), ieee)));
          }
          run("v_med3_f32", all);
          for (int l = 0; l < 13; ++l)
            ASSERT_EQ(reg(4, l), finish(median(a, b, reg(3, l), ieee)))
                << std::hex << a << " " << b << " " << reg(3, l) << " mode " << mode;
        }
}

}  // namespace
}  // namespace mi350::emu
