// Findings of the process: deduplicated, counted, as JSON.
#include "check/findings.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "check/settings.h"
#include "emu_api.h"

namespace mi350::emu {
namespace {

// A kernel in an endless variety of code objects must not fill the host's memory.
constexpr size_t kMostFindings = 10'000, kMostCounts = 100'000;

std::string hex(uint64_t v) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}
const char* name(Severity s) { return s == Severity::kError ? "error" : "advisory"; }

nlohmann::json to_json(const Finding& f) {
  nlohmann::json j{{"checker", f.checker}, {"severity", name(f.severity)}, {"kernel", f.kernel},
                   {"pc", f.pc}, {"disassembly", f.disassembly}, {"group", f.group},
                   {"wave", f.wave}, {"message", f.message}, {"count", f.count}};
  if (f.lane >= 0) j["lane"] = f.lane;
  if (f.has_address) j["address"] = f.address;
  if (!f.where.empty()) j["where"] = f.where;
  if (!f.source.empty()) j["source"] = f.source;
  return j;
}
nlohmann::json to_json(const AccessCount& c) {
  nlohmann::json j{{"kernel", c.kernel}, {"pc", c.pc}, {"disassembly", c.disassembly}, {"executions", c.executions}};
  if (c.lds_ideal != 0) j["lds_cycles"] = c.lds_cycles, j["lds_cycles_ideal"] = c.lds_ideal;
  if (c.lines_ideal != 0) j["lines"] = c.lines, j["lines_ideal"] = c.lines_ideal;
  if (!c.source.empty()) j["source"] = c.source;
  return j;
}

}  // namespace

std::string Finding::text() const {
  std::string out = std::string(name(severity)) + " [" + checker + "] " + message + "\n    at " + hex(pc) + ": " +
                    disassembly;
  if (!source.empty()) out += "   (" + source + ")";
  out += "\n    workgroup (" + std::to_string(group[0]) + ", " + std::to_string(group[1]) + ", " +
         std::to_string(group[2]) + "), wave " + std::to_string(wave);
  if (lane >= 0) out += ", lane " + std::to_string(lane);
  if (!where.empty()) out += ", " + where;
  if (has_address) out += ", address " + hex(address);
  if (count > 1) out += ", " + std::to_string(count) + " times";
  return out + "\n";
}

Findings& Findings::get() {
  static auto* findings = new Findings;  // never destroyed: launches may still run while the process exits
  return *findings;
}

void Findings::add(Finding f) {
  std::lock_guard lock(mutex_);
  const auto [it, fresh] = by_place_.try_emplace(f.kernel + '\n' + f.checker + '\n' + std::to_string(f.pc),
                                                 findings_.size());
  if (!fresh) {
    Finding& known = findings_[it->second];
    f.count += known.count;
    if (f.severity > known.severity) known = std::move(f);
    else known.count = f.count;
  } else if (findings_.size() < kMostFindings) {
    findings_.push_back(std::move(f));
  } else {
    by_place_.erase(it);
  }
}

void Findings::add(AccessCount c) {
  std::lock_guard lock(mutex_);
  const auto [it, fresh] = count_by_place_.try_emplace(c.kernel + '\n' + std::to_string(c.pc), counts_.size());
  if (!fresh) {
    AccessCount& known = counts_[it->second];
    known.executions += c.executions;
    known.lds_cycles += c.lds_cycles;
    known.lds_ideal += c.lds_ideal;
    known.lines += c.lines;
    known.lines_ideal += c.lines_ideal;
  } else if (counts_.size() < kMostCounts) {
    counts_.push_back(std::move(c));
  } else {
    count_by_place_.erase(it);
  }
}

void Findings::clear() {
  std::lock_guard lock(mutex_);
  findings_.clear();
  counts_.clear();
  by_place_.clear();
  count_by_place_.clear();
}

uint64_t Findings::count() const {
  std::lock_guard lock(mutex_);
  return findings_.size();
}
uint64_t Findings::errors() const {
  std::lock_guard lock(mutex_);
  uint64_t n = 0;
  for (const Finding& f : findings_) n += f.severity == Severity::kError;
  return n;
}

std::string Findings::json() const {
  std::lock_guard lock(mutex_);
  nlohmann::json j{{"findings", nlohmann::json::array()}, {"counters", nlohmann::json::array()}};
  for (const Finding& f : findings_) j["findings"].push_back(to_json(f));
  for (const AccessCount& c : counts_) j["counters"].push_back(to_json(c));
  return j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mi350::emu

#define MI350_API __attribute__((visibility("default")))
using mi350::emu::Findings;

MI350_API int mi350emuSetMode(const char* mode) { return mi350::emu::set_mode(mode) ? 0 : 1; }
MI350_API void mi350emuSetStrict(int strict) { mi350::emu::set_strict(strict); }
MI350_API uint64_t mi350emuFindingCount() { return Findings::get().count(); }
MI350_API uint64_t mi350emuErrorCount() { return Findings::get().errors(); }
MI350_API const char* mi350emuFindings() {
  static thread_local std::string text;
  text = Findings::get().json();
  return text.c_str();
}
MI350_API void mi350emuClearFindings() { Findings::get().clear(); }
