// How long the matrix unit is busy with one instruction, in passes of four clocks, from the shape in its
// name: hazards (check/wait_states) and timing read it here and nowhere else. Numbers: the pass column of
// the instruction list in facts/gfx950-isa.md 4.1.
#pragma once
#include <cstdint>
#include <string_view>

#include "isa.h"

namespace mi350::emu {

enum class MatrixUnit : uint8_t { kXdl, kSgemm, kDgemm };  // everything else, f32 operands, f64 operands

struct MfmaPasses {
  MatrixUnit unit = MatrixUnit::kXdl;
  uint8_t passes = 0;
};

// Dwords that one operand of an f8f6f4 instruction fills, by the format in cbsz or blgp.
constexpr unsigned f8f6f4_operand_dwords(uint8_t format) {
  return format == 4 ? 4 : format == 2 || format == 3 ? 6 : 8;
}

inline MfmaPasses mfma_passes(const Inst& i) {
  const std::string_view name = i.row->mnemonic;
  const auto has = [name](const char* part) { return name.find(part) != std::string_view::npos; };
  const bool large = has("_32x32x"), small = has("_4x4x");
  const bool blocks = has("b_") && (has("_2b_") || has("_4b_") || has("_16b_"));
  if (name.ends_with("_f64")) return {MatrixUnit::kDgemm, static_cast<uint8_t>(small ? 4 : 16)};
  if (small) return {name.ends_with("_f32") ? MatrixUnit::kSgemm : MatrixUnit::kXdl, 2};
  if (name.ends_with("_f32")) return {MatrixUnit::kSgemm, static_cast<uint8_t>(large ? 16 : 8)};
  const bool half_rate =
      blocks || (name.ends_with("_f8f6f4") &&
                 (f8f6f4_operand_dwords(i.cbsz) == 8 || f8f6f4_operand_dwords(i.blgp) == 8));
  return {MatrixUnit::kXdl, static_cast<uint8_t>((large ? 8 : 4) * (half_rate ? 2 : 1))};
}

}  // namespace mi350::emu
