// Registers whose load is still in flight: s_waitcnt as it really blocks (facts/gfx950-isa.md 3.1).
//
//   vmcnt    vector memory, in order; a load to LDS and a store count without a register
//   lgkmcnt  LDS in order among LDS; scalar memory in any order, so that only 0 says that it has arrived
//   FLAT     counts in both, in any order: needs 0 of both
// Proven code breaks even this: AITER's fp8 attention (fwd_hd128_fp8) waits on lgkmcnt(8) with eight reads out
// and uses the oldest, some 60 clocks after it was sent. So it is an error for our objects only.
// A store reads its data when it issues: overwriting them later is no fault here (wait_states has the slots).
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "check/footprint.h"
#include "check/reporter.h"

namespace mi350::emu {

class InFlight {
 public:
  explicit InFlight(Reporter& reporter) : reporter_(reporter) {}

  void start_wave(const Wave& w);
  // Reads and writes of the instruction against what is in flight, then what it sends or waits for itself.
  void before(Wave& w, const Inst& i, const Footprint& f);
  // Instructions ran unseen: nothing is known to be in flight any more.
  void forget(const Wave& w) { start_wave(w); }

 private:
  enum Queue : uint8_t { kVm, kLds, kUnordered };  // kUnordered: scalar memory and FLAT
  struct Load {
    uint32_t pc = 0;                // byte offset of the instruction
    RegisterSpan to;
    bool needs_vm = false, needs_lgkm = false;
  };
  struct State {
    // A bit per operand code, readable by any 64-bit load.
    uint8_t pending[kRegisterCodes / 8 + 8] = {};
    uint32_t pending_loads = 0;
    std::deque<Load> queue[3];
  };

  static bool any(const State& s, RegisterSpan r);
  static void mark(State& s, RegisterSpan r, bool on);
  void check(Wave& w, const Inst& i, const Footprint& f, State& s);
  void report(Wave& w, const Inst& i, State& s, RegisterSpan used, bool write, Queue into);
  void send(const Inst& i, const Footprint& f, State& s);
  void wait(const Inst& i, State& s);
  static void retire_until(State& s, Queue q, size_t left);
  static void drop(State& s, const Load& load);

  Reporter& reporter_;
  std::vector<State> states_;
};

}  // namespace mi350::emu
