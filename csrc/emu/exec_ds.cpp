// LDS: reads, writes, atomics, lane permutations, transpose reads.
//
// Address of a lane = register + instruction offset, 32 bits with wrap. Outside the workgroup's allocation
// reads give 0 and writes are dropped. The waves of a workgroup run on one host thread, so nothing here needs
// host atomics.
#include "lane_atomics.h"
#include "lane_memory.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

struct Lds {
  uint8_t* base;
  uint32_t bytes;
  explicit Lds(const Wave& w) : base(w.group->lds), bytes(w.group->lds_bytes) {}
  bool holds(uint32_t at, uint32_t size) const { return size <= bytes && at <= bytes - size; }
};

// The lanes' offsets; returns the largest.
inline uint32_t offsets(Wave& w, const Inst& i, uint32_t imm, Offsets& at) {
  const uint32_t* addr = vreg(w, i.addr);
  uint32_t largest = 0;
  for (int l = 0; l < kLanes; ++l) {
    at[l] = addr[l] + imm;
    largest = at[l] > largest ? at[l] : largest;
  }
  return largest;
}

template <int kDwords>
inline void read(Wave& w, const Inst& i, uint32_t imm, uint32_t* dst) {
  const Lds lds(w);
  const uint64_t exec = w.exec();
  Offsets at;
  const uint32_t largest = offsets(w, i, imm, at);
  count_lds(w, exec, 4 * kDwords);
  if (w.watch) [[unlikely]] watch_lds(w, i, Access::kLoad, at.data(), exec, 4 * kDwords);
  if (exec == ~0ull && lds.holds(largest, 4 * kDwords)) return load_all<kDwords>(place_of(lds.base), at, dst);
  for (uint64_t mask = exec; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    for (int d = 0; d < kDwords; ++d) {
      uint32_t value = 0;
      if (lds.holds(at[l], 4 * kDwords)) std::memcpy(&value, lds.base + at[l] + 4 * d, 4);
      dst[d * kLanes + l] = value;
    }
  }
}

template <int kDwords>
inline void write(Wave& w, const Inst& i, uint32_t imm, uint16_t data) {
  const Lds lds(w);
  const uint64_t exec = w.exec();
  Offsets at;
  const uint32_t largest = offsets(w, i, imm, at);
  const uint32_t* src = vreg(w, data);
  count_lds(w, exec, 4 * kDwords);
  if (w.watch) [[unlikely]] watch_lds(w, i, Access::kStore, at.data(), exec, 4 * kDwords);
  if (exec == ~0ull && lds.holds(largest, 4 * kDwords)) return store_all<kDwords>(place_of(lds.base), at, src);
  uint64_t inside = 0;
  for (int l = 0; l < kLanes; ++l) inside |= uint64_t{lds.holds(at[l], 4 * kDwords)} << l;
  store_some<kDwords>(place_of(lds.base), at, src, exec & inside);
}

template <typename T, Half kHalf>
void read_narrow(Wave& w, const Inst& i) {
  const Lds lds(w);
  Offsets at;
  offsets(w, i, static_cast<uint32_t>(i.imm), at);
  if (w.watch) [[unlikely]] watch_lds(w, i, Access::kLoad, at.data(), w.exec(), sizeof(T));
  uint32_t* dst = vreg(w, i.dst);
  constexpr uint8_t kZero[4] = {};
  for (uint64_t mask = w.exec(); mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    load_narrow<T, kHalf>(lds.holds(at[l], sizeof(T)) ? lds.base + at[l] : kZero, dst[l]);
  }
  count_lds(w, w.exec(), sizeof(T));
}

template <typename T, Half kHalf>
void write_narrow(Wave& w, const Inst& i) {
  const Lds lds(w);
  Offsets at;
  offsets(w, i, static_cast<uint32_t>(i.imm), at);
  if (w.watch) [[unlikely]] watch_lds(w, i, Access::kStore, at.data(), w.exec(), sizeof(T));
  const uint32_t* src = vreg(w, i.data);
  for (uint64_t mask = w.exec(); mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    if (lds.holds(at[l], sizeof(T))) store_narrow<T, kHalf>(lds.base + at[l], src[l]);
  }
  count_lds(w, w.exec(), sizeof(T));
}

