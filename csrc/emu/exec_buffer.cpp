// MUBUF: loads, stores, atomics and loads to LDS through a buffer descriptor.
//
// Addresses and ranges: lane_buffer.h. Where the range is in bytes, every dword of an access is checked on its
// own. Out of range: loads give 0 (0 goes to LDS too), stores are dropped, atomics do nothing. In range but outside
// any allocation: fault.
#include <atomic>

#include "lane_atomics.h"
#include "lane_buffer.h"
#include "lane_lds.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

// Offsets of the lanes from `base`, the lanes that are wholly in range, and of the other active ones those
// whose first dword is.
struct Reach {
  uint64_t base = 0;
  Addresses at;
  uint64_t exec = 0, inside = 0, partly = 0;
  uint64_t limit = 0;        // raw: bytes in range
  bool all = false;          // every lane active and inside, memory already checked
  bool ok = true;
};

// Lanes that the byte range cuts short, beyond those that it does not touch.
template <int kBytes> void cut_by_bytes(const Descriptor& d, Reach& a) {
  a.limit = d.records;
  for (int l = 0; l < kLanes; ++l) a.partly |= uint64_t{a.at[l] + 4 <= d.records} << l;
  a.partly &= a.exec & ~a.inside;
}

// Strides, indices and swizzled descriptors.
template <int kBytes>
void structured(Wave& w, const Inst& i, const Descriptor& d, uint32_t skip, Reach& a) {
  place_lanes(w, i, d, kBytes, skip, a.at, a.inside);
  a.limit = ~0ull;
  if (!d.by_index(i)) cut_by_bytes<kBytes>(d, a);
}

template <int kBytes>
void raw(Wave& w, const Inst& i, const Descriptor& d, uint64_t offset, bool write, Reach& a) {
  uint64_t lo = ~0ull, hi = 0;
  if (i.offen) {
    const uint32_t* v = vreg(w, static_cast<uint16_t>(i.addr + i.idxen));
    uint32_t least = ~0u, most = 0;
    for (int l = 0; l < kLanes; ++l) {
      least = v[l] < least ? v[l] : least;
      most = v[l] > most ? v[l] : most;
      a.at[l] = offset + v[l];
    }
    lo = offset + least;
    hi = offset + most;
  } else {
    a.at.fill(offset);
    lo = hi = offset;
  }
  a.limit = d.records;
  if (a.exec == ~0ull && hi + kBytes <= d.records && w.memory->at(a.base + lo, hi - lo + kBytes, write)) {
    a.inside = ~0ull;
    a.all = true;
    return;
  }
  for (int l = 0; l < kLanes; ++l) a.inside |= uint64_t{a.at[l] + kBytes <= d.records} << l;
  a.inside &= a.exec;
  cut_by_bytes<kBytes>(d, a);
}

// What a watch is told: lanes cut short by the range check have fewer bytes.
[[gnu::noinline]] void watch(Wave& w, const Inst& i, Access::Kind kind, const Reach& a, int bytes) {
  uint8_t lane_bytes[kLanes];
  for (int l = 0; l < kLanes; ++l)
    lane_bytes[l] = static_cast<uint8_t>(a.partly >> l & 1 ? (a.limit - a.at[l]) & ~3ull : static_cast<uint64_t>(bytes));
  Access access = global_access(kind, a.at, a.inside | a.partly, a.exec, bytes);
  access.base = a.base;
  access.clamped = true;
  if (a.partly != 0) access.lane_bytes = lane_bytes;
  w.watch->access(w, i, access);
}

bool is_swizzled(const Wave& w, const Inst& i) { return w.sgpr[i.sbase + 1] >> 31; }

