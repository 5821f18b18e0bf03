// Launches: what a kernel finds when it starts, workgroups and waves that wait for one another, and kernels that
// must be stopped without harm to the host.
#include <numeric>

#include "emulated_device.h"

namespace mi350::emu::test {
namespace {

std::vector<uint32_t> counting(size_t n, uint32_t from = 0) {
  std::vector<uint32_t> v(n);
  std::iota(v.begin(), v.end(), from);
  return v;
}

TEST(Dispatch, CopiesWithAPartialLastWaveAndTouchesNothingElse) {
  for (uint32_t n : {1u, 63u, 64u, 65u, 200u, 1000u}) {
    Buffer<uint32_t> in(counting(n, 5)), out(n, 0xdeadu);
    ASSERT_EQ(launch(kernel("basic", "copy_dwords"), {.gx = (n + 99) / 100, .bx = 100}, out.get(), in.get(), n),
              kSuccess)
        << report();
    EXPECT_EQ(out.read(), counting(n, 5)) << n;
  }
}

TEST(Dispatch, WideCopiesKeepEveryDwordOfEveryLane) {
  const uint32_t n = 300;
  Buffer<uint32_t> in(counting(4 * n)), out(4 * n);
  ASSERT_EQ(launch(kernel("basic", "copy_wide"), {.gx = 3, .bx = 128}, out.get(), in.get(), n), kSuccess)
      << report();
  EXPECT_EQ(out.read(), counting(4 * n));
}

TEST(Dispatch, ArgumentsOfEverySizeArriveThroughBothForms) {
  const uint64_t n = 100;
  const Shape s{.gx = 2, .bx = 64};
  hipFunction_t f = kernel("basic", "scale_add");
  Buffer<float> x(std::vector<float>(n, 2.0f)), y(std::vector<float>(n, 1.0f));
  ASSERT_EQ(launch(f, s, y.get(), x.get(), 1.5f, uint8_t{1}, n), kSuccess) << report();
  EXPECT_EQ(y.read(), std::vector<float>(n, 4.0f));

  struct { float *y, *x; float a; uint8_t flag; uint64_t n; } packed{y.get(), x.get(), -2.0f, 1, n};
  size_t bytes = sizeof packed;
  void* extra[] = {reinterpret_cast<void*>(1), &packed, reinterpret_cast<void*>(2), &bytes,
                   reinterpret_cast<void*>(3)};
  ASSERT_EQ(hipModuleLaunchKernel(f, 2, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra), kSuccess) << report();
  EXPECT_EQ(y.read(), std::vector<float>(n, 0.0f));
}

TEST(Dispatch, IdsOfAThreeDimensionalGridAreExact) {
  const Shape s{.gx = 3, .gy = 2, .gz = 2, .bx = 5, .by = 3, .bz = 7};
  const uint32_t items = 5 * 3 * 7, groups = 3 * 2 * 2;
  Buffer<uint32_t> out(7 * items * groups, 0xffffffffu);
  ASSERT_EQ(launch(kernel("basic", "ids"), s, out.get()), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t g = 0; g < groups; ++g) {
    for (uint32_t l = 0; l < items; ++l) {
      const uint32_t want[7] = {l % 5, l / 5 % 3, l / 15, g % 3, g / 3 % 2, g / 6, l};
      ASSERT_EQ(std::memcmp(&got[7 * (g * items + l)], want, sizeof want), 0)
          << "workgroup " << g << " work-item " << l;
    }
  }
}

TEST(Dispatch, HiddenArgumentsHoldCountsSizesAndZeroRemainders) {
  Buffer<uint32_t> out(6, 0xffffffffu);
  ASSERT_EQ(launch(kernel("basic", "hidden"), {.gx = 4, .gy = 3, .gz = 2, .bx = 64, .by = 2}, out.get()),
            kSuccess)
      << report();
  EXPECT_EQ(out.read(), (std::vector<uint32_t>{4, 3, 2, 64 | 2 << 16, 1, 0}));
}

TEST(Dispatch, LdsAndBarriersExchangeDataBetweenWaves) {
  Buffer<uint32_t> in(counting(1024)), out(1024);
  ASSERT_EQ(launch(kernel("basic", "transpose"), {.bx = 256}, out.get(), in.get()), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t n = 0; n < 1024; ++n) ASSERT_EQ(got[n], (n % 32) * 32 + n / 32);
}

TEST(Dispatch, DynamicLdsReaches160Kib) {
  const uint32_t n = 160 * 1024 / 4;
  Buffer<uint32_t> in(counting(n)), out(n);
  hipFunction_t f = kernel("basic", "reverse_dynamic");
  ASSERT_EQ(launch(f, {.bx = 1024, .lds = 4 * n}, out.get(), in.get(), n), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(got[i], n - 1 - i);
  EXPECT_EQ(launch(f, {.bx = 64, .lds = 4 * n + 1}, out.get(), in.get(), n), kInvalidValue);
  EXPECT_NE(report().find("163840"), std::string::npos) << report();
}

TEST(Dispatch, BarriersMatchByCountAtDifferentPcsAndWithoutEndedWaves) {
  Buffer<uint32_t> out(20, 0);
  ASSERT_EQ(launch(kernel("basic", "barriers_at_different_pcs"), {.bx = 256}, out.get()), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t n = 0; n < 5; ++n) {
    const uint32_t turn[3] = {n + 1, 10 + n, 20 + n};
    for (uint32_t wave = 0; wave < 3; ++wave)
      EXPECT_EQ(got[4 * n + wave], turn[0] * 100 + turn[(wave + 1) % 3]) << n << " " << wave;
  }
}

TEST(Dispatch, PrivateMemoryBelongsToTheLane) {
  Buffer<uint32_t> out(512);
  ASSERT_EQ(launch(kernel("basic", "scratch"), {.gx = 2, .bx = 256}, out.get(), 7u), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t g = 0; g < 512; ++g) {
    const uint32_t x = g % 256, n = (x + 7) & 63;
    ASSERT_EQ(got[g], n * n + x + (n == 7 ? 1000 : 0)) << g;
  }
}

TEST(Dispatch, AtomicsOfAllWorkgroupsAddUp) {
  Buffer<uint32_t> counters(4, 0);
  Buffer<float> sum(1, 0.0f);
  Buffer<uint64_t> wide(1, 5);
  ASSERT_EQ(launch(kernel("basic", "count"), {.gx = 100, .bx = 256}, counters.get(), sum.get(), wide.get()),
            kSuccess)
      << report();
  EXPECT_EQ(counters.read(), std::vector<uint32_t>(4, 6400));
  EXPECT_EQ(sum.read()[0], 12800.0f);
  EXPECT_EQ(wide.read()[0], 5u + 3 * 25600);
}

TEST(Dispatch, DeviceVariablesKeepTheirValueAndCanBeFound) {
  Buffer<uint32_t> out(1);
  hipModule_t m;
  ASSERT_EQ(hipModuleLoad(&m, MI350_TEST_OBJECT_DIR "/basic.hsaco"), kSuccess);
  hipFunction_t f;
  ASSERT_EQ(hipModuleGetFunction(&f, m, "bump"), kSuccess);
  void* address = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(hipModuleGetGlobal(&address, &bytes, m, "variable"), kSuccess) << report();
  EXPECT_EQ(bytes, 4u);
  ASSERT_EQ(launch(f, {}, out.get()), kSuccess) << report();
  ASSERT_EQ(launch(f, {}, out.get()), kSuccess) << report();
  EXPECT_EQ(out.read()[0], 43u);
  EXPECT_EQ(*static_cast<uint32_t*>(address), 43u);
  EXPECT_EQ(hipModuleUnload(m), kSuccess);
  EXPECT_EQ(launch(f, {}, out.get()), kInvalidHandle);
}

TEST(Dispatch, BufferLoadsClampEveryDwordAtNumRecords) {
  Buffer<uint32_t> in(counting(256, 1)), out(256, 9);
  const uint32_t bytes = 4 * 98;  // ends inside lane 24
  ASSERT_EQ(launch(kernel("basic", "buffer_load"), {}, out.get(), in.get(), bytes, 0u), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t n = 0; n < 256; ++n) ASSERT_EQ(got[n], n < 98 ? n + 1 : 0) << n;
}

TEST(Dispatch, BufferLoadsBehindTheSignBitReadZero) {
  Buffer<uint32_t> in(counting(256, 1)), out(256, 9);
  ASSERT_EQ(launch(kernel("basic", "buffer_load"), {}, out.get(), in.get(), 0x7ffffffeu, 0x80000000u), kSuccess)
      << report();
  EXPECT_EQ(out.read(), std::vector<uint32_t>(256, 0));
}

TEST(Dispatch, BufferStoresDropWhatLiesPastNumRecords) {
  Buffer<uint32_t> data(256, 9);
  ASSERT_EQ(launch(kernel("basic", "buffer_store"), {}, data.get(), 4u * 98), kSuccess) << report();
  const std::vector<uint32_t> got = data.read();
  for (uint32_t n = 0; n < 256; ++n) ASSERT_EQ(got[n], n < 98 ? n : 9) << n;
}

TEST(Dispatch, BufferAccessInsideNumRecordsButOutsideTheAllocationIsAFault) {
  Buffer<uint32_t> in(counting(98, 1)), out(256, 9);
  EXPECT_EQ(launch(kernel("basic", "buffer_load"), {}, out.get(), in.get(), 1024u, 0u), kIllegalAddress);
  EXPECT_NE(report().find("lane 24"), std::string::npos) << report();
}

TEST(Dispatch, LoadsToLdsPlaceLanesAtSixteenBytesAndWriteZerosOutOfRange) {
  Buffer<uint32_t> in(counting(256, 1)), out(320, 9);
  ASSERT_EQ(launch(kernel("basic", "buffer_load_lds"), {}, out.get(), in.get(), 4u * 100), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t n = 0; n < 320; ++n) ASSERT_EQ(got[n], n < 100 ? n + 1 : n < 256 ? 0 : 7) << n;
  ASSERT_EQ(launch(kernel("basic", "global_load_lds"), {}, out.get(), in.get()), kSuccess) << report();
  for (uint32_t n = 0; n < 64; ++n) ASSERT_EQ(out.read()[n], 64 - n) << n;
}

TEST(Dispatch, TransposeReadSpreadsRowsOverLanes) {
  std::vector<uint16_t> in(256);
  std::iota(in.begin(), in.end(), uint16_t{0});
  Buffer<uint16_t> source(in), out(256);
  ASSERT_EQ(launch(kernel("basic", "transpose_read"), {}, out.get(), source.get()), kSuccess) << report();
  const std::vector<uint16_t> got = out.read();
  for (uint32_t l = 0; l < 64; ++l) {
    for (uint32_t n = 0; n < 4; ++n) {
      const uint32_t row = l / 16 * 16 + 4 * n + l % 16 / 4;
      ASSERT_EQ(got[4 * l + n], 4 * row + l % 4) << "lane " << l << " element " << n;
    }
  }
}

TEST(Dispatch, LanePermutationsPullPushAndSwizzle) {
  Buffer<uint32_t> out(256);
  ASSERT_EQ(launch(kernel("basic", "lane_moves"), {}, out.get()), kSuccess) << report();
  const std::vector<uint32_t> got = out.read();
  for (uint32_t l = 0; l < 64; ++l) {
    EXPECT_EQ(got[l], (l + 5) % 64 * 3 + 1);
    EXPECT_EQ(got[64 + l], (l + 59) % 64 * 3 + 1);
    EXPECT_EQ(got[128 + l], (l ^ 1) * 3 + 1);
    EXPECT_EQ(got[192 + l], (l ^ 3) * 3 + 1);
  }
}

TEST(Dispatch, NarrowLoadsExtendAndNarrowStoresKeepTheirNeighbours) {
  std::vector<uint8_t> bytes(65, 200);
  std::vector<int16_t> words(65, -300);
  Buffer<uint8_t> b(bytes);
  Buffer<int16_t> s(words);
  Buffer<uint32_t> out(64);
  ASSERT_EQ(launch(kernel("basic", "narrow"), {}, b.get(), s.get(), out.get()), kSuccess) << report();
  EXPECT_EQ(out.read(), std::vector<uint32_t>(64, static_cast<uint32_t>(-100)));
  for (uint32_t n = 0; n < 65; ++n) {
    EXPECT_EQ(b.read()[n], n < 64 ? n + 1 : 200);
    EXPECT_EQ(s.read()[n], n < 64 ? -static_cast<int>(n) : -300);
  }
}

TEST(Dispatch, WorkgroupsGoRoundTheXcdsAndClocksNeverRunBackwards) {
  Buffer<uint64_t> clocks(40);
  Buffer<uint32_t> xcc(20);
  ASSERT_EQ(launch(kernel("basic", "clocks"), {.gx = 20}, clocks.get(), xcc.get()), kSuccess) << report();
  for (uint32_t g = 0; g < 20; ++g) {
    EXPECT_EQ(xcc.read()[g], g % 8);
    EXPECT_LE(clocks.read()[2 * g], clocks.read()[2 * g + 1]);
  }
}

class WaitingWorkgroups : public testing::TestWithParam<const char*> {
 protected:
  Setting threads_{"TORCH_MI350_EMU_THREADS", GetParam()};
};
INSTANTIATE_TEST_SUITE_P(HostThreads, WaitingWorkgroups, testing::Values("1", "2", "5"));

TEST_P(WaitingWorkgroups, EndInTheOrderOppositeToTheirStart) {
  const uint32_t groups = 100;
  Buffer<uint32_t> flags(groups, 0), order(groups, 0), tickets(1, 0);
  ASSERT_EQ(launch(kernel("faults", "wait_for_next"), {.gx = groups}, flags.get(), order.get(), tickets.get()),
            kSuccess)
      << report();
  for (uint32_t g = 0; g < groups; ++g) EXPECT_EQ(order.read()[g], groups - 1 - g);
}

TEST_P(WaitingWorkgroups, TakeTurnsAtASemaphorePolledByScalarLoads) {
  const uint32_t groups = 64;
  Buffer<uint32_t> semaphore(1, 0), sum(1, 0);
  ASSERT_EQ(launch(kernel("faults", "in_order"), {.gx = groups, .bx = 256}, semaphore.get(), sum.get()),
            kSuccess)
      << report();
  uint32_t want = 0;
  for (uint32_t g = 0; g < groups; ++g) want = want * 3 + g;
  EXPECT_EQ(sum.read()[0], want);
}

TEST_P(WaitingWorkgroups, MeetAtAGridBarrier) {
  const uint32_t groups = 256;
  Buffer<uint32_t> arrived(1, 0), out(groups * 128, 0);
  ASSERT_EQ(launch(kernel("faults", "grid_barrier"), {.gx = groups, .bx = 128}, arrived.get(), out.get()),
            kSuccess)
      << report();
  EXPECT_EQ(out.read(), std::vector<uint32_t>(groups * 128, 2 * groups));
}

TEST(StoppedKernels, EndlessLoopsEndInAnErrorThatNamesThePlace) {
  Setting patience("TORCH_MI350_EMU_PATIENCE", "1000000");
  Buffer<uint32_t> flag(1, 0), out(64, 0);
  EXPECT_EQ(launch(kernel("faults", "endless"), {.gx = 4}, out.get()), kTimeOut);
  EXPECT_NE(report().find("endless: the kernel does not end"), std::string::npos) << report();
  EXPECT_NE(report().find("s_cbranch"), std::string::npos) << report();
  EXPECT_EQ(launch(kernel("faults", "endless_poll"), {.gx = 4}, flag.get(), out.get()), kTimeOut);
  EXPECT_NE(report().find("load_dword"), std::string::npos) << report();
  EXPECT_EQ(launch(kernel("faults", "endless_barrier"), {.gx = 2, .bx = 256}, out.get()), kTimeOut);
  EXPECT_EQ(launch(kernel("faults", "wave_never_comes"), {.bx = 256}, out.get()), kTimeOut);
  EXPECT_NE(report().find("3 waves of the workgroup wait at a barrier"), std::string::npos) << report();
}

TEST(StoppedKernels, LongKernelsThatLoadNewThingsAreLeftAlone) {
  Setting patience("TORCH_MI350_EMU_PATIENCE", "100000");
  Buffer<uint32_t> in(counting(100000)), out(64, 0);
  ASSERT_EQ(launch(kernel("faults", "long_sum"), {}, out.get(), in.get(), 100000u, 100000u), kSuccess) << report();
}

TEST(StoppedKernels, UnknownWordsAreReportedWithWordsAndLastInstructions) {
  Buffer<uint32_t> out(2, 0);
  EXPECT_EQ(launch(kernel("faults", "unknown_instruction"), {}, out.get()), kLaunchFailure);
  const std::string text = report();
  EXPECT_NE(text.find("unknown instruction"), std::string::npos) << text;
  EXPECT_NE(text.find("ffffffff"), std::string::npos) << text;
  EXPECT_NE(text.find("global_store_dword"), std::string::npos) << text;
  EXPECT_NE(text.find("=>"), std::string::npos) << text;
  EXPECT_EQ(out.read(), (std::vector<uint32_t>{1, 0}));
}

TEST(StoppedKernels, TrapsAreErrors) {
  Buffer<uint32_t> out(2, 0);
  EXPECT_EQ(launch(kernel("faults", "traps"), {}, out.get()), kLaunchFailure);
  EXPECT_NE(report().find("s_trap"), std::string::npos) << report();
}

TEST(StoppedKernels, TheNextLaunchWorks) {
  Buffer<uint32_t> out(2, 0), in(counting(64)), copy(64);
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(launch(kernel("faults", "unknown_instruction"), {.gx = 50, .bx = 256}, out.get()), kLaunchFailure);
    EXPECT_EQ(launch(kernel("basic", "copy_dwords"), {}, copy.get(), in.get(), 64u), kSuccess) << report();
    EXPECT_EQ(copy.read(), counting(64));
  }
}

TEST(Launch, RefusesImpossibleShapesWithValues) {
  Buffer<uint32_t> in(counting(64)), out(64);
  hipFunction_t f = kernel("basic", "copy_dwords");
  EXPECT_EQ(launch(f, {.gx = 0}, out.get(), in.get(), 64u), kInvalidValue);
  EXPECT_EQ(launch(f, {.bx = 0}, out.get(), in.get(), 64u), kInvalidValue);
  EXPECT_EQ(launch(f, {.bx = 1025}, out.get(), in.get(), 64u), kInvalidValue);
  EXPECT_NE(report().find("copy_dwords: workgroup must have 1 to 1024 work-items, got (1025, 1, 1)"),
            std::string::npos)
      << report();
  EXPECT_EQ(launch(f, {.bx = 64, .by = 64, .bz = 64}, out.get(), in.get(), 64u), kInvalidValue);
  EXPECT_EQ(launch(nullptr, {}, out.get()), kInvalidHandle);
}

TEST(Launch, RefusesMissingAndShortArguments) {
  hipFunction_t f = kernel("basic", "copy_dwords");
  EXPECT_EQ(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr), kInvalidValue);
  uint64_t two[2] = {};
  size_t bytes = sizeof two;
  void* extra[] = {reinterpret_cast<void*>(1), two, reinterpret_cast<void*>(2), &bytes,
                   reinterpret_cast<void*>(3)};
  EXPECT_EQ(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra), kInvalidValue);
  EXPECT_NE(report().find("the argument buffer must have 20 bytes, got 16"), std::string::npos) << report();
  hipGetLastError();
}

TEST(Launch, CountersAndHookSeeTheLaunch) {
  static std::string seen;
  static uint64_t took;
  Buffer<uint32_t> in(counting(640)), out(640);
  mi350emuResetCounters();
  mi350emuSetLaunchHook([](const char* name, uint64_t begin, uint64_t end, void*) {
    seen = name;
    took = end - begin;
  });
  ASSERT_EQ(launch(kernel("basic", "copy_dwords"), {.gx = 10}, out.get(), in.get(), 640u), kSuccess);
  mi350emuSetLaunchHook(nullptr);
  Mi350EmuCounters c;
  mi350emuCounters(&c);
  EXPECT_EQ(seen, "copy_dwords");
  EXPECT_GT(took, 0u);
  EXPECT_EQ(c.launches, 1u);
  EXPECT_EQ(c.workgroups, 10u);
  EXPECT_GT(c.instructions, 50u);
  EXPECT_GE(c.global_bytes, 640u * 8);
}

}  // namespace
}  // namespace mi350::emu::test
