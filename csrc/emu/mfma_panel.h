// The arithmetic under the MFMA handlers: operands widened to float panels, and rows of columns multiplied.
//
// A panel holds item e of lane l at [e][l]. Lanes of one k-group are consecutive, so one k of A is M
// consecutive floats and one k of B is N of them; a row of D is N consecutive lanes of one register. The
// inner loop is D[i][0..N) += A[k][i] * B[k][0..N) with D in host registers.
#pragma once
#include "convert.h"
#include "exec.h"
#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace mi350::emu::MI350_EMU_LEVEL {

constexpr int kMaxItems = 32, kMaxK = 128, kMaxRows = 32;

enum class Element : uint8_t { kF32, kF16, kBf16, kI8, kFp8, kBf8, kFp6, kBf6, kFp4 };

constexpr int element_bits(Element t) {
  switch (t) {
    case Element::kF32: return 32;
    case Element::kF16: case Element::kBf16: return 16;
    case Element::kFp6: case Element::kBf6: return 6;
    case Element::kFp4: return 4;
    default: return 8;
  }
}

using Panel = float[kMaxItems][kLanes];

// A small float is read as the f16 of the same exponent and mantissa fields, times the power of two between
// the biases: the host's half conversion then normalises denormals.
constexpr float small_scale(Element t) {
  switch (t) {
    case Element::kFp8: return 0x1p8f;
    case Element::kFp6: case Element::kFp4: return 0x1p14f;
    case Element::kBf6: return 0x1p12f;
    default: return 1;
  }
}

constexpr uint32_t small_as_half(Element t, uint32_t x) {
  switch (t) {
    case Element::kFp8: return (x & 0x7f) << 7 | (x & 0x80) << 8;
    case Element::kBf8: return (x & 0xff) << 8;
    case Element::kFp6: return (x & 0x1f) << 7 | (x & 0x20) << 10;
    case Element::kBf6: return (x & 0x1f) << 8 | (x & 0x20) << 10;
    case Element::kFp4: return (x & 0x7) << 9 | (x & 0x8) << 12;
    default: return x & 0xffff;
  }
}

// Dwords whose low bits hold the item; 6-bit items may straddle two registers.
template <int kBits> inline void item_words(const uint32_t (*regs)[kLanes], int item, uint32_t* out) {
  const int at = item * kBits, shift = at % 32;
  const uint32_t* low = regs[at / 32];
  for (int l = 0; l < kLanes; ++l) out[l] = low[l] >> shift;
  if constexpr (kBits == 6) {
    if (shift <= 32 - kBits) return;
    const uint32_t* high = regs[at / 32 + 1];
    for (int l = 0; l < kLanes; ++l) out[l] |= high[l] << (32 - shift);
  }
}

#if defined(__AVX512F__)
template <Element T> inline void widen_small(const uint32_t* x, float* out) {
  for (int l = 0; l < kLanes; l += 16) {
    alignas(64) uint32_t half[16];
    for (int n = 0; n < 16; ++n) half[n] = small_as_half(T, x[l + n]);
    const __m256i packed = _mm512_maskz_cvtepi32_epi16(0xffff, _mm512_load_si512(half));
    _mm512_storeu_ps(out + l, _mm512_maskz_cvtph_ps(0xffff, packed));
  }
}
#else
template <Element T> inline void widen_small(const uint32_t* x, float* out) {
  for (int l = 0; l < kLanes; ++l) out[l] = half_to_float(small_as_half(T, x[l]));
}
#endif

template <Element T> inline void unpack_item(const uint32_t (*regs)[kLanes], int item, float* out) {
  alignas(64) uint32_t x[kLanes];
  item_words<element_bits(T)>(regs, item, x);
  if constexpr (T == Element::kF32) {
    std::memcpy(out, x, sizeof x);
  } else if constexpr (T == Element::kBf16) {
    for (int l = 0; l < kLanes; ++l) out[l] = float_of(x[l] << 16);
  } else if constexpr (T == Element::kI8) {
    for (int l = 0; l < kLanes; ++l) out[l] = static_cast<float>(static_cast<int32_t>(x[l] << 24) >> 24);
  } else {
    widen_small<T>(x, out);
    constexpr float kScale = small_scale(T);
    if constexpr (kScale != 1)
      for (int l = 0; l < kLanes; ++l) out[l] *= kScale;
    if constexpr (T == Element::kFp8)
      for (int l = 0; l < kLanes; ++l) out[l] = (x[l] & 0x7f) == 0x7f ? float_of(0x7fc00000) : out[l];
  }
}

