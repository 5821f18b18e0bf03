// Where a load to LDS puts its lanes: M0 (dword-aligned) + instruction offset + lane * step. Lanes outside the
// workgroup's allocation are masked off.
#pragma once
#include "exec.h"

namespace mi350::emu::MI350_EMU_LEVEL {

struct LdsTarget {
  uint8_t* base;
  uint32_t step;
  uint64_t inside;

  LdsTarget(Wave& w, const Inst& i, uint32_t step_bytes, uint32_t bytes) : step(step_bytes) {
    const uint64_t start = (w.sgpr[kM0] & ~3u) + static_cast<uint64_t>(static_cast<int64_t>(i.imm));
    base = w.group->lds + start;
    const uint64_t limit = w.group->lds_bytes;
    inside = ~0ull;
    if (start < limit && start + step * (kLanes - 1) + bytes <= limit) return;
    inside = 0;
    for (uint64_t l = 0; l < kLanes; ++l) {
      const uint64_t at = start + l * step;
      inside |= uint64_t{at < limit && bytes <= limit - at} << l;
    }
  }
  uint8_t* at(int lane) const { return base + static_cast<uint32_t>(lane) * step; }
};

}  // namespace mi350::emu::MI350_EMU_LEVEL
