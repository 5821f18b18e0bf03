// The HIP surface: devices, memory, streams, events, modules; wrong handles and bad images are errors with a
// sentence.
#include "hip_types.h"


#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

#include "emulated_device.h"

namespace mi350::emu::test {
extern "C" {
hipError_t hipGetDeviceCount(int*);
hipError_t hipSetDevice(int);
hipError_t hipGetDevice(int*);
hipError_t hipDeviceGetAttribute(int*, int, int);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t*, int);
hipError_t hipMemGetInfo(size_t*, size_t*);
hipError_t hipMemset(void*, int, size_t);
hipError_t hipMemsetD32(void*, int, size_t);
hipError_t hipMemcpyAsync(void*, const void*, size_t, int, void*);
hipError_t hipMallocAsync(void**, size_t, void*);
hipError_t hipFreeAsync(void*, void*);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t*, const void*);
hipError_t hipStreamCreateWithFlags(void**, unsigned);
hipError_t hipStreamCreateWithPriority(void**, unsigned, int);
hipError_t hipStreamDestroy(void*);
hipError_t hipStreamSynchronize(void*);
hipError_t hipStreamIsCapturing(void*, int*);
hipError_t hipStreamWaitEvent(void*, void*, unsigned);
hipError_t hipEventCreateWithFlags(void**, unsigned);
hipError_t hipEventRecord(void*, void*);
hipError_t hipEventQuery(void*);
hipError_t hipEventElapsedTime(float*, void*, void*);
hipError_t hipEventDestroy(void*);
hipError_t hipPeekAtLastError();
const char* hipGetErrorString(hipError_t);
const char* hipGetErrorName(hipError_t);
hipError_t hipFuncSetAttribute(const void*, int, int);
hipError_t hipFuncGetAttribute(int*, int, void*);
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, size_t);
hipError_t hipExtModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t,
                                    void*, void**, void**, void*, void*, unsigned);
}
namespace {

TEST(HipDevice, LooksLikeAGfx950With256Units) {
  int count = 0, value = 0, device = -1;
  ASSERT_EQ(hipGetDeviceCount(&count), kSuccess);
  EXPECT_EQ(count, 1);
  hipDeviceProp_t p;
  ASSERT_EQ(hipGetDevicePropertiesR0600(&p, 0), kSuccess);
  EXPECT_STREQ(p.gcnArchName, "gfx950:sramecc+:xnack-");
  EXPECT_EQ(p.multiProcessorCount, 256);
  EXPECT_EQ(p.warpSize, 64);
  EXPECT_EQ(p.sharedMemPerBlock, 163840u);
  ASSERT_EQ(hipDeviceGetAttribute(&value, 63, 0), kSuccess);
  EXPECT_EQ(value, 256);
  ASSERT_EQ(hipDeviceGetAttribute(&value, 87, 0), kSuccess);
  EXPECT_EQ(value, 64);
  EXPECT_EQ(hipDeviceGetAttribute(&value, 54321, 0), kInvalidValue);
  EXPECT_EQ(hipSetDevice(1), 101);
  EXPECT_NE(report().find("device 1 does not exist"), std::string::npos) << report();
  ASSERT_EQ(hipGetDevice(&device), kSuccess);
  EXPECT_EQ(device, 0);
  EXPECT_STREQ(hipGetErrorString(700), "an illegal memory access was encountered");
  EXPECT_STREQ(hipGetErrorName(700), "hipErrorIllegalAddress");
}

TEST(HipDevice, LastErrorIsOfTheThreadAndClearedByReading) {
  hipGetLastError();
  EXPECT_EQ(hipSetDevice(-1), 101);
  std::thread([] { EXPECT_EQ(hipGetLastError(), kSuccess); }).join();
  EXPECT_EQ(hipPeekAtLastError(), 101);
  EXPECT_EQ(hipGetLastError(), 101);
  EXPECT_EQ(hipGetLastError(), kSuccess);
}

TEST(HipMemory, CopiesAndFillsStayInsideTheAllocation) {
  Buffer<uint32_t> a(10, 1), b(10, 2);
  std::vector<uint32_t> host(11, 3);
  EXPECT_EQ(hipMemcpy(a.get(), b.get(), 40, 3), kSuccess);
  EXPECT_EQ(a.read(), std::vector<uint32_t>(10, 2));
  EXPECT_EQ(hipMemcpy(a.get(), host.data(), 44, 1), kInvalidValue);
  EXPECT_NE(report().find("4 past the end"), std::string::npos) << report();
  EXPECT_EQ(hipMemcpy(host.data(), a.get() + 5, 24, 2), kInvalidValue);
  EXPECT_EQ(hipMemcpy(host.data(), host.data() + 1, 4, 1), kInvalidValue) << "host to device onto host memory";
  EXPECT_EQ(hipMemcpy(a.get(), host.data(), 4, 9), 21);
  EXPECT_EQ(hipMemset(a.get(), 0xff, 41), kInvalidValue);
  EXPECT_EQ(hipMemset(a.get(), 0x11, 40), kSuccess);
  EXPECT_EQ(a.read(), std::vector<uint32_t>(10, 0x11111111));
  EXPECT_EQ(hipMemsetD32(a.get(), 77, 10), kSuccess);
  EXPECT_EQ(a.read(), std::vector<uint32_t>(10, 77));
  EXPECT_EQ(hipMemsetD32(a.get(), 77, 11), kInvalidValue);
}

TEST(HipMemory, InfoAndPointerAttributesFollowTheAllocations) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(hipMemGetInfo(&before, &total), kSuccess);
  void* p = nullptr;
  ASSERT_EQ(hipMallocAsync(&p, 1 << 20, nullptr), kSuccess);
  ASSERT_EQ(hipMemGetInfo(&after, &total), kSuccess);
  EXPECT_EQ(before - after, 1u << 20);
  hipPointerAttribute_t a;
  ASSERT_EQ(hipPointerGetAttributes(&a, static_cast<char*>(p) + 100), kSuccess);
  EXPECT_EQ(a.type, 2);
  EXPECT_EQ(a.device, 0);
  EXPECT_EQ(hipPointerGetAttributes(&a, &total), kSuccess);
  EXPECT_EQ(a.type, 0);
  EXPECT_EQ(hipFreeAsync(p, nullptr), kSuccess);
}

