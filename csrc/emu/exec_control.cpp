// Program flow and what touches the wave as a whole: branches, barriers, waits, hardware registers.
// The instructions that only tune timing (s_nop, s_setprio, waits, cache hints) do nothing: every memory
// access here is complete when its instruction is.
#include "exec.h"
#include "decode.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

constexpr uint32_t kModeGprIdx = 1u << 27;
constexpr int kSkipLimit = 1 << 20;
constexpr uint32_t kSimds = 4;

void jump(Wave& w, uint32_t target) {
  w.jumps[w.jump_count++ % Wave::kJumps] = {w.pc - 1, target};
  w.pc = target;
}
void branch_if(Wave& w, const Inst& i, bool taken) {
  if (taken) jump(w, i.target);
}
void jump_to_address(Wave& w, const Inst& i, uint64_t address) {
  const uint32_t target = w.program->index_of_address(address);
  if (target == w.program->end())
    return w.stop("jump to an address where no instruction of this code object starts");
  jump(w, target);
}

// simm16 of s_getreg and s_setreg: register id, first bit, number of bits.
struct HwReg {
  uint32_t id, offset, mask;
  explicit HwReg(int32_t imm)
      : id(imm & 63), offset((imm >> 6) & 31), mask(static_cast<uint32_t>((2ull << ((imm >> 11) & 31)) - 1)) {}
};
enum HwRegId : uint32_t {
  kMode = 1,
  kStatus = 2,
  kTrapStatus = 3,
  kHwId = 4,
  kGprAlloc = 5,
  kLdsAlloc = 6,
  kIbStatus = 7,
  kMemBases = 15,
  kXccId = 20
};

uint32_t read_hw_register(const Wave& w, uint32_t id) {
  switch (id) {
    case kMode: return w.mode;
    case kStatus:
      return static_cast<uint32_t>(w.scc) | uint32_t{w.exec() == 0} << 9 | uint32_t{w.vcc() == 0} << 10;
    case kHwId: {
      const uint32_t cu = w.group->unit;
      return w.wave_in_group / kSimds | (w.wave_in_group % kSimds) << 4 | (cu & 15) << 8 | (cu >> 4) << 13;
    }
    case kLdsAlloc: return ((w.group->lds_bytes + 511) / 512) << 12;
    case kMemBases:
      return static_cast<uint32_t>(kPrivateAperture >> 48) | static_cast<uint32_t>(kSharedAperture >> 48) << 16;
    case kXccId: return w.group->xcd;
    default: return 0;
  }
}

void write_hw_register(Wave& w, const Inst& i, uint32_t value) {
  const HwReg r(i.imm);
  if (r.id == kMode) w.mode = (w.mode & ~(r.mask << r.offset)) | (value & r.mask) << r.offset;
}

}  // namespace

void s_nop(Wave&, const Inst&) {}
void s_waitcnt(Wave&, const Inst&) {}
void s_setprio(Wave&, const Inst&) {}
void s_sethalt(Wave& w, const Inst& i) { if (i.imm & 1) w.stop("s_sethalt: the wave would halt for ever"); }
void s_sendmsg(Wave&, const Inst&) {}
void s_icache_inv(Wave&, const Inst&) {}
void s_incperflevel(Wave&, const Inst&) {}
void s_decperflevel(Wave&, const Inst&) {}
void s_ttracedata(Wave&, const Inst&) {}
void s_wakeup(Wave&, const Inst&) {}
void s_setkill(Wave&, const Inst&) {}
void s_sleep(Wave& w, const Inst&) { w.status = WaveStatus::kYield; }
void s_trap(Wave& w, const Inst& i) {
  w.stop("s_trap " + std::to_string(i.imm) + ": the kernel trapped (assertion or unreachable code)");
}
void s_endpgm(Wave& w, const Inst&) { w.status = WaveStatus::kEnded; }
void s_endpgm_saved(Wave& w, const Inst&) { w.status = WaveStatus::kEnded; }
void s_barrier(Wave& w, const Inst&) {
  w.status = WaveStatus::kBarrier;
  ++w.group->at_barrier;
}

