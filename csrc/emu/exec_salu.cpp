// Scalar arithmetic: SOP1, SOP2, SOPK and SOPC. Branches, barriers and hardware registers are
// exec_control.cpp's.
#include "exec_lanes.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

uint32_t a32(const Wave& w, const Inst& i) { return read_s32(w, i, i.src[0]); }
uint32_t b32(const Wave& w, const Inst& i) { return read_s32(w, i, i.src[1]); }
uint64_t a64(const Wave& w, const Inst& i) { return scalar_wide(w, i, i.src[0], false); }
uint64_t b64(const Wave& w, const Inst& i) { return scalar_wide(w, i, i.src[1], false); }

void put(Wave& w, const Inst& i, uint32_t v) { write_s32(w, i.dst, v); }
void put(Wave& w, const Inst& i, uint64_t v) { write_s64(w, i.dst, v); }
template <class T> void put_scc(Wave& w, const Inst& i, T v) {
  put(w, i, v);
  w.scc = v != 0;
}
template <class T> T merge_bits(T value, T mask, bool set) { return set ? value | mask : value & ~mask; }

template <class T> uint32_t count_ones(T v) { return static_cast<uint32_t>(std::popcount(v)); }
template <class T> uint32_t first_one(T v) { return v ? static_cast<uint32_t>(std::countr_zero(v)) : ~0u; }
template <class T>
uint32_t leading_zeros(T v) {
  return v ? static_cast<uint32_t>(std::countl_zero(v)) : ~0u;
}
// Bits from the top that equal the sign bit; -1 if all do.
template <class T> uint32_t leading_signs(T v) {
  constexpr int kTop = sizeof(T) * 8 - 1;
  const T sign = v >> kTop & 1 ? ~T{0} : 0;
  return leading_zeros<T>(v ^ sign);
}

template <class T> T reverse_bits(T v) {
  T out = 0;
  for (size_t n = 0; n < sizeof(T) * 8; ++n) out = out << 1 | (v >> n & 1);
  return out;
}

// Whole quad mode: four bits all set where any is.
template <class T> T whole_quads(T v) {
  const T any = (v | v >> 1 | v >> 2 | v >> 3) & static_cast<T>(0x1111111111111111ull);
  return any * 15;
}
template <class T> T quad_mask(T v) {
  T out = 0;
  for (size_t quad = 0; quad < sizeof(T) * 2; ++quad)
    out |= static_cast<T>((v >> (4 * quad) & 15) != 0) << quad;
  return out;
}

uint64_t replicate_bits(uint32_t v) {
  uint64_t out = 0;
  for (int n = 0; n < 32; ++n) out |= static_cast<uint64_t>(v >> n & 1) * 3 << (2 * n);
  return out;
}

// Offset in the low bits of the second source, width in bits 22:16.
template <class T> T extract(T v, uint32_t field) {
  constexpr uint32_t kBits = sizeof(T) * 8;
  const uint32_t offset = field & (kBits - 1), width = field >> 16 & 0x7f;
  using U = std::make_unsigned_t<T>;
  if (width == 0) return 0;
  // Shifted up against the top, then down again with or without the sign.
  const U down = std::is_signed_v<T> ? static_cast<U>(v >> offset) : static_cast<U>(v) >> offset;
  if (width >= kBits) return static_cast<T>(down);
  return static_cast<T>(down << (kBits - width)) >> (kBits - width);
}

void save_exec(Wave& w, const Inst& i, uint64_t next) {
  const uint64_t old = w.exec();
  w.set_exec(next);
  w.scc = next != 0;
  put(w, i, old);
}
void write_exec(Wave& w, const Inst& i, uint64_t next) {
  w.set_exec(next);
  w.scc = next != 0;
  put(w, i, next);
}

uint16_t relative(const Wave& w, uint16_t code) { return static_cast<uint16_t>((code + w.sgpr[kM0]) & 127); }

}  // namespace

// `a` and `b` are the sources. SCC forms set it to "result is not zero".
#define S1(name, fetch, expression)   \
  void name(Wave& w, const Inst& i) { \
    const auto a = fetch(w, i);       \
    put(w, i, expression);            \
  }
#define S1_SCC(name, fetch, expression) \
  void name(Wave& w, const Inst& i) {   \
    const auto a = fetch(w, i);         \
    put_scc(w, i, expression);          \
  }
