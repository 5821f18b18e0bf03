// GLOBAL, FLAT and SCRATCH: loads, stores, atomics, loads to LDS.
//
//   global   64-bit address of the lane, or scalar base + 32-bit offset of the lane; + 13-bit signed offset
//   flat     as global; addresses in the shared or private aperture go to LDS or to private memory
//   scratch  private memory: byte o of lane l lies at base + (o / 4) * 256 + 4 * l + o % 4
#include <atomic>

#include "lane_atomics.h"
#include "lane_lds.h"
#include "lane_memory.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

void addresses(Wave& w, const Inst& i, Addresses& a) {
  const uint32_t* v = vreg(w, i.addr);
  const uint64_t offset = static_cast<uint64_t>(static_cast<int64_t>(i.imm));
  if (i.sbase != kNoOperand) {
    const uint64_t base = read_s64(w, i, i.sbase) + offset;
    for (int l = 0; l < kLanes; ++l) a[l] = base + v[l];
  } else {
    for (int l = 0; l < kLanes; ++l) a[l] = (v[l] | static_cast<uint64_t>(v[kLanes + l]) << 32) + offset;
  }
}

// Byte `offset` of the lane's private memory.
uint8_t* private_byte(const Wave& w, int lane, uint32_t offset) {
  return place(w.scratch_base,
               static_cast<uint64_t>(offset & ~3u) * kLanes + 4u * static_cast<uint32_t>(lane) + (offset & 3));
}
bool private_holds(Wave& w, int lane, uint32_t offset, uint32_t bytes, bool write) {
  if (bytes <= w.scratch_bytes_per_lane && offset <= w.scratch_bytes_per_lane - bytes) return true;
  char text[160];
  std::snprintf(text, sizeof text, "lane %d %s %u bytes at offset %u of its private memory, which has %u bytes",
                lane, write ? "stores" : "loads", bytes, offset, w.scratch_bytes_per_lane);
  w.stop(text);
  return false;
}
void private_load(const Wave& w, int lane, uint32_t offset, uint8_t* out, uint32_t bytes) {
  for (uint32_t b = 0; b < bytes; ++b) out[b] = *private_byte(w, lane, offset + b);
}
void private_store(const Wave& w, int lane, uint32_t offset, const uint8_t* in, uint32_t bytes) {
  for (uint32_t b = 0; b < bytes; ++b) *private_byte(w, lane, offset + b) = in[b];
}

// A flat access that may leave global memory, one lane at a time.
bool in_aperture(const Addresses& a, uint64_t mask) {
  uint64_t seen = 0;
  for (int l = 0; l < kLanes; ++l) seen |= (mask >> l & 1) ? a[l] : 0;
  return seen >> 48 != 0;
}
// The parts of a flat access by where they lie; lanes outside every allocation fault later.
[[gnu::noinline]] void watch_flat(Wave& w, const Inst& i, Access::Kind kind, const Addresses& a, uint64_t exec,
                                  uint32_t bytes) {
  Offsets offset;
  uint64_t lds = 0, own = 0;
  for (int l = 0; l < kLanes; ++l) {
    offset[l] = static_cast<uint32_t>(a[l]);
    lds |= uint64_t{a[l] >> 32 == kSharedAperture >> 32} << l;
    own |= uint64_t{a[l] >> 32 == kPrivateAperture >> 32} << l;
  }
  if (exec & lds) watch_lds(w, i, kind, offset.data(), exec & lds, bytes);
  if (exec & own) {
    Access access;
    access.space = Access::kScratch;
    access.kind = kind;
    access.lds = offset.data();
    access.mask = exec & own;
    access.bytes = static_cast<int>(bytes);
    w.watch->access(w, i, access);
  }
  const uint64_t rest = exec & ~lds & ~own;
  if (rest) watch_global(w, i, kind, a, rest, rest, static_cast<int>(bytes));
}
bool move_flat(Wave& w, const Inst& i, int lane, uint64_t address, uint8_t* data, uint32_t bytes, bool write) {
  const auto offset = static_cast<uint32_t>(address);
  if (address >> 32 == kSharedAperture >> 32) {
    const bool inside = bytes <= w.group->lds_bytes && offset <= w.group->lds_bytes - bytes;
    if (write && inside) std::memcpy(w.group->lds + offset, data, bytes);
    if (!write) inside ? std::memcpy(data, w.group->lds + offset, bytes) : std::memset(data, 0, bytes);
    return true;
  }
  if (address >> 32 == kPrivateAperture >> 32) {
    if (!private_holds(w, lane, offset, bytes, write)) return false;
    write ? private_store(w, lane, offset, data, bytes) : private_load(w, lane, offset, data, bytes);
    return true;
  }
  uint8_t* p = w.memory->at(address, bytes, write);
  if (p == nullptr) {
    Addresses one;
    one[static_cast<size_t>(lane)] = address;
    const uint64_t mask = 1ull << lane;
    if (!settle_outside(w, i, global_access(write ? Access::kStore : Access::kLoad, one, mask, mask,
                                            static_cast<int>(bytes))))
      return false;
    if (!write) std::memset(data, 0, bytes);
    return true;
  }
  write ? std::memcpy(p, data, bytes) : std::memcpy(data, p, bytes);
  return true;
}

