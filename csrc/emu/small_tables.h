// The values of every 8-bit and smaller float, tabulated from convert.h at compile time.
#pragma once
#include <array>

#include "convert.h"

namespace mi350::emu::MI350_EMU_LEVEL {

template <size_t N> constexpr std::array<float, N> values_of(Format f) {
  std::array<float, N> values{};
  for (size_t code = 0; code < N; ++code) values[code] = decode(f, static_cast<uint32_t>(code));
  return values;
}

inline constexpr auto kFp8Values = values_of<256>(kFp8);
inline constexpr auto kBf8Values = values_of<256>(kBf8);
inline constexpr auto kFp6Values = values_of<64>(kFp6);
inline constexpr auto kBf6Values = values_of<64>(kBf6);
inline constexpr auto kFp4Values = values_of<16>(kFp4);

}  // namespace mi350::emu::MI350_EMU_LEVEL
