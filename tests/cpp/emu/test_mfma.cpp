// MFMA of every shape against the published layout, written out here independently of exec_mfma.cpp. Operands
// are small integers, so every sum is exact and compares bit for bit.
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "convert.h"
#include "exec_fixture.h"

namespace mi350::emu {
namespace {

using base::Format;

struct Slot { int lane, item; };
struct Place { int reg, lane; };
// What an operand's elements are, how many bits they take and how a small integer is written as one.
struct Type { int bits; std::function<uint32_t(int)> code; };

uint32_t float_code(Format f, int x) { return base::encode(f, x); }
const Type kTypeF32{32, [](int x) { return std::bit_cast<uint32_t>(static_cast<float>(x)); }};
const Type kTypeF16{16, [](int x) { return float_code(base::kF16, x); }};
const Type kTypeBf16{16, [](int x) { return float_code(base::kBf16, x); }};
const Type kTypeI8{8, [](int x) { return static_cast<uint32_t>(x) & 0xff; }};
const Type kTypeFp8{8, [](int x) { return float_code(base::kFp8, x); }};
const Type kTypeBf8{8, [](int x) { return float_code(base::kBf8, x); }};
const Type kTypeFp6{6, [](int x) { return float_code(base::kFp6, x); }};
const Type kTypeBf6{6, [](int x) { return float_code(base::kBf6, x); }};
const Type kTypeFp4{4, [](int x) { return float_code(base::kFp4, x); }};
const Type kSmallTypes[5] = {kTypeFp8, kTypeBf8, kTypeFp6, kTypeBf6, kTypeFp4};

struct Case { const char* name; int m, n, k, blocks; const Type *a, *b; bool integer = false; };

// The published rule: item k % L of lane row + M (block + B floor(k / L)).
Slot general_slot(const Case& c, int block, int row, int k) {
  const int items = c.k * c.m * c.blocks / 64;
  return {row + c.m * (block + c.blocks * (k / items)), k % items};
}
Place result_place(const Case& c, int block, int row, int column) {
  if (c.m == 4) return {row, 4 * block + column};
  if (c.m == 16) return {4 * block + row % 4, 16 * (row / 4) + column};
  return {16 * block + 4 * (row / 8) + row % 4, 32 * (row / 4 % 2) + column};
}

struct Mfma : ExecTest {
  std::mt19937 random{7};
  static constexpr int kA = 0, kB = 32, kC = 64, kD = 256 + 32;

  void put(int base, const Slot& s, const Type& t, uint32_t code) {
    for (int n = 0; n < t.bits; ++n) {
      const int bit = s.item * t.bits + n;
      uint32_t& word = reg(base + bit / 32, s.lane);
      word = (word & ~(1u << bit % 32)) | (code >> n & 1) << bit % 32;
    }
  }
  int small() { return static_cast<int>(random() % 5) - 2; }
  void clear() { std::memset(w.vgpr, 0, sizeof w.vgpr); }
  uint32_t number(bool integer, int x) {
    return integer ? static_cast<uint32_t>(x) : std::bit_cast<uint32_t>(static_cast<float>(x));
  }