template <int kDwords, bool kFlat>
void load(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, a);
  const uint64_t exec = w.exec();
  uint32_t* dst = vreg(w, i.dst);
  if (kFlat && in_aperture(a, exec)) {
    if (w.watch) [[unlikely]] watch_flat(w, i, Access::kLoad, a, exec, 4 * kDwords);
    for (uint64_t mask = exec; mask != 0; mask &= mask - 1) {
      const int l = first_lane(mask);
      uint32_t value[kDwords];
      if (!move_flat(w, i, l, a[l], reinterpret_cast<uint8_t*>(value), 4 * kDwords, false)) return;
      for (int d = 0; d < kDwords; ++d) dst[d * kLanes + l] = value[d];
    }
    return;
  }
  uint64_t usable = exec;
  if (!check_lanes<4 * kDwords>(w, i, a, usable, Access::kLoad)) return;
  if (w.watch) [[unlikely]] watch_global(w, i, Access::kLoad, a, usable, exec, 4 * kDwords);
  if (usable == ~0ull) load_all<kDwords>(0, a, dst);
  else load_some<kDwords>(0, a, dst, usable);
  clear_lanes<kDwords>(dst, exec & ~usable);
  if (usable == 0) return;
  const int l = first_lane(usable);
  note_load(w, a[l], dst[l]);
  count_global(w, exec, 4 * kDwords);
}

template <int kDwords, bool kFlat>
void store(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, a);
  const uint64_t exec = w.exec();
  const uint32_t* src = vreg(w, i.data);
  if (kFlat && in_aperture(a, exec)) {
    if (w.watch) [[unlikely]] watch_flat(w, i, Access::kStore, a, exec, 4 * kDwords);
    for (uint64_t mask = exec; mask != 0; mask &= mask - 1) {
      const int l = first_lane(mask);
      uint32_t value[kDwords];
      for (int d = 0; d < kDwords; ++d) value[d] = src[d * kLanes + l];
      if (!move_flat(w, i, l, a[l], reinterpret_cast<uint8_t*>(value), 4 * kDwords, true)) return;
    }
    return;
  }
  uint64_t usable = exec;
  if (!check_lanes<4 * kDwords>(w, i, a, usable, Access::kStore)) return;
  if (w.watch) [[unlikely]] watch_global(w, i, Access::kStore, a, usable, exec, 4 * kDwords);
  if (usable == ~0ull) store_all<kDwords>(0, a, src);
  else store_some<kDwords>(0, a, src, usable);
  ++w.progress;
  count_global(w, exec, 4 * kDwords);
}

