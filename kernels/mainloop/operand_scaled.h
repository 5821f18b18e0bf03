// Operand policy: FP8 E4M3 with one E8M0 scale byte per row and 32 k (MXFP8). Data goes to LDS like any
// plain operand; a lane's scale bytes go to registers, one set per stage. k must be a multiple of 32.
#pragma once
#include "../isa/mfma.h"
#include "operand_plain.h"

namespace mi350 {

struct Fp8 { uint8_t bits; };
constexpr int kScaleBlock = 32;  // k per scale

// v_mfma_scale_f32_32x32x64: a lane's 32 bytes are two chunks, 32 k apart.
template <class Tile, int kTiles>
struct Fp8Reader {
  using Fragment = I32x8;
  static constexpr int kMfma = 32, kStepDepth = 64, kSteps = Tile::kDepth / kStepDepth;
  static_assert(Tile::kDepthMajor && Tile::kMfma == kMfma && Tile::kDepth % kStepDepth == 0,
                "fp8 tiles are depth-major, k by 64");

  uint32_t address[kSteps][2];

  MI350_DEVICE Fp8Reader(uint32_t first_row) {
    const uint32_t row = lane_id() % kMfma, group = lane_id() / kMfma;
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        address[step][half] = Tile::offset(first_row + row, step * 4 + half * 2 + group);
  }

  MI350_DEVICE void load(Fragment& fragment, LdsBytes tile, int row_tile, int step) const {
    const LdsBytes at = tile + row_tile * kMfma * Tile::kLineBytes;
    const U32x4 low = ds_read_b128(at + address[step][0]), high = ds_read_b128(at + address[step][1]);
#pragma unroll
    for (int w = 0; w < 4; ++w) fragment[w] = low[w], fragment[4 + w] = high[w];
  }
};

struct ScaledFragment {
  I32x8 data;
  int scale;
};

template <class Tile, int kWaves, int kWaveTiles, int kStages>
struct ScaledOperand {
  using Data = PlainOperand<Fp8, Tile, kWaves, Fp8Reader<Tile, kWaveTiles>>;
  using Fragment = ScaledFragment;
  static constexpr int kSteps = Data::kSteps, kStageBytes = Data::kStageBytes, kLoadsToLds = Data::kLoadsToLds;
  static constexpr int kDepth = Tile::kDepth;

  Data data;
  GlobalTile scales;
  uint32_t offset[kWaveTiles];
  int scale[kStages][kWaveTiles][kSteps];

  // `scale_view`: extent rows by depth / 32, one byte each.
  MI350_DEVICE ScaledOperand(const OperandView& view, const OperandView& scale_view, uint32_t first_row,
                             uint32_t wave_row, LdsBytes lds)
      : data(view, first_row, wave_row, lds), scales(window_of<1>(scale_view, first_row)) {
    const uint32_t rows = static_cast<uint32_t>(view.extent) - first_row;
#pragma unroll
    for (int i = 0; i < kWaveTiles; ++i) {
      const uint32_t row = wave_row + i * 32 + lane_id() % 32;
      offset[i] =
          (row * static_cast<uint32_t>(scale_view.stride_extent) + lane_id() / 32) | (row < rows ? 0 : kNowhere);
    }
  }

  MI350_DEVICE void issue_first(int stage, int depth) {
    data.issue_first(stage, depth);
    load_scales(stage, depth / kScaleBlock);
  }
  MI350_DEVICE void issue(int stage) {
    data.issue(stage);
    load_scales(stage, kDepth / kScaleBlock);
  }
  MI350_DEVICE void commit(int) {}

  MI350_DEVICE void load(Fragment& fragment, int stage, int row_tile, int step) const {
    data.load(fragment.data, stage, row_tile, step);
    fragment.scale = scale[stage][row_tile][step];
  }

 private:
  // A missing block reads scale 0 (2^-127), its data are zero.
  MI350_DEVICE void load_scales(int stage, int blocks) {
    const Descriptor d = scales.descriptor();
#pragma unroll
    for (int i = 0; i < kWaveTiles; ++i)
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const bool exists = step * 2 + static_cast<int>(lane_id() / 32) < blocks;
        scale[stage][i][step] = buffer_load_ubyte(d, (offset[i] + step * 2) | (exists ? 0 : kNowhere));
      }
    scales.advance(blocks);
  }
};

struct ScaledMma {
  static MI350_DEVICE void apply(F32x16& acc, const ScaledFragment& m, const ScaledFragment& n) {
    acc = mfma_scale_32x32_fp8(n.data, n.scale, m.data, m.scale, acc);
  }
};

}  // namespace mi350
