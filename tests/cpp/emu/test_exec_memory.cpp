// Rarely used memory and control instructions: scalar scratch, private memory to LDS, conditional exchange, FFT
// swizzles, the branch stack, VSKIP through s_setreg, hardware registers.
#include "decode.h"
#include "exec_memory_fixture.h"

namespace mi350::emu {
namespace {

using ExecMemory = ExecMemoryTest;

TEST_F(ExecMemory, ScalarScratchCountsItsOffsetRegisterIn64Bytes) {
  fill_random(1);
  const auto base = reinterpret_cast<uint64_t>(data);
  w.sgpr[2] = static_cast<uint32_t>(base);
  w.sgpr[3] = static_cast<uint32_t>(base >> 32);
  w.sgpr[8] = 3;
  Inst i;
  i.dst = i.data = 20;
  i.sbase = 2;
  i.soffset = 8;
  i.imm = 4;
  run("s_scratch_load_dwordx2", i);
  EXPECT_EQ(w.sgpr[20], word(3 * 64 + 4));
  EXPECT_EQ(w.sgpr[21], word(3 * 64 + 8));
  w.sgpr[20] = 0x12345678;
  i.soffset = kNoOperand;
  i.imm = 256;
  run("s_scratch_store_dword", i);
  EXPECT_EQ(word(256), 0x12345678u);
}

TEST_F(ExecMemory, PrivateMemoryReachesTheLds) {
  fill_random(2);
  w.scratch_base = reinterpret_cast<uint64_t>(data);
  w.scratch_bytes_per_lane = 64;
  w.sgpr[kM0] = 512;
  for (int l = 0; l < kLanes; ++l) reg(1, l) = static_cast<uint32_t>(l % 8) * 4 + 2;
  Inst i;
  i.addr = v(1);
  i.imm = 4;
  i.lds = true;
  w.set_exec(~2ull);
  run("scratch_load_lds_sshort", i);
  for (uint32_t l = 0; l < kLanes; ++l) {
    const uint32_t offset = reg(1, static_cast<int>(l)) + 4;
    int16_t value;
    std::memcpy(&value, data + offset / 4 * 256 + 4 * l + offset % 4, 2);
    int32_t got;
    std::memcpy(&got, &lds[512 + 4 + 4 * l], 4);
    ASSERT_EQ(got, l == 1 ? 0 : value) << l;
  }
}

TEST_F(ExecMemory, ConditionalExchangeWritesWhereTheTopBitSays) {
  const uint32_t before[4] = {0x11, 0x22, 0x33, 0x44};
  std::memcpy(lds.data(), before, sizeof before);
  w.set_exec(3);
  reg(1, 0) = 0;
  reg(1, 1) = 8;
  reg(2, 0) = 0x80000aaa; reg(3, 0) = 0x00000bbb;
  reg(2, 1) = 0x00000ccc; reg(3, 1) = 0x80000ddd;
  Inst i;
  i.dst = v(4);
  i.addr = v(1);
  i.data = v(2);
  run("ds_condxchg32_rtn_b64", i);
  uint32_t after[4];
  std::memcpy(after, lds.data(), sizeof after);
  EXPECT_EQ(after[0], 0xaaau);
  EXPECT_EQ(after[1], 0x22u);
  EXPECT_EQ(after[2], 0x33u);
  EXPECT_EQ(after[3], 0xdddu);
  EXPECT_EQ(reg(4, 0), 0x11u);
  EXPECT_EQ(reg(5, 1), 0x44u);
}

// The manual's lists of source lanes (counted from 1) for the FFT masks 0x00 and 0x10.
TEST_F(ExecMemory, FftSwizzlesFollowTheManualsLists) {
  const uint32_t all[32] = {0x1, 0x11, 0x9, 0x19, 0x5, 0x15, 0xd, 0x1d, 0x3, 0x13, 0xb, 0x1b, 0x7, 0x17, 0xf, 0x1f,
                            0x2, 0x12, 0xa, 0x1a, 0x6, 0x16, 0xe, 0x1e, 0x4, 0x14, 0xc, 0x1c, 0x8, 0x18, 0x10, 0x20};
  const uint32_t halves[32] = {0x1, 0x9, 0x5, 0xd, 0x3, 0xb, 0x7, 0xf, 0x2, 0xa, 0x6, 0xe, 0x4, 0xc, 0x8, 0x10,
                               0x11, 0x19, 0x15, 0x1d, 0x13, 0x1b, 0x17, 0x1f, 0x12, 0x1a, 0x16, 0x1e, 0x14, 0x1c, 0x18, 0x20};
  for (int l = 0; l < kLanes; ++l) reg(1, l) = 100u + static_cast<uint32_t>(l);
  Inst i;
  i.dst = v(2);
  i.addr = v(1);
  for (const auto& [mask, list] : {std::pair{0, all}, std::pair{0x10, halves}}) {
    i.imm = 0xe000 | mask;
    run("ds_swizzle_b32", i);
    for (uint32_t l = 0; l < kLanes; ++l)
      ASSERT_EQ(reg(2, static_cast<int>(l)), 100 + list[l % 32] - 1 + (l & 32)) << mask << " lane " << l;
  }
  i.imm = 0xe01f;
  run("ds_swizzle_b32", i);
  EXPECT_EQ(reg(2, 37), 137u);
}

struct BranchStack : ExecMemoryTest {
  Program program;
  // Runs from the start until s_endpgm; the words are real code, so that targets and addresses are.
  void execute(const std::vector<uint32_t>& text) {
    program = decode_text(text, {});
    program.text_address = 0x10000;
    w.program = &program;
    w.pc = 0;
    for (int n = 0; n < 100 && w.status == WaveStatus::kRunning; ++n) {
      const Inst& i = program.insts[w.pc++];
      ASSERT_NE(i.exec, nullptr) << w.pc;
      i.exec(w, i);
    }
  }
};

TEST_F(BranchStack, ForkRunsBothPathsAndJoinBringsThemTogether) {
  // s[40:41] picks lanes for the far path, which adds 10 to v2; the near path adds 1; all add 100 behind the join.
  w.sgpr[40] = 0x0000000f;
  w.sgpr[60] = 0;
  w.sgpr[41] = 0;
  execute({0xbeb2017e,      // s_mov_b64 s[50:51], exec: the join does not bring it back
           0xb8280003,      // s_cbranch_i_fork s[40:41], 3     -> far
           0x680404ff, 1,   // v_add_u32 v2, 1, v2
           0xbf820002,      // s_branch 2                       -> join
           0x680404ff, 10,  // far: v_add_u32 v2, 10, v2
           0xbe802e3c,      // join: s_cbranch_join s60
           0xbefe0132,      // s_mov_b64 exec, s[50:51]
           0x680404ff, 100,
           0xbf810000});
  EXPECT_EQ(w.status, WaveStatus::kEnded) << w.fault;
  EXPECT_EQ(w.exec(), ~0ull);
  for (int l = 0; l < kLanes; ++l) EXPECT_EQ(reg(2, l), l < 4 ? 110u : 101u) << l;
}

TEST_F(BranchStack, SkipBitPassesOverVectorInstructions) {
  execute({0xba000701, 0x00000001,  // s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 1
           0x7e0402ff, 7,                // v_mov_b32 v2, 7: passed over
           0xbe8500ff, 9,                // s_mov_b32 s5, 9: scalar, runs
           0xba000701, 0,
           0x7e0602ff, 8,                // v_mov_b32 v3, 8
           0xbf810000});
  EXPECT_EQ(reg(2, 0), 0u);
  EXPECT_EQ(w.sgpr[5], 9u);
  EXPECT_EQ(reg(3, 0), 8u);
}

TEST_F(ExecMemory, UnknownHardwareRegistersAreRefusedByNumber) {
  Inst i;
  i.dst = 5;
  i.imm = static_cast<int32_t>(31u << 11 | 20);  // XCC_ID, 32 bits
  group.xcd = 3;
  run("s_getreg_b32", i);
  EXPECT_EQ(w.sgpr[5], 3u);
  i.imm = static_cast<int32_t>(31u << 11 | 40);
  run("s_getreg_b32", i);
  EXPECT_EQ(w.status, WaveStatus::kFault);
  EXPECT_NE(w.fault.find("hardware register 40"), std::string::npos);
}

}  // namespace
}  // namespace mi350::emu
