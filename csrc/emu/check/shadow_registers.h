// Which bits of a wave's registers are defined.
//
// A VGPR or AccVGPR keeps one bit per lane for "all 32 bits are defined"; only lanes that are neither wholly
// defined nor wholly undefined have their bits in `detail`, whose pages cost nothing until then.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "check/footprint.h"

namespace mi350::emu {

class ShadowRegisters {
 public:
  static constexpr unsigned kRows = 512;  // as Wave::vgpr

  void reset();   // nothing is defined

  // All bits of the registers, of vector ones in `lanes`.
  bool defined(RegisterSpan r, uint64_t lanes) const {
    if (r.first >= kVgpr0) {
      uint64_t all = ~0ull;
      for (unsigned n = 0; n < r.count; ++n) all &= full_[r.first - kVgpr0 + n];
      return (all & lanes) == lanes;
    }
    if (r.first == kScc) return !scc_;
    uint64_t bad;
    std::memcpy(&bad, bad_ + r.first / 8, 8);
    return (bad >> (r.first % 8) & ((1ull << r.count) - 1)) == 0;
  }
  void define(RegisterSpan r, uint64_t lanes) {
    if (r.first >= kVgpr0) {
      for (unsigned n = 0; n < r.count; ++n) full_[r.first - kVgpr0 + n] |= lanes;
    } else if (r.first == kScc) {
      scc_ = false;
    } else if (!defined(r, 0)) {
      for (unsigned n = r.first; n < r.first + r.count; ++n) set_scalar(static_cast<uint16_t>(n), 0);
    }
  }
  void define_all_scalars();

  // Undefined bits.
  uint32_t lane(unsigned row, unsigned lane) const {
    if (full_[row] >> lane & 1) return 0;
    return partial_[row] >> lane & 1 ? detail_[row][lane] : ~0u;
  }
  void set_lane(unsigned row, unsigned lane, uint32_t undefined);
  void load_row(unsigned row, uint32_t* undefined) const;
  void store_row(unsigned row, const uint32_t* undefined);
  uint64_t lanes_defined(unsigned row) const { return full_[row]; }
  uint32_t scalar(uint16_t code) const { return code == kScc ? scc_ : scalar_[code]; }
  void set_scalar(uint16_t code, uint32_t undefined);

 private:
  struct Free {
    void operator()(uint32_t (*p)[kLanes]) const { std::free(p); }
  };
  uint64_t full_[kRows] = {}, partial_[kRows] = {};
  std::unique_ptr<uint32_t[][kLanes], Free> detail_;
  uint32_t scalar_[128] = {};
  uint8_t bad_[128 / 8 + 8] = {};  // a bit per scalar register that is not wholly defined
  bool scc_ = false;
};

}  // namespace mi350::emu
