// Workgroups that wait for each other finish on every machine that holds one dependency group, whatever the
// order of start and the number of host threads; those that cannot finish are stopped with a report.
#include <tuple>

#include "emulated_device.h"

namespace mi350::emu::test {
extern "C" {
hipError_t hipModuleLaunchCooperativeKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                            unsigned, void*, void**);
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, size_t);
hipError_t hipDeviceGetAttribute(int*, int, int);
}
namespace {

constexpr hipError_t kCooperativeTooLarge = 720;

struct MachineCase {
  const char *name, *xcds, *units, *order, *threads;
};
void PrintTo(const MachineCase& m, std::ostream* out) { *out << m.name; }

class OnMachine : public testing::TestWithParam<MachineCase> {
 protected:
  Setting xcds_{"TORCH_MI350_EMU_XCDS", GetParam().xcds}, units_{"TORCH_MI350_EMU_CUS", GetParam().units};
  Setting order_{"TORCH_MI350_EMU_ORDER", GetParam().order};
  Setting threads_{"TORCH_MI350_EMU_THREADS", GetParam().threads};
};
INSTANTIATE_TEST_SUITE_P(
    Machines, OnMachine,
    testing::Values(MachineCase{"Board", "8", "256", "forward", "2"},
                    MachineCase{"BoardReversedOneThread", "8", "256", "reverse", "1"},
                    MachineCase{"OneDie", "1", "32", "forward", "1"},
                    MachineCase{"OneDieReversed", "1", "32", "reverse", "1"},
                    MachineCase{"OneDieReversedTwoThreads", "1", "32", "reverse", "2"},
                    MachineCase{"OneDieThreeThreads", "1", "32", "forward", "3"}),
    [](const auto& info) { return std::string(info.param.name); });

void expect_split_k(const char* name, uint32_t tiles, uint32_t slices, const Shape& shape) {
  const uint32_t items = 128;
  Buffer<uint32_t> c(tiles * items, 77), semaphores(tiles, 0);
  for (int turn = 0; turn < 2; ++turn) {  // the second launch needs the zeros that the first one left
    ASSERT_EQ(launch(kernel("progress", name), shape, c.get(), semaphores.get(), slices), kSuccess) << report();
    const std::vector<uint32_t> got = c.read();
    for (uint32_t n = 0; n < tiles * items; ++n)
      ASSERT_EQ(got[n], slices * (slices + 1) / 2 * (n / items + 1) + slices * (n % items)) << n;
    EXPECT_EQ(semaphores.read(), std::vector<uint32_t>(tiles, 0));
  }
}

TEST_P(OnMachine, SplitKWithAScalarSemaphoreFinishes) {
  expect_split_k("split_k_far", 24, 8, {.gx = 24, .gz = 8, .bx = 128});
  expect_split_k("split_k_near", 24, 8, {.gx = 8, .gy = 24, .bx = 128});
}

TEST_P(OnMachine, SplitKFinishesWithOneDependencyGroupResident) {
  Setting resident("TORCH_MI350_EMU_RESIDENT", "8");
  expect_split_k("split_k_near", 24, 8, {.gx = 8, .gy = 24, .bx = 128});
}

TEST_P(OnMachine, StreamKFinishes) {
  const uint32_t tiles = 13, iterations = 11, groups = 32, items = 64;
  Buffer<uint32_t> out(tiles * items, 0), parts(groups * items, 0), flags(groups, 0);
  ASSERT_EQ(launch(kernel("progress", "stream_k"), {.gx = groups}, out.get(), parts.get(), flags.get(), tiles,
                   iterations),
            kSuccess)
      << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t n = 0; n < tiles * items; ++n) {
    uint32_t want = 0;
    for (uint32_t i = 0; i < iterations; ++i) want += (n / items * iterations + i + 1) * 3 + n % items;
    ASSERT_EQ(got[n], want) << n;
  }
}

TEST_P(OnMachine, ProducersAndConsumersFinishInBothDirections) {
  const uint32_t groups = 300, items = 128;
  for (const char* name : {"chain_forward", "chain_backward"}) {
    Buffer<uint32_t> values(groups * items, 0), flags(groups, 0);
    ASSERT_EQ(launch(kernel("progress", name), {.gx = groups, .bx = items}, values.get(), flags.get()), kSuccess)
        << report();
    const std::vector<uint32_t> got = values.read();
    for (uint32_t g = 0; g < groups; ++g) {
      const uint32_t want = std::string(name) == "chain_forward" ? g + 1 : groups - g;
      ASSERT_EQ(got[g * items + 5], want) << name << " " << g;
    }
  }
}

class OnOneDie : public testing::Test {
 protected:
  Setting xcds_{"TORCH_MI350_EMU_XCDS", "1"}, units_{"TORCH_MI350_EMU_CUS", "32"};
  Setting patience_{"TORCH_MI350_EMU_PATIENCE", "400000"};
};