// The two-address forms: offsets in units of the element, or of 64 elements.
template <int kDwords, int kUnit>
void read_two(Wave& w, const Inst& i) {
  const uint32_t first = (static_cast<uint32_t>(i.imm) & 0xff) * kUnit,
                 second = (static_cast<uint32_t>(i.imm) >> 8 & 0xff) * kUnit;
  uint32_t* dst = vreg(w, i.dst);
  alignas(64) uint32_t low[kDwords * kLanes];  // the address register may be a destination too
  std::memcpy(low, dst, sizeof low);
  read<kDwords>(w, i, first, low);
  read<kDwords>(w, i, second, dst + kDwords * kLanes);
  std::memcpy(dst, low, sizeof low);
}
template <int kDwords, int kUnit>
void write_two(Wave& w, const Inst& i) {
  write<kDwords>(w, i, (static_cast<uint32_t>(i.imm) & 0xff) * kUnit, i.data);
  write<kDwords>(w, i, (static_cast<uint32_t>(i.imm) >> 8 & 0xff) * kUnit, i.data1);
}

template <typename T> T lane_value(Wave& w, uint16_t code, int l) {
  T v = static_cast<T>(vreg(w, code)[l]);
  if constexpr (sizeof(T) == 8) v |= static_cast<T>(vreg(w, code)[kLanes + l]) << 32;
  return v;
}
template <typename T> void set_lane_value(Wave& w, uint16_t code, int l, T v) {
  vreg(w, code)[l] = static_cast<uint32_t>(v);
  if constexpr (sizeof(T) == 8) vreg(w, code)[kLanes + l] = static_cast<uint32_t>(v >> 32);
}

// next(old, first data, second data); lanes in order.
template <typename T, typename Next>
void modify(Wave& w, const Inst& i, uint32_t imm, uint16_t data, uint16_t dst, Next next) {
  const Lds lds(w);
  Offsets at;
  offsets(w, i, imm, at);
  if (w.watch) [[unlikely]] watch_lds(w, i, Access::kAtomic, at.data(), w.exec(), sizeof(T));
  for (uint64_t mask = w.exec(); mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    T old = 0;
    if (lds.holds(at[l], sizeof(T))) {
      std::memcpy(&old, lds.base + at[l], sizeof(T));
      const T value =
          next(old, lane_value<T>(w, data, l), i.data1 == kNoOperand ? T{0} : lane_value<T>(w, i.data1, l));
      std::memcpy(lds.base + at[l], &value, sizeof(T));
    }
    if (dst != kNoOperand) set_lane_value<T>(w, dst, l, old);
  }
  count_lds(w, w.exec(), sizeof(T));
}
template <typename T, typename Next>
void modify(Wave& w, const Inst& i, Next next) {
  modify<T>(w, i, static_cast<uint32_t>(i.imm), i.data, i.dst, next);
}

template <typename T, int kUnit>
void exchange_two(Wave& w, const Inst& i) {
  const auto swap = [](T, T d, T) { return d; };
  const uint32_t offset = static_cast<uint32_t>(i.imm);
  Lanes address;
  std::memcpy(address.data(), vreg(w, i.addr), sizeof address);
  modify<T>(w, i, (offset & 0xff) * kUnit, i.data, i.dst, swap);
  Lanes written;  // the first result may have replaced the address register
  std::memcpy(written.data(), vreg(w, i.addr), sizeof written);
  std::memcpy(vreg(w, i.addr), address.data(), sizeof address);
  const auto second = static_cast<uint16_t>(i.dst + sizeof(T) / 4);
  modify<T>(w, i, (offset >> 8 & 0xff) * kUnit, i.data1, second, swap);
  if (i.addr < second || i.addr >= second + sizeof(T) / 4)
    std::memcpy(vreg(w, i.addr), written.data(), sizeof written);
}

