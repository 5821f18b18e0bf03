// Who touched each dword of a workgroup's LDS last, and whether that is known to be over.
//
// All waves of a workgroup pass a barrier together, so order between waves is: the operation was waited for, then
// its wave arrived at a barrier, then that barrier released. Every LDS instruction and every load to LDS takes a
// number, counted per workgroup; a wave's operations below its `ordered` number are visible to the others.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace mi350::emu {

// What an access to a dword looks like in one number: issue number, atomic, load to LDS, wave.
struct Mark {
  static constexpr uint32_t kWaveBits = 15, kDma = 16, kAtomic = 32;
  static constexpr int kShift = 6;
  uint32_t code = 0;
  Mark(uint32_t from) : code(from) {}
  Mark(uint32_t number, uint32_t wave, bool dma, bool atomic)
      : code(number << kShift | (atomic ? kAtomic : 0) | (dma ? kDma : 0) | wave) {}
  uint32_t number() const { return code >> kShift; }
  uint32_t wave() const { return code & kWaveBits; }
  bool dma() const { return code & kDma; }
  bool atomic() const { return code & kAtomic; }
};

// Marks of 16 bytes of LDS side by side: an aligned access of a lane touches one or two cache lines.
struct LdsWords {
  struct Block {
    uint32_t write[4], read[4];
    // Waves that read the dword since the barrier that `read` lies behind (high half), bytes that the last write
    // (bits 3:0) and the last reads (bits 7:4) covered.
    uint32_t info[4];
  };
  std::vector<Block> blocks;

  void reset(uint32_t bytes) { blocks.assign((bytes + 15) / 16, Block{}); }
  uint32_t& write(uint32_t word) { return blocks[word / 4].write[word % 4]; }
  uint32_t& read(uint32_t word) { return blocks[word / 4].read[word % 4]; }
  uint32_t& info(uint32_t word) { return blocks[word / 4].info[word % 4]; }
};

}  // namespace mi350::emu
