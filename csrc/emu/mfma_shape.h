// Shapes of MFMA and SMFMAC and where they keep D: rows in groups of four consecutive registers.
//
//   32x32: register 4*(i / 8) + i % 4, lanes 32*(i / 4 % 2) + j      16 registers per block
//   16x16: register i % 4,             lanes 16*(i / 4) + j           4 registers per block
//   4x4:   register i,                 lanes 4*block + j
#pragma once
#include "mfma_panel.h"

namespace mi350::emu::MI350_EMU_LEVEL {

struct Shape {
  int m, n, k, blocks;
  constexpr int items() const { return k * m * blocks / kLanes; }
  constexpr int registers() const { return m * n * blocks / kLanes; }
};

// Register and first lane of row i of block b.
template <Shape S> constexpr int register_of(int b, int i) {
  if (S.m == 32) return 16 * b + 4 * (i / 8) + i % 4;
  if (S.m == 16) return 4 * b + i % 4;
  return i;
}
template <Shape S> constexpr int lane_of(int b, int i) {
  if (S.m == 32) return 32 * (i / 4 % 2);
  if (S.m == 16) return 16 * (i / 4);
  return 4 * b;
}

inline void count(Wave& w, const Shape& s) {
  ++w.counters.mfma_instructions;
  w.counters.mfma_flops += 2ull * s.m * s.n * s.k * s.blocks;
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
