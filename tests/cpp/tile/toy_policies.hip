// Toy kernels on the shared main loop: a scaled (MXFP8) and a grouped (bf16) operand policy.
#include "mainloop/epilogue.h"
#include "mainloop/mainloop.h"
#include "mainloop/operand_plain.h"
#include "mainloop/operand_scaled.h"
#include "mainloop/schedule.h"

namespace mi350 {

constexpr int kBlock = 64, kStages = 2;  // 4 waves of 32 x 32

struct ScaledArgs {
  uint64_t a, b, scale_a, scale_b, d;  // a (m, k), b (n, k) fp8; scales (m, k / 32), (n, k / 32); d (m, n) f32
  int32_t m, n, k;
};

MI350_DEVICE void scaled_kernel(const ScaledArgs& args, LdsBytes lds) {
  constexpr int kDepth = 128;
  using Tile = LdsTile<Fp8, kBlock, kDepth, true, 32>;
  using Operand = ScaledOperand<Tile, 4, 1, kStages>;
  const uint32_t wave_m = wave_id() / 2 * 32, wave_n = wave_id() % 2 * 32;
  const uint32_t first_m = __builtin_amdgcn_workgroup_id_x() * kBlock,
                 first_n = __builtin_amdgcn_workgroup_id_y() * kBlock;
  const auto view = [&](uint64_t at, int64_t rows, int64_t k) { return OperandView{at, rows, k, k, 1}; };
  Operand a(view(args.a, args.m, args.k), view(args.scale_a, args.m, args.k / 32), first_m, wave_m, lds);
  Operand b(view(args.b, args.n, args.k), view(args.scale_b, args.n, args.k / 32), first_n, wave_n,
            lds + kStages * Tile::kBytes);
  F32x16 acc[1][1];
  clear(acc);
  mainloop<ScaledMma, OneLevel, kStages>(acc, a, b, (args.k + kDepth - 1) / kDepth, first_tile_depth<kDepth>(args.k));
  const auto d = EpilogueView<F32>::of(args.d, args.m, args.n, args.n, 1, first_m, first_n, 16);
  finish_tiles<F32, 32>(acc, d, d, wave_m, wave_n, 1.0f, 0.0f);
}

struct GroupedArgs {
  // a (rows, k) bf16, b (groups, n, k) bf16, ends (groups) int32 on the device, d (rows, n) bf16
  uint64_t a, b, ends, d;
  int32_t n, k, groups;
};

MI350_DEVICE void grouped_kernel(const GroupedArgs& args, LdsBytes lds) {
  constexpr int kDepth = 64;
  using Tile = LdsTile<Bf16, kBlock, kDepth, true, 32>;
  using Operand = PlainOperand<Bf16, Tile, 4, FragmentReader<Tile, Bf16, 1>>;
  const uint32_t wave_m = wave_id() / 2 * 32, wave_n = wave_id() % 2 * 32;
  GroupTile tile;
  const uint32_t tiles_n = (args.n + kBlock - 1) / kBlock;
  const auto* ends = reinterpret_cast<GroupEnds>(args.ends);
  if (!grouped_tile(tile, __builtin_amdgcn_workgroup_id_x(), ends, args.groups, kBlock, tiles_n)) return;
  const int64_t rows = tile.end - tile.begin, group = tile.at.batch;
  const uint32_t first_m = tile.at.m * kBlock, first_n = tile.at.n * kBlock;
  // Operands rebased to the group: 64-bit scalar arithmetic, the size ends at the group's last row.
  Operand a({args.a + tile.begin * int64_t{args.k} * 2, rows, args.k, args.k, 1}, first_m, wave_m, lds);
  Operand b({args.b + group * args.n * int64_t{args.k} * 2, args.n, args.k, args.k, 1}, first_n, wave_n,
            lds + kStages * Tile::kBytes);
  F32x16 acc[1][1];
  clear(acc);
  mainloop<Mma<32>, OneLevel, kStages>(acc, a, b, (args.k + kDepth - 1) / kDepth, first_tile_depth<kDepth>(args.k));
  const auto d = EpilogueView<Bf16>::of(args.d + tile.begin * int64_t{args.n} * 2, rows, args.n, args.n, 1, first_m,
                                        first_n, 16);
  finish_tiles<Bf16, 32>(acc, d, d, wave_m, wave_n, 1.0f, 0.0f);
}

}  // namespace mi350

MI350_GLOBAL __attribute__((amdgpu_flat_work_group_size(256, 256))) void toy_scaled(mi350::ScaledArgs args) {
  __attribute__((shared, aligned(1024))) static char lds[4 * 64 * 128];
  mi350::scaled_kernel(args, (mi350::LdsBytes)lds);
}
MI350_GLOBAL __attribute__((amdgpu_flat_work_group_size(256, 256))) void toy_grouped(mi350::GroupedArgs args) {
  __attribute__((shared, aligned(1024))) static char lds[4 * 64 * 128];
  mi350::grouped_kernel(args, (mi350::LdsBytes)lds);
}
