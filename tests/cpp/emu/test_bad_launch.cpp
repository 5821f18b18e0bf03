// Impossible launches, hostile arguments, dead handles and instructions that no kernel should hold.
#include "bad_input.h"

extern "C" int hipExtModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        size_t, void*, void**, void**, void*, void*, unsigned);

namespace mi350::emu::test {
namespace {

TEST(BadLaunch, ImpossibleGridsAndWorkgroups) {
  const Module m(spec());
  const auto shape = [&](const Shape& s, const char* text) {
    expect(launch_plain(m.function, s), kInvalidValue, text);
  };
  shape({.gx = 0}, "must not be empty");
  shape({.gy = 0}, "must not be empty");
  shape({.gz = 0}, "must not be empty");
  shape({.gx = 0xffffffff}, "32 bits");
  shape({.gx = 1u << 26, .bx = 64}, "32 bits");
  shape({.gx = 65536, .gy = 65536, .bx = 1}, "at most 4294967295 workgroups");
  shape({.gx = 1u << 31, .gy = 1u << 31, .gz = 4, .bx = 1}, "at most 4294967295 workgroups");
  shape({.gx = 0xffffffff, .gy = 0xffffffff, .gz = 0xffffffff, .bx = 1}, "at most 4294967295 workgroups");
  shape({.bx = 0}, "1 to 1024");
  shape({.by = 0}, "1 to 1024");
  shape({.bx = 1025}, "1 to 1024");
  shape({.bx = 32, .by = 33}, "1 to 1024");
  shape({.bx = 1u << 31, .by = 2, .bz = 1}, "1 to 1024");
  shape({.bx = 1u << 22, .by = 1u << 22, .bz = 1u << 21}, "1 to 1024");
  expect(hipExtModuleLaunchKernel(m.function, 0, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr, nullptr,
                                  nullptr, 0),
         kInvalidValue, "must not be empty");
  expect(hipExtModuleLaunchKernel(m.function, 65, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr, nullptr,
                                  nullptr, 0),
         kInvalidValue, "whole workgroups");
}

TEST(BadLaunch, LdsOverTheLimit) {
  KernelSpec s = spec();
  s.group_segment_bytes = 1024;
  const Module m(s);
  EXPECT_EQ(launch_plain(m.function, {.lds = 163840 - 1024}), kSuccess) << report();
  expect(launch_plain(m.function, {.lds = 163840 - 1023}), kInvalidValue, "163840 bytes of LDS");
  expect(launch_plain(m.function, {.lds = 0xffffffff}), kInvalidValue, "163840 bytes of LDS");
  // The size is wider here than in the other entry points.
  expect(hipExtModuleLaunchKernel(m.function, 64, 1, 1, 64, 1, 1, size_t{1} << 32, nullptr, nullptr, nullptr,
                                  nullptr, nullptr, 0),
         kInvalidValue, "163840 bytes of LDS");
}

TEST(BadLaunch, ArgumentBuffersThatDoNotFit) {
  const Module m(spec());
  uint8_t data[64] = {};
  const auto extra = [&](std::vector<void*> e) {
    return hipModuleLaunchKernel(m.function, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, e.data());
  };
  const auto key = [](uintptr_t n) { return reinterpret_cast<void*>(n); };
  const auto sized = [&](size_t bytes) { return extra({key(1), data, key(2), &bytes, key(3)}); };
  EXPECT_EQ(sized(64), kSuccess) << report();
  EXPECT_EQ(sized(12), kSuccess) << "all explicit arguments";
  expect(sized(11), kInvalidValue, "must have 12 bytes, got 11");
  expect(sized(0), kInvalidValue, "must have 12 bytes");
  expect(sized(~size_t{0}), kInvalidValue, "argument buffer of 18446744073709551615 bytes");
  size_t bytes = 64;
  expect(extra({key(1), data, key(3)}), kInvalidValue, "must have 12 bytes");
  expect(extra({key(2), &bytes, key(3)}), kInvalidValue, "must have 12 bytes");
  expect(extra({key(1), nullptr, key(2), &bytes, key(3)}), kInvalidValue, "must have 12 bytes");
  expect(extra({key(1), data, key(2), nullptr, key(3)}), kInvalidValue, "must hold HIP_LAUNCH_PARAM");
  expect(extra({key(77), data, key(3)}), kInvalidValue, "got key 77");
  expect(extra({key(1), data, key(1), data, key(1), data, key(1), data, key(1), data, key(1), data}),
         kInvalidValue, "no HIP_LAUNCH_PARAM_END");
  void* params[] = {data, nullptr};
  expect(hipModuleLaunchKernel(m.function, 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr), kInvalidValue,
         "argument 1 (4 bytes at offset 8) has no value");
  expect(hipModuleLaunchKernel(m.function, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr), kInvalidValue,
         "argument 0");
}

TEST(BadLaunch, NullPointersAndDeadHandles) {
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  const Bytes good = make_object(spec());
  expect(hipModuleLoadData(nullptr, good.data()), kInvalidValue, "null pointer");
  expect(hipModuleLoadData(&module, nullptr), kInvalidValue, "null pointer");
  expect(hipModuleLoadData(&module, reinterpret_cast<void*>(8)), kInvalidImage, "neither");
  ASSERT_EQ(hipModuleLoadData(&module, good.data()), kSuccess);
  expect(hipModuleGetFunction(nullptr, module, "k"), kInvalidValue, "null pointer");
  expect(hipModuleGetFunction(&function, module, nullptr), kInvalidValue, "null pointer");
  expect(hipModuleGetFunction(&function, module, ""), kNotFound, "no kernel");
  expect(hipModuleGetFunction(&function, nullptr, "k"), kInvalidHandle, "unloaded module");
  ASSERT_EQ(hipModuleGetFunction(&function, module, "k"), kSuccess);
  ASSERT_EQ(hipModuleUnload(module), kSuccess);
  expect(hipModuleUnload(module), kInvalidHandle, "unloaded module");
  expect(hipModuleUnload(nullptr), kInvalidHandle, "unloaded module");
  expect(hipModuleGetFunction(&function, module, "k"), kInvalidHandle, "unloaded module");
  expect(launch_plain(function), kInvalidHandle, "unloaded");
  expect(launch_plain(nullptr), kInvalidHandle, "unknown function");
  expect(launch_plain(reinterpret_cast<hipFunction_t>(&module)), kInvalidHandle, "unknown function");
}

// A tuple that begins in the register file and ends past it is no instruction.
TEST(BadLaunch, RegisterTuplesPastTheEndOfTheirFile) {
  const std::vector<uint32_t> programs[] = {
      {0xc0121f80, 0},           // s_load_dwordx16 s[126:141], s[0:1], 0x0
      {0xdc5c8000, 0xfe040000},  // global_load_dwordx4 v[254:257], v0, s[4:5]
      {0xdc508000, 0x007f00ff},  // global_load_dword v0, v[255:256], off
      {0xd3b700fe, 0x04021104},  // v_mfma_f32_32x32x16_bf16 v[254:269], v[4:7], v[8:11], v[0:15]
      {0xc022013f, 0},           // s_buffer_load_dword s4, s[126:129], 0x0
  };
  for (const auto& words : programs) {
    std::vector<uint32_t> all = words;
    all.push_back(kEnd);
    const Module m(spec(all));
    ASSERT_EQ(m.error, kSuccess) << report();
    expect(launch_plain(m.function), kLaunchFailure, "instruction");
  }
}

// for (;;) store: progress, so patience never runs out, and the launch's own limit ends it.
TEST(BadLaunch, AnEndlessKernelThatStoresStopsAtTheLimit) {
  const Setting limit("TORCH_MI350_EMU_LIMIT", "100000"), threads("TORCH_MI350_EMU_THREADS", "1");
  Buffer<uint32_t> out(64);
  // s_load_dwordx2 s[4:5], s[0:1], 0x0; loop: global_store_dword v1, v1, s[4:5]; s_branch loop
  const Module m(spec({0xc0060100, 0, 0xdc708000, 0x00040101, 0xbf82fffd, kEnd}));
  ASSERT_EQ(m.error, kSuccess) << report();
  void* pointer = out.get();
  void* params[] = {&pointer, &argument_storage[1], nullptr};
  expect(hipModuleLaunchKernel(m.function, 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr), kTimeOut,
         "TORCH_MI350_EMU_LIMIT");
}

// Found by the fuzzer: each of these ended the process once.
TEST(BadLaunch, InstructionsThatUsedToCrash) {
  Buffer<uint32_t> data(1024);
  const std::vector<uint32_t> start = {0xc0060100, 0, 0x24020084};  // s[4:5] = buffer, v1 = lane * 16
  const std::vector<uint32_t> programs[] = {
      {0xd3c28700,
       0x04020b04},  // v_mfma_f32_4x4x1_16b_f32 a[0:3], v4, v5, a[0:3] cbsz:7: 64 >> 7 lanes a group
      {0xd3b70000, 0x04021180},  // v_mfma_f32_32x32x16_bf16 with an inline constant for A
      {0xdc5c8007, 0x04040001},  // global_load_dwordx4 v[4:7], v1, s[4:5] offset:7
      {0xdc7c8007, 0x00040401},  // global_store_dwordx4 v1, v[4:7], s[4:5] offset:7
      {0xbefc00ff, 0xffffff00, 0xdca88100, 0x00040001},  // global_load_lds_dword without LDS, M0 beyond it
      {0xb07c007b, 0xbe8a2b04},  // s_movrels_b64 s[10:11], s[4:5] with M0 = 123: past the last SGPR
      {0xbf108081, 0xbf82ffff},  // s_setvskip 1, 0 before an endless loop
  };
  for (const auto& words : programs) {
    std::vector<uint32_t> all = start;
    all.insert(all.end(), words.begin(), words.end());
    all.push_back(kEnd);
    const Module m(spec(all));
    ASSERT_EQ(m.error, kSuccess) << report();
    void* pointer = data.get();
    void* params[] = {&pointer, &argument_storage[1], nullptr};
    const hipError_t e = hipModuleLaunchKernel(m.function, 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr);
    EXPECT_TRUE(e == kSuccess || e == kLaunchFailure) << e << ": " << report();
  }
}

}  // namespace
}  // namespace mi350::emu::test
