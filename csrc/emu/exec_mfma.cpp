// MFMA: shapes and element types are data, the layouts follow from them.
//
//   A[b][i][k]: lane i + M*(b + B*(k / L)), item k % L, with L = K*M*B/64 items per lane; B likewise with j.
//   D: mfma_shape.h. f8f6f4 with an 8-bit operand: two chunks of 16 items, the second half of K in the upper
//   one.
// EXEC and MODE's rounding are ignored, denormals kept; f32 accumulates in order of k.
#include <algorithm>

#include "exec_lanes.h"
#include "mfma_panel.h"
#include "mfma_shape.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

// CBSZ and ABID: groups of 64 >> cbsz lanes all read group `abid`. The field holds one value more than there are
// group sizes.
void broadcast_a(Panel& panel, int items, int cbsz, int abid) {
  const int group = std::max(kLanes >> cbsz, 1), from = group * abid % kLanes;
  for (int e = 0; e < items; ++e) {
    float old[kLanes];
    std::memcpy(old, panel[e], sizeof old);
    for (int l = 0; l < kLanes; ++l) panel[e][l] = old[from + l % group];
  }
}

// BLGP: source lane of B for lane l.
int b_lane(int blgp, int l) {
  switch (blgp) {
    case 1: return l & 31;
    case 2: return 32 + (l & 31);
    case 3: return (l + 16) & 63;
    case 4: case 5: case 6: case 7: return 16 * (blgp - 4) + (l & 15);
    default: return l;
  }
}
void permute_b(Panel& panel, int items, int blgp) {
  for (int e = 0; e < items; ++e) {
    float old[kLanes];
    std::memcpy(old, panel[e], sizeof old);
    for (int l = 0; l < kLanes; ++l) panel[e][l] = old[b_lane(blgp, l)];
  }
}

void flush_denormals(Panel& panel, int items) {
  for (int e = 0; e < items; ++e)
    for (float& x : panel[e]) x = (bits_of(x) & 0x7f800000) ? x : float_of(bits_of(x) & 0x80000000);
}

// C as rows of registers: the registers themselves, a copy if D would overwrite them before they are read,
// or an inline constant.
struct SourceC {
  const uint32_t (*regs)[kLanes];
  alignas(64) uint32_t copy[32][kLanes];

  SourceC(Wave& w, const Inst& i, int registers) {
    const uint16_t code = i.src[2];
    regs = copy;
    if (!is_vector(code)) {
      const uint32_t value = read_s32(w, i, code);
      for (int r = 0; r < registers; ++r)
        for (uint32_t& lane : copy[r]) lane = value;
    } else if (code != i.dst && code < i.dst + registers && i.dst < code + registers) {
      std::memcpy(copy, w.vgpr[code - kVgpr0], sizeof(copy[0]) * registers);
    } else {
      regs = &w.vgpr[code - kVgpr0];
    }
  }
};

template <Shape S> void set_rows(Operands& o, int block, const uint32_t (*c)[kLanes], uint32_t (*d)[kLanes]) {
  for (int i = 0; i < S.m; ++i) {
    const int r = register_of<S>(block, i), l = lane_of<S>(block, i);
    o.c[i] = reinterpret_cast<const float*>(&c[r][l]);
    o.d[i] = reinterpret_cast<float*>(&d[r][l]);
  }
}

template <Shape S> void set_slices(Operands& o, int block, const Panel& a, const Panel& b) {
  for (int k = 0; k < S.k; ++k) {
    const int item = k % S.items(), group = block + S.blocks * (k / S.items());
    o.a[k] = a[item] + S.m * group;
    o.b[k] = b[item] + S.n * group;
  }
}

template <Shape S> void load_panels(Wave& w, const Inst& i, Element ta, Element tb, Panel& a, Panel& b) {
  unpack(w, i.src[0], ta, S.items(), a);
  unpack(w, i.src[1], tb, S.items(), b);
  if (i.cbsz) broadcast_a(a, S.items(), i.cbsz, i.abid);
  if (i.blgp) permute_b(b, S.items(), i.blgp);
  if (ta == Element::kF32 && !(w.mode & 0x10)) {
    flush_denormals(a, S.items());
    flush_denormals(b, S.items());
  }
}

