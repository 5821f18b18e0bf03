// MUBUF: loads, stores, atomics and loads to LDS through a buffer descriptor.
//
//   raw:         no stride or no index; offset = register + instruction offset + soffset; every dword of an
//                access is checked against num_records bytes on its own. Hand-written GEMMs set a stride of 4
//                without an index and num_records in bytes, and need their rows past it read as 0.
//   structured:  offset = index * stride + ...; in range if index < num_records
// Out of range: loads give 0 (0 goes to LDS too), stores are dropped, atomics do nothing. In range but outside
// any allocation: fault.
#include <atomic>

#include "lane_atomics.h"
#include "lane_lds.h"
#include "lane_memory.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

struct Descriptor {
  uint64_t base;
  uint32_t stride, records;
  bool swizzled, add_lane;
  explicit Descriptor(const uint32_t* d)
      : base(d[0] | static_cast<uint64_t>(d[1] & 0xffff) << 32), stride((d[1] >> 16) & 0x3fff), records(d[2]),
        swizzled(d[1] >> 31), add_lane(d[3] >> 23 & 1) {}
};

// Offsets of the lanes from `base`, the lanes that are wholly in range, and of the other active ones those
// whose first dword is.
struct Access {
  uint64_t base = 0;
  Addresses at;
  uint64_t exec = 0, inside = 0, partly = 0;
  uint64_t limit = 0;        // raw: bytes in range
  bool all = false;          // every lane active and inside, memory already checked
  bool ok = true;
};

// Structured buffers: the range check is by index.
void structured(Wave& w, const Inst& i, const Descriptor& d, uint64_t offset, Access& a) {
  const uint32_t* index = i.idxen ? vreg(w, i.addr) : nullptr;
  const uint32_t* lane_offset = i.offen ? vreg(w, static_cast<uint16_t>(i.addr + i.idxen)) : nullptr;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t n = (index != nullptr ? index[l] : 0) + (d.add_lane ? static_cast<uint32_t>(l) : 0);
    a.at[l] = n * d.stride + (lane_offset != nullptr ? lane_offset[l] : 0) + offset;
    a.inside |= uint64_t{n < d.records} << l;
  }
  a.inside &= a.exec;
  a.limit = ~0ull;
}

template <int kBytes>
void raw(Wave& w, const Inst& i, const Descriptor& d, uint64_t offset, bool write, Access& a) {
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
  for (int l = 0; l < kLanes; ++l) {
    a.inside |= uint64_t{a.at[l] + kBytes <= d.records} << l;
    a.partly |= uint64_t{a.at[l] + 4 <= d.records} << l;
  }
  a.inside &= a.exec;
  a.partly &= a.exec & ~a.inside;
}

template <int kBytes>
void resolve(Wave& w, const Inst& i, bool write, Access& a) {
  const Descriptor d(&w.sgpr[i.sbase]);
  const uint64_t offset = static_cast<uint64_t>(i.imm) + read_s32(w, i, i.soffset);
  a.base = d.base;
  a.exec = w.exec();
  if (d.stride != 0 && d.swizzled) {
    a.ok = false;
    return w.stop("swizzled buffer descriptors are not supported");
  }
  if (d.stride == 0 || (!i.idxen && !d.add_lane)) {
    raw<kBytes>(w, i, d, offset, write, a);
    if (a.all) return;
  } else {
    structured(w, i, d, offset, a);
  }
  if (a.inside != 0) {
    Addresses absolute;
    for (int l = 0; l < kLanes; ++l) absolute[l] = a.base + a.at[l];
    a.ok = check_lanes<kBytes>(w, absolute, a.inside, write);
  }
  for (uint64_t mask = a.partly; a.ok && mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    const uint64_t bytes = (a.limit - a.at[l]) & ~3ull;
    if (w.memory->at(a.base + a.at[l], bytes, write)) continue;
    fault_at(w, l, a.base + a.at[l], bytes, write);
    a.ok = false;
  }
}