TEST_F(OnOneDie, ABarrierOverAllThatTheMachineHoldsFinishesAndOneMoreIsRefused) {
  const uint32_t items = 512;
  hipFunction_t f = kernel("faults", "grid_barrier");
  int per_unit = 0, units = 0;
  ASSERT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, f, items, 0), kSuccess);
  ASSERT_EQ(hipDeviceGetAttribute(&units, 63, 0), kSuccess);
  ASSERT_EQ(per_unit, 4) << "32 waves on a unit, 8 in a workgroup";
  ASSERT_EQ(units, 32);
  const auto groups = static_cast<uint32_t>(per_unit * units);
  for (const char* order : {"forward", "reverse"}) {
    for (const char* threads : {"1", "2"}) {
      Setting o("TORCH_MI350_EMU_ORDER", order), t("TORCH_MI350_EMU_THREADS", threads);
      Buffer<uint32_t> arrived(1, 0), out(groups * items, 0);
      ASSERT_EQ(launch(f, {.gx = groups, .bx = items}, arrived.get(), out.get()), kSuccess) << report();
      EXPECT_EQ(out.read(), std::vector<uint32_t>(groups * items, 2 * groups));
    }
  }
  Buffer<uint32_t> arrived(1, 0), out((groups + 1) * items, 0);
  uint32_t* args[] = {arrived.get(), out.get()};
  void* params[] = {&args[0], &args[1]};
  EXPECT_EQ(hipModuleLaunchCooperativeKernel(f, groups + 1, 1, 1, items, 1, 1, 0, nullptr, params),
            kCooperativeTooLarge);
  EXPECT_NE(report().find("can have 128 workgroups of this size on 32 compute units, got 129"), std::string::npos)
      << report();
  hipGetLastError();
  EXPECT_EQ(launch(f, {.gx = groups + 1, .bx = items}, arrived.get(), out.get()), kTimeOut);
  EXPECT_NE(report().find("128 workgroups are on the device and 1 wait for a place"), std::string::npos)
      << report();
  Buffer<uint32_t> again(1, 0);
  args[0] = again.get();
  EXPECT_EQ(hipModuleLaunchCooperativeKernel(f, groups, 1, 1, items, 1, 1, 0, nullptr, params), kSuccess)
      << report();
}

TEST_F(OnOneDie, AGroupThatDoesNotFitIsStoppedAndOneThatFitsIsNot) {
  const uint32_t groups = 60;
  for (const char* order : {"forward", "reverse"}) {
    Setting o("TORCH_MI350_EMU_ORDER", order);
    for (const auto& [resident, want] : {std::pair{"6", kSuccess}, std::pair{"5", kTimeOut}}) {
      Setting r("TORCH_MI350_EMU_RESIDENT", resident);
      Buffer<uint32_t> arrived(groups / 6, 0), out(groups * 64, 0);
      EXPECT_EQ(launch(kernel("progress", "neighbours_meet"), {.gx = groups}, arrived.get(), out.get(), 6u), want)
          << resident << " " << report();
      if (want == kSuccess) EXPECT_EQ(out.read(), std::vector<uint32_t>(groups * 64, 6));
    }
  }
}

TEST_F(OnOneDie, EndlessKernelsStillStopInBothOrders) {
  Buffer<uint32_t> flag(1, 0), out(64, 0);
  for (const char* order : {"forward", "reverse"}) {
    Setting o("TORCH_MI350_EMU_ORDER", order);
    EXPECT_EQ(launch(kernel("faults", "endless_poll"), {.gx = 4}, flag.get(), out.get()), kTimeOut);
    EXPECT_NE(report().find("endless_poll: the kernel does not end"), std::string::npos) << report();
    EXPECT_EQ(launch(kernel("faults", "endless_barrier"), {.gx = 2, .bx = 256}, out.get()), kTimeOut);
  }
}

struct Places { const char *xcds, *units; uint32_t dies, per_die; };
class PlacesOf : public testing::TestWithParam<Places> {};
INSTANTIATE_TEST_SUITE_P(Machines, PlacesOf,
                         testing::Values(Places{"8", "256", 8, 32}, Places{"1", "32", 1, 32}, Places{"2", "6", 2, 3}));

TEST_P(PlacesOf, WorkgroupsGoRoundTheDiesInOrderOfIdsWhateverTheOrderOfStart) {
  const auto [xcds, units, dies, per_die] = GetParam();
  Setting x("TORCH_MI350_EMU_XCDS", xcds), u("TORCH_MI350_EMU_CUS", units);
  for (const char* order : {"forward", "reverse"}) {
    Setting o("TORCH_MI350_EMU_ORDER", order);
    Buffer<uint32_t> xcc(40, 99), unit(40, 99);
    ASSERT_EQ(launch(kernel("progress", "places"), {.gx = 40}, xcc.get(), unit.get()), kSuccess) << report();
    for (uint32_t g = 0; g < 40; ++g) {
      EXPECT_EQ(xcc.read()[g], g % dies);
      EXPECT_EQ(unit.read()[g], g / dies % per_die);
    }
  }
}

}  // namespace
}  // namespace mi350::emu::test
