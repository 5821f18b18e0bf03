// GEMM problems for the planner's and the kernels' tests.
#pragma once
#include <string>

#include "gemm/gemm.h"

namespace mi350::test {

inline constexpr uint64_t kBaseAddress = 0x100000000000ull;

// Contiguous operands in one of the four layouts ("nn" "nt" "tn" "tt"), d row-major; c as d.
inline gemm::GemmProblem dense(DType in, const std::string& layout, int64_t m, int64_t n, int64_t k,
                               int64_t batch = 1) {
  gemm::GemmProblem p;
  p.in = p.out = in;
  p.batch = batch, p.m = m, p.n = n, p.k = k;
  p.a = {kBaseAddress, m * k, layout[0] == 'n' ? k : 1, layout[0] == 'n' ? 1 : m};
  p.b = {kBaseAddress, n * k, layout[1] == 'n' ? n : 1, layout[1] == 'n' ? 1 : k};
  p.c = p.d = {kBaseAddress, m * n, n, 1};
  return p;
}

// The symbol that plan() picks, or "-> reason".
inline std::string chosen(const gemm::GemmProblem& p, int pinned = -1, Device device = {}) {
  gemm::Plan plan;
  const Reason r = gemm::plan(p, device, {}, plan, pinned);
  if (!r.empty()) return "-> " + r;
  return plan.launches == 0 ? "no launch" : gemm::kConfigs[plan.launch[0].kernel].symbol;
}

}  // namespace mi350::test
