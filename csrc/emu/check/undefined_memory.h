// Global memory that this launch filled with undefined bits; all other global memory counts as defined. Shared by
// the host threads of a launch.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace mi350::emu {

class UndefinedMemory {
 public:
  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }
  // `bytes` bytes at the address, whose undefined bits are the low ones of `undefined`; at most four.
  void store(uint64_t address, unsigned bytes, uint32_t undefined) {
    std::lock_guard lock(mutex_);
    for (unsigned b = 0; b < bytes; ++b) {
      const auto bits = static_cast<uint8_t>(undefined >> (8 * b));
      if (bits != 0 && bytes_.size() < kMost) bytes_[address + b] = bits;
      else if (bits == 0) bytes_.erase(address + b);
    }
    size_.store(bytes_.size(), std::memory_order_relaxed);
  }
  uint32_t load(uint64_t address, unsigned bytes) const {
    std::lock_guard lock(mutex_);
    uint32_t undefined = 0;
    for (unsigned b = 0; b < bytes; ++b) {
      const auto it = bytes_.find(address + b);
      if (it != bytes_.end()) undefined |= uint32_t{it->second} << (8 * b);
    }
    return undefined;
  }

 private:
  static constexpr size_t kMost = 1 << 20;  // beyond it memory counts as defined
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, uint8_t> bytes_;
  std::atomic<size_t> size_{0};
};

}  // namespace mi350::emu
