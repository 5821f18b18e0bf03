// Order of accesses to LDS between waves; loads to LDS ("LDS-DMA"), which stay in flight until their wave's vmcnt
// wait and reach other waves with the barrier after it; accesses outside the workgroup's allocation.
//
// A plain LDS operation is over for others once its wave waited on lgkmcnt and passed a barrier: without the wait
// the barrier orders nothing. Within a wave LDS operations are in order. With late DMA the data are written at
// the wait instead of at the issue.
//
// Between waves some rules are errors for our objects only. Triton's histogram, top-k and RMSNorm kernels write one
// value from several waves with one instruction. AITER's kernels order some hand-overs by letting the waves run in
// step, without a barrier, and are right on hardware: loads to LDS in fmha_v3_fwd fp8 and causal, words read before and
// written after one barrier in fmoe block-scale, MXfp4 and fmoe_stage1. fmoe_stage1 16x128_4tg_pf2 also writes a word
// while its own load to it is in flight, which is long over by then.
#include "check/lds_order.h"

#include <bit>
#include <cstring>
#include <deque>
#include <string_view>

#include "check/lds_words.h"
#include "check/wait_counts.h"
#include "print.h"

namespace mi350::emu {
namespace {

constexpr char kRace[] = "lds-race", kDmaFlight[] = "lds-dma", kBounds[] = "lds-bounds";
constexpr uint32_t kPlaces = 1 << 12;      // issue numbers whose instruction is remembered
constexpr uint32_t kMostNumbers = 1u << 25;  // per workgroup; checks end there
constexpr uint32_t kInFlightNone = ~0u;

enum class Step : uint8_t { kOther, kWait, kBarrier, kEnd, kLds, kVm, kVmToLds, kFlat };
Step name_step(const IsaRow& row) {
  const std::string_view name = row.mnemonic;
  if (name == "s_waitcnt") return Step::kWait;
  if (name == "s_barrier") return Step::kBarrier;
  if (name == "s_endpgm" || name == "s_endpgm_saved") return Step::kEnd;
  if (row.encoding == Encoding::kDs) return Step::kLds;
  if (row.encoding == Encoding::kFlat) return Step::kFlat;
  if (counts_vm(row)) return name.find("_lds_") != name.npos ? Step::kVmToLds : Step::kVm;
  return Step::kOther;
}
Step step_of(const Inst& i) {
  static const std::vector<Step> steps = [] {
    std::vector<Step> all;
    for (size_t r = 0; r < kIsaRows; ++r) all.push_back(name_step(kIsa[r]));
    return all;
  }();
  const Step step = steps[static_cast<size_t>(i.row - kIsa)];
  return step == Step::kVm && i.lds ? Step::kVmToLds : step;
}

// A load to LDS whose data are kept back.
struct Kept {
  uint32_t number;
  uint64_t mask;
  int bytes;
  uint32_t at[kLanes];
  uint8_t data[kLanes][16];
};

typedef int32_t Four __attribute__((vector_size(16)));
typedef int32_t Two __attribute__((vector_size(8)));
inline bool any(Four v) { return (v[0] | v[1] | v[2] | v[3]) != 0; }
inline bool any(Two v) { return (v[0] | v[1]) != 0; }

struct GroupState;
struct WaveState {
  WaitQueue<63> vm;
  WaitQueue<15> lds;
  uint32_t dma_ordered = 1, lds_ordered = 1;    // for other waves: every operation below is over
  uint32_t dma_arrived = 1, lds_arrived = 1;    // the oldest in flight when it came to the barrier
  uint32_t dma_retired = 1;                     // for itself
  std::deque<Kept> kept;
};

struct GroupState {
  uint32_t number = 0;        // of the newest operation
  uint32_t epoch = 1;         // first number behind the last barrier
  uint32_t safe = 1;          // below it everything of everybody is ordered
  LdsWords words;
  std::vector<WaveState*> waves;
  std::vector<const Inst*> places;
};

class LdsOrder final : public Part {
 public:
  explicit LdsOrder(Reporter& reporter) : reporter_(reporter) {}