TEST(HipStreams, HandlesAreCheckedAndStaleOnesRefused) {
  void *s = nullptr, *e = nullptr;
  int status = 5;
  ASSERT_EQ(hipStreamCreateWithPriority(&s, 1, -1), kSuccess);
  EXPECT_EQ(hipStreamIsCapturing(s, &status), kSuccess);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(hipEventCreateWithFlags(&e, 0), kSuccess);
  EXPECT_EQ(hipStreamWaitEvent(s, e, 0), kSuccess);
  EXPECT_EQ(hipStreamDestroy(s), kSuccess);
  EXPECT_EQ(hipStreamSynchronize(s), kStreamGone);
  EXPECT_EQ(hipEventRecord(e, s), kStreamGone);
  EXPECT_EQ(hipMemcpyAsync(&status, &status, 4, 0, s), kStreamGone);
  EXPECT_EQ(hipStreamDestroy(s), kStreamGone);
  EXPECT_EQ(hipEventDestroy(e), kSuccess);
  EXPECT_EQ(hipEventQuery(e), kInvalidHandle);
}

TEST(HipStreams, EventTimesSpanTheKernelBetweenThem) {
  void *a = nullptr, *b = nullptr, *untimed = nullptr;
  float ms = -1;
  ASSERT_EQ(hipEventCreateWithFlags(&a, 0), kSuccess);
  ASSERT_EQ(hipEventCreateWithFlags(&b, 0), kSuccess);
  ASSERT_EQ(hipEventCreateWithFlags(&untimed, 2), kSuccess);
  EXPECT_EQ(hipEventElapsedTime(&ms, a, b), kInvalidHandle) << "not recorded";
  Buffer<uint32_t> in(6400, 1), out(6400, 0);
  uint32_t* args[] = {out.get(), in.get()};
  uint32_t n = 6400;
  void* params[] = {&args[0], &args[1], &n};
  ASSERT_EQ(hipExtModuleLaunchKernel(kernel("basic", "copy_dwords"), 6400, 1, 1, 64, 1, 1, 0, nullptr, params,
                                     nullptr, a, b, 0),
            kSuccess);
  EXPECT_EQ(out.read(), in.read());
  ASSERT_EQ(hipEventElapsedTime(&ms, a, b), kSuccess);
  EXPECT_GT(ms, 0.0f);
  EXPECT_LT(ms, 5000.0f);
  EXPECT_EQ(hipEventRecord(untimed, nullptr), kSuccess);
  EXPECT_EQ(hipEventElapsedTime(&ms, a, untimed), kInvalidHandle);
  for (void* e : {a, b, untimed}) EXPECT_EQ(hipEventDestroy(e), kSuccess);
}

