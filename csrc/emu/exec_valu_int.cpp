// Integer vector operations of 16, 24, 32 and 64 bits: arithmetic, logic, shifts, bit fields, sums of
// absolute differences. CLAMP saturates to the destination's type.
#include "exec_lanes.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

template <class T> constexpr T least(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T most(T a, T b) { return a < b ? b : a; }
template <class T> constexpr T middle(T a, T b, T c) { return most(least(a, b), least(most(a, b), c)); }

template <class K> constexpr int64_t lowest() {
  if constexpr (std::is_unsigned_v<typename K::T>) return 0;
  else return K::kRepr == Repr::kBits16 ? -32768 : -2147483648ll;
}
template <class K> constexpr int64_t highest() {
  constexpr int kBits = K::kRepr == Repr::kBits16 ? 16 : 32;
  return (int64_t{1} << (std::is_unsigned_v<typename K::T> ? kBits : kBits - 1)) - 1;
}

// `fn` gives the exact result as int64.
template <class D, class... S, class Fn> void integer(Wave& w, const Inst& i, Fn fn) {
  if (i.clamp)
    lanes<D, S...>(w, i, [fn](auto... x) {
      return static_cast<typename D::T>(
          least(most(static_cast<int64_t>(fn(x...)), lowest<D>()), highest<D>()));
    });
  else
    lanes<D, S...>(w, i, [fn](auto... x) { return static_cast<typename D::T>(fn(x...)); });
}

constexpr int64_t wide(uint32_t a) { return a; }
constexpr int64_t wide(int32_t a) { return a; }
constexpr int64_t low24(uint32_t a) { return a & 0xffffff; }
constexpr int64_t low24(int32_t a) { return static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8; }

constexpr uint32_t reverse32(uint32_t v) {
  v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
  v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
  v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(v);
}

constexpr uint32_t field_mask(uint32_t width) { return (1u << (width & 31)) - 1; }
constexpr uint32_t extract_signed(uint32_t a, uint32_t offset, uint32_t width) {
  const uint32_t down = static_cast<uint32_t>(static_cast<int32_t>(a) >> (offset & 31)), n = width & 31;
  return n ? static_cast<uint32_t>(static_cast<int32_t>(down << (32 - n)) >> (32 - n)) : 0;
}

constexpr uint32_t byte_of(uint64_t v, int n) { return static_cast<uint32_t>(v >> (8 * n)) & 0xff; }
constexpr uint32_t distance(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

// Four bytes; with `masked`, bytes that are 0 in the reference b do not count.
constexpr uint32_t byte_distance(uint32_t a, uint32_t b, bool masked) {
  uint32_t sum = 0;
  for (int n = 0; n < 4; ++n)
    sum += masked && !byte_of(b, n) ? 0 : distance(byte_of(a, n), byte_of(b, n));
  return sum;
}
// Four 16-bit sums; CLAMP saturates each.
constexpr uint64_t quad_distance(uint64_t a, uint32_t b, uint64_t c, bool masked, bool clamp) {
  uint64_t out = 0;
  for (int n = 0; n < 4; ++n) {
    const uint64_t sum =
        (c >> (16 * n) & 0xffff) + byte_distance(static_cast<uint32_t>(a >> (8 * n)), b, masked);
    out |= (clamp ? least<uint64_t>(sum, 0xffff) : sum & 0xffff) << (16 * n);
  }
  return out;
}

constexpr uint32_t permute_byte(uint64_t data, uint32_t select) {
  if (select >= 13) return 0xff;
  if (select == 12) return 0;
  if (select >= 8) return byte_of(data, 2 * static_cast<int>(select - 8) + 1) & 0x80 ? 0xff : 0;
  return byte_of(data, static_cast<int>(select));
}
constexpr uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t select) {
  const uint64_t data = uint64_t{a} << 32 | b;
  uint32_t out = 0;
  for (int n = 0; n < 4; ++n) out |= permute_byte(data, byte_of(select, n)) << (8 * n);
  return out;
}

// Bit 4a + 2b + c of the table.
constexpr uint32_t truth_table(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t out = 0;
  for (uint32_t n = 0; n < 8; ++n) {
    const uint32_t term = (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
    out |= table >> n & 1 ? term : 0;
  }
  return out;
}

constexpr uint32_t clamp_byte(int32_t x, int32_t low, int32_t high) {
  return static_cast<uint32_t>(least(most(x, low), high)) & 0xff;
}

// Carry forms: the carries first, since the sum may overwrite a source.
template <class... S, class Carry, class Sum> void with_carry(Wave& w, const Inst& i, Carry carry, Sum sum) {
  const uint64_t out = lane_mask<S...>(w, i, carry);
  lanes<U32, S...>(w, i, sum);
  write_s64(w, i.sdst, out);
}

}  // namespace

#define INT1(name, d, a_kind, expression) \
  void name(Wave& w, const Inst& i) { integer<d, a_kind>(w, i, [](auto a) { return expression; }); }
#define INT2(name, d, a_kind, b_kind, expression)                                \
  void name(Wave& w, const Inst& i) {                                            \
    integer<d, a_kind, b_kind>(w, i, [](auto a, auto b) { return expression; }); \
  }
#define INT3(name, d, a_kind, b_kind, c_kind, expression) \
  void name(Wave& w, const Inst& i) { \
    integer<d, a_kind, b_kind, c_kind>(w, i, [](auto a, auto b, auto c) { return expression; }); \
  }
#define BIT1(name, expression)                                    \
  void name(Wave& w, const Inst& i) {                             \
    lanes<U32, U32>(w, i, [](uint32_t a) { return expression; }); \
  }
#define BIT2(name, expression)                                                     \
  void name(Wave& w, const Inst& i) {                                              \
    lanes<U32, U32, U32>(w, i, [](uint32_t a, uint32_t b) { return expression; }); \
  }
#define BIT3(name, expression) \
  void name(Wave& w, const Inst& i) { \
    lanes<U32, U32, U32, U32>(w, i, [](uint32_t a, uint32_t b, uint32_t c) { return expression; }); \
  }

// 32 bits
INT2(v_add_u32, U32, U32, U32, wide(a) + wide(b))
INT2(v_sub_u32, U32, U32, U32, wide(a) - wide(b))
INT2(v_subrev_u32, U32, U32, U32, wide(b) - wide(a))
INT2(v_add_i32, I32, I32, I32, wide(a) + wide(b))
INT2(v_sub_i32, I32, I32, I32, wide(a) - wide(b))
INT2(v_mul_i32_i24, I32, I32, I32, low24(a) * low24(b))
INT2(v_mul_u32_u24, U32, U32, U32, low24(a) * low24(b))
INT2(v_mul_hi_i32_i24, I32, I32, I32, (low24(a) * low24(b)) >> 32)
INT2(v_mul_hi_u32_u24, U32, U32, U32, (low24(a) * low24(b)) >> 32)
INT3(v_mad_i32_i24, I32, I32, I32, I32, low24(a) * low24(b) + c)
INT3(v_mad_u32_u24, U32, U32, U32, U32, low24(a) * low24(b) + c)
INT3(v_mad_u32_u16, U32, U16, U16, U32, wide(a) * wide(b) + wide(c))
INT3(v_mad_i32_i16, I32, I16, I16, I32, wide(a) * wide(b) + wide(c))
INT2(v_min_i32, I32, I32, I32, least(a, b))
INT2(v_max_i32, I32, I32, I32, most(a, b))
INT2(v_min_u32, U32, U32, U32, least(a, b))
INT2(v_max_u32, U32, U32, U32, most(a, b))
INT3(v_min3_i32, I32, I32, I32, I32, least(least(a, b), c))
INT3(v_max3_i32, I32, I32, I32, I32, most(most(a, b), c))
INT3(v_med3_i32, I32, I32, I32, I32, middle(a, b, c))
INT3(v_min3_u32, U32, U32, U32, U32, least(least(a, b), c))
INT3(v_max3_u32, U32, U32, U32, U32, most(most(a, b), c))
INT3(v_med3_u32, U32, U32, U32, U32, middle(a, b, c))
BIT2(v_mul_lo_u32, a * b)
BIT2(v_mul_hi_u32, static_cast<uint32_t>((uint64_t{a} * b) >> 32))
BIT2(v_mul_hi_i32, static_cast<uint32_t>((int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b)) >> 32))
BIT3(v_add3_u32, a + b + c)
BIT3(v_lshl_add_u32, (a << (b & 31)) + c)
BIT3(v_add_lshl_u32, (a + b) << (c & 31))
BIT3(v_xad_u32, (a ^ b) + c)

