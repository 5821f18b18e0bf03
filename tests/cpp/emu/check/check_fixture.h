// A launch in check mode and what it found.
#pragma once
#include <nlohmann/json.hpp>

#include "emu/emulated_device.h"

namespace mi350::emu::test {

// Into the test's JSON output, from which tests/fault_table makes its table.
inline void record(const nlohmann::json& finding) {
  for (const char* field : {"checker", "severity", "pc", "disassembly", "lane"}) {
    if (!finding.contains(field)) continue;
    const auto& value = finding[field];
    testing::Test::RecordProperty(field, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

class CheckTest : public testing::Test {
 protected:
  Setting mode_{"TORCH_MI350_EMU", "check"};

  void SetUp() override { mi350emuClearFindings(); }
  static nlohmann::json all() { return nlohmann::json::parse(mi350emuFindings()); }

  // The one finding; null and a failure if there is none or another number.
  static nlohmann::json only_finding() {
    const nlohmann::json findings = all()["findings"];
    EXPECT_EQ(findings.size(), 1u) << findings.dump(1);
    if (findings.size() != 1) return {};
    record(findings[0]);
    return findings[0];
  }
  static void expect_clean() { EXPECT_EQ(mi350emuFindingCount(), 0u) << mi350emuFindings(); }
  static std::string mnemonic(const nlohmann::json& finding) {
    const std::string text = finding.value("disassembly", "");
    return text.substr(0, text.find(' '));
  }
  static nlohmann::json counter(const std::string& mnemonic) {
    const nlohmann::json found = all();
    for (const auto& c : found["counters"]) {
      if (c["disassembly"].get<std::string>().starts_with(mnemonic + " ")) return c;
    }
    ADD_FAILURE() << "no counter of " << mnemonic;
    return {};
  }
};

}  // namespace mi350::emu::test
