// Exact binary numbers for the tests: sign and a fixed-point integer wide enough for any sum of products
// of two doubles. Rounds into any IEEE format by looking at the bits, so it shares nothing with the code
// under test.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

namespace mi350::emu::exact {

struct Ieee {
  int exponent_bits, mantissa_bits;
};
constexpr Ieee kHalf{5, 10}, kBrain{8, 7}, kSingle{8, 23}, kDouble{11, 52};

class Number {
 public:
  static constexpr int kWords = 68, kPoint = 2176;  // bit n stands for 2^(n - kPoint)
  bool negative = false;
  std::array<uint64_t, kWords> bits{};

  bool zero() const {
    for (uint64_t w : bits)
      if (w) return false;
    return true;
  }
  bool bit(int n) const {
    return n >= 0 && n < 64 * kWords && (bits[static_cast<size_t>(n / 64)] >> (n % 64) & 1);
  }
  bool any_below(int n) const {
    for (int k = 0; k < kWords && 64 * k < n; ++k) {
      const uint64_t mask = n - 64 * k >= 64 ? ~0ull : (1ull << (n - 64 * k)) - 1;
      if (bits[static_cast<size_t>(k)] & mask) return true;
    }
    return false;
  }
  int top() const {
    for (int k = kWords - 1; k >= 0; --k)
      if (bits[static_cast<size_t>(k)])
        return 64 * k + 63 - std::countl_zero(bits[static_cast<size_t>(k)]);
    return -1;
  }
  // |*this| += m * 2^e
  void add_magnitude(unsigned __int128 m, int e) {
    const int at = e + kPoint;
    uint64_t carry = 0;
    for (int k = 0; k < 3 || carry; ++k) {
      const int low = 64 * k - at % 64;  // bit of m at the bottom of this word
      uint64_t part = 0;
      if (k < 3) {
        if (low >= 0 && low < 128) part = static_cast<uint64_t>(m >> low);
        else if (low < 0) part = static_cast<uint64_t>(m) << -low;
      }
      uint64_t& word = bits[static_cast<size_t>(at / 64 + k)];
      const unsigned __int128 sum = static_cast<unsigned __int128>(word) + part + carry;
      word = static_cast<uint64_t>(sum);
      carry = static_cast<uint64_t>(sum >> 64);
    }
  }
  int compare_magnitude(const Number& o) const {
    for (int k = kWords - 1; k >= 0; --k) {
      const auto n = static_cast<size_t>(k);
      if (bits[n] != o.bits[n]) return bits[n] < o.bits[n] ? -1 : 1;
    }
    return 0;
  }
};

inline Number operator+(const Number& a, const Number& b) {
  Number r;
  if (a.negative == b.negative) {
    r.negative = a.negative;
    uint64_t carry = 0;
    for (size_t k = 0; k < Number::kWords; ++k) {
      const unsigned __int128 sum = static_cast<unsigned __int128>(a.bits[k]) + b.bits[k] + carry;
      r.bits[k] = static_cast<uint64_t>(sum);
      carry = static_cast<uint64_t>(sum >> 64);
    }
    return r;
  }
  const bool swap = a.compare_magnitude(b) < 0;
  const Number &big = swap ? b : a, &small = swap ? a : b;
  r.negative = big.negative;
  uint64_t borrow = 0;
  for (size_t k = 0; k < Number::kWords; ++k) {
    const unsigned __int128 left = big.bits[k],
                            right = static_cast<unsigned __int128>(small.bits[k]) + borrow;
    r.bits[k] = static_cast<uint64_t>(left - right);
    borrow = left < right;
  }
  return r;
}

// The integer and exponent of a finite code.
struct Parts {
  bool negative;
  uint64_t mantissa;
  int exponent;
  bool infinite, nan;
};
inline Parts parts(Ieee f, uint64_t code) {
  const uint64_t mantissa = code & ((1ull << f.mantissa_bits) - 1), top = (1ull << f.exponent_bits) - 1;
  const uint64_t exponent = code >> f.mantissa_bits & top;
  const int bias = static_cast<int>(top >> 1);
  return {(code >> (f.mantissa_bits + f.exponent_bits) & 1) != 0,
          exponent ? mantissa | 1ull << f.mantissa_bits : mantissa,
          static_cast<int>(exponent ? exponent : 1) - bias - f.mantissa_bits,
          exponent == top && mantissa == 0, exponent == top && mantissa != 0};
}
inline Number product(const Parts& a, const Parts& b) {
  Number r;
  r.negative = a.negative != b.negative;
  r.add_magnitude(static_cast<unsigned __int128>(a.mantissa) * b.mantissa, a.exponent + b.exponent);
  return r;
}
inline Number value(const Parts& a) { return product(a, {false, 1, 0, false, false}); }

enum Direction { kNearest, kUp, kDown, kZero };
// The code of a non-zero number. Overflow goes to infinity or to the largest finite value as IEEE 754
// says.
inline uint64_t round_to(const Number& x, Ieee f, Direction how) {
  const uint64_t sign = static_cast<uint64_t>(x.negative) << (f.exponent_bits + f.mantissa_bits);
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  int unit = x.top() - f.mantissa_bits;  // bit position of the last place
  const int least = Number::kPoint + 1 - bias - f.mantissa_bits;
  if (unit < least) unit = least;
  uint64_t integer = 0;
  for (int n = f.mantissa_bits + 1; n >= 0; --n) integer = integer << 1 | x.bit(unit + n);
  const bool half = x.bit(unit - 1), rest = x.any_below(unit - 1);
  const bool away = how == kUp ? !x.negative : how == kDown ? x.negative : false;
  if (how == kNearest ? half && (rest || (integer & 1)) : away && (half || rest)) ++integer;
  const uint64_t code = integer + (static_cast<uint64_t>(unit - least) << f.mantissa_bits);
  const uint64_t infinity = ((1ull << f.exponent_bits) - 1) << f.mantissa_bits;
  if (code < infinity) return sign | code;
  return sign | (how == kNearest || away ? infinity : infinity - 1);
}

}  // namespace mi350::emu::exact
