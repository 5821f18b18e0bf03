// What the memory handlers share: the addresses of 64 lanes, one bounds check per instruction, moving dwords
// between lane addresses and registers, polls and progress, faults.
//
// Registers lie as vgpr[register][lane], memory holds the dwords of one lane together: wide accesses are a
// transposition, done on blocks of four lanes.
#pragma once
#include <cstdio>

#include "exec.h"
#include "memory.h"
#include "watch.h"

namespace mi350::emu::MI350_EMU_LEVEL {

using Addresses = std::array<uint64_t, kLanes>;
using Offsets = std::array<uint32_t, kLanes>;

inline int first_lane(uint64_t mask) { return std::countr_zero(mask); }

// A load that repeats an address and its value is a poll: after some of them the wave lets others run. Any
// other load is progress.
constexpr uint32_t kPollsPerSlice = 24;
inline void note_load(Wave& w, uint64_t address, uint32_t value) {
  const uint32_t slot = static_cast<uint32_t>((address * 0x9e3779b97f4a7c15ull) >> 56) % Wave::kSeenLoads;
  const uint32_t mark = static_cast<uint32_t>(address >> 2) * 0x85ebca6bu ^ value * 0xc2b2ae35u;
  if (w.seen_loads[slot] != mark) {
    w.seen_loads[slot] = mark;
    ++w.load_progress;
  } else if (++w.polls >= kPollsPerSlice) {
    w.polls = 0;
    if (w.status == WaveStatus::kRunning) w.status = WaveStatus::kYield;
  }
}

// What a watch is told about an access to global memory, and about one to LDS.
inline Access global_access(Access::Kind kind, const Addresses& at, uint64_t mask, uint64_t exec, int bytes) {
  Access a;
  a.kind = kind;
  a.at = at.data();
  a.mask = mask;
  a.outside = exec & ~mask;
  a.bytes = bytes;
  return a;
}
[[gnu::noinline]] inline void watch_global(Wave& w, const Inst& i, Access::Kind kind, const Addresses& at,
                                           uint64_t mask, uint64_t exec, int bytes) {
  w.watch->access(w, i, global_access(kind, at, mask, exec, bytes));
}
[[gnu::noinline]] inline void watch_lds(Wave& w, const Inst& i, Access::Kind kind, const uint32_t* at,
                                        uint64_t exec, uint32_t bytes) {
  Access a;
  a.space = Access::kLds;
  a.kind = kind;
  a.lds = at;
  a.bytes = static_cast<int>(bytes);
  const uint32_t limit = w.group->lds_bytes;
  for (int l = 0; l < kLanes; ++l) a.mask |= uint64_t{bytes <= limit && at[l] <= limit - bytes} << l;
  a.mask &= exec;
  a.outside = exec & ~a.mask;
  w.watch->access(w, i, a);
}

// Names the first active lane whose access is not inside one allocation.
[[gnu::noinline, gnu::cold]] inline void fault_at(Wave& w, int lane, uint64_t address,
                                                  uint64_t bytes, Access::Kind kind) {
  char text[128];
  std::snprintf(text, sizeof text, "lane %d %s %llu bytes at 0x%llx: ", lane,
                kind == Access::kLoad || kind == Access::kDma ? "loads" : "stores",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address));
  // An access that begins inside a range and leaves it is named by its first byte outside.
  Range r;
  uint64_t bad = address;
  if (AllocationMap::get().find(address, &r) && bytes > r.hi - address) bad = r.hi;
  w.illegal_address = true;
  w.stop(text + w.memory->describe(bad));
}

// Lanes outside every allocation: fault, unless the watch or the launch lets them load 0.
[[gnu::noinline, gnu::cold]] inline bool settle_outside(Wave& w, const Inst& i, const Access& a) {
  if (w.watch != nullptr ? w.watch->tolerates(w, i, a)
                         : w.memory->lenient() && a.clamped &&
                               (a.kind == Access::kLoad || a.kind == Access::kDma)) {
    return true;
  }
  const int lane = first_lane(a.mask);
  fault_at(w, lane, a.address(lane), static_cast<uint64_t>(a.bytes_of(lane)), a.kind);
  return false;
}

