// Scheduling of workgroups and waves, see dispatch.h.
//
// One round of a workgroup: every wave that can runs up to kWaveSlice instructions. Then barriers are matched by
// count. A workgroup gives way when a round brought nothing new and a wave polled or slept, or when its slice is
// used up. Resident workgroups take turns; every turn around also starts new ids.
#include "dispatch.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "check/checker.h"
#include "host_threads.h"
#include "isa.h"
#include "memory.h"
#include "report.h"
#include "start_state.h"
#include "watch.h"
#include "wave_order.h"
#include "wave_storage.h"

namespace mi350::emu {
namespace {

constexpr uint32_t kWaveSlice = 8192;
constexpr uint64_t kGroupSlice = 4u << 20;         // wave-instructions; no GEMM tile of usual depth needs more
constexpr uint64_t kIdleGroupSlice = 256u << 10;   // without a store, an atomic or a new load
constexpr uint64_t kYieldCost = 64;                // a sleeping wave must run out of patience too
constexpr uint64_t kDefaultPatience = 64u << 20;
constexpr uint64_t kLoadsOnlyFactor = 64;  // loads of new addresses alone keep a kernel alive this much longer

uint64_t patience() {
  const char* text = std::getenv("TORCH_MI350_EMU_PATIENCE");
  const uint64_t set = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return set != 0 ? set : kDefaultPatience;
}

// State of one launch that its host threads share.
struct Shared {
  const Launch& launch;
  const LaunchBlock block;
  const uint64_t patience_limit = patience();
  const uint64_t residents_limit;
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> residents{0};
  // Signs of life: anything, and stores alone. Who has seen none for too long writes the number of stores here.
  std::atomic<uint64_t> life{1}, stores{1};
  static constexpr uint64_t kPatient = 0, kGone = ~0ull;
  std::unique_ptr<std::atomic<uint64_t>[]> gave_up;
  std::atomic<unsigned> workers{0};
  std::atomic<bool> stopped{false};
  std::mutex mutex;
  LaunchOutcome outcome;
  std::unique_ptr<LaunchChecks> checks;  // check mode

  Shared(const Launch& l, unsigned threads)
      : launch(l), block(l),
        residents_limit(resident_workgroups(l.machine, *l.kernel, l.work_items(), l.dynamic_lds_bytes)),
        gave_up(std::make_unique<std::atomic<uint64_t>[]>(threads)) {
    if (l.settings.mode == Mode::kCheck) checks = std::make_unique<LaunchChecks>(l);
  }

  // A thread that the host does not run has not lost its patience: what the others wait for may be its turn.
  bool all_gave_up() const {
    const uint64_t now = stores.load();
    for (unsigned n = 0; n < workers.load(); ++n) {
      if (const uint64_t at = gave_up[n].load(); at != now && at != kGone) return false;
    }
    return true;
  }

  // For a kernel that does not end: perhaps it needs more workgroups at once than the machine holds.
  std::string who_waits() const {
    const uint64_t all = launch.workgroups(), begun = std::min(next.load(), all);
    if (begun == all) return "";
    return "; " + std::to_string(residents.load()) + " workgroups are on the device and " +
           std::to_string(all - begun) + " wait for a place";
  }

  void stop(const Wave& w, LaunchResult result, const std::string& why) {
    stop(result, wave_report(launch, w, why));
  }
  void stop(LaunchResult result, std::string report) {
    std::lock_guard lock(mutex);
    if (stopped.exchange(true)) return;  // the first one is reported
    outcome.result = result;
    outcome.report = std::move(report);
  }
};

struct Group {
  Workgroup state;
  std::vector<Wave*> waves;
  uint64_t scratch_bytes = 0;  // of one wave
  WaveOrder order;
};

enum class Turn : uint8_t { kEnded, kGivesWay, kStopped };

uint32_t run_wave(Wave& w, const Inst* insts, uint32_t limit) {
  uint32_t left = limit;
  do {
    const Inst& i = insts[w.pc++];
    i.exec(w, i);
  } while (w.status == WaveStatus::kRunning && --left != 0);
  return limit - left;
}

uint32_t run_wave_watched(Wave& w, const Inst* insts, uint32_t limit) {
  uint32_t left = limit;
  do {
    const Inst& i = insts[w.pc++];
    if ((w.mode & kModeVskip) != 0 && skipped_by_vskip(i)) continue;
    w.watch->before(w, i);
    i.exec(w, i);
    w.watch->after(w, i);
  } while (w.status == WaveStatus::kRunning && --left != 0);
  return limit - left;
}

// Runs workgroups on one host thread.
class Worker {
 public:
  explicit Worker(Shared& shared)
      : shared_(shared), launch_(shared.launch), storage_(Storage::of_thread()),
        insts_(shared.launch.object->program.insts.data()), index_(shared.workers.fetch_add(1)) {
    shared.block.show_to(memory_);
    memory_.set_device(shared.launch.device);
    memory_.set_lenient(!shared.launch.settings.strict);
    if (shared.checks) watch_ = shared.checks->watch_for_thread();
  }

