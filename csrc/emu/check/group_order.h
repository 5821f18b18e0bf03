// Reads of another workgroup's plain stores without a release and an acquire between.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "check/part.h"

namespace mi350::emu {

// Shared by the host threads of a launch: who stored to which 64-byte line last, and when each workgroup released.
// A hash table without chains: a newer line displaces an older one, which is then no longer checked.
class LineWriters {
 public:
  struct Store {
    uint64_t line = 0;      // address / 64; 0: empty
    uint32_t group = 0;
    uint32_t time = 0;
    uint64_t bytes = 0;     // of the line, a bit each
    bool scoped = false;    // written through: needs no release
  };

  explicit LineWriters(uint64_t groups);
  void store(uint64_t line, uint64_t bytes, uint32_t group, bool scoped);
  // The last store to these bytes of the line by another group.
  bool find(uint64_t line, uint64_t bytes, uint32_t group, Store* out) const;
  bool may_hold(uint64_t line) const { return pages_[page(line)].load(std::memory_order_relaxed); }
  uint32_t tick() { return clock_.fetch_add(1, std::memory_order_relaxed) + 1; }
  void release(uint32_t group) { released_[group % released_.size()].store(tick(), std::memory_order_relaxed); }
  bool released_since(const Store& s) const {
    return s.scoped || released_[s.group % released_.size()].load(std::memory_order_relaxed) > s.time;
  }

 private:
  static constexpr size_t kLines = 1 << 16, kPages = 1 << 14, kLocks = 64;
  static size_t slot(uint64_t line) { return line * 0x9e3779b97f4a7c15ull >> 48; }
  static size_t page(uint64_t line) { return (line / 64) * 0x9e3779b97f4a7c15ull >> 50; }
  std::vector<Store> stores_;
  std::vector<std::atomic<uint32_t>> released_;
  std::vector<std::atomic<bool>> pages_;  // that a store may have touched
  mutable std::array<std::mutex, kLocks> locks_;
  std::atomic<uint32_t> clock_{1};
};

std::unique_ptr<Part> make_group_order(Reporter& reporter, LineWriters& writers);

}  // namespace mi350::emu
