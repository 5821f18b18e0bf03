// A window of a strided operand in global memory: 64-bit scalar base, and the bytes up to the end of the
// operand's last element, which become the descriptor's size. Lanes address it by 32-bit byte offsets.
#pragma once
#include "../isa/buffer.h"

namespace mi350 {

struct GlobalTile {
  uint64_t base;
  uint64_t left;  // bytes from base to the end of the operand

  // (rows, cols) elements of kBytes each, from `address`, with element strides.
  template <int kBytes>
  static MI350_DEVICE GlobalTile of(uint64_t address, int64_t rows, int64_t cols, int64_t stride_row,
                                    int64_t stride_col) {
    return {address, static_cast<uint64_t>((rows - 1) * stride_row + (cols - 1) * stride_col + 1) * kBytes};
  }

  MI350_DEVICE void advance(int64_t bytes) {
    base += bytes;
    left -= bytes;
  }

  // NOTE: the high half is made opaque to keep the clamp in 32-bit scalar operations; a 64-bit unsigned
  // compare would go through the vector unit.
  MI350_DEVICE Descriptor descriptor() const {
    uint32_t high = static_cast<uint32_t>(left >> 32);
    asm("" : "+s"(high));
    const uint32_t low = static_cast<uint32_t>(left), clamped = low < kMaxRecords ? low : kMaxRecords;
    return {base, high != 0 ? kMaxRecords : clamped};
  }
};

}  // namespace mi350
