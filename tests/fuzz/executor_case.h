// The executor under fuzz: the bytes of a case become a kernel behind a fixed prologue, which is launched.
//
//   byte 0 MODE (rounding, denormals)   1 flags, see kDx10Clamp ...   2 VGPR granules   3 accum offset
//   4 private bytes / 16   5 LDS bytes / 256   6 contents of the buffer   7 bit 0: disassemble   8..
//   instruction words
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "random.h"

namespace mi350::emu::fuzz {

void run_executor_case(std::span<const uint8_t> bytes);

// Changes, adds and removes whole instructions. At most `limit` bytes.
void mutate_executor_case(std::vector<uint8_t>& bytes, size_t limit, Random& random);

}  // namespace mi350::emu::fuzz
