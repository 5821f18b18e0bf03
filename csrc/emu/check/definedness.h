// Undefined data: which bits of registers, LDS and private memory no instruction has set yet, followed through
// every instruction and reported only where they decide something: a branch, EXEC, M0, an address, a
// descriptor, a store to global memory.
//
// Defined at the start: what the hardware sets up (user and system SGPRs, work-item ids in v0 of all lanes,
// those beyond the last work-item too, EXEC, FLAT_SCRATCH, trap temporaries). LDS is shadowed bit by bit; an
// LDS atomic with an undefined input makes its whole element undefined. Global memory: undefined_memory.h.
// Not followed: instructions that VSKIP passes over (the scalar registers count as defined behind it).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "check/definedness_trials.h"
#include "check/footprint.h"
#include "check/reporter.h"
#include "check/shadow_registers.h"
#include "check/undefined_memory.h"
#include "watch.h"

namespace mi350::emu {

class Definedness {
 public:
  Definedness(Reporter& reporter, std::shared_ptr<UndefinedMemory> memory)
      : reporter_(reporter), memory_(std::move(memory)) {}

  void start_group(const Workgroup& g);
  void start_wave(const Wave& w);
  void before(Wave& w, const Inst& i, const Footprint& f);
  void access(Wave& w, const Inst& i, const Footprint& f, const Access& a);

 private:
  struct WaveState {
    ShadowRegisters registers;
    std::vector<uint8_t> scratch;  // undefined bits, laid out as the wave's private memory; empty until used
  };

  void compute(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s);
  bool move_between_lanes(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s);
  void check_branch(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s);
  void check_scalar_results(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s);
  void start_memory(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s);
  void check_operand(Wave& w, const Inst& i, RegisterSpan r, uint64_t lanes, const char* what,
                     ShadowRegisters& s);
  void report(const Wave& w, const Inst& i, RegisterSpan r, int lane, const char* what);

  void access_global(Wave& w, const Inst& i, const Footprint& f, const Access& a, WaveState& s);
  void check_store(Wave& w, const Inst& i, const Footprint& f, RegisterSpan data, const Access& a,
                   ShadowRegisters& s);
  void load_undefined(const Footprint& f, const Access& a, ShadowRegisters& s);
  void access_lds(Wave& w, const Inst& i, const Footprint& f, const Access& a, WaveState& s);
  void lds_atomic(const Inst& i, const Footprint& f, const Access& a, uint8_t* image, ShadowRegisters& s);
  void fill_lds(const Wave& w, const Access& a);
  void run_on_image(Wave& w, const Inst& i, const Footprint& f, WaveState& s);

  Reporter& reporter_;
  std::shared_ptr<UndefinedMemory> memory_;
  Trials trials_;
  std::vector<std::unique_ptr<WaveState>> waves_;
  std::vector<std::vector<uint8_t>> lds_;  // undefined bits, by workgroup
  unsigned accesses_ = 0;                  // of the current instruction
  bool ran_on_image_ = false;              // ... which has been followed whole
};

}  // namespace mi350::emu
