// Seeded faults on global memory and their twins; the modes and what they are told through.
#include "check_fixture.h"

namespace mi350::emu::test {
namespace {

class GlobalChecks : public CheckTest {
 protected:
  Buffer<uint32_t> out{256, 0};
  static hipFunction_t get(const char* name) { return kernel("check_global", name); }
};

TEST_F(GlobalChecks, AccessOutsideAnAllocationNamesItsLane) {
  Buffer<uint32_t> in(100, 3);
  EXPECT_EQ(launch(get("load_at"), {}, out.get(), in.get(), 50u), kIllegalAddress);
  const nlohmann::json f = only_finding();
  EXPECT_EQ(f["checker"], "global-bounds");
  EXPECT_EQ(f["severity"], "error");
  EXPECT_EQ(mnemonic(f), "global_load_dword");
  EXPECT_EQ(f["lane"], 50);
  EXPECT_EQ(f["address"], reinterpret_cast<uint64_t>(in.get() + 100));
  EXPECT_NE(f["message"].get<std::string>().find("0 bytes past the end of the device allocation of 400 bytes"),
            std::string::npos) << f.dump(1);
  mi350emuClearFindings();
  EXPECT_EQ(launch(get("load_at"), {}, out.get(), in.get(), 36u), kSuccess) << report();
  expect_clean();
}

TEST_F(GlobalChecks, AccessOutsideIsAnErrorForStoresWithoutStrictnessToo) {
  const Setting lenient("TORCH_MI350_EMU_STRICT", "0");
  EXPECT_EQ(launch(get("store_at"), {}, out.get(), 200u), kIllegalAddress);
  EXPECT_EQ(mnemonic(only_finding()), "global_store_dword");
  EXPECT_EQ(only_finding()["lane"], 56);
  mi350emuClearFindings();
  EXPECT_EQ(launch(get("store_at"), {}, out.get(), 192u), kSuccess) << report();
  expect_clean();
}

TEST_F(GlobalChecks, FreedMemoryIsNamedAsSuchAlthoughMoreWasAllocatedSince) {
  uint32_t* freed = nullptr;
  {
    Buffer<uint32_t> in(1000, 3);
    freed = in.get();
    EXPECT_EQ(launch(get("load_at"), {}, out.get(), freed, 0u), kSuccess) << report();
    expect_clean();
  }
  Buffer<uint32_t> next(1000, 4), after(1000, 4);
  EXPECT_NE(next.get(), freed);
  EXPECT_EQ(launch(get("load_at"), {}, out.get(), freed, 8u), kIllegalAddress);
  EXPECT_NE(only_finding()["message"].get<std::string>().find("byte 32 of the freed device allocation of 4000"),
            std::string::npos) << mi350emuFindings();
}

TEST_F(GlobalChecks, WhatTheDescriptorClampsIsNoFinding) {
  Buffer<uint32_t> in(100, 3);
  ASSERT_EQ(launch(get("buffer_load_at"), {}, out.get(), in.get(), 400u, 200u), kSuccess) << report();
  EXPECT_EQ(out.read()[49], 3u);
  EXPECT_EQ(out.read()[50], 0u);
  ASSERT_EQ(launch(get("buffer_store_at"), {}, in.get(), 400u, 200u), kSuccess) << report();
  ASSERT_EQ(launch(get("scalar_load_at"), {}, out.get(), in.get(), 400u, 400u), kSuccess) << report();
  expect_clean();
}

TEST_F(GlobalChecks, LoadsThatTheDescriptorAllowsOutsideAreErrorsOrAdvice) {
  Buffer<uint32_t> in(100, 3);
  EXPECT_EQ(launch(get("buffer_load_at"), {}, out.get(), in.get(), 800u, 200u), kIllegalAddress);
  EXPECT_EQ(only_finding()["severity"], "error");
  EXPECT_EQ(only_finding()["lane"], 50);
  EXPECT_EQ(launch(get("scalar_load_at"), {}, out.get(), in.get(), 800u, 400u), kIllegalAddress);
  EXPECT_EQ(mi350emuFindingCount(), 2u);

  const Setting lenient("TORCH_MI350_EMU_STRICT", "0");
  mi350emuClearFindings();
  ASSERT_EQ(launch(get("buffer_load_at"), {}, out.get(), in.get(), 800u, 200u), kSuccess) << report();
  EXPECT_EQ(out.read()[49], 3u);
  EXPECT_EQ(out.read()[50], 0u);
  EXPECT_EQ(only_finding()["severity"], "advisory");
  EXPECT_EQ(mnemonic(only_finding()), "buffer_load_dword");
  EXPECT_EQ(mi350emuErrorCount(), 0u);
  ASSERT_EQ(launch(get("scalar_load_at"), {}, out.get(), in.get(), 800u, 400u), kSuccess) << report();
  EXPECT_EQ(launch(get("buffer_store_at"), {}, in.get(), 800u, 200u), kIllegalAddress);
}

TEST_F(GlobalChecks, FastModeWithoutStrictnessLoadsZerosThere) {
  const Setting fast("TORCH_MI350_EMU", "fast");
  Buffer<uint32_t> in(100, 3);
  EXPECT_EQ(launch(get("buffer_load_at"), {}, out.get(), in.get(), 800u, 200u), kIllegalAddress);
  const Setting lenient("TORCH_MI350_EMU_STRICT", "0");
  ASSERT_EQ(launch(get("buffer_load_at"), {}, out.get(), in.get(), 800u, 200u), kSuccess) << report();
  EXPECT_EQ(out.read()[49], 3u);
  EXPECT_EQ(out.read()[50], 0u);
  EXPECT_EQ(launch(get("load_at"), {}, out.get(), in.get(), 50u), kIllegalAddress);
  expect_clean();
}

TEST_F(GlobalChecks, ReadsOfAnotherWorkgroupsStoresNeedReleaseAndAcquire) {
  Buffer<uint32_t> data(64, 0), flag(1, 0);
  ASSERT_EQ(launch(get("hand_over_fault"), {.gx = 2}, out.get(), data.get(), flag.get()), kSuccess) << report();
  const nlohmann::json f = only_finding();
  EXPECT_EQ(f["checker"], "group-order");
  EXPECT_EQ(f["severity"], "advisory");
  EXPECT_EQ(mnemonic(f), "global_load_dword");
  EXPECT_EQ(f["group"][0], 1);
  mi350emuClearFindings();
  Buffer<uint32_t> fresh(1, 0);
  ASSERT_EQ(launch(get("hand_over_fixed"), {.gx = 2}, out.get(), data.get(), fresh.get()), kSuccess) << report();
  EXPECT_EQ(out.read()[5], 12u);
  expect_clean();
}

TEST_F(GlobalChecks, BarriersThatNeverCompleteNameWhoIsMissing) {
  const Setting patience("TORCH_MI350_EMU_PATIENCE", "200000");
  Buffer<uint32_t> flag(1, 0);
  EXPECT_EQ(launch(get("meet_fault"), {.bx = 128}, out.get(), flag.get()), kTimeOut);
  const nlohmann::json f = only_finding();
  EXPECT_EQ(f["checker"], "barrier");
  EXPECT_EQ(mnemonic(f), "s_barrier");
  EXPECT_EQ(f["wave"], 0);
  EXPECT_NE(f["message"].get<std::string>().find("1 of 2 running waves wait at it, wave 1 does not arrive"),
            std::string::npos) << f.dump(1);
  mi350emuClearFindings();
  EXPECT_EQ(launch(get("meet_fixed"), {.bx = 128}, out.get(), flag.get()), kSuccess) << report();
  expect_clean();
}

TEST_F(GlobalChecks, LinesOfAnAccessAreCounted) {
  Buffer<uint32_t> in(64 * 32, 3);
  ASSERT_EQ(launch(get("apart"), {}, out.get(), in.get(), 32u), kSuccess) << report();
  EXPECT_EQ(counter("global_load_dword")["lines"], 64);
  EXPECT_EQ(counter("global_load_dword")["lines_ideal"], 2);
  expect_clean();
}

TEST_F(GlobalChecks, BadSettingsAreASentence) {
  for (const auto& [name, value] : std::map<const char*, const char*>{{"TORCH_MI350_EMU", "slow"},
                                                                      {"TORCH_MI350_EMU_DMA", "never"},
                                                                      {"TORCH_MI350_EMU_SEED", "x1"},
                                                                      {"TORCH_MI350_EMU_STRICT", "2"},
                                                                      {"TORCH_MI350_EMU_FINDINGS", "no"}}) {
    const Setting bad(name, value);
    EXPECT_EQ(launch(get("store_at"), {}, out.get(), 0u), kInvalidValue) << name;
    EXPECT_NE(report().find(std::string(name) + " must be"), std::string::npos) << report();
    EXPECT_NE(report().find(value), std::string::npos) << report();
  }
  EXPECT_EQ(mi350emuSetMode("slow"), 1);
}

TEST_F(GlobalChecks, TheModeMayBeSetByFunction) {
  const Setting fast("TORCH_MI350_EMU", "fast");
  Buffer<uint32_t> in(100, 3);
  EXPECT_EQ(mi350emuSetMode("check"), 0);
  mi350emuSetStrict(0);
  EXPECT_EQ(launch(get("buffer_load_at"), {}, out.get(), in.get(), 800u, 200u), kSuccess) << report();
  EXPECT_EQ(only_finding()["severity"], "advisory");
  EXPECT_EQ(mi350emuSetMode(nullptr), 0);
  mi350emuSetStrict(-1);
  mi350emuClearFindings();
  EXPECT_EQ(launch(get("buffer_load_at"), {}, out.get(), in.get(), 800u, 200u), kIllegalAddress);
  expect_clean();
}

}  // namespace
}  // namespace mi350::emu::test
