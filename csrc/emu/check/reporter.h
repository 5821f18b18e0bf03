// Where the parts of a checker put what they find. One per host thread.
#pragma once
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "check/finding.h"
#include "dispatch.h"

namespace mi350::emu {

class Reporter {
 public:
  explicit Reporter(const Launch& launch);

  // Moves the findings to the process's list; returns them as text, and whether one is an error.
  std::string hand_over(bool* error);

  // The finding to fill in; null if this checker has already spoken at this instruction: it is counted then.
  // Kernel, pc, disassembly, wave and source are filled in. `checker` must be a literal.
  Finding* open(const Wave& w, const Inst& i, const char* checker, Severity severity);
  // file:line of an instruction, or empty.
  std::string source_of(const Inst& i) const;
  // A rule that code proven on hardware breaks: an error for our objects, advisory for others'.
  Severity if_strict() const { return settings.strict ? Severity::kError : Severity::kAdvisory; }

  const Launch& launch;
  const Settings& settings;

 private:
  struct Key {
    const char* checker;
    uint64_t pc;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const { return reinterpret_cast<size_t>(k.checker) * 31 + k.pc; }
  };
  std::unordered_map<Key, size_t, Hash> by_place_;
  std::deque<Finding> findings_;
};

}  // namespace mi350::emu
