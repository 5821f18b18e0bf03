// Vector handlers: lanes that are off keep their values, modifiers, carries, DPP, SDWA, and the rules of
// float operations that differ from C++.
#include <cmath>
#include <limits>

#include "exec_fixture.h"

namespace mi350::emu {
namespace {

using Valu = ExecTest;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_F(Valu, LanesThatAreOffKeepTheirValues) {
  set(1, 2.0f);
  set(2, 3.0f);
  set(3, 7u);
  w.set_exec(0x8000000000000005);
  run("v_add_f32", inst(v(3), v(1), v(2)));
  for (int l = 0; l < kLanes; ++l)
    if (l == 0 || l == 2 || l == 63) EXPECT_EQ(as_float(3, l), 5.0f);
    else EXPECT_EQ(reg(3, l), 7u);
}

TEST_F(Valu, DestinationMayBeASource) {
  for (int l = 0; l < kLanes; ++l) reg(1, l) = static_cast<uint32_t>(l);
  run("v_add_u32", inst(v(1), v(1), v(1)));
  for (int l = 0; l < kLanes; ++l) EXPECT_EQ(reg(1, l), 2u * l);
}

TEST_F(Valu, SignModifiersApplyPerSource) {
  set(1, -2.0f);
  set(2, 3.0f);
  Inst i = inst(v(3), v(1), v(2));
  i.abs = 1;
  run("v_add_f32", i);
  EXPECT_EQ(as_float(3, 5), 5.0f);
  i.neg = 1;
  run("v_add_f32", i);
  EXPECT_EQ(as_float(3, 5), 1.0f);
  i.abs = 0;
  i.neg = 2;
  run("v_add_f32", i);
  EXPECT_EQ(as_float(3, 5), -5.0f);
}

TEST_F(Valu, ClampLimitsFloatsToOneAndSaturatesIntegers) {
  set(1, 2.5f);
  Inst i = inst(v(3), v(1), integer(0));
  i.clamp = true;
  run("v_add_f32", i);
  EXPECT_EQ(as_float(3, 0), 1.0f);
  set(1, kNan);
  run("v_add_f32", i);
  EXPECT_EQ(reg(3, 0), 0u);
  w.mode &= ~0x100u;
  run("v_add_f32", i);
  EXPECT_TRUE(std::isnan(as_float(3, 0)));
  set(1, 0xfffffff0u);
  set(2, 0x20u);
  i = inst(v(3), v(1), v(2));
  run("v_add_u32", i);
  EXPECT_EQ(reg(3, 0), 0x10u);
  i.clamp = true;
  run("v_add_u32", i);
  EXPECT_EQ(reg(3, 0), 0xffffffffu);
  run("v_sub_u32", inst(v(3), v(2), v(1)));
  set(1, 0x7fffffffu);
  run("v_add_i32", i);
  EXPECT_EQ(reg(3, 0), 0x7fffffffu);
}

TEST_F(Valu, OutputMultiplierNeedsFlushedDenormals) {
  set(1, 3.0f);
  Inst i = inst(v(3), v(1), 242);
  i.omod = 1;
  run("v_mul_f32", i);
  EXPECT_EQ(as_float(3, 0), 3.0f);
  w.mode &= ~0x30u;
  run("v_mul_f32", i);
  EXPECT_EQ(as_float(3, 0), 6.0f);
  i.omod = 3;
  run("v_mul_f32", i);
  EXPECT_EQ(as_float(3, 0), 1.5f);
}

TEST_F(Valu, ModeFlushesDenormalsOfFloatsOnly) {
  set(1, 0x00000001u);
  run("v_add_f32", inst(v(3), v(1), integer(0)));
  EXPECT_EQ(reg(3, 0), 1u);
  w.mode &= ~0x30u;
  run("v_add_f32", inst(v(3), v(1), integer(0)));
  EXPECT_EQ(reg(3, 0), 0u);
  run("v_mov_b32", inst(v(3), v(1)));
  EXPECT_EQ(reg(3, 0), 1u);
  set(1, 0x00800000u);
  run("v_mul_f32", inst(v(3), v(1), 240));
  EXPECT_EQ(reg(3, 0), 0u);
}

TEST_F(Valu, ModeRoundingIsFollowed) {
  set(1, 1.0f);
  set(2, 0x1p-30f);
  w.mode |= 1;
  run("v_add_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0), 0x3f800001u);
  w.mode = (w.mode & ~0xfu) | 0xc;
  set(1, 65535.9f);
  run("v_cvt_f16_f32", inst(v(3), v(1)));
  EXPECT_EQ(reg(3, 0), 0x7bffu);
  w.mode &= ~0xfu;
  run("v_cvt_f16_f32", inst(v(3), v(1)));
  EXPECT_EQ(reg(3, 0), 0x7c00u);
}

TEST_F(Valu, HalfPrecisionConstantsSelectsAndPartialWrites) {
  set(1, 0x3c004000u);  // high 1.0, low 2.0
  set(3, 0xaaaaaaaau);
  run("v_add_f16", inst(v(3), 242, v(1)));
  EXPECT_EQ(reg(3, 0), 0x4200u) << "VOP2 clears the high half";
  set(3, 0xaaaaaaaau);
  Inst i = inst(v(3), v(1), v(1), integer(0));
  i.op_sel = 1;
  run("v_fma_f16", i);
  EXPECT_EQ(reg(3, 0), 0xaaaa4000u) << "1 * 2 + 0, high half kept";
  i.op_sel = 8;
  run("v_fma_f16", i);
  EXPECT_EQ(reg(3, 0), 0x44004000u) << "2 * 2 + 0 in the high half, low kept";
}

TEST_F(Valu, MinimumAndMaximumOfNanAndZeros) {
  set(1, kNan);
  set(2, 1.0f);
  run("v_min_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(as_float(3, 0), 1.0f);
  run("v_max_f32", inst(v(3), v(2), v(1)));
  EXPECT_EQ(as_float(3, 0), 1.0f);
  set(1, 0.0f);
  set(2, -0.0f);
  run("v_min_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0), 0x80000000u);
  run("v_max_f32", inst(v(3), v(2), v(1)));
  EXPECT_EQ(reg(3, 0), 0u);
  set(1, 0x7f800001u);
  run("v_min_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0), 0x7fc00001u) << "IEEE mode quiets a signalling NaN";
  w.mode &= ~0x200u;
  run("v_min_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0), 0x80000000u);
  set(1, 1.0f); set(2, kNan); set(4, 3.0f);
  run("v_maximum3_f32", inst(v(3), v(1), v(2), v(4)));
  EXPECT_TRUE(std::isnan(as_float(3, 0)));
  run("v_med3_f32", inst(v(3), v(1), 244, v(4)));
  EXPECT_EQ(as_float(3, 0), 2.0f);
  run("v_med3_f32", inst(v(3), v(1), v(2), v(4)));
  EXPECT_EQ(as_float(3, 0), 1.0f);
}

TEST_F(Valu, CarriesChainThroughScalarPairs) {
  for (int l = 0; l < kLanes; ++l) reg(1, l) = l % 2 ? 0xffffffffu : 5u;
  set(2, 1u);
  Inst i = inst(v(3), v(1), v(2));
  i.sdst = kVccLo;
  run("v_add_co_u32", i);
  EXPECT_EQ(w.vcc(), 0xaaaaaaaaaaaaaaaaull);
  EXPECT_EQ(reg(3, 1), 0u);
  i = inst(v(4), integer(0), v(2), kVccLo);
  i.sdst = 20;
  run("v_addc_co_u32", i);
  EXPECT_EQ(reg(4, 0), 1u);
  EXPECT_EQ(reg(4, 1), 2u);
  EXPECT_EQ(w.sgpr[20], 0u);
  i = inst(v(1), v(1), v(1));
  i.sdst = kVccLo;
  w.set_exec(0xf);
  run("v_add_co_u32", i);
  EXPECT_EQ(w.vcc(), 0xaull)
      << "carry of lanes that are off is 0, sources are read before the sum is written";
  i = inst(v(5), integer(0), v(2));
  i.sdst = kVccLo;
  run("v_sub_co_u32", i);
  EXPECT_EQ(reg(5, 0), 0xffffffffu);
  EXPECT_EQ(w.vcc(), 0xfull);
}

TEST_F(Valu, ComparisonsWriteAMaskAndCmpxExec) {
  for (int l = 0; l < kLanes; ++l) reg(1, l) = std::bit_cast<uint32_t>(static_cast<float>(l));
  set(2, 32.0f);
  w.set_exec(~0ull << 8);
  run("v_cmp_lt_f32", inst(kVccLo, v(1), v(2)));
  EXPECT_EQ(w.vcc(), 0xffffff00ull);
  run("v_cmpx_ge_f32", inst(30, v(1), v(2)));
  EXPECT_EQ(w.exec(), ~0ull << 32);
  EXPECT_EQ(w.sgpr[31], 0xffffffffu);
  w.set_exec(1);
  set(2, kNan);
  run("v_cmp_nlt_f32", inst(kVccLo, v(1), v(2)));
  EXPECT_EQ(w.vcc(), 1u);
  run("v_cmp_lg_f32", inst(kVccLo, v(1), v(2)));
  EXPECT_EQ(w.vcc(), 0u);
  set(1, 0xffffffffu);
  run("v_cmp_lt_i32", inst(kVccLo, v(1), integer(0)));
  EXPECT_EQ(w.vcc(), 1u);
  run("v_cmp_lt_u32", inst(kVccLo, v(1), integer(0)));
  EXPECT_EQ(w.vcc(), 0u);
  run("v_cmp_eq_i64", inst(kVccLo, v(1), v(1)));
  EXPECT_EQ(w.vcc(), 1u);
}

TEST_F(Valu, ClassesTellEveryKindOfNumber) {
  const struct { uint32_t bits; int bit; } cases[] = {
      {0x7f800001, 0}, {0x7fc00000, 1}, {0xff800000, 2}, {0xbf800000, 3}, {0x80000001, 4},
      {0x80000000, 5}, {0x00000000, 6}, {0x00000001, 7}, {0x3f800000, 8}, {0x7f800000, 9}};
  for (const auto& c : cases) {
    set(1, c.bits);
    for (int bit = 0; bit < 10; ++bit) {
      set(2, 1u << bit);
      run("v_cmp_class_f32", inst(kVccLo, v(1), v(2)));
      EXPECT_EQ(w.vcc(), bit == c.bit ? ~0ull : 0ull) << std::hex << c.bits << " bit " << bit;
    }
  }
}

TEST_F(Valu, SelectTakesTheSecondSourceWhereTheMaskIsSet) {
  set(1, 1u);
  set(2, 2u);
  w.sgpr[20] = 0xf0;
  w.sgpr[21] = 0;
  run("v_cndmask_b32", inst(v(3), v(1), v(2), 20));
  EXPECT_EQ(reg(3, 3), 1u);
  EXPECT_EQ(reg(3, 4), 2u);
  EXPECT_EQ(reg(3, 63), 1u);
}

TEST_F(Valu, ConversionsToIntegersSaturateAndNanIsZero) {
  const auto to_i32 = [&](float x) {
    set(1, x);
    run("v_cvt_i32_f32", inst(v(3), v(1)));
    return static_cast<int32_t>(reg(3, 0));
  };
  EXPECT_EQ(to_i32(-1.9f), -1);
  EXPECT_EQ(to_i32(3e9f), 2147483647);
  EXPECT_EQ(to_i32(-kInf), -2147483647 - 1);
  EXPECT_EQ(to_i32(kNan), 0);
  set(1, -1.0f);
  run("v_cvt_u32_f32", inst(v(3), v(1)));
  EXPECT_EQ(reg(3, 0), 0u);
  set(1, 4e9f);
  run("v_cvt_u32_f32", inst(v(3), v(1)));
  EXPECT_EQ(reg(3, 0), 4000000000u);
  set(1, 2.5f);
  run("v_cvt_rpi_i32_f32", inst(v(3), v(1)));
  EXPECT_EQ(reg(3, 0), 3u);
  run("v_rndne_f32", inst(v(3), v(1)));
  EXPECT_EQ(as_float(3, 0), 2.0f);
  set(1, 0x0000000fu);
  run("v_cvt_off_f32_i4", inst(v(3), v(1)));
  EXPECT_EQ(as_float(3, 0), -0.0625f);
}

TEST_F(Valu, PackedConversionsPutTheFirstSourceLow) {
  set(1, 1.5f);
  set(2, -2.0f);
  run("v_cvt_pk_bf16_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0), 0xc0003fc0u);
  run("v_cvt_pkrtz_f16_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0), 0xc0003e00u);
  set(1, 65535.0f);
  run("v_cvt_pkrtz_f16_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0) & 0xffff, 0x7bffu);
  w.mode |= 0xc;
  run("v_cvt_pk_f16_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0), 0xc0007c00u) << "to nearest although MODE says towards zero";
  w.mode |= 1u << 23;
  run("v_cvt_pk_f16_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0), 0xc0007bffu);
  w.mode = kUsualMode;
  set(1, 1.5f);
  set(3, 0x12345678u);
  Inst i = inst(v(3), v(1), v(2));
  i.op_sel = 8;
  run("v_cvt_pk_fp8_f32", i);
  EXPECT_EQ(reg(3, 0), 0xc03c5678u);
  set(1, 0x00003cc0u);
  run("v_cvt_pk_f32_fp8", inst(v(4), v(1)));
  EXPECT_EQ(as_float(4, 0), -2.0f);
  EXPECT_EQ(as_float(5, 0), 1.5f);
}

TEST_F(Valu, Fp8OverflowFollowsTheModeBit) {
  set(1, 1000.0f);
  set(2, kInf);
  run("v_cvt_pk_fp8_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0) & 0xffff, 0x7f7fu);
  w.mode |= 1u << 23;
  run("v_cvt_pk_fp8_f32", inst(v(3), v(1), v(2)));
  EXPECT_EQ(reg(3, 0) & 0xffff, 0x7e7eu);
}

TEST_F(Valu, DppMovesLanesAsEachControlSays) {
  for (int l = 0; l < kLanes; ++l) reg(1, l) = 100u + l;
  const auto moved = [&](uint16_t ctrl, bool bound, int lane) {
    set(3, 7u);
    Inst i = inst(v(3), v(1));
    i.lane_mode = LaneMode::kDpp;
    i.dpp_ctrl = ctrl;
    i.bound_ctrl = bound;
    run("v_mov_b32", i);
    return reg(3, lane);
  };
  EXPECT_EQ(moved(0x1b, false, 4), 107u) << "quad_perm 3,2,1,0";
  EXPECT_EQ(moved(0x101, false, 3), 104u) << "row_shl 1";
  EXPECT_EQ(moved(0x101, false, 15), 7u) << "nothing from beyond the row";
  EXPECT_EQ(moved(0x101, true, 15), 0u) << "bound_ctrl: 0 instead";
  EXPECT_EQ(moved(0x112, false, 18), 116u) << "row_shr 2";
  EXPECT_EQ(moved(0x112, false, 17), 7u);
  EXPECT_EQ(moved(0x128, false, 0), 108u) << "row_ror 8";
  EXPECT_EQ(moved(0x121, false, 16), 131u) << "row_ror 1";
  EXPECT_EQ(moved(0x130, false, 15), 116u) << "wave_shl";
  EXPECT_EQ(moved(0x138, false, 16), 115u) << "wave_shr";
  EXPECT_EQ(moved(0x13c, false, 0), 163u) << "wave_ror";
  EXPECT_EQ(moved(0x134, false, 63), 100u) << "wave_rol";
  EXPECT_EQ(moved(0x140, false, 17), 130u) << "row_mirror";
  EXPECT_EQ(moved(0x141, false, 17), 122u) << "row_half_mirror";
  EXPECT_EQ(moved(0x142, false, 16), 115u) << "row_bcast15";
  EXPECT_EQ(moved(0x142, false, 3), 7u);
  EXPECT_EQ(moved(0x143, false, 40), 131u) << "row_bcast31";
  EXPECT_EQ(moved(0x143, false, 20), 7u);
  EXPECT_EQ(moved(0x155, false, 20), 121u) << "row_newbcast 5";
}

TEST_F(Valu, DppMasksAndLanesThatAreOff) {
  for (int l = 0; l < kLanes; ++l) reg(1, l) = 100u + l;
  set(3, 7u);
  Inst i = inst(v(3), v(1));
  i.lane_mode = LaneMode::kDpp;
  i.dpp_ctrl = 0x140;
  i.row_mask = 0xa;
  i.bank_mask = 0x1;
  run("v_mov_b32", i);
  EXPECT_EQ(reg(3, 0), 7u);
  EXPECT_EQ(reg(3, 16), 131u);
  EXPECT_EQ(reg(3, 20), 7u);
  i.row_mask = i.bank_mask = 0xf;
  w.set_exec(1);
  run("v_mov_b32", i);
  EXPECT_EQ(reg(3, 0), 7u) << "lane 15 is off: its value is not taken";
  i.bound_ctrl = true;
  run("v_mov_b32", i);
  EXPECT_EQ(reg(3, 0), 0u);
}

TEST_F(Valu, DppFeedsTheFirstSourceOnly) {
  for (int l = 0; l < kLanes; ++l) reg(1, l) = static_cast<uint32_t>(l);
  Inst i = inst(v(1), v(1), v(1));
  i.lane_mode = LaneMode::kDpp;
  i.dpp_ctrl = 0x111;
  i.bound_ctrl = true;
  run("v_add_u32", i);
  EXPECT_EQ(reg(1, 0), 0u);
  EXPECT_EQ(reg(1, 5), 9u);
  EXPECT_EQ(reg(1, 16), 16u);
}

TEST_F(Valu, SdwaSelectsExtendsAndPlaces) {
  set(1, 0x81234567u);
  set(2, 0x00000001u);
  set(3, 0xaabbccddu);
  Inst i = inst(v(3), v(1), v(2));
  i.lane_mode = LaneMode::kSdwa;
  i.src0_sel = 3;
  run("v_add_u32", i);
  EXPECT_EQ(reg(3, 0), 0x82u);
  i.src0_sext = true;
  run("v_add_u32", i);
  EXPECT_EQ(reg(3, 0), 0xffffff82u);
  i.src0_sext = false;
  i.dst_sel = 1;
  i.dst_unused = 2;
  set(3, 0xaabbccddu);
  run("v_add_u32", i);
  EXPECT_EQ(reg(3, 0), 0xaabb82ddu);
  i.dst_unused = 0;
  run("v_add_u32", i);
  EXPECT_EQ(reg(3, 0), 0x00008200u);
  i.dst_unused = 1;
  run("v_add_u32", i);
  EXPECT_EQ(reg(3, 0), 0xffff8200u);
  i.dst_sel = 5;
  i.src0_sel = 4;
  i.dst_unused = 2;
  set(3, 0xaabbccddu);
  run("v_add_u32", i);
  EXPECT_EQ(reg(3, 0), 0x4568ccddu);
}

}  // namespace
}  // namespace mi350::emu
