// The watch of check mode, see checker.h.
#include "check/checker.h"

#include <bit>

#include "check/memory_range.h"

namespace mi350::emu {
namespace {

constexpr unsigned kAfterShift = 16;  // of at most 16 parts

}  // namespace

uint32_t Checker::Slots::take() {
  if (free.empty()) return next++;
  const uint32_t n = free.back();
  free.pop_back();
  return n;
}

std::unique_ptr<Watch> LaunchChecks::watch_for_thread() { return std::make_unique<Checker>(*this); }

Checker::Checker(LaunchChecks& shared)
    : shared_(shared), reporter_(shared.launch), parts_(make_parts(shared, reporter_)) {
  const std::vector<Inst>& insts = shared.launch.object->program.insts;
  wants_.reserve(insts.size());
  for (const Inst& i : insts) wants_.push_back(i.row == nullptr ? 0 : wants_of(i));
}

Checker::~Checker() {
  parts_.clear();  // they may still report
  bool error = false;
  const std::string text = reporter_.hand_over(&error);
  if (!error || shared_.launch.settings.report_only) return;
  std::lock_guard lock(shared_.mutex);
  shared_.errors += text;
}

uint32_t Checker::wants_of(const Inst& i) const {
  uint32_t bits = 0;
  for (size_t n = 0; n < parts_.size(); ++n) {
    const unsigned want = parts_[n]->wants(i);
    bits |= (want & Part::kBefore ? 1u : 0u) << n | (want & Part::kAfter ? 1u : 0u) << (n + kAfterShift);
  }
  return bits;
}

void Checker::start_group(Workgroup& g) {
  g.watch_slot = groups_.take();
  for (auto& p : parts_) p->start_group(g);
}
void Checker::start_wave(Wave& w) {
  w.watch_slot = waves_.take();
  for (auto& p : parts_) p->start_wave(w);
}
void Checker::end_wave(Wave& w) {
  for (auto& p : parts_) p->end_wave(w);
  waves_.give(w.watch_slot);
}
void Checker::end_group(Workgroup& g) {
  for (auto& p : parts_) p->end_group(g);
  groups_.give(g.watch_slot);
}
void Checker::release_barrier(Workgroup& g) {
  for (auto& p : parts_) p->release_barrier(g);
}
void Checker::stuck(Wave& w) {
  for (auto& p : parts_) p->stuck(w);
}

void Checker::before(Wave& w, const Inst& i) {
  for (uint32_t who = wants_[w.pc - 1] & 0xffff; who != 0; who &= who - 1)
    parts_[static_cast<size_t>(std::countr_zero(who))]->before(w, i);
}
void Checker::after(Wave& w, const Inst& i) {
  const auto index = static_cast<size_t>(&i - w.program->insts.data());  // a jump has changed w.pc
  for (uint32_t who = wants_[index] >> kAfterShift; who != 0; who &= who - 1)
    parts_[static_cast<size_t>(std::countr_zero(who))]->after(w, i);
}
void Checker::access(Wave& w, const Inst& i, const Access& a) {
  for (auto& p : parts_) p->access(w, i, a);
}
bool Checker::tolerates(Wave& w, const Inst& i, const Access& a) {
  return note_outside_access(reporter_, w, i, a);
}
bool Checker::defer_dma(Wave& w, const Inst& i, const Access& a, const uint8_t* data) {
  for (auto& p : parts_) {
    if (p->defer_dma(w, i, a, data)) return true;
  }
  return false;
}

}  // namespace mi350::emu
