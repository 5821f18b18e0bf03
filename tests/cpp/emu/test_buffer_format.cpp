// Buffer format loads and stores and structured addressing. The expected values come from bit strings and
// long double formulas written down here, not from buffer_format.h.
#include <cmath>

#include "exec_memory_fixture.h"

namespace mi350::emu {
namespace {

using BufferFormat = ExecMemoryTest;

// Components of each data format from the lowest bit up.
const std::vector<int> kBits[15] = {{},
                                    {8},
                                    {16},
                                    {8, 8},
                                    {32},
                                    {16, 16},
                                    {11, 11, 10},
                                    {10, 11, 11},
                                    {2, 10, 10, 10},
                                    {10, 10, 10, 2},
                                    {8, 8, 8, 8},
                                    {32, 32},
                                    {16, 16, 16, 16},
                                    {32, 32, 32},
                                    {32, 32, 32, 32}};
enum { kUnorm, kSnorm, kUscaled, kSscaled, kUint, kSint, kReserved, kFloat };

uint64_t bits_at(const uint8_t* p, int at, int count) {
  uint64_t v = 0;
  for (int n = 0; n < count; ++n) v |= static_cast<uint64_t>(p[(at + n) / 8] >> ((at + n) % 8) & 1) << n;
  return v;
}
int64_t as_signed(uint64_t v, int bits) {
  return v >> (bits - 1) ? static_cast<int64_t>(v) - (int64_t{1} << bits) : static_cast<int64_t>(v);
}
// 16-, 11- and 10-bit floats: exponent of 5 bits, the rest mantissa, a sign at 16 bits only.
long double small_float(uint64_t v, int bits) {
  const int mantissa_bits = bits == 16 ? 10 : bits - 5;
  const auto mantissa = static_cast<long double>(v & ((1u << mantissa_bits) - 1));
  const int exponent = static_cast<int>(v >> mantissa_bits & 31);
  const long double sign = bits == 16 && v >> 15 ? -1 : 1;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1 + std::ldexp(mantissa, -mantissa_bits), exponent - 15)
                          : std::ldexp(mantissa, -14 - mantissa_bits));
}
bool valid(int format, int number) {
  const bool wide = format == 4 || format == 11 || format >= 13;
  if (number == kReserved) return false;
  if (number == kFloat)
    return wide || format == 2 || format == 5 || format == 6 || format == 7 || format == 12;
  return !wide || number == kUint || number == kSint;
}
long double value_of(uint64_t v, int bits, int number) {
  const auto top = static_cast<long double>((1ull << bits) - 1);
  switch (number) {
    case kUnorm: return v / top;
    case kSnorm:
      return std::max(-1.0L, as_signed(v, bits) / static_cast<long double>((1ll << (bits - 1)) - 1));
    case kUscaled: return static_cast<long double>(v);
    case kSscaled: return static_cast<long double>(as_signed(v, bits));
    default: return small_float(v, bits);
  }
}
uint32_t expected_load(const uint8_t* element, int format, int number, int component) {
  if (component >= static_cast<int>(kBits[format].size())) return 0;
  int at = 0;
  for (int c = 0; c < component; ++c) at += kBits[format][c];
  const int bits = kBits[format][component];
  const uint64_t v = bits_at(element, at, bits);
  if (number == kUint || bits == 32) return static_cast<uint32_t>(v);
  if (number == kSint) return static_cast<uint32_t>(as_signed(v, bits));
  return std::bit_cast<uint32_t>(static_cast<float>(value_of(v, bits, number)));
}
bool same_float(uint32_t a, uint32_t b) {
  return a == b || (std::isnan(std::bit_cast<float>(a)) && std::isnan(std::bit_cast<float>(b)));
}

const char* kSuffix[] = {"x", "xy", "xyz", "xyzw"};

TEST_F(BufferFormat, TypedLoadsOfEveryFormatGiveTheFormulasValues) {
  fill_random(1);
  for (int l = 0; l < kLanes; ++l) reg(1, l) = static_cast<uint32_t>(16 * ((7 * l) % 64) + l % 4);
  describe(0, kBytes);
  for (int format = 1; format < 15; ++format)
    for (int number = 0; number < 8; ++number)
      for (int components = 1; components <= 4; ++components) {
        Inst i = buffer(8, 1, false, true, 40);
        i.format = static_cast<uint8_t>(format | number << 4);
        const std::string name = std::string("tbuffer_load_format_") + kSuffix[components - 1];
        w.status = WaveStatus::kRunning;
        run(name, i);
        ASSERT_EQ(w.status == WaveStatus::kFault, !valid(format, number))
            << format << " " << number << w.fault;
        if (!valid(format, number)) continue;
        for (int l = 0; l < kLanes; ++l)
          for (int c = 0; c < components; ++c)
            ASSERT_TRUE(
                same_float(reg(8 + c, l), expected_load(data + reg(1, l) + 40, format, number, c)))
                << name << " format " << format << " number " << number << " lane " << l << " component "
                << c;
      }
}

