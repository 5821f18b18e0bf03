// State that an instruction uses without naming it, learned from its handler.
#pragma once
#include "isa.h"

namespace mi350::emu {

struct LearnedState {
  bool reads_scc = false, writes_scc = false, reads_vcc = false, writes_vcc = false;
  bool reads_exec = false, writes_exec = false;  // reads: scalar instructions only, vector ones all do
  bool reads_m0 = false, writes_m0 = false;
  bool writes_dst = true;
  bool reads_dst = false;             // the result depends on what the destination held
  bool reads_dst_high_half = false;   // ... when op_sel directs the result to the high half
};

// Of a row of isa.def; rows whose handlers touch memory, program flow or nothing learn nothing.
const LearnedState& learned_state(const IsaRow& row);

}  // namespace mi350::emu
