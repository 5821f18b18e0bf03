// In which order the waves of a workgroup take turns, and for how long. Without a seed: by number, whole slices.
// With one: a new order every round and slices of 1 to 512 instructions, the same for the same seed.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "check/settings.h"

namespace mi350::emu {

class WaveOrder {
 public:
  WaveOrder() = default;
  WaveOrder(const Settings& s, uint64_t group, uint32_t waves) : on_(s.permute && s.mode == Mode::kCheck), waves_(waves) {
    state_ = (s.seed + 1) * 0x9e3779b97f4a7c15ull ^ (group + 1) * 0xbf58476d1ce4e5b9ull;
    for (uint32_t n = 0; n < waves; ++n) waves_[n] = n;
  }

  void shuffle() {
    if (!on_) return;
    for (size_t n = waves_.size(); n > 1; --n) std::swap(waves_[n - 1], waves_[next() % n]);
  }
  uint32_t wave(uint32_t turn) const { return waves_[turn]; }
  uint32_t slice(uint32_t usual) {
    if (!on_) return usual;
    const uint32_t longest = 1u << (next() % 10);  // short slices as often as long ones
    return 1 + static_cast<uint32_t>(next() % longest);
  }

 private:
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  bool on_ = false;
  uint64_t state_ = 0;
  std::vector<uint32_t> waves_;
};

}  // namespace mi350::emu