  void check(const Case& c) {
    clear();
    std::vector<int> a(c.blocks * c.m * c.k), b(c.blocks * c.k * c.n), d(c.blocks * c.m * c.n);
    for (int block = 0; block < c.blocks; ++block) {
      for (int i = 0; i < c.m; ++i)
        for (int k = 0; k < c.k; ++k)
          put(kA, general_slot(c, block, i, k), *c.a, c.a->code(a[(block * c.m + i) * c.k + k] = small()));
      for (int j = 0; j < c.n; ++j)
        for (int k = 0; k < c.k; ++k)
          put(kB, general_slot(c, block, j, k), *c.b, c.b->code(b[(block * c.k + k) * c.n + j] = small()));
      for (int i = 0; i < c.m; ++i)
        for (int j = 0; j < c.n; ++j) {
          int sum = small();
          const Place p = result_place(c, block, i, j);
          reg(kC + p.reg, p.lane) = number(c.integer, sum);
          for (int k = 0; k < c.k; ++k)
            sum += a[(block * c.m + i) * c.k + k] * b[(block * c.k + k) * c.n + j];
          d[(block * c.m + i) * c.n + j] = sum;
        }
    }
    w.set_exec(0);
    run(c.name, inst(static_cast<uint16_t>(kVgpr0 + kD), v(kA), v(kB), v(kC)));
    for (int block = 0; block < c.blocks; ++block)
      for (int i = 0; i < c.m; ++i)
        for (int j = 0; j < c.n; ++j) {
          const Place p = result_place(c, block, i, j);
          ASSERT_EQ(reg(kD + p.reg, p.lane), number(c.integer, d[(block * c.m + i) * c.n + j]))
              << c.name << " block " << block << " row " << i << " column " << j;
        }
  }
};

TEST_F(Mfma, EveryDenseShapeFollowsThePublishedLayout) {
  const Case cases[] = {
      {"v_mfma_f32_32x32x1_2b_f32", 32, 32, 1, 2, &kTypeF32, &kTypeF32},
      {"v_mfma_f32_16x16x1_4b_f32", 16, 16, 1, 4, &kTypeF32, &kTypeF32},
      {"v_mfma_f32_4x4x1_16b_f32", 4, 4, 1, 16, &kTypeF32, &kTypeF32},
      {"v_mfma_f32_32x32x2_f32", 32, 32, 2, 1, &kTypeF32, &kTypeF32},
      {"v_mfma_f32_16x16x4_f32", 16, 16, 4, 1, &kTypeF32, &kTypeF32},
      {"v_mfma_f32_32x32x4_2b_f16", 32, 32, 4, 2, &kTypeF16, &kTypeF16},
      {"v_mfma_f32_16x16x4_4b_f16", 16, 16, 4, 4, &kTypeF16, &kTypeF16},
      {"v_mfma_f32_4x4x4_16b_f16", 4, 4, 4, 16, &kTypeF16, &kTypeF16},
      {"v_mfma_f32_32x32x8_f16", 32, 32, 8, 1, &kTypeF16, &kTypeF16},
      {"v_mfma_f32_16x16x16_f16", 16, 16, 16, 1, &kTypeF16, &kTypeF16},
      {"v_mfma_f32_16x16x32_f16", 16, 16, 32, 1, &kTypeF16, &kTypeF16},
      {"v_mfma_f32_32x32x16_f16", 32, 32, 16, 1, &kTypeF16, &kTypeF16},
      {"v_mfma_f32_32x32x4_2b_bf16", 32, 32, 4, 2, &kTypeBf16, &kTypeBf16},
      {"v_mfma_f32_16x16x4_4b_bf16", 16, 16, 4, 4, &kTypeBf16, &kTypeBf16},
      {"v_mfma_f32_4x4x4_16b_bf16", 4, 4, 4, 16, &kTypeBf16, &kTypeBf16},
      {"v_mfma_f32_32x32x8_bf16", 32, 32, 8, 1, &kTypeBf16, &kTypeBf16},
      {"v_mfma_f32_16x16x16_bf16", 16, 16, 16, 1, &kTypeBf16, &kTypeBf16},
      {"v_mfma_f32_16x16x32_bf16", 16, 16, 32, 1, &kTypeBf16, &kTypeBf16},
      {"v_mfma_f32_32x32x16_bf16", 32, 32, 16, 1, &kTypeBf16, &kTypeBf16},
      {"v_mfma_i32_32x32x4_2b_i8", 32, 32, 4, 2, &kTypeI8, &kTypeI8, true},
      {"v_mfma_i32_16x16x4_4b_i8", 16, 16, 4, 4, &kTypeI8, &kTypeI8, true},
      {"v_mfma_i32_4x4x4_16b_i8", 4, 4, 4, 16, &kTypeI8, &kTypeI8, true},
      {"v_mfma_i32_32x32x16_i8", 32, 32, 16, 1, &kTypeI8, &kTypeI8, true},
      {"v_mfma_i32_16x16x32_i8", 16, 16, 32, 1, &kTypeI8, &kTypeI8, true},
      {"v_mfma_i32_16x16x64_i8", 16, 16, 64, 1, &kTypeI8, &kTypeI8, true},
      {"v_mfma_i32_32x32x32_i8", 32, 32, 32, 1, &kTypeI8, &kTypeI8, true},
      {"v_mfma_f32_16x16x32_bf8_bf8", 16, 16, 32, 1, &kTypeBf8, &kTypeBf8},
      {"v_mfma_f32_16x16x32_bf8_fp8", 16, 16, 32, 1, &kTypeBf8, &kTypeFp8},
      {"v_mfma_f32_16x16x32_fp8_bf8", 16, 16, 32, 1, &kTypeFp8, &kTypeBf8},
      {"v_mfma_f32_16x16x32_fp8_fp8", 16, 16, 32, 1, &kTypeFp8, &kTypeFp8},
      {"v_mfma_f32_32x32x16_bf8_bf8", 32, 32, 16, 1, &kTypeBf8, &kTypeBf8},
      {"v_mfma_f32_32x32x16_bf8_fp8", 32, 32, 16, 1, &kTypeBf8, &kTypeFp8},
      {"v_mfma_f32_32x32x16_fp8_bf8", 32, 32, 16, 1, &kTypeFp8, &kTypeBf8},
      {"v_mfma_f32_32x32x16_fp8_fp8", 32, 32, 16, 1, &kTypeFp8, &kTypeFp8},
  };
  for (const Case& c : cases) check(c);
}

// 8-bit operands of f8f6f4 come in two chunks of 16 per lane, half of K apart; the others in one of 32.
Slot small_slot(int rows, int k_total, int bits, int row, int k) {
  if (bits != 8) return {row + rows * (k / 32), k % 32};
  const int half = k_total / 2;
  return {row + rows * (k % half / 16), k % 16 + (k < half ? 0 : 16)};
}

TEST_F(Mfma, SmallFormatsOfAnyMixWithAndWithoutBlockScales) {
  const struct { const char* name; const char* scaled; int m, k; } shapes[] = {
      {"v_mfma_f32_16x16x128_f8f6f4", "v_mfma_scale_f32_16x16x128_f8f6f4", 16, 128},
      {"v_mfma_f32_32x32x64_f8f6f4", "v_mfma_scale_f32_32x32x64_f8f6f4", 32, 64}};
  for (const auto& s : shapes)
    for (int fa = 0; fa < 5; ++fa)
      for (int fb = 0; fb < 5; ++fb)
        for (bool scaled : {false, true}) {
          clear();
          const Case c{scaled ? s.scaled : s.name, s.m, s.m, s.k, 1, &kSmallTypes[fa], &kSmallTypes[fb]};
          std::vector<int> a(c.m * c.k), b(c.n * c.k);
          for (int i = 0; i < c.m; ++i)
            for (int k = 0; k < c.k; ++k) {
              put(kA, small_slot(c.m, c.k, c.a->bits, i, k), *c.a, c.a->code(a[i * c.k + k] = small()));
              put(kB, small_slot(c.m, c.k, c.b->bits, i, k), *c.b, c.b->code(b[i * c.k + k] = small()));
            }
          // Byte 2 of v48 scales A by 2^(lane % 3), byte 1 of v49 scales B by 2^-(lane % 2); other bytes are
          // noise. Exact: the sums stay below 2^24.
          for (int l = 0; l < kLanes; ++l) {
            reg(48, l) = 0x05000911u | (127u + l % 3) << 16;
            reg(49, l) = 0x05110009u | (127u - l % 2) << 8;
          }
          Inst i = inst(acc(0), v(kA), v(kB), 242);
          i.cbsz = static_cast<uint8_t>(fa);
          i.blgp = static_cast<uint8_t>(fb);
          i.abid = scaled;
          i.scale_src[0] = v(48);
          i.scale_src[1] = v(49);
          i.scale_sel[0] = 2;
          i.scale_sel[1] = 1;
          run(c.name, i);
          for (int row = 0; row < c.m; ++row)
            for (int column = 0; column < c.n; ++column) {
              double sum = 1;
              for (int k = 0; k < c.k; ++k) {
                const int la = row + c.m * (k / 32), lb = column + c.m * (k / 32);
                sum += a[row * c.k + k] * b[column * c.k + k] *
                       (scaled ? std::ldexp(1.0, la % 3 - lb % 2) : 1.0);
              }
              const Place p = result_place(c, 0, row, column);
              ASSERT_EQ(as_float(256 + p.reg, p.lane), sum)
                  << c.name << " formats " << fa << " " << fb << " row " << row << " column " << column;
            }
        }
}

struct Sparse { const char* name; int m, k; const Type *a, *b; bool two_chunks, integer; };

// Lane and item of B: operands of 8 registers keep the second half of K in their upper items.
Slot sparse_b_slot(const Sparse& c, int column, int k) {
  const int items = c.k * c.m / 64, chunk_items = c.two_chunks ? items / 2 : items;
  const int half = c.two_chunks ? c.k / 2 : c.k;
  return {column + c.m * (k % half / chunk_items), k % chunk_items + (k / half) * chunk_items};
}

TEST_F(Mfma, SparseShapesTakeTheIndexedTwoOfEveryFour) {
  const Sparse cases[] = {
      {"v_smfmac_f32_16x16x32_f16", 16, 32, &kTypeF16, &kTypeF16, false, false},
      {"v_smfmac_f32_32x32x16_f16", 32, 16, &kTypeF16, &kTypeF16, false, false},
      {"v_smfmac_f32_16x16x64_f16", 16, 64, &kTypeF16, &kTypeF16, true, false},
      {"v_smfmac_f32_32x32x32_f16", 32, 32, &kTypeF16, &kTypeF16, true, false},
      {"v_smfmac_f32_16x16x32_bf16", 16, 32, &kTypeBf16, &kTypeBf16, false, false},
      {"v_smfmac_f32_32x32x16_bf16", 32, 16, &kTypeBf16, &kTypeBf16, false, false},
      {"v_smfmac_f32_16x16x64_bf16", 16, 64, &kTypeBf16, &kTypeBf16, true, false},
      {"v_smfmac_f32_32x32x32_bf16", 32, 32, &kTypeBf16, &kTypeBf16, true, false},
      {"v_smfmac_i32_16x16x64_i8", 16, 64, &kTypeI8, &kTypeI8, false, true},
      {"v_smfmac_i32_32x32x32_i8", 32, 32, &kTypeI8, &kTypeI8, false, true},
      {"v_smfmac_i32_16x16x128_i8", 16, 128, &kTypeI8, &kTypeI8, true, true},
      {"v_smfmac_i32_32x32x64_i8", 32, 64, &kTypeI8, &kTypeI8, true, true},
      {"v_smfmac_f32_16x16x64_bf8_bf8", 16, 64, &kTypeBf8, &kTypeBf8, false, false},
      {"v_smfmac_f32_32x32x32_bf8_bf8", 32, 32, &kTypeBf8, &kTypeBf8, false, false},
      {"v_smfmac_f32_16x16x128_bf8_bf8", 16, 128, &kTypeBf8, &kTypeBf8, true, false},
      {"v_smfmac_f32_32x32x64_bf8_bf8", 32, 64, &kTypeBf8, &kTypeBf8, true, false},
      {"v_smfmac_f32_16x16x64_bf8_fp8", 16, 64, &kTypeBf8, &kTypeFp8, false, false},
      {"v_smfmac_f32_32x32x32_bf8_fp8", 32, 32, &kTypeBf8, &kTypeFp8, false, false},
      {"v_smfmac_f32_16x16x128_bf8_fp8", 16, 128, &kTypeBf8, &kTypeFp8, true, false},
      {"v_smfmac_f32_32x32x64_bf8_fp8", 32, 64, &kTypeBf8, &kTypeFp8, true, false},
      {"v_smfmac_f32_16x16x64_fp8_bf8", 16, 64, &kTypeFp8, &kTypeBf8, false, false},
      {"v_smfmac_f32_32x32x32_fp8_bf8", 32, 32, &kTypeFp8, &kTypeBf8, false, false},
      {"v_smfmac_f32_16x16x128_fp8_bf8", 16, 128, &kTypeFp8, &kTypeBf8, true, false},
      {"v_smfmac_f32_32x32x64_fp8_bf8", 32, 64, &kTypeFp8, &kTypeBf8, true, false},
      {"v_smfmac_f32_16x16x64_fp8_fp8", 16, 64, &kTypeFp8, &kTypeFp8, false, false},
      {"v_smfmac_f32_32x32x32_fp8_fp8", 32, 32, &kTypeFp8, &kTypeFp8, false, false},
      {"v_smfmac_f32_16x16x128_fp8_fp8", 16, 128, &kTypeFp8, &kTypeFp8, true, false},
      {"v_smfmac_f32_32x32x64_fp8_fp8", 32, 64, &kTypeFp8, &kTypeFp8, true, false}};
  EXPECT_EQ(std::size(cases), 28u);
  for (const Sparse& c : cases) {
    const int kept_items = c.k / 2 * c.m / 64, sets = 16 / kept_items;
    for (int set_index = 0; set_index < sets; ++set_index) {
      clear();
      std::vector<int> a(c.m * c.k), b(c.m * c.k);
      for (int column = 0; column < c.m; ++column)
        for (int k = 0; k < c.k; ++k)
          put(kB, sparse_b_slot(c, column, k), *c.b, c.b->code(b[column * c.k + k] = small()));
      for (int row = 0; row < c.m; ++row)
        for (int pair = 0; pair < c.k / 4; ++pair) {
          // Every pair of positions occurs.
          constexpr int kPairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
          const int first = kPairs[(row + pair) % 6][0], second = kPairs[(row + pair) % 6][1];
          for (int n = 0; n < 2; ++n) {
            const int kept = 2 * pair + n, lane = row + c.m * (kept / kept_items), item = kept % kept_items;
            const int position = n ? second : first;
            put(kA, {lane, item}, *c.a, c.a->code(a[row * c.k + 4 * pair + position] = small()));
            reg(60, lane) |= static_cast<uint32_t>(position) << (2 * (kept_items * set_index + item));
          }
        }
      for (int r = 0; r < c.m * c.m / 64; ++r) set(kD + r, number(c.integer, 3));
      Inst i = inst(static_cast<uint16_t>(kVgpr0 + kD), v(kA), v(kB), v(60));
      i.abid = static_cast<uint8_t>(set_index);
      run(c.name, i);
      const Case dense{c.name, c.m, c.m, c.k, 1, c.a, c.b};
      for (int row = 0; row < c.m; ++row)
        for (int column = 0; column < c.m; ++column) {
          int sum = 3;
          for (int k = 0; k < c.k; ++k) sum += a[row * c.k + k] * b[column * c.k + k];
          const Place p = result_place(dense, 0, row, column);
          ASSERT_EQ(reg(kD + p.reg, p.lane), number(c.integer, sum))
              << c.name << " set " << set_index << " row " << row << " column " << column;
        }
    }
  }
}

TEST_F(Mfma, ExtremeScalesNeitherOverflowNorVanishHalfway) {
  clear();
  for (int r = 0; r < 8; ++r) {
    set(kA + r, 0x38383838u);  // 1.0 in fp8
    set(kB + r, 0x38383838u);
  }
  set(48, 254u);
  set(49, 0u);
  Inst i = inst(acc(0), v(kA), v(kB), integer(0));
  i.abid = 1;
  i.scale_src[0] = v(48);
  i.scale_src[1] = v(49);
  run("v_mfma_scale_f32_16x16x128_f8f6f4", i);
  EXPECT_EQ(as_float(256, 0), 128.0f);
  set(48, 255u);
  run("v_mfma_scale_f32_16x16x128_f8f6f4", i);
  EXPECT_TRUE(std::isnan(as_float(256, 0)));
}

TEST_F(Mfma, DoublesFollowTheirOwnLayout) {
  for (int l = 0; l < kLanes; ++l) {
    const auto write = [&](int r, double x) {
      const auto bits = std::bit_cast<uint64_t>(x);
      reg(r, l) = static_cast<uint32_t>(bits);
      reg(r + 1, l) = static_cast<uint32_t>(bits >> 32);
    };
    write(0, l + 1);
    write(2, 3 * l - 7);
    for (int p = 0; p < 4; ++p) write(8 + 2 * p, 1000 * p + l);
  }
  run("v_mfma_f64_16x16x4_f64", inst(v(24), v(0), v(2), v(8)));
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      const int lane = 16 * (i % 4) + j;
      double sum = 1000 * (i / 4) + lane;
      for (int k = 0; k < 4; ++k) sum += (i + 16 * k + 1) * (3.0 * (j + 16 * k) - 7);
      ASSERT_EQ(as_double(24 + 2 * (i / 4), lane), sum) << i << " " << j;
    }
  Inst negated = inst(v(24), v(0), v(2), v(8));
  negated.blgp = 5;
  run("v_mfma_f64_4x4x4_4b_f64", negated);
  for (int b = 0; b < 4; ++b)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        const int lane = 16 * i + 4 * b + j;
        double sum = -lane;
        for (int k = 0; k < 4; ++k) sum -= (16 * k + 4 * b + i + 1) * (3.0 * (16 * k + 4 * b + j) - 7);
        ASSERT_EQ(as_double(24, lane), sum) << b << " " << i << " " << j;
      }
}