// In-range dwords of a lane.
template <int kDwords>
int dwords_of(const Access& a, int l) {
  if (a.inside >> l & 1) return kDwords;
  return a.partly >> l & 1 ? static_cast<int>((a.limit - a.at[l]) / 4) : 0;
}

void note(Wave& w, const Access& a, uint32_t value) {
  if (a.inside != 0) note_load(w, a.base + a.at[first_lane(a.inside)], value);
}

template <int kDwords>
void load_to_lds(Wave& w, const Inst& i, const Access& a) {
  constexpr uint32_t kStep = kDwords == 1 ? 4 : 16;
  const LdsTarget to(w, i, kStep, 4 * kDwords);
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

template <int kDwords>
void load(Wave& w, const Inst& i) {
  Access a;
  resolve<4 * kDwords>(w, i, false, a);
  if (!a.ok) return;
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
  Access a;
  resolve<4 * kDwords>(w, i, true, a);
  if (!a.ok) return;
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
  Access a;
  resolve<sizeof(T)>(w, i, false, a);
  if (!a.ok) return;
  constexpr uint8_t kZero[4] = {};
  const LdsTarget to(w, i, 4, 4);
  uint32_t value = 0;
  for (uint64_t mask = a.exec; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    const uint8_t* from = a.inside >> l & 1 ? place(a.base, a.at[l]) : kZero;
    if (!i.lds) {
      load_narrow<T, kHalf>(from, vreg(w, i.dst)[l]);
      value = vreg(w, i.dst)[l];
    } else if (to.inside >> l & 1) {
      load_narrow<T, kHalf>(from, value);
      std::memcpy(to.at(l), &value, 4);
    }
  }
  note(w, a, value);
  count_global(w, a.exec, sizeof(T));
}

template <typename T, Half kHalf>
void store_small(Wave& w, const Inst& i) {
  Access a;
  resolve<sizeof(T)>(w, i, true, a);
  if (!a.ok) return;
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
  Access a;
  resolve<sizeof(T)>(w, i, true, a);
  if (!a.ok) return;
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
#define MI350_ATOMICS(name, Op) MI350_ATOMIC(name, Op, uint32_t) MI350_ATOMIC(name##_x2, Op, uint64_t)
MI350_ATOMICS(swap, op::Swap) MI350_ATOMICS(cmpswap, void) MI350_ATOMICS(add, op::Add)
MI350_ATOMICS(sub, op::Sub) MI350_ATOMICS(smin, op::SignedMin) MI350_ATOMICS(umin, op::UnsignedMin)
MI350_ATOMICS(smax, op::SignedMax) MI350_ATOMICS(umax, op::UnsignedMax) MI350_ATOMICS(and, op::And)
MI350_ATOMICS(or, op::Or) MI350_ATOMICS(xor, op::Xor) MI350_ATOMICS(inc, op::Inc)
MI350_ATOMICS(dec, op::Dec) MI350_ATOMIC(add_f32, op::FloatAdd, uint32_t)
MI350_ATOMIC(add_f64, op::FloatAdd, uint64_t) MI350_ATOMIC(min_f64, op::FloatMin, uint64_t)
MI350_ATOMIC(max_f64, op::FloatMax, uint64_t) MI350_ATOMIC(pk_add_f16, op::PackedAddF16, uint32_t)
MI350_ATOMIC(pk_add_bf16, op::PackedAddBf16, uint32_t)
#undef MI350_ATOMICS
#undef MI350_ATOMIC

// There are no caches; the fence orders this host thread's accesses as the instruction orders the wave's.
void buffer_wbl2(Wave&, const Inst&) { std::atomic_thread_fence(std::memory_order_seq_cst); }
void buffer_inv(Wave&, const Inst&) { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace mi350::emu::MI350_EMU_LEVEL
