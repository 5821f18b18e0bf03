// Conversions between integers and floats and between float widths. To an integer: NaN becomes 0, values
// beyond the range become its ends.
#include <cmath>

#include "exec_lanes.h"
#include "small_tables.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

constexpr int32_t to_integer(double x, double low, double high) {
  const double limited = x < low ? low : x > high ? high : x;
  return limited != limited ? 0 : static_cast<int32_t>(static_cast<int64_t>(limited));
}
constexpr int32_t to_i32(double x) { return to_integer(x, -2147483648.0, 2147483647.0); }
constexpr uint32_t to_u32(double x) { return static_cast<uint32_t>(to_integer(x, 0, 4294967295.0)); }

// Rounded to nearest even after scaling [-1, 1] or [0, 1] to the integer range.
uint32_t normal_i16(float x) {
  return static_cast<uint32_t>(to_integer(__builtin_rint(x * 32767.0), -32767, 32767)) & 0xffff;
}
uint32_t normal_u16(float x) {
  return static_cast<uint32_t>(to_integer(__builtin_rint(x * 65535.0), 0, 65535));
}
uint32_t nearest_u8(float x) { return static_cast<uint32_t>(to_integer(__builtin_rint(x), 0, 255)); }

// Nearest, then one step back if that went away from zero.
uint32_t half_towards_zero(float x) {
  const uint32_t h = float_to_half(x);
  return __builtin_fabsf(half_to_float(h)) > __builtin_fabsf(x) ? h - 1 : h;
}

bool saturates(const Wave& w) { return w.mode & kModeFp16Overflow; }

uint32_t set_byte(uint32_t old, uint32_t at, uint32_t value) {
  const uint32_t shift = 8 * (at & 3);
  return (old & ~(0xffu << shift)) | value << shift;
}

// Packed 8-bit floats of two f32, into the half of the destination that OP_SEL names.
void pack_small(Wave& w, const Inst& i, Format f) {
  const bool saturate = saturates(w);
  lanes<U16Keep, F32, F32>(w, i, [f, saturate](float a, float b) {
    return encode(f, a, Rounding::kNearest, saturate) | encode(f, b, Rounding::kNearest, saturate) << 8;
  });
}
// Stochastic rounding into the byte that OP_SEL bits 3:2 name.
void pack_small_random(Wave& w, const Inst& i, Format f) {
  const bool saturate = saturates(w);
  const uint32_t byte = i.op_sel >> 2;
  Inst whole = i;
  whole.op_sel = 0;
  lanes<U32, F32, U32, Old<U32>>(w, whole, [=](float a, uint32_t random, uint32_t old) {
    return set_byte(old, byte, encode(f, a, Rounding::kRandom, saturate, random));
  });
}

}  // namespace

#define CONVERT(name, d, kind, expression) \
  void name(Wave& w, const Inst& i) { lanes<d, kind>(w, i, [](auto a) { return expression; }); }

CONVERT(v_cvt_i32_f64, I32, F64, to_i32(a))
CONVERT(v_cvt_u32_f64, U32, F64, to_u32(a))
CONVERT(v_cvt_f64_i32, F64, I32, a)
CONVERT(v_cvt_f64_u32, F64, U32, a)
CONVERT(v_cvt_f32_i32, F32, I32, a)
CONVERT(v_cvt_f32_u32, F32, U32, a)
CONVERT(v_cvt_i32_f32, I32, F32, to_i32(a))
CONVERT(v_cvt_u32_f32, U32, F32, to_u32(a))
CONVERT(v_cvt_rpi_i32_f32, I32, F32, to_i32(std::floor(static_cast<double>(a) + 0.5)))
CONVERT(v_cvt_flr_i32_f32, I32, F32, to_i32(std::floor(static_cast<double>(a))))
CONVERT(v_cvt_f16_f32, F16, F32, a)
CONVERT(v_cvt_f32_f16, F32, F16, a)
CONVERT(v_cvt_f32_f64, F32, F64, static_cast<float>(a))
CONVERT(v_cvt_f64_f32, F64, F32, a)
CONVERT(v_cvt_f32_bf16, F32, U16, bfloat_to_float(a))
CONVERT(v_cvt_off_f32_i4, F32, U32, static_cast<float>(static_cast<int32_t>(a << 28) >> 28) * 0.0625f)
CONVERT(v_cvt_f32_ubyte0, F32, U32, static_cast<float>(a & 0xff))
CONVERT(v_cvt_f32_ubyte1, F32, U32, static_cast<float>(a >> 8 & 0xff))
CONVERT(v_cvt_f32_ubyte2, F32, U32, static_cast<float>(a >> 16 & 0xff))
CONVERT(v_cvt_f32_ubyte3, F32, U32, static_cast<float>(a >> 24))
CONVERT(v_cvt_f16_u16, F16, U16, static_cast<float>(a))
CONVERT(v_cvt_f16_i16, F16, I16, static_cast<float>(a))
CONVERT(v_cvt_u16_f16, U16, F16, static_cast<uint32_t>(to_integer(a, 0, 65535)))
CONVERT(v_cvt_i16_f16, I16, F16, to_integer(a, -32768, 32767))
CONVERT(v_cvt_norm_i16_f16, U16, F16, normal_i16(a))
CONVERT(v_cvt_norm_u16_f16, U16, F16, normal_u16(a))
CONVERT(v_cvt_f32_fp8, F32, U32, kFp8Values[a & 0xff])
CONVERT(v_cvt_f32_bf8, F32, U32, kBf8Values[a & 0xff])
CONVERT(v_cvt_pk_f32_fp8, U64, U32,
        uint64_t{bits_of(kFp8Values[a >> 8 & 0xff])} << 32 | bits_of(kFp8Values[a & 0xff]))