TEST_F(BufferFormat, HalfPrecisionLoadsRoundTheSameValueAndKeepTheFourthHalf) {
  fill_random(2);
  for (int l = 0; l < kLanes; ++l) reg(1, l) = static_cast<uint32_t>(16 * l);
  describe(0, kBytes);
  for (int format : {1, 2, 3, 5, 6, 7, 8, 9, 10, 12})
    for (int number = 0; number < 8; ++number) {
      if (!valid(format, number)) continue;
      set(9, 0xabcdabcdu);
      Inst i = buffer(8, 1, false, true);
      i.format = static_cast<uint8_t>(format | number << 4);
      run("tbuffer_load_format_d16_xyz", i);
      for (int l = 0; l < kLanes; ++l) {
        ASSERT_EQ(reg(9, l) >> 16, 0xabcdu);
        for (int c = 0; c < 3; ++c) {
          const uint32_t wide = expected_load(data + 16 * l, format, number, c);
          const uint32_t got = reg(8 + c / 2, l) >> (16 * (c % 2)) & 0xffff;
          if (number == kUint || number == kSint) {
            ASSERT_EQ(got, wide & 0xffff) << format << " " << number;
            continue;
          }
          const auto value = static_cast<long double>(std::bit_cast<float>(wide));
          const long double result = small_float(got, 16);
          if (std::isnan(value)) ASSERT_TRUE(std::isnan(result));
          else
            ASSERT_LE(std::fabs(result - value), std::ldexp(std::max(1.0L, std::fabs(value)), -11))
                << format << " " << number << " lane " << l << " component " << c;
        }
      }
    }
}

TEST_F(BufferFormat, DescriptorSelectsComponentsZerosAndOnes) {
  fill_random(3);
  const uint32_t select = 7 | 1 << 3 | 0 << 6 | 4 << 9;  // W 1 0 X
  for (int l = 0; l < kLanes; ++l) reg(1, l) = static_cast<uint32_t>(4 * l);
  w.set_exec(~1ull);
  describe(0, 4 * 60, select | kUnorm << 12 | 10u << 15);
  run("buffer_load_format_xyzw", buffer(8, 1, false, true));
  for (int l = 1; l < kLanes; ++l) {
    const bool inside = l < 60;
    ASSERT_EQ(as_float(8, l), inside ? static_cast<float>(data[4 * l + 3] / 255.0L) : 0) << l;
    ASSERT_EQ(as_float(9, l), 1) << l << ": a selected 1 comes out of range too";
    ASSERT_EQ(as_float(10, l), 0);
    ASSERT_EQ(as_float(11, l), inside ? static_cast<float>(data[4 * l] / 255.0L) : 0);
  }
  EXPECT_EQ(reg(8, 0), 0u) << "lane 0 is off";
  describe(0, kBytes, select | kUint << 12 | 10u << 15);
  run("buffer_load_format_xyzw", buffer(8, 1, false, true));
  EXPECT_EQ(reg(9, 5), 1u) << "an integer format's 1";
  set(8, 0x11112222u);
  run("buffer_load_format_d16_hi_x", buffer(8, 1, false, true));
  EXPECT_EQ(reg(8, 5), 0x2222u | static_cast<uint32_t>(data[23]) << 16);
}