template <Shape S> void mfma(Wave& w, const Inst& i, Element ta, Element tb) {
  alignas(64) Panel a, b;
  load_panels<S>(w, i, ta, tb, a, b);
  const SourceC c(w, i, S.registers());
  Operands o;
  for (int block = 0; block < S.blocks; ++block) {
    set_slices<S>(o, block, a, b);
    set_rows<S>(o, block, c.regs, &w.vgpr[i.dst - kVgpr0]);
    multiply<S.m, S.n>(o, 0, S.k);
  }
  count(w, S);
}

// int8: a dot product of at most 64 products of 14 bits is exact in float; C is added as an integer.
template <Shape S> void mfma_i8(Wave& w, const Inst& i) {
  alignas(64) Panel a, b;
  load_panels<S>(w, i, Element::kI8, Element::kI8, a, b);
  const SourceC c(w, i, S.registers());
  alignas(64) static constexpr uint32_t kZero[32][kLanes] = {};
  alignas(64) uint32_t sum[32][kLanes];
  Operands o;
  for (int block = 0; block < S.blocks; ++block) {
    set_slices<S>(o, block, a, b);
    set_rows<S>(o, block, kZero, sum);
    multiply<S.m, S.n>(o, 0, S.k);
  }
  uint32_t (*d)[kLanes] = &w.vgpr[i.dst - kVgpr0];
  for (int r = 0; r < S.registers(); ++r)
    for (int l = 0; l < kLanes; ++l)
      d[r][l] = c.regs[r][l] + static_cast<uint32_t>(static_cast<int32_t>(float_of(sum[r][l])));
  count(w, S);
}

// ---- f8f6f4: formats in CBSZ and BLGP, block scales --------------------------------------------------

constexpr Element kSmall[8] = {Element::kFp8, Element::kBf8, Element::kFp6, Element::kBf6,
                               Element::kFp4, Element::kFp8, Element::kFp8, Element::kFp8};
constexpr int kScaleBlock = 32;

// Group of lanes and item that hold k of one operand.
template <Shape S> void set_small_slices(const float** at, const Panel& panel, Element t, int rows) {
  for (int k = 0; k < S.k; ++k) {
    int group = k / 32, item = k % 32;
    if (element_bits(t) == 8) {
      const int half = S.k / 2;
      group = k % half / 16;
      item = k % 16 + (k >= half ? 16 : 0);
    }
    at[k] = panel[item] + rows * group;
  }
}

struct Scales {
  float value[kLanes];
  bool moderate = true;   // products of two such scales, times a dot product, stay inside f32

  Scales(Wave& w, const Inst& i, int operand) {
    Lanes scratch;
    const uint32_t* lane = read_lanes(w, i, i.scale_src[operand], scratch);
    for (int l = 0; l < kLanes; ++l) {
      const uint32_t exponent = (lane[l] >> (8 * i.scale_sel[operand])) & 0xff;
      value[l] = static_cast<float>(e8m0_to_double(exponent));
      moderate &= exponent >= 127 - 40 && exponent <= 127 + 40;
    }
  }
};

template <Shape S>
void add_scaled(const Operands& total, const uint32_t (*dot)[kLanes], const Scales& a, const Scales& b,
                int block) {
  for (int i = 0; i < S.m; ++i) {
    const float* x = reinterpret_cast<const float*>(&dot[register_of<S>(0, i)][lane_of<S>(0, i)]);
    const float row_scale = a.value[i + S.m * block];
    const float* column_scale = b.value + S.n * block;
    const float* c = block ? total.d[i] : total.c[i];
    if (a.moderate && b.moderate) {
      for (int j = 0; j < S.n; ++j) total.d[i][j] = c[j] + x[j] * (row_scale * column_scale[j]);
    } else {
      for (int j = 0; j < S.n; ++j)
        total.d[i][j] = static_cast<float>(c[j] + x[j] * (static_cast<double>(row_scale) * column_scale[j]));
    }
  }
}

template <Shape S> void mfma_small(Wave& w, const Inst& i, bool scaled) {
  alignas(64) Panel a, b;
  const Element ta = kSmall[i.cbsz & 7], tb = kSmall[i.blgp & 7];
  unpack(w, i.src[0], ta, S.items(), a);
  unpack(w, i.src[1], tb, S.items(), b);
  const SourceC c(w, i, S.registers());
  Operands o;
  set_small_slices<S>(o.a, a, ta, S.m);
  set_small_slices<S>(o.b, b, tb, S.n);
  set_rows<S>(o, 0, c.regs, &w.vgpr[i.dst - kVgpr0]);
  count(w, S);
  if (!scaled) return multiply<S.m, S.n>(o, 0, S.k);

  const Scales sa(w, i, 0), sb(w, i, 1);
  const Operands total = o;
  alignas(64) static constexpr uint32_t kZero[16][kLanes] = {};
  alignas(64) uint32_t dot[16][kLanes];
  set_rows<S>(o, 0, kZero, dot);
  for (int block = 0; block < S.k / kScaleBlock; ++block) {
    multiply<S.m, S.n>(o, block * kScaleBlock, (block + 1) * kScaleBlock);
    add_scaled<S>(total, dot, sa, sb, block);
  }
}

