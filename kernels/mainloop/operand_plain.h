// Operand policy: 16-byte loads from global memory straight to LDS. Needs one unit stride, 16-byte aligned
// lines and whole chunks: (depth-major) k a multiple of a chunk, (else) extent a multiple of a chunk.
//
// T: element; Reader: how a wave reads its fragments (tile/fragment.h).
// Each wave instruction fills 64 consecutive LDS slots; the lane's global offset is that of the chunk which
// the swizzle assigns to its slot.
#pragma once
#include "operand.h"

namespace mi350 {

template <class T, class Tile_, int kWaves, class Reader_>
struct PlainOperand {
  using Tile = Tile_;
  using Reader = Reader_;
  using Fragment = typename Reader::Fragment;
  static constexpr int kDepth = Tile::kDepth, kSteps = Reader::kSteps, kStageBytes = Tile::kBytes;
  static constexpr int kWaveBytes = kLanes * kChunkBytes;
  static constexpr int kLoadsToLds = kStageBytes / (kWaves * kWaveBytes);
  static_assert(kStageBytes % (kWaves * kWaveBytes) == 0, "every wave issues the same number of loads");

  GlobalTile window;
  LdsBytes lds;
  uint32_t first_slot;  // LDS address of this wave's first load
  int64_t tile_bytes, depth_bytes;
  uint32_t offset[kLoadsToLds];
  Reader reader;

  MI350_DEVICE PlainOperand(const OperandView& view, uint32_t first_row, uint32_t wave_row, LdsBytes lds)
      : window(window_of<sizeof(T)>(view, first_row)), lds(lds),
        first_slot(lds_address(lds) + wave_id() * kWaveBytes),
        tile_bytes(kDepth * view.stride_depth * static_cast<int64_t>(sizeof(T))),
        depth_bytes(view.stride_depth * static_cast<int64_t>(sizeof(T))), reader(wave_row) {
    const uint32_t line_bytes =
        static_cast<uint32_t>((Tile::kDepthMajor ? view.stride_extent : view.stride_depth) * sizeof(T));
    const uint32_t rows = static_cast<uint32_t>(view.extent) - first_row;
#pragma unroll
    for (int i = 0; i < kLoadsToLds; ++i) {
      const uint32_t row = Tile::kDepthMajor ? line(i) : chunk(i) * Tile::kElements;
      offset[i] = (line(i) * line_bytes + chunk(i) * kChunkBytes) | (row < rows ? 0 : kNowhere);
    }
  }

  static MI350_DEVICE uint32_t slot(int load) { return (load * kWaves + wave_id()) * kLanes + lane_id(); }
  static MI350_DEVICE uint32_t line(int load) { return slot(load) / Tile::kLineChunks; }
  static MI350_DEVICE uint32_t chunk(int load) {
    return (slot(load) % Tile::kLineChunks) ^ Tile::swizzle(line(load));
  }

  MI350_DEVICE void issue_first(int stage, int depth) {
    const Descriptor d = window.descriptor();
#pragma unroll
    for (int i = 0; i < kLoadsToLds; ++i) {
      const int k = Tile::kDepthMajor ? chunk(i) * Tile::kElements : line(i);
      buffer_load_dwordx4_lds(destination(stage, i), d, offset[i] | (k < depth ? 0 : kNowhere));
    }
    window.advance(depth * depth_bytes);
  }

  MI350_DEVICE void issue(int stage) {
    const Descriptor d = window.descriptor();
#pragma unroll
    for (int i = 0; i < kLoadsToLds; ++i) buffer_load_dwordx4_lds(destination(stage, i), d, offset[i]);
    window.advance(tile_bytes);
  }

  MI350_DEVICE void commit(int) {}

  MI350_DEVICE void load(Fragment& fragment, int stage, int row_tile, int step) const {
    reader.load(fragment, lds + stage * kStageBytes, row_tile, step);
  }

 private:
  MI350_DEVICE uint32_t destination(int stage, int load) const {
    return first_slot + stage * kStageBytes + load * kWaves * kWaveBytes;
  }
};

}  // namespace mi350
