// LDS reads: plain widths, transpose reads of every element size against their definition, bounds, alignment.
#include <random>

#include "emulated_device.h"

namespace mi350::emu::test {
namespace {

std::vector<uint8_t> random_bytes(size_t n) {
  std::mt19937 random(7);
  std::vector<uint8_t> v(n);
  for (uint8_t& b : v) b = static_cast<uint8_t>(random());
  return v;
}

uint32_t bits_at(const uint8_t* p, uint32_t bit, uint32_t count) {
  uint32_t v = 0;
  for (uint32_t n = 0; n < count; ++n) v |= static_cast<uint32_t>(p[(bit + n) / 8] >> ((bit + n) % 8) & 1) << n;
  return v;
}

struct TransposeRead { const char* kernel; uint32_t bits, elements, stride, dwords; };
class TransposeReads : public testing::TestWithParam<TransposeRead> {};
INSTANTIATE_TEST_SUITE_P(Widths, TransposeReads,
                         testing::Values(TransposeRead{"tr_b16", 16, 4, 8, 2},
                                         TransposeRead{"tr_b8", 8, 8, 8, 2},
                                         TransposeRead{"tr_b4", 4, 16, 8, 2},
                                         TransposeRead{"tr_b6", 6, 16, 16, 3}),
                         [](const auto& info) { return std::string(info.param.kernel); });

TEST_P(TransposeReads, TakeElementNFromTheLaneThatTheDefinitionNames) {
  const TransposeRead t = GetParam();
  const std::vector<uint8_t> in = random_bytes(64 * t.stride);
  Buffer<uint8_t> source(in);
  Buffer<uint32_t> out(64 * t.dwords, 0);
  ASSERT_EQ(launch(kernel("wide_reads", t.kernel), {}, out.get(), source.get()), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t lane = 0; lane < 64; ++lane) {
    const uint32_t l = lane % 16, group = lane - l;
    for (uint32_t n = 0; n < t.elements; ++n) {
      const uint32_t from = group + 16 / t.elements * n + l / t.elements, element = l % t.elements;
      const uint32_t want = bits_at(&in[from * t.stride], element * t.bits, t.bits);
      const auto* row = reinterpret_cast<const uint8_t*>(&got[lane * t.dwords]);
      ASSERT_EQ(bits_at(row, n * t.bits, t.bits), want) << "lane " << lane << " element " << n;
    }
  }
}

TEST(LdsReads, EveryWidthReturnsTheLanesOwnBytes) {
  const std::vector<uint8_t> in = random_bytes(64 * 16);
  Buffer<uint8_t> source(in);
  Buffer<uint32_t> out(64 * 4, 0);
  const struct {
    const char* name;
    size_t stride, dwords;
  } cases[] = {{"b64", 8, 2}, {"b96", 16, 3}, {"b128", 16, 4}};
  for (const auto& c : cases) {
    ASSERT_EQ(launch(kernel("wide_reads", c.name), {}, out.get(), source.get()), kSuccess) << report();
    const std::vector<uint32_t> got = out.read();
    for (size_t l = 0; l < 64; ++l) {
      ASSERT_EQ(std::memcmp(&got[l * c.dwords], &in[l * c.stride], 4 * c.dwords), 0) << c.name << " lane " << l;
    }
  }
}

TEST(LdsReads, BeyondTheAllocationReadZeroAndWriteNothing) {
  Buffer<uint32_t> out(128, 9);
  ASSERT_EQ(launch(kernel("wide_reads", "lds_bounds"), {}, out.get()), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t l = 0; l < 64; ++l) {
    EXPECT_EQ(got[2 * l], l < 32 ? 4 * l + 1 : 0);
    EXPECT_EQ(got[2 * l + 1], l < 32 ? 4 * l + 2 : 0);
  }
}

TEST(LdsReads, MisalignedTransposeReadsAreErrors) {
  Buffer<uint8_t> in(512, 0);
  Buffer<uint32_t> out(64, 0);
  EXPECT_EQ(launch(kernel("wide_reads", "tr_misaligned"), {}, out.get(), in.get()), kLaunchFailure);
  EXPECT_NE(report().find("is not 8-byte aligned"), std::string::npos) << report();
}

}  // namespace
}  // namespace mi350::emu::test
