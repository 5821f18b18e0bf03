// One decoded gfx950 instruction: what decode.cpp produces and the exec_*.cpp handlers consume.
// Every encoding is normalised to this one form, so v_add_f32 has one handler for e32, e64, SDWA and DPP.
#pragma once
#include <cstdint>

namespace mi350::emu {

struct Wave;
struct Inst;
using Handler = void (*)(Wave&, const Inst&);

enum class Encoding : uint8_t {
  kSop1, kSop2, kSopk, kSopc, kSopp, kSmem,
  kVop1, kVop2, kVopc, kVop3, kVop3sd, kVop3p, kMai,
  kDs, kMubuf, kGlobal, kScratch, kFlat, kMtbuf,
};

// Operand codes: the hardware's 9-bit source space, extended by the accumulation registers.
enum OperandCode : uint16_t {
  kSgpr0 = 0,            // 0..101
  kFlatScratchLo = 102, kFlatScratchHi = 103, kXnackMaskLo = 104, kXnackMaskHi = 105,
  kVccLo = 106, kVccHi = 107, kTtmp0 = 108, kM0 = 124, kExecLo = 126, kExecHi = 127,
  kInt0 = 128,           // 128 = 0, 129..192 = 1..64, 193..208 = -1..-16
  kSharedBase = 235, kSharedLimit = 236, kPrivateBase = 237, kPrivateLimit = 238,
  kFloatHalf = 240,      // 240..247 = 0.5 -0.5 1 -1 2 -2 4 -4, 248 = 1/(2 pi)
  kVccz = 251, kExecz = 252, kScc = 253, kLiteral = 255,
  kVgpr0 = 256,          // 256..511
  kAcc0 = 512,           // 512..767
  kNoOperand = 0xffff,
};

enum class LaneMode : uint8_t { kPlain, kDpp, kSdwa };

struct IsaRow;  // isa.h

struct Inst {
  Handler exec = nullptr;
  const IsaRow* row = nullptr;
  uint32_t offset_bytes = 0;   // from the start of the code object's text
  uint32_t target = 0;         // branches (s_branch, s_cbranch_*, s_call_b64): instruction index of the target
  uint32_t literal = 0;        // the literal dword, if any operand is kLiteral
  uint32_t words[4] = {};      // raw encoding (16 bytes for v_mfma_scale_*)
  uint16_t dst = kNoOperand;   // vdst / sdst / vdata of a load; VOPC: the scalar pair it writes (kVccLo for e32)
  uint16_t sdst = kNoOperand;  // second scalar result: carry-out (VOP2 carry: kVccLo), v_div_scale, s_swap
  uint16_t src[3] = {kNoOperand, kNoOperand, kNoOperand};  // carry-in and v_cndmask mask are src[2] (kVccLo for e32)
  int32_t imm = 0;             // SOPK/SOPP simm16; memory byte offset (signed); ds offset0|offset1<<8 stays in `imm` for the two-address forms
  uint8_t size_bytes = 4;
  LaneMode lane_mode = LaneMode::kPlain;

  // Input and output modifiers. Bit i belongs to src[i]. VOP3P: neg = neg_lo, abs = neg_hi.
  uint8_t neg = 0, abs = 0;
  uint8_t op_sel = 0;          // bit 3: destination half
  uint8_t op_sel_hi = 0;       // VOP3P
  uint8_t omod = 0;            // 0 none, 1 *2, 2 *4, 3 /2
  bool clamp = false;

  // DPP
  uint16_t dpp_ctrl = 0;
  uint8_t row_mask = 0xf, bank_mask = 0xf;
  bool bound_ctrl = false;
  // SDWA: 0-3 byte, 4 word0, 5 word1, 6 dword; unused: 0 pad, 1 sign extend, 2 preserve
  uint8_t dst_sel = 6, dst_unused = 0, src0_sel = 6, src1_sel = 6;
  bool src0_sext = false, src1_sext = false;

  // Memory: address VGPR (kVgpr0+n or kNoOperand), data to store (first and second), scalar base.
  uint16_t addr = kNoOperand, data = kNoOperand, data1 = kNoOperand;
  uint16_t sbase = kNoOperand;   // MUBUF: resource (4 SGPRs); SMEM: base pair; GLOBAL/SCRATCH: saddr or kNoOperand
  uint16_t soffset = kNoOperand; // MUBUF soffset, SMEM soffset register
  uint8_t format = 0;            // MTBUF: data format 3:0, number format 6:4
  bool offen = false, idxen = false, lds = false, gds = false;
  bool sc0 = false, sc1 = false, nt = false;  // sc0 = glc: atomics return the old value

  // MFMA
  uint8_t cbsz = 0, abid = 0, blgp = 0;
  uint16_t scale_src[2] = {kNoOperand, kNoOperand};  // v_mfma_scale_*: A and B scale operands
  uint8_t scale_sel[2] = {0, 0};                     // byte of the lane's register
};

}  // namespace mi350::emu
