// Every row of the gemm table in the emulator against an exact reference: small integers, so that fp32 sums
// are exact in any order and the output is the correctly rounded result. Operands end at guards of NaN bits or
// with their allocation; outputs must stay inside their guards.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "plan/product.h"

namespace mi350::test {
namespace {

using gemm::GemmProblem;
using gemm::kConfigs;

class Kernels : public testing::TestWithParam<int> {};

TEST_P(Kernels, WholeAndRaggedTiles) {
  const auto& c = kConfigs[GetParam()];
  const int64_t chunk = 16 / size_bytes(c.in);
  const int64_t step = c.layout[0] == 's' ? 1 : chunk;  // granularity of m, n, k that the row accepts
  const auto up = [&](int64_t v) { return (v + step - 1) / step * step; };
  const int64_t shapes[][3] = {{c.block_m, c.block_n, c.block_k},
                               {up(c.block_m + 5), up(c.block_n + 9), up(3 * c.block_k + 11)},
                               {up(3), up(5), up(1)},
                               {up(c.block_m / 2 + 1), up(2 * c.block_n - 3), 2 * c.block_k}};
  for (const auto& s : shapes) EXPECT_EQ(run_for(GetParam(), 1, s[0], s[1], s[2], 1, c.in).check_on(GetParam()), "");
}

TEST_P(Kernels, AlphaBetaBiasAndFloatOutput) {
  const auto& c = kConfigs[GetParam()];
  const int64_t m = c.block_m + 8, n = c.block_n / 2 + 8, k = c.block_k + 16;
  for (DType out : {c.in, DType::kF32}) {
    Product run = run_for(GetParam(), 2, m, n, k, 0, out);
    run.alpha = 0.5f, run.beta = 2;
    EXPECT_EQ(run.check_on(GetParam()), "");
    Product bias = run_for(GetParam(), 2, m, n, k, 0, out);
    bias.beta = 1;
    bias.c = Tensor(out, 2, m, n, 0, 0, 1);  // one row of n, starting at an odd element
    std::mt19937 rng(5);
    bias.c.fill(rng, 8);
    bias.shift_c = size_bytes(out);
    EXPECT_EQ(bias.check_on(GetParam()), "");
    bias.shift_c = 0;
    EXPECT_EQ(bias.check_on(GetParam()), "");
  }
}

TEST_P(Kernels, BetaZeroIgnoresCAndAlphaZeroIgnoresTheProduct) {
  const auto& c = kConfigs[GetParam()];
  Product run = run_for(GetParam(), 1, 24, 40, 64, 0, c.in);
  std::fill(run.c.bytes.begin(), run.c.bytes.end(), 0xff);
  EXPECT_EQ(run.check_on(GetParam()), "");
  Product zero = run_for(GetParam(), 1, 24, 40, 64, 0, c.in);
  std::fill(zero.a.bytes.begin(), zero.a.bytes.end(), 0xff);
  std::fill(zero.b.bytes.begin(), zero.b.bytes.end(), 0xff);
  zero.alpha = 0, zero.beta = 3;
  EXPECT_EQ(zero.check_on(GetParam()), "");
  zero.beta = 0;
  EXPECT_EQ(zero.check_on(GetParam()), "");
  Product empty = run_for(GetParam(), 2, 24, 40, 0, 0, c.in);
  empty.beta = 2;
  EXPECT_EQ(empty.check_on(GetParam()), "");
  empty.beta = 0;
  EXPECT_EQ(empty.check_on(GetParam()), "");
}

TEST_P(Kernels, UnalignedAndColumnMajorOutputs) {
  const auto& c = kConfigs[GetParam()];
  const int64_t m = 24, n = 40, k = 64;
  Product odd = run_for(GetParam(), 1, m, n, k, 0, c.in);
  odd.d = Tensor(c.in, 1, m, n, m * (n + 3), n + 3, 1);
  odd.shift_d = size_bytes(c.in);
  EXPECT_EQ(odd.check_on(GetParam()), "");
  Product strided = run_for(GetParam(), 1, m, n, k, 0, c.in);
  strided.d = Tensor(c.in, 1, m, n, 0, 2 * n + 1, 2);
  EXPECT_EQ(strided.check_on(GetParam()), "");
}

TEST_P(Kernels, OperandsMayEndWithTheirAllocation) {
  const auto& c = kConfigs[GetParam()];
  const int64_t step = c.layout[0] == 's' ? 1 : 16 / size_bytes(c.in);
  const int64_t shapes[][3] = {{step, step, step},
                               {step, 16 * step, 12 * step},
                               {9 * step, 13 * step, 17 * step},
                               {c.block_m + step, 3 * step, c.block_k + step}};
  for (const auto& s : shapes) {
    Product product = run_for(GetParam(), 2, s[0], s[1], s[2], 1, c.in);
    product.ends = Buffer::kExact;
    product.beta = 1;
    EXPECT_EQ(product.check_on(GetParam()), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Kernels, testing::Range(0, gemm::kConfigCount),
                         [](const auto& info) { return std::string(kConfigs[info.param].symbol); });

TEST(Gather, ServesStridesAndOffsetsThatVectorsRefuse) {
  for (DType in : {DType::kBF16, DType::kF16, DType::kF32}) {
    const int64_t m = 70, n = 50, k = 45;
    std::mt19937 rng(9);
    const auto run_one = [&](Tensor a, Tensor b, size_t shift) {
      Product run{std::move(a), std::move(b), Tensor(in, 1, m, n, 0, 1, m), Tensor(in, 1, m, n, 0, n, 1)};
      run.a.fill(rng, 3), run.b.fill(rng, 3), run.c.fill(rng, 5);
      run.beta = 1;
      run.shift_a = shift, run.shift_b = shift;
      EXPECT_EQ(run.check_on(-1), "");
    };
    const size_t one = size_bytes(in);
    run_one(Tensor(in, 1, m, k, 0, k, 1), Tensor(in, 1, k, n, 0, n, 1), one);              // odd offsets
    run_one(Tensor(in, 1, m, k, 0, 2 * k + 1, 2), Tensor(in, 1, k, n, 0, 3, 3 * k + 2), 0);  // neither unit
    run_one(Tensor(in, 1, m, k, 0, 0, 1), Tensor(in, 1, k, n, 0, 1, 0), 0);                // expanded
    run_one(Tensor(in, 1, m, k, 0, 1, 1), Tensor(in, 1, k, n, 0, 0, 0), one);              // overlapping, scalar
  }
}

// Rows 32 MiB apart in a, b and d: everything past row 128 lies beyond 2^32 bytes. Only touched pages cost memory.
TEST(WideOffsets, TilesPast32BitsOfBytesAreRight) {
  const int64_t m = 200, n = 150, k = 40, line = int64_t{1} << 24;
  const size_t bytes = (m - 1) * line * 2 + 4096;
  void* at[3];
  for (auto& p : at) check(hipMalloc(&p, bytes), "hipMalloc");
  const auto row = [&](int operand, int64_t i) { return static_cast<char*>(at[operand]) + i * line * 2; };
  std::vector<uint16_t> a(m * k), b(n * k);
  std::mt19937 rng(21);
  for (auto* v : {&a, &b}) for (auto& x : *v) x = to_bf16(static_cast<float>(static_cast<int>(rng() % 7) - 3));
  for (int64_t i = 0; i < m; ++i) check(hipMemcpy(row(0, i), &a[i * k], k * 2, 1), "hipMemcpy");
  for (int64_t j = 0; j < n; ++j) check(hipMemcpy(row(1, j), &b[j * k], k * 2, 1), "hipMemcpy");
  const auto address = [&](int operand) { return reinterpret_cast<uint64_t>(at[operand]); };
  GemmProblem p;
  p.m = m, p.n = n, p.k = k;
  p.a = {address(0), 0, line, 1}, p.b = {address(1), 0, 1, line}, p.d = {address(2), 0, line, 1};
  gemm::Plan plan;
  ASSERT_EQ(gemm::plan(p, {}, {}, plan), "");
  const auto& l = plan.launch[0];
  module_of(kConfigs[l.kernel].object).launch(kConfigs[l.kernel].symbol, l.grid[0], l.grid[1], l.block, plan.args);
  for (int64_t i = 0; i < m; ++i) {
    std::vector<uint16_t> got(n);
    check(hipMemcpy(got.data(), row(2, i), n * 2, 2), "hipMemcpy");
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t q = 0; q < k; ++q) sum += from_bf16(a[i * k + q]) * from_bf16(b[j * k + q]);
      ASSERT_EQ(got[j], to_bf16(sum)) << i << ", " << j << " on " << kConfigs[l.kernel].symbol;
    }
  }
  for (void* q : at) check(hipFree(q), "hipFree");
}

TEST(Numbers, DenormalsSurviveAndFp16OverflowsToInfinity) {
  const int row = gemm::config_index("mi350_gemm_f16_nn_64x64x64_s3");
  ASSERT_GE(row, 0);
  Product run = run_for(row, 1, 16, 64, 64, 0, DType::kF16);
  std::fill(run.b.bytes.begin(), run.b.bytes.end(), 0);
  for (int64_t i = 0; i < 64; ++i) run.b.set(run.b.at(0, i, i), 1.0f);
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 64; ++j)
      run.a.set(run.a.at(0, i, j), std::ldexp(1.0f, -24 + static_cast<int>((i + j) % 10)));
  EXPECT_EQ(run.check_on(row), "");
  for (int64_t j = 0; j < 64; ++j) run.a.set(run.a.at(0, 0, j), j < 2 ? 35008.0f : 0.0f);
  for (int64_t j = 0; j < 64; ++j) run.b.set(run.b.at(0, j, 0), 1.0f);
  EXPECT_EQ(run.check_on(row), "");
  EXPECT_EQ(run.d.get(0), std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace mi350::test
