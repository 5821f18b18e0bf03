// Two devices: what belongs to one is an error on the other, with a sentence; peers, contexts, threads, and the
// functions that callers look up by name.
#include <dlfcn.h>

#include <thread>

#include "emulated_device.h"
#include "hip_types.h"

namespace mi350::emu::test {
extern "C" {
hipError_t hipGetDeviceCount(int*);
hipError_t hipSetDevice(int);
hipError_t hipGetDevice(int*);
hipError_t hipMemGetInfo(size_t*, size_t*);
hipError_t hipMemcpyPeer(void*, int, const void*, int, size_t);
hipError_t hipMemcpyPeerAsync(void*, int, const void*, int, size_t, void*);
hipError_t hipMallocAsync(void**, size_t, void*);
hipError_t hipMallocManaged(void**, size_t, unsigned);
hipError_t hipHostMalloc(void**, size_t, unsigned);
hipError_t hipHostFree(void*);
hipError_t hipHostRegister(void*, size_t, unsigned);
hipError_t hipHostUnregister(void*);
hipError_t hipHostGetDevicePointer(void**, void*, unsigned);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t*, const void*);
hipError_t hipPointerGetAttribute(void*, int, void*);
hipError_t hipStreamCreate(void**);
hipError_t hipStreamDestroy(void*);
hipError_t hipStreamGetDevice(void*, int*);
hipError_t hipStreamWaitEvent(void*, void*, unsigned);
hipError_t hipThreadExchangeStreamCaptureMode(int*);
hipError_t hipStreamBeginCapture(void*, int);
hipError_t hipStreamEndCapture(void*, void**);
hipError_t hipEventCreate(void**);
hipError_t hipEventRecord(void*, void*);
hipError_t hipEventElapsedTime(float*, void*, void*);
hipError_t hipEventDestroy(void*);
hipError_t hipDeviceCanAccessPeer(int*, int, int);
hipError_t hipDeviceEnablePeerAccess(int, unsigned);
hipError_t hipDeviceDisablePeerAccess(int);
hipError_t hipDeviceGetP2PAttribute(int*, int, int, int);
hipError_t hipDeviceGetPCIBusId(char*, int, int);
hipError_t hipDeviceGetByPCIBusId(int*, const char*);
hipError_t hipCtxGetCurrent(void**);
hipError_t hipCtxSetCurrent(void*);
hipError_t hipDevicePrimaryCtxRetain(void**, int);
hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG*, void*, void**, void**);
hipError_t hipExtModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t,
                                    void*, void**, void**, void*, void*, unsigned);
