// The ledger: every call to an op of ours is one hit (by kernel) or one miss (by reason), and every op that
// the emulated device leaves to the CPU is counted with its time. Also the log line and the on/off flags.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "route/decision.h"
#include "runtime/module_cache.h"

namespace mi350::route {

// One aten op (all its overloads). Written by install, read by every call.
struct OpState {
  const char* name = nullptr;          // "addmm"
  std::atomic<bool> enabled{true};     // enable() and disable()
  std::atomic<int> disabled_depth{0};  // nested disabled() blocks
  std::array<std::atomic<uint64_t>, runtime::kMaxKernels> hits{};

  bool on() const {
    return enabled.load(std::memory_order_relaxed) && disabled_depth.load(std::memory_order_relaxed) == 0;
  }
};

// Index of the op called `name`, made on first use. Throws c10::Error beyond kMaxOps.
int op_index(const char* name);
OpState& op_state(int op);
int op_count();
// -1: no op of that name.
int find_op(const std::string& name);

inline void count_hit(OpState& op, int kernel) { op.hits[kernel].fetch_add(1, std::memory_order_relaxed); }
inline void count_miss(int op, ReasonId reason) {
  reason->misses[op].fetch_add(1, std::memory_order_relaxed);
}

// An op that `cdna` ran on the CPU. `op` as in the schema: "aten::softmax" or "softmax".
void count_cpu(const char* op, uint64_t ns);

struct CpuOp {
  uint64_t calls = 0, ns = 0;
};
struct OpReport {
  std::string op;
  std::map<std::string, uint64_t> hits, misses;
};
std::vector<OpReport> report_ops();
std::map<std::string, CpuOp> report_cpu();
void reset_ledger();

// TORCH_MI350_LOG.
enum class Log : int { kOff = 0, kHits = 1, kMisses = 2, kAll = 3 };
void set_log(const std::string& mode);  // "", "hits", "misses", "all"
Log log_mode();
inline bool logs(Log mode, bool hit) { return (static_cast<int>(mode) & (hit ? 1 : 2)) != 0; }
// Prints `op problem -> decision` to stderr unless that line was printed before.
void log_line(const std::string& op, const std::string& problem, const Decision& decision);

}  // namespace mi350::route
