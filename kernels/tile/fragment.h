// Register fragments of an LDS tile: what one matrix instruction (or four, for fp32) takes from one operand.
// A fragment is 16 bytes a lane: kMfma rows by kFragmentDepth k.
#pragma once
#include "../isa/lds.h"
#include "../isa/mfma.h"
#include "lds_tile.h"

namespace mi350 {

template <class T> struct FragmentOf;
template <> struct FragmentOf<Bf16> { using Type = Bf16x8; };
template <> struct FragmentOf<F16> { using Type = F16x8; };
template <> struct FragmentOf<F32> { using Type = F32x4; };

template <class T, int kMfma>
constexpr int kFragmentDepth = (kLanes / kMfma) * kChunkBytes / static_cast<int>(sizeof(T));

// Reads the fragments of one wave: kTiles row tiles from first_row on, any k step. Per-lane addresses are
// computed once; row tile and k step become immediates wherever the swizzle allows.
template <class Tile, class T, int kTiles>
struct FragmentReader {
  using Fragment = typename FragmentOf<T>::Type;
  static constexpr int kMfma = Tile::kMfma, kStepDepth = kFragmentDepth<T, kMfma>;
  static constexpr int kSteps = Tile::kDepth / kStepDepth;
  static constexpr int kAddresses = Tile::kDepthMajor ? kSteps : kTiles;
  static_assert(Tile::kDepth % kStepDepth == 0, "tile depth must be a multiple of the fragment depth");

  uint32_t address[kAddresses];

  MI350_DEVICE FragmentReader(uint32_t first_row) {
    const uint32_t lane = lane_id(), row = lane % kMfma, group = lane / kMfma;
#pragma unroll
    for (int i = 0; i < kAddresses; ++i) {
      if constexpr (Tile::kDepthMajor) {
        address[i] = Tile::offset(first_row + row, i * (kLanes / kMfma) + group);
      } else if constexpr (sizeof(T) == 2) {
        // Lane s of 16 supplies k = s / 4, rows 4 * (s % 4) + 0..3 to ds_read_b64_tr_b16.
        const uint32_t k = group * 8 + (lane % 16) / 4;
        const uint32_t at = first_row + i * kMfma + (row / 16) * 16 + (lane % 4) * 4;
        address[i] = Tile::offset(k, at / Tile::kElements) + (at % Tile::kElements) * sizeof(T);
      } else {
        const uint32_t at = first_row + i * kMfma + row;
        address[i] = Tile::offset(group * 4, at / Tile::kElements) + (at % Tile::kElements) * sizeof(T);
      }
    }
  }

  MI350_DEVICE void load(Fragment& fragment, LdsBytes tile, int row_tile, int step) const {
    if constexpr (Tile::kDepthMajor) {
      const U32x4 bits = ds_read_b128(tile + address[step] + row_tile * kMfma * Tile::kLineBytes);
      fragment = __builtin_bit_cast(Fragment, bits);
    } else if constexpr (sizeof(T) == 2) {
      const LdsBytes at = tile + address[row_tile] + step * kStepDepth * Tile::kLineBytes;
      const U32x2 low = ds_read_b64_tr_b16(at), high = ds_read_b64_tr_b16(at + 4 * Tile::kLineBytes);
      fragment = __builtin_bit_cast(Fragment, U32x4{low[0], low[1], high[0], high[1]});
    } else {
      const LdsBytes at = tile + address[row_tile] + step * kStepDepth * Tile::kLineBytes;
#pragma unroll
      for (int e = 0; e < 4; ++e)
        fragment[e] = __builtin_bit_cast(float, ds_read_b32(at + e * Tile::kLineBytes));
    }
  }
};

}  // namespace mi350