hipError_t hipMemcpy2D(void*, size_t, const void*, size_t, size_t, size_t, int);
hipError_t hipIpcGetMemHandle(void*, void*);
hipError_t hipGetFuncBySymbol(void**, const void*);
const char* hipGetErrorName(hipError_t);
}
namespace {

constexpr hipError_t kInvalidDevice = 101, kInvalidContext = 201, kPeerOn = 704, kPeerOff = 705, kNotSupported = 801;

void expect_sentence(const std::string& part) { EXPECT_NE(report().find(part), std::string::npos) << report(); }

class TwoDevices : public testing::Test {
 protected:
  Setting devices_{"TORCH_MI350_EMU_DEVICES", "2"};
  void TearDown() override {
    hipSetDevice(0);
    hipDeviceDisablePeerAccess(1);
    hipSetDevice(1);
    hipDeviceDisablePeerAccess(0);
    hipSetDevice(0);
    hipGetLastError();
  }
  // A module of the current device; the helper kernel() keeps one of device 0.
  static hipFunction_t load_here(const char* object, const char* name, hipModule_t* module) {
    hipFunction_t f = nullptr;
    const std::string path = std::string(MI350_TEST_OBJECT_DIR "/") + object + ".hsaco";
    EXPECT_EQ(hipModuleLoad(module, path.c_str()), kSuccess) << report();
    EXPECT_EQ(hipModuleGetFunction(&f, *module, name), kSuccess) << report();
    return f;
  }
};

TEST_F(TwoDevices, ThreadsHaveTheirOwnCurrentDevice) {
  int device = -1, count = 0;
  ASSERT_EQ(hipGetDeviceCount(&count), kSuccess);
  EXPECT_EQ(count, 2);
  ASSERT_EQ(hipSetDevice(1), kSuccess);
  std::thread([&] {
    EXPECT_EQ(hipGetDevice(&device), kSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(hipSetDevice(0), kSuccess);
  }).join();
  ASSERT_EQ(hipGetDevice(&device), kSuccess);
  EXPECT_EQ(device, 1);
  void *context = nullptr, *first = nullptr;
  ASSERT_EQ(hipCtxGetCurrent(&context), kSuccess);
  ASSERT_EQ(hipDevicePrimaryCtxRetain(&first, 0), kSuccess);
  EXPECT_NE(context, first);
  ASSERT_EQ(hipCtxSetCurrent(first), kSuccess);
  ASSERT_EQ(hipGetDevice(&device), kSuccess);
  EXPECT_EQ(device, 0);
}

TEST_F(TwoDevices, KernelsReachMemoryOfTheOtherOnlyAsPeers) {
  ASSERT_EQ(hipSetDevice(1), kSuccess);
  Buffer<uint32_t> far(64, 7);
  void *managed = nullptr, *pinned = nullptr;
  ASSERT_EQ(hipMallocManaged(&managed, 256, 1), kSuccess);
  ASSERT_EQ(hipHostMalloc(&pinned, 256, 0), kSuccess);
  ASSERT_EQ(hipSetDevice(0), kSuccess);
  Buffer<uint32_t> near(64, 0);
  hipFunction_t f = kernel("basic", "copy_dwords");
  EXPECT_EQ(launch(f, {}, near.get(), far.get(), 64u), kIllegalAddress);
  expect_sentence("on device 1, which kernels of device 0 cannot reach without hipDeviceEnablePeerAccess");
  EXPECT_EQ(launch(f, {}, far.get(), near.get(), 64u), kIllegalAddress);
  EXPECT_EQ(launch(f, {}, static_cast<uint32_t*>(managed), near.get(), 64u), kSuccess) << report();
  EXPECT_EQ(launch(f, {}, static_cast<uint32_t*>(pinned), near.get(), 64u), kSuccess) << report();
  ASSERT_EQ(hipDeviceEnablePeerAccess(1, 0), kSuccess);
  EXPECT_EQ(launch(f, {}, near.get(), far.get(), 64u), kSuccess) << report();
  EXPECT_EQ(near.read(), std::vector<uint32_t>(64, 7));
  ASSERT_EQ(hipDeviceDisablePeerAccess(1), kSuccess);
  EXPECT_EQ(launch(f, {}, near.get(), far.get(), 64u), kIllegalAddress);
  EXPECT_EQ(hipFree(managed), kSuccess);
  EXPECT_EQ(hipHostFree(pinned), kSuccess);
}

TEST_F(TwoDevices, PeerAccessAnswersAsHipDoes) {
  int can = -1;
  EXPECT_EQ(hipDeviceCanAccessPeer(&can, 0, 1), kSuccess);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(hipDeviceCanAccessPeer(&can, 0, 0), kSuccess);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(hipDeviceCanAccessPeer(&can, 0, 2), kInvalidDevice);
  EXPECT_EQ(hipDeviceDisablePeerAccess(1), kPeerOff);
  EXPECT_EQ(hipDeviceEnablePeerAccess(1, 0), kSuccess);
  EXPECT_EQ(hipDeviceEnablePeerAccess(1, 0), kPeerOn);
  EXPECT_EQ(hipDeviceEnablePeerAccess(0, 0), kInvalidDevice);
  EXPECT_EQ(hipDeviceEnablePeerAccess(1, 3), kInvalidValue);
  EXPECT_EQ(hipDeviceDisablePeerAccess(1), kSuccess);
  EXPECT_EQ(hipDeviceGetP2PAttribute(&can, 1, 0, 1), kSuccess);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(hipDeviceGetP2PAttribute(&can, 1, 1, 1), kInvalidValue);
  EXPECT_STREQ(hipGetErrorName(704), "hipErrorPeerAccessAlreadyEnabled");
}

TEST_F(TwoDevices, StreamsEventsModulesAndFunctionsBelongToOne) {
  hipModule_t module = nullptr;
  void *stream = nullptr, *event = nullptr, *here = nullptr;
  float ms = 0;
  int device = -1;
  ASSERT_EQ(hipSetDevice(1), kSuccess);
  hipFunction_t f = load_here("basic", "copy_dwords", &module), again = nullptr;
  ASSERT_EQ(hipStreamCreate(&stream), kSuccess);
  ASSERT_EQ(hipEventCreate(&event), kSuccess);
  Buffer<uint32_t> in(64, 3), out(64, 0);
  uint32_t *args[] = {out.get(), in.get()}, n = 64;
  void* params[] = {&args[0], &args[1], &n};
  const auto start = [&](hipFunction_t function, void* s) {
    return hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, s, params, nullptr);
  };
  EXPECT_EQ(start(f, stream), kSuccess) << report();
  EXPECT_EQ(out.read(), in.read());
  ASSERT_EQ(hipSetDevice(0), kSuccess);
  EXPECT_EQ(start(f, stream), kInvalidHandle);
  expect_sentence("copy_dwords: the stream belongs to device 1, the current device is 0");
  EXPECT_EQ(start(f, nullptr), kInvalidDevice);
  expect_sentence("copy_dwords: the kernel was loaded on device 1 and launched on device 0");
  EXPECT_EQ(hipModuleGetFunction(&again, module, "copy_dwords"), kInvalidContext);
  expect_sentence("the module was loaded on device 1, the current device is 0");
  ASSERT_EQ(hipEventCreate(&here), kSuccess);
  EXPECT_EQ(hipEventRecord(event, nullptr), kInvalidHandle);
  expect_sentence("the event belongs to device 1, the stream to device 0");
  EXPECT_EQ(hipEventRecord(event, stream), kSuccess) << "of the same device, whichever is current";
  EXPECT_EQ(hipEventRecord(here, nullptr), kSuccess);
  EXPECT_EQ(hipEventElapsedTime(&ms, here, event), kInvalidHandle);
  expect_sentence("the events belong to devices 0 and 1");
  EXPECT_EQ(hipStreamWaitEvent(stream, here, 0), kSuccess) << "streams may wait across devices";
  EXPECT_EQ(hipStreamGetDevice(stream, &device), kSuccess);
  EXPECT_EQ(device, 1);
  for (void* e : {event, here}) EXPECT_EQ(hipEventDestroy(e), kSuccess);
  EXPECT_EQ(hipStreamDestroy(stream), kSuccess);
  EXPECT_EQ(hipStreamDestroy(stream), kStreamGone);
  EXPECT_EQ(hipStreamDestroy(nullptr), kInvalidHandle);
  EXPECT_EQ(hipModuleUnload(module), kSuccess);
}

TEST_F(TwoDevices, CopiesBetweenThemSayWhereTheMemoryIs) {
  Buffer<uint32_t> a(64, 1);
  void* stream = nullptr;
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(hipSetDevice(1), kSuccess);
  Buffer<uint32_t> b(64, 2);
  ASSERT_EQ(hipStreamCreate(&stream), kSuccess);
  ASSERT_EQ(hipSetDevice(0), kSuccess);
  EXPECT_EQ(hipMemcpyPeer(b.get(), 1, a.get(), 0, 256), kSuccess) << report();
  EXPECT_EQ(b.read(), std::vector<uint32_t>(64, 1));
  EXPECT_EQ(hipMemcpyPeerAsync(a.get(), 0, b.get(), 1, 256, stream), kSuccess) << report();
  EXPECT_EQ(hipMemcpyPeer(b.get(), 0, a.get(), 1, 256), kInvalidValue);
  expect_sentence("lies on device 1, not on device 0");
  EXPECT_EQ(hipMemcpyPeer(b.get(), 1, a.get(), 5, 256), kInvalidDevice);
  EXPECT_EQ(hipMemcpy(a.get(), b.get(), 256, 4), kSuccess) << "a copy of kind default needs no peer access";
  hipPointerAttribute_t where;
  ASSERT_EQ(hipPointerGetAttributes(&where, b.get()), kSuccess);
  EXPECT_EQ(where.device, 1);
  int ordinal = -1;
  ASSERT_EQ(hipPointerGetAttribute(&ordinal, 9, b.get()), kSuccess);
  EXPECT_EQ(ordinal, 1);
  // Stream-ordered memory comes from the stream's device.
  void* p = nullptr;
  ASSERT_EQ(hipSetDevice(1), kSuccess);
  ASSERT_EQ(hipMemGetInfo(&before, &total), kSuccess);
  ASSERT_EQ(hipSetDevice(0), kSuccess);
  ASSERT_EQ(hipMallocAsync(&p, 1 << 20, stream), kSuccess);
  ASSERT_EQ(hipSetDevice(1), kSuccess);
  ASSERT_EQ(hipMemGetInfo(&after, &total), kSuccess);
  EXPECT_EQ(before - after, 1u << 20);
  EXPECT_EQ(hipFree(p), kSuccess);
  EXPECT_EQ(hipStreamDestroy(stream), kSuccess);
}

TEST_F(TwoDevices, AreFoundByTheirBus) {
  char id[16];
  int device = -1;
  ASSERT_EQ(hipDeviceGetPCIBusId(id, sizeof id, 1), kSuccess);
  ASSERT_EQ(hipDeviceGetByPCIBusId(&device, id), kSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(hipDeviceGetByPCIBusId(&device, "0000:07:00.0"), kInvalidDevice);
  EXPECT_EQ(hipDeviceGetByPCIBusId(&device, "somewhere"), kInvalidValue);
}

TEST(HipMemory, RegisteredHostMemoryJoinsTheMapAndLeavesIt) {
  std::vector<uint32_t> host(64, 0);
  Buffer<uint32_t> in(64, 9);
  hipFunction_t f = kernel("basic", "copy_dwords");
  EXPECT_EQ(launch(f, {}, host.data(), in.get(), 64u), kIllegalAddress);
  ASSERT_EQ(hipHostRegister(host.data(), 256, 0), kSuccess);
  EXPECT_EQ(hipHostRegister(host.data() + 8, 16, 0), 712);
  void* p = nullptr;
  EXPECT_EQ(hipHostGetDevicePointer(&p, host.data(), 0), kSuccess);
  EXPECT_EQ(p, host.data());
  EXPECT_EQ(launch(f, {}, host.data(), in.get(), 64u), kSuccess) << report();
  EXPECT_EQ(host, std::vector<uint32_t>(64, 9));
  ASSERT_EQ(hipHostUnregister(host.data()), kSuccess);
  EXPECT_EQ(hipHostUnregister(host.data()), 713);
  EXPECT_EQ(launch(f, {}, host.data(), in.get(), 64u), kIllegalAddress);
}

TEST(HipMemory, RowsWithAPitch) {
  std::vector<uint32_t> host(64, 0);
  Buffer<uint32_t> from(std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(hipMemcpy2D(host.data(), 40, from.get(), 16, 8, 2, 2), kSuccess) << report();
  EXPECT_EQ(host[0], 1u);
  EXPECT_EQ(host[1], 2u);
  EXPECT_EQ(host[2], 0u);
  EXPECT_EQ(host[10], 5u);
  EXPECT_EQ(hipMemcpy2D(host.data(), 4, from.get(), 16, 8, 2, 2), 12);
  EXPECT_EQ(hipMemcpy2D(host.data(), 40, from.get(), 16, 8, 3, 2), kInvalidValue) << "past the allocation";
}

// Both forms of passing arguments through every launch function; the size of `extra` is believed.
TEST(HipLaunch, ArgumentsComeAsPointersOrAsOneBuffer) {
  Buffer<uint32_t> in(64, 5), out(64, 0);
  struct { uint32_t *out, *in; uint32_t n; } buffer{out.get(), in.get(), 64};
  size_t bytes = 20;
  void* extra[] = {reinterpret_cast<void*>(1), &buffer, reinterpret_cast<void*>(2), &bytes,
                   reinterpret_cast<void*>(3)};
  void* params[] = {&buffer.out, &buffer.in, &buffer.n};
  hipFunction_t f = kernel("basic", "copy_dwords");
  HIP_LAUNCH_CONFIG config{1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, 0};
  const std::vector<uint32_t> want(64, 5);
  const auto check = [&](hipError_t e) {
    EXPECT_EQ(e, kSuccess) << report();
    EXPECT_EQ(out.read(), want);
    EXPECT_EQ(hipMemcpy(out.get(), std::vector<uint32_t>(64, 0).data(), 256, 1), kSuccess);
  };
  check(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr));
  check(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra));
  check(hipExtModuleLaunchKernel(f, 64, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra, nullptr, nullptr, 0));
  check(hipDrvLaunchKernelEx(&config, f, params, nullptr));
  check(hipDrvLaunchKernelEx(&config, f, nullptr, extra));
  EXPECT_EQ(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, params, extra), kInvalidValue);
  expect_sentence("must come through kernelParams or extra, got both");
}

