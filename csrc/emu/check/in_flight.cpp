// Registers in flight, see in_flight.h.
#include "check/in_flight.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

namespace mi350::emu {
namespace {

// A full counter holds the next instruction back until the oldest is done.
constexpr size_t kMostVm = 63, kMostLgkm = 15;
constexpr size_t kForgotten = 256;  // scalar loads that nobody waits for

bool overlap(RegisterSpan a, RegisterSpan b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

}  // namespace

void InFlight::start_wave(const Wave& w) {
  if (states_.size() <= w.watch_slot) states_.resize(w.watch_slot + 1);
  states_[w.watch_slot] = State{};
}

// Spans of up to 57 registers in one load; the widest operand has 32.
bool InFlight::any(const State& s, RegisterSpan r) {
  uint64_t bits;
  std::memcpy(&bits, s.pending + r.first / 8, 8);
  return (bits >> (r.first % 8) & ((1ull << r.count) - 1)) != 0;
}
void InFlight::mark(State& s, RegisterSpan r, bool on) {
  for (unsigned n = r.first; n < r.first + r.count && n < kRegisterCodes; ++n) {
    const auto bit = static_cast<uint8_t>(1u << n % 8);
    s.pending[n / 8] = static_cast<uint8_t>(on ? s.pending[n / 8] | bit : s.pending[n / 8] & ~bit);
  }
}

void InFlight::before(Wave& w, const Inst& i, const Footprint& f) {
  State& s = states_[w.watch_slot];
  if (s.pending_loads != 0) check(w, i, f, s);
  if (f.is(kCountsVm | kCountsLgkm)) send(i, f, s);
  else if (f.is(kIsWaitcnt)) wait(i, s);
}

void InFlight::check(Wave& w, const Inst& i, const Footprint& f, State& s) {
  const Queue into = f.is(kIsFlat | kIsSmem) ? kUnordered : f.is(kIsLds) ? kLds : kVm;
  const bool loads = f.is(kCountsVm | kCountsLgkm);
  for (unsigned n = 0; n < f.read_count; ++n) {
    // A partial load merges when it returns; what it merges with may return just before it.
    if (loads && f.reads[n].role == kRoleOld) continue;
    if (any(s, f.reads[n])) [[unlikely]] report(w, i, s, f.reads[n], false, kUnordered);
  }
  for (unsigned n = 0; n < f.write_count; ++n) {
    if (any(s, f.writes[n])) [[unlikely]] report(w, i, s, f.writes[n], true, loads ? into : kUnordered);
  }
}

void InFlight::report(Wave& w, const Inst& i, State& s, RegisterSpan used, bool write, Queue into) {
  for (int q = 0; q < 3; ++q) {
    const std::deque<Load>& loads = s.queue[q];
    for (size_t n = loads.size(); n-- > 0;) {
      const Load& load = loads[n];
      if (load.to.count == 0 || !overlap(load.to, used)) continue;
      // Results of one ordered queue arrive in order: the later load wins.
      if (write && into == q && q != kUnordered) continue;
      if (Finding* found = reporter_.open(w, i, "register-in-flight", reporter_.if_strict())) {
        const size_t newer = loads.size() - 1 - n;
        std::string wait = q == kVm ? "vmcnt(" + std::to_string(newer) + ")"
                           : q == kLds ? "lgkmcnt(" + std::to_string(newer) + ")" : "";
        if (q == kUnordered) wait = load.needs_vm ? "vmcnt(0) and lgkmcnt(0)" : "lgkmcnt(0)";
        char pc[24];
        std::snprintf(pc, sizeof pc, "0x%x", load.pc);
        found->where = register_name(used.first, used.count);
        found->message = found->where + " is " + (write ? "written" : "read") + " while the load at " + pc +
                         " to " + register_name(load.to.first, load.to.count) +
                         " is in flight; it needs s_waitcnt " + wait;
      }
      // Spoken once: what depends on this register would only repeat it.
      mark(s, load.to, false);
      return;
    }
  }
}

void InFlight::send(const Inst& i, const Footprint& f, State& s) {
  Load load;
  load.pc = i.offset_bytes;
  if (f.write_count != 0) load.to = f.writes[0];
  load.needs_vm = f.is(kCountsVm);
  load.needs_lgkm = f.is(kCountsLgkm);
  const Queue q = f.is(kIsFlat | kIsSmem) ? kUnordered : f.is(kIsLds) ? kLds : kVm;
  if (load.to.count != 0) {
    mark(s, load.to, true);
    ++s.pending_loads;
  } else if (q == kUnordered) {
    return;
  }
  s.queue[q].push_back(load);
  const size_t most = q == kVm ? kMostVm : q == kLds ? kMostLgkm : kForgotten;
  if (s.queue[q].size() > most) retire_until(s, q, most);
}

void InFlight::drop(State& s, const Load& load) {
  if (load.to.count == 0) return;
  --s.pending_loads;
  mark(s, load.to, false);
  // A register that a later load of any queue writes stays pending.
  for (const auto& queue : s.queue)
    for (const Load& other : queue)
      if (&other != &load && other.to.count != 0 && overlap(other.to, load.to)) mark(s, other.to, true);
}

void InFlight::retire_until(State& s, Queue q, size_t left) {
  while (s.queue[q].size() > left) {
    drop(s, s.queue[q].front());
    s.queue[q].pop_front();
  }
}

void InFlight::wait(const Inst& i, State& s) {
  const auto simm = static_cast<uint32_t>(i.imm);
  const uint32_t vm = (simm & 15) | (simm >> 10 & 0x30), lgkm = simm >> 8 & 15;
  if (vm < kMostVm) retire_until(s, kVm, vm);
  if (lgkm < kMostLgkm) retire_until(s, kLds, lgkm);
  if (vm != 0 && lgkm != 0) return;
  std::deque<Load>& unordered = s.queue[kUnordered];
  for (Load& load : unordered) {
    if (vm == 0) load.needs_vm = false;
    if (lgkm == 0) load.needs_lgkm = false;
    if (!load.needs_vm && !load.needs_lgkm) drop(s, load);
  }
  std::erase_if(unordered, [](const Load& l) { return !l.needs_vm && !l.needs_lgkm; });
}

}  // namespace mi350::emu
