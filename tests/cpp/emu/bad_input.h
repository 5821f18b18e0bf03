// What the tests of bad input share: minimal objects in guarded memory, and errors that must say what is
// wrong.
#pragma once
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "emulated_device.h"
#include "guarded_bytes.h"
#include "object_maker.h"

namespace mi350::emu::test {

using Bytes = std::vector<uint8_t>;
using fuzz::Guarded;
using fuzz::KernelSpec;
using fuzz::make_object;

constexpr uint32_t kEnd = 0xbf810000;

inline KernelSpec spec(std::vector<uint32_t> words = {kEnd}) {
  KernelSpec s;
  s.words = std::move(words);
  return s;
}

struct Module {
  hipModule_t handle = nullptr;
  hipFunction_t function = nullptr;
  hipError_t error = kSuccess;
  explicit Module(const Bytes& bytes) {
    const Guarded file(bytes);
    error = hipModuleLoadData(&handle, file.data());
    if (error == kSuccess) error = hipModuleGetFunction(&function, handle, "k");
  }
  explicit Module(const KernelSpec& s) : Module(make_object(s)) {}
  ~Module() {
    if (handle != nullptr) hipModuleUnload(handle);
  }
  Module(const Module&) = delete;
};

inline uint64_t argument_storage[2];
inline hipError_t launch_plain(hipFunction_t f, const Shape& s = {}) {
  void* params[] = {&argument_storage[0], &argument_storage[1], nullptr};
  return hipModuleLaunchKernel(f, s.gx, s.gy, s.gz, s.bx, s.by, s.bz, s.lds, nullptr, params, nullptr);
}

// The error that is expected, and a report that says so.
inline void expect(hipError_t got, hipError_t wanted, const char* text) {
  EXPECT_EQ(got, wanted) << report();
  EXPECT_NE(report().find(text), std::string::npos) << report();
}
inline void expect_load(const Bytes& file, hipError_t wanted, const char* text) {
  const Module m(file);
  expect(m.error, wanted, text);
}

template <class T>
Bytes with(Bytes file, size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
  return file;
}
constexpr size_t program_header(size_t n) { return sizeof(Elf64_Ehdr) + n * sizeof(Elf64_Phdr); }

}  // namespace mi350::emu::test
