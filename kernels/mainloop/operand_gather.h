// Operand policy for any strides and any element alignment: element loads to registers, packed into the
// depth-major LDS tile after the math that hides them. Consecutive lanes follow k if k is contiguous,
// rows otherwise.
#pragma once
#include "operand.h"

namespace mi350 {

template <class T, class Tile_, int kWaves, class Reader_>
struct GatherOperand {
  using Tile = Tile_;
  using Reader = Reader_;
  using Fragment = typename Reader::Fragment;
  static_assert(Tile::kDepthMajor, "gathered tiles are depth-major");
  static constexpr int kDepth = Tile::kDepth, kSteps = Reader::kSteps, kStageBytes = Tile::kBytes;
  static constexpr int kLoadsToLds = 0;
  static constexpr int kThreads = kWaves * kLanes, kElements = Tile::kElements;
  static constexpr int kChunks = kStageBytes / kChunkBytes / kThreads;  // per work-item
  static_assert(kStageBytes % (kChunkBytes * kThreads) == 0 && kThreads % Tile::kExtent == 0,
                "every work-item gathers the same number of chunks");

  GlobalTile window;
  LdsBytes lds;
  int64_t depth_bytes;
  uint32_t offset[kChunks], slot[kChunks], first_k[kChunks];
  uint32_t staged[kChunks][kElements];
  Reader reader;

  MI350_DEVICE GatherOperand(const OperandView& view, uint32_t first_row, uint32_t wave_row, LdsBytes lds)
      : window(window_of<sizeof(T)>(view, first_row)), lds(lds),
        depth_bytes(view.stride_depth * static_cast<int64_t>(sizeof(T))), reader(wave_row) {
    const uint32_t id = __builtin_amdgcn_workitem_id_x();
    const uint32_t row_bytes = static_cast<uint32_t>(view.stride_extent * sizeof(T));
    const uint32_t rows = static_cast<uint32_t>(view.extent) - first_row;
    const bool along_depth = view.stride_depth == 1;
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const uint32_t p = i * kThreads + id;
      const uint32_t line = along_depth ? p / Tile::kLineChunks : p % Tile::kExtent;
      const uint32_t chunk = along_depth ? p % Tile::kLineChunks : p / Tile::kExtent;
      first_k[i] = chunk * kElements;
      slot[i] = Tile::offset(line, chunk);
      offset[i] = (line * row_bytes + first_k[i] * static_cast<uint32_t>(depth_bytes)) | (line < rows ? 0 : kNowhere);
    }
  }

  MI350_DEVICE void issue_first(int, int depth) {
    gather([&](int i, int e) { return static_cast<int>(first_k[i]) + e < depth; });
    window.advance(depth * depth_bytes);
  }

  MI350_DEVICE void issue(int) {
    gather([](int, int) { return true; });
    window.advance(kDepth * depth_bytes);
  }

  MI350_DEVICE void commit(int stage) {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      U32x4 packed;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        if constexpr (sizeof(T) == 2) packed[w] = staged[i][2 * w] | staged[i][2 * w + 1] << 16;
        else packed[w] = staged[i][w];
      }
      ds_write_b128(lds + stage * kStageBytes + slot[i], packed);
    }
  }

  MI350_DEVICE void load(Fragment& fragment, int stage, int row_tile, int step) const {
    reader.load(fragment, lds + stage * kStageBytes, row_tile, step);
  }

 private:
  template <class Exists>
  MI350_DEVICE void gather(Exists exists) {
    const Descriptor d = window.descriptor();
#pragma unroll
    for (int i = 0; i < kChunks; ++i)
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        const uint32_t at = (offset[i] + e * static_cast<uint32_t>(depth_bytes)) | (exists(i, e) ? 0 : kNowhere);
        if constexpr (sizeof(T) == 2) staged[i][e] = buffer_load_ushort(d, at);
        else staged[i][e] = buffer_load_dword(d, at);
      }
  }
};

}  // namespace mi350
