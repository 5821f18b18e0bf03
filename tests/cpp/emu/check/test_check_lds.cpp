// Seeded faults on LDS are found at their instruction, their corrected twins are clean and do not depend on the
// order of waves or on when loads to LDS land.
#include "check_fixture.h"

namespace mi350::emu::test {
namespace {

struct LdsFault {
  const char* kernel;
  unsigned threads;
  bool dma;
  const char *checker, *mnemonic, *says;
  int lane;
};
void PrintTo(const LdsFault& f, std::ostream* out) { *out << f.kernel; }

class LdsFaults : public CheckTest, public testing::WithParamInterface<LdsFault> {
 protected:
  Buffer<uint32_t> out{128, 0}, in{std::vector<uint32_t>(128, 5)};

  hipError_t run(const char* suffix) {
    const hipFunction_t f = kernel("check_lds", (std::string(GetParam().kernel) + suffix).c_str());
    const Shape shape{.bx = GetParam().threads};
    return GetParam().dma ? launch(f, shape, out.get(), in.get()) : launch(f, shape, out.get());
  }
};

INSTANTIATE_TEST_SUITE_P(
    Seeded, LdsFaults,
    testing::Values(
        LdsFault{"race", 128, false, "lds-race", "ds_write_b32", "overwrites a word that wave 0 reads, with no", 0},
        LdsFault{"unwaited", 128, false, "lds-race", "ds_read_b32", "without an lgkmcnt wait", 0},
        LdsFault{"overwrite", 128, false, "lds-race", "ds_read_b32", "reads a word that wave 0 writes, with no", 0},
        LdsFault{"bytes", 128, false, "lds-race", "ds_write_b8", "writes a word", 0},
        LdsFault{"sum", 128, false, "lds-race", "ds_add_u32", "overwrites a word that wave 0 reads", 0},
        LdsFault{"bounds", 64, false, "lds-bounds", "ds_read_b32", "at LDS offset 256", 61},
        LdsFault{"dma_unwaited", 64, true, "lds-dma", "ds_read_b32", "before the vmcnt wait of the wave's own", 0},
        LdsFault{"dma_own_write", 64, true, "lds-dma", "ds_write_b32", "before the vmcnt wait of the wave's own", 0},
        LdsFault{"dma_short_wait", 64, true, "lds-dma", "ds_read_b32", "before the vmcnt wait", 0},
        LdsFault{"dma_no_barrier", 128, true, "lds-dma", "global_load_lds_dword", "overwrites a word that wave 0", 0},
        LdsFault{"dma_late_wait", 128, true, "lds-dma", "ds_read_b32", "is in flight", 0},
        LdsFault{"dma_overwrite", 128, true, "lds-dma", "ds_read_b32", "no barrier after its wait", 0},
        LdsFault{"dma_vskip", 64, true, "lds-dma", "ds_read_b32", "before the vmcnt wait", 0},
        LdsFault{"dma_at_end", 64, true, "lds-dma", "s_endpgm", "ends while its load to LDS is in flight", -1}),
    [](const auto& info) { return std::string(info.param.kernel); });

TEST_P(LdsFaults, AreFoundAtTheirInstruction) {
  EXPECT_EQ(run("_fault"), kLaunchFailure);
  EXPECT_GE(mi350emuErrorCount(), 1u);
  const LdsFault& want = GetParam();
  // What is read too early is undefined as well, and may be found first.
  const nlohmann::json found = all()["findings"];
  nlohmann::json f = found[0];
  for (const nlohmann::json& other : found) {
    if (f["checker"] == "undefined-data") f = other;
  }
  record(f);
  EXPECT_EQ(f["checker"], want.checker) << f.dump(1);
  EXPECT_EQ(f["severity"], "error");
  EXPECT_EQ(mnemonic(f), want.mnemonic) << f.dump(1);
  EXPECT_NE(f["message"].get<std::string>().find(want.says), std::string::npos) << f.dump(1);
  EXPECT_EQ(f.value("lane", -1), want.lane) << f.dump(1);
  EXPECT_TRUE(f.value("source", "").starts_with("tests/cpp/emu/kernels/check_lds.hip:")) << f.dump(1);
  EXPECT_NE(report().find("check mode found errors"), std::string::npos) << report();
  EXPECT_NE(report().find(f["disassembly"].get<std::string>()), std::string::npos) << report();
}

TEST_P(LdsFaults, TwinsAreCleanInEveryOrder) {
  ASSERT_EQ(run("_fixed"), kSuccess) << report();
  const std::vector<uint32_t> want = out.read();
  for (const char* dma : {"early", "late"}) {
    const Setting when("TORCH_MI350_EMU_DMA", dma);
    for (const char* seed : {"1", "2", "3", "4", "5"}) {
      const Setting order("TORCH_MI350_EMU_SEED", seed);
      ASSERT_EQ(run("_fixed"), kSuccess) << dma << ", seed " << seed << "\n" << report();
      EXPECT_EQ(out.read(), want) << dma << ", seed " << seed;
    }
  }
  expect_clean();
}

TEST_P(LdsFaults, DoNotFailALaunchThatOnlyReports) {
  const Setting policy("TORCH_MI350_EMU_FINDINGS", "report");
  EXPECT_EQ(run("_fault"), kSuccess) << report();
  EXPECT_GE(mi350emuErrorCount(), 1u);
}

class LdsChecks : public CheckTest {};

TEST_F(LdsChecks, LateLoadsToLdsShowInTheResultOfAFault) {
  const Setting policy("TORCH_MI350_EMU_FINDINGS", "report");
  Buffer<uint32_t> out(64, 0), in(std::vector<uint32_t>(64, 5));
  const hipFunction_t f = kernel("check_lds", "dma_unwaited_fault");
  ASSERT_EQ(launch(f, {}, out.get(), in.get()), kSuccess) << report();
  EXPECT_EQ(out.read()[3], 5u);
  const Setting when("TORCH_MI350_EMU_DMA", "late");
  ASSERT_EQ(launch(f, {}, out.get(), in.get()), kSuccess) << report();
  EXPECT_EQ(out.read()[3], 0u);
}

TEST_F(LdsChecks, WaveOrderBySeedShowsInTheResultOfARace) {
  const Setting policy("TORCH_MI350_EMU_FINDINGS", "report");
  Buffer<uint32_t> out(128, 0);
  bool first_read_nothing = false, second_read_nothing = false;
  for (int seed = 0; seed < 20; ++seed) {
    const Setting order("TORCH_MI350_EMU_SEED", std::to_string(seed).c_str());
    ASSERT_EQ(launch(kernel("check_lds", "race_fault"), {.bx = 128}, out.get()), kSuccess) << report();
    const std::vector<uint32_t> got = out.read();
    first_read_nothing |= got[0] == 0;
    second_read_nothing |= got[64] == 0;
  }
  EXPECT_TRUE(first_read_nothing);
  EXPECT_TRUE(second_read_nothing);
}

TEST_F(LdsChecks, WritesThatVskipPassesOverDoNotHappen) {
  Buffer<uint32_t> out(64, 0), in(std::vector<uint32_t>(64, 5));
  ASSERT_EQ(launch(kernel("check_lds", "dma_vskip_fixed"), {}, out.get(), in.get()), kSuccess) << report();
  EXPECT_EQ(out.read(), std::vector<uint32_t>(64, 5));
}

// Proven kernels hand words over by running the waves in step; waits before the barrier they keep.
TEST_F(LdsChecks, OrderBetweenBarriersIsAdvisoryWithoutStrictness) {
  const Setting lenient("TORCH_MI350_EMU_STRICT", "0");
  Buffer<uint32_t> out(128, 0);
  for (const char* name : {"race_fault", "overwrite_fault"}) {
    mi350emuClearFindings();
    ASSERT_EQ(launch(kernel("check_lds", name), {.bx = 128}, out.get()), kSuccess) << name << "\n" << report();
    EXPECT_NE(all().dump().find("lds-race"), std::string::npos) << name;
    EXPECT_EQ(mi350emuErrorCount(), 0u) << name;
  }
  EXPECT_EQ(launch(kernel("check_lds", "unwaited_fault"), {.bx = 128}, out.get()), kLaunchFailure);
}

// Proven kernels hand tiles between waves by running them in step; their reads they wait for.
TEST_F(LdsChecks, OrderOfLoadsToLdsBetweenWavesIsAdvisoryWithoutStrictness) {
  const Setting lenient("TORCH_MI350_EMU_STRICT", "0");
  Buffer<uint32_t> out(128, 0), in(std::vector<uint32_t>(128, 5));
  for (const char* name : {"dma_no_barrier_fault", "dma_late_wait_fault", "dma_overwrite_fault"}) {
    mi350emuClearFindings();
    ASSERT_EQ(launch(kernel("check_lds", name), {.bx = 128}, out.get(), in.get()), kSuccess) << report();
    EXPECT_GE(mi350emuFindingCount(), 1u) << name;
    EXPECT_EQ(mi350emuErrorCount(), 0u) << name;
  }
  mi350emuClearFindings();
  ASSERT_EQ(launch(kernel("check_lds", "dma_own_write_fault"), {}, out.get(), in.get()), kSuccess) << report();
  EXPECT_EQ(only_finding()["severity"], "advisory");
  EXPECT_EQ(launch(kernel("check_lds", "dma_unwaited_fault"), {}, out.get(), in.get()), kLaunchFailure);
}

// Reads that were issued before a barrier and waited for after it: proven kernels load over their words.
TEST_F(LdsChecks, LateReadWaitsAreAdvisoryWithoutStrictness) {
  Buffer<uint32_t> out(128, 0), in(std::vector<uint32_t>(128, 5));
  const hipFunction_t f = kernel("check_lds", "late_read_fault");
  EXPECT_EQ(launch(f, {.bx = 128}, out.get(), in.get()), kLaunchFailure);
  EXPECT_EQ(only_finding()["severity"], "error");
  EXPECT_EQ(mnemonic(only_finding()), "global_load_lds_dword");
  mi350emuClearFindings();
  const Setting lenient("TORCH_MI350_EMU_STRICT", "0");
  ASSERT_EQ(launch(f, {.bx = 128}, out.get(), in.get()), kSuccess) << report();
  EXPECT_EQ(only_finding()["severity"], "advisory");
  mi350emuClearFindings();
  ASSERT_EQ(launch(kernel("check_lds", "late_read_fixed"), {.bx = 128}, out.get(), in.get()), kSuccess) << report();
  expect_clean();
}

TEST_F(LdsChecks, BankConflictsAreCountedNotReported) {
  Buffer<uint32_t> out(64, 0);
  ASSERT_EQ(launch(kernel("check_lds", "banks_fault"), {}, out.get()), kSuccess) << report();
  EXPECT_EQ(counter("ds_read_b32")["lds_cycles"], 64);
  EXPECT_EQ(counter("ds_read_b32")["lds_cycles_ideal"], 1);
  mi350emuClearFindings();
  ASSERT_EQ(launch(kernel("check_lds", "banks_fixed"), {.gx = 3}, out.get()), kSuccess) << report();
  EXPECT_EQ(counter("ds_read_b32")["lds_cycles"], 3);
  EXPECT_EQ(counter("ds_read_b32")["executions"], 3);
  expect_clean();
}

}  // namespace
}  // namespace mi350::emu::test
