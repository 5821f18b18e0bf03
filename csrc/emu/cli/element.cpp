// The table of element types; formats from convert.h.
#include "element.h"

#include <cmath>
#include <limits>

#include "convert.h"

namespace mi350::emu::cli {
namespace {

using namespace mi350::emu::MI350_EMU_LEVEL;

template <typename T>
constexpr Element integer(std::string_view name) {
  return {name, sizeof(T), true, std::numeric_limits<T>::is_signed,
          [](double v) { return static_cast<uint64_t>(static_cast<T>(v)); },
          [](uint64_t bits) { return static_cast<double>(static_cast<T>(bits)); }};
}

// fp8 values beyond the largest become it, as casts of torch and the hardware's clamped conversions do not
// agree: a file that holds such values is better given as bytes.
template <const Format& kFormat>
uint64_t narrow(double v) {
  return encode(kFormat, v, Rounding::kNearest, true);
}
template <const Format& kFormat>
double widen(uint64_t bits) {
  return static_cast<double>(decode(kFormat, static_cast<uint32_t>(bits)));
}

constexpr Element kElements[] = {
    {"f64", 8, false, true, [](double v) { return bits_of(v); }, [](uint64_t b) { return double_of(b); }},
    {"f32", 4, false, true, [](double v) { return uint64_t{bits_of(static_cast<float>(v))}; },
     [](uint64_t b) { return static_cast<double>(float_of(static_cast<uint32_t>(b))); }},
    {"f16", 2, false, true, [](double v) { return uint64_t{float_to_half(static_cast<float>(v))}; },
     [](uint64_t b) { return static_cast<double>(half_to_float(static_cast<uint32_t>(b))); }},
    {"bf16", 2, false, true, [](double v) { return uint64_t{float_to_bfloat(static_cast<float>(v))}; },
     [](uint64_t b) { return static_cast<double>(bfloat_to_float(static_cast<uint32_t>(b))); }},
    {"fp8", 1, false, true, narrow<kFp8>, widen<kFp8>},
    {"bf8", 1, false, true, narrow<kBf8>, widen<kBf8>},
    integer<int8_t>("i8"), integer<uint8_t>("u8"), integer<int16_t>("i16"), integer<uint16_t>("u16"),
    integer<int32_t>("i32"), integer<uint32_t>("u32"), integer<int64_t>("i64"), integer<uint64_t>("u64"),
};

}  // namespace

const Element* find_element(std::string_view name) {
  for (const Element& e : kElements) {
    if (e.name == name) return &e;
  }
  return nullptr;
}

std::string element_names() {
  std::string text;
  for (const Element& e : kElements) text += (text.empty() ? "" : " ") + std::string(e.name);
  return text;
}

double least(const Element& e) { return e.is_signed ? -std::ldexp(1.0, static_cast<int>(8 * e.bytes) - 1) : 0.0; }
double most(const Element& e) {
  return std::ldexp(1.0, static_cast<int>(8 * e.bytes) - (e.is_signed ? 1 : 0)) - 1.0;
}

}  // namespace mi350::emu::cli
