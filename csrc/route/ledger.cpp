// Counters, reasons and log lines. The hot path only adds to atomics; everything that builds text takes a
// lock.
#include "route/ledger.h"

#include <cstdio>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include <c10/util/Exception.h>

namespace mi350::route {
namespace {

// Reasons carry values ("k=20 ..."): past this many, new ones share one entry.
constexpr size_t kMaxReasons = 4096;
constexpr size_t kMaxLogLines = 65536;

std::mutex& mutex() {
  static std::mutex m;
  return m;
}

struct Tables {
  std::deque<ReasonText> reasons;
  std::unordered_map<std::string, ReasonId> by_text;
  std::unordered_map<std::string, CpuOp> cpu;
  std::unordered_set<std::string> printed;
  std::atomic<int> log{0};
  std::array<OpState, kMaxOps> ops;
  std::atomic<int> op_count{0};
};

// Never destroyed: autograd threads may still count while the process exits.
Tables& tables() {
  static Tables* const t = new Tables;
  return *t;
}

ReasonId intern_locked(Tables& t, const std::string& text) {
  const auto found = t.by_text.find(text);
  if (found != t.by_text.end()) return found->second;
  if (t.reasons.size() == kMaxReasons && text != "other reasons") return intern_locked(t, "other reasons");
  ReasonText& made = t.reasons.emplace_back();
  made.text = text;
  t.by_text.emplace(text, &made);
  return &made;
}

}  // namespace

ReasonId intern(const std::string& text) {
  Tables& t = tables();
  const std::lock_guard<std::mutex> lock(mutex());
  return intern_locked(t, text);
}

int find_op(const std::string& name) {
  Tables& t = tables();
  for (int i = 0; i < t.op_count.load(std::memory_order_acquire); ++i) {
    if (name == t.ops[i].name) return i;
  }
  return -1;
}

int op_index(const char* name) {
  Tables& t = tables();
  const std::lock_guard<std::mutex> lock(mutex());
  const int known = find_op(name);
  if (known >= 0) return known;
  const int made = t.op_count.load(std::memory_order_relaxed);
  TORCH_CHECK(made < kMaxOps, "torch_mi350: the ledger holds ", kMaxOps, " ops, got one more: ", name);
  t.ops[made].name = name;
  t.op_count.store(made + 1, std::memory_order_release);
  return made;
}

OpState& op_state(int op) { return tables().ops[op]; }
int op_count() { return tables().op_count.load(std::memory_order_acquire); }

void count_cpu(const char* op, uint64_t ns) {
  std::string name = op;
  if (name.rfind("aten::", 0) == 0) name.erase(0, 6);
  Tables& t = tables();
  const std::lock_guard<std::mutex> lock(mutex());
  CpuOp& entry = t.cpu[name];
  ++entry.calls;
  entry.ns += ns;
}

std::vector<OpReport> report_ops() {
  Tables& t = tables();
  const std::lock_guard<std::mutex> lock(mutex());
  std::vector<OpReport> all;
  for (int i = 0; i < op_count(); ++i) {
    OpReport one;
    one.op = t.ops[i].name;
    for (int k = 0; k < runtime::kernel_count(); ++k) {
      if (const uint64_t calls = t.ops[i].hits[k].load(std::memory_order_relaxed)) {
        one.hits[runtime::kernel_name(k).symbol] += calls;
      }
    }
    for (const ReasonText& reason : t.reasons) {
      if (const uint64_t calls = reason.misses[i].load(std::memory_order_relaxed))
        one.misses[reason.text] = calls;
    }
    if (!one.hits.empty() || !one.misses.empty()) all.push_back(std::move(one));
  }
  return all;
}

std::map<std::string, CpuOp> report_cpu() {
  Tables& t = tables();
  const std::lock_guard<std::mutex> lock(mutex());
  return {t.cpu.begin(), t.cpu.end()};
}

void reset_ledger() {
  Tables& t = tables();
  const std::lock_guard<std::mutex> lock(mutex());
  for (OpState& op : t.ops) {
    for (auto& hits : op.hits) hits.store(0, std::memory_order_relaxed);
  }
  for (ReasonText& reason : t.reasons) {
    for (auto& misses : reason.misses) misses.store(0, std::memory_order_relaxed);
  }
  t.cpu.clear();
}

void set_log(const std::string& mode) {
  const Log value = mode == "hits"     ? Log::kHits
                    : mode == "misses" ? Log::kMisses
                    : mode == "all"    ? Log::kAll
                                       : Log::kOff;
  TORCH_CHECK_VALUE(value != Log::kOff || mode.empty(),
                    "torch_mi350: TORCH_MI350_LOG must be hits, misses or all, got '", mode, "'");
  tables().log.store(static_cast<int>(value), std::memory_order_relaxed);
}

Log log_mode() { return static_cast<Log>(tables().log.load(std::memory_order_relaxed)); }

void log_line(const std::string& op, const std::string& problem, const Decision& decision) {
  const std::string answer = decision.refused != nullptr ? "stock: " + decision.refused->text
                                                         : runtime::kernel_name(decision.kernel).symbol;
  const std::string line = op + " " + problem + " -> " + answer;
  {
    Tables& t = tables();
    const std::lock_guard<std::mutex> lock(mutex());
    if (t.printed.size() >= kMaxLogLines || !t.printed.insert(line).second) return;
  }
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace mi350::route