template <typename T, Half kHalf, bool kFlat>
void load_small(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, a);
  const uint64_t exec = w.exec();
  uint32_t* dst = vreg(w, i.dst);
  const bool split = kFlat && in_aperture(a, exec);
  uint64_t usable = exec;
  if (!split && !check_lanes<sizeof(T)>(w, i, a, usable, Access::kLoad)) return;
  if (w.watch) [[unlikely]] {
    if (split) watch_flat(w, i, Access::kLoad, a, exec, sizeof(T));
    else watch_global(w, i, Access::kLoad, a, usable, exec, sizeof(T));
  }
  constexpr uint8_t kZero[4] = {};
  for (uint64_t mask = exec; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    uint8_t value[sizeof(T)];
    if (split && !move_flat(w, i, l, a[l], value, sizeof(T), false)) return;
    load_narrow<T, kHalf>(split ? value : usable >> l & 1 ? place(0, a[l]) : kZero, dst[l]);
  }
  if (exec != 0) note_load(w, a[first_lane(exec)], dst[first_lane(exec)]);
  count_global(w, exec, sizeof(T));
}

template <typename T, Half kHalf, bool kFlat>
void store_small(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, a);
  const uint64_t exec = w.exec();
  const uint32_t* src = vreg(w, i.data);
  const bool split = kFlat && in_aperture(a, exec);
  uint64_t usable = exec;
  if (!split && !check_lanes<sizeof(T)>(w, i, a, usable, Access::kStore)) return;
  if (w.watch) [[unlikely]] {
    if (split) watch_flat(w, i, Access::kStore, a, exec, sizeof(T));
    else watch_global(w, i, Access::kStore, a, usable, exec, sizeof(T));
  }
  for (uint64_t mask = usable; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    uint8_t value[sizeof(T)];
    store_narrow<T, kHalf>(split ? value : place(0, a[l]), src[l]);
    if (split && !move_flat(w, i, l, a[l], value, sizeof(T), true)) return;
  }
  ++w.progress;
  count_global(w, exec, sizeof(T));
}

// The aligned place of an atomic, or null after a fault.
template <typename T>
T* atomic_place(Wave& w, const Inst& i, int lane, const Addresses& at) {
  const uint64_t address = at[static_cast<size_t>(lane)];
  if (address % sizeof(T) != 0) {
    w.stop("lane " + std::to_string(lane) + ": atomic at an address that is not " + std::to_string(sizeof(T)) +
           "-byte aligned");
    return nullptr;
  }
  if (address >> 32 == kSharedAperture >> 32) {
    const auto offset = static_cast<uint32_t>(address);
    if (offset + sizeof(T) <= w.group->lds_bytes) return reinterpret_cast<T*>(w.group->lds + offset);
    w.stop("lane " + std::to_string(lane) + ": flat atomic outside the LDS allocation");
    return nullptr;
  }
  uint8_t* p = w.memory->at(address, sizeof(T), true);
  const uint64_t mask = 1ull << lane;
  if (p == nullptr) settle_outside(w, i, global_access(Access::kAtomic, at, mask, mask, sizeof(T)));
  return reinterpret_cast<T*>(p);
}

template <typename T> T lane_value(Wave& w, uint16_t code, int l) {
  T v = static_cast<T>(vreg(w, code)[l]);
  if constexpr (sizeof(T) == 8) v |= static_cast<T>(vreg(w, code)[kLanes + l]) << 32;
  return v;
}

template <class Op, typename T>
void atomic(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, a);
  const uint64_t exec = w.exec();
  if (w.watch) [[unlikely]] watch_flat(w, i, Access::kAtomic, a, exec, sizeof(T));
  bool changed = false;
  T old = 0;
  for (uint64_t mask = exec; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    T* p = atomic_place<T>(w, i, l, a);
    if (p == nullptr) {
      if (w.status == WaveStatus::kFault) return;
      continue;
    }
    const T data = lane_value<T>(w, i.data, l);
    if constexpr (std::is_void_v<Op>) {
      old = op::atomic_compare_swap(p, data, lane_value<T>(w, static_cast<uint16_t>(i.data + sizeof(T) / 4), l),
                                    &changed);
    } else {
      old = op::atomic_apply<Op>(p, data, &changed);
    }
    if (i.dst == kNoOperand) continue;
    vreg(w, i.dst)[l] = static_cast<uint32_t>(old);
    if constexpr (sizeof(T) == 8) vreg(w, i.dst)[kLanes + l] = static_cast<uint32_t>(old >> 32);
  }
  if (changed) ++w.progress;
  else if (exec != 0) note_load(w, a[first_lane(exec)], static_cast<uint32_t>(old));
  count_global(w, exec, sizeof(T));
}

