// Data and number formats of buffer descriptors and MTBUF instructions: one element in memory to and from
// components of 32 or 16 bits (gfx9 descriptor, CDNA4 manual). Component X is in the lowest bits.
#pragma once
#include "convert.h"

namespace mi350::emu::MI350_EMU_LEVEL {

enum class Number : uint8_t { kUnorm, kSnorm, kUscaled, kSscaled, kUint, kSint, kReserved, kFloat };

struct Layout { uint8_t components, bytes, bits[4]; };
inline constexpr Layout kLayouts[16] = {
    {0, 0, {}},               {1, 1, {8}},             {1, 2, {16}},           {2, 2, {8, 8}},
    {1, 4, {32}},             {2, 4, {16, 16}},        {3, 4, {11, 11, 10}},   {3, 4, {10, 11, 11}},
    {4, 4, {2, 10, 10, 10}},  {4, 4, {10, 10, 10, 2}}, {4, 4, {8, 8, 8, 8}},   {2, 8, {32, 32}},
    {4, 8, {16, 16, 16, 16}}, {3, 12, {32, 32, 32}},   {4, 16, {32, 32, 32, 32}}, {0, 0, {}}};

// Floats of 11 and 10 bits have no sign: exponent 5, mantissa 6 or 5, as the top of an f16.
constexpr bool format_exists(uint32_t data, Number number) {
  const Layout& f = kLayouts[data & 15];
  if (f.components == 0 || number == Number::kReserved) return false;
  const bool wide = f.bits[0] == 32, has_float = wide || f.bits[0] == 16 || data == 6 || data == 7;
  if (number == Number::kFloat) return has_float;
  return !wide || number == Number::kUint || number == Number::kSint;
}
constexpr bool is_integer(Number n) { return n == Number::kUint || n == Number::kSint; }
constexpr bool is_signed(Number n) {
  return n == Number::kSnorm || n == Number::kSscaled || n == Number::kSint;
}

constexpr uint32_t field(const uint32_t* words, unsigned at, unsigned bits) {
  const uint32_t low = words[at / 32] >> (at % 32);
  return bits == 32 ? low : low & ((1u << bits) - 1);  // no field crosses a dword
}
constexpr int64_t signed_field(uint32_t v, unsigned bits) {
  return static_cast<int32_t>(v << (32 - bits)) >> (32 - bits);
}
constexpr double full_scale(Number n, unsigned bits) {
  return n == Number::kUnorm   ? static_cast<double>((uint64_t{1} << bits) - 1)
         : n == Number::kSnorm ? static_cast<double>((uint64_t{1} << (bits - 1)) - 1)
                               : 1.0;
}

constexpr float packed_float(uint32_t v, unsigned bits) {
  return bits == 32 ? float_of(v) : half_to_float(bits == 16 ? v : v << (15 - bits));
}

// A component as f32 bits, or as the integer itself.
constexpr uint32_t load_component(uint32_t v, unsigned bits, Number n) {
  if (n == Number::kUint) return v;
  if (n == Number::kSint) return static_cast<uint32_t>(signed_field(v, bits));
  if (n == Number::kFloat) return bits_of(packed_float(v, bits));
  const double integer = is_signed(n) ? static_cast<double>(signed_field(v, bits)) : static_cast<double>(v);
  const double value = integer / full_scale(n, bits);
  return bits_of(static_cast<float>(n == Number::kSnorm && value < -1 ? -1.0 : value));
}
// The same in 16 bits: f16, or the low half of the integer.
constexpr uint32_t load_component_16(uint32_t v, unsigned bits, Number n) {
  const uint32_t wide = load_component(v, bits, n);
  if (is_integer(n)) return wide & 0xffff;
  return n == Number::kFloat && bits == 16 ? v : float_to_half(float_of(wide));
}

// Unsigned small floats: negative values become 0, values beyond the range the largest finite one.
constexpr uint32_t store_small_float(float x, unsigned bits) {
  const Format f{5, static_cast<int>(bits) - 5, 15, Specials::kIeee};
  if (x < 0) return 0;
  const bool infinite = x == float_of(0x7f800000);
  return encode(f, x, Rounding::kNearest, !infinite) & ((1u << bits) - 1);
}
constexpr uint32_t store_float(float x, unsigned bits) {
  return bits == 32 ? bits_of(x) : bits == 16 ? float_to_half(x) : store_small_float(x, bits);
}

// Normalised values are rounded to nearest even, scaled ones towards zero; both, and integers, are limited to
// what the field holds. NaN becomes 0.
constexpr uint32_t store_limited(double x, unsigned bits, Number n) {
  const double top = static_cast<double>((uint64_t{1} << (is_signed(n) ? bits - 1 : bits)) - 1);
  const double low = !is_signed(n) ? 0 : n == Number::kSnorm ? -top : -top - 1;
  if (x != x) return 0;
  const double limited = x < low ? low : x > top ? top : x;
  const double magnitude = limited < 0 ? -limited : limited;
  const bool scaled = n == Number::kUscaled || n == Number::kSscaled;
  const double whole =
      round_magnitude(magnitude, scaled ? Rounding::kZero : Rounding::kNearest, limited < 0, 0);
  const auto integer = static_cast<uint32_t>(static_cast<int64_t>(limited < 0 ? -whole : whole));
  return bits == 32 ? integer : integer & ((1u << bits) - 1);
}
constexpr uint32_t store_component(uint32_t v, unsigned bits, Number n) {
  if (n == Number::kFloat) return store_float(float_of(v), bits);
  if (n == Number::kUint) return store_limited(v, bits, n);
  if (n == Number::kSint) return store_limited(static_cast<int32_t>(v), bits, n);
  return store_limited(static_cast<double>(float_of(v)) * full_scale(n, bits), bits, n);
}
// From 16 bits: f16 or a 16-bit integer.
constexpr uint32_t store_component_16(uint32_t h, unsigned bits, Number n) {
  if (n == Number::kFloat && bits == 16) return h & 0xffff;
  if (n == Number::kUint) return store_component(h & 0xffff, bits, n);
  if (n == Number::kSint) return store_component(static_cast<uint32_t>(signed_field(h, 16)), bits, n);
  return store_component(bits_of(half_to_float(h)), bits, n);
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