// All active lanes inside one allocation, in one look-up; else lane by lane. False after a fault and without
// active lanes. Lanes that are outside and may go on leave the mask.
template <int kBytes>
inline bool check_lanes(Wave& w, const Inst& i, Addresses& a, uint64_t& mask, Access::Kind kind,
                        bool clamped = false) {
  if (mask == 0) return false;
  const bool write = kind == Access::kStore || kind == Access::kAtomic;
  const uint64_t some = a[static_cast<size_t>(first_lane(mask))];
  if (mask != ~0ull) {
    for (int l = 0; l < kLanes; ++l) a[l] = (mask >> l) & 1 ? a[l] : some;
  }
  int64_t lo = static_cast<int64_t>(some), hi = lo;
  for (int l = 0; l < kLanes; ++l) {
    const int64_t v = static_cast<int64_t>(a[l]);
    lo = v < lo ? v : lo;
    hi = v > hi ? v : hi;
  }
  if (w.memory->at(static_cast<uint64_t>(lo), static_cast<uint64_t>(hi - lo) + kBytes, write)) return true;
  uint64_t bad = 0;
  for (int l = 0; l < kLanes; ++l) bad |= uint64_t{w.memory->at(a[l], kBytes, write) == nullptr} << l;
  bad &= mask;
  if (bad == 0) return true;
  Access access = global_access(kind, a, bad, bad, kBytes);
  access.clamped = clamped;
  if (!settle_outside(w, i, access)) return false;
  mask &= ~bad;
  return true;
}

typedef uint32_t Quad __attribute__((vector_size(16), aligned(4), may_alias));

inline void transpose(Quad& a, Quad& b, Quad& c, Quad& d) {
  const Quad t0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), t1 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad t2 = __builtin_shufflevector(a, b, 2, 6, 3, 7), t3 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(t0, t1, 0, 1, 4, 5);
  b = __builtin_shufflevector(t0, t1, 2, 3, 6, 7);
  c = __builtin_shufflevector(t2, t3, 0, 1, 4, 5);
  d = __builtin_shufflevector(t2, t3, 2, 3, 6, 7);
}

typedef uint64_t Pairs __attribute__((vector_size(16)));
inline Quad two_pairs(const uint8_t* first, const uint8_t* second) {
  Pairs p;
  uint64_t a, b;
  std::memcpy(&a, first, 8);
  std::memcpy(&b, second, 8);
  p = Pairs{a, b};
  return reinterpret_cast<Quad>(p);
}

// Lane l's memory is at base + at[l]; base is 0 where the lanes hold whole addresses.
template <typename At>
inline uint8_t* place(uint64_t base, At at) { return reinterpret_cast<uint8_t*>(base + at); }
inline uint64_t place_of(const uint8_t* p) { return reinterpret_cast<uint64_t>(p); }

// All 64 lanes.
template <int kDwords, typename At>
inline void load_all(uint64_t base, const std::array<At, kLanes>& at, uint32_t* dst) {
  if constexpr (kDwords == 4) {
    for (int l = 0; l < kLanes; l += 4) {
      Quad a = *reinterpret_cast<const Quad*>(place(base, at[l])),
           b = *reinterpret_cast<const Quad*>(place(base, at[l + 1]));
      Quad c = *reinterpret_cast<const Quad*>(place(base, at[l + 2])),
           d = *reinterpret_cast<const Quad*>(place(base, at[l + 3]));
      transpose(a, b, c, d);
      *reinterpret_cast<Quad*>(dst + l) = a;
      *reinterpret_cast<Quad*>(dst + kLanes + l) = b;
      *reinterpret_cast<Quad*>(dst + 2 * kLanes + l) = c;
      *reinterpret_cast<Quad*>(dst + 3 * kLanes + l) = d;
    }
  } else if constexpr (kDwords == 2) {
    for (int l = 0; l < kLanes; l += 4) {
      const Quad a = two_pairs(place(base, at[l]), place(base, at[l + 1]));
      const Quad b = two_pairs(place(base, at[l + 2]), place(base, at[l + 3]));
      *reinterpret_cast<Quad*>(dst + l) = __builtin_shufflevector(a, b, 0, 2, 4, 6);
      *reinterpret_cast<Quad*>(dst + kLanes + l) = __builtin_shufflevector(a, b, 1, 3, 5, 7);
    }
  } else {
    for (int l = 0; l < kLanes; ++l) {
      for (int d = 0; d < kDwords; ++d) std::memcpy(dst + d * kLanes + l, place(base, at[l]) + 4 * d, 4);
    }
  }
}

