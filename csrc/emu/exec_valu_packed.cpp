// VOP3P: two 16-bit operations in one register, two f32 operations in a pair of registers, mixed precision,
// dot products. OP_SEL and OP_SEL_HI name the halves that feed the low and the high result.
#include "exec_lanes.h"
#include "float_rules.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

bool ieee_mode(const Wave& w) { return w.mode & kModeIeee; }
template <class T> constexpr T least(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T most(T a, T b) { return a < b ? b : a; }

template <class K> struct HalfSource {
  alignas(64) Lanes scratch;
  const uint32_t* lane;
  HalfSource() {}
  typename K::T operator[](int l) const {
    if constexpr (is_float<K>) return float_of(lane[l]);
    else if constexpr (std::is_same_v<K, I16>) return static_cast<int16_t>(lane[l]);
    else return lane[l] & 0xffff;
  }
};

// One half of a packed result in 16 bits per lane.
template <class K, class Fn, size_t... N>
void packed_half(Scope& s, int half, Lanes& out, Fn fn, std::index_sequence<N...>) {
  std::tuple<decltype((void)N, HalfSource<K>())...> src;
  ((std::get<N>(src).lane = fetch_packed(s, N, half, K::kRepr, std::get<N>(src).scratch)), ...);
  for (int l = 0; l < kLanes; ++l)
    out[l] = std::bit_cast<uint32_t>(static_cast<typename K::T>(fn(std::get<N>(src)[l]...)));
  finish_lanes(s, out, K::kRepr);
}

template <class K, int kSources, class Fn> void packed(Wave& w, const Inst& i, Fn fn) {
  Scope s(w, i);
  if constexpr (is_float<K>) s.round_by_mode(false);
  alignas(64) Lanes low, high;
  packed_half<K>(s, 0, low, fn, std::make_index_sequence<kSources>{});
  packed_half<K>(s, 1, high, fn, std::make_index_sequence<kSources>{});
  for (int l = 0; l < kLanes; ++l) low[l] |= high[l] << 16;
  commit_lanes(s, low, Repr::kBits32, false);
}

template <class K> constexpr typename K::T saturate_16(int64_t x) {
  constexpr int64_t kLow = std::is_signed_v<typename K::T> ? -32768 : 0;
  return static_cast<typename K::T>(least(most(x, kLow), kLow + 65535));
}
template <class K, int kSources, class Fn> void packed_int(Wave& w, const Inst& i, Fn fn) {
  if (i.clamp)
    packed<K, kSources>(w, i, [fn](auto... x) { return saturate_16<K>(fn(x...)); });
  else
    packed<K, kSources>(w, i, [fn](auto... x) { return static_cast<typename K::T>(fn(x...)); });
}

float fused_half(float a, float b, float c) { return round_to_odd(static_cast<double>(a) * b + c); }

// Lanes of element `half` of a register pair (or scalar pair, or one constant for both).
const uint32_t* fetch_pair(Scope& s, int n, int half, Lanes& scratch) {
  const uint16_t code = s.i.src[n];
  const int element = (half ? s.i.op_sel_hi : s.i.op_sel) >> n & 1;
  const bool neg = (half ? s.i.abs : s.i.neg) >> n & 1, flushes = !(s.w.mode & 0x10);
  const uint32_t* in = scratch.data();
  if (is_vector(code)) in = s.w.vgpr[gpr_index(s.w, code, n) + element];
  else
    scratch.fill(read_s32(s.w, s.i, code < 128 ? static_cast<uint16_t>(code + element) : code));
  if (!neg && !flushes) return in;
  for (int l = 0; l < kLanes; ++l) {
    const uint32_t x = in[l] ^ (neg ? 0x80000000 : 0);
    scratch[l] = flushes && !(x & 0x7f800000) ? x & 0x80000000 : x;
  }
  return scratch.data();
}

template <int kSources, class Fn> void packed_f32(Wave& w, const Inst& i, Fn fn) {
  Scope s(w, i);
  s.round_by_mode(true);
  alignas(64) Lanes out[2];
  for (int half = 0; half < 2; ++half) {
    alignas(64) Lanes scratch[3];
    const uint32_t* in[3] = {};
    for (int n = 0; n < kSources; ++n) in[n] = fetch_pair(s, n, half, scratch[n]);
    const uint32_t *a = in[0], *b = in[1], *c = in[kSources - 1];
    for (int l = 0; l < kLanes; ++l)
      out[half][l] = bits_of(fn(float_of(a[l]), float_of(b[l]), float_of(c[l])));
    if (!s.simple) finish_lanes(s, out[half], Repr::kFloat32);
  }
  const uint32_t index = gpr_index(w, i.dst, 3);
  write_masked(s, index, out[0]);
  write_masked(s, index + 1, out[1]);
}

// v_fma_mix sources: f16 (its half by OP_SEL) where OP_SEL_HI is set, else f32. `abs` is an absolute value
// here.
void fetch_mix(Scope& s, int n, Lanes& out) {
  const uint16_t code = s.i.src[n];
  const bool narrow = s.i.op_sel_hi >> n & 1, high = s.i.op_sel >> n & 1;
  const bool abs = s.i.abs >> n & 1, neg = s.i.neg >> n & 1, flushes = !(s.w.mode & (narrow ? 0x40 : 0x10));
  Lanes scratch;
  const uint32_t* in =
      is_vector(code) ? s.w.vgpr[gpr_index(s.w, code, n)] : read_lanes(s.w, s.i, code, scratch);
  const bool constant = narrow && code >= kFloatHalf && code <= 248;
  const uint32_t least_normal = narrow ? 0x38800000 : 0x00800000;
  for (int l = 0; l < kLanes; ++l) {
    const uint32_t raw = constant ? inline_f16(code) : in[l];
    uint32_t x = narrow ? bits_of(half_to_float(high ? raw >> 16 : raw & 0xffff)) : raw;
    x = (abs ? x & 0x7fffffff : x) ^ (neg ? 0x80000000 : 0);
    out[l] = flushes && (x & 0x7fffffff) < least_normal ? x & 0x80000000 : x;
  }
}

enum class MixTo : uint8_t { kFloat32, kLowHalf, kHighHalf };

void fma_mix(Wave& w, const Inst& i, MixTo to) {
  Scope s(w, i);
  s.round_by_mode(to == MixTo::kFloat32);
  alignas(64) Lanes a, b, c;
  fetch_mix(s, 0, a);
  fetch_mix(s, 1, b);
  fetch_mix(s, 2, c);
  const bool wide = to == MixTo::kFloat32;
  for (int l = 0; l < kLanes; ++l) {
    const float x = float_of(a[l]), y = float_of(b[l]), z = float_of(c[l]);
    a[l] =
        bits_of(wide ? __builtin_fmaf(x, y, z) : round_to_odd(__builtin_fma(x, y, static_cast<double>(z))));
  }
  finish_lanes(s, a, wide ? Repr::kFloat32 : Repr::kHalf);
  const uint32_t index = gpr_index(w, i.dst, 3);
  const uint32_t* old = w.vgpr[index];
  if (to == MixTo::kLowHalf) for (int l = 0; l < kLanes; ++l) a[l] |= old[l] & 0xffff0000;
  if (to == MixTo::kHighHalf) for (int l = 0; l < kLanes; ++l) a[l] = a[l] << 16 | (old[l] & 0xffff);
  write_masked(s, index, a);
}

// Dot products of `kBits`-bit parts plus a 32-bit addend; CLAMP saturates.
template <class T, int kBits> constexpr int64_t part(uint32_t v, int n) {
  const uint32_t up = v << (32 - kBits * (n + 1));
  if constexpr (std::is_signed_v<T>) return static_cast<int32_t>(up) >> (32 - kBits);
  else return up >> (32 - kBits);
}
template <class T, int kBits> constexpr uint32_t dot(uint32_t a, uint32_t b, uint32_t c, bool clamp) {
  int64_t sum = static_cast<T>(c);
  for (int n = 0; n < 32 / kBits; ++n) sum += part<T, kBits>(a, n) * part<T, kBits>(b, n);
  constexpr int64_t kLow = std::is_signed_v<T> ? -2147483648ll : 0, kHigh = kLow + 4294967295ll;
  return static_cast<uint32_t>(clamp ? least(most(sum, kLow), kHigh) : sum);
}

template <class T, int kBits, class Addend> void dot_int(Wave& w, const Inst& i) {
  const bool clamp = i.clamp;
  Inst plain = i;
  plain.neg = plain.abs = plain.op_sel = 0;
  lanes<U32, U32, U32, Addend>(
      w, plain, [clamp](uint32_t a, uint32_t b, uint32_t c) { return dot<T, kBits>(a, b, c, clamp); });
}

// Two 16-bit floats per source; the sum is formed in double and rounded once.
template <bool kBfloat> float dot_pair(uint32_t a, uint32_t b, float c) {
  const auto widen = [](uint32_t h) {
    return static_cast<double>(kBfloat ? bfloat_to_float(h) : half_to_float(h));
  };
  return static_cast<float>(widen(a & 0xffff) * widen(b & 0xffff) + widen(a >> 16) * widen(b >> 16) + c);
}

// A source of v_dot2_f32_*, its halves placed and negated as the modifiers say. Constants fill the low half.
void fetch_dot(Scope& s, int n, bool bfloat, Lanes& out) {
  Lanes low, high;
  const uint16_t code = s.i.src[n];
  if (bfloat && code >= kFloatHalf && code <= 248) {
    const uint32_t value = float_to_bfloat(float_of(inline_constant(code, 0)));
    const uint32_t both = s.i.op_sel_hi >> n & 1 ? value : value << 16 | value;
    for (uint32_t& lane : out) lane = both;
    return;
  }
  const uint32_t* l0 = fetch_packed(s, n, 0, Repr::kHalfBits, low);
  const uint32_t* l1 = fetch_packed(s, n, 1, Repr::kHalfBits, high);
  for (int l = 0; l < kLanes; ++l) out[l] = (l0[l] & 0xffff) | l1[l] << 16;
}

template <bool kBfloat> void dot2_f32(Wave& w, const Inst& i) {
  Scope s(w, i);
  alignas(64) Lanes a, b, c_scratch;
  fetch_dot(s, 0, kBfloat, a);
  fetch_dot(s, 1, kBfloat, b);
  Inst addend = i;
  addend.abs = 0;
  addend.op_sel = 0;
  Scope sc(w, addend);
  const uint32_t* c = fetch_lanes(sc, 2, Repr::kFloat32, c_scratch);
  for (int l = 0; l < kLanes; ++l) a[l] = bits_of(dot_pair<kBfloat>(a[l], b[l], float_of(c[l])));
  finish_lanes(s, a, Repr::kFloat32);
  write_masked(s, gpr_index(w, i.dst, 3), a);
}

}  // namespace

