// Device memory: exact bounds for kernels, guard pages for the host, freed memory, what reports say about it.
#include "memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include "emulated_device.h"

namespace mi350::emu::test {
extern "C" {
hipError_t hipHostRegister(void*, size_t, unsigned);
hipError_t hipHostUnregister(void*);
hipError_t hipHostMalloc(void**, size_t, unsigned);
hipError_t hipHostFree(void*);
}
namespace {

TEST(DeviceMemory, IsAlignedZeroedAndBelow2To47) {
  for (size_t bytes : {size_t{1}, size_t{255}, size_t{256}, size_t{4096}, size_t{5000}, size_t{3} << 20}) {
    void* p = nullptr;
    ASSERT_EQ(hipMalloc(&p, bytes), kSuccess);
    EXPECT_EQ(reinterpret_cast<uint64_t>(p) % 256, 0u);
    EXPECT_LT(reinterpret_cast<uint64_t>(p) + bytes, 1ull << 47);
    const auto* b = static_cast<const uint8_t*>(p);
    EXPECT_EQ(b[0] | b[bytes / 2] | b[bytes - 1], 0);
    EXPECT_EQ(hipFree(p), kSuccess);
    EXPECT_EQ(hipFree(p), kInvalidValue) << "freed twice";
  }
  void* nothing = &nothing;
  EXPECT_EQ(hipMalloc(&nothing, 0), kSuccess);
  EXPECT_EQ(nothing, nullptr);
}

TEST(DeviceMemory, HostOverrunsHitAGuardPage) {
  for (int64_t at : {int64_t{-4096}, int64_t{8192}}) {
    const pid_t child = fork();
    if (child == 0) {
      void* p = nullptr;
      hipMalloc(&p, 8192);
      static_cast<volatile uint8_t*>(p)[at] = 1;
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << at;
  }
}

TEST(DeviceMemory, KernelsMayTouchTheLastByteAndNotTheNext) {
  for (uint64_t bytes : {1ull, 100ull, 256ull, 4096ull, 10001ull}) {
    Buffer<uint8_t> in(bytes, 3), out(bytes, 0), one(1, 0);
    EXPECT_EQ(launch(kernel("faults", "load_byte"), {.bx = 1}, one.get(), in.get(), bytes - 1), kSuccess)
        << report();
    EXPECT_EQ(one.read()[0], 3);
    EXPECT_EQ(launch(kernel("faults", "load_byte"), {.bx = 1}, one.get(), in.get(), bytes), kIllegalAddress)
        << bytes;
    EXPECT_NE(
        report().find("0 bytes past the end of the device allocation of " + std::to_string(bytes) + " bytes"),
        std::string::npos)
        << report();
    EXPECT_EQ(launch(kernel("faults", "store_byte"), {.bx = 1}, out.get(), bytes - 1, uint8_t{7}), kSuccess)
        << report();
    EXPECT_EQ(out.read()[bytes - 1], 7);
    EXPECT_EQ(launch(kernel("faults", "store_byte"), {.bx = 1}, out.get(), bytes, uint8_t{7}), kIllegalAddress)
        << bytes;
    EXPECT_EQ(launch(kernel("faults", "store_byte"), {.bx = 1}, out.get(), ~0ull, uint8_t{7}), kIllegalAddress)
        << "one before the start";
  }
}

TEST(DeviceMemory, AWideLoadMayNotReachOneBytePastTheEnd) {
  Buffer<uint8_t> in(33, 1);
  Buffer<uint32_t> out(4, 0);
  EXPECT_EQ(launch(kernel("faults", "load_wide"), {.bx = 1}, out.get(), in.get(), uint64_t{17}), kSuccess)
      << report();
  EXPECT_EQ(out.read(), std::vector<uint32_t>(4, 0x01010101));
  EXPECT_EQ(launch(kernel("faults", "load_wide"), {.bx = 1}, out.get(), in.get(), uint64_t{18}), kIllegalAddress);
  EXPECT_NE(report().find("lane 0 loads 16 bytes"), std::string::npos) << report();
}

TEST(DeviceMemory, OneBadLaneAmong64IsNamed) {
  Buffer<uint32_t> out(1, 0);
  EXPECT_EQ(launch(kernel("faults", "store_one_lane"), {}, out.get(), 1u, 37u), kIllegalAddress);
  EXPECT_NE(report().find("lane 37 stores 4 bytes"), std::string::npos) << report();
  EXPECT_NE(report().find("global_store_dword"), std::string::npos) << report();
}

TEST(DeviceMemory, ScalarLoadsAreHeldToTheBoundsToo) {
  Buffer<uint32_t> in(16, 4), out(1, 0);
  EXPECT_EQ(launch(kernel("faults", "load_scalar"), {.bx = 1}, out.get(), in.get(), 15u), kSuccess) << report();
  EXPECT_EQ(launch(kernel("faults", "load_scalar"), {.bx = 1}, out.get(), in.get(), 16u), kIllegalAddress);
  EXPECT_NE(report().find("s_load_dword"), std::string::npos) << report();
}

TEST(DeviceMemory, UseAfterFreeIsReportedAsSuch) {
  Buffer<uint8_t> one(1, 0);
  void* p = nullptr;
  ASSERT_EQ(hipMalloc(&p, 5000), kSuccess);
  ASSERT_EQ(hipFree(p), kSuccess);
  EXPECT_EQ(launch(kernel("faults", "load_byte"), {.bx = 1}, one.get(), static_cast<uint8_t*>(p), uint64_t{40}),
            kIllegalAddress);
  EXPECT_NE(report().find("byte 40 of the freed device allocation of 5000 bytes"), std::string::npos) << report();
}

TEST(DeviceMemory, HostMemoryIsReachableOnlyWhileRegistered) {
  std::vector<uint8_t> host(1000, 9);
  Buffer<uint8_t> one(1, 0);
  hipFunction_t f = kernel("faults", "load_byte");
  EXPECT_EQ(launch(f, {.bx = 1}, one.get(), host.data(), uint64_t{999}), kIllegalAddress);
  ASSERT_EQ(hipHostRegister(host.data(), host.size(), 0), kSuccess);
  EXPECT_EQ(hipHostRegister(host.data() + 10, 10, 0), 712);
  EXPECT_EQ(launch(f, {.bx = 1}, one.get(), host.data(), uint64_t{999}), kSuccess) << report();
  EXPECT_EQ(one.read()[0], 9);
  EXPECT_EQ(launch(f, {.bx = 1}, one.get(), host.data(), uint64_t{1000}), kIllegalAddress);
  ASSERT_EQ(hipHostUnregister(host.data()), kSuccess);
  EXPECT_EQ(hipHostUnregister(host.data()), 713);
  EXPECT_EQ(launch(f, {.bx = 1}, one.get(), host.data(), uint64_t{999}), kIllegalAddress);
  void* pinned = nullptr;
  ASSERT_EQ(hipHostMalloc(&pinned, 77, 0), kSuccess);
  EXPECT_EQ(launch(f, {.bx = 1}, one.get(), static_cast<uint8_t*>(pinned), uint64_t{76}), kSuccess) << report();
  EXPECT_EQ(hipFree(pinned), kInvalidValue) << "pinned memory is not hipFree's";
  EXPECT_EQ(hipHostFree(pinned), kSuccess);
}

TEST(DeviceMemory, NullPointersAreReported) {
  EXPECT_EQ(launch(kernel("faults", "store_byte"), {.bx = 1}, static_cast<uint8_t*>(nullptr), uint64_t{0},
                   uint8_t{1}),
            kIllegalAddress);
  EXPECT_NE(report().find("0x0: not near any allocation"), std::string::npos) << report();
}

TEST(AllocationMap, RefusesOverlapsAndFindsByEveryByte) {
  AllocationMap& map = AllocationMap::get();
  constexpr uint64_t kBase = 0x500000000000;
  ASSERT_TRUE(map.add(kBase, 100, RangeKind::kRegistered, 0));
  EXPECT_FALSE(map.add(kBase + 99, 10, RangeKind::kRegistered, 0));
  EXPECT_FALSE(map.add(kBase - 9, 10, RangeKind::kRegistered, 0));
  EXPECT_TRUE(map.add(kBase + 100, 10, RangeKind::kRegistered, 0));
  Range r;
  EXPECT_TRUE(map.find(kBase + 99, &r));
  EXPECT_EQ(r.lo, kBase);
  EXPECT_TRUE(map.find(kBase + 100, &r));
  EXPECT_EQ(r.lo, kBase + 100);
  EXPECT_FALSE(map.find(kBase + 110, &r));
  EXPECT_FALSE(map.remove(kBase, {RangeKind::kDevice})) << "of another kind";
  EXPECT_TRUE(map.remove(kBase, {RangeKind::kRegistered}));
  EXPECT_TRUE(map.remove(kBase + 100, {RangeKind::kRegistered}));
}

}  // namespace
}  // namespace mi350::emu::test