// Under a watch: the lanes' data are gathered first.
template <typename T, int kBytes>
[[gnu::noinline]] void load_lds_watched(Wave& w, const Inst& i, const LdsTarget& to, const Addresses& a,
                                        uint64_t usable, uint64_t exec) {
  alignas(16) uint8_t data[kLanes][16] = {};
  for (uint64_t mask = usable; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    if constexpr (std::is_void_v<T>) std::memcpy(data[l], place(0, a[l]), kBytes);
    else load_narrow<T, Half::kWhole>(place(0, a[l]), *reinterpret_cast<uint32_t*>(data[l]));
  }
  Access access = global_access(Access::kDma, a, usable, exec, kBytes);
  land_watched(w, i, to, access, data[0], std::is_void_v<T> ? kBytes : 4);
}

// Lane l lands at M0 + offset + l * kStep of the LDS; narrow loads are widened to a dword.
template <int kDwords, int kStep>
void load_lds(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, a);
  const uint64_t exec = w.exec();
  uint64_t usable = exec;
  if (!check_lanes<4 * kDwords>(w, i, a, usable, Access::kDma)) return;
  const LdsTarget to(w, i, kStep, 4 * kDwords);
  if (w.watch) [[unlikely]] {
    load_lds_watched<void, 4 * kDwords>(w, i, to, a, usable, exec);
  } else if ((exec & to.inside) == ~0ull) {
    for (int l = 0; l < kLanes; ++l) std::memcpy(to.at(l), place(0, a[l]), 4 * kDwords);
  } else {
    for (uint64_t mask = exec & to.inside; mask != 0; mask &= mask - 1) {
      const int l = first_lane(mask);
      std::memcpy(to.at(l), place(0, a[l]), 4 * kDwords);
    }
  }
  if (usable == 0) return;
  uint32_t value;
  std::memcpy(&value, place(0, a[first_lane(usable)]), 4);
  note_load(w, a[first_lane(usable)], value);
  count_global(w, exec, 4 * kDwords);
}
template <typename T>
void load_lds_small(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, a);
  const uint64_t exec = w.exec();
  uint64_t usable = exec;
  if (!check_lanes<sizeof(T)>(w, i, a, usable, Access::kDma)) return;
  const LdsTarget to(w, i, 4, 4);
  if (w.watch) [[unlikely]] load_lds_watched<T, sizeof(T)>(w, i, to, a, usable, exec);
  uint32_t value = 0;
  for (uint64_t mask = usable & to.inside; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    load_narrow<T, Half::kWhole>(place(0, a[l]), value);
    if (!w.watch) std::memcpy(to.at(l), &value, 4);
  }
  if (usable != 0) note_load(w, a[first_lane(usable)], value);
  count_global(w, exec, sizeof(T));
}

// Offsets into private memory; true if all lanes use the same dword-aligned one, the case of spills.
bool scratch_offsets(Wave& w, const Inst& i, Offsets& at) {
  uint32_t base = static_cast<uint32_t>(i.imm);
  if (i.sbase != kNoOperand) base += read_s32(w, i, i.sbase);
  if (i.addr == kNoOperand) {
    at.fill(base);
    return base % 4 == 0;
  }
  const uint32_t* v = vreg(w, i.addr);
  for (int l = 0; l < kLanes; ++l) at[l] = base + v[l];
  return false;
}