// Rows for the transpose reads: `kBytes` at every lane's address. False after a fault.
template <int kBytes> using Rows = std::array<std::array<uint8_t, kBytes>, kLanes>;
template <int kBytes, int kAlign>
bool transpose_rows(Wave& w, const Inst& i, Rows<kBytes>& rows) {
  const Lds lds(w);
  const uint64_t exec = w.exec();
  Offsets at;
  const uint32_t largest = offsets(w, i, static_cast<uint32_t>(i.imm), at);
  uint32_t low_bits = 0;
  for (int l = 0; l < kLanes; ++l) low_bits |= at[l];
  count_lds(w, exec, kBytes);
  if (w.watch) [[unlikely]] watch_lds(w, i, Access::kLoad, at.data(), exec, kBytes);
  if (exec == ~0ull && low_bits % kAlign == 0 && lds.holds(largest, kBytes)) {
    for (int l = 0; l < kLanes; ++l) std::memcpy(rows[l].data(), lds.base + at[l], kBytes);
    return true;
  }
  for (int l = 0; l < kLanes; ++l) {
    rows[l] = {};
    if (!lane_on(exec, l)) continue;
    if (at[l] % kAlign != 0) {
      w.stop("lane " + std::to_string(l) + ": LDS address " + std::to_string(at[l]) +
             " of a transpose read is not " + std::to_string(kAlign) + "-byte aligned");
      return false;
    }
    if (lds.holds(at[l], kBytes)) std::memcpy(rows[l].data(), lds.base + at[l], kBytes);
  }
  return true;
}

template <int kDwords>
void commit(Wave& w, const Inst& i, const uint32_t (&out)[kDwords][kLanes]) {
  uint32_t* dst = vreg(w, i.dst);
  const uint64_t exec = w.exec();
  if (exec == ~0ull) {
    std::memcpy(dst, out, sizeof out);
    return;
  }
  for (int d = 0; d < kDwords; ++d) {
    for (int l = 0; l < kLanes; ++l) {
      if (lane_on(exec, l)) dst[d * kLanes + l] = out[d][l];
    }
  }
}

}  // namespace