#define PK_F16_2(name, expression) \
  void name(Wave& w, const Inst& i) { \
    const bool ieee = ieee_mode(w); \
    packed<F16, 2>(w, i, [ieee](float a, float b) { (void)ieee; return expression; }); \
  }
#define PK_F16_3(name, expression)                                              \
  void name(Wave& w, const Inst& i) {                                           \
    packed<F16, 3>(w, i, [](float a, float b, float c) { return expression; }); \
  }
#define PK_INT_2(name, kind, expression)                                        \
  void name(Wave& w, const Inst& i) {                                           \
    packed_int<kind, 2>(w, i, [](int64_t a, int64_t b) { return expression; }); \
  }
#define PK_INT_3(name, kind, expression)                                                   \
  void name(Wave& w, const Inst& i) {                                                      \
    packed_int<kind, 3>(w, i, [](int64_t a, int64_t b, int64_t c) { return expression; }); \
  }

PK_F16_2(v_pk_add_f16, a + b)
PK_F16_2(v_pk_mul_f16, a * b)
PK_F16_2(v_pk_min_f16, min_number(a, b, ieee))
PK_F16_2(v_pk_max_f16, max_number(a, b, ieee))
PK_F16_3(v_pk_fma_f16, fused_half(a, b, c))
PK_F16_3(v_pk_minimum3_f16, extreme3<false>(a, b, c))
PK_F16_3(v_pk_maximum3_f16, extreme3<true>(a, b, c))