void s_branch(Wave& w, const Inst& i) { jump(w, i.target); }
void s_cbranch_scc0(Wave& w, const Inst& i) { branch_if(w, i, !w.scc); }
void s_cbranch_scc1(Wave& w, const Inst& i) { branch_if(w, i, w.scc); }
void s_cbranch_vccz(Wave& w, const Inst& i) { branch_if(w, i, w.vcc() == 0); }
void s_cbranch_vccnz(Wave& w, const Inst& i) { branch_if(w, i, w.vcc() != 0); }
void s_cbranch_execz(Wave& w, const Inst& i) { branch_if(w, i, w.exec() == 0); }
void s_cbranch_execnz(Wave& w, const Inst& i) { branch_if(w, i, w.exec() != 0); }
// No debugger is ever attached.
void s_cbranch_cdbgsys(Wave&, const Inst&) {}
void s_cbranch_cdbguser(Wave&, const Inst&) {}
void s_cbranch_cdbgsys_or_user(Wave&, const Inst&) {}
void s_cbranch_cdbgsys_and_user(Wave&, const Inst&) {}

void s_getpc_b64(Wave& w, const Inst& i) { write_s64(w, i.dst, w.program->address_of(w.pc)); }
void s_setpc_b64(Wave& w, const Inst& i) { jump_to_address(w, i, read_s64(w, i, i.src[0])); }
void s_swappc_b64(Wave& w, const Inst& i) {
  const uint64_t target = read_s64(w, i, i.src[0]);
  write_s64(w, i.dst, w.program->address_of(w.pc));
  jump_to_address(w, i, target);
}
void s_call_b64(Wave& w, const Inst& i) {
  write_s64(w, i.dst, w.program->address_of(w.pc));
  jump(w, i.target);
}

void s_getreg_b32(Wave& w, const Inst& i) {
  const HwReg r(i.imm);
  write_s32(w, i.dst, read_hw_register(w, r.id) >> r.offset & r.mask);
}
void s_setreg_b32(Wave& w, const Inst& i) { write_hw_register(w, i, read_s32(w, i, i.src[0])); }
void s_setreg_imm32_b32(Wave& w, const Inst& i) { write_hw_register(w, i, i.literal); }

// Relative register addressing: the index and its mode bits live in M0, the vector handlers apply them.
void s_set_gpr_idx_on(Wave& w, const Inst& i) {
  const uint32_t index = read_s32(w, i, i.src[0]) & 0xff;
  w.sgpr[kM0] = (w.sgpr[kM0] & 0xffff0f00u) | index | (static_cast<uint32_t>(i.imm) & 15) << 12;
  w.mode |= kModeGprIdx;
}
void s_set_gpr_idx_off(Wave& w, const Inst&) { w.mode &= ~kModeGprIdx; }
void s_set_gpr_idx_mode(Wave& w, const Inst& i) {
  w.sgpr[kM0] = (w.sgpr[kM0] & 0xffff0fffu) | (static_cast<uint32_t>(i.imm) & 15) << 12;
}
void s_set_gpr_idx_idx(Wave& w, const Inst& i) {
  w.sgpr[kM0] = (w.sgpr[kM0] & 0xffffff00u) | (read_s32(w, i, i.src[0]) & 0xff);
}

// Runs the skipping stretch itself, so that the run loop need not ask for VSKIP at every instruction. The loop of
// watched waves does ask: a watch sees the scalar instructions in between.
void s_setvskip(Wave& w, const Inst& i) {
  const bool on = read_s32(w, i, i.src[0]) >> (read_s32(w, i, i.src[1]) & 31) & 1;
  const bool was_on = w.mode & kModeVskip;
  w.mode = on ? w.mode | kModeVskip : w.mode & ~kModeVskip;
  if (!on || was_on || w.watch != nullptr) return;
  for (int n = 0; (w.mode & kModeVskip) != 0; ++n) {
    if (n == kSkipLimit) return w.stop("s_setvskip: VSKIP was still set after 1048576 instructions");
    const Inst& next = w.program->insts[w.pc++];
    if (!skipped_by_vskip(next)) next.exec(w, next);
    if (w.status == WaveStatus::kRunning) continue;
    if (w.status == WaveStatus::kYield) { w.status = WaveStatus::kRunning; continue; }
    if (w.status == WaveStatus::kBarrier) w.stop("s_barrier while VSKIP is set");
    return;
  }
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