// In a group of 16 lanes with E elements per lane, element n of lane l comes from lane (16/E)n + l/E, element
// l mod E: number 16n + l of the group's elements in order. So plain loops over the gathered rows do it.
void ds_read_b64_tr_b16(Wave& w, const Inst& i) {
  alignas(64) Rows<8> rows;
  if (!transpose_rows<8, 8>(w, i, rows)) return;
  alignas(64) uint32_t out[2][kLanes];
  for (int g = 0; g < kLanes; g += 16) {
    alignas(64) uint16_t e[64];
    std::memcpy(e, rows[g].data(), sizeof e);
    for (int l = 0; l < 16; ++l) out[0][g + l] = e[l] | static_cast<uint32_t>(e[16 + l]) << 16;
    for (int l = 0; l < 16; ++l) out[1][g + l] = e[32 + l] | static_cast<uint32_t>(e[48 + l]) << 16;
  }
  commit(w, i, out);
}
namespace {
// Rows of byte-wide elements, 16 a row, side by side in the dwords of 16 lanes, `kBits` apart.
template <int kRows, int kBits>
inline void pack_rows(const uint8_t* e, uint32_t* out) {
  uint32_t word[16] = {};
  for (int n = 0; n < kRows; ++n) {
    for (int l = 0; l < 16; ++l) word[l] |= static_cast<uint32_t>(e[16 * n + l]) << (kBits * n);
  }
  std::memcpy(out, word, sizeof word);
}
}  // namespace
void ds_read_b64_tr_b8(Wave& w, const Inst& i) {
  alignas(64) Rows<8> rows;
  if (!transpose_rows<8, 8>(w, i, rows)) return;
  alignas(64) uint32_t out[2][kLanes];
  for (int g = 0; g < kLanes; g += 16) {
    for (int d = 0; d < 2; ++d) pack_rows<4, 8>(rows[g].data() + 64 * d, out[d] + g);
  }
  commit(w, i, out);
}
void ds_read_b64_tr_b4(Wave& w, const Inst& i) {
  alignas(64) Rows<8> rows;
  if (!transpose_rows<8, 8>(w, i, rows)) return;
  alignas(64) uint32_t out[2][kLanes];
  for (int g = 0; g < kLanes; g += 16) {
    alignas(64) uint8_t e[256];
    for (int n = 0; n < 128; ++n) {
      e[2 * n] = rows[g].data()[n] & 15;
      e[2 * n + 1] = rows[g].data()[n] >> 4;
    }
    for (int d = 0; d < 2; ++d) pack_rows<8, 4>(e + 128 * d, out[d] + g);
  }
  commit(w, i, out);
}
void ds_read_b96_tr_b6(Wave& w, const Inst& i) {
  Rows<12> rows;
  if (!transpose_rows<12, 16>(w, i, rows)) return;
  alignas(64) uint32_t out[3][kLanes];
  for (int g = 0; g < kLanes; g += 16) {
    uint8_t e[16][16];
    for (int n = 0; n < 16; ++n) {
      for (int four = 0; four < 4; ++four) {
        const uint8_t* p = rows[g + n].data() + 3 * four;
        const uint32_t bits = p[0] | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16;
        for (int k = 0; k < 4; ++k) e[n][4 * four + k] = bits >> (6 * k) & 63;
      }
    }
    for (int l = 0; l < 16; ++l) {
      uint64_t low = 0, high = 0;  // elements 0-7 and 8-15, 48 bits each
      for (int n = 0; n < 8; ++n) {
        low |= static_cast<uint64_t>(e[n][l]) << (6 * n);
        high |= static_cast<uint64_t>(e[8 + n][l]) << (6 * n);
      }
      out[0][g + l] = static_cast<uint32_t>(low);
      out[1][g + l] = static_cast<uint32_t>(low >> 32 | high << 16);
      out[2][g + l] = static_cast<uint32_t>(high >> 16);
    }
  }
  commit(w, i, out);
}

#define MI350_READ(width, dwords) \
  void ds_read_##width(Wave& w, const Inst& i) { \
    read<dwords>(w, i, static_cast<uint32_t>(i.imm), vreg(w, i.dst)); \
  } \
  void ds_write_##width(Wave& w, const Inst& i) { write<dwords>(w, i, static_cast<uint32_t>(i.imm), i.data); }
MI350_READ(b32, 1) MI350_READ(b64, 2) MI350_READ(b96, 3) MI350_READ(b128, 4)
#undef MI350_READ

void ds_read2_b32(Wave& w, const Inst& i) { read_two<1, 4>(w, i); }
void ds_read2st64_b32(Wave& w, const Inst& i) { read_two<1, 256>(w, i); }
void ds_read2_b64(Wave& w, const Inst& i) { read_two<2, 8>(w, i); }
void ds_read2st64_b64(Wave& w, const Inst& i) { read_two<2, 512>(w, i); }
void ds_write2_b32(Wave& w, const Inst& i) { write_two<1, 4>(w, i); }
void ds_write2st64_b32(Wave& w, const Inst& i) { write_two<1, 256>(w, i); }
void ds_write2_b64(Wave& w, const Inst& i) { write_two<2, 8>(w, i); }
void ds_write2st64_b64(Wave& w, const Inst& i) { write_two<2, 512>(w, i); }

