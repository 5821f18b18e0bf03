// What device tests need of HIP (served by the emulator's static library): buffers with guards around them,
// modules, launches. A failing call throws with the emulator's report.
#pragma once
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "emu/emu_api.h"

extern "C" {
int hipMalloc(void**, size_t);
int hipFree(void*);
int hipMemcpy(void*, const void*, size_t, int);
int hipModuleLoadData(void**, const void*);
int hipModuleUnload(void*);
int hipModuleGetFunction(void**, void*, const char*);
int hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                          void**, void**);
int hipDeviceSynchronize();
const char* hipGetErrorString(int);
}

namespace mi350::test {

inline void check(int code, const std::string& what) {
  if (code != 0) throw std::runtime_error(what + ": " + hipGetErrorString(code) + "\n" + mi350emuLastReport());
}

// `bytes` usable bytes, `shift` bytes off a 16-byte boundary, with guards of `guard` bytes before and behind
// (0xff: NaN in every float type). kExact has none behind: the operand ends with its allocation, and the
// emulator stops a kernel that reads on.
class Buffer {
 public:
  static constexpr size_t kGuard = 4096;
  enum End { kGuarded, kExact };
  explicit Buffer(size_t bytes, uint8_t guard = 0xff, size_t shift = 0, End end = kGuarded)
      : bytes_(bytes), shift_(shift), total_(kGuard + shift + bytes + (end == kGuarded ? kGuard : 0)), guard_(guard) {
    check(hipMalloc(&base_, total_), "hipMalloc");
    std::vector<uint8_t> fill(total_, guard);
    check(hipMemcpy(base_, fill.data(), fill.size(), 1), "hipMemcpy to the device");
  }
  ~Buffer() { hipFree(base_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint64_t address() const { return reinterpret_cast<uint64_t>(base_) + kGuard + shift_; }
  void write(const void* from) {
    check(hipMemcpy(reinterpret_cast<void*>(address()), from, bytes_, 1), "hipMemcpy to the device");
  }
  void read(void* to) const {
    check(hipMemcpy(to, reinterpret_cast<void*>(address()), bytes_, 2), "hipMemcpy to the host");
  }
  template <class T> void write(const std::vector<T>& from) { write(static_cast<const void*>(from.data())); }
  template <class T> std::vector<T> read() const {
    std::vector<T> out(bytes_ / sizeof(T));
    if (!out.empty()) read(static_cast<void*>(out.data()));
    return out;
  }
  bool guards_intact() const {
    std::vector<uint8_t> all(total_);
    check(hipMemcpy(all.data(), base_, all.size(), 2), "hipMemcpy to the host");
    for (size_t i = 0; i < all.size(); ++i)
      if ((i < kGuard + shift_ || i >= kGuard + shift_ + bytes_) && all[i] != guard_) return false;
    return true;
  }

 private:
  void* base_ = nullptr;
  size_t bytes_, shift_, total_;
  uint8_t guard_;
};

class Module {
 public:
  explicit Module(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    image_.assign(std::istreambuf_iterator<char>(file), {});
    if (image_.empty()) throw std::runtime_error("no code object " + path);
    check(hipModuleLoadData(&module_, image_.data()), "hipModuleLoadData " + path);
  }
  ~Module() { hipModuleUnload(module_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  bool has(const char* symbol) const {
    void* f = nullptr;
    return hipModuleGetFunction(&f, module_, symbol) == 0;
  }
  template <class Args>
  void launch(const char* symbol, unsigned grid_x, unsigned grid_y, unsigned block, Args args) const {
    void* f = nullptr;
    check(hipModuleGetFunction(&f, module_, symbol), std::string("hipModuleGetFunction ") + symbol);
    void* parameters[] = {&args};
    check(hipModuleLaunchKernel(f, grid_x, grid_y, 1, block, 1, 1, 0, nullptr, parameters, nullptr), symbol);
    check(hipDeviceSynchronize(), symbol);
  }

 private:
  std::vector<char> image_;
  void* module_ = nullptr;
};

// Objects that the package ships, and those of the tests.
inline std::string shipped(const std::string& object) { return std::string(MI350_CODE_OBJECT_DIR) + "/" + object; }
inline std::string test_object(const std::string& object) {
  return std::string(MI350_TEST_OBJECT_DIR "/") + object;
}

// Independent 16-bit conversions.
inline uint16_t to_bf16(float v) {
  uint32_t u;
  std::memcpy(&u, &v, 4);
  if ((u & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((u >> 16) | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
inline float from_bf16(uint16_t v) {
  const uint32_t u = static_cast<uint32_t>(v) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

}  // namespace mi350::test
