// Accumulate policies of the main loop: on how many levels the products along k are added up.
//
//   OneLevel           in the accumulators themselves
//   TwoLevels<kDepth>  in partial sums, which go into the accumulators every kDepth of k
//
// A matrix instruction rounds its accumulator once per product of fp32, so that the error of a sum of k
// products grows with k. Two levels divide it: for random signs, in units of the last place, its variance is
// k^2 / 2 on one level, k * kDepth / 2 + k^2 / (2 * kDepth) on two.
//
// A policy's Sums<Acc, kTilesM, kTilesN>, built on the cleared accumulators of a wave:
//   running()               what the matrix instructions add to
//   end_tile<kDepth>(left)  after each k tile of kDepth; `left` more follow
#pragma once
#include "../tile/mma.h"

namespace mi350 {

struct OneLevel {
  template <class Acc, int kTilesM, int kTilesN>
  struct Sums {
    Acc (&total)[kTilesM][kTilesN];

    MI350_DEVICE explicit Sums(Acc (&total)[kTilesM][kTilesN]) : total(total) {}
    MI350_DEVICE Acc (&running())[kTilesM][kTilesN] { return total; }
    template <int kDepth> MI350_DEVICE void end_tile(int) {}
  };
};

template <int kPartialDepth>
struct TwoLevels {
  template <class Acc, int kTilesM, int kTilesN>
  struct Sums {
    Acc (&total)[kTilesM][kTilesN];
    Acc partial[kTilesM][kTilesN];

    MI350_DEVICE explicit Sums(Acc (&total)[kTilesM][kTilesN]) : total(total) { clear(partial); }
    MI350_DEVICE Acc (&running())[kTilesM][kTilesN] { return partial; }

    // Counted from the end: the last tile always closes a partial sum.
    template <int kDepth>
    MI350_DEVICE void end_tile(int left) {
      static_assert(kPartialDepth % kDepth == 0, "partial sums hold whole k tiles");
      if (left % (kPartialDepth / kDepth) != 0) return;
#pragma unroll
      for (int i = 0; i < kTilesM; ++i)
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) total[i][j] += partial[i][j];
      clear(partial);
    }
  };
};

// Products of 16-bit elements: the cast of the result to 16 bits outweighs the rounding of their sums.
template <class T> struct AccumulateOf { using Type = OneLevel; };
template <> struct AccumulateOf<F32> { using Type = TwoLevels<128>; };
template <class T> using Accumulate = typename AccumulateOf<T>::Type;

}  // namespace mi350