template <int kBytes>
void resolve(Wave& w, const Inst& i, Access::Kind kind, Reach& a, uint32_t skip = 0) {
  const bool write = kind == Access::kStore || kind == Access::kAtomic;
  const Descriptor d(&w.sgpr[i.sbase]);
  a.base = d.base;
  a.exec = w.exec();
  if (d.plain()) {
    raw<kBytes>(w, i, d, static_cast<uint64_t>(i.imm) + read_s32(w, i, i.soffset), write, a);
    if (a.all) return;
  } else if (d.swizzled && kBytes > 4) {  // loads and stores come here dword by dword
    a.ok = false;
    return w.stop("an access of more than 4 bytes that cannot be split, through a swizzled descriptor");
  } else {
    structured<kBytes>(w, i, d, skip, a);
  }
  if (a.inside != 0) {
    Addresses absolute;
    for (int l = 0; l < kLanes; ++l) absolute[l] = a.base + a.at[l];
    a.ok = check_lanes<kBytes>(w, i, absolute, a.inside, kind, true);
  }
  for (uint64_t mask = a.partly; a.ok && mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    const uint64_t bytes = (a.limit - a.at[l]) & ~3ull;
    if (w.memory->at(a.base + a.at[l], bytes, write)) continue;
    Access access = global_access(kind, a.at, 1ull << l, 1ull << l, static_cast<int>(bytes));
    access.base = a.base;
    access.clamped = true;
    a.ok = settle_outside(w, i, access);
    a.partly &= ~(1ull << l);
  }
}

// In-range dwords of a lane.
template <int kDwords>
int dwords_of(const Reach& a, int l) {
  if (a.inside >> l & 1) return kDwords;
  return a.partly >> l & 1 ? static_cast<int>((a.limit - a.at[l]) / 4) : 0;
}

void note(Wave& w, const Reach& a, uint32_t value) {
  if (a.inside != 0) note_load(w, a.base + a.at[first_lane(a.inside)], value);
}

// Under a watch: the lanes' data are gathered first.
[[gnu::noinline]] void land(Wave& w, const Inst& i, const LdsTarget& to, const Reach& a, const uint8_t* data,
                            int bytes, int lds_bytes) {
  Access access = global_access(Access::kDma, a.at, a.inside | a.partly, a.exec, bytes);
  access.base = a.base;
  access.clamped = true;
  land_watched(w, i, to, access, data, lds_bytes);
}

template <int kDwords>
void load_to_lds(Wave& w, const Inst& i, const Reach& a) {
  constexpr uint32_t kStep = kDwords == 1 ? 4 : 16;
  const LdsTarget to(w, i, kStep, 4 * kDwords);
  if (w.watch) [[unlikely]] {
    alignas(16) uint8_t data[kLanes][16] = {};
    for (uint64_t mask = a.inside | a.partly; mask != 0; mask &= mask - 1) {
      const int l = first_lane(mask);
      std::memcpy(data[l], place(a.base, a.at[l]), 4 * static_cast<size_t>(dwords_of<kDwords>(a, l)));
    }
    land(w, i, to, a, data[0], 4 * kDwords, 4 * kDwords);
    uint32_t first = 0;
    if (a.inside != 0) std::memcpy(&first, data[first_lane(a.inside)], 4);
    return note(w, a, first);
  }
  if (a.all && to.inside == ~0ull) {
    for (int l = 0; l < kLanes; ++l) std::memcpy(to.at(l), place(a.base, a.at[l]), 4 * kDwords);
    uint32_t first;
    std::memcpy(&first, to.at(0), 4);
    return note(w, a, first);
  }
  for (uint64_t mask = a.exec & to.inside; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    uint32_t value[kDwords] = {};
    if (a.inside >> l & 1) std::memcpy(value, place(a.base, a.at[l]), sizeof value);
    else std::memcpy(value, place(a.base, a.at[l]), 4 * static_cast<size_t>(dwords_of<kDwords>(a, l)));
    std::memcpy(to.at(l), value, sizeof value);
  }
  if (a.inside != 0) {
    uint32_t first;
    std::memcpy(&first, place(a.base, a.at[first_lane(a.inside)]), 4);
    note(w, a, first);
  }
}

// A swizzled descriptor spreads the dwords of a lane.
template <int kDwords, bool kStore>
[[gnu::noinline]] void move_swizzled(Wave& w, const Inst& i) {
  for (uint32_t d = 0; d < kDwords; ++d) {
    Reach a;
    resolve<4>(w, i, kStore ? Access::kStore : Access::kLoad, a, 4 * d);
    if (!a.ok) return;
    if (w.watch) [[unlikely]] watch(w, i, kStore ? Access::kStore : Access::kLoad, a, 4);
    uint32_t* reg = vreg(w, kStore ? i.data : i.dst) + d * kLanes;
    if (kStore) store_some<1>(a.base, a.at, reg, a.inside);
    else clear_lanes<1>(reg, a.exec & ~a.inside), load_some<1>(a.base, a.at, reg, a.inside);
  }
  if (kStore) ++w.progress;
  count_global(w, w.exec(), 4 * kDwords);
}

