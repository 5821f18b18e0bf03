// Vector handlers: bit operations, wide integers, lane traffic, packed and mixed formats, transcendentals, division,
// doubles and the scaled conversions.
#include <cmath>
#include <limits>

#include "exec_fixture.h"

namespace mi350::emu {
namespace {

using ValuFormats = ExecTest;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_F(ValuFormats, BitOperations) {
  set(1, 0xcccc0000u);
  set(2, 0xaaaa0000u);
  set(3, 0x0000ffffu);
  Inst i = inst(v(4), v(1), v(2), v(3));
  i.imm = 0x96;
  run("v_bitop3_b32", i);
  EXPECT_EQ(reg(4, 0), 0xcccc0000u ^ 0xaaaa0000u ^ 0x0000ffffu);
  i.imm = 0xca;  // a ? b : c
  run("v_bitop3_b32", i);
  EXPECT_EQ(reg(4, 0), (0xcccc0000u & 0xaaaa0000u) | (~0xcccc0000u & 0xffffu));
  run("v_bfi_b32", inst(v(4), v(1), v(2), v(3)));
  EXPECT_EQ(reg(4, 0), (0xcccc0000u & 0xaaaa0000u) | (~0xcccc0000u & 0xffffu));
  set(1, 0x33221100u);
  set(2, 0x77668544u);
  set(3, 0x0c0d0804u);
  run("v_perm_b32", inst(v(4), v(1), v(2), v(3)));
  EXPECT_EQ(reg(4, 0), 0x00ffff00u) << "zero, ones, sign of byte 1, byte 4";
  run("v_alignbit_b32", inst(v(4), v(1), v(2), integer(8)));
  EXPECT_EQ(reg(4, 0), 0x00776685u);
  run("v_bfe_i32", inst(v(4), v(2), integer(8), integer(8)));
  EXPECT_EQ(reg(4, 0), 0xffffff85u);
  run("v_lshl_add_u32", inst(v(4), v(1), integer(4), integer(1)));
  EXPECT_EQ(reg(4, 0), 0x32211001u);
  run("v_ffbh_i32", inst(v(4), integer(-1)));
  EXPECT_EQ(reg(4, 0), ~0u);
  set(1, 0x80000001u);
  run("v_prng_b32", inst(v(4), v(1)));
  EXPECT_EQ(reg(4, 0), 2u ^ 197u);
}

TEST_F(ValuFormats, WideIntegers) {
  set(1, 0xffffffffu);
  set(2, 0xffffffffu);
  set(4, 0xffffffffu);
  set(5, 0xffffffffu);
  Inst i = inst(v(6), v(1), v(2), v(4));
  i.sdst = 20;
  run("v_mad_u64_u32", i);
  EXPECT_EQ(reg(6, 0), 0u);
  EXPECT_EQ(reg(7, 0), 0xfffffffeu);
  EXPECT_EQ(w.sgpr[20], 0xffffffffu) << "carry out";
  run("v_lshlrev_b64", inst(v(6), integer(4), v(4)));
  EXPECT_EQ(reg(6, 0), 0xfffffff0u);
  EXPECT_EQ(reg(7, 0), 0xffffffffu);
  run("v_lshl_add_u64", inst(v(6), v(4), integer(1), integer(3)));
  EXPECT_EQ(reg(6, 0), 1u);
  EXPECT_EQ(reg(7, 0), 0u);
  run("v_mul_hi_i32", inst(v(6), v(1), integer(2)));
  EXPECT_EQ(reg(6, 0), 0xffffffffu);
}

TEST_F(ValuFormats, LanesAreReadWrittenCountedAndSwapped) {
  for (int l = 0; l < kLanes; ++l) { reg(1, l) = 100u + l; reg(2, l) = 200u + l; }
  w.set_exec(0xfff0);
  run("v_readfirstlane_b32", inst(10, v(1)));
  EXPECT_EQ(w.sgpr[10], 104u);
  run("v_readlane_b32", inst(10, v(1), integer(40)));
  EXPECT_EQ(w.sgpr[10], 140u);
  w.sgpr[11] = 5;
  run("v_writelane_b32", inst(v(1), 11, integer(63)));
  EXPECT_EQ(reg(1, 63), 5u) << "EXEC does not matter";
  w.set_exec(~0ull);
  set(4, ~0u);
  run("v_mbcnt_lo_u32_b32", inst(v(3), v(4), integer(0)));
  run("v_mbcnt_hi_u32_b32", inst(v(3), v(4), v(3)));
  for (int l = 0; l < kLanes; ++l) EXPECT_EQ(reg(3, l), static_cast<uint32_t>(l));
  reg(1, 63) = 163;
  run("v_permlane32_swap_b32", inst(v(1), v(2)));
  EXPECT_EQ(reg(1, 0), 100u);
  EXPECT_EQ(reg(1, 32), 200u);
  EXPECT_EQ(reg(2, 0), 132u);
  EXPECT_EQ(reg(2, 63), 263u);
  run("v_permlane16_swap_b32", inst(v(1), v(2)));
  EXPECT_EQ(reg(1, 16), 132u);
  EXPECT_EQ(reg(2, 0), 116u);
  EXPECT_EQ(reg(1, 48), 232u);
  EXPECT_EQ(reg(2, 32), 216u);
  run("v_swap_b32", inst(v(1), v(2)));
  EXPECT_EQ(reg(2, 16), 132u);
}

TEST_F(ValuFormats, PackedHalvesFollowTheirSelectors) {
  set(1, 0x40003c00u);  // 2, 1
  set(2, 0x44004200u);  // 4, 3
  Inst i = inst(v(3), v(1), v(2));
  i.op_sel_hi = 3;
  run("v_pk_add_f16", i);
  EXPECT_EQ(reg(3, 0), 0x46004400u);
  i.op_sel = 1;
  i.op_sel_hi = 2;
  run("v_pk_mul_f16", i);
  EXPECT_EQ(reg(3, 0), 0x44004600u) << "2*3 low, 1*4 high";
  i.op_sel = 0;
  i.op_sel_hi = 3;
  i.neg = 1;
  i.abs = 2;
  run("v_pk_add_f16", i);
  EXPECT_EQ(reg(3, 0), 0xc0004000u) << "-1+3 low, 2-4 high";
  i = inst(v(3), v(1), 242);
  i.op_sel_hi = 1;
  run("v_pk_add_f16", i);
  EXPECT_EQ(reg(3, 0), 0x42004000u);
  set(1, 0x7fff0001u);
  set(2, 0x00010002u);
  i = inst(v(3), v(1), v(2));
  i.op_sel_hi = 3;
  run("v_pk_add_i16", i);
  EXPECT_EQ(reg(3, 0), 0x80000003u);
  i.clamp = true;
  run("v_pk_add_i16", i);
  EXPECT_EQ(reg(3, 0), 0x7fff0003u);
}

TEST_F(ValuFormats, PackedFusedFormTakesDppLanes) {
  for (int l = 0; l < kLanes; ++l) reg(1, l) = l % 2 ? 0x40003c00u : 0x3c004000u;  // 2, 1 and 1, 2
  set(2, 0x42004200u);                                                            // 3, 3
  set(3, 0x3c003c00u);
  Inst i = inst(v(3), v(1), v(2));
  i.lane_mode = LaneMode::kDpp;
  i.dpp_ctrl = 0xb1;  // neighbours trade places
  run("v_pk_fmac_f16", i);
  EXPECT_EQ(reg(3, 0), 0x47004400u) << "2*3+1, 1*3+1";
  EXPECT_EQ(reg(3, 1), 0x44004700u);
}

TEST_F(ValuFormats, PackedFloatsUsePairs) {
  set(2, 1.0f); set(3, 2.0f); set(4, 10.0f); set(5, 20.0f); set(6, 0.5f); set(7, 0.25f);
  Inst i = inst(v(8), v(2), v(4), v(6));
  i.op_sel_hi = 7;
  run("v_pk_fma_f32", i);
  EXPECT_EQ(as_float(8, 0), 10.5f);
  EXPECT_EQ(as_float(9, 0), 40.25f);
  i.op_sel_hi = 5;
  i.abs = 1;
  run("v_pk_fma_f32", i);
  EXPECT_EQ(as_float(9, 0), -19.75f) << "second source low in both, first negated in the high half";
  i = inst(v(2), v(2), v(4));
  i.op_sel_hi = 0;
  run("v_pk_mul_f32", i);
  EXPECT_EQ(as_float(3, 0), 10.0f) << "the high half reads the old low register";
  i = inst(v(8), v(4), v(6));
  i.op_sel = 2;
  run("v_pk_mov_b32", i);
  EXPECT_EQ(as_float(8, 0), 10.0f);
  EXPECT_EQ(as_float(9, 0), 0.25f);
}

TEST_F(ValuFormats, MixedPrecisionAndDotProducts) {
  set(1, 0x40003c00u);  // 2, 1
  set(2, 3.0f);
  Inst i = inst(v(3), v(1), v(2), v(2));
  i.op_sel_hi = 1;
  i.op_sel = 1;
  run("v_fma_mix_f32", i);
  EXPECT_EQ(as_float(3, 0), 9.0f);
  set(3, 0xaaaaaaaau);
  run("v_fma_mixhi_f16", i);
  EXPECT_EQ(reg(3, 0), 0x4880aaaau);
  i = inst(v(3), v(1), v(1), v(2));
  i.op_sel_hi = 7;
  run("v_dot2_f32_f16", i);
  EXPECT_EQ(as_float(3, 0), 8.0f);
  set(4, 0x40003f80u);
  i = inst(v(3), v(4), v(4), v(2));
  i.op_sel_hi = 7;
  run("v_dot2_f32_bf16", i);
  EXPECT_EQ(as_float(3, 0), 8.0f);
  set(4, 0xff020304u);
  i = inst(v(3), v(4), v(4), integer(1));
  i.op_sel_hi = 7;
  run("v_dot4_i32_i8", i);
  EXPECT_EQ(reg(3, 0), 31u);
  run("v_dot4_u32_u8", i);
  EXPECT_EQ(reg(3, 0), 255u * 255 + 30);
}

TEST_F(ValuFormats, TranscendentalsAreWithinOneUlp) {
  const auto check = [&](const char* name, float x, double expected) {
    set(1, x);
    run(name, inst(v(3), v(1)));
    const float got = as_float(3, 7);
    const float ulp = std::nextafter(std::fabs(static_cast<float>(expected)), kInf) -
                      std::fabs(static_cast<float>(expected));
    EXPECT_LE(std::fabs(got - expected), ulp) << name << "(" << x << ")";
  };
  for (float x = -100; x < 100; x += 0.37f) check("v_exp_f32", x, std::exp2(static_cast<double>(x)));
  for (float x = 1e-30f; x < 1e30f; x *= 3.7f) {
    check("v_log_f32", x, std::log2(static_cast<double>(x)));
    check("v_rcp_f32", x, 1.0 / x);
    check("v_rsq_f32", x, 1.0 / std::sqrt(static_cast<double>(x)));
    check("v_sqrt_f32", x, std::sqrt(static_cast<double>(x)));
  }
  for (float x = 0.9f; x < 1.1f; x += 0.001f) check("v_log_f32", x, std::log2(static_cast<double>(x)));
  for (float x = -2; x < 2; x += 0.0371f) {
    const double turn = x - std::rint(static_cast<double>(x));
    check("v_sin_f32", x, std::sin(2 * M_PI * turn));
    check("v_cos_f32", x, std::cos(2 * M_PI * turn));
  }
  set(1, -kInf);
  run("v_exp_f32", inst(v(3), v(1)));
  EXPECT_EQ(reg(3, 0), 0u);
  set(1, 0.0f);
  run("v_log_f32", inst(v(3), v(1)));
  EXPECT_EQ(as_float(3, 0), -kInf);
  run("v_rcp_f32", inst(v(3), v(1)));
  EXPECT_EQ(as_float(3, 0), kInf);
  set(1, -1.0f);
  run("v_log_f32", inst(v(3), v(1)));
  EXPECT_TRUE(std::isnan(as_float(3, 0)));
}

// The sequence that compilers emit for a correctly rounded quotient.
TEST_F(ValuFormats, DivisionStepsGiveTheCorrectlyRoundedQuotient) {
  const float numbers[] = {1.0f,   3.0f,   -7.5f,    1e-30f,    1e30f, 3e38f, 1.2e-38f,
                           1e-40f, 1e-44f, 0x1p100f, 0x1p-100f, 0.0f,  kInf,  kNan};
  for (float n : numbers)
    for (float d : numbers) {
      set(1, n);
      set(2, d);
      Inst i = inst(v(3), v(2), v(2), v(1));
      i.sdst = 20;
      run("v_div_scale_f32", i);
      i = inst(v(4), v(1), v(2), v(1));
      i.sdst = kVccLo;
      run("v_div_scale_f32", i);
      run("v_rcp_f32", inst(v(5), v(3)));
      Inst negated = inst(v(6), v(3), v(5), 242);
      negated.neg = 1;
      run("v_fma_f32", negated);                        // 1 - d r
      run("v_fma_f32", inst(v(5), v(6), v(5), v(5)));   // r += r e
      run("v_mul_f32", inst(v(7), v(4), v(5)));         // q
      negated = inst(v(8), v(3), v(7), v(4));
      negated.neg = 1;
      run("v_fma_f32", negated);                        // n - d q
      run("v_fma_f32", inst(v(7), v(8), v(5), v(7)));
      negated = inst(v(8), v(3), v(7), v(4));
      negated.neg = 1;
      run("v_fma_f32", negated);
      run("v_div_fmas_f32", inst(v(7), v(8), v(5), v(7)));
      run("v_div_fixup_f32", inst(v(7), v(7), v(2), v(1)));
      const float expected = n / d, got = as_float(7, 0);
      if (std::isnan(expected)) EXPECT_TRUE(std::isnan(got)) << n << " / " << d;
      else if (std::fpclassify(expected) == FP_SUBNORMAL)
        EXPECT_NEAR(got, expected, 0x1p-149) << n << " / " << d;
      else EXPECT_EQ(got, expected) << n << " / " << d;
    }
}

TEST_F(ValuFormats, DoublesUseRegisterPairs) {
  set(2, 1.5);
  set(4, -0.25);
  run("v_fma_f64", inst(v(6), v(2), v(4), 242));
  EXPECT_EQ(as_double(6, 0), 0.625);
  Inst i = inst(v(6), v(2), v(4));
  i.abs = 2;
  run("v_add_f64", i);
  EXPECT_EQ(as_double(6, 0), 1.75);
  run("v_cvt_f32_f64", inst(v(8), v(4)));
  EXPECT_EQ(as_float(8, 0), -0.25f);
  run("v_ldexp_f64", inst(v(6), v(2), integer(4)));
  EXPECT_EQ(as_double(6, 0), 24.0);
  i = inst(v(6), v(2), kLiteral);
  i.literal = 0x40080000;
  run("v_mul_f64", i);
  EXPECT_EQ(as_double(6, 0), 4.5) << "a literal is the high dword";
}

TEST_F(ValuFormats, ScaledConversionsDivideAndMultiplyByThePowerOfTwo) {
  set(1, 12.0f);
  set(2, -2.0f);
  set(3, 4.0f);
  set(4, 0x11223344u);
  Inst i = inst(v(4), v(1), v(2), v(3));
  i.op_sel = 4;
  run("v_cvt_scalef32_pk_fp4_f32", i);
  EXPECT_EQ(reg(4, 0), 0x11229544u) << "12/4 = 3 (5), -2/4 = -0.5 (9), byte 1";
  i = inst(v(6), v(4), v(3));
  i.op_sel = 1;
  run("v_cvt_scalef32_pk_f32_fp4", i);
  EXPECT_EQ(as_float(6, 0), 12.0f);
  EXPECT_EQ(as_float(7, 0), -2.0f);
  i = inst(v(5), v(1), v(2), v(3));
  i.op_sel = 8;
  run("v_cvt_scalef32_pk_fp8_f32", i);
  EXPECT_EQ(reg(5, 0), 0xb0440000u);
  i = inst(v(6), v(5), v(3));
  i.op_sel = 1;
  run("v_cvt_scalef32_pk_bf16_fp8", i);
  EXPECT_EQ(reg(6, 0), 0xc0004140u);
}

TEST_F(ValuFormats, SixBitConversionsPackThirtyTwoElements) {
  for (int r = 0; r < 16; ++r) {
    set(32 + r, static_cast<float>(r % 8) * 0.5f);
    set(48 + r, -static_cast<float>(r % 8) * 0.5f);
  }
  set(1, 1.0f);
  run("v_cvt_scalef32_2xpk16_fp6_f32", inst(v(64), v(32), v(48), v(1)));
  run("v_cvt_scalef32_pk32_f32_fp6", inst(v(96), v(64), v(1)));
  for (int e = 0; e < 32; ++e)
    EXPECT_EQ(as_float(96 + e, 9), (e % 2 ? -1.0f : 1.0f) * static_cast<float>(e / 2 % 8) * 0.5f) << e;
}

}  // namespace
}  // namespace mi350::emu