  void run() {
    for (uint64_t since_start = 0; !shared_.stopped.load(std::memory_order_relaxed);) {
      // Eight new workgroups start each time around those that wait.
      std::unique_ptr<Group> g;
      if (since_start * 8 >= waiting_.size() || waiting_.empty()) {
        g = start_next();
        since_start = 0;
      }
      if (!g) {
        if (waiting_.empty()) break;
        g = std::move(waiting_.front());
        waiting_.pop_front();
        ++since_start;
      }
      const Turn turn = take_turn(*g);
      if (turn == Turn::kGivesWay) waiting_.push_back(std::move(g));
      else finish(std::move(g));
    }
    while (!waiting_.empty()) {
      finish(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    shared_.gave_up[index_].store(Shared::kGone);
    storage_.trim();
    std::lock_guard lock(shared_.mutex);
    Counters& sum = shared_.outcome.counters;
    sum.instructions += counters_.instructions;
    sum.mfma_flops += counters_.mfma_flops;
    sum.mfma_instructions += counters_.mfma_instructions;
    sum.global_bytes += counters_.global_bytes;
    sum.lds_bytes += counters_.lds_bytes;
    shared_.outcome.workgroups += ended_groups_;
  }

 private:
  std::unique_ptr<Group> start_next();
  Turn take_turn(Group& g);
  bool run_round(Group& g, uint64_t* ran, bool* yielded);
  bool settle_barrier(Group& g);
  bool account(Group& g, uint64_t ran, bool yielded, bool* alive);
  void finish(std::unique_ptr<Group> g);

  Shared& shared_;
  const Launch& launch_;
  Storage& storage_;
  const Inst* insts_;
  Memory memory_;
  std::unique_ptr<Watch> watch_;
  Counters counters_;
  std::deque<std::unique_ptr<Group>> waiting_;
  uint64_t ended_groups_ = 0;
  unsigned index_;
  // Wave-instructions of this thread since anything happened anywhere and since a store, and the counts then.
  uint64_t idle_ = 0, without_store_ = 0, life_ = 0, stores_ = 0;
};

std::unique_ptr<Group> Worker::start_next() {
  if (shared_.next.load(std::memory_order_relaxed) >= launch_.workgroups()) return nullptr;
  // Never above the limit, not even for a moment: a thread that finds the device full and has no workgroup of its
  // own goes home, which is right only if others hold them all.
  uint64_t held = shared_.residents.load();
  do {
    if (held >= shared_.residents_limit) return nullptr;
  } while (!shared_.residents.compare_exchange_weak(held, held + 1));
  const uint64_t turn = shared_.next.fetch_add(1);
  if (turn >= launch_.workgroups()) {
    shared_.residents.fetch_sub(1);
    return nullptr;
  }
  const uint64_t n = launch_.machine.reverse ? launch_.workgroups() - 1 - turn : turn;
  const auto dies = static_cast<uint64_t>(launch_.machine.xcds);
  auto g = std::make_unique<Group>();
  Workgroup& s = g->state;
  s.linear = n;
  s.xcd = static_cast<uint32_t>(n % dies);
  s.unit = static_cast<uint32_t>(n / dies % static_cast<uint64_t>(launch_.machine.units_per_xcd()));
  s.id[0] = static_cast<uint32_t>(n % launch_.grid[0]);
  s.id[1] = static_cast<uint32_t>(n / launch_.grid[0] % launch_.grid[1]);
  s.id[2] = static_cast<uint32_t>(n / launch_.grid[0] / launch_.grid[1]);
  s.waves = launch_.waves();
  s.lds_bytes = launch_.lds_bytes();
  if (s.lds_bytes != 0) {
    s.lds = storage_.take_lds();
    std::memset(s.lds, 0, s.lds_bytes);
  }
  g->order = WaveOrder(launch_.settings, n, s.waves);
  if (watch_) watch_->start_group(s);
  const uint32_t per_lane = scratch_bytes_per_lane(*launch_.kernel);
  g->scratch_bytes = uint64_t{per_lane} * kLanes;
  for (uint32_t n_wave = 0; n_wave < s.waves; ++n_wave) {
    Wave* w = storage_.take_wave();
    g->waves.push_back(w);
    w->group = &g->state;
    w->wave_in_group = n_wave;
    w->memory = &memory_;
    w->program = &launch_.object->program;
    w->scratch_bytes_per_lane = per_lane;
    w->scratch_base = reinterpret_cast<uint64_t>(storage_.take_scratch(g->scratch_bytes));
    start_wave(*w, launch_, shared_.block);
    if (!watch_) continue;
    w->watch = watch_.get();
    watch_->start_wave(*w);
  }
  return g;
}

void Worker::finish(std::unique_ptr<Group> g) {
  for (Wave* w : g->waves) {
    if (w->watch != nullptr) w->watch->end_wave(*w);
    counters_.mfma_flops += w->counters.mfma_flops;
    counters_.mfma_instructions += w->counters.mfma_instructions;
    counters_.global_bytes += w->counters.global_bytes;
    counters_.lds_bytes += w->counters.lds_bytes;
    storage_.give_scratch(reinterpret_cast<uint8_t*>(w->scratch_base), g->scratch_bytes);
    storage_.give_wave(w);
  }
  if (watch_) watch_->end_group(g->state);
  if (g->state.lds != nullptr) storage_.give_lds(g->state.lds);
  ended_groups_ += g->state.ended == g->state.waves;
  shared_.residents.fetch_sub(1);
}

// Every wave that can run has a go. False after a fault.
bool Worker::run_round(Group& g, uint64_t* ran, bool* yielded) {
  g.order.shuffle();
  for (uint32_t turn = 0; turn < g.waves.size(); ++turn) {
    Wave* w = g.waves[g.order.wave(turn)];
    if (w->status == WaveStatus::kEnded || w->status == WaveStatus::kBarrier) continue;
    if (shared_.stopped.load(std::memory_order_relaxed)) return false;
    w->status = WaveStatus::kRunning;
    const uint32_t n = w->watch == nullptr ? run_wave(*w, insts_, kWaveSlice)
                                           : run_wave_watched(*w, insts_, g.order.slice(kWaveSlice));
    *ran += n;
    switch (w->status) {
      case WaveStatus::kEnded: ++g.state.ended; break;
      case WaveStatus::kYield: *yielded = true; break;
      case WaveStatus::kFault:
        shared_.stop(*w, w->illegal_address ? LaunchResult::kIllegalAddress : LaunchResult::kFault, w->fault);
        return false;
      default: break;
    }
  }
  return true;
}

// Ended waves leave the count. True if waves were released.
bool Worker::settle_barrier(Group& g) {
  if (g.state.at_barrier == 0 || g.state.at_barrier + g.state.ended != g.state.waves) return false;
  g.state.at_barrier = 0;
  if (watch_) watch_->release_barrier(g.state);
  for (Wave* w : g.waves) {
    if (w->status == WaveStatus::kBarrier) w->status = WaveStatus::kRunning;
  }
  return true;
}

// Signs of life of the round. False when the launch has shown none for too long.
bool Worker::account(Group& g, uint64_t ran, bool yielded, bool* alive) {
  uint64_t stores = 0, loads = 0;
  for (Wave* w : g.waves) {
    stores += std::exchange(w->progress, 0);
    loads += std::exchange(w->load_progress, 0);
  }
  *alive = stores + loads != 0;
  if (*alive) shared_.life.fetch_add(1, std::memory_order_relaxed);
  if (stores != 0) shared_.stores.fetch_add(1, std::memory_order_relaxed);
  const uint64_t cost = ran + (yielded ? kYieldCost : 0);
  const uint64_t life = shared_.life.load(std::memory_order_relaxed);
  const uint64_t all_stores = shared_.stores.load(std::memory_order_relaxed);
  idle_ = std::exchange(life_, life) == life ? idle_ + cost : 0;
  without_store_ = std::exchange(stores_, all_stores) == all_stores ? without_store_ + cost : 0;
  const uint64_t share = std::max<uint64_t>(shared_.patience_limit / shared_.workers.load(), 1);
  const bool lost = idle_ > share || without_store_ / kLoadsOnlyFactor > share;
  shared_.gave_up[index_].store(lost ? all_stores : Shared::kPatient, std::memory_order_relaxed);
  if (!lost || !shared_.all_gave_up()) return true;
  Wave* still = g.waves[0];
  for (Wave* w : g.waves) {
    if (w->status == WaveStatus::kRunning || w->status == WaveStatus::kYield) still = w;
  }
  if (watch_) watch_->stuck(*still);
  shared_.stop(
      *still, LaunchResult::kNoProgress,
      "the kernel does not end: no store, no atomic that changes memory and no load of anything new for " +
          std::to_string(std::max(idle_, without_store_) * shared_.workers.load()) +
          " wave-instructions (TORCH_MI350_EMU_PATIENCE)" + shared_.who_waits());
  return false;
}

Turn Worker::take_turn(Group& g) {
  uint64_t slice = 0, idle = 0;
  for (;;) {
    uint64_t ran = 0;
    bool yielded = false, alive = false;
    if (!run_round(g, &ran, &yielded)) return Turn::kStopped;
    counters_.instructions += ran;
    if (g.state.ended == g.state.waves) {
      account(g, 0, false, &alive);
      return Turn::kEnded;
    }
    const bool released = settle_barrier(g);
    if (!account(g, ran, yielded, &alive)) return Turn::kStopped;
    slice += ran;
    idle = alive ? 0 : idle + ran;
    const bool polling = yielded && !alive && !released;
    if (!polling && slice < kGroupSlice && idle < kIdleGroupSlice) continue;
    // Alone and waiting for another host thread: let it have the core.
    if (polling && waiting_.empty()) std::this_thread::yield();
    return Turn::kGivesWay;
  }
}

void undecodable(Wave& w, const Inst& i) {
  w.stop(i.size_bytes == 0 ? "execution ran off the end of the code"
                           : "unknown instruction: these words are not gfx950 code that the emulator knows");
}
void unimplemented(Wave& w, const Inst& i) {
  w.stop(std::string("unimplemented instruction ") + i.row->mnemonic);
}

// Errors that the checkers found fail a launch that ran to its end, and stand in the report of any other.
void add_findings(const LaunchChecks& checks, LaunchOutcome& outcome) {
  if (checks.errors.empty()) return;
  if (outcome.result == LaunchResult::kDone) {
    outcome.result = LaunchResult::kFault;
    outcome.report = checks.launch.kernel->name + ": check mode found errors:\n";
  } else {
    outcome.report += "  check mode found errors:\n";
  }
  outcome.report += checks.errors;
}

// The floating-point state of the calling thread (torch may flush denormals) is not the kernel's.
class DefaultFloat {
 public:
  DefaultFloat() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloat() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
};

}  // namespace

void make_executable(Program& program) {
  for (Inst& i : program.insts) {
    if (i.exec == nullptr) i.exec = i.row == nullptr ? undecodable : unimplemented;
  }
}

LaunchOutcome run_launch(const Launch& launch) {
  std::shared_lock running(AllocationMap::get().running());
  const uint64_t groups = launch.workgroups();
  const unsigned helpers = static_cast<unsigned>(std::min<uint64_t>(host_threads() - 1, groups - 1));
  Shared shared(launch, helpers + 1);
  const auto work = [&shared] {
    DefaultFloat scope;
    try {
      Worker(shared).run();
    } catch (const std::bad_alloc&) {
      shared.stop(LaunchResult::kFault, shared.launch.kernel->name +
                                            ": the host has no memory left for waves, LDS or private memory\n");
    }
  };
  run_with_helpers(helpers, work);
  if (shared.checks) add_findings(*shared.checks, shared.outcome);
  return std::move(shared.outcome);
}

}  // namespace mi350::emu
