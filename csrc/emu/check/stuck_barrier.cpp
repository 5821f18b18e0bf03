// A barrier that never completes: the launch has made no progress, waves of a workgroup wait at a barrier, and
// others of the same workgroup run on without ever arriving. Ended waves leave the count and are no reason.
#include "check/stuck_barrier.h"

#include <cstdio>
#include <vector>

#include "code_object.h"
#include "print.h"

namespace mi350::emu {
namespace {

std::string place(const Wave& w) {
  const Inst& i = w.program->insts[w.pc > 0 ? w.pc - 1 : 0];
  char text[32];
  std::snprintf(text, sizeof text, "0x%x: ", i.offset_bytes);
  return text + print(i);
}

class StuckBarrier final : public Part {
 public:
  explicit StuckBarrier(Reporter& reporter) : reporter_(reporter) {}

  void start_group(Workgroup& g) override {
    if (groups_.size() <= g.watch_slot) groups_.resize(g.watch_slot + 1);
    groups_[g.watch_slot].clear();
  }
  void start_wave(Wave& w) override { groups_[w.group->watch_slot].push_back(&w); }

  void stuck(Wave& w) override {
    const Wave *waits = nullptr, *runs = nullptr;
    for (const Wave* other : groups_[w.group->watch_slot]) {
      if (other->status == WaveStatus::kBarrier) waits = other;
      else if (other->status != WaveStatus::kEnded) runs = other;
    }
    if (waits == nullptr || runs == nullptr) return;
    Finding* f = reporter_.open(*waits, waits->program->insts[waits->pc - 1], "barrier", Severity::kError);
    if (f == nullptr) return;
    f->message = "the barrier never completes: " + std::to_string(w.group->at_barrier) + " of " +
                 std::to_string(w.group->waves - w.group->ended) + " running waves wait at it, wave " +
                 std::to_string(runs->wave_in_group) + " does not arrive and is at " + place(*runs);
  }

 private:
  Reporter& reporter_;
  std::vector<std::vector<const Wave*>> groups_;
};

}  // namespace

std::unique_ptr<Part> make_stuck_barrier(Reporter& reporter) { return std::make_unique<StuckBarrier>(reporter); }

}  // namespace mi350::emu