// ---- f64: BLGP bits negate A, B, C --------------------------------------------------------------------

double load_f64(const uint32_t (*regs)[kLanes], int lane) {
  return double_of(regs[0][lane] | static_cast<uint64_t>(regs[1][lane]) << 32);
}
void store_f64(uint32_t (*regs)[kLanes], int lane, double x) {
  regs[0][lane] = static_cast<uint32_t>(bits_of(x));
  regs[1][lane] = static_cast<uint32_t>(bits_of(x) >> 32);
}

// lane_c(b, i, j) gives the register pair and the lane of D; A of (b, i, k) is at lane_a(b, i, k), B alike.
template <class LaneA, class LaneB, class PlaceD>
void mfma_f64(Wave& w, const Inst& i, const Shape& s, LaneA lane_a, LaneB lane_b, PlaceD place) {
  const auto* a = &w.vgpr[i.src[0] - kVgpr0];
  const auto* b = &w.vgpr[i.src[1] - kVgpr0];
  const double sign_a = i.blgp & 1 ? -1 : 1, sign_b = i.blgp & 2 ? -1 : 1, sign_c = i.blgp & 4 ? -1 : 1;
  double d[4][16][16];
  for (int block = 0; block < s.blocks; ++block)
    for (int row = 0; row < s.m; ++row)
      for (int column = 0; column < s.n; ++column) {
        const auto [pair, lane] = place(block, row, column);
        double sum = is_vector(i.src[2]) ? load_f64(&w.vgpr[i.src[2] - kVgpr0 + 2 * pair], lane)
                                         : double_of(scalar_wide(w, i, i.src[2], true));
        sum *= sign_c;
        for (int k = 0; k < s.k; ++k)
          sum = __builtin_fma(sign_a * load_f64(a, lane_a(block, row, k)),
                              sign_b * load_f64(b, lane_b(block, column, k)), sum);
        d[block][row][column] = sum;
      }
  for (int block = 0; block < s.blocks; ++block)
    for (int row = 0; row < s.m; ++row)
      for (int column = 0; column < s.n; ++column) {
        const auto [pair, lane] = place(block, row, column);
        store_f64(&w.vgpr[i.dst - kVgpr0 + 2 * pair], lane, d[block][row][column]);
      }
  count(w, s);
}

struct PlaceF64 { int pair, lane; };

}  // namespace

#define MFMA(name, m, n, k, blocks, ta, tb) \
  void name(Wave& w, const Inst& i) { mfma<Shape{m, n, k, blocks}>(w, i, Element::ta, Element::tb); }
#define MFMA_I8(name, m, n, k, blocks) \
  void name(Wave& w, const Inst& i) { mfma_i8<Shape{m, n, k, blocks}>(w, i); }

MFMA(v_mfma_f32_32x32x1_2b_f32, 32, 32, 1, 2, kF32, kF32)
MFMA(v_mfma_f32_16x16x1_4b_f32, 16, 16, 1, 4, kF32, kF32)
MFMA(v_mfma_f32_4x4x1_16b_f32, 4, 4, 1, 16, kF32, kF32)
MFMA(v_mfma_f32_32x32x2_f32, 32, 32, 2, 1, kF32, kF32)
MFMA(v_mfma_f32_16x16x4_f32, 16, 16, 4, 1, kF32, kF32)

MFMA(v_mfma_f32_32x32x4_2b_f16, 32, 32, 4, 2, kF16, kF16)
MFMA(v_mfma_f32_16x16x4_4b_f16, 16, 16, 4, 4, kF16, kF16)
MFMA(v_mfma_f32_4x4x4_16b_f16, 4, 4, 4, 16, kF16, kF16)
MFMA(v_mfma_f32_32x32x8_f16, 32, 32, 8, 1, kF16, kF16)
MFMA(v_mfma_f32_16x16x16_f16, 16, 16, 16, 1, kF16, kF16)
MFMA(v_mfma_f32_16x16x32_f16, 16, 16, 32, 1, kF16, kF16)
MFMA(v_mfma_f32_32x32x16_f16, 32, 32, 16, 1, kF16, kF16)