// Logic and shifts
BIT2(v_and_b32, a & b)
BIT2(v_or_b32, a | b)
BIT2(v_xor_b32, a ^ b)
BIT2(v_xnor_b32, ~(a ^ b))
BIT1(v_not_b32, ~a)
BIT3(v_and_or_b32, (a & b) | c)
BIT3(v_or3_b32, a | b | c)
BIT3(v_lshl_or_b32, (a << (b & 31)) | c)
BIT2(v_lshlrev_b32, b << (a & 31))
BIT2(v_lshrrev_b32, b >> (a & 31))
BIT2(v_ashrrev_i32, static_cast<uint32_t>(static_cast<int32_t>(b) >> (a & 31)))
BIT3(v_bfi_b32, (a & b) | (~a & c))
BIT3(v_bfe_u32, (a >> (b & 31)) & field_mask(c))
BIT3(v_bfe_i32, extract_signed(a, b, c))
BIT2(v_bfm_b32, field_mask(a) << (b & 31))
BIT1(v_bfrev_b32, reverse32(a))
BIT1(v_ffbh_u32, a ? static_cast<uint32_t>(__builtin_clz(a)) : ~0u)
BIT1(v_ffbl_b32, a ? static_cast<uint32_t>(__builtin_ctz(a)) : ~0u)
BIT1(v_ffbh_i32, a + 1 < 2 ? ~0u : static_cast<uint32_t>(__builtin_clz(a ^ (a >> 31 ? ~0u : 0u))))
BIT2(v_bcnt_u32_b32, static_cast<uint32_t>(__builtin_popcount(a)) + b)
BIT1(v_prng_b32, (a << 1) ^ (a >> 31 ? 197u : 0u))
void v_alignbit_b32(Wave& w, const Inst& i) {
  lanes<U32, U32, U32, U16>(w, i, [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>((uint64_t{a} << 32 | b) >> (c & 31));
  });
}
void v_alignbyte_b32(Wave& w, const Inst& i) {
  lanes<U32, U32, U32, U16>(w, i, [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>((uint64_t{a} << 32 | b) >> (8 * (c & 3)));
  });
}
BIT3(v_perm_b32, permute_bytes(a, b, c))
void v_bitop3_b32(Wave& w, const Inst& i) {
  const auto table = static_cast<uint32_t>(i.imm);
  lanes<U32, U32, U32, U32>(
      w, i, [table](uint32_t a, uint32_t b, uint32_t c) { return truth_table(a, b, c, table); });
}
void v_bitop3_b16(Wave& w, const Inst& i) {
  const auto table = static_cast<uint32_t>(i.imm);
  lanes<U16, U16, U16, U16>(
      w, i, [table](uint32_t a, uint32_t b, uint32_t c) { return truth_table(a, b, c, table); });
}

