// The staged matrix loop: acc = a @ b over `tiles` k tiles, for any two operand policies (operand.h), any
// Mma with apply(acc, fragment_of_a, fragment_of_b) and any accumulate policy (accumulate.h). acc comes cleared.
//
// k tile t lives in LDS stage t % kStages. One barrier per k tile:
//
//   wait: this wave's loads of tile t have landed, its LDS reads and writes are done
//   barrier: so have everyone's: tile t is whole, and the stage of tile t - 1 is free
//   issue tile t + kStages - 1 into the freed stage
//   math on tile t
//   commit (policies that stage through registers write that same freed stage now)
#pragma once
#include "../isa/wait.h"
#include "../tile/mma.h"
#include "accumulate.h"

namespace mi350 {

// Leaves the loads of at most `tiles_after` later k tiles in flight.
template <int kLoadsPerTile, int kMaxTiles>
MI350_DEVICE void wait_tile(int tiles_after) {
  if constexpr (kLoadsPerTile > 0) {
    if constexpr (kMaxTiles > 0) {
      if (tiles_after >= kMaxTiles) return wait_vmcnt<kLoadsPerTile * kMaxTiles>();
      return wait_tile<kLoadsPerTile, kMaxTiles - 1>(tiles_after);
    } else {
      wait_vmcnt<0>();
    }
  }
}

// The fragments of one k step.
template <class A, class B, int kTilesM, int kTilesN>
struct StepFragments {
  typename A::Fragment a[kTilesM];
  typename B::Fragment b[kTilesN];

  MI350_DEVICE void load(const A& from_a, const B& from_b, int stage, int step) {
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) from_b.load(b[j], stage, j, step);
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) from_a.load(a[i], stage, i, step);
  }
};

// The fragments of the next k step are read while the present one is multiplied.
template <class Mma, int kTilesM, int kTilesN, class Acc, class A, class B>
MI350_DEVICE void multiply_stage(Acc (&acc)[kTilesM][kTilesN], const A& a, const B& b, int stage) {
  StepFragments<A, B, kTilesM, kTilesN> now, next;
  now.load(a, b, stage, 0);
#pragma unroll
  for (int step = 0; step < A::kSteps; ++step) {
    if (step + 1 < A::kSteps) next.load(a, b, stage, step + 1);
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) Mma::apply(acc[i][j], now.a[i], now.b[j]);
    now = next;
    // Large wave tiles: without the fence the reads of all steps are hoisted and the registers spill.
    if constexpr (kTilesM * kTilesN >= 8) sched_fence();
  }
}

template <class Mma, class Accumulate, int kStages, int kTilesM, int kTilesN, class Acc, class A, class B>
MI350_DEVICE void mainloop(Acc (&acc)[kTilesM][kTilesN], A& a, B& b, int tiles, int first_depth) {
  static_assert(kStages >= 2, "one stage is read while another is written");
  static_assert(A::kSteps == B::kSteps, "operands must cut k alike");
  constexpr int kLoads = A::kLoadsToLds + B::kLoadsToLds;
  if (tiles == 0) return;
  typename Accumulate::template Sums<Acc, kTilesM, kTilesN> sums(acc);
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage >= tiles) break;
    if (stage == 0) { a.issue_first(0, first_depth); b.issue_first(0, first_depth); }
    else { a.issue(stage); b.issue(stage); }
    a.commit(stage);
    b.commit(stage);
  }
  // The stage index is a constant in each copy of the body: LDS offsets stay immediates.
  for (int tile = 0; tile < tiles; tile += kStages) {
#pragma unroll
    for (int stage = 0; stage < kStages; ++stage) {
      const int left = tiles - tile - stage - 1;  // tiles after this one
      if (left < 0) break;
      constexpr int kAhead = kStages - 1;
      const int freed = (stage + kAhead) % kStages;
      wait_tile<kLoads, kStages - 2>(left);
      lgkmcnt0_barrier();
      if (left >= kAhead) { a.issue(freed); b.issue(freed); }
      multiply_stage<Mma>(sums.running(), a, b, stage);
      sums.template end_tile<A::kDepth>(left);
      if (left >= kAhead) { a.commit(freed); b.commit(freed); }
    }
  }
}

}  // namespace mi350
