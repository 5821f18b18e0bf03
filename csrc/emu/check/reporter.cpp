// Collects the findings of one host thread.
#include "check/reporter.h"

#include <algorithm>

#include "check/findings.h"
#include "print.h"

namespace mi350::emu {

Reporter::Reporter(const Launch& l) : launch(l), settings(l.settings) {}

Finding* Reporter::open(const Wave& w, const Inst& i, const char* checker, Severity severity) {
  const auto [it, fresh] = by_place_.try_emplace(Key{checker, i.offset_bytes}, findings_.size());
  if (!fresh && severity <= findings_[it->second].severity) {
    ++findings_[it->second].count;
    return nullptr;
  }
  // An error takes the place of what was only advisory there.
  Finding& f = fresh ? findings_.emplace_back() : findings_[it->second];
  const uint64_t before = fresh ? 0 : f.count;
  f = {};
  f.count = before + 1;
  f.checker = checker;
  f.severity = severity;
  f.kernel = launch.kernel->name;
  f.pc = i.offset_bytes;
  f.disassembly = print(i);
  std::copy_n(w.group->id, 3, f.group);
  f.wave = w.wave_in_group;
  f.source = source_of(i);
  return &f;
}

std::string Reporter::source_of(const Inst& i) const { return launch.object->source_of(i); }

std::string Reporter::hand_over(bool* error) {
  constexpr size_t kShown = 8;
  std::string text;
  size_t errors = 0;
  for (Finding& f : findings_) {
    if (f.severity == Severity::kError && ++errors <= kShown) text += "  " + f.text();
    Findings::get().add(f);
  }
  if (errors > kShown) text += "  and " + std::to_string(errors - kShown) + " more\n";
  *error = errors != 0;
  findings_.clear();
  by_place_.clear();
  return text;
}

}  // namespace mi350::emu