  unsigned wants(const Inst& i) const override { return step_of(i) == Step::kOther ? kNothing : kBefore; }
  void start_group(Workgroup& g) override;
  void start_wave(Wave& w) override;
  void release_barrier(Workgroup& g) override;
  void before(Wave& w, const Inst& i) override;
  void access(Wave& w, const Inst& i, const Access& a) override;
  bool defer_dma(Wave& w, const Inst& i, const Access& a, const uint8_t* data) override;

 private:
  // One lane's bytes of an access, as dwords with byte masks.
  struct Touch {
    Wave& w;
    const Inst& i;
    GroupState& g;
    WaveState& own;
    Mark mark;
    bool reads, writes;
  };
  void issue(Wave& w, const Inst& i, Step step);
  void wait(Wave& w, uint32_t vm, uint32_t lgkm);
  void arrive(Wave& w);
  void end(Wave& w, const Inst& i);
  void land(Wave& w, uint32_t number);
  template <typename V> void touch_lanes(const Touch& t, const uint32_t* at, uint64_t lanes);
  void touch_lane(const Touch& t, int lane, uint32_t at, uint32_t bytes);
  void check_write(const Touch& t, int lane, uint32_t word, uint32_t covered);
  void check_readers(const Touch& t, int lane, uint32_t word, uint32_t covered);
  void report(const Touch& t, int lane, uint32_t word, const char* checker, const std::string& what, Mark other,
              Severity severity = Severity::kError);
  // Whether the other operation came from the instruction that runs now.
  static bool same_instruction(const Touch& t, Mark other) {
    return t.g.number - other.number() < kPlaces && t.g.places[other.number() % kPlaces] == &t.i;
  }
  void report_bounds(Wave& w, const Inst& i, const Access& a, uint64_t lanes, int bytes);
  static void refresh_safe(GroupState& g);
  GroupState& group(Wave& w) { return groups_[w.group->watch_slot]; }
  WaveState& state(Wave& w) { return waves_[w.watch_slot]; }