[[gnu::noinline]] void watch_scratch(Wave& w, const Inst& i, bool store, const Offsets& at, int bytes) {
  Access a;
  a.space = Access::kScratch;
  a.kind = store ? Access::kStore : Access::kLoad;
  a.lds = at.data();
  a.mask = w.exec();
  a.bytes = bytes;
  w.watch->access(w, i, a);
}

template <int kDwords, bool kStore>
void scratch(Wave& w, const Inst& i) {
  Offsets at;
  const bool uniform = scratch_offsets(w, i, at);
  if (w.watch) [[unlikely]] watch_scratch(w, i, kStore, at, 4 * kDwords);
  const uint64_t exec = w.exec();
  uint32_t* reg = vreg(w, kStore ? i.data : i.dst);
  if (uniform && exec == ~0ull) {
    if (!private_holds(w, 0, at[0], 4 * kDwords, kStore)) return;
    uint8_t* p = private_byte(w, 0, at[0]);
    kStore ? std::memcpy(p, reg, 4 * kDwords * kLanes) : std::memcpy(reg, p, 4 * kDwords * kLanes);
    return;
  }
  for (uint64_t mask = exec; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    if (!private_holds(w, l, at[l], 4 * kDwords, kStore)) return;
    for (int d = 0; d < kDwords; ++d) {
      auto* bytes = reinterpret_cast<uint8_t*>(reg + d * kLanes + l);
      const uint32_t from = at[l] + 4 * static_cast<uint32_t>(d);
      kStore ? private_store(w, l, from, bytes, 4) : private_load(w, l, from, bytes, 4);
    }
  }
}
template <typename T, Half kHalf, bool kStore>
void scratch_small(Wave& w, const Inst& i) {
  Offsets at;
  scratch_offsets(w, i, at);
  if (w.watch) [[unlikely]] watch_scratch(w, i, kStore, at, sizeof(T));
  uint32_t* reg = vreg(w, kStore ? i.data : i.dst);
  for (uint64_t mask = w.exec(); mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    if (!private_holds(w, l, at[l], sizeof(T), kStore)) return;
    uint8_t bytes[sizeof(T)];
    if constexpr (kStore) {
      store_narrow<T, kHalf>(bytes, reg[l]);
      private_store(w, l, at[l], bytes, sizeof(T));
    } else {
      private_load(w, l, at[l], bytes, sizeof(T));
      load_narrow<T, kHalf>(bytes, reg[l]);
    }
  }
}

// Private memory to LDS; a value of T is widened to a dword.
template <typename T> void scratch_lds(Wave& w, const Inst& i) {
  Offsets at;
  scratch_offsets(w, i, at);
  const LdsTarget to(w, i, 4, 4);
  const uint64_t exec = w.exec();
  alignas(16) uint8_t data[kLanes][16] = {};
  Addresses from{};
  for (uint64_t mask = exec; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    if (!private_holds(w, l, at[l], sizeof(T), false)) return;
    from[l] = reinterpret_cast<uint64_t>(private_byte(w, l, at[l]));
    uint8_t bytes[sizeof(T)];
    private_load(w, l, at[l], bytes, sizeof(T));
    load_narrow<T, Half::kWhole>(bytes, *reinterpret_cast<uint32_t*>(data[l]));
    if (!w.watch && (to.inside >> l & 1)) std::memcpy(to.at(l), data[l], 4);
  }
  if (!w.watch) return;
  Access access = global_access(Access::kDma, from, exec, exec, sizeof(T));
  access.space = Access::kScratch;
  land_watched(w, i, to, access, data[0], 4);
}

}  // namespace

#define MI350_WIDE(width, dwords)                                                         \
  void global_load_##width(Wave& w, const Inst& i) { load<dwords, false>(w, i); }         \
  void global_store_##width(Wave& w, const Inst& i) { store<dwords, false>(w, i); }       \
  void flat_load_##width(Wave& w, const Inst& i) { load<dwords, true>(w, i); }            \
  void flat_store_##width(Wave& w, const Inst& i) { store<dwords, true>(w, i); }          \
  void scratch_load_##width(Wave& w, const Inst& i) { scratch<dwords, false>(w, i); }     \
  void scratch_store_##width(Wave& w, const Inst& i) { scratch<dwords, true>(w, i); }
