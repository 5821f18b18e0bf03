// The kernarg segment of the gemm kernels: shared by the planner and device code.
#pragma once
#include <cstdint>

namespace mi350::gemm {

// Passed by value.
struct GemmArgs {
  uint64_t a, b, c, d;                 // device addresses
  int64_t a_stride_batch, b_stride_batch, c_stride_batch, d_stride_batch;  // elements
  int64_t a_stride_row, a_stride_col;  // elements
  int64_t b_stride_row, b_stride_col;
  int64_t c_stride_row, c_stride_col;
  int64_t d_stride_row, d_stride_col;
  int32_t m, n, k, batch;              // k = 0 if alpha is 0: a and b are then not read
  int32_t tiles_m, tiles_n;            // tile counts of one batch entry
  float alpha, beta;
  uint32_t out_dtype;                  // DType of c and d
  uint32_t xcds;
};

// Workgroups of one grid row: the largest multiple of 64 whose work-items fit 32 bits. Larger launches
// continue in y.
constexpr uint32_t max_grid_x(uint32_t block) { return (0xffffffffu / block) & ~63u; }

}  // namespace mi350::gemm
