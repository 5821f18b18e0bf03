// Undefined data in registers, see definedness.h. Memory: definedness_memory.cpp.
#include "check/definedness.h"

#include <algorithm>
#include <bit>

#include "dispatch.h"
#include "exec.h"

namespace mi350::emu {
namespace {

// SGPRs that the hardware fills: user SGPRs, then workgroup ids and info.
unsigned started_sgprs(const KernelInfo& k) {
  unsigned user = (k.has_private_buffer() ? 4 : 0) + (k.has_private_size() ? 1 : 0) + k.preload_dwords;
  for (const bool pair : {k.has_dispatch_ptr(), k.has_queue_ptr(), k.has_kernarg_ptr(), k.has_dispatch_id(),
                          k.has_flat_scratch()})
    user += pair ? 2 : 0;
  unsigned n = std::max(user, k.user_sgprs());
  for (int axis = 0; axis < 3; ++axis) n += k.has_workgroup_id(axis);
  return std::min(n + k.has_workgroup_info(), 102u);
}

}  // namespace

void Definedness::start_group(const Workgroup& g) {
  if (lds_.size() <= g.watch_slot) lds_.resize(g.watch_slot + 1);
  lds_[g.watch_slot].assign(g.lds_bytes, 0xff);
}

void Definedness::start_wave(const Wave& w) {
  while (waves_.size() <= w.watch_slot) waves_.push_back(std::make_unique<WaveState>());
  WaveState& state = *waves_[w.watch_slot];
  ShadowRegisters& s = state.registers;
  state.scratch.clear();
  s.reset();
  const unsigned started = started_sgprs(*reporter_.launch.kernel);
  for (unsigned n = 0; n < started; ++n) s.set_scalar(static_cast<uint16_t>(n), 0);
  for (uint16_t code = kFlatScratchLo; code <= kXnackMaskHi; ++code) s.set_scalar(code, 0);
  for (uint16_t code = kTtmp0; code < kM0; ++code) s.set_scalar(code, 0);
  s.define({kExecLo, 2, 0}, 0);
  s.define({kVgpr0, 1, 0}, ~0ull);
}

void Definedness::report(const Wave& w, const Inst& i, RegisterSpan r, int lane, const char* what) {
  Finding* f = reporter_.open(w, i, "undefined-data", reporter_.if_strict());
  if (f == nullptr) return;
  f->where = register_name(r.first, r.count);
  f->lane = lane;
  f->message = f->where + " holds undefined bits and is used as " + what;
}

// Reports and then takes the operand for defined, so that one fault speaks once.
void Definedness::check_operand(Wave& w, const Inst& i, RegisterSpan r, uint64_t lanes, const char* what,
                                ShadowRegisters& s) {
  if (s.defined(r, lanes)) return;
  int lane = -1;
  if (r.first >= kVgpr0) {
    for (unsigned n = 0; n < r.count && lane < 0; ++n) {
      const uint64_t bad = lanes & ~s.lanes_defined(r.first - kVgpr0 + n);
      if (bad != 0) lane = std::countr_zero(bad);
    }
  }
  report(w, i, r, lane, what);
  s.define(r, lanes);
}

void Definedness::before(Wave& w, const Inst& i, const Footprint& f) {
  ShadowRegisters& s = waves_[w.watch_slot]->registers;
  accesses_ = 0;
  ran_on_image_ = false;
  if (f.is(kIsMemory)) {
    if (f.is(kMovesLanes)) {
      for (unsigned n = 0; n < f.read_count; ++n)
        if (f.reads[n].role == kRoleAddress && !form_of(*i.row).swizzle)
          check_operand(w, i, f.reads[n], w.exec(), "a lane address", s);
      return compute(w, i, f, s);
    }
    return start_memory(w, i, f, s);
  }
  if (f.is(kIsBranch)) return check_branch(w, i, f, s);
  if (f.is(kIsSalu | kIsValu | kIsMfma)) compute(w, i, f, s);
}

void Definedness::compute(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s) {
  const uint64_t exec = w.exec();
  if (f.is(kIsSetreg | kIsSetvskip)) {
    for (unsigned n = 0; n < f.read_count; ++n) check_operand(w, i, f.reads[n], 0, "a mode of the wave", s);
    if (f.is(kIsSetvskip)) s.define_all_scalars();
    return;
  }
  if (f.is(kIsLaneOp) && move_between_lanes(w, i, f, s)) return check_scalar_results(w, i, f, s);
  const bool all_lanes = f.is(kIsMfma | kIsPermlane);
  bool known = true;
  const uint64_t read_lanes = all_lanes || f.is(kMovesLanes) ? ~0ull : exec;
  for (unsigned n = 0; n < f.read_count; ++n) known &= s.defined(f.reads[n], read_lanes);
  // DPP leaves lanes alone that its masks or bounds exclude.
  if (f.is(kIsDpp))
    for (unsigned n = 0; n < f.write_count; ++n) known &= s.defined(f.writes[n], exec);
  if (known || i.exec == nullptr || f.write_count == 0) [[likely]] {
    for (unsigned n = 0; n < f.write_count; ++n) s.define(f.writes[n], all_lanes ? ~0ull : exec);
  } else {
    trials_.run(w, i, f, s);
  }
  check_scalar_results(w, i, f, s);
}

// v_readlane and the like: one lane moves, whatever the others hold. False: the lane is not known.
bool Definedness::move_between_lanes(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s) {
  unsigned lane = w.exec() != 0 ? static_cast<unsigned>(std::countr_zero(w.exec())) : 0;
  if (!f.is(kIsFirstLane)) {
    if (i.src[1] < 128 && s.scalar(i.src[1]) != 0) return false;
    lane = base::read_s32(w, i, i.src[1]) & 63;
  }
  uint32_t undefined = 0;
  if (i.src[0] >= kVgpr0 && i.src[0] < kRegisterCodes) undefined = s.lane(i.src[0] - kVgpr0, lane);
  else if (i.src[0] < 128) undefined = s.scalar(i.src[0]);
  if (f.is(kIsWritelane)) s.set_lane(i.dst - kVgpr0, lane, undefined);
  else if (i.dst < 128) s.set_scalar(i.dst, undefined);
  return true;
}

void Definedness::check_branch(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s) {
  for (unsigned n = 0; n < f.read_count; ++n) {
    const RegisterSpan r = f.reads[n];
    if (r.first == kExecLo || s.defined(r, 0)) continue;
    // One defined bit that is set settles "not zero".
    if (r.first == kVccLo &&
        ((w.sgpr[kVccLo] & ~s.scalar(kVccLo)) | (w.sgpr[kVccHi] & ~s.scalar(kVccHi))) != 0) continue;
    check_operand(w, i, r, 0, r.role == kRoleImplicit ? "the condition of a branch" : "the target of a jump", s);
  }
  for (unsigned n = 0; n < f.write_count; ++n) s.define(f.writes[n], 0);
}

void Definedness::check_scalar_results(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s) {
  if (!f.is(kWritesExecOrM0)) [[likely]] return;
  for (unsigned n = 0; n < f.write_count; ++n) {
    const RegisterSpan r = f.writes[n];
    if (r.first == kM0) check_operand(w, i, r, 0, "M0", s);
    if (r.first == kExecLo || r.first == kExecHi) check_operand(w, i, r, 0, "EXEC", s);
  }
}

}  // namespace mi350::emu
