// A product of strided operands on the host, its run on a row of the gemm table in the emulator, and the check
// of every byte of d.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <memory>
#include <random>

#include "plan/problems.h"
#include "tile/device.h"

namespace mi350::test {

inline uint16_t to_f16(float v) { return std::bit_cast<uint16_t>(static_cast<_Float16>(v)); }
inline float from_f16(uint16_t v) { return static_cast<float>(std::bit_cast<_Float16>(v)); }

// A strided operand on the host, in elements of `type`.
struct Tensor {
  DType type;
  int64_t batch, rows, cols, stride_batch, stride_row, stride_col;
  std::vector<uint8_t> bytes;

  Tensor(DType type, int64_t batch, int64_t rows, int64_t cols, int64_t sb, int64_t sr, int64_t sc)
      : type(type), batch(batch), rows(rows), cols(cols), stride_batch(sb), stride_row(sr), stride_col(sc) {
    const int64_t elements = batch * rows * cols == 0 ? 0 : (batch - 1) * sb + (rows - 1) * sr + (cols - 1) * sc + 1;
    bytes.assign(elements * size_bytes(type), 0xff);  // NaN wherever no element is
  }
  int64_t at(int64_t b, int64_t i, int64_t j) const { return b * stride_batch + i * stride_row + j * stride_col; }
  void set(int64_t at, float v) {
    if (type == DType::kF32) std::memcpy(&bytes[at * 4], &v, 4);
    else {
      const uint16_t h = type == DType::kBF16 ? to_bf16(v) : to_f16(v);
      std::memcpy(&bytes[at * 2], &h, 2);
    }
  }
  float get(int64_t at) const {
    float f;
    uint16_t h;
    if (type == DType::kF32) { std::memcpy(&f, &bytes[at * 4], 4); return f; }
    std::memcpy(&h, &bytes[at * 2], 2);
    return type == DType::kBF16 ? from_bf16(h) : from_f16(h);
  }
  void fill(std::mt19937& rng, int span) {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j)
          set(at(b, i, j), static_cast<float>(static_cast<int>(rng() % (2 * span + 1)) - span));
  }
  gemm::Operand operand(uint64_t address) const { return {address, stride_batch, stride_row, stride_col}; }
};

inline Module& module_of(const std::string& object) {
  static std::map<std::string, std::unique_ptr<Module>> modules;
  auto& m = modules[object];
  if (!m) m = std::make_unique<Module>(shipped(object));
  return *m;
}

struct Product {
  Tensor a, b, c, d;
  float alpha = 1, beta = 0;
  Buffer::End ends = Buffer::kGuarded;
  size_t shift_a = 0, shift_b = 0, shift_c = 0, shift_d = 0;  // bytes

  // Runs on row `row` into `dd`; why_not's reason if the row refuses.
  Reason run_on(int row, Buffer& dd, std::string& symbol) {
    Buffer da(a.bytes.size(), 0xff, shift_a, ends), db(b.bytes.size(), 0xff, shift_b, ends);
    Buffer dc(c.bytes.size(), 0xff, shift_c, ends);
    const std::vector<uint8_t> before(d.bytes.size(), 0x5a);
    da.write(a.bytes), db.write(b.bytes), dc.write(c.bytes), dd.write(before);
    gemm::GemmProblem p;
    p.in = a.type, p.out = d.type, p.alpha = alpha, p.beta = beta;
    p.batch = d.batch, p.m = d.rows, p.n = d.cols, p.k = a.cols;
    p.a = a.operand(da.address()), p.b = b.operand(db.address());
    p.c = c.operand(dc.address()), p.d = d.operand(dd.address());
    gemm::Plan plan;
    if (Reason r = gemm::plan(p, {}, {}, plan, row); !r.empty()) return r;
    const auto& l = plan.launch[0];
    const auto& config = gemm::kConfigs[l.kernel];
    symbol = config.symbol;
    if (plan.launches > 0) module_of(config.object).launch(symbol.c_str(), l.grid[0], l.grid[1], l.block, plan.args);
    dd.read(d.bytes.data());
    return {};
  }

  // Runs on row `row` and checks every element of d.
  Reason check_on(int row) {
    Buffer dd(d.bytes.size(), 0x5a, shift_d);
    std::string symbol;
    if (Reason r = run_on(row, dd, symbol); !r.empty()) return r;
    EXPECT_TRUE(dd.guards_intact()) << symbol;
    check_result(symbol);
    return {};
  }

  void check_result(const std::string& symbol) {
    std::vector<bool> written(d.bytes.size(), false);
    int wrong = 0;
    for (int64_t x = 0; x < d.batch; ++x)
      for (int64_t i = 0; i < d.rows; ++i)
        for (int64_t j = 0; j < d.cols; ++j) {
          double sum = 0;
          if (alpha != 0)
            for (int64_t p = 0; p < a.cols; ++p) sum += double{a.get(a.at(x, i, p))} * b.get(b.at(x, p, j));
          sum = alpha != 0 ? alpha * sum : 0;
          if (beta != 0) sum += double{beta} * c.get(c.at(x, i, j));
          Tensor expected(d.type, 1, 1, 1, 0, 0, 0);
          expected.set(0, static_cast<float>(sum));
          const int size = size_bytes(d.type);
          if (expected.get(0) != d.get(d.at(x, i, j)) && ++wrong < 4)
            ADD_FAILURE() << symbol << " d[" << x << "," << i << "," << j << "] = " << d.get(d.at(x, i, j))
                          << ", expected " << expected.get(0) << " (" << d.rows << "x" << d.cols << "x" << a.cols
                          << ")";
          for (int e = 0; e < size; ++e) written[d.at(x, i, j) * size + e] = true;
        }
    EXPECT_EQ(wrong, 0) << symbol;
    for (size_t i = 0; i < written.size(); ++i) {
      if (!written[i]) { ASSERT_EQ(d.bytes[i], 0x5a) << symbol << " wrote between elements"; }
    }
  }
};

// Contiguous operands for the row's layout, padded lines by `pad` elements of 16 bytes.
inline Product run_for(int row, int64_t batch, int64_t m, int64_t n, int64_t k, int pad, DType out) {
  const auto& config = gemm::kConfigs[row];
  const std::string layout = config.layout[0] == 's' ? "nt" : config.layout;
  const int64_t extra = int64_t{pad} * 16 / size_bytes(config.in);
  const auto make = [&](int64_t rows, int64_t cols, bool row_major) {
    const int64_t line = (row_major ? cols : rows) + extra, lines = row_major ? rows : cols;
    return Tensor(config.in, batch, rows, cols, line * lines, row_major ? line : 1, row_major ? 1 : line);
  };
  Product run{make(m, k, layout[0] == 'n'), make(k, n, layout[1] == 'n'), Tensor(out, batch, m, n, m * n, n, 1),
              Tensor(out, batch, m, n, m * n, n, 1)};
  std::mt19937 rng(static_cast<unsigned>(m * 7 + n * 3 + k));
  run.a.fill(rng, 3), run.b.fill(rng, 3), run.c.fill(rng, 8);
  return run;
}

}  // namespace mi350::test