template <Element T> void unpack_as(Wave& w, uint16_t code, int items, Panel& panel) {
  const auto* regs = &w.vgpr[code - kVgpr0];
  for (int e = 0; e < items; ++e) unpack_item<T>(regs, e, panel[e]);
}

inline void unpack(Wave& w, uint16_t code, Element t, int items, Panel& panel) {
  switch (t) {
    case Element::kF32: return unpack_as<Element::kF32>(w, code, items, panel);
    case Element::kF16: return unpack_as<Element::kF16>(w, code, items, panel);
    case Element::kBf16: return unpack_as<Element::kBf16>(w, code, items, panel);
    case Element::kI8: return unpack_as<Element::kI8>(w, code, items, panel);
    case Element::kFp8: return unpack_as<Element::kFp8>(w, code, items, panel);
    case Element::kBf8: return unpack_as<Element::kBf8>(w, code, items, panel);
    case Element::kFp6: return unpack_as<Element::kFp6>(w, code, items, panel);
    case Element::kBf6: return unpack_as<Element::kBf6>(w, code, items, panel);
    case Element::kFp4: return unpack_as<Element::kFp4>(w, code, items, panel);
  }
}

#if defined(__AVX512F__)
constexpr int kHostLanes = 16, kTileRows = 8;
#elif defined(__FMA__)
constexpr int kHostLanes = 8, kTileRows = 4;
#else
constexpr int kHostLanes = 4, kTileRows = 4;
#endif

template <int W> struct HostVector;
template <> struct HostVector<4> { typedef float T __attribute__((vector_size(16))); };
template <> struct HostVector<8> { typedef float T __attribute__((vector_size(32))); };
template <> struct HostVector<16> { typedef float T __attribute__((vector_size(64))); };

// Fused where the host can. Products of 16-bit and smaller floats are exact in f32, so the base level, which
// multiplies and adds, differs for f32 operands only.
template <int W> inline typename HostVector<W>::T multiply_add(float a, typename HostVector<W>::T b,
                                                               typename HostVector<W>::T c) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
#endif
#if defined(__FMA__)
  if constexpr (W == 8) return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
  if constexpr (W == 4) return _mm_fmadd_ps(_mm_set1_ps(a), b, c);
#endif
  return a * b + c;
}

// Where an MFMA's k-slices lie in the panels and its rows in the registers.
struct Operands {
  const float* a[kMaxK];
  const float* b[kMaxK];
  const float* c[kMaxRows];
  float* d[kMaxRows];
};

template <int W, int R, int V>
inline void multiply_tile(const Operands& o, int row, int column, int k_begin, int k_end) {
  using F = typename HostVector<W>::T;
  F sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) std::memcpy(&sum[r][v], o.c[row + r] + column + v * W, sizeof(F));
  for (int k = k_begin; k < k_end; ++k) {
    const float* a = o.a[k] + row;
    F b[V];
    for (int v = 0; v < V; ++v) std::memcpy(&b[v], o.b[k] + column + v * W, sizeof(F));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[r][v] = multiply_add<W>(a[r], b[v], sum[r][v]);
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) std::memcpy(o.d[row + r] + column + v * W, &sum[r][v], sizeof(F));
}

// D = C + A B over k in [k_begin, k_end), in order of k.
template <int M, int N> void multiply(const Operands& o, int k_begin, int k_end) {
  constexpr int W = N < kHostLanes ? N : kHostLanes;
  constexpr int V = N / W >= 2 ? 2 : 1;
  constexpr int R = M < kTileRows * 2 / V ? M : kTileRows * 2 / V;
  for (int row = 0; row < M; row += R)
    for (int column = 0; column < N; column += V * W) multiply_tile<W, R, V>(o, row, column, k_begin, k_end);
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
