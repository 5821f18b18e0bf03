// The matrix products of aten on one planner: mm and bmm, addmm and baddbmm with a broadcast addend.
//   mm, bmm          d = a @ b
//   addmm, baddbmm   d = beta * c + alpha * (a @ b), c broadcast to d; c is not read if beta is 0
// The dtype overloads give d in float32 for bf16 and f16 inputs.
#pragma once
#include <optional>
#include <string>

#include "route/call.h"

namespace mi350::ops {

struct GemmInputs {
  const at::Tensor* c = nullptr;
  const at::Tensor* a;
  const at::Tensor* b;
  std::optional<at::ScalarType> out_dtype;
  const at::Scalar* beta = nullptr;   // null: 0
  const at::Scalar* alpha = nullptr;  // null: 1
};

route::Decision gemm(route::Call& call, const GemmInputs& in, int64_t rank);
std::string describe_gemm(const GemmInputs& in);

// Rows of gemm_configs.def that TORCH_MI350_CONFIG pins for an op: `config` is a kernel symbol, or its part
// after the layout ("256x256x64_s2"); "" unpins. Throws ValueError listing the configs if none has that name.
void pin_gemm(const std::string& op, const std::string& config);

// aten's argument lists as GemmInputs.
template <int64_t kRank>
struct Product {
  static constexpr const char* kInputs[] = {"self", "mat2"};
  static constexpr int kElementwise = -1;

  static GemmInputs inputs(const at::Tensor& a, const at::Tensor& b,
                           std::optional<at::ScalarType> out_dtype = {}) {
    return {nullptr, &a, &b, out_dtype, nullptr, nullptr};
  }
  template <class... A>
  static route::Decision run(route::Call& call, const A&... args) {
    return gemm(call, inputs(args...), kRank);
  }
  template <class... A>
  static std::string describe(const A&... args) {
    return describe_gemm(inputs(args...));
  }
};

template <int64_t kRank>
struct SumProduct {
  static constexpr const char* kInputs[] = {"self", kRank == 2 ? "mat1" : "batch1",
                                            kRank == 2 ? "mat2" : "batch2"};
  static constexpr int kElementwise = 0;

  static GemmInputs inputs(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                           const at::Scalar& beta, const at::Scalar& alpha) {
    return {&c, &a, &b, std::nullopt, &beta, &alpha};
  }
  static GemmInputs inputs(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                           at::ScalarType out_dtype, const at::Scalar& beta, const at::Scalar& alpha) {
    return {&c, &a, &b, out_dtype, &beta, &alpha};
  }
  template <class... A>
  static route::Decision run(route::Call& call, const A&... args) {
    return gemm(call, inputs(args...), kRank);
  }
  template <class... A>
  static std::string describe(const A&... args) {
    return describe_gemm(inputs(args...));
  }
};

using Mm = Product<2>;
using Bmm = Product<3>;
using Addmm = SumProduct<2>;
using Baddbmm = SumProduct<3>;

}  // namespace mi350::ops