template <int kDwords>
void load(Wave& w, const Inst& i) {
  if (kDwords > 1 && !i.lds && is_swizzled(w, i)) [[unlikely]] return move_swizzled<kDwords, false>(w, i);
  Reach a;
  resolve<4 * kDwords>(w, i, i.lds ? Access::kDma : Access::kLoad, a);
  if (!a.ok) return;
  if (w.watch && !i.lds) [[unlikely]] watch(w, i, Access::kLoad, a, 4 * kDwords);
  count_global(w, a.exec, 4 * kDwords);
  if (i.lds) return load_to_lds<kDwords>(w, i, a);
  uint32_t* dst = vreg(w, i.dst);
  if (a.all) {
    load_all<kDwords>(a.base, a.at, dst);
    return note(w, a, dst[0]);
  }
  for (int d = 0; d < kDwords; ++d) {
    for (int l = 0; l < kLanes; ++l) {
      if (lane_on(a.exec & ~a.inside, l)) dst[d * kLanes + l] = 0;
    }
  }
  load_some<kDwords>(a.base, a.at, dst, a.inside);
  for (uint64_t mask = a.partly; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    for (int d = 0; d < dwords_of<kDwords>(a, l); ++d)
      std::memcpy(dst + d * kLanes + l, place(a.base, a.at[l]) + 4 * d, 4);
  }
  if (a.inside != 0) note(w, a, dst[first_lane(a.inside)]);
}

template <int kDwords>
void store(Wave& w, const Inst& i) {
  if (kDwords > 1 && is_swizzled(w, i)) [[unlikely]] return move_swizzled<kDwords, true>(w, i);
  Reach a;
  resolve<4 * kDwords>(w, i, Access::kStore, a);
  if (!a.ok) return;
  if (w.watch) [[unlikely]] watch(w, i, Access::kStore, a, 4 * kDwords);
  const uint32_t* src = vreg(w, i.data);
  if (a.all) store_all<kDwords>(a.base, a.at, src);
  else store_some<kDwords>(a.base, a.at, src, a.inside);
  for (uint64_t mask = a.partly; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    for (int d = 0; d < dwords_of<kDwords>(a, l); ++d)
      std::memcpy(place(a.base, a.at[l]) + 4 * d, src + d * kLanes + l, 4);
  }
  if ((a.inside | a.partly) != 0) ++w.progress;
  count_global(w, a.exec, 4 * kDwords);
}

template <typename T, Half kHalf>
void load_small(Wave& w, const Inst& i) {
  Reach a;
  resolve<sizeof(T)>(w, i, i.lds ? Access::kDma : Access::kLoad, a);
  if (!a.ok) return;
  if (w.watch && !i.lds) [[unlikely]] watch(w, i, Access::kLoad, a, sizeof(T));
  constexpr uint8_t kZero[4] = {};
  const LdsTarget to(w, i, 4, 4);
  uint32_t value = 0;
  alignas(16) uint8_t data[kLanes][16] = {};
  for (uint64_t mask = a.exec; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    const uint8_t* from = a.inside >> l & 1 ? place(a.base, a.at[l]) : kZero;
    if (w.watch != nullptr && i.lds) {
      load_narrow<T, kHalf>(from, *reinterpret_cast<uint32_t*>(data[l]));
      std::memcpy(&value, data[l], 4);
    } else if (!i.lds) {
      load_narrow<T, kHalf>(from, vreg(w, i.dst)[l]);
      value = vreg(w, i.dst)[l];
    } else if (to.inside >> l & 1) {
      load_narrow<T, kHalf>(from, value);
      std::memcpy(to.at(l), &value, 4);
    }
  }
  if (w.watch && i.lds) [[unlikely]] land(w, i, to, a, data[0], sizeof(T), 4);
  note(w, a, value);
  count_global(w, a.exec, sizeof(T));
}

template <typename T, Half kHalf>
void store_small(Wave& w, const Inst& i) {
  Reach a;
  resolve<sizeof(T)>(w, i, Access::kStore, a);
  if (!a.ok) return;
  if (w.watch) [[unlikely]] watch(w, i, Access::kStore, a, sizeof(T));
  const uint32_t* src = vreg(w, i.data);
  for (uint64_t mask = a.inside; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    store_narrow<T, kHalf>(place(a.base, a.at[l]), src[l]);
  }
  if (a.inside != 0) ++w.progress;
  count_global(w, a.exec, sizeof(T));
}