TEST_F(Mfma, BroadcastsOfAAndPermutationsOfB) {
  for (int l = 0; l < kLanes; ++l) {
    reg(0, l) = std::bit_cast<uint32_t>(static_cast<float>(l + 1));
    reg(1, l) = std::bit_cast<uint32_t>(static_cast<float>(100 + l));
  }
  Inst i = inst(v(8), v(0), v(1), integer(0));
  i.cbsz = 2;
  i.abid = 3;
  run("v_mfma_f32_4x4x1_16b_f32", i);
  for (int b = 0; b < 16; ++b)
    for (int row = 0; row < 4; ++row) {
      const int source = 16 * 3 + (4 * b + row) % 16;
      EXPECT_EQ(as_float(8 + row, 4 * b + 2), (source + 1.0f) * (100 + 4 * b + 2)) << b << " " << row;
    }
  const auto b_lane = [](int blgp, int l) {
    const int lanes[8] = {l,      l % 32,      32 + l % 32, (l + 16) % 64,
                          l % 16, 16 + l % 16, 32 + l % 16, 48 + l % 16};
    return lanes[blgp];
  };
  i.cbsz = i.abid = 0;
  for (int blgp = 0; blgp < 8; ++blgp) {
    i.blgp = static_cast<uint8_t>(blgp);
    run("v_mfma_f32_4x4x1_16b_f32", i);
    for (int l = 0; l < kLanes; ++l)
      EXPECT_EQ(as_float(8, l), (l / 4 * 4 + 1.0f) * (100 + b_lane(blgp, l)))
          << "blgp " << blgp << " lane " << l;
  }
}