MFMA(v_mfma_f32_32x32x4_2b_bf16, 32, 32, 4, 2, kBf16, kBf16)
MFMA(v_mfma_f32_16x16x4_4b_bf16, 16, 16, 4, 4, kBf16, kBf16)
MFMA(v_mfma_f32_4x4x4_16b_bf16, 4, 4, 4, 16, kBf16, kBf16)
MFMA(v_mfma_f32_32x32x8_bf16, 32, 32, 8, 1, kBf16, kBf16)
MFMA(v_mfma_f32_16x16x16_bf16, 16, 16, 16, 1, kBf16, kBf16)
MFMA(v_mfma_f32_16x16x32_bf16, 16, 16, 32, 1, kBf16, kBf16)
MFMA(v_mfma_f32_32x32x16_bf16, 32, 32, 16, 1, kBf16, kBf16)

MFMA_I8(v_mfma_i32_32x32x4_2b_i8, 32, 32, 4, 2)
MFMA_I8(v_mfma_i32_16x16x4_4b_i8, 16, 16, 4, 4)
MFMA_I8(v_mfma_i32_4x4x4_16b_i8, 4, 4, 4, 16)
MFMA_I8(v_mfma_i32_32x32x16_i8, 32, 32, 16, 1)
MFMA_I8(v_mfma_i32_16x16x32_i8, 16, 16, 32, 1)
MFMA_I8(v_mfma_i32_16x16x64_i8, 16, 16, 64, 1)
MFMA_I8(v_mfma_i32_32x32x32_i8, 32, 32, 32, 1)

MFMA(v_mfma_f32_16x16x32_bf8_bf8, 16, 16, 32, 1, kBf8, kBf8)
MFMA(v_mfma_f32_16x16x32_bf8_fp8, 16, 16, 32, 1, kBf8, kFp8)
MFMA(v_mfma_f32_16x16x32_fp8_bf8, 16, 16, 32, 1, kFp8, kBf8)
MFMA(v_mfma_f32_16x16x32_fp8_fp8, 16, 16, 32, 1, kFp8, kFp8)
MFMA(v_mfma_f32_32x32x16_bf8_bf8, 32, 32, 16, 1, kBf8, kBf8)
MFMA(v_mfma_f32_32x32x16_bf8_fp8, 32, 32, 16, 1, kBf8, kFp8)
MFMA(v_mfma_f32_32x32x16_fp8_bf8, 32, 32, 16, 1, kFp8, kBf8)
MFMA(v_mfma_f32_32x32x16_fp8_fp8, 32, 32, 16, 1, kFp8, kFp8)

void v_mfma_f32_16x16x128_f8f6f4(Wave& w, const Inst& i) { mfma_small<Shape{16, 16, 128, 1}>(w, i, false); }
void v_mfma_f32_32x32x64_f8f6f4(Wave& w, const Inst& i) { mfma_small<Shape{32, 32, 64, 1}>(w, i, false); }
// ABID bit 0 is what turns the scales on.
void v_mfma_scale_f32_16x16x128_f8f6f4(Wave& w, const Inst& i) {
  mfma_small<Shape{16, 16, 128, 1}>(w, i, i.abid & 1);
}
void v_mfma_scale_f32_32x32x64_f8f6f4(Wave& w, const Inst& i) {
  mfma_small<Shape{32, 32, 64, 1}>(w, i, i.abid & 1);
}

void v_mfma_f64_16x16x4_f64(Wave& w, const Inst& i) {
  const auto operand = [](int, int row, int k) { return row + 16 * k; };
  mfma_f64(w, i, Shape{16, 16, 4, 1}, operand, operand,
           [](int, int row, int column) { return PlaceF64{row / 4, 16 * (row % 4) + column}; });
}
void v_mfma_f64_4x4x4_4b_f64(Wave& w, const Inst& i) {
  const auto operand = [](int block, int row, int k) { return 16 * k + 4 * block + row; };
  mfma_f64(w, i, Shape{4, 4, 4, 4}, operand, operand,
           [](int block, int row, int column) { return PlaceF64{0, 16 * row + 4 * block + column}; });
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
