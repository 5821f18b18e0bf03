// Missing wait states: pairs of instructions that need idle issue slots of the wave between them. The rules
// are rows of wait_states.def and mfma_waits.def.
//
// s_nop N is N + 1 slots, every other instruction one. What stands before an instruction follows from the code
// and the jumps that the wave took, so that a verdict is reached once per instruction and path, not per
// execution. Not followed: registers chosen by s_set_gpr_idx, and instructions that VSKIP passes over.
#pragma once
#include <cstdint>
#include <vector>

#include "check/footprint.h"
#include "check/reporter.h"

namespace mi350::emu {

class WaitStates {
 public:
  WaitStates(Reporter& reporter, Footprints& footprints);

  void start_wave(const Wave& w);
  void before(Wave& w, const Inst& i, const Footprint& f) {
    const auto index = w.pc - 1;
    Path& p = paths_[w.watch_slot];
    if (p.jump_count != w.jump_count) [[unlikely]] follow(w, p);
    // Behind the horizon of the last jump only straight code counts.
    if (index - p.entry >= kHorizon) {
      if (!judged_[index]) [[unlikely]] {
        judged_[index] = true;
        judge(w, i, f);
      }
      return;
    }
    uint64_t& seen = seen_[(p.hash + index * 0x9e3779b97f4a7c15ull) >> (64 - kSeenBits)];
    const uint64_t key = p.hash ^ (uint64_t{index} + 1) * 0xff51afd7ed558ccdull;
    if (seen == key) return;
    seen = key;
    judge(w, i, f);
  }

 private:
  static constexpr uint32_t kHorizon = 21;  // no rule asks for more than 20 slots
  static constexpr int kSeenBits = 14;
  struct Path {
    uint32_t jump_count = 0, entry = 0;
    uint64_t hash = 0;
  };

  void follow(const Wave& w, Path& p);
  void judge(Wave& w, const Inst& i, const Footprint& f);
  void judge_pair(Wave& w, const Inst& producer, const Footprint& before, const Inst& i, const Footprint& f,
                  unsigned found);
  void judge_mfma(Wave& w, const Inst& producer, const Footprint& before, const Inst& i, const Footprint& f,
                  unsigned found);
  void report(Wave& w, const Inst& producer, const Inst& i, const char* rule, RegisterSpan where,
              unsigned required, unsigned found);

  Reporter& reporter_;
  Footprints& footprints_;
  std::vector<Path> paths_;
  std::vector<bool> judged_;
  std::vector<uint64_t> seen_;
};

}  // namespace mi350::emu