CONVERT(v_cvt_pk_f32_bf8, U64, U32,
        uint64_t{bits_of(kBf8Values[a >> 8 & 0xff])} << 32 | bits_of(kBf8Values[a & 0xff]))

#define PACK(name, kind, part) \
  void name(Wave& w, const Inst& i) { \
    lanes<U32, kind, kind>(w, i, [](float a, float b) { return part(a) | part(b) << 16; }); \
  }
PACK(v_cvt_pknorm_i16_f32, F32, normal_i16)
PACK(v_cvt_pknorm_u16_f32, F32, normal_u16)
PACK(v_cvt_pknorm_i16_f16, F16, normal_i16)
PACK(v_cvt_pknorm_u16_f16, F16, normal_u16)
PACK(v_cvt_pkrtz_f16_f32, F32, half_towards_zero)
PACK(v_cvt_pk_bf16_f32, F32, float_to_bfloat)

// To nearest whatever MODE says.
void v_cvt_pk_f16_f32(Wave& w, const Inst& i) {
  if (!saturates(w))
    return lanes<U32, F32, F32>(w, i,
                                [](float a, float b) { return float_to_half(a) | float_to_half(b) << 16; });
  const auto limited = [](float x) { return encode(kF16, x, Rounding::kNearest, std::isfinite(x)); };
  lanes<U32, F32, F32>(w, i, [=](float a, float b) { return limited(a) | limited(b) << 16; });
}
void v_cvt_pk_u8_f32(Wave& w, const Inst& i) {
  lanes<U32, F32, U32, U32>(w, i,
                            [](float a, uint32_t at, uint32_t c) { return set_byte(c, at, nearest_u8(a)); });
}
void v_cvt_pkaccum_u8_f32(Wave& w, const Inst& i) {
  lanes<U32, F32, U32, Old<U32>>(
      w, i, [](float a, uint32_t at, uint32_t old) { return set_byte(old, at, nearest_u8(a)); });
}
void v_cvt_pk_fp8_f32(Wave& w, const Inst& i) { pack_small(w, i, kFp8); }
void v_cvt_pk_bf8_f32(Wave& w, const Inst& i) { pack_small(w, i, kBf8); }
void v_cvt_sr_fp8_f32(Wave& w, const Inst& i) { pack_small_random(w, i, kFp8); }
void v_cvt_sr_bf8_f32(Wave& w, const Inst& i) { pack_small_random(w, i, kBf8); }
void v_cvt_sr_f16_f32(Wave& w, const Inst& i) {
  const bool saturate = saturates(w);
  lanes<U16Keep, F32, U32>(w, i, [saturate](float a, uint32_t random) {
    return encode(kF16, a, Rounding::kRandom, saturate, random);
  });
}
void v_cvt_sr_bf16_f32(Wave& w, const Inst& i) {
  lanes<U16Keep, F32, U32>(
      w, i, [](float a, uint32_t random) { return encode(kBf16, a, Rounding::kRandom, false, random); });
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
