// What selects, moves and masks lanes and parts of registers, exhaustively: every DPP control with masks
// and bound_ctrl, every SDWA selection, every truth table of v_bitop3, permlane swaps, relative register
// indices.
#include <random>

#include "exec_fixture.h"

namespace mi350::emu {
namespace {

struct LaneControls : ExecTest {
  std::mt19937 random{3};
  void fill(int r) {
    for (uint32_t& x : w.vgpr[r]) x = random();
  }
};

// Source lane by the manual's words for each control; -1 is outside.
int dpp_lane(int control, int lane) {
  const int row = lane / 16, place = lane % 16, n = control % 16;
  const auto in_row = [&](int p) { return p < 0 || p > 15 ? -1 : row * 16 + p; };
  if (control <= 0xff) return lane - lane % 4 + (control >> (lane % 4 * 2)) % 4;
  if (control >= 0x101 && control <= 0x10f) return in_row(place + n);
  if (control >= 0x111 && control <= 0x11f) return in_row(place - n);
  if (control >= 0x121 && control <= 0x12f) return in_row((place + 16 - n) % 16);
  if (control >= 0x150 && control <= 0x15f) return in_row(n);
  switch (control) {
    case 0x130: return lane == 63 ? -1 : lane + 1;
    case 0x134: return (lane + 1) % 64;
    case 0x138: return lane - 1;
    case 0x13c: return (lane + 63) % 64;
    case 0x140: return in_row(15 - place);
    case 0x141: return lane - lane % 8 + (7 - lane % 8);
    case 0x142: return row == 0 ? -1 : row * 16 - 1;
    default: return row < 2 ? -1 : 31;  // 0x143
  }
}

TEST_F(LaneControls, EveryDppControlWithMasksAndBounds) {
  std::vector<int> controls{0x130, 0x134, 0x138, 0x13c, 0x140, 0x141, 0x142, 0x143};
  for (int c = 0; c < 256; ++c) controls.push_back(c);
  for (int n = 0; n < 16; ++n) {
    controls.push_back(0x150 + n);
    if (n)
      for (int base : {0x100, 0x110, 0x120}) controls.push_back(base + n);
  }
  for (int control : controls)
    for (int variant = 0; variant < 12; ++variant) {
      fill(1);
      fill(2);
      fill(3);
      const uint64_t exec = variant < 4 ? ~0ull : static_cast<uint64_t>(random()) << 32 | random();
      Inst i = inst(v(3), v(1), v(2));
      i.lane_mode = LaneMode::kDpp;
      i.dpp_ctrl = static_cast<uint16_t>(control);
      i.bound_ctrl = variant % 2;
      i.row_mask = static_cast<uint8_t>(variant % 4 < 2 ? 15 : random() % 16);
      i.bank_mask = static_cast<uint8_t>(variant % 4 < 2 ? 15 : random() % 16);
      uint32_t before[kLanes];
      std::memcpy(before, w.vgpr[3], sizeof before);
      w.set_exec(exec);
      run("v_sub_u32", i);
      for (int l = 0; l < kLanes; ++l) {
        const int from = dpp_lane(control, l);
        const bool valid = from >= 0 && exec >> from & 1;
        const bool enabled =
            exec >> l & 1 && i.row_mask >> (l / 16) & 1 && i.bank_mask >> (l % 16 / 4) & 1;
        const uint32_t source = valid ? reg(1, from) : 0;
        const uint32_t want = enabled && (valid || i.bound_ctrl) ? source - reg(2, l) : before[l];
        ASSERT_EQ(reg(3, l), want) << std::hex << control << std::dec << " lane " << l << " variant "
                                   << variant;
      }
    }
}

uint32_t sdwa_part(uint32_t x, int select, bool sign) {
  const int bits = select < 4   ? 8
                   : select < 6 ? 16
                                : 32,
            at = select < 4    ? 8 * select
                 : select == 5 ? 16
                               : 0;
  const uint64_t part = (static_cast<uint64_t>(x) >> at) % (1ull << bits);
  return static_cast<uint32_t>(sign && part >> (bits - 1) ? part - (1ull << bits) : part);
}
uint32_t sdwa_place(uint32_t result, uint32_t old, int select, int unused) {
  if (select == 6) return result;
  uint32_t out = 0;
  const int bits = select < 4 ? 8 : 16, at = select < 4 ? 8 * select : select == 5 ? 16 : 0;
  for (int n = 0; n < 32; ++n) {
    uint32_t bit = 0;
    if (n >= at && n < at + bits) bit = result >> (n - at) & 1;
    else if (unused == 2) bit = old >> n & 1;
    else if (unused == 1 && n >= at + bits) bit = result >> (bits - 1) & 1;
    out |= bit << n;
  }
  return out;
}

TEST_F(LaneControls, EverySdwaSelectionExtensionAndPlacement) {
  for (int select0 = 0; select0 < 7; ++select0)
    for (int select1 = 0; select1 < 7; ++select1)
      for (int extend = 0; extend < 4; ++extend)
        for (int to = 0; to < 7; ++to)
          for (int unused = 0; unused < 3; ++unused) {
            for (int l = 0; l < 4; ++l)
              for (int r = 1; r < 4; ++r) reg(r, l) = random();
            uint32_t before[4];
            std::memcpy(before, w.vgpr[3], sizeof before);
            w.set_exec(0xb);
            Inst i = inst(v(3), v(1), v(2));
            i.lane_mode = LaneMode::kSdwa;
            i.src0_sel = static_cast<uint8_t>(select0);
            i.src1_sel = static_cast<uint8_t>(select1);
            i.src0_sext = extend & 1;
            i.src1_sext = extend & 2;
            i.dst_sel = static_cast<uint8_t>(to);
            i.dst_unused = static_cast<uint8_t>(unused);
            run("v_add_u32", i);
            for (int l = 0; l < 4; ++l) {
              const uint32_t sum =
                  sdwa_part(reg(1, l), select0, extend & 1) + sdwa_part(reg(2, l), select1, extend & 2);
              ASSERT_EQ(reg(3, l), l == 2 ? before[l] : sdwa_place(sum, before[l], to, unused))
                  << select0 << " " << select1 << " " << extend << " " << to << " " << unused;
            }
          }
}

TEST_F(LaneControls, EveryTruthTableOfBothWidths) {
  for (int table = 0; table < 256; ++table) {
    for (int r = 1; r < 5; ++r) fill(r);
    const auto lookup = [&](uint32_t a, uint32_t b, uint32_t c) {
      uint32_t out = 0;
      for (int n = 0; n < 32; ++n) {
        const int row = static_cast<int>((a >> n & 1) * 4 + (b >> n & 1) * 2 + (c >> n & 1));
        out |= static_cast<uint32_t>(table >> row & 1) << n;
      }
      return out;
    };
    Inst i = inst(v(4), v(1), v(2), v(3));
    i.imm = table;
    run("v_bitop3_b32", i);
    for (int l = 0; l < kLanes; ++l)
      ASSERT_EQ(reg(4, l), lookup(reg(1, l), reg(2, l), reg(3, l))) << table;
    fill(5);
    i.dst = v(5);
    i.op_sel = static_cast<uint8_t>(table % 16);
    uint32_t before[kLanes];
    std::memcpy(before, w.vgpr[5], sizeof before);
    run("v_bitop3_b16", i);
    for (int l = 0; l < kLanes; ++l) {
      const auto half = [&](int r) { return reg(r, l) >> (i.op_sel >> (r - 1) & 1 ? 16 : 0) & 0xffff; };
      const uint32_t want = lookup(half(1), half(2), half(3)) & 0xffff;
      if (i.op_sel & 8) ASSERT_EQ(reg(5, l), want << 16 | (before[l] & 0xffff)) << table;
      else ASSERT_EQ(reg(5, l) & 0xffff, want) << table;
    }
  }
}

TEST_F(LaneControls, SwapsExchangeWholeRowsWhateverExecSays) {
  for (int rows : {16, 32}) {
    fill(1);
    fill(2);
    uint32_t a[kLanes], b[kLanes];
    std::memcpy(a, w.vgpr[1], sizeof a);
    std::memcpy(b, w.vgpr[2], sizeof b);
    w.set_exec(0x00ff00ff12345678);
    run(rows == 16 ? "v_permlane16_swap_b32" : "v_permlane32_swap_b32", inst(v(1), v(2)));
    for (int l = 0; l < kLanes; ++l) {
      const bool upper = l / rows % 2;  // odd rows of the destination trade with even rows of the source
      ASSERT_EQ(reg(1, l), upper ? b[l - rows] : a[l]) << rows << " lane " << l;
      ASSERT_EQ(reg(2, l), upper ? b[l] : a[l + rows]) << rows << " lane " << l;
    }
  }
}

TEST_F(LaneControls, RelativeIndicesMoveTheOperandsThatTheModeNames) {
  for (uint32_t names = 0; names < 16; ++names) {
    for (int r = 0; r < 40; ++r) set(r, 1000u + static_cast<uint32_t>(r));
    w.sgpr[20] = 5;
    Inst on;
    on.src[0] = 20;
    on.imm = static_cast<int32_t>(names);
    run("s_set_gpr_idx_on", on);
    run("v_mad_u32_u24", inst(v(30), v(1), v(10), v(20)));
    run("s_set_gpr_idx_off", {});
    const auto at = [&](uint32_t r, int bit) { return 1000u + r + (names >> bit & 1 ? 5 : 0); };
    const int destination = names & 8 ? 35 : 30;
    EXPECT_EQ(reg(destination, 9), at(1, 0) * at(10, 1) + at(20, 2)) << names;
    EXPECT_EQ(reg(names & 8 ? 30 : 35, 9), names & 8 ? 1030u : 1035u);
    run("v_mov_b32", inst(v(30), v(2)));
    EXPECT_EQ(reg(30, 9), 1002u) << "off again";
  }
}

}  // namespace
}  // namespace mi350::emu
