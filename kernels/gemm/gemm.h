// GEMM contract:  d[b] = alpha * a[b] @ b[b] + beta * c[b]   for every batch b, fp32 accumulation.
//
//   a (batch, m, k)   b (batch, k, n)   c broadcast to (batch, m, n)   d (batch, m, n)
//
// Strides are in elements of the operand, any value including 0 (a, b, c); d must not overlap itself.
// A layout letter is n (k contiguous for a, n contiguous for b: row-major as torch prints it) or t:
// "nt" is a row-major times b column-major, the F.linear case.
#pragma once
#include "../plan.h"
#include "gemm_args.h"

namespace mi350::gemm {

struct Operand {
  uint64_t address = 0;                // bytes; alignment decides between vector and element loads
  int64_t stride_batch = 0, stride_row = 0, stride_col = 0;  // elements, of the matrix as written above
};

struct GemmProblem {
  DType in = DType::kBF16;             // a and b
  DType out = DType::kBF16;            // c and d
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Operand a, b, c, d;                  // c is read only if beta != 0
  float alpha = 1.0f, beta = 0.0f;
};

// A row of gemm_configs.def: variant (dtype, layout) x config (tile, waves, stages).
struct GemmConfig {
  const char* symbol;                  // mi350_gemm_bf16_nt_256x256x64_s2
  const char* object;                  // file that holds it: gemm_bf16_256x256x64.hsaco
  DType in;
  char layout[3];                      // "nn" "nt" "tn" "tt"; "ss": any strides and alignment, element loads
  int block_m, block_n, block_k, waves, stages;
};

extern const GemmConfig kConfigs[];
extern const int kConfigCount;
int config_index(const char* symbol);  // -1: no such row

struct Plan {
  int launches = 0;
  Launch launch[kMaxLaunches];
  GemmArgs args;                       // of launch[0]
  uint64_t workspace_bytes = 0;
  double predicted_cost = 0;           // planner's units, for explain()
};

// Empty: row `config` may serve the problem. The one legality predicate.
Reason why_not(const GemmProblem& problem, int config);

// Fills `plan` and returns an empty reason, or says why no row serves the problem.
// pinned >= 0: only that row (TORCH_MI350_CONFIG).
Reason plan(const GemmProblem& problem, const Device& device, const Flags& flags, Plan& plan, int pinned = -1);

}  // namespace mi350::gemm
