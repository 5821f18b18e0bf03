// Where a load to LDS puts its lanes: M0 (dword-aligned) + instruction offset + lane * step. Lanes outside the
// workgroup's allocation are masked off.
#pragma once
#include "exec.h"
#include "watch.h"

namespace mi350::emu::MI350_EMU_LEVEL {

struct LdsTarget {
  uint8_t* lds;
  uint32_t start, step;
  uint64_t inside;

  LdsTarget(Wave& w, const Inst& i, uint32_t step_bytes, uint32_t bytes) : lds(w.group->lds), step(step_bytes) {
    const uint64_t first = (w.sgpr[kM0] & ~3u) + static_cast<uint64_t>(static_cast<int64_t>(i.imm));
    start = static_cast<uint32_t>(first);
    const uint64_t limit = w.group->lds_bytes;
    inside = ~0ull;
    if (first < limit && first + step * (kLanes - 1) + bytes <= limit) return;
    inside = 0;
    for (uint64_t l = 0; l < kLanes; ++l) {
      const uint64_t at = first + l * step;
      inside |= uint64_t{at < limit && bytes <= limit - at} << l;
    }
  }
  uint8_t* at(int lane) const { return lds + (start + static_cast<uint32_t>(lane) * step); }  // a lane inside
};

// The same under a watch, which may keep the data back. `data` holds 16 bytes a lane, `a` the global side.
[[gnu::noinline]] inline void land_watched(Wave& w, const Inst& i, const LdsTarget& to, Access& a,
                                           const uint8_t* data, int bytes) {
  uint32_t at[kLanes];
  for (uint32_t l = 0; l < kLanes; ++l) at[l] = to.start + l * to.step;
  a.kind = Access::kDma;
  a.lds = at;
  a.lds_mask = (a.mask | a.outside) & to.inside;
  a.lds_bytes = bytes;
  w.watch->access(w, i, a);
  if (w.watch->defer_dma(w, i, a, data)) return;
  for (int l = 0; l < kLanes; ++l) {
    if (lane_on(a.lds_mask, l)) std::memcpy(to.at(l), data + 16 * l, static_cast<size_t>(bytes));
  }
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
