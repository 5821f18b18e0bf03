// One wave with hand-set registers, and instructions by mnemonic: what the handler tests share.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <string_view>

#include "isa.h"
#include "wave.h"

namespace mi350::emu {

constexpr uint32_t kUsualMode = 0x3f0;  // round to nearest, denormals on, DX10_CLAMP, IEEE

inline const IsaRow* row_named(std::string_view mnemonic) {
  for (size_t r = 0; r < kIsaRows; ++r)
    if (kIsa[r].mnemonic == mnemonic) return &kIsa[r];
  return nullptr;
}

constexpr uint16_t v(int n) { return static_cast<uint16_t>(kVgpr0 + n); }
constexpr uint16_t acc(int n) { return static_cast<uint16_t>(kAcc0 + n); }
constexpr uint16_t integer(int n) { return static_cast<uint16_t>(n >= 0 ? kInt0 + n : 192 - n); }

struct ExecTest : ::testing::Test {
  ~ExecTest() override = default;
  std::unique_ptr<Wave> wave = std::make_unique<Wave>();
  Wave& w = *wave;

  ExecTest() {
    std::memset(w.vgpr, 0, sizeof w.vgpr);
    std::memset(w.sgpr, 0, sizeof w.sgpr);
    w.mode = kUsualMode;
    w.set_exec(~0ull);
  }

  void run(std::string_view mnemonic, const Inst& inst) {
    const IsaRow* row = row_named(mnemonic);
    ASSERT_NE(row, nullptr) << "no row in isa.def: " << mnemonic;
    const Handler handler = handlers()[row - kIsa];
    ASSERT_NE(handler, nullptr) << "no handler: " << mnemonic;
    Inst complete = inst;
    complete.row = row;
    handler(w, complete);
  }

  uint32_t& reg(int n, int lane) { return w.vgpr[n][lane]; }
  float as_float(int n, int lane) { return std::bit_cast<float>(w.vgpr[n][lane]); }
  double as_double(int n, int lane) {
    return std::bit_cast<double>(w.vgpr[n][lane] | static_cast<uint64_t>(w.vgpr[n + 1][lane]) << 32);
  }
  void set(int n, uint32_t value) { for (uint32_t& lane : w.vgpr[n]) lane = value; }
  void set(int n, float value) { set(n, std::bit_cast<uint32_t>(value)); }
  void set(int n, double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    set(n, static_cast<uint32_t>(bits));
    set(n + 1, static_cast<uint32_t>(bits >> 32));
  }
};

inline Inst inst(uint16_t dst, uint16_t a, uint16_t b = kNoOperand, uint16_t c = kNoOperand) {
  Inst i;
  i.dst = dst;
  i.src[0] = a;
  i.src[1] = b;
  i.src[2] = c;
  return i;
}

}  // namespace mi350::emu