  Reporter& reporter_;
  std::deque<WaveState> waves_;    // by slot; addresses stay
  std::deque<GroupState> groups_;
};

void LdsOrder::start_group(Workgroup& g) {
  if (groups_.size() <= g.watch_slot) groups_.resize(g.watch_slot + 1);
  GroupState& s = groups_[g.watch_slot];
  s.number = 0;
  s.epoch = s.safe = 1;
  s.words.reset(g.lds_bytes);
  s.waves.clear();
  s.places.assign(g.lds_bytes != 0 ? kPlaces : 0, nullptr);
}
void LdsOrder::start_wave(Wave& w) {
  if (waves_.size() <= w.watch_slot) waves_.resize(w.watch_slot + 1);
  waves_[w.watch_slot] = WaveState{};
  group(w).waves.push_back(&waves_[w.watch_slot]);
}

void LdsOrder::refresh_safe(GroupState& g) {
  g.safe = g.number + 1;
  for (const WaveState* s : g.waves) g.safe = std::min({g.safe, s->dma_ordered, s->lds_ordered});
}
void LdsOrder::release_barrier(Workgroup& g) {
  GroupState& s = groups_[g.watch_slot];
  for (WaveState* wave : s.waves) {
    wave->dma_ordered = std::min(wave->dma_arrived, s.number + 1);
    wave->lds_ordered = std::min(wave->lds_arrived, s.number + 1);
  }
  s.epoch = s.number + 1;
  refresh_safe(s);
}

void LdsOrder::before(Wave& w, const Inst& i) {
  if (w.group->lds_bytes == 0) return;
  const Step step = step_of(i);
  switch (step) {
    case Step::kWait: return wait(w, vmcnt_of(i.imm), lgkmcnt_of(i.imm));
    case Step::kBarrier: return arrive(w);
    case Step::kEnd: return end(w, i);
    default: return issue(w, i, step);
  }
}

void LdsOrder::issue(Wave& w, const Inst& i, Step step) {
  GroupState& g = group(w);
  WaveState& s = state(w);
  const bool dma = step == Step::kVmToLds;
  const bool counted = (dma || step != Step::kVm) && g.number < kMostNumbers;
  if (counted) g.places[++g.number % kPlaces] = &i;
  const auto landed = [&](uint32_t number) {
    if (number != 0) land(w, number);
  };
  if (step != Step::kLds) s.vm.push(dma && counted ? g.number : 0, landed);
  if (step == Step::kLds || step == Step::kFlat) s.lds.push(counted ? g.number : 0, [](uint32_t) {});
  s.dma_retired = s.vm.oldest(g.number + 1);
}

void LdsOrder::wait(Wave& w, uint32_t vm, uint32_t lgkm) {
  GroupState& g = group(w);
  WaveState& s = state(w);
  s.vm.wait(vm, [&](uint32_t number) {
    if (number != 0) land(w, number);
  });
  // Scalar loads also count and come back in any order: at worst all of them before the first LDS operation.
  s.lds.wait(lgkm, [](uint32_t) {});
  s.dma_retired = s.vm.oldest(g.number + 1);
}

void LdsOrder::arrive(Wave& w) {
  WaveState& s = state(w);
  s.dma_arrived = s.vm.oldest(kInFlightNone);
  s.lds_arrived = s.lds.oldest(kInFlightNone);
}

void LdsOrder::end(Wave& w, const Inst& i) {
  GroupState& g = group(w);
  WaveState& s = state(w);
  const uint32_t pending = s.vm.oldest(0);
  if (pending != 0) {
    if (Finding* f = reporter_.open(w, i, kDmaFlight, Severity::kError)) {
      const Inst* from = g.places[pending % kPlaces];
      f->where = "LDS";
      f->message = "the wave ends while its load to LDS is in flight: " + (from == nullptr ? "?" : print(*from));
    }
  }
  wait(w, 0, 0);
  arrive(w);
}

void LdsOrder::land(Wave& w, uint32_t number) {
  WaveState& s = state(w);
  while (!s.kept.empty() && s.kept.front().number <= number) {
    const Kept& k = s.kept.front();
    for (uint64_t mask = k.mask; mask != 0; mask &= mask - 1) {
      const int l = std::countr_zero(mask);
      std::memcpy(w.group->lds + k.at[l], k.data[l], static_cast<size_t>(k.bytes));
    }
    s.kept.pop_front();
  }
}
bool LdsOrder::defer_dma(Wave& w, const Inst&, const Access& a, const uint8_t* data) {
  GroupState& g = group(w);
  if (!reporter_.settings.late_dma || g.number >= kMostNumbers) return false;
  Kept& k = state(w).kept.emplace_back();
  k.number = g.number;
  k.mask = a.lds_mask;
  k.bytes = a.lds_bytes;
  std::memcpy(k.at, a.lds, sizeof k.at);
  std::memcpy(k.data, data, sizeof k.data);
  return true;
}

void LdsOrder::access(Wave& w, const Inst& i, const Access& a) {
  const bool dma = a.kind == Access::kDma;
  if (a.space != Access::kLds && !dma) return;
  const uint64_t lanes = dma ? a.lds_mask : a.mask;
  const int bytes = dma ? a.lds_bytes : a.bytes;
  const uint64_t out = dma ? (a.mask | a.outside) & ~a.lds_mask : a.outside;
  if (out != 0) report_bounds(w, i, a, out, bytes);
  GroupState& g = group(w);
  if (g.waves.size() == 1 && !dma && state(w).vm.oldest(0) == 0) return;  // nobody to be out of order with
  if (g.number >= kMostNumbers) return;
  const bool atomic = a.kind == Access::kAtomic;
  const Touch t{w, i, g, state(w), Mark(g.number, w.wave_in_group, dma, atomic), a.kind == Access::kLoad,
                a.kind != Access::kLoad};
  if (bytes == 16) return touch_lanes<Four>(t, a.lds, lanes);
  if (bytes == 8) return touch_lanes<Two>(t, a.lds, lanes);
  for (uint64_t mask = lanes; mask != 0; mask &= mask - 1) {
    const int l = std::countr_zero(mask);
    touch_lane(t, l, a.lds[l], static_cast<uint32_t>(bytes));
  }
}

// Aligned whole dwords, which is nearly all there is: without branches as long as everything is safe. Marks and
// bounds are below 2^31, so signed comparisons do.
template <typename V>
void LdsOrder::touch_lanes(const Touch& t, const uint32_t* at, uint64_t lanes) {
  auto* blocks = reinterpret_cast<uint8_t*>(t.g.words.blocks.data());
  const V safe = V{} + static_cast<int32_t>(t.g.safe << Mark::kShift);
  const V epoch = V{} + static_cast<int32_t>(t.g.epoch << Mark::kShift);
  const V mark = V{} + static_cast<int32_t>(t.mark.code);
  const V reader = V{} + static_cast<int32_t>(1u << (16 + t.mark.wave()) | 15u << 4);
  const bool writes = t.writes;
  for (uint64_t mask = lanes; mask != 0; mask &= mask - 1) {
    const int l = std::countr_zero(mask);
    if (at[l] % sizeof(V) != 0) {
      touch_lane(t, l, at[l], sizeof(V));
      continue;
    }
    uint8_t* block = blocks + at[l] / 16 * sizeof(LdsWords::Block) + at[l] % 16;
    V write, read, info;
    std::memcpy(&write, block, sizeof write);
    std::memcpy(&read, block + 16, sizeof read);
    std::memcpy(&info, block + 32, sizeof info);
    const V unsafe = writes ? (write >= safe) | (read >= safe) : write >= safe;
    if (any(unsafe)) {
      touch_lane(t, l, at[l], sizeof(V));
      continue;
    }
    if (writes) {
      info |= 15;
      std::memcpy(block, &mark, sizeof mark);
    } else {
      info = (info & ((read >= epoch) | 15)) | reader;
      std::memcpy(block + 16, &mark, sizeof mark);
    }
    std::memcpy(block + 32, &info, sizeof info);
  }
}

void LdsOrder::touch_lane(const Touch& t, int lane, uint32_t at, uint32_t bytes) {
  LdsWords& words = t.g.words;
  const uint32_t safe = t.g.safe << Mark::kShift, epoch = t.g.epoch << Mark::kShift;
  const uint32_t reader = 1u << (16 + t.mark.wave());
  const uint32_t end = at + bytes;
  for (uint32_t word = at / 4; word * 4 < end; ++word) {
    uint32_t covered = 15;
    if (at > word * 4) covered = covered << (at - word * 4) & 15;
    if (end < word * 4 + 4) covered &= 15u >> (word * 4 + 4 - end);
    if (words.write(word) >= safe) check_write(t, lane, word, covered);
    if (t.writes) {
      if (words.read(word) >= safe) check_readers(t, lane, word, covered);
      words.write(word) = t.mark.code;
      words.info(word) = (words.info(word) & ~15u) | covered;
    } else {
      const uint32_t kept = words.read(word) >= epoch ? words.info(word) : words.info(word) & 15;
      words.read(word) = t.mark.code;
      words.info(word) = kept | reader | covered << 4;
    }
  }
}

// The last write of the word against this access.
void LdsOrder::check_write(const Touch& t, int lane, uint32_t word, uint32_t covered) {
  const Mark last(t.g.words.write(word));
  if ((t.g.words.info(word) & covered & 15) == 0) return;
  const char* what = t.writes ? "writes a word" : "reads a word";
  if (last.wave() == t.mark.wave()) {
    // Its own LDS operations are in order, and so are its own loads to LDS among each other.
    if (!last.dma() || t.mark.dma() || last.number() < t.own.dma_retired) return;
    report(t, lane, word, kDmaFlight, std::string(what) + " before the vmcnt wait of the wave's own load to LDS", last,
           t.writes ? reporter_.if_strict() : Severity::kError);
    return;
  }
  const WaveState& owner = *t.g.waves[last.wave()];
  if (last.number() < (last.dma() ? owner.dma_ordered : owner.lds_ordered)) return;
  if (last.atomic() && t.mark.atomic()) return;
  const std::string other = "wave " + std::to_string(last.wave());
  if (last.dma()) {
    const bool waited = last.number() < owner.dma_retired;
    report(t, lane, word, kDmaFlight,
           std::string(what) + (waited ? " that a load to LDS of " + other + " wrote, with no barrier after its wait"
                                       : " while the load to LDS of " + other + " is in flight"),
           last, reporter_.if_strict());
  } else if (last.number() >= t.g.epoch) {
    report(t, lane, word, kRace, std::string(what) + " that " + other + " writes, with no barrier between", last,
           !t.writes || same_instruction(t, last) ? reporter_.if_strict() : Severity::kError);
  } else {
    report(t, lane, word, kRace,
           std::string(what) + " that " + other + " wrote without an lgkmcnt wait before the barrier", last);
  }
}

// Reads of the word by other waves against this write.
void LdsOrder::check_readers(const Touch& t, int lane, uint32_t word, uint32_t covered) {
  const Mark last(t.g.words.read(word));
  const uint32_t info = t.g.words.info(word);
  if ((info >> 4 & covered & 15) == 0) return;
  const char* checker = t.mark.dma() ? kDmaFlight : kRace;
  const uint32_t others = info >> 16 & ~(1u << t.mark.wave());
  if (others == 0) return;
  if (last.number() >= t.g.epoch) {
    const int other = last.wave() != t.mark.wave() ? static_cast<int>(last.wave()) : std::countr_zero(others);
    report(t, lane, word, checker,
           "overwrites a word that wave " + std::to_string(other) + " reads, with no barrier between", last,
           reporter_.if_strict());
  } else if (last.wave() != t.mark.wave() && last.number() >= t.g.waves[last.wave()]->lds_ordered) {
    // Proven kernels load over words whose reads were issued before the barrier and waited for after it.
    report(t, lane, word, checker,
           "overwrites a word that wave " + std::to_string(last.wave()) +
               " may still read: it did not wait on lgkmcnt before the barrier",
           last, reporter_.if_strict());
  }
}

void LdsOrder::report(const Touch& t, int lane, uint32_t word, const char* checker, const std::string& what,
                      Mark other, Severity severity) {
  Finding* f = reporter_.open(t.w, t.i, checker, severity);
  if (f == nullptr) return;
  f->lane = lane;
  f->where = "LDS";
  f->has_address = true;
  f->address = word * 4;
  const bool known = t.g.number - other.number() < kPlaces;
  const Inst* at = known ? t.g.places[other.number() % kPlaces] : nullptr;
  f->message = what;
  if (at == nullptr) return;
  char pc[32];
  std::snprintf(pc, sizeof pc, " (0x%x: ", at->offset_bytes);
  f->message += pc + print(*at) + ")";
}

void LdsOrder::report_bounds(Wave& w, const Inst& i, const Access& a, uint64_t lanes, int bytes) {
  Finding* f = reporter_.open(w, i, kBounds, Severity::kError);
  if (f == nullptr) return;
  f->lane = std::countr_zero(lanes);
  f->where = "LDS";
  f->has_address = true;
  f->address = a.lds[f->lane];
  f->message = std::string(a.kind == Access::kLoad ? "reads " : "writes ") + std::to_string(bytes) +
               " bytes at LDS offset " + std::to_string(f->address) + ", the workgroup has " +
               std::to_string(w.group->lds_bytes) + " bytes";
}

}  // namespace

std::unique_ptr<Part> make_lds_order(Reporter& reporter) { return std::make_unique<LdsOrder>(reporter); }

}  // namespace mi350::emu
