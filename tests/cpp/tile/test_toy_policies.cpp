// The main loop serves a scaled and a grouped operand policy: toy kernels against exact references.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tile/device.h"

namespace mi350::test {
namespace {

float from_fp8(uint8_t v) {  // E4M3, OCP
  const int exponent = (v >> 3) & 15, mantissa = v & 7;
  const float magnitude =
      exponent ? std::ldexp(1.0f + mantissa / 8.0f, exponent - 7) : std::ldexp(mantissa / 8.0f, -6);
  return v & 0x80 ? -magnitude : magnitude;
}

struct ScaledArgs {
  uint64_t a, b, scale_a, scale_b, d;
  int32_t m, n, k;
};

// Values are small multiples of 1/8 and scales 2^-2..2^2: every sum is exact.
TEST(ScaledPolicy, MultipliesMxfp8WithScalesOfEachBlock) {
  const int32_t shapes[][3] = {{64, 64, 128}, {64, 64, 32}, {33, 70, 96}, {128, 64, 480}, {1, 5, 160}};
  Module module(test_object("toy_policies.hsaco"));
  std::mt19937 rng(7);
  for (const auto& [m, n, k] : shapes) {
    std::vector<uint8_t> a(m * k), b(n * k), sa(m * k / 32), sb(n * k / 32);
    for (auto* v : {&a, &b})
      for (auto& x : *v) x = static_cast<uint8_t>((rng() % 2) << 7 | (4 + rng() % 4) << 3 | (rng() % 8));
    for (auto* v : {&sa, &sb}) for (auto& x : *v) x = static_cast<uint8_t>(125 + rng() % 5);
    Buffer da(a.size()), db(b.size()), dsa(sa.size()), dsb(sb.size()), d(size_t{4} * m * n);
    da.write(a); db.write(b); dsa.write(sa); dsb.write(sb);
    module.launch("toy_scaled", (m + 63) / 64, (n + 63) / 64, 256,
                  ScaledArgs{da.address(), db.address(), dsa.address(), dsb.address(), d.address(), m, n, k});
    const auto got = d.read<float>();
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int p = 0; p < k; ++p)
          sum += double{from_fp8(a[i * k + p])} * from_fp8(b[j * k + p]) *
                 std::ldexp(1.0, sa[(i * k + p) / 32] + sb[(j * k + p) / 32] - 254);
        ASSERT_EQ(got[i * n + j], static_cast<float>(sum)) << m << "x" << n << "x" << k << " at " << i << ", " << j;
      }
    EXPECT_TRUE(d.guards_intact());
  }
}

struct GroupedArgs {
  uint64_t a, b, ends, d;
  int32_t n, k, groups;
};

TEST(GroupedPolicy, RebasesOperandsPerGroupFromDeviceOffsets) {
  const std::vector<int32_t> ends = {70, 70, 71, 199, 264};  // an empty group, one row, partial and whole tiles
  const int32_t rows = 270, n = 72, k = 136, groups = static_cast<int32_t>(ends.size());
  std::mt19937 rng(11);
  std::vector<uint16_t> a(rows * k), b(groups * n * k), d_before(rows * n, 0x1234);
  for (auto* v : {&a, &b}) for (auto& x : *v) x = to_bf16(static_cast<float>(static_cast<int>(rng() % 7) - 3));
  Buffer da(a.size() * 2), db(b.size() * 2), dends(ends.size() * 4), d(d_before.size() * 2);
  da.write(a); db.write(b); dends.write(ends); d.write(d_before);
  Module module(test_object("toy_policies.hsaco"));
  const unsigned worst = (rows / 64 + groups) * ((n + 63) / 64);
  module.launch("toy_grouped", worst, 1, 256,
                GroupedArgs{da.address(), db.address(), dends.address(), d.address(), n, k, groups});
  const auto got = d.read<uint16_t>();
  for (int i = 0; i < rows; ++i) {
    int group = 0;
    while (group < groups && i >= ends[group]) ++group;
    for (int j = 0; j < n; ++j) {
      if (group == groups) {
        ASSERT_EQ(got[i * n + j], 0x1234) << "row " << i << " is past the last offset";
        continue;
      }
      float sum = 0;
      for (int p = 0; p < k; ++p) sum += from_bf16(a[i * k + p]) * from_bf16(b[(group * n + j) * k + p]);
      ASSERT_EQ(got[i * n + j], to_bf16(sum)) << "row " << i << " of group " << group << ", column " << j;
    }
  }
  EXPECT_TRUE(d.guards_intact());
}

}  // namespace
}  // namespace mi350::test
