// d[b] = alpha * a[b] @ b[b] + beta * c[b], one output tile per workgroup.
//
//   global --16-byte loads to LDS / element gather--> LDS stages --fragments--> MFMA --epilogue--> global
//
// The workgroup's tile is cut into waves_m x waves_n wave tiles; a wave owns whole accumulators.
#pragma once
#include "../mainloop/epilogue.h"
#include "../mainloop/mainloop.h"
#include "../mainloop/operand_gather.h"
#include "../mainloop/operand_plain.h"
#include "../mainloop/schedule.h"
#include "gemm_args.h"

namespace mi350::gemm {

constexpr uint32_t kOutF32 = 2;  // DType::kF32, held by a static_assert of the planner

// Layouts of gemm.h as compile-time facts: is k the contiguous axis of the operand in memory?
struct Nn { static constexpr bool kVector = true, kADepthMajor = true, kBDepthMajor = false; };
struct Nt { static constexpr bool kVector = true, kADepthMajor = true, kBDepthMajor = true; };
struct Tn { static constexpr bool kVector = true, kADepthMajor = false, kBDepthMajor = false; };
struct Tt { static constexpr bool kVector = true, kADepthMajor = false, kBDepthMajor = true; };
struct Ss { static constexpr bool kVector = false, kADepthMajor = true, kBDepthMajor = true; };

template <class T_, class Layout_, int kBlockM_, int kBlockN_, int kBlockK_, int kWavesM_, int kWavesN_,
          int kStages_, int kMfma_>
struct GemmShape {
  using T = T_;
  using Layout = Layout_;
  static constexpr int kBlockM = kBlockM_, kBlockN = kBlockN_, kBlockK = kBlockK_;
  static constexpr int kWavesM = kWavesM_, kWavesN = kWavesN_, kWaves = kWavesM * kWavesN;
  static constexpr int kMfma = kMfma_;
  // A gather holds its next tile in registers: a third LDS stage would buy nothing.
  static constexpr int kStages = Layout::kVector ? kStages_ : 2;
  static constexpr int kTilesM = kBlockM / kWavesM / kMfma, kTilesN = kBlockN / kWavesN / kMfma;
  static_assert(kTilesM * kWavesM * kMfma == kBlockM && kTilesN * kWavesN * kMfma == kBlockN,
                "waves must cut the block into whole accumulators");
  using TileA = LdsTile<T, kBlockM, kBlockK, Layout::kADepthMajor, kMfma>;
  using TileB = LdsTile<T, kBlockN, kBlockK, Layout::kBDepthMajor, kMfma>;
  static constexpr int kLdsBytes = kStages * (TileA::kBytes + TileB::kBytes);
  static_assert(kLdsBytes <= 163840, "LDS of a workgroup is 160 KiB");
  // What LDS lets a CU hold, which bounds the registers; past 4 nothing is gained here.
  static constexpr int kResident = 163840 / kLdsBytes * kWaves / 4;
  static constexpr int kWavesPerSimd = kResident < 1 ? 1 : kResident > 4 ? 4 : kResident;
};

template <class Shape, class Tile, int kWaveTiles, bool kVector> struct OperandFor;
template <class Shape, class Tile, int kWaveTiles>
struct OperandFor<Shape, Tile, kWaveTiles, true> {
  using T = typename Shape::T;
  using Type = PlainOperand<T, Tile, Shape::kWaves, FragmentReader<Tile, T, kWaveTiles>>;
};
template <class Shape, class Tile, int kWaveTiles>
struct OperandFor<Shape, Tile, kWaveTiles, false> {
  using T = typename Shape::T;
  using Type = GatherOperand<T, Tile, Shape::kWaves, FragmentReader<Tile, T, kWaveTiles>>;
};

template <class Out, class Shape, class Acc>
MI350_DEVICE void finish(Acc (&acc)[Shape::kTilesM][Shape::kTilesN], const GemmArgs& args, const TileCoordinate& at,
                         uint32_t wave_m, uint32_t wave_n) {
  const uint32_t first_m = at.m * Shape::kBlockM, first_n = at.n * Shape::kBlockN;
  const uint64_t address_c = args.c + at.batch * args.c_stride_batch * static_cast<int64_t>(sizeof(Out));
  const uint64_t address_d = args.d + at.batch * args.d_stride_batch * static_cast<int64_t>(sizeof(Out));
  const auto c = EpilogueView<Out>::of(address_c, args.m, args.n, args.c_stride_row, args.c_stride_col, first_m,
                                       first_n, 4 * sizeof(Out));
  const auto d =
      EpilogueView<Out>::of(address_d, args.m, args.n, args.d_stride_row, args.d_stride_col, first_m, first_n, 16);
  finish_tiles<Out, Shape::kMfma>(acc, c, d, wave_m, wave_n, args.alpha, args.beta);
}

template <class Shape>
MI350_DEVICE void gemm_kernel(const GemmArgs& args, LdsBytes lds) {
  using T = typename Shape::T;
  using Acc = Accumulator<Shape::kMfma>;
  constexpr bool kVector = Shape::Layout::kVector;
  using A = typename OperandFor<Shape, typename Shape::TileA, Shape::kTilesM, kVector>::Type;
  using B = typename OperandFor<Shape, typename Shape::TileB, Shape::kTilesN, kVector>::Type;
  constexpr int64_t kBytes = sizeof(T);

  const uint32_t id =
      __builtin_amdgcn_workgroup_id_y() * max_grid_x(Shape::kWaves * kLanes) + __builtin_amdgcn_workgroup_id_x();
  if (id >= static_cast<uint32_t>(args.tiles_m * args.tiles_n) * args.batch) return;
  const TileCoordinate at = dense_tile(id, args.batch, args.tiles_m, args.tiles_n, args.xcds);
  const uint32_t wave = wave_id();
  const uint32_t wave_m = wave / Shape::kWavesN * (Shape::kTilesM * Shape::kMfma);
  const uint32_t wave_n = wave % Shape::kWavesN * (Shape::kTilesN * Shape::kMfma);

  Acc acc[Shape::kTilesM][Shape::kTilesN];
  clear(acc);
  const OperandView view_a = {args.a + at.batch * args.a_stride_batch * kBytes, args.m, args.k, args.a_stride_row,
                              args.a_stride_col};
  const OperandView view_b = {args.b + at.batch * args.b_stride_batch * kBytes, args.n, args.k, args.b_stride_col,
                              args.b_stride_row};
  A a(view_a, at.m * Shape::kBlockM, wave_m, lds);
  B b(view_b, at.n * Shape::kBlockN, wave_n, lds + Shape::kStages * Shape::TileA::kBytes);
  const int tiles = (static_cast<uint32_t>(args.k) + Shape::kBlockK - 1) / Shape::kBlockK;
  mainloop<Mma<Shape::kMfma>, Accumulate<T>, Shape::kStages>(acc, a, b, tiles,
                                                             first_tile_depth<Shape::kBlockK>(args.k));

  if (sizeof(T) == 2 && args.out_dtype != kOutF32) finish<T, Shape>(acc, args, at, wave_m, wave_n);
  else finish<F32, Shape>(acc, args, at, wave_m, wave_n);
}

}  // namespace mi350::gemm
