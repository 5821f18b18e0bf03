// Storage of definedness, see shadow_registers.h.
#include "check/shadow_registers.h"

#include <new>

namespace mi350::emu {

void ShadowRegisters::reset() {
  std::memset(full_, 0, sizeof full_);
  std::memset(partial_, 0, sizeof partial_);
  if (!detail_) {
    detail_.reset(static_cast<uint32_t(*)[kLanes]>(std::calloc(kRows, sizeof(uint32_t[kLanes]))));
    if (!detail_) throw std::bad_alloc();
  }
  for (uint16_t s = 0; s < 128; ++s) set_scalar(s, ~0u);
  scc_ = true;
}

void ShadowRegisters::define_all_scalars() {
  for (uint16_t s = 0; s < 128; ++s) set_scalar(s, 0);
  scc_ = false;
}

void ShadowRegisters::set_scalar(uint16_t code, uint32_t undefined) {
  if (code == kScc) {
    scc_ = undefined != 0;
    return;
  }
  const auto bit = static_cast<uint8_t>(1u << code % 8);
  scalar_[code] = undefined;
  bad_[code / 8] = static_cast<uint8_t>(undefined ? bad_[code / 8] | bit : bad_[code / 8] & ~bit);
}

void ShadowRegisters::set_lane(unsigned row, unsigned lane, uint32_t undefined) {
  const uint64_t bit = 1ull << lane;
  full_[row] = undefined == 0 ? full_[row] | bit : full_[row] & ~bit;
  const bool mixed = undefined != 0 && undefined != ~0u;
  partial_[row] = mixed ? partial_[row] | bit : partial_[row] & ~bit;
  if (mixed) detail_[row][lane] = undefined;
}

void ShadowRegisters::load_row(unsigned row, uint32_t* undefined) const {
  for (unsigned l = 0; l < kLanes; ++l) undefined[l] = lane(row, l);
}

void ShadowRegisters::store_row(unsigned row, const uint32_t* undefined) {
  for (unsigned l = 0; l < kLanes; ++l) set_lane(row, l, undefined[l]);
}

}  // namespace mi350::emu
