// SMFMAC: D += A B with A 4:2 sparse. A keeps two of every four k, in the dense layout of K/2; a 2-bit index
// per kept item, in the third source of the same lane, says which of the four it is.
//
//   A: kept item c = L*(lane / M) + e stands for k = 4*(c / 2) + index[e]
//   index: entries 2e+1:2e of one of 16/L sets in the dword, chosen by ABID while CBSZ is 0
//   B: k = 2L*(lane / N) + e; operands of 8 registers: k = L*(lane / N) + e, the second half of K in their
//   upper L items
#include "exec_lanes.h"
#include "mfma_panel.h"
#include "mfma_shape.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

template <Shape S> void set_b_slices(const float** at, const Panel& b, bool two_chunks) {
  const int items = two_chunks ? S.items() / 2 : S.items(), chunk = two_chunks ? S.k / 2 : S.k;
  for (int k = 0; k < S.k; ++k) at[k] = b[k % items + (k / chunk) * items] + S.n * (k % chunk / items);
}

// One row: only the k that A keeps are touched, so that an infinity of B elsewhere does not matter.
template <Shape S>
void add_row(const Panel& a, const uint32_t* indices, int shift, int row, const float* const* b, float* sum) {
  constexpr int kItems = S.items() / 2, kGroups = kLanes / S.m;
  for (int group = 0; group < kGroups; ++group)
    for (int e = 0; e < kItems; ++e) {
      const int lane = row + S.m * group, kept = kItems * group + e;
      const int k = 4 * (kept / 2) + static_cast<int>(indices[lane] >> (shift + 2 * e) & 3);
      for (int j = 0; j < S.n; ++j) sum[j] = __builtin_fmaf(a[e][lane], b[k][j], sum[j]);
    }
}

template <Shape S> void smfmac(Wave& w, const Inst& i, Element ta, Element tb) {
  constexpr int kItems = S.items() / 2, kSets = 16 / kItems;
  alignas(64) Panel a, b;
  unpack(w, i.src[0], ta, kItems, a);
  unpack(w, i.src[1], tb, S.items(), b);
  const float* slices[S.k];
  set_b_slices<S>(slices, b, S.items() * element_bits(tb) == 256);
  Lanes scratch, indices;   // copied: D may overlap them
  std::memcpy(indices.data(), read_lanes(w, i, i.src[2], scratch), sizeof(Lanes));
  const int shift = i.cbsz ? 0 : 2 * kItems * (i.abid % kSets);
  const bool integer = ta == Element::kI8;
  uint32_t (*d)[kLanes] = &w.vgpr[i.dst - kVgpr0];
  for (int row = 0; row < S.m; ++row) {
    uint32_t* to = &d[register_of<S>(0, row)][lane_of<S>(0, row)];
    alignas(64) float sum[S.n] = {};
    if (!integer) std::memcpy(sum, to, sizeof sum);
    add_row<S>(a, indices.data(), shift, row, slices, sum);
    if (!integer) std::memcpy(to, sum, sizeof sum);
    else for (int j = 0; j < S.n; ++j) to[j] += static_cast<uint32_t>(static_cast<int32_t>(sum[j]));
  }
  count(w, S);
}

}  // namespace

#define SMFMAC(name, m, k, ta, tb) \
  void name(Wave& w, const Inst& i) { smfmac<Shape{m, m, k, 1}>(w, i, Element::ta, Element::tb); }

SMFMAC(v_smfmac_f32_16x16x32_f16, 16, 32, kF16, kF16)
SMFMAC(v_smfmac_f32_32x32x16_f16, 32, 16, kF16, kF16)
SMFMAC(v_smfmac_f32_16x16x32_bf16, 16, 32, kBf16, kBf16)
SMFMAC(v_smfmac_f32_32x32x16_bf16, 32, 16, kBf16, kBf16)
SMFMAC(v_smfmac_f32_16x16x64_f16, 16, 64, kF16, kF16)
SMFMAC(v_smfmac_f32_32x32x32_f16, 32, 32, kF16, kF16)
SMFMAC(v_smfmac_f32_16x16x64_bf16, 16, 64, kBf16, kBf16)
SMFMAC(v_smfmac_f32_32x32x32_bf16, 32, 32, kBf16, kBf16)
SMFMAC(v_smfmac_i32_16x16x64_i8, 16, 64, kI8, kI8)
SMFMAC(v_smfmac_i32_32x32x32_i8, 32, 32, kI8, kI8)
SMFMAC(v_smfmac_i32_16x16x128_i8, 16, 128, kI8, kI8)
SMFMAC(v_smfmac_i32_32x32x64_i8, 32, 64, kI8, kI8)

#define SMFMAC_8(a, b, ta, tb) \
  SMFMAC(v_smfmac_f32_16x16x64_##a##_##b, 16, 64, ta, tb) \
  SMFMAC(v_smfmac_f32_32x32x32_##a##_##b, 32, 32, ta, tb) \
  SMFMAC(v_smfmac_f32_16x16x128_##a##_##b, 16, 128, ta, tb) \
  SMFMAC(v_smfmac_f32_32x32x64_##a##_##b, 32, 64, ta, tb)
SMFMAC_8(bf8, bf8, kBf8, kBf8)
SMFMAC_8(bf8, fp8, kBf8, kFp8)
SMFMAC_8(fp8, bf8, kFp8, kBf8)
SMFMAC_8(fp8, fp8, kFp8, kFp8)

}  // namespace mi350::emu::MI350_EMU_LEVEL