void ds_read_i8(Wave& w, const Inst& i) { read_narrow<int8_t, Half::kWhole>(w, i); }
void ds_read_u8(Wave& w, const Inst& i) { read_narrow<uint8_t, Half::kWhole>(w, i); }
void ds_read_i16(Wave& w, const Inst& i) { read_narrow<int16_t, Half::kWhole>(w, i); }
void ds_read_u16(Wave& w, const Inst& i) { read_narrow<uint16_t, Half::kWhole>(w, i); }
void ds_read_u8_d16(Wave& w, const Inst& i) { read_narrow<uint8_t, Half::kLow>(w, i); }
void ds_read_u8_d16_hi(Wave& w, const Inst& i) { read_narrow<uint8_t, Half::kHigh>(w, i); }
void ds_read_i8_d16(Wave& w, const Inst& i) { read_narrow<int8_t, Half::kLow>(w, i); }
void ds_read_i8_d16_hi(Wave& w, const Inst& i) { read_narrow<int8_t, Half::kHigh>(w, i); }
void ds_read_u16_d16(Wave& w, const Inst& i) { read_narrow<uint16_t, Half::kLow>(w, i); }
void ds_read_u16_d16_hi(Wave& w, const Inst& i) { read_narrow<uint16_t, Half::kHigh>(w, i); }
void ds_write_b8(Wave& w, const Inst& i) { write_narrow<uint8_t, Half::kWhole>(w, i); }
void ds_write_b16(Wave& w, const Inst& i) { write_narrow<uint16_t, Half::kWhole>(w, i); }
void ds_write_b8_d16_hi(Wave& w, const Inst& i) { write_narrow<uint8_t, Half::kHigh>(w, i); }
void ds_write_b16_d16_hi(Wave& w, const Inst& i) { write_narrow<uint16_t, Half::kHigh>(w, i); }

// One name for the form without and one for the form with a result; the result register decides.
#define MI350_ATOMIC(plain, rtn, T, Op) \
  void ds_##plain(Wave& w, const Inst& i) { \
    modify<T>(w, i, [](T old, T d, T) { return op::Op::next(old, d); }); \
  } \
  void ds_##rtn(Wave& w, const Inst& i) { ds_##plain(w, i); }
