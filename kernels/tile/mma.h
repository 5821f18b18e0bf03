// Accumulator tiles and the matrix step. The n operand is passed as the instruction's rows, so that a lane
// ends up with 4 consecutive n of one m, which is what row-major stores want.
#pragma once
#include "fragment.h"

namespace mi350 {

template <int kMfma> struct AccumulatorOf;
template <> struct AccumulatorOf<32> { using Type = F32x16; };
template <> struct AccumulatorOf<16> { using Type = F32x4; };
template <int kMfma> using Accumulator = typename AccumulatorOf<kMfma>::Type;

template <int kTilesM, int kTilesN, class Acc>
MI350_DEVICE void clear(Acc (&acc)[kTilesM][kTilesN]) {
#pragma unroll
  for (int i = 0; i < kTilesM; ++i)
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) acc[i][j] = Acc{};
}

// Fragment of m rows, fragment of n columns; accumulator of kMfma x kMfma.
template <int kMfma>
struct Mma {
  template <class FragmentM, class FragmentN>
  static MI350_DEVICE void apply(Accumulator<kMfma>& acc, const FragmentM& m, const FragmentN& n) {
    if constexpr (kMfma == 32) acc = mfma_32x32(n, m, acc);
    else acc = mfma_16x16(n, m, acc);
  }
};

// Where the quads (4 consecutive n) of an accumulator lie in its tile.
template <int kMfma>
struct AccumulatorLayout {
  static constexpr int kQuads = kMfma == 32 ? 4 : 1;
  static MI350_DEVICE uint32_t m() { return lane_id() % kMfma; }
  static MI350_DEVICE uint32_t n(int quad) { return quad * 8 + (lane_id() / kMfma) * 4; }
};

template <class Acc>
MI350_DEVICE F32x4 quad_of(const Acc& acc, int quad) {
  return F32x4{acc[quad * 4], acc[quad * 4 + 1], acc[quad * 4 + 2], acc[quad * 4 + 3]};
}
template <class Acc>
MI350_DEVICE void set_quad(Acc& acc, int quad, F32x4 v) {
#pragma unroll
  for (int e = 0; e < 4; ++e) acc[quad * 4 + e] = v[e];
}

}  // namespace mi350