// Lane by lane: what CBSZ, ABID and BLGP leave of A and B is put into place by hand and multiplied without them.
TEST_F(Mfma, BroadcastsOfEveryShapeEqualTheRearrangedOperands) {
  const struct { const char* name; int blocks, registers, results; } shapes[] = {
      {"v_mfma_f32_32x32x1_2b_f32", 2, 1, 32}, {"v_mfma_f32_16x16x1_4b_f32", 4, 1, 16},
      {"v_mfma_f32_4x4x1_16b_f32", 16, 1, 4},  {"v_mfma_f32_32x32x4_2b_f16", 2, 2, 32},
      {"v_mfma_f32_16x16x4_4b_bf16", 4, 2, 16}, {"v_mfma_i32_4x4x4_16b_i8", 16, 1, 4},
      {"v_mfma_i32_32x32x4_2b_i8", 2, 1, 32},  {"v_mfma_f32_32x32x2_f32", 1, 1, 16}};
  for (const auto& s : shapes)
    for (int cbsz = 0; (1 << cbsz) <= s.blocks; ++cbsz)
      for (int abid = 0; abid < 1 << cbsz; ++abid)
        for (int blgp = 0; blgp < 8; ++blgp) {
          clear();
          const int group = 64 >> cbsz;
          for (int r = 0; r < s.registers; ++r)
            for (int l = 0; l < kLanes; ++l) {
              reg(kA + r, l) = number(false, small() + 3) & 0x7f7f7f7f;
              reg(kB + r, l) = number(false, small() + 3) & 0x7f7f7f7f;
            }
          for (int r = 0; r < s.registers; ++r)
            for (int l = 0; l < kLanes; ++l) {
              const int b_lane = blgp == 0 ? l : blgp == 1 ? l % 32 : blgp == 2 ? 32 + l % 32 : blgp == 3 ? (l + 16) % 64
                                                                                      : 16 * (blgp - 4) + l % 16;
              reg(16 + r, l) = reg(kA + r, l % group + group * abid);
              reg(48 + r, l) = reg(kB + r, b_lane);
            }
          Inst i = inst(v(kC), v(kA), v(kB), integer(0));
          i.cbsz = static_cast<uint8_t>(cbsz);
          i.abid = static_cast<uint8_t>(abid);
          i.blgp = static_cast<uint8_t>(blgp);
          run(s.name, i);
          run(s.name, inst(v(kC + 32), v(16), v(48), integer(0)));
          for (int r = 0; r < s.results; ++r)
            for (int l = 0; l < kLanes; ++l)
              ASSERT_EQ(reg(kC + r, l), reg(kC + 32 + r, l)) << s.name << " cbsz " << cbsz << " abid " << abid << " blgp " << blgp;
        }
}

