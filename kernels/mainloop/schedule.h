// Which output tile a workgroup computes.
//
// Workgroups go round robin over the XCDs, each with its own L2: neighbours in tile order are first put
// on one XCD, then walk super-rows of kSuperRows row tiles so that concurrent tiles share operand lines.
#pragma once
#include "../isa/types.h"

namespace mi350 {

struct TileCoordinate {
  uint32_t batch, m, n;  // batch entry or group; tile indices
};

// For P concurrent tiles of an XCD the operand traffic goes with rows + P / rows: 4 to 8 is the flat minimum
// for P = 32, one tile on each CU. HipKittens' sweep of this width (8192^3, bf16) has its best at 8.
constexpr uint32_t kSuperRows = 8;

// Undoes the round robin: XCD x gets the x-th contiguous share of `total`. A bijection for any total.
MI350_DEVICE uint32_t xcd_contiguous(uint32_t id, uint32_t total, uint32_t xcds) {
  const uint32_t share = total / xcds, extra = total % xcds, xcd = id % xcds;
  return xcd * share + (xcd < extra ? xcd : extra) + id / xcds;
}

MI350_DEVICE TileCoordinate tile_in_matrix(uint32_t batch, uint32_t id, uint32_t tiles_m, uint32_t tiles_n) {
  const uint32_t band = id / (kSuperRows * tiles_n), first = band * kSuperRows;
  const uint32_t left = tiles_m - first, rows = left < kSuperRows ? left : kSuperRows;
  const uint32_t within = id - first * tiles_n;
  return {batch, first + within % rows, within / rows};
}

MI350_DEVICE TileCoordinate dense_tile(uint32_t id, uint32_t batch, uint32_t tiles_m, uint32_t tiles_n,
                                       uint32_t xcds) {
  const uint32_t per_batch = tiles_m * tiles_n;
  const uint32_t ordered = xcd_contiguous(id, per_batch * batch, xcds);
  const uint32_t entry = ordered / per_batch;
  return tile_in_matrix(entry, ordered - entry * per_batch, tiles_m, tiles_n);
}

// Groups of rows given by end offsets in device memory. Tiles never cross a group. The launch covers the
// worst case (rows / block + groups row tiles); false: this workgroup is surplus.
struct GroupTile {
  TileCoordinate at;      // batch is the group
  int32_t begin, end;     // its rows
};
// `ends` is in constant memory and `id` uniform: the search runs on the scalar unit.
using GroupEnds = const __attribute__((address_space(4))) int32_t*;
MI350_DEVICE bool grouped_tile(GroupTile& tile, uint32_t id, GroupEnds ends, uint32_t groups, uint32_t block_m,
                               uint32_t tiles_n) {
  int32_t begin = 0;
  for (uint32_t g = 0; g < groups; ++g) {
    const int32_t end = ends[g];
    const uint32_t tiles_m = (static_cast<uint32_t>(end - begin) + block_m - 1) / block_m;
    if (id < tiles_m * tiles_n) {
      tile = {tile_in_matrix(g, id, tiles_m, tiles_n), begin, end};
      return true;
    }
    id -= tiles_m * tiles_n;
    begin = end;
  }
  return false;
}

}  // namespace mi350
