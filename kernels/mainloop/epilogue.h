// Epilogue: d = alpha * acc + beta * c, cast to the output type.
//
// A lane holds quads: 4 consecutive n of one m (mma.h). Rows of d that are 16-byte aligned with unit stride
// get wide stores (16-bit types: two quads of a 32x32 tile are merged across lanes 32 apart into 16 bytes);
// any other d gets element stores. Lanes outside d store nothing. c is read only if beta != 0, by quads if
// its rows allow, with any strides (0: broadcast).
#pragma once
#include "../isa/buffer.h"
#include "../isa/convert.h"
#include "../isa/wait.h"
#include "../tile/global_tile.h"
#include "../tile/mma.h"

namespace mi350 {

// c or d, seen from the corner of the workgroup's tile.
template <class T>
struct EpilogueView {
  Descriptor memory;
  uint32_t step_m, step_n;  // bytes
  uint32_t rows, cols;      // left from the corner on
  bool wide;                // rows are contiguous, groups of align_bytes aligned and whole

  // `address` of one (m, n) matrix, strides in elements; (first_m, first_n) the corner.
  static MI350_DEVICE EpilogueView of(uint64_t address, int64_t m, int64_t n, int64_t stride_m, int64_t stride_n,
                                      uint32_t first_m, uint32_t first_n, uint32_t align_bytes) {
    GlobalTile window = GlobalTile::of<sizeof(T)>(address, m, n, stride_m, stride_n);
    window.advance((first_m * stride_m + first_n * stride_n) * static_cast<int64_t>(sizeof(T)));
    const uint64_t bits =
        address | static_cast<uint64_t>(stride_m * sizeof(T)) | static_cast<uint64_t>(n * sizeof(T));
    const bool wide = stride_n == 1 && (bits % align_bytes) == 0;
    return {window.descriptor(),
            static_cast<uint32_t>(stride_m * sizeof(T)),
            static_cast<uint32_t>(stride_n * sizeof(T)),
            static_cast<uint32_t>(m) - first_m,
            static_cast<uint32_t>(n) - first_n,
            wide};
  }

  // NOTE: masks by or: as a conditional the compiler would branch around the multiplication.
  MI350_DEVICE uint32_t row_offset(uint32_t m) const { return m * step_m | (m < rows ? 0 : kNowhere); }
  MI350_DEVICE uint32_t offset(uint32_t row, uint32_t n) const {
    return (row + n * step_n) | (n < cols ? row & kNowhere : kNowhere);
  }
};

// The lane's corner in an accumulator tile whose corner is (m, n). Opaque to the compiler, which would else
// share the offsets of all tiles and paths, compute them before the main loop and spill them.
struct LanePlace {
  uint32_t m, n;
};
template <int kMfma>
MI350_DEVICE LanePlace lane_place(uint32_t m, uint32_t n) {
  using Layout = AccumulatorLayout<kMfma>;
  LanePlace at = {m + Layout::m(), n + Layout::n(0)};
  asm volatile("" : "+v"(at.m), "+v"(at.n));
  return at;
}

// The quads of c under one accumulator, as loaded: converting would wait for them.
template <class T, int kMfma>
struct SourceTile {
  static constexpr int kQuads = AccumulatorLayout<kMfma>::kQuads;
  uint32_t raw[kQuads][4];

  MI350_DEVICE void load(const EpilogueView<T>& c, LanePlace at) {
    const uint32_t row = c.row_offset(at.m);
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      const uint32_t n = at.n + q * 8;
      if (c.wide) {
        if constexpr (sizeof(T) == 2) {
          const U32x2 v = buffer_load_dwordx2(c.memory, c.offset(row, n));
          raw[q][0] = v[0];
          raw[q][1] = v[1];
        } else {
          const U32x4 v = buffer_load_dwordx4(c.memory, c.offset(row, n));
          for (int e = 0; e < 4; ++e) raw[q][e] = v[e];
        }
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const uint32_t at_e = c.offset(row, n + e);
          if constexpr (sizeof(T) == 2) raw[q][e] = buffer_load_ushort(c.memory, at_e);
          else raw[q][e] = buffer_load_dword(c.memory, at_e);
        }
      }
    }
  }

  MI350_DEVICE F32x4 quad(bool wide, int q) const {
    const U32x4 words = {raw[q][0], raw[q][1], raw[q][2], raw[q][3]};
    if constexpr (sizeof(T) == 4) return __builtin_bit_cast(F32x4, words);
    else {
      const U32x2 elements = {words[0] | words[1] << 16, words[2] | words[3] << 16};
      return unpack4(T{}, wide ? U32x2{words[0], words[1]} : elements);
    }
  }
};

