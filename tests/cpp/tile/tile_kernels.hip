// Kernels that show what the tile vocabulary did: the fragments an operand policy hands to the main loop, the
// LDS addresses of its reads, the tile order.
#include "mainloop/operand_gather.h"
#include "mainloop/operand_plain.h"
#include "mainloop/schedule.h"
#include "isa/wait.h"

namespace mi350 {

struct FragmentArgs {
  uint64_t source, fragments, addresses;
  int64_t extent, depth, stride_extent, stride_depth;
  uint32_t first_row;
};

template <class T, class Tile, class Reader, bool kVector>
struct Policy {
  using Type = PlainOperand<T, Tile, 4, Reader>;
};
template <class T, class Tile, class Reader>
struct Policy<T, Tile, Reader, false> { using Type = GatherOperand<T, Tile, 4, Reader>; };

// One tile of 128 rows, two stages, four waves of 32 rows. fragments: [stage][row tile][step][lane] of 16 bytes.
template <class T, bool kDepthMajor, int kMfma, bool kVector>
MI350_DEVICE void show_fragments(const FragmentArgs& args, LdsBytes lds) {
  constexpr int kDepth = 128 / sizeof(T), kWaveTiles = 32 / kMfma;
  using Tile = LdsTile<T, 128, kDepth, kDepthMajor, kMfma>;
  using Reader = FragmentReader<Tile, T, kWaveTiles>;
  using Operand = typename Policy<T, Tile, Reader, kVector>::Type;
  const uint32_t wave = wave_id();
  Operand operand({args.source, args.extent, args.depth, args.stride_extent, args.stride_depth}, args.first_row,
                  wave * 32, lds);
  const int tiles = (args.depth + kDepth - 1) / kDepth;
  operand.issue_first(0, first_tile_depth<kDepth>(args.depth));
  operand.commit(0);
  if (tiles > 1) {
    operand.issue(1);
    operand.commit(1);
  }
  wait_vmcnt<0>();
  lgkmcnt0_barrier();
  auto* out = reinterpret_cast<__attribute__((address_space(1))) U32x4*>(args.fragments);
  for (int stage = 0; stage < 2 && stage < tiles; ++stage)
#pragma unroll
    for (int i = 0; i < kWaveTiles; ++i)
#pragma unroll
      for (int step = 0; step < Reader::kSteps; ++step) {
        typename Operand::Fragment f;
        operand.load(f, stage, i, step);
        out[((stage * 128 / kMfma + wave * kWaveTiles + i) * Reader::kSteps + step) * kLanes + lane_id()] =
            __builtin_bit_cast(U32x4, f);
      }
  auto* addresses = reinterpret_cast<__attribute__((address_space(1))) uint32_t*>(args.addresses);
  if (wave == 0) {
#pragma unroll
    for (int i = 0; i < Operand::Reader::kAddresses; ++i)
      addresses[i * kLanes + lane_id()] = operand.reader.address[i];
  }
}

}  // namespace mi350

#define SHOW(name, T, depth_major, mfma, vector)                                                         \
  MI350_GLOBAL __attribute__((amdgpu_flat_work_group_size(256, 256))) void name(mi350::FragmentArgs args) { \
    __attribute__((shared, aligned(1024))) static char lds[2 * 128 * 128];                               \
    mi350::show_fragments<T, depth_major, mfma, vector>(args, (mi350::LdsBytes)lds);                     \
  }
SHOW(fragments_bf16_depth_32, mi350::Bf16, true, 32, true)
SHOW(fragments_bf16_depth_16, mi350::Bf16, true, 16, true)
SHOW(fragments_bf16_rows_32, mi350::Bf16, false, 32, true)
SHOW(fragments_bf16_rows_16, mi350::Bf16, false, 16, true)
SHOW(fragments_bf16_gather_32, mi350::Bf16, true, 32, false)
SHOW(fragments_bf16_gather_16, mi350::Bf16, true, 16, false)
SHOW(fragments_f32_depth_32, mi350::F32, true, 32, true)
SHOW(fragments_f32_depth_16, mi350::F32, true, 16, true)
SHOW(fragments_f32_rows_32, mi350::F32, false, 32, true)
SHOW(fragments_f32_rows_16, mi350::F32, false, 16, true)
SHOW(fragments_f32_gather_32, mi350::F32, true, 32, false)
SHOW(fragments_f32_gather_16, mi350::F32, true, 16, false)

struct OrderArgs {
  uint64_t out;  // 3 x uint32 per tile
  uint32_t batch, tiles_m, tiles_n, xcds;
};
MI350_GLOBAL __attribute__((amdgpu_flat_work_group_size(64, 64))) void tile_order(OrderArgs args) {
  const uint32_t id = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (id >= args.batch * args.tiles_m * args.tiles_n) return;
  const mi350::TileCoordinate at = mi350::dense_tile(id, args.batch, args.tiles_m, args.tiles_n, args.xcds);
  auto* out = reinterpret_cast<__attribute__((address_space(1))) uint32_t*>(args.out) + id * 3;
  out[0] = at.batch;
  out[1] = at.m;
  out[2] = at.n;
}
