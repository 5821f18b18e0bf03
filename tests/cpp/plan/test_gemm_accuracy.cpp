// The fp32 rows add up k on two levels: their error stays well below that of one sum of k products.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "plan/product.h"

namespace mi350::test {
namespace {

using gemm::kConfigs;

struct Errors {
  double rows = 0, one_sum = 0;  // rms, against float64
};

// `d` as the row computed it, and the same product as one chain of fused multiply-adds.
Errors errors_of(const Product& product) {
  const Tensor &a = product.a, &b = product.b, &d = product.d;
  Errors e;
  for (int64_t i = 0; i < d.rows; ++i)
    for (int64_t j = 0; j < d.cols; ++j) {
      double exact = 0;
      float chain = 0;
      for (int64_t p = 0; p < a.cols; ++p) {
        const float x = a.get(a.at(0, i, p)), y = b.get(b.at(0, p, j));
        exact += double{x} * y;
        chain = std::fma(x, y, chain);
      }
      e.rows += std::pow(d.get(d.at(0, i, j)) - exact, 2);
      e.one_sum += std::pow(chain - exact, 2);
    }
  const double count = static_cast<double>(d.rows * d.cols);
  return {std::sqrt(e.rows / count), std::sqrt(e.one_sum / count)};
}

TEST(Accuracy, Fp32RowsStayBelowHalfTheErrorOfOneSum) {
  int rows = 0;
  for (int row = 0; row < gemm::kConfigCount; ++row) {
    if (kConfigs[row].in != DType::kF32) continue;
    ++rows;
    for (int64_t k : {1000, 2052}) {
      Product product = run_for(row, 1, 24, 40, k, 0, DType::kF32);
      std::mt19937 rng(17);
      std::normal_distribution<float> normal;
      for (Tensor* t : {&product.a, &product.b})
        for (int64_t i = 0; i < t->rows; ++i)
          for (int64_t j = 0; j < t->cols; ++j) t->set(t->at(0, i, j), normal(rng));
      Buffer d(product.d.bytes.size());
      std::string symbol;
      ASSERT_EQ(product.run_on(row, d, symbol), "");
      const Errors e = errors_of(product);
      EXPECT_GT(e.rows, 0) << symbol;
      EXPECT_LT(e.rows, 0.5 * e.one_sum) << symbol << " k=" << k;
    }
  }
  EXPECT_GT(rows, 0);
}

}  // namespace
}  // namespace mi350::test