TEST(HipModules, BadImagesAreRefusedWithASentence) {
  hipModule_t m = nullptr;
  EXPECT_EQ(hipModuleLoad(&m, "/nonexistent/file.hsaco"), kFileNotFound);
  std::vector<char> junk(4096, 'x');
  EXPECT_EQ(hipModuleLoadData(&m, junk.data()), kInvalidImage);
  EXPECT_NE(report(), "");
  std::ifstream in(MI350_TEST_OBJECT_DIR "/basic.hsaco", std::ios::binary);
  std::vector<char> file((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(file.size(), 64u);
  EXPECT_EQ(hipModuleLoadData(&m, file.data()), kSuccess) << report();
  EXPECT_EQ(hipModuleUnload(m), kSuccess);
  EXPECT_EQ(hipModuleUnload(m), kInvalidHandle);
  std::vector<char> foreign = file;
  foreign[0x30] = 0x4c;  // e_flags: gfx942
  EXPECT_EQ(hipModuleLoadData(&m, foreign.data()), kNoBinary);
  EXPECT_NE(report().find("gfx950"), std::string::npos) << report();
}

TEST(HipModules, NamesAreLookedUpAndMissingOnesNamed) {
  hipModule_t m = nullptr;
  hipFunction_t f = nullptr, again = nullptr;
  ASSERT_EQ(hipModuleLoad(&m, MI350_TEST_OBJECT_DIR "/basic.hsaco"), kSuccess);
  EXPECT_EQ(hipModuleGetFunction(&f, m, "no_such_kernel"), kNotFound);
  EXPECT_NE(report().find("no_such_kernel"), std::string::npos) << report();
  ASSERT_EQ(hipModuleGetFunction(&f, m, "transpose"), kSuccess);
  ASSERT_EQ(hipModuleGetFunction(&again, m, "transpose"), kSuccess);
  EXPECT_EQ(f, again);
  int value = 0;
  EXPECT_EQ(hipFuncGetAttribute(&value, 1, f), kSuccess);
  EXPECT_EQ(value, 32 * 33 * 4);
  EXPECT_EQ(hipFuncSetAttribute(f, 8, 163840 - value), kSuccess);
  EXPECT_EQ(hipFuncSetAttribute(f, 8, 163840 - value + 1), kInvalidValue);
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 256, 70000), kSuccess);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 1024, 0), kSuccess);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(hipModuleUnload(m), kSuccess);
}

TEST(HipThreads, LaunchesFromManyThreadsAtOnceAreIndependent) {
  hipFunction_t f = kernel("basic", "scale_add");
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([f, t] {
      const uint64_t n = 5000;
      Buffer<float> x(std::vector<float>(n, static_cast<float>(t))), y(std::vector<float>(n, 1.0f));
      for (int k = 0; k < 10; ++k)
        EXPECT_EQ(launch(f, {.gx = 20, .bx = 256}, y.get(), x.get(), 1.0f, uint8_t{1}, n), kSuccess);
      EXPECT_EQ(y.read(), std::vector<float>(n, 1.0f + 10.0f * static_cast<float>(t)));
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace mi350::emu::test
