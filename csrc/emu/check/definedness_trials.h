// What an instruction makes of undefined bits: its handler runs on the same wave with those bits set in several
// ways, and the bits of the result that come out differently are undefined. So every modifier, lane movement
// and idiom (x ^ x, and with 0) is followed with the handler's own semantics. Arithmetic is then widened: from
// the lowest such bit upward for integer sums and products, the whole element for everything else that is not
// a move or a bit operation.
#pragma once
#include <cstdint>
#include <vector>

#include "check/footprint.h"
#include "check/shadow_registers.h"

namespace mi350::emu {

class Trials {
 public:
  // Leaves the wave as it was; sets the shadow of what the instruction will write.
  void run(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& shadow);

 private:
  struct Row {
    unsigned index = 0;
    bool written = false, perturbed = false;
    uint32_t saved[kLanes], undefined[kLanes], first[kLanes], differs[kLanes];
  };
  struct Scalars {
    uint32_t sgpr[128];
    bool scc;
  };

  void collect(const Wave& w, const Footprint& f, const ShadowRegisters& shadow);
  void add_row(const Wave& w, const ShadowRegisters& shadow, unsigned index, bool written);
  void perturb(Wave& w, const Inst& i, int trial);
  void compare(const Wave& w, bool first);
  void restore(Wave& w);
  void commit(const Inst& i, const Footprint& f, uint64_t exec, ShadowRegisters& shadow);

  std::vector<Row> rows_;
  size_t used_ = 0;
  Scalars saved_, undefined_, first_, differs_;
};

}  // namespace mi350::emu
