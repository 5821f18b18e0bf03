// The instruction table and the decoder: no two rows claim one encoding, and known words become known Insts.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "decode.h"
#include "isa.h"
#include "print.h"

namespace mi350::emu {
namespace {

Inst decode_words(std::vector<uint32_t> words) { return decode(words); }

TEST(IsaTable, NoTwoRowsClaimOneEncoding) {
  std::map<std::pair<int, unsigned>, std::string> owner;
  auto claim = [&](Encoding encoding, unsigned opcode, const IsaRow& row) {
    const auto [at, fresh] = owner.emplace(std::pair{static_cast<int>(encoding), opcode}, row.mnemonic);
    EXPECT_TRUE(fresh) << row.mnemonic << " and " << at->second << " share opcode " << opcode;
  };
  for (size_t n = 0; n < kIsaRows; ++n) {
    const IsaRow& row = kIsa[n];
    const RowForm& form = form_of(row);
    // VOP3P and MAI share one opcode space, as do all VOP3 forms.
    if (row.encoding == Encoding::kMai) claim(Encoding::kVop3p, row.opcode, row);
    else if (row.encoding == Encoding::kVop3sd) claim(Encoding::kVop3, row.opcode, row);
    else claim(row.encoding, row.opcode, row);
    if (!form.vop3) continue;
    const unsigned offset = row.encoding == Encoding::kVop1 ? 320 : row.encoding == Encoding::kVop2 ? 256 : 0;
    claim(Encoding::kVop3, row.opcode + offset, row);
  }
}

TEST(IsaTable, MnemonicsAreUnique) {
  std::set<std::string> seen;
  for (size_t n = 0; n < kIsaRows; ++n) EXPECT_TRUE(seen.insert(kIsa[n].mnemonic).second) << kIsa[n].mnemonic;
}

TEST(IsaTable, OperandColumnsParse) {
  const std::string kinds = "dDabcomkietlhwgpqrsxy", suffixes = "dlhbipPvsA";
  for (size_t n = 0; n < kIsaRows; ++n) {
    const RowForm& form = form_of(kIsa[n]);
    for (unsigned k = 0; k < form.operand_count; ++k) {
      const OperandForm& op = form.operands[k];
      EXPECT_NE(kinds.find(op.kind), std::string::npos) << kIsa[n].mnemonic;
      if (op.suffix) {
        EXPECT_NE(suffixes.find(op.suffix), std::string::npos) << kIsa[n].mnemonic;
      }
      EXPECT_LE(op.dwords, 32) << kIsa[n].mnemonic;
    }
  }
}

TEST(IsaTable, EveryShortVectorRowIsReachableByItsVop3Opcode) {
  for (size_t n = 0; n < kIsaRows; ++n) {
    const IsaRow& row = kIsa[n];
    EXPECT_EQ(find_row(row.encoding, row.opcode), &row) << row.mnemonic;
    if (!form_of(row).vop3) continue;
    const unsigned offset = row.encoding == Encoding::kVop1 ? 320 : row.encoding == Encoding::kVop2 ? 256 : 0;
    EXPECT_EQ(find_row(Encoding::kVop3, row.opcode + offset), &row) << row.mnemonic;
  }
}

struct Sample {
  std::vector<uint32_t> words;
  const char* text;
};

// Words and texts of LLVM 22.
const Sample kSamples[] = {
    {{0xC00A0100, 0x00000000}, "s_load_dwordx4 s[4:7], s[0:1], 0x0"},
    {{0xBE8300FF, 0x00027000}, "s_mov_b32 s3, 0x27000"},
    {{0x857CC1FF, 0x00008000}, "s_cselect_b32 m0, 0x8000, -1"},
    {{0xBF138008}, "s_cmp_lg_u64 s[8:9], 0"},
    {{0xBF8C0F70}, "s_waitcnt vmcnt(0)"},
    {{0xBF8CC07F}, "s_waitcnt lgkmcnt(0)"},
    {{0xBF8CCF7F}, "s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)"},
    {{0xBF82FFF8}, "s_branch 65528"},
    {{0xB880F814}, "s_getreg_b32 s0, hwreg(HW_REG_XCC_ID)"},
    {{0xB9001841}, "s_setreg_b32 hwreg(HW_REG_MODE, 1, 4), s0"},
    {{0x24380084}, "v_lshlrev_b32_e32 v28, 4, v0"},
    {{0x021428ff, 0x3f8ccccd}, "v_add_f32_e32 v10, 0x3f8ccccd, v20"},
    {{0x021428ff, 0x3f800000}, "v_add_f32_e32 v10, lit(0x3f800000), v20"},
    {{0x021428fa, 0xff00e428}, "v_add_f32_dpp v10, v40, v20 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf"},
    {{0x021428f9, 0x06060628},
     "v_add_f32_sdwa v10, v40, v20 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD"},
    {{0x2e1428ff, 0x40490fdb}, "v_fmamk_f32 v10, 0x40490fdb, 0x40490fdb, v20"},
    {{0xd1cc000a, 0x04fa50f8}, "v_fma_f64 v[10:11], 0.15915494309189532, v[40:41], v[62:63]"},
    {{0xd2340004, 0xd41a0b04}, "v_bitop3_b32 v4, v4, v5, v6 bitop3:0x86"},
    {{0xd3d80008, 0x18000114}, "v_accvgpr_read_b32 v8, a20"},
    {{0xd3cd8008, 0x1d025114}, "v_mfma_f32_16x16x16_f16 a[8:11], a[20:21], a[40:41], a[64:67]"},
    {{0xd3ac0000, 0x08025114, 0xd3ad0808, 0x05025114},
     "v_mfma_scale_f32_16x16x128_f8f6f4 v[8:11], v[20:27], v[40:47], v[64:67], v20, v40 op_sel_hi:[1,0,0]"},
    {{0xE05D1000, 0x8000001C}, "buffer_load_dwordx4 v28, s[0:3], 0 offen lds"},
    {{0xd86c0004, 0x0a000014}, "ds_read_b32 v10, v20 offset:4"},
    {{0xd86e0201, 0x0a000014}, "ds_read2_b32 v[10:11], v20 offset0:1 offset1:2"},
    {{0xd87a041f, 0x0a000014}, "ds_swizzle_b32 v10, v20 offset:swizzle(SWAP,1)"},
    {{0xdd098000, 0x0a7f2814}, "global_atomic_add v10, v[20:21], v40, off sc0"},
    {{0xe809a00c, 0x02210401}, "tbuffer_load_format_xyzw v[4:7], v1, s[4:7], s2 idxen offset:12 sc1"},
    {{0xe8470000, 0xf2410400},
     "tbuffer_store_format_d16_xyz v[4:5], off, s[4:7], 1.0 format:[BUF_DATA_FORMAT_10_10_10_2] nt"},
    {{0xdc504ffc, 0x0a060014}, "scratch_load_dword v10, off, s6 offset:4092"},
};

TEST(Decode, KnownWordsPrintAsLlvmPrintsThem) {
  for (const Sample& s : kSamples) {
    const Inst inst = decode_words(s.words);
    EXPECT_EQ(print(inst), s.text);
    EXPECT_EQ(inst.size_bytes, 4 * s.words.size()) << s.text;
  }
}

TEST(Decode, CarriesAndMasksAreExplicitInTheShortForms) {
  const Inst addc = decode_words({0x38142928});  // v_addc_co_u32_e32 v10, vcc, v40, v20, vcc
  EXPECT_EQ(print(addc), "v_addc_co_u32_e32 v10, vcc, v40, v20, vcc");
  EXPECT_EQ(addc.sdst, kVccLo);
  EXPECT_EQ(addc.src[2], kVccLo);
  const Inst select = decode_words({0x00142928});
  EXPECT_EQ(print(select), "v_cndmask_b32_e32 v10, v40, v20, vcc");
  EXPECT_EQ(select.src[2], kVccLo);
  const Inst compare = decode_words({0x7c822928});
  EXPECT_EQ(print(compare), "v_cmp_lt_f32_e32 vcc, v40, v20");
  EXPECT_EQ(compare.dst, kVccLo);
}

TEST(Decode, FmaWithLiteralPutsItWhereItMultipliesOrAdds) {
  const Inst mk = decode_words({0x2e142928, 7}), ak = decode_words({0x30142928, 7});
  EXPECT_EQ(print(mk), "v_fmamk_f32 v10, v40, 0x7, v20");
  EXPECT_EQ(mk.src[0], kVgpr0 + 40);
  EXPECT_EQ(mk.src[1], kLiteral);
  EXPECT_EQ(mk.src[2], kVgpr0 + 20);
  EXPECT_EQ(ak.src[1], kVgpr0 + 20);
  EXPECT_EQ(ak.src[2], kLiteral);
  EXPECT_EQ(ak.literal, 7u);
}

TEST(Decode, AccumulationRegistersReachDataOperands) {
  EXPECT_EQ(decode_words({0xda6c0000, 0x0a000014}).dst, kAcc0 + 10);  // ds_read_b32 a10, v20
  const Inst store = decode_words({0xdc708000, 0x00ff2814});           // global_store_dword v[20:21], a40, off
  EXPECT_EQ(store.data, kAcc0 + 40);
  EXPECT_EQ(store.addr, kVgpr0 + 20);
  EXPECT_EQ(store.sbase, kNoOperand);
}

TEST(Decode, LoadsToLdsHaveNoVectorDestination) {
  const Inst buffer = decode_words({0xE05D1000, 0x8000001C});
  EXPECT_TRUE(buffer.lds);
  EXPECT_EQ(buffer.dst, kNoOperand);
  const Inst global = decode_words({0xddf48010, 0x007f0014});  // global_load_lds_dwordx4 v[20:21], off offset:16
  EXPECT_EQ(print(global), "global_load_lds_dwordx4 v[20:21], off offset:16");
  EXPECT_TRUE(global.lds);
  EXPECT_EQ(global.dst, kNoOperand);
}

TEST(Decode, AtomicsReturnOnlyWithSc0) {
  EXPECT_EQ(decode_words({0xdd088000, 0x007f2814}).dst, kNoOperand);
  EXPECT_EQ(decode_words({0xdd098000, 0x0a7f2814}).dst, kVgpr0 + 10);
}

TEST(Decode, ScaledMfmaCarriesScaleRegistersAndBytes) {
  const Inst i = decode_words({0xd3ac1000, 0x08025114, 0xd3ad0c08, 0x85025114});
  ASSERT_NE(i.row, nullptr);
  EXPECT_STREQ(i.row->mnemonic, "v_mfma_scale_f32_16x16x128_f8f6f4");
  EXPECT_EQ(i.scale_src[0], kVgpr0 + 20);
  EXPECT_EQ(i.scale_src[1], kVgpr0 + 40);
  EXPECT_EQ(i.scale_sel[0], 2);  // op_sel_hi
  EXPECT_EQ(i.scale_sel[1], 1);  // op_sel
  EXPECT_EQ(i.cbsz, 4);
  EXPECT_EQ(i.blgp, 4);
}

TEST(Decode, ScalesWithoutTheirMfmaAreAnInstructionThatIsRefused) {
  const Inst i = decode_words({0xd3ac5800, 0x08020702});
  EXPECT_EQ(print(i), "v_mfma_ld_scale_b32 v2, v3 op_sel:[1,1] op_sel_hi:[1,0]");
  EXPECT_EQ(i.exec, nullptr);
}

TEST(Decode, UnknownAndTruncatedWordsAreFourBytesThatCannotExecute) {
  for (const std::vector<uint32_t>& words : {std::vector<uint32_t>{0xffffffff}, {0xbf9f0000}, {0xd1cc000a},
                                             {0xbe8300ff}, {0x021428fa}, {0xd3ac0000}}) {
    const Inst i = decode_words(words);
    EXPECT_EQ(i.row, nullptr);
    EXPECT_EQ(i.exec, nullptr);
    EXPECT_EQ(i.size_bytes, 4);
  }
}

TEST(DecodeText, BranchTargetsAreInstructionIndices) {
  const uint32_t text[] = {0xbe8300ff, 0x00027000,   // 0: s_mov_b32 s3, literal
                           0xbf820001,               // 1: s_branch +1 -> 3
                           0xbf800000,               // 2: s_nop
                           0xbf85fffb,               // 3: s_cbranch_scc1 -5 -> 0
                           0xbf82fffb,               // 4: into the literal: nowhere
                           0xbf827fff};              // 5: past the end: nowhere
  const Program p = decode_text(text, {});
  ASSERT_EQ(p.end(), 6u);
  EXPECT_EQ(p.insts[1].target, 3u);
  EXPECT_EQ(p.insts[3].target, 0u);
  EXPECT_EQ(p.insts[4].target, p.end());
  EXPECT_EQ(p.insts[5].target, p.end());
  EXPECT_EQ(p.insts[p.end()].row, nullptr);
  EXPECT_EQ(p.index_of_offset(8), 1u);
  EXPECT_EQ(p.index_of_offset(4), p.end());
  EXPECT_EQ(p.index_of_offset(-4), p.end());
}

TEST(DecodeText, KnownStartsAreNeverSwallowedByTheInstructionBefore) {
  const uint32_t text[] = {0xbe8300ff, 0xbf810000};  // s_mov_b32 s3, literal, whose literal is s_endpgm
  const uint64_t starts[] = {4};
  const Program p = decode_text(text, starts);
  ASSERT_EQ(p.end(), 2u);
  EXPECT_EQ(p.insts[0].row, nullptr);
  EXPECT_EQ(print(p.insts[1]), "s_endpgm");
}

}  // namespace
}  // namespace mi350::emu
