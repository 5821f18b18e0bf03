// Bank conflicts of LDS accesses and cache lines of global ones, counted per instruction.
#pragma once
#include <memory>

#include "check/part.h"

namespace mi350::emu {

std::unique_ptr<Part> make_access_counts(Reporter& reporter);

// Clocks of the LDS for one access, and the least for the same lanes (facts/gfx950-isa.md 6.3). Writes of one
// dword and 96-bit writes are not in the table: taken as reads of one dword and as 128-bit writes.
struct LdsClocks {
  uint32_t taken = 0, ideal = 0;
};
LdsClocks lds_clocks(const uint32_t* at, uint64_t mask, int bytes, bool write);

}  // namespace mi350::emu