#define S2(name, fa, fb, expression)  \
  void name(Wave& w, const Inst& i) { \
    const auto a = fa(w, i);          \
    const auto b = fb(w, i);          \
    put(w, i, expression);            \
  }
#define S2_SCC(name, fa, fb, expression) \
  void name(Wave& w, const Inst& i) {    \
    const auto a = fa(w, i);             \
    const auto b = fb(w, i);             \
    put_scc(w, i, expression);           \
  }
#define LOGIC(op, expression) \
  S2_SCC(s_##op##_b32, a32, b32, expression) \
  S2_SCC(s_##op##_b64, a64, b64, expression)

S1(s_mov_b32, a32, a)
S1(s_mov_b64, a64, a)
void s_cmov_b32(Wave& w, const Inst& i) { if (w.scc) put(w, i, a32(w, i)); }
void s_cmov_b64(Wave& w, const Inst& i) { if (w.scc) put(w, i, a64(w, i)); }
S1_SCC(s_not_b32, a32, ~a)
S1_SCC(s_not_b64, a64, ~a)
S1_SCC(s_wqm_b32, a32, whole_quads(a))
S1_SCC(s_wqm_b64, a64, whole_quads(a))
S1_SCC(s_quadmask_b32, a32, quad_mask(a))
S1_SCC(s_quadmask_b64, a64, quad_mask(a))
S1(s_brev_b32, a32, reverse_bits(a))
S1(s_brev_b64, a64, reverse_bits(a))
S1_SCC(s_bcnt0_i32_b32, a32, count_ones(~a))
S1_SCC(s_bcnt0_i32_b64, a64, count_ones(~a))
S1_SCC(s_bcnt1_i32_b32, a32, count_ones(a))
S1_SCC(s_bcnt1_i32_b64, a64, count_ones(a))
S1(s_ff0_i32_b32, a32, first_one(~a))
S1(s_ff0_i32_b64, a64, first_one(~a))
S1(s_ff1_i32_b32, a32, first_one(a))
S1(s_ff1_i32_b64, a64, first_one(a))
S1(s_flbit_i32_b32, a32, leading_zeros(a))
S1(s_flbit_i32_b64, a64, leading_zeros(a))
S1(s_flbit_i32, a32, leading_signs(a))
S1(s_flbit_i32_i64, a64, leading_signs(a))
S1(s_sext_i32_i8, a32, static_cast<uint32_t>(static_cast<int8_t>(a)))
S1(s_sext_i32_i16, a32, static_cast<uint32_t>(static_cast<int16_t>(a)))
S1(s_bitreplicate_b64_b32, a32, replicate_bits(a))
S1_SCC(s_abs_i32, a32, static_cast<int32_t>(a) < 0 ? 0 - a : a)

void s_bitset0_b32(Wave& w, const Inst& i) {
  put(w, i, merge_bits(read_s32(w, i, i.dst), 1u << (a32(w, i) & 31), false));
}
void s_bitset1_b32(Wave& w, const Inst& i) {
  put(w, i, merge_bits(read_s32(w, i, i.dst), 1u << (a32(w, i) & 31), true));
}
void s_bitset0_b64(Wave& w, const Inst& i) {
  put(w, i, merge_bits(read_s64(w, i, i.dst), uint64_t{1} << (a32(w, i) & 63), false));
}
void s_bitset1_b64(Wave& w, const Inst& i) {
  put(w, i, merge_bits(read_s64(w, i, i.dst), uint64_t{1} << (a32(w, i) & 63), true));
}

void s_and_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, a64(w, i) & w.exec()); }
void s_or_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, a64(w, i) | w.exec()); }
void s_xor_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, a64(w, i) ^ w.exec()); }
void s_andn2_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, a64(w, i) & ~w.exec()); }
void s_orn2_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, a64(w, i) | ~w.exec()); }
void s_nand_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, ~(a64(w, i) & w.exec())); }
void s_nor_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, ~(a64(w, i) | w.exec())); }
void s_xnor_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, ~(a64(w, i) ^ w.exec())); }
void s_andn1_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, ~a64(w, i) & w.exec()); }
void s_orn1_saveexec_b64(Wave& w, const Inst& i) { save_exec(w, i, ~a64(w, i) | w.exec()); }
void s_andn1_wrexec_b64(Wave& w, const Inst& i) { write_exec(w, i, ~a64(w, i) & w.exec()); }
void s_andn2_wrexec_b64(Wave& w, const Inst& i) { write_exec(w, i, a64(w, i) & ~w.exec()); }