template <class T, int kMfma>
MI350_DEVICE void store_wide(const EpilogueView<T>& d, LanePlace at,
                             const F32x4 (&v)[AccumulatorLayout<kMfma>::kQuads]) {
  const uint32_t row = d.row_offset(at.m);
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int q = 0; q < AccumulatorLayout<kMfma>::kQuads; ++q)
      buffer_store_dwordx4(d.memory, d.offset(row, at.n + q * 8), __builtin_bit_cast(U32x4, v[q]));
  } else if constexpr (kMfma == 16) {
    buffer_store_dwordx2(d.memory, d.offset(row, at.n), pack4(T{}, v[0]));
  } else {
    // Lanes below 32 end with n + 0..7 of quad q, lanes above with n + 8..15: quad q + 1 of the same row.
    const uint32_t first = at.n + (lane_id() / 32) * 4;
#pragma unroll
    for (int q = 0; q < 4; q += 2) {
      const U32x2 low = pack4(T{}, v[q]), high = pack4(T{}, v[q + 1]);
      uint32_t l0 = low[0], l1 = low[1], h0 = high[0], h1 = high[1];
      permlane32_swap(l0, h0);
      permlane32_swap(l1, h1);
      buffer_store_dwordx4(d.memory, d.offset(row, first + q * 8), U32x4{l0, l1, h0, h1});
    }
  }
}

template <class T, int kMfma>
MI350_DEVICE void store_elements(const EpilogueView<T>& d, LanePlace at,
                                 const F32x4 (&v)[AccumulatorLayout<kMfma>::kQuads]) {
  const uint32_t row = d.row_offset(at.m);
#pragma unroll
  for (int q = 0; q < AccumulatorLayout<kMfma>::kQuads; ++q)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const uint32_t at_e = d.offset(row, at.n + q * 8 + e);
      // WARNING: clang 22 takes element 0 when __builtin_bit_cast is given an element of a vector directly.
      const float value = v[q][e];
      if constexpr (sizeof(T) == 2)
        buffer_store_short(d.memory, at_e, __builtin_bit_cast(uint16_t, static_cast<T>(value)));
      else buffer_store_dword(d.memory, at_e, __builtin_bit_cast(uint32_t, value));
    }
}

// Finishes all accumulators of a wave whose corner in the workgroup's tile is (wave_m, wave_n). The c of the
// next accumulator is in flight while the present one is stored.
template <class T, int kMfma, int kTilesM, int kTilesN, class Acc>
MI350_DEVICE void finish_tiles(const Acc (&acc)[kTilesM][kTilesN], const EpilogueView<T>& c, const EpilogueView<T>& d,
                               uint32_t wave_m, uint32_t wave_n, float alpha, float beta) {
  constexpr int kQuads = AccumulatorLayout<kMfma>::kQuads, kTiles = kTilesM * kTilesN;
  const auto place = [&](int t) {
    return lane_place<kMfma>(wave_m + t / kTilesN * kMfma, wave_n + t % kTilesN * kMfma);
  };
  SourceTile<T, kMfma> source, next;
  if (beta != 0.0f) source.load(c, place(0));
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    if (beta != 0.0f && t + 1 < kTiles) next.load(c, place(t + 1));
    F32x4 v[kQuads];
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      v[q] = alpha * quad_of(acc[t / kTilesN][t % kTilesN], q);
      if (beta != 0.0f) v[q] += beta * source.quad(c.wide, q);
    }
    if (d.wide) store_wide<T, kMfma>(d, place(t), v);
    else store_elements<T, kMfma>(d, place(t), v);
    source = next;
    sched_fence();
  }
}

}  // namespace mi350