MI350_WIDE(dword, 1) MI350_WIDE(dwordx2, 2) MI350_WIDE(dwordx3, 3) MI350_WIDE(dwordx4, 4)
#undef MI350_WIDE

#define MI350_LOAD(name, T, half)                                                                     \
  void global_load_##name(Wave& w, const Inst& i) { load_small<T, Half::half, false>(w, i); }         \
  void flat_load_##name(Wave& w, const Inst& i) { load_small<T, Half::half, true>(w, i); }            \
  void scratch_load_##name(Wave& w, const Inst& i) { scratch_small<T, Half::half, false>(w, i); }
MI350_LOAD(ubyte, uint8_t, kWhole) MI350_LOAD(sbyte, int8_t, kWhole) MI350_LOAD(ushort, uint16_t, kWhole)
MI350_LOAD(sshort, int16_t, kWhole) MI350_LOAD(ubyte_d16, uint8_t, kLow)
MI350_LOAD(ubyte_d16_hi, uint8_t, kHigh) MI350_LOAD(sbyte_d16, int8_t, kLow)
MI350_LOAD(sbyte_d16_hi, int8_t, kHigh) MI350_LOAD(short_d16, uint16_t, kLow)
MI350_LOAD(short_d16_hi, uint16_t, kHigh)
#undef MI350_LOAD

#define MI350_STORE(name, T, half)                                                                    \
  void global_store_##name(Wave& w, const Inst& i) { store_small<T, Half::half, false>(w, i); }       \
  void flat_store_##name(Wave& w, const Inst& i) { store_small<T, Half::half, true>(w, i); }          \
  void scratch_store_##name(Wave& w, const Inst& i) { scratch_small<T, Half::half, true>(w, i); }
MI350_STORE(byte, uint8_t, kWhole) MI350_STORE(byte_d16_hi, uint8_t, kHigh)
MI350_STORE(short, uint16_t, kWhole) MI350_STORE(short_d16_hi, uint16_t, kHigh)
#undef MI350_STORE

void global_load_lds_ubyte(Wave& w, const Inst& i) { load_lds_small<uint8_t>(w, i); }
void global_load_lds_sbyte(Wave& w, const Inst& i) { load_lds_small<int8_t>(w, i); }
void global_load_lds_ushort(Wave& w, const Inst& i) { load_lds_small<uint16_t>(w, i); }
void global_load_lds_sshort(Wave& w, const Inst& i) { load_lds_small<int16_t>(w, i); }
void scratch_load_lds_ubyte(Wave& w, const Inst& i) { scratch_lds<uint8_t>(w, i); }
void scratch_load_lds_sbyte(Wave& w, const Inst& i) { scratch_lds<int8_t>(w, i); }
void scratch_load_lds_ushort(Wave& w, const Inst& i) { scratch_lds<uint16_t>(w, i); }
void scratch_load_lds_sshort(Wave& w, const Inst& i) { scratch_lds<int16_t>(w, i); }
void scratch_load_lds_dword(Wave& w, const Inst& i) { scratch_lds<uint32_t>(w, i); }
void global_load_lds_dword(Wave& w, const Inst& i) { load_lds<1, 4>(w, i); }
void global_load_lds_dwordx3(Wave& w, const Inst& i) { load_lds<3, 16>(w, i); }
void global_load_lds_dwordx4(Wave& w, const Inst& i) { load_lds<4, 16>(w, i); }

#define MI350_ATOMIC(name, Op, T)                                                 \
  void global_atomic_##name(Wave& w, const Inst& i) { atomic<Op, T>(w, i); }      \
  void flat_atomic_##name(Wave& w, const Inst& i) { atomic<Op, T>(w, i); }
MI350_MEMORY_ATOMICS(MI350_ATOMIC)
#undef MI350_ATOMIC

}  // namespace mi350::emu::MI350_EMU_LEVEL