void s_movrels_b32(Wave& w, const Inst& i) { put(w, i, read_s32(w, i, relative(w, i.src[0]))); }
void s_movrels_b64(Wave& w, const Inst& i) { put(w, i, read_s64(w, i, relative(w, i.src[0]))); }
void s_movreld_b32(Wave& w, const Inst& i) { write_s32(w, relative(w, i.dst), a32(w, i)); }
void s_movreld_b64(Wave& w, const Inst& i) { write_s64(w, relative(w, i.dst), a64(w, i)); }

// Carries come from a wider sum; signed overflow from the signs.
void s_add_u32(Wave& w, const Inst& i) {
  const uint64_t sum = uint64_t{a32(w, i)} + b32(w, i);
  put(w, i, static_cast<uint32_t>(sum));
  w.scc = sum >> 32;
}
void s_sub_u32(Wave& w, const Inst& i) {
  const uint32_t a = a32(w, i), b = b32(w, i);
  put(w, i, a - b);
  w.scc = b > a;
}
void s_addc_u32(Wave& w, const Inst& i) {
  const uint64_t sum = uint64_t{a32(w, i)} + b32(w, i) + (w.scc ? 1 : 0);
  put(w, i, static_cast<uint32_t>(sum));
  w.scc = sum >> 32;
}
void s_subb_u32(Wave& w, const Inst& i) {
  const uint64_t a = a32(w, i), b = uint64_t{b32(w, i)} + (w.scc ? 1 : 0);
  put(w, i, static_cast<uint32_t>(a - b));
  w.scc = b > a;
}
void s_add_i32(Wave& w, const Inst& i) {
  int32_t sum;
  w.scc = __builtin_add_overflow(static_cast<int32_t>(a32(w, i)), static_cast<int32_t>(b32(w, i)), &sum);
  put(w, i, static_cast<uint32_t>(sum));
}
void s_sub_i32(Wave& w, const Inst& i) {
  int32_t difference;
  w.scc =
      __builtin_sub_overflow(static_cast<int32_t>(a32(w, i)), static_cast<int32_t>(b32(w, i)), &difference);
  put(w, i, static_cast<uint32_t>(difference));
}

// SCC: the first source was taken; of equal ones the maximum takes it too.
#define S_PICK(name, type, op) \
  void name(Wave& w, const Inst& i) { \
    const auto a = static_cast<type>(a32(w, i)), b = static_cast<type>(b32(w, i)); \
    const bool first = a op b; \
    put(w, i, static_cast<uint32_t>(first ? a : b)); \
    w.scc = first; \
  }
S_PICK(s_min_i32, int32_t, <)
S_PICK(s_min_u32, uint32_t, <)
S_PICK(s_max_i32, int32_t, >=)
S_PICK(s_max_u32, uint32_t, >=)

S2(s_cselect_b32, a32, b32, w.scc ? a : b)
S2(s_cselect_b64, a64, b64, w.scc ? a : b)
LOGIC(and, a & b)
LOGIC(or, a | b)
LOGIC(xor, a ^ b)
LOGIC(andn2, a & ~b)
LOGIC(orn2, a | ~b)
LOGIC(nand, ~(a & b))
LOGIC(nor, ~(a | b))
LOGIC(xnor, ~(a ^ b))

S2_SCC(s_lshl_b32, a32, b32, a << (b & 31))
S2_SCC(s_lshl_b64, a64, b32, a << (b & 63))
S2_SCC(s_lshr_b32, a32, b32, a >> (b & 31))
S2_SCC(s_lshr_b64, a64, b32, a >> (b & 63))
S2_SCC(s_ashr_i32, a32, b32, static_cast<uint32_t>(static_cast<int32_t>(a) >> (b & 31)))
S2_SCC(s_ashr_i64, a64, b32, static_cast<uint64_t>(static_cast<int64_t>(a) >> (b & 63)))
S2(s_bfm_b32, a32, b32, ((1u << (a & 31)) - 1) << (b & 31))
S2(s_bfm_b64, a32, b32, ((uint64_t{1} << (a & 63)) - 1) << (b & 63))
S2(s_mul_i32, a32, b32, a * b)
S2(s_mul_hi_u32, a32, b32, static_cast<uint32_t>((uint64_t{a} * b) >> 32))
S2(s_mul_hi_i32, a32, b32,
   static_cast<uint32_t>((int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b)) >> 32))
