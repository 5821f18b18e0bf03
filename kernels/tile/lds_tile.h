// An operand tile in LDS: kExtent rows (m or n) by kDepth k, as lines of 16-byte chunks.
//
//   kDepthMajor   line = row, a line holds k contiguous   (kExtent lines of kDepth elements)
//   otherwise     line = k,   a line holds rows contiguous (kDepth lines of kExtent elements)
//
// Chunk c of a line sits in slot c ^ swizzle(line). The swizzle is chosen so that the lanes which the LDS
// serves together (b128 in 4 phases of 16 lanes, b64 in 2 phases of 32; measured by HipKittens, arXiv 2511.08083)
// fall into distinct banks; it repeats every 16 lines. Loads to LDS write slots in order, so the same swizzle
// permutes the global side.
#pragma once
#include "../isa/types.h"

namespace mi350 {

constexpr int kChunkBytes = 16;

template <class T, int kExtent_, int kDepth_, bool kDepthMajor_, int kMfma_>
struct LdsTile {
  static constexpr int kExtent = kExtent_, kDepth = kDepth_, kMfma = kMfma_;
  static constexpr bool kDepthMajor = kDepthMajor_;
  static constexpr int kElements = kChunkBytes / static_cast<int>(sizeof(T));  // of a chunk
  static constexpr int kLines = kDepthMajor ? kExtent : kDepth;
  static constexpr int kLineBytes = (kDepthMajor ? kDepth : kExtent) * static_cast<int>(sizeof(T));
  static constexpr int kLineChunks = kLineBytes / kChunkBytes;
  static constexpr int kBytes = kLines * kLineBytes;
  static constexpr int kSwizzlePeriod = 16;
  static_assert(kLineBytes % kChunkBytes == 0 && (kLineChunks & (kLineChunks - 1)) == 0,
                "a line is a power of two of 16-byte chunks");

  static MI350_DEVICE uint32_t swizzle(uint32_t line) {
    if constexpr (kDepthMajor) {
      constexpr uint32_t kLinesPerBankRow = kLineBytes >= 256 ? 1 : 256 / kLineBytes;
      return (line / kLinesPerBankRow) % (kLineChunks < 16 ? kLineChunks : 16);
    } else if constexpr (sizeof(T) == 2) {
      // Pairs of chunks (16 rows) stay together for the transposed read.
      const uint32_t pair = kLineBytes >= 256 ? (line % 4) * 2 + (line / 8) % 2 : (line & 2) + (line / 8) % 2;
      return (pair * 2) % kLineChunks;
    } else {
      const uint32_t group = line / 4;
      return ((group % 2) * 8 + (kMfma == 16 ? ((group / 2) % 2) * 4 : 0)) % kLineChunks;
    }
  }

  static MI350_DEVICE uint32_t offset(uint32_t line, uint32_t chunk) {
    return line * kLineBytes + (chunk ^ swizzle(line)) * kChunkBytes;
  }
};

}  // namespace mi350
