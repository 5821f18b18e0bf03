// A launch in check mode and what it found.
#pragma once
#include <nlohmann/json.hpp>

#include "emu/emulated_device.h"

namespace mi350::emu::test {

class CheckTest : public testing::Test {
 protected:
  Setting mode_{"TORCH_MI350_EMU", "check"};

  void SetUp() override { mi350emuClearFindings(); }
  static nlohmann::json all() { return nlohmann::json::parse(mi350emuFindings()); }

  // The one finding; null and a failure if there is none or another number.
  static nlohmann::json only_finding() {
    const nlohmann::json findings = all()["findings"];
    EXPECT_EQ(findings.size(), 1u) << findings.dump(1);
    return findings.size() == 1 ? findings[0] : nlohmann::json();
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