TEST_F(Mfma, DenormalsInfinitiesAndNanPassThrough) {
  set(0, 0x00010001u);  // the smallest f16 denormal
  set(1, 0x00010001u);
  set(2, 0x64006400u);  // 1024
  set(3, 0x64006400u);
  w.mode = 0x300;
  run("v_mfma_f32_16x16x16_f16", inst(v(8), v(0), v(2), integer(0)));
  EXPECT_EQ(as_float(8, 0), 16 * 0x1p-24f * 1024);
  set(0, 0x7c007c00u);
  run("v_mfma_f32_16x16x16_f16", inst(v(8), v(0), v(2), integer(0)));
  EXPECT_TRUE(std::isinf(as_float(8, 0)));
  set(2, 0u);
  run("v_mfma_f32_16x16x16_f16", inst(v(8), v(0), v(2), integer(0)));
  EXPECT_TRUE(std::isnan(as_float(8, 0)));
}

TEST_F(Mfma, AccumulatorMayOverlapItsSource) {
  for (int r = 0; r < 24; ++r) set(64 + r, static_cast<float>(r));
  run("v_mfma_f32_32x32x8_bf16", inst(v(68), v(0), v(2), v(64)));
  for (int r = 0; r < 16; ++r) EXPECT_EQ(as_float(68 + r, 5), static_cast<float>(r)) << r;
}

TEST_F(Mfma, WorkIsCounted) {
  run("v_mfma_f32_32x32x16_bf16", inst(acc(0), v(0), v(8), integer(0)));
  run("v_mfma_f32_16x16x4_4b_f16", inst(acc(0), v(0), v(8), integer(0)));
  EXPECT_EQ(w.counters.mfma_instructions, 2u);
  EXPECT_EQ(w.counters.mfma_flops, 2u * 32 * 32 * 16 + 2u * 16 * 16 * 4 * 4);
}

}  // namespace
}  // namespace mi350::emu