#define MI350_ATOMICS(name, kind32, kind64, Op) \
  MI350_ATOMIC(name##_##kind32, name##_rtn_##kind32, uint32_t, Op) \
  MI350_ATOMIC(name##_##kind64, name##_rtn_##kind64, uint64_t, Op)
MI350_ATOMICS(add, u32, u64, Add)
MI350_ATOMICS(sub, u32, u64, Sub) MI350_ATOMICS(rsub, u32, u64, ReverseSub)
MI350_ATOMICS(inc, u32, u64, Inc) MI350_ATOMICS(dec, u32, u64, Dec) MI350_ATOMICS(min, i32, i64, SignedMin)
MI350_ATOMICS(max, i32, i64, SignedMax) MI350_ATOMICS(min, u32, u64, UnsignedMin)
MI350_ATOMICS(max, u32, u64, UnsignedMax) MI350_ATOMICS(and, b32, b64, And) MI350_ATOMICS(or, b32, b64, Or)
MI350_ATOMICS(xor, b32, b64, Xor) MI350_ATOMICS(add, f32, f64, FloatAdd)
MI350_ATOMICS(min, f32, f64, FloatMin) MI350_ATOMICS(max, f32, f64, FloatMax)
MI350_ATOMIC(pk_add_f16, pk_add_rtn_f16, uint32_t, PackedAddF16)
MI350_ATOMIC(pk_add_bf16, pk_add_rtn_bf16, uint32_t, PackedAddBf16)
#undef MI350_ATOMICS
#undef MI350_ATOMIC

#define MI350_ATOMIC2(plain, rtn, T, expression) \
  void ds_##plain(Wave& w, const Inst& i) { modify<T>(w, i, [](T old, T d, T e) -> T { return expression; }); } \
  void ds_##rtn(Wave& w, const Inst& i) { ds_##plain(w, i); }
MI350_ATOMIC2(mskor_b32, mskor_rtn_b32, uint32_t, (old & ~d) | e)
MI350_ATOMIC2(mskor_b64, mskor_rtn_b64, uint64_t, (old & ~d) | e)
MI350_ATOMIC2(cmpst_b32, cmpst_rtn_b32, uint32_t, old == d ? e : old)
MI350_ATOMIC2(cmpst_b64, cmpst_rtn_b64, uint64_t, old == d ? e : old)
MI350_ATOMIC2(cmpst_f32, cmpst_rtn_f32, uint32_t, op::as_float(old) == op::as_float(d) ? e : old)
MI350_ATOMIC2(cmpst_f64, cmpst_rtn_f64, uint64_t, op::as_float(old) == op::as_float(d) ? e : old)
#undef MI350_ATOMIC2
void ds_wrap_rtn_b32(Wave& w, const Inst& i) {
  modify<uint32_t>(w, i, [](uint32_t old, uint32_t d, uint32_t e) { return old >= d ? old - d : old + e; });
}
void ds_wrxchg_rtn_b32(Wave& w, const Inst& i) {
  modify<uint32_t>(w, i, [](uint32_t, uint32_t d, uint32_t) { return d; });
}
void ds_wrxchg_rtn_b64(Wave& w, const Inst& i) {
  modify<uint64_t>(w, i, [](uint64_t, uint64_t d, uint64_t) { return d; });
}
// Two dwords, each replaced by its new value without the top bit if that bit is set.
void ds_condxchg32_rtn_b64(Wave& w, const Inst& i) {
  modify<uint64_t>(w, i, [](uint64_t old, uint64_t d, uint64_t) {
    const auto pick = [](uint64_t before, uint64_t wanted) {
      return wanted >> 31 & 1 ? wanted & 0x7fffffff : before & 0xffffffff;
    };
    return pick(old, d) | pick(old >> 32, d >> 32) << 32;
  });
}
void ds_wrxchg2_rtn_b32(Wave& w, const Inst& i) { exchange_two<uint32_t, 4>(w, i); }
void ds_wrxchg2st64_rtn_b32(Wave& w, const Inst& i) { exchange_two<uint32_t, 256>(w, i); }
void ds_wrxchg2_rtn_b64(Wave& w, const Inst& i) { exchange_two<uint64_t, 8>(w, i); }
void ds_wrxchg2st64_rtn_b64(Wave& w, const Inst& i) { exchange_two<uint64_t, 512>(w, i); }

// Lane permutations: no LDS memory takes part. An inactive source lane gives 0.
namespace {
template <typename SourceOf>
void pull(Wave& w, const Inst& i, const uint32_t* from, SourceOf source_of) {
  const uint64_t exec = w.exec();
  Lanes out;
  for (int l = 0; l < kLanes; ++l) {
    const uint32_t s = source_of(static_cast<uint32_t>(l));
    out[l] = lane_on(exec, static_cast<int>(s)) ? from[s] : 0;
  }
  uint32_t* dst = vreg(w, i.dst);
  for (int l = 0; l < kLanes; ++l) dst[l] = lane_on(exec, l) ? out[l] : dst[l];
}
}  // namespace

void ds_bpermute_b32(Wave& w, const Inst& i) {
  const uint32_t* addr = vreg(w, i.addr);
  pull(w, i, vreg(w, i.data), [&](uint32_t l) { return (addr[l] + static_cast<uint32_t>(i.imm)) / 4 % kLanes; });
}
void ds_permute_b32(Wave& w, const Inst& i) {
  const uint32_t* addr = vreg(w, i.addr);
  const uint32_t* data = vreg(w, i.data);
  const uint64_t exec = w.exec();
  Lanes out{};
  for (int l = 0; l < kLanes; ++l) {
    if (lane_on(exec, l)) out[(addr[l] + static_cast<uint32_t>(i.imm)) / 4 % kLanes] = data[l];
  }
  uint32_t* dst = vreg(w, i.dst);
  for (int l = 0; l < kLanes; ++l) dst[l] = lane_on(exec, l) ? out[l] : dst[l];
}
void ds_swizzle_b32(Wave& w, const Inst& i) {
  const uint32_t pattern = static_cast<uint32_t>(i.imm) & 0xffff;
  const uint32_t low = pattern & 31, mid = pattern >> 5 & 31, high = pattern >> 10 & 31;
  const uint32_t* from = vreg(w, i.addr);
  if (pattern >= 0xe000) {  // bit-reversed, within the groups that the mask keeps
    const int kept = std::popcount(low);
    if (low == 31) return pull(w, i, from, [](uint32_t l) { return l; });
    return pull(w, i, from, [&](uint32_t l) {
      uint32_t reversed = 0;
      for (uint32_t bit = 0; bit < 5; ++bit) reversed |= (l >> bit & 1) << (4 - bit);
      return reversed >> kept | (l & low) | (l & 32);
    });
  }
  if (pattern >= 0xc000) {  // rotate inside 32 lanes
    const uint32_t by = high & 1 ? 32 - mid : mid;
    return pull(w, i, from, [&](uint32_t l) { return (((l & low) | ((l + by) & ~low)) & 31) | (l & 32); });
  }
  if (pattern & 0x8000) {
    return pull(w, i, from, [&](uint32_t l) { return (l & ~3u) | (pattern >> (2 * (l & 3)) & 3); });
  }
  pull(w, i, from, [&](uint32_t l) { return ((((l & 31) & low) | mid) ^ high) | (l & 32); });
}

// Address = M0 + offset + 4 * lane.
namespace {
void watch_lane_offsets(Wave& w, const Inst& i, Access::Kind kind, uint32_t base, uint64_t mask, uint32_t step) {
  Offsets at;
  for (uint32_t l = 0; l < kLanes; ++l) at[l] = base + step * l;
  watch_lds(w, i, kind, at.data(), mask, 4);
}
}  // namespace
void ds_read_addtid_b32(Wave& w, const Inst& i) {
  const Lds lds(w);
  const uint32_t base = (w.sgpr[kM0] & 0xffff) + static_cast<uint32_t>(i.imm);
  if (w.watch) [[unlikely]] watch_lane_offsets(w, i, Access::kLoad, base, w.exec(), 4);
  for (uint64_t mask = w.exec(); mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    uint32_t value = 0;
    if (lds.holds(base + 4 * l, 4)) std::memcpy(&value, lds.base + base + 4 * l, 4);
    vreg(w, i.dst)[l] = value;
  }
}
void ds_write_addtid_b32(Wave& w, const Inst& i) {
  const Lds lds(w);
  const uint32_t base = (w.sgpr[kM0] & 0xffff) + static_cast<uint32_t>(i.imm);
  if (w.watch) [[unlikely]] watch_lane_offsets(w, i, Access::kStore, base, w.exec(), 4);
  for (uint64_t mask = w.exec(); mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    if (lds.holds(base + 4 * l, 4)) std::memcpy(lds.base + base + 4 * l, vreg(w, i.data) + l, 4);
  }
}

// One counter for the wave: every active lane counts once, all get the old value.
namespace {
void count_lanes(Wave& w, const Inst& i, bool up) {
  const Lds lds(w);
  const uint32_t at = (w.sgpr[kM0] & 0xffff) + static_cast<uint32_t>(i.imm);
  const uint64_t exec = w.exec();
  if (w.watch) [[unlikely]] watch_lane_offsets(w, i, Access::kAtomic, at, 1, 0);
  uint32_t old = 0;
  if (lds.holds(at, 4)) {
    std::memcpy(&old, lds.base + at, 4);
    const auto lanes = static_cast<uint32_t>(std::popcount(exec));
    const uint32_t value = up ? old + lanes : old - lanes;
    std::memcpy(lds.base + at, &value, 4);
  }
  for (int l = 0; l < kLanes; ++l) {
    if (lane_on(exec, l)) vreg(w, i.dst)[l] = old;
  }
}
}  // namespace
void ds_append(Wave& w, const Inst& i) { count_lanes(w, i, true); }
void ds_consume(Wave& w, const Inst& i) { count_lanes(w, i, false); }

void ds_nop(Wave&, const Inst&) {}

}  // namespace mi350::emu::MI350_EMU_LEVEL
