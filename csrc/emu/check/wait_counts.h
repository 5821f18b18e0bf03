// s_waitcnt and what it waits for (facts/gfx950-isa.md 3.1): counters of one wave as queues in issue order.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "inst.h"
#include "isa.h"

namespace mi350::emu {

inline uint32_t vmcnt_of(int32_t imm) {
  return (static_cast<uint32_t>(imm) & 15) | (static_cast<uint32_t>(imm) >> 14 & 3) << 4;
}
inline uint32_t lgkmcnt_of(int32_t imm) { return static_cast<uint32_t>(imm) >> 8 & 15; }

inline bool counts_vm(const IsaRow& row) {
  return row.encoding == Encoding::kMubuf || row.encoding == Encoding::kGlobal ||
         row.encoding == Encoding::kScratch || row.encoding == Encoding::kFlat;
}

// Operations in flight, oldest first, each with a number of its owner's choice. The hardware stalls a wave whose
// counter is full: the oldest is back then.
template <size_t kMost>
class WaitQueue {
 public:
  // `retire` is called with each number that is back.
  template <typename Retire>
  void push(uint32_t number, Retire retire) {
    if (size_ == kMost) pop(retire);
    slots_[(head_ + size_++) % kMost] = number;
  }
  template <typename Retire>
  void wait(uint32_t left, Retire retire) {
    while (size_ > left) pop(retire);
  }
  // The smallest number other than 0 in flight, or `otherwise`. Numbers grow with the issue.
  uint32_t oldest(uint32_t otherwise) const {
    for (size_t n = 0; n < size_; ++n) {
      if (const uint32_t number = slots_[(head_ + n) % kMost]) return number;
    }
    return otherwise;
  }
  void clear() { head_ = size_ = 0; }

 private:
  template <typename Retire>
  void pop(Retire retire) {
    const uint32_t number = slots_[head_];
    head_ = (head_ + 1) % kMost;
    --size_;
    retire(number);
  }
  std::array<uint32_t, kMost> slots_{};
  size_t head_ = 0, size_ = 0;
};

}  // namespace mi350::emu
