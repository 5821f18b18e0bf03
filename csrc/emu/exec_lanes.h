// The lane loop of the vector handlers: a handler names its kinds and one lane's arithmetic, everything else
// (EXEC, DPP, SDWA, neg/abs/op_sel, omod/clamp, denormal and rounding modes) is here.
//
//   lanes<F32, F32, F32>(w, i, [](float a, float b) { return a + b; });     // destination kind, source kinds
//
// Registers go straight into the loop when the instruction is plain; what is unusual about an instruction is
// handled by fetch_* before and commit_* after it (exec_lanes.cpp), so each handler has one loop only.
// f16 operands travel as float: the widening and the rounding are in fetch_lanes and commit_lanes too.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "convert.h"
#include "exec.h"

namespace mi350::emu::MI350_EMU_LEVEL {

// kHalf is widened to float on the way; kHalfBits keeps the 16 bits, but constants are those of f16.
enum class Repr : uint8_t { kBits32, kFloat32, kBits16, kHalf, kHalfBits };
constexpr bool is_16(Repr r) { return r != Repr::kBits32 && r != Repr::kFloat32; }

// Kinds of operands: `T` is what a lane's arithmetic sees.
struct U32 { using T = uint32_t; static constexpr Repr kRepr = Repr::kBits32; };
struct I32 { using T = int32_t; static constexpr Repr kRepr = Repr::kBits32; };
struct F32 { using T = float; static constexpr Repr kRepr = Repr::kFloat32; };
struct U16 { using T = uint32_t; static constexpr Repr kRepr = Repr::kBits16; };
struct I16 { using T = int32_t; static constexpr Repr kRepr = Repr::kBits16; };
struct H16 { using T = uint32_t; static constexpr Repr kRepr = Repr::kHalfBits; };
struct F16 { using T = float; static constexpr Repr kRepr = Repr::kHalf; };
struct U64 { using T = uint64_t; };
struct I64 { using T = int64_t; };
struct F64 { using T = double; };
// As destination: the other half of the register stays (VOP3-only f16 and 16-bit operations, mac).
struct F16Keep : F16 {};
struct U16Keep : U16 {};
struct I16Keep : I16 {};
// As source: the destination's old value, and a lane of the scalar pair src[2] as 0 or 1.
template <class K> struct Old : K {};
struct MaskBit { using T = uint32_t; };

template <class K> inline constexpr bool is_64 = sizeof(typename K::T) == 8;
template <class K> inline constexpr bool is_float = std::is_floating_point_v<typename K::T>;
template <class K> inline constexpr bool keeps_half =
    std::is_same_v<K, F16Keep> || std::is_same_v<K, U16Keep> || std::is_same_v<K, I16Keep>;
template <class K> inline constexpr bool is_old = false;
template <class K> inline constexpr bool is_old<Old<K>> = true;

// MODE bits that change arithmetic: rounding, denormals, FP16_OVFL, GPR_IDX_EN. Usual: nearest, all
// denormals.
constexpr uint32_t kModeArithmetic = 0x088000ff, kModeUsual = 0xf0;
constexpr uint32_t kModeDx10Clamp = 1u << 8, kModeIeee = 1u << 9;
constexpr uint32_t kModeFp16Overflow = 1u << 23, kModeGprIndex = 1u << 27;

using Wide = std::array<uint64_t, kLanes>;

struct Scope {
  Wave& w;
  const Inst& i;
  uint64_t write;          // lanes that the instruction may write
  bool simple;             // no modifiers and the usual MODE
  bool full;               // all lanes written
  bool rounding = false;   // the host's rounding was changed
  int8_t dpp_lane[kLanes]; // DPP: source lane, -1 reads as 0

  Scope(Wave& wave, const Inst& inst)
      : w(wave),
        i(inst),
        write(wave.exec()),
        simple(inst.lane_mode == LaneMode::kPlain &&
               !(inst.neg | inst.abs | inst.op_sel | inst.omod | inst.clamp) &&
               (wave.mode & kModeArithmetic) == kModeUsual) {
    if (inst.lane_mode == LaneMode::kDpp) prepare_dpp();
    full = write == ~0ull;
  }
  ~Scope() { if (rounding) restore_rounding(); }
  Scope(const Scope&) = delete;

  // MODE.FP_ROUND for the rest of the scope: bits 1:0 for f32, 3:2 for f16 and f64.
  void round_by_mode(bool f32) { if (w.mode & 0xf) set_rounding(f32); }

