// The findings and per-instruction counts of this process, as mi350emuFindings() hands them out.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/finding.h"

namespace mi350::emu {

// What the memory instructions of a kernel cost beyond the ideal, by pc. Not findings.
struct AccessCount {
  std::string kernel, disassembly, source;
  uint64_t pc = 0, executions = 0;
  uint64_t lds_cycles = 0, lds_ideal = 0;      // bank phases taken, and without conflicts
  uint64_t lines = 0, lines_ideal = 0;         // 128-byte lines touched, and if the lanes lay side by side
};

class Findings {
 public:
  static Findings& get();

  // One per (kernel, checker, pc); later ones only raise the count.
  void add(Finding finding);
  void add(AccessCount count);
  void clear();
  uint64_t count() const;   // distinct findings
  uint64_t errors() const;
  std::string json() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Finding> findings_;
  std::vector<AccessCount> counts_;
  std::unordered_map<std::string, size_t> by_place_, count_by_place_;
};

}  // namespace mi350::emu