// The codes of HIP's own matrix of launch errors, one row per launch function.
TEST(HipLaunch, ImpossibleShapesAreTheErrorsOfEachFunction) {
  Buffer<uint32_t> in(64, 5), out(64, 0);
  uint32_t *args[] = {out.get(), in.get()}, n = 64;
  void* params[] = {&args[0], &args[1], &n};
  hipFunction_t f = kernel("basic", "copy_dwords");
  struct Row { unsigned gx, bx, lds; hipError_t module, ext, driver; };
  constexpr hipError_t kConfiguration = kInvalidConfiguration;
  for (const Row& r : {Row{0, 1, 0, kInvalidValue, kInvalidValue, kConfiguration},
                       Row{1, 0, 0, kInvalidValue, kConfiguration, kConfiguration},
                       Row{1, 2048, 0, kInvalidValue, kConfiguration, kConfiguration},
                       Row{1, 64, 163841, kInvalidValue, kInvalidValue, kInvalidValue}}) {
    HIP_LAUNCH_CONFIG c{r.gx, 1, 1, r.bx, 1, 1, r.lds, nullptr, nullptr, 0};
    EXPECT_EQ(hipModuleLaunchKernel(f, r.gx, 1, 1, r.bx, 1, 1, r.lds, nullptr, params, nullptr), r.module);
    EXPECT_EQ(hipExtModuleLaunchKernel(f, r.gx * r.bx, 1, 1, r.bx, 1, 1, r.lds, nullptr, params, nullptr, nullptr,
                                       nullptr, 0),
              r.ext);
    EXPECT_EQ(hipDrvLaunchKernelEx(&c, f, params, nullptr), r.driver);
  }
  hipLaunchAttribute cluster{4, {}, {2, 1, 1}};
  HIP_LAUNCH_CONFIG c{2, 1, 1, 64, 1, 1, 0, nullptr, &cluster, 1};
  EXPECT_EQ(hipDrvLaunchKernelEx(&c, f, params, nullptr), kNotSupported);
  hipGetLastError();
}

