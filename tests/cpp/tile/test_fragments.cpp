// Operand policies in the emulator: global -> LDS -> fragments, every element checked, ragged on both axes,
// with NaN bits right behind the operand; and the LDS bank promise of the swizzle.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "tile/device.h"

namespace mi350::test {
namespace {

struct Case {
  const char* kernel;
  int element_bytes, mfma;
  enum { kDepth, kRows, kGather } kind;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kernel; }

const Case kCases[] = {
    {"fragments_bf16_depth_32", 2, 32, Case::kDepth}, {"fragments_bf16_depth_16", 2, 16, Case::kDepth},
    {"fragments_bf16_rows_32", 2, 32, Case::kRows},   {"fragments_bf16_rows_16", 2, 16, Case::kRows},
    {"fragments_bf16_gather_32", 2, 32, Case::kGather}, {"fragments_bf16_gather_16", 2, 16, Case::kGather},
    {"fragments_f32_depth_32", 4, 32, Case::kDepth},  {"fragments_f32_depth_16", 4, 16, Case::kDepth},
    {"fragments_f32_rows_32", 4, 32, Case::kRows},    {"fragments_f32_rows_16", 4, 16, Case::kRows},
    {"fragments_f32_gather_32", 4, 32, Case::kGather}, {"fragments_f32_gather_16", 4, 16, Case::kGather},
};

struct FragmentArgs {
  uint64_t source, fragments, addresses;
  int64_t extent, depth, stride_extent, stride_depth;
  uint32_t first_row;
};

uint64_t element(const std::vector<uint8_t>& bytes, size_t index, int size) {
  uint64_t v = 0;
  std::memcpy(&v, bytes.data() + index * size, size);
  return v;
}

class Fragments : public testing::TestWithParam<Case> {
 protected:
  // Strides in elements; the operand ends at the guard.
  void expect_fragments(int64_t extent, int64_t depth, int64_t stride_extent, int64_t stride_depth,
                        uint32_t first_row) {
    const Case c = GetParam();
    const int size = c.element_bytes, tile_depth = 128 / size, items = 16 / size;
    const size_t elements = (extent - 1) * stride_extent + (depth - 1) * stride_depth + 1;
    std::vector<uint8_t> source(elements * size);
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>((i * 2654435761u) >> 13 | 1);
    const int row_tiles = 128 / c.mfma, step_depth = 64 / c.mfma * items, steps = tile_depth / step_depth;
    Buffer in(source.size()), out(size_t{2} * row_tiles * steps * 64 * 16), addresses(16 * 64 * 4);
    in.write(source);
    Module module(test_object("tile_kernels.hsaco"));
    module.launch(c.kernel, 1, 1, 256,
                  FragmentArgs{in.address(), out.address(), addresses.address(), extent, depth, stride_extent,
                               stride_depth, first_row});
    const auto got = out.read<uint8_t>();
    const int64_t tiles = (depth + tile_depth - 1) / tile_depth,
                  first = depth % tile_depth ? depth % tile_depth : tile_depth;
    for (int64_t stage = 0; stage < std::min<int64_t>(tiles, 2); ++stage)
      for (int tile = 0; tile < row_tiles; ++tile)
        for (int step = 0; step < steps; ++step)
          for (int lane = 0; lane < 64; ++lane)
            for (int e = 0; e < items; ++e) {
              const int64_t row = first_row + tile * c.mfma + lane % c.mfma,
                            local = step * step_depth + lane / c.mfma * items + e;
              const bool exists = row < extent && (stage == 1 || local < first);
              const int64_t k = stage == 0 ? local : first + local;
              const uint64_t expected = exists ? element(source, row * stride_extent + k * stride_depth, size) : 0;
              const size_t at = (((stage * row_tiles + tile) * steps + step) * 64 + lane) * items + e;
              ASSERT_EQ(element(got, at, size), expected)
                  << "row " << row << " k " << k << " stage " << stage << " lane " << lane;
            }
    EXPECT_TRUE(out.guards_intact());
  }
};

TEST_P(Fragments, HoldEveryElementOfAWholeTile) {
  const int64_t depth = 128 / GetParam().element_bytes;
  if (GetParam().kind == Case::kRows) expect_fragments(128, depth, 1, 128, 0);
  else expect_fragments(128, depth, depth, 1, 0);
}

TEST_P(Fragments, RaggedEdgesReadZeroAndStayInsideTheOperand) {
  const int chunk = 16 / GetParam().element_bytes, depth = 128 / GetParam().element_bytes;
  switch (GetParam().kind) {
    case Case::kDepth: return expect_fragments(201, depth + 3 * chunk, depth + 5 * chunk, 1, 128);
    case Case::kRows: return expect_fragments(128 + 5 * chunk, depth + 13, 1, 128 + 7 * chunk, 128);
    case Case::kGather: return expect_fragments(203, depth + 13, depth + 29, 1, 128);
  }
}

class Gathers : public Fragments {};
TEST_P(Gathers, AnyStrides) {
  expect_fragments(37, 19, 3, 131, 0);
  expect_fragments(131, 90, 1, 133, 128);
  expect_fragments(130, 90, 0, 0, 0);
}

// Lanes that the LDS serves together conflict in the same bank at different dwords. The phases are HipKittens'
// measurements on MI355X (arXiv 2511.08083): b128 in 4 of 16 lanes, b64 in 2 of 32, b32 in one, over 64 banks.
TEST_P(Fragments, ReadsOfOneLdsPhaseFallIntoDistinctBanks) {
  const Case c = GetParam();
  const int64_t depth = 128 / c.element_bytes;
  std::vector<uint8_t> source(128 * 128);
  Buffer in(source.size()), out(1 << 17), addresses(16 * 64 * 4);
  in.write(source);
  Module module(test_object("tile_kernels.hsaco"));
  const bool rows = c.kind == Case::kRows;
  module.launch(c.kernel, 1, 1, 256,
                FragmentArgs{in.address(), out.address(), addresses.address(), 128, depth, rows ? 1 : depth,
                             rows ? 128 : 1, 0});
  const auto got = addresses.read<uint32_t>();
  const int width = !rows ? 16 : c.element_bytes == 2 ? 8 : 4;
  std::vector<std::vector<int>> phases;
  if (width == 16) {
    phases = {{0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27},
              {4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31}};
  } else {
    phases.resize(1);
    for (int l = 0; l < (width == 8 ? 32 : 64); ++l) phases[0].push_back(l);
  }
  const int instructions = rows ? 32 / c.mfma : static_cast<int>(depth) / (64 / c.mfma * 16 / c.element_bytes);
  for (int i = 0; i < instructions; ++i)
    for (const auto& phase : phases) {
      std::set<uint32_t> banks, dwords;
      for (int lane : phase)
        for (int w = 0; w < width / 4; ++w) {
          const uint32_t dword = got[i * 64 + lane] / 4 + w;
          if (dwords.insert(dword).second) {
            EXPECT_TRUE(banks.insert(dword % 64).second) << c.kernel << " address " << i << " lane " << lane;
          }
        }
    }
}

const auto kName = [](const auto& info) { return std::string(info.param.kernel); };
INSTANTIATE_TEST_SUITE_P(Policies, Fragments, testing::ValuesIn(kCases), kName);
INSTANTIATE_TEST_SUITE_P(Policies, Gathers, testing::Values(kCases[4], kCases[5], kCases[10], kCases[11]), kName);

struct OrderArgs {
  uint64_t out;
  uint32_t batch, tiles_m, tiles_n, xcds;
};

TEST(TileOrder, VisitsEveryTileOnce) {
  Module module(test_object("tile_kernels.hsaco"));
  const uint32_t shapes[][4] = {{1, 1, 1, 8}, {3, 5, 7, 8}, {1, 17, 3, 8}, {2, 8, 16, 8},
                                {1, 9, 1, 1}, {5, 1, 1, 4}, {1, 33, 12, 3}};
  for (const auto& s : shapes) {
    const uint32_t total = s[0] * s[1] * s[2];
    Buffer out(total * 12);
    module.launch("tile_order", (total + 63) / 64, 1, 64, OrderArgs{out.address(), s[0], s[1], s[2], s[3]});
    const auto got = out.read<uint32_t>();
    std::set<std::array<uint32_t, 3>> seen;
    for (uint32_t i = 0; i < total; ++i) {
      EXPECT_LT(got[3 * i], s[0]);
      EXPECT_LT(got[3 * i + 1], s[1]);
      EXPECT_LT(got[3 * i + 2], s[2]);
      seen.insert({got[3 * i], got[3 * i + 1], got[3 * i + 2]});
    }
    EXPECT_EQ(seen.size(), total) << s[0] << " x " << s[1] << " x " << s[2] << " over " << s[3];
  }
}

TEST(TileOrder, KeepsTheTilesOfAnXcdTogether) {
  Module module(test_object("tile_kernels.hsaco"));
  Buffer out(256 * 12);
  module.launch("tile_order", 4, 1, 64, OrderArgs{out.address(), 1, 16, 16, 8});
  const auto got = out.read<uint32_t>();
  for (uint32_t xcd = 0; xcd < 8; ++xcd) {  // 32 tiles: 8 rows of 4 columns
    std::set<uint32_t> rows, cols;
    for (uint32_t i = xcd; i < 256; i += 8) rows.insert(got[3 * i + 1]), cols.insert(got[3 * i + 2]);
    EXPECT_EQ(rows.size(), 8u);
    EXPECT_EQ(cols.size(), 4u);
  }
}

}  // namespace
}  // namespace mi350::test