PK_INT_3(v_pk_mad_i16, I16, a * b + c)
PK_INT_3(v_pk_mad_u16, U16, a * b + c)
PK_INT_2(v_pk_mul_lo_u16, U16, a * b)
PK_INT_2(v_pk_add_i16, I16, a + b)
PK_INT_2(v_pk_sub_i16, I16, a - b)
PK_INT_2(v_pk_add_u16, U16, a + b)
PK_INT_2(v_pk_sub_u16, U16, a - b)
PK_INT_2(v_pk_max_i16, I16, most(a, b))
PK_INT_2(v_pk_min_i16, I16, least(a, b))
PK_INT_2(v_pk_max_u16, U16, most(a, b))
PK_INT_2(v_pk_min_u16, U16, least(a, b))
PK_INT_2(v_pk_lshlrev_b16, U16, b << (a & 15))
PK_INT_2(v_pk_lshrrev_b16, U16, b >> (a & 15))
PK_INT_2(v_pk_ashrrev_i16, I16, b >> (a & 15))

void v_pk_fma_f32(Wave& w, const Inst& i) {
  packed_f32<3>(w, i, [](float a, float b, float c) { return __builtin_fmaf(a, b, c); });
}
void v_pk_mul_f32(Wave& w, const Inst& i) {
  packed_f32<2>(w, i, [](float a, float b, float) { return a * b; });
}
void v_pk_add_f32(Wave& w, const Inst& i) {
  packed_f32<2>(w, i, [](float a, float b, float) { return a + b; });
}
// Low from the first source, high from the second, each by its OP_SEL bit.
void v_pk_mov_b32(Wave& w, const Inst& i) {
  Scope s(w, i);
  alignas(64) Lanes out[2];
  for (int n = 0; n < 2; ++n) {
    const uint16_t code = i.src[n];
    const uint32_t element = i.op_sel >> n & 1;
    if (is_vector(code)) std::memcpy(out[n].data(), w.vgpr[gpr_index(w, code, n) + element], sizeof(Lanes));
    else
      out[n].fill(read_s32(w, i, code < 128 ? static_cast<uint16_t>(code + element) : code));
  }
  const uint32_t index = gpr_index(w, i.dst, 3);
  write_masked(s, index, out[0]);
  write_masked(s, index + 1, out[1]);
}

