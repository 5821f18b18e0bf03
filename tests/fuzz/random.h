// The fuzzers' own random numbers (splitmix64): a mutation follows from its seed alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace mi350::emu::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  uint32_t word() { return static_cast<uint32_t>(next() >> 32); }
  uint32_t below(uint64_t n) { return n == 0 ? 0 : static_cast<uint32_t>(next() % n); }
  bool percent(unsigned p) { return below(100) < p; }
  template <class Array>
  auto pick(const Array& a) {
    return a[below(std::size(a))];
  }

 private:
  uint64_t state_;
};

}  // namespace mi350::emu::fuzz
