// Missing wait states, see wait_states.h.
#include "check/wait_states.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "decode.h"
#include "mfma_passes.h"
#include "print.h"

namespace mi350::emu {
namespace {

enum Registers : uint8_t { kScalars, kVccPair, kExecPair, kM0Only, kVectors };

bool belongs(RegisterSpan r, Registers kind) {
  switch (kind) {
    case kScalars: return r.first < kM0;
    case kVccPair: return r.first == kVccLo || r.first == kVccHi;
    case kExecPair: return r.first == kExecLo || r.first == kExecHi;
    case kM0Only: return r.first == kM0;
    case kVectors: return r.first >= kVgpr0;
  }
  return false;
}
bool overlap(RegisterSpan a, RegisterSpan b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

struct Wait {
  const char* name;
  uint64_t producer;
  Registers written;
  uint64_t consumer;
  uint16_t roles;
  uint8_t states;
};
constexpr Wait kWaits[] = {
#define WAIT(name, producer, written, consumer, roles, states) \
  {name, producer, written, consumer, roles, states},
#include "check/wait_states.def"
#undef WAIT
};

struct MfmaWait {
  MatrixUnit unit;
  uint8_t passes, read, memory, overwrite, exact_c, overlapping_c, overwrite_c;
};
constexpr MfmaWait kMfmaWaits[] = {
#define MFMA_WAIT(unit, ...) {MatrixUnit::unit, __VA_ARGS__},
#include "check/mfma_waits.def"
#undef MFMA_WAIT
};

const MfmaWait* mfma_wait(const Inst& i) {
  const MfmaPasses p = mfma_passes(i);
  for (const MfmaWait& row : kMfmaWaits)
    if (row.unit == p.unit && row.passes == p.passes) return &row;
  return nullptr;
}

unsigned slots(const Inst& i) {
  const bool nop = i.row != nullptr && i.row->encoding == Encoding::kSopp && i.row->opcode == 0;
  return nop ? static_cast<unsigned>(i.imm & 15) + 1 : 1;
}

// Nothing that a rule names.
bool harmless(const Footprint& f) {
  constexpr uint64_t kInvolved = kIsValu | kIsMfma | kIsVmem | kIsLds | kNeedsM0 | kIsSetreg | kIsGetreg;
  return !f.is(kInvolved);
}

// Overwriting what a wide store still reads: 96- and 128-bit stores take their data two slots long.
constexpr unsigned kStoreDataStates = 2, kSetregStates = 2;

}  // namespace

WaitStates::WaitStates(Reporter& reporter, Footprints& footprints)
    : reporter_(reporter), footprints_(footprints), judged_(footprints.size()), seen_(size_t{1} << kSeenBits) {}

void WaitStates::start_wave(const Wave& w) {
  if (paths_.size() <= w.watch_slot) paths_.resize(w.watch_slot + 1);
  paths_[w.watch_slot] = Path{0, w.start_pc, w.start_pc};
}

// The jumps that lie within the horizon of the newest one's target.
void WaitStates::follow(const Wave& w, Path& p) {
  p.jump_count = w.jump_count;
  p.entry = w.jump_count == 0 ? w.start_pc : w.jumps[(w.jump_count - 1) % Wave::kJumps].to;
  p.hash = w.start_pc;
  uint32_t distance = 0;
  for (uint32_t n = 1; n <= std::min(w.jump_count, Wave::kJumps) && distance < kHorizon; ++n) {
    const Wave::Jump& jump = w.jumps[(w.jump_count - n) % Wave::kJumps];
    p.hash = (p.hash ^ jump.from ^ uint64_t{jump.to} << 32) * 0xc4ceb9fe1a85ec53ull + n;
    if (n == w.jump_count) break;
    const uint32_t came_from = w.jumps[(w.jump_count - n - 1) % Wave::kJumps].to;
    distance += jump.from - came_from + 1;
  }
}

void WaitStates::judge(Wave& w, const Inst& i, const Footprint& f) {
  if (harmless(f)) return;
  uint32_t at = w.pc - 1, jumps = 0;
  for (unsigned found = 0; found < kHorizon;) {
    const bool known_jump = jumps < std::min(w.jump_count, Wave::kJumps);
    const Wave::Jump* jump = known_jump ? &w.jumps[(w.jump_count - 1 - jumps) % Wave::kJumps] : nullptr;
    if (jump != nullptr && jump->to == at) {
      at = jump->from;
      ++jumps;
    } else if (at == w.start_pc || at == 0) {
      return;
    } else {
      --at;
    }
    const Inst& producer = footprints_.inst(at);
    judge_pair(w, producer, footprints_.of(producer), i, f, found);
    found += slots(producer);
  }
}

void WaitStates::judge_pair(Wave& w, const Inst& producer, const Footprint& before, const Inst& i,
                            const Footprint& f, unsigned found) {
  for (const Wait& row : kWaits) {
    if (found >= row.states || !before.is(row.producer) || !f.is(row.consumer)) continue;
    for (unsigned n = 0; n < before.write_count; ++n) {
      const RegisterSpan written = before.writes[n];
      if (!belongs(written, row.written)) continue;
      if (row.roles == 0) report(w, producer, i, row.name, written, row.states, found);
      for (unsigned r = 0; row.roles != 0 && r < f.read_count; ++r) {
        if ((f.reads[r].role & row.roles) && overlap(f.reads[r], written))
          report(w, producer, i, row.name, f.reads[r], row.states, found);
      }
    }
  }
  if (before.is(kIsMfma)) judge_mfma(w, producer, before, i, f, found);
  if (before.is(kIsWideStore) && f.is(kIsValu) && found < kStoreDataStates) {
    for (unsigned n = 0; n < f.write_count; ++n)
      for (unsigned r = 0; r < before.read_count; ++r)
        if (before.reads[r].role == kRoleData && overlap(before.reads[r], f.writes[n]))
          report(w, producer, i, "wide store -> VALU overwrites its data", f.writes[n], kStoreDataStates,
                 found);
  }
  if (before.is(kIsSetreg) && f.is(kIsSetreg | kIsGetreg) && found < kSetregStates &&
      (producer.imm & 63) == (i.imm & 63)) {
    report(w, producer, i, "s_setreg -> the same hardware register", {}, kSetregStates, found);
  }
}

void WaitStates::judge_mfma(Wave& w, const Inst& producer, const Footprint& before, const Inst& i,
                            const Footprint& f, unsigned found) {
  const MfmaWait* row = mfma_wait(producer);
  if (row == nullptr || before.write_count == 0) return;
  const RegisterSpan d = before.writes[0];
  for (unsigned r = 0; r < f.read_count; ++r) {
    const RegisterSpan read = f.reads[r];
    if (!overlap(read, d)) continue;
    const bool accumulates = f.is(kIsMfma) && (read.role & (kRoleC | kRoleOld));
    const bool exact = read.first == d.first && read.count == d.count;
    const unsigned required = accumulates ? (exact ? row->exact_c : row->overlapping_c)
                              : f.is(kIsVmem | kIsLds) ? row->memory : row->read;
    if (found < required)
      report(w, producer, i, accumulates ? "MFMA result -> C of another" : "MFMA result is read", read,
             required, found);
  }
  if (!f.is(kIsValu)) return;
  for (unsigned n = 0; n < f.write_count; ++n) {
    if (overlap(f.writes[n], d) && found < row->overwrite)
      report(w, producer, i, "MFMA result is overwritten", f.writes[n], row->overwrite, found);
    for (unsigned r = 0; r < before.read_count; ++r)
      if ((before.reads[r].role & (kRoleC | kRoleOld)) && overlap(before.reads[r], f.writes[n]) &&
          found < row->overwrite_c)
        report(w, producer, i, "C of an MFMA is overwritten", f.writes[n], row->overwrite_c, found);
  }
}

void WaitStates::report(Wave& w, const Inst& producer, const Inst& i, const char* rule, RegisterSpan where,
                        unsigned required, unsigned found) {
  Finding* f = reporter_.open(w, i, "wait-states", reporter_.if_strict());
  if (f == nullptr) return;
  char pc[24];
  std::snprintf(pc, sizeof pc, "0x%x", producer.offset_bytes);
  if (where.count != 0) f->where = register_name(where.first, where.count);
  f->message = std::string(rule) + ": " + std::to_string(required) + " wait states are required, " +
               std::to_string(found) + " found behind " + pc + " " + print(producer);
}

}  // namespace mi350::emu
