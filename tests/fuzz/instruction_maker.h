// Machine words of one instruction with random operands, from its row of isa.def. Most operands are ones that
// the executor's prologue has given a meaning; some are anything the field can hold.
#pragma once
#include <cstdint>
#include <vector>

#include "isa.h"
#include "random.h"

namespace mi350::emu::fuzz {

std::vector<uint32_t> make_instruction(const IsaRow& row, Random& random);
inline std::vector<uint32_t> make_instruction(Random& random) {
  return make_instruction(kIsa[random.below(kIsaRows)], random);
}

}  // namespace mi350::emu::fuzz
