// Scalar handlers: results and SCC.
#include "exec_fixture.h"

namespace mi350::emu {
namespace {

struct Salu : ExecTest {
  uint32_t result32(std::string_view name, uint32_t a, uint32_t b) {
    w.sgpr[0] = a;
    w.sgpr[1] = b;
    run(name, inst(10, 0, 1));
    return w.sgpr[10];
  }
  uint64_t pair(int n) { uint64_t x; std::memcpy(&x, &w.sgpr[n], 8); return x; }
  void set_pair(int n, uint64_t x) { std::memcpy(&w.sgpr[n], &x, 8); }
  uint64_t result64(std::string_view name, uint64_t a, uint64_t b) {
    set_pair(0, a);
    set_pair(2, b);
    run(name, inst(10, 0, 2));
    return pair(10);
  }
};

TEST_F(Salu, AddAndSubtractGiveCarryOrSignedOverflow) {
  EXPECT_EQ(result32("s_add_u32", 0xffffffff, 2), 1u);
  EXPECT_TRUE(w.scc);
  EXPECT_EQ(result32("s_addc_u32", 5, 6), 12u);
  EXPECT_FALSE(w.scc);
  EXPECT_EQ(result32("s_sub_u32", 1, 2), 0xffffffffu);
  EXPECT_TRUE(w.scc);
  EXPECT_EQ(result32("s_subb_u32", 7, 6), 0u);
  EXPECT_FALSE(w.scc);
  result32("s_add_i32", 0x7fffffff, 1);
  EXPECT_TRUE(w.scc);
  result32("s_add_i32", 0xffffffff, 1);
  EXPECT_FALSE(w.scc);
  result32("s_sub_i32", 0x80000000, 1);
  EXPECT_TRUE(w.scc);
  w.scc = true;
  result32("s_subb_u32", 0, 0xffffffff);
  EXPECT_TRUE(w.scc);
}

TEST_F(Salu, MinimumSetsSccWhenTheFirstWins) {
  EXPECT_EQ(result32("s_min_i32", 0xffffffff, 1), 0xffffffffu);
  EXPECT_TRUE(w.scc);
  EXPECT_EQ(result32("s_min_u32", 0xffffffff, 1), 1u);
  EXPECT_FALSE(w.scc);
  EXPECT_EQ(result32("s_max_u32", 3, 3), 3u);
  EXPECT_TRUE(w.scc) << "the manual: S0 >= S1";
  EXPECT_EQ(result32("s_max_i32", 0xffffffff, 1), 1u);
  EXPECT_FALSE(w.scc);
}

TEST_F(Salu, LogicAndShiftsOfBothWidths) {
  EXPECT_EQ(result64("s_andn2_b64", ~0ull, 0xffull), ~0xffull);
  EXPECT_TRUE(w.scc);
  EXPECT_EQ(result64("s_and_b64", 1, 2), 0u);
  EXPECT_FALSE(w.scc);
  EXPECT_EQ(result64("s_lshl_b64", 1, 40), 1ull << 40);
  EXPECT_EQ(result64("s_ashr_i64", 1ull << 63, 60), ~0ull << 3);
  EXPECT_EQ(result32("s_lshr_b32", 0x80000000, 33), 0x40000000u);
  EXPECT_EQ(result32("s_xnor_b32", 5, 5), ~0u);
}

TEST_F(Salu, BitFieldsOfAnyWidth) {
  EXPECT_EQ(result32("s_bfe_u32", 0xabcd1234, 8 | 8 << 16), 0x12u);
  EXPECT_EQ(result32("s_bfe_i32", 0x0000f000, 12 | 4 << 16), ~0u);
  EXPECT_EQ(result32("s_bfe_u32", 0xabcd1234, 4 | 32 << 16), 0x0abcd123u);
  EXPECT_EQ(result32("s_bfe_u32", 5, 0), 0u);
  EXPECT_FALSE(w.scc);
  EXPECT_EQ(result64("s_bfe_u64", 0x123456789abcdef0, 32 | 32 << 16), 0x12345678u);
  EXPECT_EQ(result64("s_bfe_i64", 1ull << 35, 32 | 4 << 16), ~7ull);
  EXPECT_EQ(result32("s_bfm_b32", 5, 3), 0xf8u);
  EXPECT_EQ(result32("s_bfm_b64", 40, 4), 0xfffffff0u);
  EXPECT_EQ(w.sgpr[11], 0xfffu);
}

TEST_F(Salu, CountsAndSearches) {
  EXPECT_EQ(result32("s_bcnt1_i32_b32", 0xf0f0, 0), 8u);
  EXPECT_EQ(result32("s_ff1_i32_b32", 0, 0), ~0u);
  EXPECT_EQ(result32("s_ff0_i32_b32", 7, 0), 3u);
  EXPECT_EQ(result32("s_flbit_i32_b32", 0x00010000, 0), 15u);
  EXPECT_EQ(result32("s_flbit_i32", 0xffff0000, 0), 16u);
  EXPECT_EQ(result32("s_flbit_i32", 0xffffffff, 0), ~0u);
  EXPECT_EQ(result32("s_brev_b32", 1, 0), 0x80000000u);
  EXPECT_EQ(result32("s_abs_i32", 0xfffffffb, 0), 5u);
  EXPECT_EQ(result32("s_sext_i32_i8", 0x80, 0), 0xffffff80u);
  EXPECT_EQ(result32("s_quadmask_b32", 0x00100f01, 0), 0x25u);
  EXPECT_EQ(result32("s_wqm_b32", 0x00100001, 0), 0x00f0000fu);
}

TEST_F(Salu, ProductsAndPacks) {
  EXPECT_EQ(result32("s_mul_hi_u32", 0xffffffff, 0xffffffff), 0xfffffffeu);
  EXPECT_EQ(result32("s_mul_hi_i32", 0xffffffff, 2), 0xffffffffu);
  EXPECT_EQ(result32("s_pack_lh_b32_b16", 0x11112222, 0x33334444), 0x33332222u);
  EXPECT_EQ(result32("s_pack_hh_b32_b16", 0x11112222, 0x33334444), 0x33331111u);
  EXPECT_EQ(result32("s_lshl4_add_u32", 0x10000001, 3), 0x13u);
  EXPECT_TRUE(w.scc);
  EXPECT_EQ(result32("s_absdiff_i32", 3, 10), 7u);
}

TEST_F(Salu, SaveExecWritesOldMaskAndNewExec) {
  w.set_exec(0xff00);
  set_pair(0, 0x0ff0);
  run("s_and_saveexec_b64", inst(10, 0));
  EXPECT_EQ(pair(10), 0xff00u);
  EXPECT_EQ(w.exec(), 0x0f00u);
  EXPECT_TRUE(w.scc);
  w.set_exec(0xff00);
  run("s_andn1_wrexec_b64", inst(10, 0));
  EXPECT_EQ(w.exec(), 0xf000u);
  EXPECT_EQ(pair(10), 0xf000u);
}

TEST_F(Salu, ShortImmediatesExtendTheirSignWhereSigned) {
  Inst i;
  i.dst = i.src[0] = 5;
  i.imm = -3;
  w.sgpr[5] = 0xfffffffd;
  run("s_cmpk_eq_i32", i);
  EXPECT_TRUE(w.scc);
  run("s_cmpk_eq_u32", i);
  EXPECT_FALSE(w.scc);
  run("s_addk_i32", i);
  EXPECT_EQ(w.sgpr[5], 0xfffffffau);
  run("s_movk_i32", i);
  EXPECT_EQ(w.sgpr[5], 0xfffffffdu);
  run("s_mulk_i32", i);
  EXPECT_EQ(w.sgpr[5], 9u);
}

TEST_F(Salu, WideConstantsAreDoublesOrExtended) {
  run("s_mov_b64", inst(10, 242));
  EXPECT_EQ(pair(10), std::bit_cast<uint64_t>(1.0));
  run("s_mov_b64", inst(10, integer(-1)));
  EXPECT_EQ(pair(10), ~0ull);
  Inst i = inst(10, kLiteral);
  i.literal = 0x80000000;
  run("s_mov_b64", i);
  EXPECT_EQ(pair(10), 0x80000000u);
}

TEST_F(Salu, RelativeMovesAddM0) {
  w.sgpr[kM0] = 3;
  w.sgpr[7] = 77;
  run("s_movrels_b32", inst(10, 4));
  EXPECT_EQ(w.sgpr[10], 77u);
  run("s_movreld_b32", inst(20, 7));
  EXPECT_EQ(w.sgpr[23], 77u);
}

}  // namespace
}  // namespace mi350::emu