template <int kDwords, typename At>
inline void store_all(uint64_t base, const std::array<At, kLanes>& at, const uint32_t* src) {
  if constexpr (kDwords == 4) {
    for (int l = 0; l < kLanes; l += 4) {
      Quad a = *reinterpret_cast<const Quad*>(src + l), b = *reinterpret_cast<const Quad*>(src + kLanes + l);
      Quad c = *reinterpret_cast<const Quad*>(src + 2 * kLanes + l),
           d = *reinterpret_cast<const Quad*>(src + 3 * kLanes + l);
      transpose(a, b, c, d);
      *reinterpret_cast<Quad*>(place(base, at[l])) = a;
      *reinterpret_cast<Quad*>(place(base, at[l + 1])) = b;
      *reinterpret_cast<Quad*>(place(base, at[l + 2])) = c;
      *reinterpret_cast<Quad*>(place(base, at[l + 3])) = d;
    }
  } else if constexpr (kDwords == 2) {
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t pair = src[l] | static_cast<uint64_t>(src[kLanes + l]) << 32;
      std::memcpy(place(base, at[l]), &pair, 8);
    }
  } else {
    for (int l = 0; l < kLanes; ++l) {
      for (int d = 0; d < kDwords; ++d) std::memcpy(place(base, at[l]) + 4 * d, src + d * kLanes + l, 4);
    }
  }
}

// Some lanes only; the others keep their registers and their memory.
template <int kDwords, typename At>
inline void load_some(uint64_t base, const std::array<At, kLanes>& at, uint32_t* dst, uint64_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    for (int d = 0; d < kDwords; ++d) std::memcpy(dst + d * kLanes + l, place(base, at[l]) + 4 * d, 4);
  }
}
template <int kDwords, typename At>
inline void store_some(uint64_t base, const std::array<At, kLanes>& at, const uint32_t* src, uint64_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    for (int d = 0; d < kDwords; ++d) std::memcpy(place(base, at[l]) + 4 * d, src + d * kLanes + l, 4);
  }
}

// Lanes that load 0.
template <int kDwords>
inline void clear_lanes(uint32_t* dst, uint64_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    for (int d = 0; d < kDwords; ++d) dst[d * kLanes + first_lane(mask)] = 0;
  }
}

// Narrow accesses: a load fills the register or one half of it, a store takes the low bits or the high half.
enum class Half : uint8_t { kWhole, kLow, kHigh };

template <typename T, Half kHalf>
inline void load_narrow(const uint8_t* from, uint32_t& reg) {
  T value;
  std::memcpy(&value, from, sizeof value);
  const uint32_t wide = static_cast<uint32_t>(static_cast<int32_t>(value));
  if constexpr (kHalf == Half::kWhole) reg = wide;
  else if constexpr (kHalf == Half::kLow) reg = (reg & 0xffff0000u) | (wide & 0xffff);
  else reg = (reg & 0xffff) | wide << 16;
}
template <typename T, Half kHalf>
inline void store_narrow(uint8_t* to, uint32_t reg) {
  const T value = static_cast<T>(kHalf == Half::kHigh ? reg >> 16 : reg);
  std::memcpy(to, &value, sizeof value);
}

inline void count_global(Wave& w, uint64_t mask, int bytes) {
  w.counters.global_bytes += static_cast<uint64_t>(std::popcount(mask)) * static_cast<uint64_t>(bytes);
}
inline void count_lds(Wave& w, uint64_t mask, int bytes) {
  w.counters.lds_bytes += static_cast<uint64_t>(std::popcount(mask)) * static_cast<uint64_t>(bytes);
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