// 64 bits
void v_lshlrev_b64(Wave& w, const Inst& i) {
  lanes<U64, U32, U64>(w, i, [](uint32_t a, uint64_t b) { return b << (a & 63); });
}
void v_lshrrev_b64(Wave& w, const Inst& i) {
  lanes<U64, U32, U64>(w, i, [](uint32_t a, uint64_t b) { return b >> (a & 63); });
}
void v_ashrrev_i64(Wave& w, const Inst& i) {
  lanes<I64, U32, I64>(w, i, [](uint32_t a, int64_t b) { return b >> (a & 63); });
}
void v_lshl_add_u64(Wave& w, const Inst& i) {
  lanes<U64, U64, U32, U64>(w, i, [](uint64_t a, uint32_t b, uint64_t c) { return (a << (b & 7)) + c; });
}
void v_mad_u64_u32(Wave& w, const Inst& i) {
  const uint64_t carry = lane_mask<U32, U32, U64>(w, i, [](uint32_t a, uint32_t b, uint64_t c) {
    const uint64_t product = uint64_t{a} * b;
    return product + c < c;
  });
  lanes<U64, U32, U32, U64>(w, i, [](uint32_t a, uint32_t b, uint64_t c) { return uint64_t{a} * b + c; });
  write_s64(w, i.sdst, carry);
}
void v_mad_i64_i32(Wave& w, const Inst& i) {
  const uint64_t overflow = lane_mask<I32, I32, I64>(w, i, [](int32_t a, int32_t b, int64_t c) {
    int64_t sum;
    return __builtin_add_overflow(int64_t{a} * b, c, &sum);
  });
  lanes<U64, I32, I32, U64>(w, i, [](int32_t a, int32_t b, uint64_t c) {
    return static_cast<uint64_t>(int64_t{a} * b) + c;
  });
  write_s64(w, i.sdst, overflow);
}