S2_SCC(s_bfe_u32, a32, b32, extract<uint32_t>(a, b))
S2_SCC(s_bfe_i32, a32, b32, static_cast<uint32_t>(extract<int32_t>(static_cast<int32_t>(a), b)))
S2_SCC(s_bfe_u64, a64, b32, extract<uint64_t>(a, b))
S2_SCC(s_bfe_i64, a64, b32, static_cast<uint64_t>(extract<int64_t>(static_cast<int64_t>(a), b)))
S2_SCC(s_absdiff_i32, a32, b32, static_cast<int32_t>(a - b) < 0 ? b - a : a - b)
S2(s_pack_ll_b32_b16, a32, b32, (a & 0xffff) | b << 16)
S2(s_pack_lh_b32_b16, a32, b32, (a & 0xffff) | (b & 0xffff0000))
S2(s_pack_hh_b32_b16, a32, b32, a >> 16 | (b & 0xffff0000))

#define S_SHIFT_ADD(n) \
  void s_lshl##n##_add_u32(Wave& w, const Inst& i) { \
    const uint64_t sum = (uint64_t{a32(w, i)} << n) + b32(w, i); \
    put(w, i, static_cast<uint32_t>(sum)); \
    w.scc = sum >> 32 != 0; \
  }
S_SHIFT_ADD(1)
S_SHIFT_ADD(2)
S_SHIFT_ADD(3)
S_SHIFT_ADD(4)

void s_movk_i32(Wave& w, const Inst& i) { put(w, i, static_cast<uint32_t>(i.imm)); }
void s_cmovk_i32(Wave& w, const Inst& i) { if (w.scc) put(w, i, static_cast<uint32_t>(i.imm)); }
void s_mulk_i32(Wave& w, const Inst& i) { put(w, i, read_s32(w, i, i.dst) * static_cast<uint32_t>(i.imm)); }
void s_addk_i32(Wave& w, const Inst& i) {
  int32_t sum;
  w.scc = __builtin_add_overflow(static_cast<int32_t>(read_s32(w, i, i.dst)), i.imm, &sum);
  put(w, i, static_cast<uint32_t>(sum));
}

// SOPK compares its destination field; the unsigned ones do not extend the sign of the immediate.
#define S_COMPARE(op, symbol)                                                           \
  void s_cmp_##op##_i32(Wave& w, const Inst& i) {                                       \
    w.scc = static_cast<int32_t>(a32(w, i)) symbol static_cast<int32_t>(b32(w, i));     \
  }                                                                                     \
  void s_cmp_##op##_u32(Wave& w, const Inst& i) { w.scc = a32(w, i) symbol b32(w, i); } \
  void s_cmpk_##op##_i32(Wave& w, const Inst& i) {                                      \
    w.scc = static_cast<int32_t>(read_s32(w, i, i.dst)) symbol i.imm;                   \
  }                                                                                     \
  void s_cmpk_##op##_u32(Wave& w, const Inst& i) {                                      \
    w.scc = read_s32(w, i, i.dst) symbol static_cast<uint32_t>(i.imm & 0xffff);         \
  }
S_COMPARE(eq, ==)
S_COMPARE(lg, !=)
S_COMPARE(gt, >)
S_COMPARE(ge, >=)
S_COMPARE(lt, <)
S_COMPARE(le, <=)
void s_cmp_eq_u64(Wave& w, const Inst& i) { w.scc = a64(w, i) == b64(w, i); }
void s_cmp_lg_u64(Wave& w, const Inst& i) { w.scc = a64(w, i) != b64(w, i); }
void s_bitcmp0_b32(Wave& w, const Inst& i) { w.scc = !(a32(w, i) >> (b32(w, i) & 31) & 1); }
void s_bitcmp1_b32(Wave& w, const Inst& i) { w.scc = a32(w, i) >> (b32(w, i) & 31) & 1; }
void s_bitcmp0_b64(Wave& w, const Inst& i) { w.scc = !(a64(w, i) >> (b32(w, i) & 63) & 1); }
void s_bitcmp1_b64(Wave& w, const Inst& i) { w.scc = a64(w, i) >> (b32(w, i) & 63) & 1; }

}  // namespace mi350::emu::MI350_EMU_LEVEL
