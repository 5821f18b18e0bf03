// The emulator's HIP functions as the tests use them: buffers that free themselves, kernels by name.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "emu_api.h"
#include "runtime/hip.h"

namespace mi350::emu::test {

using runtime::hipEvent_t;
using runtime::hipFunction_t;
using runtime::hipModule_t;
using runtime::hipStream_t;
using hipError_t = int;

extern "C" {
hipError_t hipMalloc(void**, size_t);
hipError_t hipFree(void*);
hipError_t hipMemcpy(void*, const void*, size_t, int);
hipError_t hipModuleLoad(hipModule_t*, const char*);
hipError_t hipModuleLoadData(hipModule_t*, const void*);
hipError_t hipModuleUnload(hipModule_t);
hipError_t hipModuleGetFunction(hipFunction_t*, hipModule_t, const char*);
hipError_t hipModuleGetGlobal(void**, size_t*, hipModule_t, const char*);
hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, hipStream_t, void**, void**);
hipError_t hipGetLastError();
}

constexpr hipError_t kSuccess = 0, kInvalidValue = 1, kInvalidConfiguration = 9, kInvalidImage = 200,
                     kNoBinary = 209, kFileNotFound = 301, kInvalidHandle = 400, kNotFound = 500, kStreamGone = 709,
                     kIllegalAddress = 700, kTimeOut = 702, kLaunchFailure = 719;

template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t n, T fill = T{}) : Buffer(std::vector<T>(n, fill)) {}
  explicit Buffer(const std::vector<T>& values) : n_(values.size()) {
    EXPECT_EQ(hipMalloc(reinterpret_cast<void**>(&p_), n_ * sizeof(T)), kSuccess);
    EXPECT_EQ(hipMemcpy(p_, values.data(), n_ * sizeof(T), 1), kSuccess);
  }
  ~Buffer() { hipFree(p_); }
  Buffer(const Buffer&) = delete;
  T* get() const { return p_; }
  std::vector<T> read() const {
    std::vector<T> out(n_);
    EXPECT_EQ(hipMemcpy(out.data(), p_, n_ * sizeof(T), 2), kSuccess);
    return out;
  }

 private:
  T* p_ = nullptr;
  size_t n_;
};

struct Shape {
  unsigned gx = 1, gy = 1, gz = 1, bx = 64, by = 1, bz = 1, lds = 0;
};

inline hipFunction_t kernel(const std::string& object, const char* name) {
  static std::map<std::string, hipModule_t> modules;
  hipModule_t& m = modules[object];
  if (m == nullptr) {
    EXPECT_EQ(hipModuleLoad(&m, (std::string(MI350_TEST_OBJECT_DIR "/") + object + ".hsaco").c_str()), kSuccess)
        << mi350emuLastReport();
  }
  hipFunction_t f = nullptr;
  EXPECT_EQ(hipModuleGetFunction(&f, m, name), kSuccess) << mi350emuLastReport();
  return f;
}

template <typename... Args>
hipError_t launch(hipFunction_t f, const Shape& s, Args... args) {
  void* params[] = {static_cast<void*>(&args)..., nullptr};
  const hipError_t e =
      hipModuleLaunchKernel(f, s.gx, s.gy, s.gz, s.bx, s.by, s.bz, s.lds, nullptr, params, nullptr);
  hipGetLastError();
  return e;
}

inline std::string report() { return mi350emuLastReport(); }

// An environment variable for the length of a scope.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~Setting() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }

 private:
  const char* name_;
  std::string old_;
};

}  // namespace mi350::emu::test
