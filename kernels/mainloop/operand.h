// Operand policies of the main loop. A policy owns one operand of a workgroup's tile:
//
//   kStageBytes              LDS bytes of one stage
//   kLoadsToLds              loads to LDS that each wave issues per k tile (0: none)
//   Fragment, kSteps         what load() fills, k steps of a tile
//   issue_first(stage, k)    start loading the first k tile, of which only k < kDepth columns exist
//   issue(stage)             start loading the next, full k tile
//   commit(stage)            after the math that overlapped the load: registers to LDS, if staged so
//   load(fragment, stage, row_tile, step)
//
// The first tile is the ragged one: everything after it needs no masks. Missing k is zero in both
// operands; rows past the extent are zero too (or finite garbage that is never stored).
#pragma once
#include "../tile/fragment.h"
#include "../tile/global_tile.h"

namespace mi350 {

// One operand as the main loop sees it: `extent` rows (m of a, n of b) by `depth` k. Strides in elements.
struct OperandView {
  uint64_t address;
  int64_t extent, depth;
  int64_t stride_extent, stride_depth;
};

// The k columns of the first tile; later tiles are full.
template <int kDepth>
MI350_DEVICE int first_tile_depth(int depth) {
  const int ragged = depth % kDepth;
  return ragged != 0 ? ragged : (depth != 0 ? kDepth : 0);
}

// The part of `view` from first_row on.
template <int kElementBytes>
MI350_DEVICE GlobalTile window_of(const OperandView& view, uint32_t first_row) {
  GlobalTile window = GlobalTile::of<kElementBytes>(view.address, view.extent, view.depth, view.stride_extent,
                                                    view.stride_depth);
  window.advance(static_cast<int64_t>(first_row) * view.stride_extent * kElementBytes);
  return window;
}

}  // namespace mi350