TEST(HipStreams, CaptureIsRefusedAndItsModeKept) {
  int mode = 2;
  void* graph = nullptr;
  EXPECT_EQ(hipThreadExchangeStreamCaptureMode(&mode), kSuccess);
  EXPECT_EQ(mode, 0);
  EXPECT_EQ(hipThreadExchangeStreamCaptureMode(&mode), kSuccess);
  EXPECT_EQ(mode, 2);
  EXPECT_EQ(hipStreamBeginCapture(nullptr, 0), kNotSupported);
  EXPECT_EQ(hipStreamEndCapture(nullptr, &graph), kNotSupported);
  expect_sentence("hipStreamEndCapture: the emulator does not capture graphs");
  hipGetLastError();
}

TEST(HipRefused, FunctionsSayWhatTheEmulatorLacks) {
  char handle[64];
  void* f = nullptr;
  EXPECT_EQ(hipIpcGetMemHandle(handle, nullptr), kNotSupported);
  expect_sentence("hipIpcGetMemHandle: the emulator's memory belongs to one process");
  EXPECT_EQ(hipGetFuncBySymbol(&f, nullptr), 98);
  expect_sentence("load their code object with hipModuleLoad");
  hipGetLastError();
}

// The shared library, as a program that dlopens a HIP runtime sees it: Triton's driver, torch's callers, other
// launchers' names. hipGetProcAddress finds what dlsym finds.
TEST(HipLibrary, HasEveryFunctionThatCallersLookFor) {
  void* library = dlopen(MI350_EMULATOR, RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  using GetProc = hipError_t (*)(const char*, void**, int, uint64_t, int*);
  const auto get = reinterpret_cast<GetProc>(dlsym(library, "hipGetProcAddress"));
  ASSERT_NE(get, nullptr);
  static const char* const kNames[] = {
#include "hip_names.def"
  };
  for (const char* name : kNames) {
    void *f = nullptr, *direct = dlsym(library, name);
    int status = 9;
    EXPECT_NE(direct, nullptr) << name;
    EXPECT_EQ(get(name, &f, 70000000, 0, &status), kSuccess) << name;
    EXPECT_EQ(f, direct) << name;
    EXPECT_EQ(status, 0) << name;
  }
  void* f = nullptr;
  int status = 9;
  EXPECT_EQ(get("hipNoSuchFunction", &f, 70000000, 0, &status), kInvalidValue);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(f, nullptr);
}

}  // namespace
}  // namespace mi350::emu::test