// Carries
void v_add_co_u32(Wave& w, const Inst& i) {
  with_carry<U32, U32>(w, i, [](uint32_t a, uint32_t b) { return a + b < a; },
                       [](uint32_t a, uint32_t b) { return a + b; });
}
void v_sub_co_u32(Wave& w, const Inst& i) {
  with_carry<U32, U32>(w, i, [](uint32_t a, uint32_t b) { return b > a; },
                       [](uint32_t a, uint32_t b) { return a - b; });
}
void v_subrev_co_u32(Wave& w, const Inst& i) {
  with_carry<U32, U32>(w, i, [](uint32_t a, uint32_t b) { return a > b; },
                       [](uint32_t a, uint32_t b) { return b - a; });
}
void v_addc_co_u32(Wave& w, const Inst& i) {
  with_carry<U32, U32, MaskBit>(
      w, i, [](uint32_t a, uint32_t b, uint32_t c) { return (wide(a) + b + c) >> 32 != 0; },
      [](uint32_t a, uint32_t b, uint32_t c) { return a + b + c; });
}
void v_subb_co_u32(Wave& w, const Inst& i) {
  with_carry<U32, U32, MaskBit>(
      w, i, [](uint32_t a, uint32_t b, uint32_t c) { return wide(b) + c > wide(a); },
      [](uint32_t a, uint32_t b, uint32_t c) { return a - b - c; });
}
void v_subbrev_co_u32(Wave& w, const Inst& i) {
  with_carry<U32, U32, MaskBit>(
      w, i, [](uint32_t a, uint32_t b, uint32_t c) { return wide(a) + c > wide(b); },
      [](uint32_t a, uint32_t b, uint32_t c) { return b - a - c; });
}

// 16 bits
INT2(v_add_u16, U16, U16, U16, wide(a) + wide(b))
INT2(v_sub_u16, U16, U16, U16, wide(a) - wide(b))
INT2(v_subrev_u16, U16, U16, U16, wide(b) - wide(a))
INT2(v_mul_lo_u16, U16, U16, U16, wide(a) * wide(b))
INT2(v_add_i16, I16, I16, I16, wide(a) + wide(b))
INT2(v_sub_i16, I16, I16, I16, wide(a) - wide(b))
INT2(v_lshlrev_b16, U16, U16, U16, wide(b) << (a & 15))
INT2(v_lshrrev_b16, U16, U16, U16, wide(b) >> (a & 15))
INT2(v_ashrrev_i16, I16, U16, I16, wide(b) >> (a & 15))
INT2(v_max_u16, U16, U16, U16, most(a, b))
INT2(v_min_u16, U16, U16, U16, least(a, b))
INT2(v_max_i16, I16, I16, I16, most(a, b))
INT2(v_min_i16, I16, I16, I16, least(a, b))
INT3(v_min3_i16, I16, I16, I16, I16, least(least(a, b), c))
INT3(v_max3_i16, I16, I16, I16, I16, most(most(a, b), c))
INT3(v_med3_i16, I16, I16, I16, I16, middle(a, b, c))
INT3(v_min3_u16, U16, U16, U16, U16, least(least(a, b), c))
INT3(v_max3_u16, U16, U16, U16, U16, most(most(a, b), c))
INT3(v_med3_u16, U16, U16, U16, U16, middle(a, b, c))
INT3(v_mad_u16, U16Keep, U16, U16, U16, wide(a) * wide(b) + wide(c))
INT3(v_mad_i16, I16Keep, I16, I16, I16, wide(a) * wide(b) + wide(c))
INT3(v_mad_legacy_u16, U16, U16, U16, U16, wide(a) * wide(b) + wide(c))
INT3(v_mad_legacy_i16, I16, I16, I16, I16, wide(a) * wide(b) + wide(c))