void v_fma_mix_f32(Wave& w, const Inst& i) { fma_mix(w, i, MixTo::kFloat32); }
void v_fma_mixlo_f16(Wave& w, const Inst& i) { fma_mix(w, i, MixTo::kLowHalf); }
void v_fma_mixhi_f16(Wave& w, const Inst& i) { fma_mix(w, i, MixTo::kHighHalf); }

void v_dot2_f32_f16(Wave& w, const Inst& i) { dot2_f32<false>(w, i); }
void v_dot2_f32_bf16(Wave& w, const Inst& i) { dot2_f32<true>(w, i); }
void v_dot2_i32_i16(Wave& w, const Inst& i) { dot_int<int32_t, 16, U32>(w, i); }
void v_dot2_u32_u16(Wave& w, const Inst& i) { dot_int<uint32_t, 16, U32>(w, i); }
void v_dot4_i32_i8(Wave& w, const Inst& i) { dot_int<int32_t, 8, U32>(w, i); }
void v_dot4_u32_u8(Wave& w, const Inst& i) { dot_int<uint32_t, 8, U32>(w, i); }
void v_dot8_i32_i4(Wave& w, const Inst& i) { dot_int<int32_t, 4, U32>(w, i); }
void v_dot8_u32_u4(Wave& w, const Inst& i) { dot_int<uint32_t, 4, U32>(w, i); }

// VOP2 forms that add to their destination
void v_dot2c_i32_i16(Wave& w, const Inst& i) { dot_int<int32_t, 16, Old<U32>>(w, i); }
void v_dot4c_i32_i8(Wave& w, const Inst& i) { dot_int<int32_t, 8, Old<U32>>(w, i); }
void v_dot8c_i32_i4(Wave& w, const Inst& i) { dot_int<int32_t, 4, Old<U32>>(w, i); }
void v_dot2c_f32_f16(Wave& w, const Inst& i) {
  lanes<F32, U32, U32, Old<F32>>(w, i,
                                 [](uint32_t a, uint32_t b, float d) { return dot_pair<false>(a, b, d); });
}
void v_dot2c_f32_bf16(Wave& w, const Inst& i) {
  lanes<F32, U32, U32, Old<F32>>(w, i,
                                 [](uint32_t a, uint32_t b, float d) { return dot_pair<true>(a, b, d); });
}
// The destination stands in for a third source whose halves are in place.
void v_pk_fmac_f16(Wave& w, const Inst& i) {
  Inst whole = i;
  whole.src[2] = i.dst;
  whole.op_sel = 0;
  whole.op_sel_hi = 7;
  whole.abs = whole.neg;
  packed<F16, 3>(w, whole, [](float a, float b, float c) { return fused_half(a, b, c); });
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
