// The gemm kernels of one code object. CMake compiles this file once per line of gemm_configs.def, with
// MI350_CONFIG = the line's arguments.
#include "gemm_kernel.h"

namespace mi350::gemm {
using in_bf16 = Bf16;
using in_f16 = F16;
using in_f32 = F32;
}  // namespace mi350::gemm

#define GEMM_SHAPE(in, tag, bm, bn, bk, wm, wn, stages, mfma) \
  mi350::gemm::GemmShape<mi350::gemm::in_##in, mi350::gemm::tag, bm, bn, bk, wm, wn, stages, mfma>
#define GEMM_KERNEL(in, layout, tag, bm, bn, bk, wm, wn, stages, mfma)                                              \
  MI350_GLOBAL __attribute__((                                                                                      \
      amdgpu_flat_work_group_size(64 * wm * wn, 64 * wm * wn),                                                      \
      amdgpu_waves_per_eu(GEMM_SHAPE(in, tag, bm, bn, bk, wm, wn, stages, mfma)::kWavesPerSimd,                     \
                          GEMM_SHAPE(in, tag, bm, bn, bk, wm, wn, stages, mfma)::kWavesPerSimd)))                   \
  void mi350_gemm_##in##_##layout##_##bm##x##bn##x##bk##_s##stages(mi350::gemm::GemmArgs args) {                    \
    using Shape = GEMM_SHAPE(in, tag, bm, bn, bk, wm, wn, stages, mfma);                                            \
    __attribute__((shared, aligned(1024))) static char lds[Shape::kLdsBytes];                                       \
    mi350::gemm::gemm_kernel<Shape>(args, (mi350::LdsBytes)lds);                                                    \
  }
#define GEMM_LAYOUTS_vector(in, ...)     \
  GEMM_KERNEL(in, nn, Nn, __VA_ARGS__)   \
  GEMM_KERNEL(in, nt, Nt, __VA_ARGS__)   \
  GEMM_KERNEL(in, tn, Tn, __VA_ARGS__)   \
  GEMM_KERNEL(in, tt, Tt, __VA_ARGS__)
#define GEMM_LAYOUTS_all(in, ...)        \
  GEMM_LAYOUTS_vector(in, __VA_ARGS__)   \
  GEMM_KERNEL(in, ss, Ss, __VA_ARGS__)

#define GEMM_CONFIG(in, bm, bn, bk, wm, wn, stages, mfma, layouts) \
  GEMM_LAYOUTS_##layouts(in, bm, bn, bk, wm, wn, stages, mfma)
#define GEMM_EXPAND(...) GEMM_CONFIG(__VA_ARGS__)
GEMM_EXPAND(MI350_CONFIG)
