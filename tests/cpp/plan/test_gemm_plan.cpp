// The gemm planner: golden choices, legality, reasons, grids, and the table against the built code objects.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "plan/problems.h"
#include "tile/device.h"

namespace mi350::test {
namespace {

using gemm::kConfigCount;
using gemm::kConfigs;

TEST(GemmPlan, ChoosesTheseKernels) {
  const struct { DType in; const char* layout; int64_t m, n, k; const char* symbol; } golden[] = {
      {DType::kBF16, "nt", 8192, 8192, 8192, "mi350_gemm_bf16_nt_256x256x64_s2"},
      {DType::kBF16, "nn", 4096, 4096, 4096, "mi350_gemm_bf16_nn_256x256x64_s2"},
      {DType::kF16, "tn", 4096, 4096, 8192, "mi350_gemm_f16_tn_256x256x64_s2"},
      {DType::kBF16, "nt", 2048, 2048, 4096, "mi350_gemm_bf16_nt_128x128x64_s2"},
      {DType::kBF16, "nt", 1024, 1024, 1024, "mi350_gemm_bf16_nt_64x64x64_s3"},
      {DType::kBF16, "nt", 16, 4096, 4096, "mi350_gemm_bf16_nt_16x64x128_s3"},
      {DType::kF16, "nt", 1, 4096, 4096, "mi350_gemm_f16_nt_16x64x128_s3"},
      {DType::kF32, "nn", 4096, 4096, 4096, "mi350_gemm_f32_nn_128x128x32_s2"},
      {DType::kF32, "nt", 8, 4096, 4096, "mi350_gemm_f32_nt_16x64x64_s3"},
      {DType::kBF16, "nt", 512, 512, 20, "mi350_gemm_bf16_ss_16x64x128_s3"},
      {DType::kBF16, "nn", 4096, 4096, 4099, "mi350_gemm_bf16_ss_128x128x64_s2"},
  };
  for (const auto& g : golden)
    EXPECT_EQ(chosen(dense(g.in, g.layout, g.m, g.n, g.k)), g.symbol) << g.m << "x" << g.n << "x" << g.k;
}

// An eighth of the CUs needs fewer tiles: each choice moves to a tile that is as large or larger.
TEST(GemmPlan, ChoosesTheseKernelsOnAPartition) {
  const Device partition{32, 1};
  const struct { int64_t m, n, k; const char *whole, *part; } golden[] = {
      {8192, 8192, 8192, "mi350_gemm_bf16_nt_256x256x64_s2", "mi350_gemm_bf16_nt_256x256x64_s2"},
      {4096, 4096, 4096, "mi350_gemm_bf16_nt_256x256x64_s2", "mi350_gemm_bf16_nt_256x256x64_s2"},
      {2048, 2048, 2048, "mi350_gemm_bf16_nt_128x128x64_s2", "mi350_gemm_bf16_nt_256x256x64_s2"},
      {1024, 1024, 1024, "mi350_gemm_bf16_nt_64x64x64_s3", "mi350_gemm_bf16_nt_128x128x64_s2"},
      {512, 512, 512, "mi350_gemm_bf16_nt_16x64x128_s3", "mi350_gemm_bf16_nt_128x128x64_s2"},
      {256, 256, 256, "mi350_gemm_bf16_nt_16x64x128_s3", "mi350_gemm_bf16_nt_64x64x64_s3"},
      {16, 4096, 4096, "mi350_gemm_bf16_nt_16x64x128_s3", "mi350_gemm_bf16_nt_16x64x128_s3"},
      {128, 4096, 4096, "mi350_gemm_bf16_nt_64x64x64_s3", "mi350_gemm_bf16_nt_128x128x64_s2"},
      {512, 4096, 4096, "mi350_gemm_bf16_nt_128x128x64_s2", "mi350_gemm_bf16_nt_256x256x64_s2"},
  };
  for (const auto& g : golden) {
    const auto p = dense(DType::kBF16, "nt", g.m, g.n, g.k);
    EXPECT_EQ(chosen(p), g.whole) << g.m << "x" << g.n << "x" << g.k << " on 256 CUs";
    EXPECT_EQ(chosen(p, -1, partition), g.part) << g.m << "x" << g.n << "x" << g.k << " on 32 CUs";
  }
}

TEST(GemmPlan, ACuSharesTheBandwidthOfItsPartition) {
  gemm::Plan whole, part;
  const auto p = dense(DType::kBF16, "nt", 16, 65536, 8192);  // streams b
  ASSERT_EQ(gemm::plan(p, {}, {}, whole), "");
  ASSERT_EQ(gemm::plan(p, {32, 1}, {}, part), "");
  EXPECT_GT(part.predicted_cost, 7 * whole.predicted_cost);
}

TEST(GemmPlan, RunsAColumnMajorOutputMirrored) {
  auto p = dense(DType::kBF16, "nn", 4096, 8192, 1024);
  p.d.stride_row = 1, p.d.stride_col = 4096;
  gemm::Plan plan;
  ASSERT_EQ(gemm::plan(p, {}, {}, plan), "");
  EXPECT_EQ(std::string(kConfigs[plan.launch[0].kernel].layout), "tt");
  EXPECT_EQ(plan.args.m, 8192);
  EXPECT_EQ(plan.args.n, 4096);
  EXPECT_EQ(plan.args.d_stride_col, 1);
}

TEST(GemmPlan, ReasonsNameTheValues) {
  const int nt = gemm::config_index("mi350_gemm_bf16_nt_256x256x64_s2");
  ASSERT_GE(nt, 0);
  const auto reason = [&](auto change) {
    auto p = dense(DType::kBF16, "nt", 512, 512, 512);
    change(p);
    return gemm::why_not(p, nt);
  };
  EXPECT_EQ(reason([](auto&) {}), "");
  EXPECT_EQ(reason([](auto& p) { p.k = 20; }), "k=20 is not a multiple of 8");
  EXPECT_EQ(reason([](auto& p) { p.a.address += 2; }), "a is not 16-byte aligned (address mod 16 = 2)");
  EXPECT_EQ(reason([](auto& p) { p.b.stride_col = 513; }), "b has stride 513, not a multiple of 8");
  EXPECT_EQ(reason([](auto& p) { p.a.stride_col = 2; }), "a is not contiguous along k (stride 2)");
  EXPECT_EQ(reason([](auto& p) { p.batch = 2, p.a.stride_batch = 4; }), "a has batch stride 4, not a multiple of 8");
  EXPECT_EQ(reason([](auto& p) { p.in = DType::kF16; }), "mi350_gemm_bf16_nt_256x256x64_s2 takes bf16, got f16");
  EXPECT_EQ(reason([](auto& p) { p.m = -1; }), "m=-1 is outside 0..2147483647");
  EXPECT_EQ(reason([](auto& p) { p.c.stride_row = -5; }), "c has a negative stride (262144, -5, 1)");
  EXPECT_EQ(reason([](auto& p) { p.out = DType::kF16; }), "output f16 from input bf16: only bf16 or f32");
  EXPECT_EQ(reason([](auto& p) { p.d.address += 1; }), "d is not aligned to its elements (address mod 2 = 1)");
  EXPECT_EQ(reason([](auto& p) { p.a.stride_row = int64_t{1} << 24; }),
            "a tile of a spans 8556380288 bytes, the limit is 2147483647");
  EXPECT_EQ(gemm::why_not(dense(DType::kBF16, "nt", 8, 8, 8), kConfigCount),
            "no config " + std::to_string(kConfigCount) + " among " + std::to_string(kConfigCount));
  EXPECT_EQ(chosen(dense(DType::kBF16, "nt", 512, 512, 20), nt), "-> k=20 is not a multiple of 8");
}

TEST(GemmPlan, WideStridesFallToNarrowTilesOrAReason) {
  auto p = dense(DType::kBF16, "nt", 512, 512, 512);
  p.a.stride_row = int64_t{1} << 24;  // 128 rows span 2^32 bytes, 64 rows 2^31, 16 rows fit
  EXPECT_EQ(chosen(p), "mi350_gemm_bf16_nt_16x64x128_s3");
  p.a.stride_row = int64_t{1} << 40;
  EXPECT_EQ(chosen(p), "-> a tile of a spans 32985348833536 bytes, the limit is 2147483647");
  p.m = 1;  // a single row spans nothing
  EXPECT_EQ(chosen(p), "mi350_gemm_bf16_nt_16x64x128_s3");
}

// The rows of vector loads refuse for their own reasons, which are not why the problem is not served.
TEST(GemmPlan, GivesTheReasonOfTheRowThatTakesAnyStrides) {
  const int64_t wide = (int64_t{1} << 31) + 64;
  for (DType in : {DType::kBF16, DType::kF16, DType::kF32})
    for (const char* layout : {"nn", "nt", "tn", "tt"}) {
      const auto refused = [&](char operand, auto change) {
        auto p = dense(in, layout, 3, 3, 32);
        change(p);
        const std::string expected = std::string("-> a tile of ") + operand + " spans ";
        EXPECT_EQ(chosen(p).substr(0, expected.size()), expected) << name(in) << " " << layout;
      };
      refused('a', [&](auto& p) { p.a.stride_row = wide; });
      refused('b', [&](auto& p) { p.b.stride_col = wide; });
      refused('b', [&](auto& p) { p.b.stride_row = wide; });
      refused('d', [&](auto& p) { p.d.stride_row = wide; });
      refused('d', [&](auto& p) { p.d.stride_row = 1, p.d.stride_col = wide; });
      refused('c', [&](auto& p) { p.beta = 1, p.c.stride_row = wide; });
    }
}

TEST(GemmPlan, EmptyAndIgnoredProductsAreHonoured) {
  EXPECT_EQ(chosen(dense(DType::kBF16, "nt", 0, 64, 64)), "no launch");
  EXPECT_EQ(chosen(dense(DType::kBF16, "nt", 64, 0, 64)), "no launch");
  EXPECT_EQ(chosen(dense(DType::kBF16, "nt", 64, 64, 64, 0)), "no launch");
  gemm::Plan plan;
  auto p = dense(DType::kF16, "nn", 64, 64, 0);
  ASSERT_EQ(gemm::plan(p, {}, {}, plan), "");
  EXPECT_EQ(plan.launches, 1) << "k = 0 still writes beta * c";
  p.alpha = std::numeric_limits<float>::infinity();
  ASSERT_EQ(gemm::plan(p, {}, {}, plan), "");
  EXPECT_EQ(plan.args.alpha, 0.0f) << "an empty product is 0 for any alpha";
  p = dense(DType::kF16, "nn", 64, 64, 64);
  p.alpha = 0;
  ASSERT_EQ(gemm::plan(p, {}, {}, plan), "");
  EXPECT_EQ(plan.args.k, 0) << "alpha = 0 must not read a and b";
}

TEST(GemmPlan, BatchesPast32BitGridsContinueInY) {
  auto p = dense(DType::kBF16, "nt", 8, 8, 8, int64_t{1} << 30);
  gemm::Plan plan;
  ASSERT_EQ(gemm::plan(p, {}, {}, plan), "");
  const auto& l = plan.launch[0];
  EXPECT_LT(uint64_t{l.grid[0]} * l.block, uint64_t{1} << 32);
  EXPECT_GE(uint64_t{l.grid[0]} * l.grid[1], uint64_t{1} << 30);
  p.m = 4096;
  EXPECT_EQ(chosen(p).substr(0, 3), "-> ");
}

TEST(GemmPlan, LegalOnRandomShapes) {
  std::mt19937 rng(3);
  const char* layouts[] = {"nn", "nt", "tn", "tt"};
  const int64_t extents[] = {0, 1, 2, 7, 16, 33, 64, 127, 128, 129, 255, 256, 257, 1000, 4096};
  const auto pick = [&] { return extents[rng() % std::size(extents)]; };
  for (int trial = 0; trial < 4000; ++trial) {
    auto p = dense(static_cast<DType>(rng() % 3), layouts[rng() % 4], pick(), pick(), pick(), 1 + rng() % 3);
    if (rng() % 4 == 0) p.a.address += 2 * (rng() % 8) * (p.in == DType::kF32 ? 2 : 1);
    if (rng() % 4 == 0) p.b.stride_row *= 2, p.b.stride_col *= 2;
    if (rng() % 4 == 0) p.d.stride_row += rng() % 9;
    if (rng() % 4 == 0) p.out = DType::kF32;
    gemm::Plan plan;
    ASSERT_EQ(gemm::plan(p, {}, {}, plan), "") << p.m << "x" << p.n << "x" << p.k;
    if (plan.launches == 0) {
      ASSERT_TRUE(p.m == 0 || p.n == 0);
      continue;
    }
    ASSERT_EQ(gemm::why_not(p, plan.launch[0].kernel), "");
    const auto& c = kConfigs[plan.launch[0].kernel];
    ASSERT_GE(int64_t{plan.args.tiles_m} * c.block_m, plan.args.m);
    ASSERT_GE(int64_t{plan.args.tiles_n} * c.block_n, plan.args.n);
    ASSERT_EQ(plan.launch[0].block, c.waves * 64u);
  }
}

TEST(GemmPlan, EveryRowIsChosenBySomeCase) {
  std::set<std::string> seen;
  const int64_t extents[] = {1, 16, 24, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  for (DType in : {DType::kBF16, DType::kF16, DType::kF32})
    for (const char* layout : {"nn", "nt", "tn", "tt"})
      for (int64_t m : extents)
        for (int64_t n : extents)
          for (int64_t k : {int64_t{64}, int64_t{1023}, int64_t{4096}}) {
            seen.insert(chosen(dense(in, layout, m, n, k)));
          }
  for (int i = 0; i < kConfigCount; ++i)
    EXPECT_TRUE(seen.count(kConfigs[i].symbol)) << kConfigs[i].symbol << " is never chosen";
}

TEST(GemmTable, SymbolsAreUniqueAndFoundByName) {
  std::set<std::string> symbols;
  for (int i = 0; i < kConfigCount; ++i) {
    EXPECT_TRUE(symbols.insert(kConfigs[i].symbol).second) << kConfigs[i].symbol;
    EXPECT_EQ(gemm::config_index(kConfigs[i].symbol), i);
    EXPECT_LE(kConfigs[i].waves, 16);
  }
  EXPECT_EQ(gemm::config_index("mi350_gemm_bf16_nt_1x1x1_s1"), -1);
}

TEST(GemmTable, EveryRowIsASymbolOfItsBuiltObject) {
  for (int i = 0; i < kConfigCount; ++i) {
    Module module(shipped(kConfigs[i].object));
    EXPECT_TRUE(module.has(kConfigs[i].symbol)) << kConfigs[i].symbol << " is not in " << kConfigs[i].object;
  }
}

TEST(GemmTable, EverySymbolOfABuiltObjectIsARow) {
  std::set<std::string> objects;
  for (int i = 0; i < kConfigCount; ++i) objects.insert(kConfigs[i].object);
  for (const auto& object : objects) {
    std::ifstream file(shipped(object), std::ios::binary);
    const std::string image(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(image.empty()) << object;
    std::set<std::string> found;
    for (size_t at = image.find("mi350_gemm_"); at != std::string::npos; at = image.find("mi350_gemm_", at + 1)) {
      const std::string symbol =
          image.substr(at, image.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", at) - at);
      if (symbol.size() > 20) found.insert(symbol);
    }
    EXPECT_FALSE(found.empty());
    for (const auto& symbol : found) {
      const int row = gemm::config_index(symbol.c_str());
      ASSERT_GE(row, 0) << symbol << " in " << object;
      EXPECT_EQ(kConfigs[row].object, object);
    }
  }
}

}  // namespace
}  // namespace mi350::test