// Packing with saturation
INT2(v_cvt_pk_u16_u32, U32, U32, U32, least(a, 0xffffu) | least(b, 0xffffu) << 16)
INT2(v_cvt_pk_i16_i32, U32, I32, I32,
     (static_cast<uint32_t>(middle(a, -32768, 32767)) & 0xffff) |
         static_cast<uint32_t>(middle(b, -32768, 32767)) << 16)
INT1(v_sat_pk_u8_i16, U16, U32,
     clamp_byte(static_cast<int16_t>(a), 0, 255) | clamp_byte(static_cast<int16_t>(a >> 16), 0, 255) << 8)
INT3(v_ashr_pk_i8_i32, U16Keep, I32, I32, U32,
     clamp_byte(a >> (c & 31), -128, 127) | clamp_byte(b >> (c & 31), -128, 127) << 8)
INT3(v_ashr_pk_u8_i32, U16Keep, I32, I32, U32,
     clamp_byte(a >> (c & 31), 0, 255) | clamp_byte(b >> (c & 31), 0, 255) << 8)

// Sums of absolute differences
INT3(v_sad_u8, U32, U32, U32, U32, wide(byte_distance(a, b, false)) + c)
INT3(v_sad_hi_u8, U32, U32, U32, U32, (wide(byte_distance(a, b, false)) << 16) + c)
INT3(v_sad_u16, U32, U32, U32, U32, wide(distance(a & 0xffff, b & 0xffff)) + distance(a >> 16, b >> 16) + c)
INT3(v_sad_u32, U32, U32, U32, U32, wide(distance(a, b)) + c)
INT3(v_msad_u8, U32, U32, U32, U32, wide(byte_distance(a, b, true)) + c)
BIT3(v_lerp_u8, (((a & 0xff) + (b & 0xff) + (c & 1)) >> 1) |
                    (((a >> 8 & 0xff) + (b >> 8 & 0xff) + (c >> 8 & 1)) >> 1) << 8 |
                    (((a >> 16 & 0xff) + (b >> 16 & 0xff) + (c >> 16 & 1)) >> 1) << 16 |
                    (((a >> 24) + (b >> 24) + (c >> 24 & 1)) >> 1) << 24)
void v_qsad_pk_u16_u8(Wave& w, const Inst& i) {
  lanes<U64, U64, U32, U64>(w, i, [clamp = i.clamp](uint64_t a, uint32_t b, uint64_t c) {
    return quad_distance(a, b, c, false, clamp);
  });
}
void v_mqsad_pk_u16_u8(Wave& w, const Inst& i) {
  lanes<U64, U64, U32, U64>(w, i, [clamp = i.clamp](uint64_t a, uint32_t b, uint64_t c) {
    return quad_distance(a, b, c, true, clamp);
  });
}
// Four dwords: result n uses bytes n..n+3 of the first source.
void v_mqsad_u32_u8(Wave& w, const Inst& i) {
  Scope s(w, i);
  with_sources<U64, U32>(s, [&](const auto& a, const auto& b) {
    for (int n = 0; n < 4; ++n) {
      alignas(64) Lanes out;
      const uint32_t* c = w.vgpr[gpr_index(w, i.src[2], 2) + n];
      for (int l = 0; l < kLanes; ++l) {
        const uint64_t sum = wide(c[l]) + byte_distance(static_cast<uint32_t>(a[l] >> (8 * n)), b[l], true);
        out[l] = static_cast<uint32_t>(i.clamp ? least<uint64_t>(sum, ~0u) : sum);
      }
      write_masked(s, gpr_index(w, i.dst, 3) + n, out);
    }
  });
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
