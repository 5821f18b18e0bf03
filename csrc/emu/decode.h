// Machine words to Inst. Decoding happens once per code object; execution runs over the result.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isa.h"

namespace mi350::emu {

// One instruction at words[0]. What cannot be decoded comes back as 4 bytes with row and exec null, so that
// only executing it is an error: text holds padding and constants too.
Inst decode(std::span<const uint32_t> words);

// While VSKIP is set in MODE, vector and memory instructions are passed over; scalar ones still run.
constexpr uint32_t kModeVskip = 1u << 28;
inline bool skipped_by_vskip(const Inst& i) {
  switch (i.row == nullptr ? Encoding::kSopp : i.row->encoding) {
    case Encoding::kSop1: case Encoding::kSop2: case Encoding::kSopk: case Encoding::kSopc: case Encoding::kSopp:
    case Encoding::kSmem: return false;
    default: return true;
  }
}

struct Program {
  // Ends with one undecodable instruction of size 0: running off the end and branches to nowhere land there.
  std::vector<Inst> insts;
  std::vector<int32_t> index_of_dword;  // text dword -> index into insts; -1 inside an instruction
  uint64_t text_address = 0;            // host address of the text: s_getpc and s_setpc deal in these

  uint32_t end() const { return static_cast<uint32_t>(insts.size() - 1); }
  uint64_t address_of(uint32_t index) const { return text_address + insts[index].offset_bytes; }
  // end() when no instruction starts there.
  uint32_t index_of_address(uint64_t address) const;
  uint32_t index_of_offset(int64_t offset_bytes) const;
};

// starts: byte offsets where an instruction must begin (function symbols, kernel entries), sorted.
Program decode_text(std::span<const uint32_t> text, std::span<const uint64_t> starts);

}  // namespace mi350::emu