template <typename T> T lane_value(Wave& w, uint16_t code, int l) {
  T v = static_cast<T>(vreg(w, code)[l]);
  if constexpr (sizeof(T) == 8) v |= static_cast<T>(vreg(w, code)[kLanes + l]) << 32;
  return v;
}

template <class Op, typename T>
void atomic(Wave& w, const Inst& i) {
  Reach a;
  resolve<sizeof(T)>(w, i, Access::kAtomic, a);
  if (!a.ok) return;
  if (w.watch) [[unlikely]] watch(w, i, Access::kAtomic, a, sizeof(T));
  bool changed = false;
  T old = 0;
  for (uint64_t mask = a.exec; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    old = 0;
    if (a.inside >> l & 1) {
      const uint64_t address = a.base + a.at[l];
      if (address % sizeof(T) != 0) return w.stop("lane " + std::to_string(l) + ": misaligned buffer atomic");
      T* p = reinterpret_cast<T*>(address);
      const T data = lane_value<T>(w, i.data, l);
      if constexpr (std::is_void_v<Op>) {
        old = op::atomic_compare_swap(
            p, data, lane_value<T>(w, static_cast<uint16_t>(i.data + sizeof(T) / 4), l), &changed);
      } else {
        old = op::atomic_apply<Op>(p, data, &changed);
      }
    }
    if (i.dst == kNoOperand) continue;
    vreg(w, i.dst)[l] = static_cast<uint32_t>(old);
    if constexpr (sizeof(T) == 8) vreg(w, i.dst)[kLanes + l] = static_cast<uint32_t>(old >> 32);
  }
  if (changed) ++w.progress;
  else note(w, a, static_cast<uint32_t>(old));
  count_global(w, a.exec, sizeof(T));
}

}  // namespace

#define MI350_WIDE(width, dwords)                                                  \
  void buffer_load_##width(Wave& w, const Inst& i) { load<dwords>(w, i); }         \
  void buffer_store_##width(Wave& w, const Inst& i) { store<dwords>(w, i); }
MI350_WIDE(dword, 1) MI350_WIDE(dwordx2, 2) MI350_WIDE(dwordx3, 3) MI350_WIDE(dwordx4, 4)
#undef MI350_WIDE

#define MI350_LOAD(name, T, half) \
  void buffer_load_##name(Wave& w, const Inst& i) { load_small<T, Half::half>(w, i); }
MI350_LOAD(ubyte, uint8_t, kWhole) MI350_LOAD(sbyte, int8_t, kWhole) MI350_LOAD(ushort, uint16_t, kWhole)
MI350_LOAD(sshort, int16_t, kWhole) MI350_LOAD(ubyte_d16, uint8_t, kLow)
MI350_LOAD(ubyte_d16_hi, uint8_t, kHigh) MI350_LOAD(sbyte_d16, int8_t, kLow)
MI350_LOAD(sbyte_d16_hi, int8_t, kHigh) MI350_LOAD(short_d16, uint16_t, kLow)
MI350_LOAD(short_d16_hi, uint16_t, kHigh)
#undef MI350_LOAD

#define MI350_STORE(name, T, half) \
  void buffer_store_##name(Wave& w, const Inst& i) { store_small<T, Half::half>(w, i); }
MI350_STORE(byte, uint8_t, kWhole) MI350_STORE(byte_d16_hi, uint8_t, kHigh)
MI350_STORE(short, uint16_t, kWhole) MI350_STORE(short_d16_hi, uint16_t, kHigh)
#undef MI350_STORE

#define MI350_ATOMIC(name, Op, T) void buffer_atomic_##name(Wave& w, const Inst& i) { atomic<Op, T>(w, i); }
MI350_MEMORY_ATOMICS(MI350_ATOMIC)
#undef MI350_ATOMIC

// There are no caches; the fence orders this host thread's accesses as the instruction orders the wave's.
void buffer_wbl2(Wave&, const Inst&) { std::atomic_thread_fence(std::memory_order_seq_cst); }
void buffer_inv(Wave&, const Inst&) { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace mi350::emu::MI350_EMU_LEVEL