 private:
  void prepare_dpp();
  void set_rounding(bool f32);
  void restore_rounding();
};

// Row of w.vgpr that an operand names; operand 3 is the destination.
uint32_t gpr_index(const Wave& w, uint16_t code, int operand);

// The 64-bit value of a scalar operand: inline floats and literals are f64 if `as_float`.
uint64_t scalar_wide(const Wave& w, const Inst& i, uint16_t code, bool as_float);

// Lanes of source n, in a register or in `scratch`.
const uint32_t* fetch_lanes(Scope& s, int n, Repr repr, Lanes& scratch);
// The low (0) or high (1) half of packed source n by op_sel, op_sel_hi, neg_lo and neg_hi.
const uint32_t* fetch_packed(Scope& s, int n, int half, Repr repr, Lanes& scratch);
const uint32_t* fetch_old(Scope& s, Repr repr, Lanes& scratch);
void fetch_wide(Scope& s, int n, bool as_float, Wide& out);
void fetch_old_wide(Scope& s, Wide& out);
void fetch_mask(Scope& s, Lanes& out);
void commit_lanes(Scope& s, Lanes& out, Repr repr, bool keep_half);
void commit_wide(Scope& s, Wide& out, bool as_float);
// omod, clamp, denormal flush and, for kHalf, rounding to 16 bits: all of commit_lanes but the write.
void finish_lanes(Scope& s, Lanes& out, Repr repr);
// Writes `out` to register `index` where the instruction may.
void write_masked(Scope& s, uint32_t index, const Lanes& out);
// Results of 0 or 1 per lane as a lane mask.
uint64_t pack_mask(const Lanes& bits);

template <class K> struct Source {
  alignas(64) Lanes scratch;
  const uint32_t* lane;
  Source() {}
  void open(Scope& s, int n) {
    if constexpr (is_old<K>) lane = fetch_old(s, K::kRepr, scratch);
    else if (K::kRepr != Repr::kHalf && s.simple && is_vector(s.i.src[n])) lane = vreg(s.w, s.i.src[n]);
    else lane = fetch_lanes(s, n, K::kRepr, scratch);
  }
  typename K::T operator[](int l) const {
    if constexpr (is_float<K>) return float_of(lane[l]);
    else if constexpr (std::is_same_v<K, I16>) return static_cast<int16_t>(lane[l]);
    else if constexpr (is_16(K::kRepr)) return lane[l] & 0xffff;
    else return static_cast<typename K::T>(lane[l]);
  }
};
template <class K> requires is_64<K> struct Source<K> {
  alignas(64) Wide lane;
  Source() {}
  void open(Scope& s, int n) {
    if constexpr (is_old<K>) fetch_old_wide(s, lane);
    else fetch_wide(s, n, is_float<K>, lane);
  }
  typename K::T operator[](int l) const { return std::bit_cast<typename K::T>(lane[l]); }
};
template <> struct Source<MaskBit> {
  alignas(64) Lanes lane;
  Source() {}
  void open(Scope& s, int) { fetch_mask(s, lane); }
  uint32_t operator[](int l) const { return lane[l]; }
};

template <class D, class Fn, class... Src> inline void run_lanes(Scope& s, Fn fn, const Src&... src) {
  if constexpr (is_64<D>) {
    alignas(64) Wide out;
    for (int l = 0; l < kLanes; ++l)
      out[l] = std::bit_cast<uint64_t>(static_cast<typename D::T>(fn(src[l]...)));
    commit_wide(s, out, is_float<D>);
  } else {
    alignas(64) Lanes scratch;
    constexpr bool whole = !is_16(D::kRepr);
    const bool direct = whole && s.simple && s.full;
    uint32_t* out = direct ? vreg(s.w, s.i.dst) : scratch.data();
    // A source may be the destination itself, never a shifted view of it.
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l)
      out[l] = std::bit_cast<uint32_t>(static_cast<typename D::T>(fn(src[l]...)));
    if (!direct) commit_lanes(s, scratch, D::kRepr, keeps_half<D>);
  }
}

// Runs `body(source...)` with the sources of kinds S opened in order.
template <class... S, class Body> inline void with_sources(Scope& s, Body body) {
  [&]<size_t... N>(std::index_sequence<N...>) {
    std::tuple<Source<S>...> src;
    (std::get<N>(src).open(s, N), ...);
    body(std::get<N>(src)...);
  }(std::index_sequence_for<S...>{});
}

template <class D, class... S, class Fn> inline void lanes(Wave& w, const Inst& i, Fn fn) {
  Scope s(w, i);
  if constexpr (is_float<D>) s.round_by_mode(std::is_same_v<D, F32>);
  with_sources<S...>(s, [&](const auto&... src) { run_lanes<D>(s, fn, src...); });
}

// One bit per lane, 0 where the lane is off.
template <class... S, class Fn> inline uint64_t lane_mask(Wave& w, const Inst& i, Fn fn) {
  Scope s(w, i);
  alignas(64) Lanes out;
  with_sources<S...>(s, [&](const auto&... src) {
    for (int l = 0; l < kLanes; ++l) out[l] = fn(src[l]...) ? 1 : 0;
  });
  return pack_mask(out) & s.write;
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