TEST_F(BufferFormat, StoredValuesAreTheNearestThatLoadBack) {
  const float values[] = {0,  1,      -1,      0.5f, 0.3f,  -0.7f,    1.5f,
                          -2, 100.7f, -100.7f, 1e9f, -1e9f, 0.00197f, 6.1e-5f};
  describe(0, kBytes);
  for (int l = 0; l < kLanes; ++l) reg(1, l) = static_cast<uint32_t>(16 * l);
  for (int format = 1; format < 15; ++format)
    for (int number : {kUnorm, kSnorm, kUscaled, kSscaled, kFloat}) {
      if (!valid(format, number)) continue;
      for (int l = 0; l < kLanes; ++l)
        for (int c = 0; c < 4; ++c)
          reg(8 + c, l) = std::bit_cast<uint32_t>(values[(l + c) % std::size(values)]);
      Inst i = buffer(8, 1, false, true);
      i.format = static_cast<uint8_t>(format | number << 4);
      run("tbuffer_store_format_xyzw", i);
      for (int l = 0; l < kLanes; ++l) {
        int at = 0;
        for (int c = 0; c < static_cast<int>(kBits[format].size()); ++c) {
          const int bits = kBits[format][c];
          const uint64_t code = bits_at(data + 16 * l, at, bits);
          at += bits;
          const long double x = values[(l + c) % std::size(values)];
          if (bits == 32) {
            ASSERT_EQ(code, std::bit_cast<uint32_t>(static_cast<float>(x)));
            continue;
          }
          if (number == kFloat) {
            const long double stored = small_float(code, bits), limit = bits == 16   ? INFINITY
                                                                        : bits == 11 ? 65024
                                                                                     : 64512;
            const long double wanted = std::min(bits == 16 ? x : std::max(x, 0.0L), limit);
            if (std::fabs(x) > 70000) {
              ASSERT_EQ(std::fabs(stored), bits == 16 ? INFINITY : wanted);
              continue;
            }
            ASSERT_LE(std::fabs(stored - wanted),
                      std::ldexp(std::max(6.2e-5L, std::fabs(wanted)), bits == 16 ? -11 : 4 - bits));
            continue;
          }
          const bool is_signed = number == kSnorm || number == kSscaled, norm = number <= kSnorm;
          const long double top = static_cast<long double>((1ull << (is_signed ? bits - 1 : bits)) - 1);
          const long double low = !is_signed ? 0 : norm ? -top : -top - 1;
          const long double scaled = std::min(std::max(norm ? x * top : x, low), top);
          const long double wanted = norm ? std::nearbyint(scaled) : std::trunc(scaled);
          const auto got =
              static_cast<long double>(is_signed ? as_signed(code, bits) : static_cast<int64_t>(code));
          ASSERT_EQ(got, wanted) << "format " << format << " number " << number << " value "
                                 << static_cast<double>(x);
        }
      }
    }
}

TEST_F(BufferFormat, StoresWriteTheComponentsTheyHave) {
  std::memset(data, 0x55, 64);
  describe(0, kBytes);
  w.set_exec(1);
  reg(8, 0) = 200;
  reg(9, 0) = 3000;
  Inst i = buffer(8, 1, false, true);
  i.format = 10 | kUint << 4;
  run("tbuffer_store_format_xy", i);
  EXPECT_EQ(word(0), 0x5555ffc8u) << "3000 is limited to 255";
  i.format = 9 | kUint << 4;
  run("tbuffer_store_format_xy", i);
  EXPECT_EQ(w.status, WaveStatus::kFault) << "y shares a byte with z";
}

// The manual's swizzle, written out with division and remainder.
TEST_F(BufferFormat, SwizzledAndStridedAddressesFollowTheManual) {
  fill_random(4);
  for (int l = 0; l < kLanes; ++l) {
    reg(1, l) = static_cast<uint32_t>((5 * l) % 61);
    reg(2, l) = static_cast<uint32_t>(4 * (l % 3));
  }
  for (bool swizzled : {false, true})
    for (uint32_t index_stride_code : {0u, 3u})
      for (bool add_tid : {false, true}) {
        const uint32_t stride = 24, index_stride = 8u << index_stride_code;
        describe(stride, 100, index_stride_code << 21 | uint32_t{add_tid} << 23, swizzled);
        w.sgpr[20] = 8;
        Inst i = buffer(8, 1, true, true, 4);
        i.soffset = 20;
        run("buffer_load_dwordx2", i);
        ASSERT_NE(w.status, WaveStatus::kFault) << w.fault;
        for (int l = 0; l < kLanes; ++l)
          for (uint32_t d = 0; d < 2; ++d) {
            const uint32_t index = reg(1, l) + (add_tid ? static_cast<uint32_t>(l) : 0),
                           offset = reg(2, l) + 4 + 4 * d;
            const uint32_t at =
                8 + (swizzled ? (index / index_stride * stride + offset / 4 * 4) * index_stride +
                                    index % index_stride * 4 + offset % 4
                              : index * stride + offset);
            ASSERT_EQ(reg(8 + d, l), index < 100 ? word(at) : 0u)
                << "swizzled " << swizzled << " add_tid " << add_tid << " lane " << l << " dword " << d;
          }
      }
  describe(24, 10, 0);
  run("buffer_load_dword", buffer(8, 1, true, false));
  for (int l = 0; l < kLanes; ++l)
    ASSERT_EQ(reg(8, l), reg(1, l) < 10 ? word(24 * reg(1, l)) : 0u)
        << "records count elements with idxen";
  describe(24, 10, 0);
  run("buffer_load_dword", buffer(8, 2, false, true));
  for (int l = 0; l < kLanes; ++l)
    ASSERT_EQ(reg(8, l), reg(2, l) + 4 <= 10 ? word(reg(2, l)) : 0u) << "and bytes without";
}

}  // namespace
}  // namespace mi350::emu
