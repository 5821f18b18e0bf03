// Read-modify-write operations of one dword or pair, shared by the scalar, buffer, global, flat and LDS
// atomics: op<T>::next(old, data) is the value to store. Floats travel as their bits.
#pragma once
#include <algorithm>
#include <cmath>

#include "convert.h"
#include "exec.h"

namespace mi350::emu::MI350_EMU_LEVEL::op {

template <typename T> using Signed = std::make_signed_t<T>;

struct Swap { template <typename T> static T next(T, T d) { return d; } };
struct Add { template <typename T> static T next(T old, T d) { return static_cast<T>(old + d); } };
struct Sub { template <typename T> static T next(T old, T d) { return static_cast<T>(old - d); } };
struct ReverseSub { template <typename T> static T next(T old, T d) { return static_cast<T>(d - old); } };
struct SignedMin {
  template <typename T>
  static T next(T old, T d) {
    return static_cast<Signed<T>>(old) < static_cast<Signed<T>>(d) ? old : d;
  }
};
struct SignedMax {
  template <typename T>
  static T next(T old, T d) {
    return static_cast<Signed<T>>(old) > static_cast<Signed<T>>(d) ? old : d;
  }
};
struct UnsignedMin { template <typename T> static T next(T old, T d) { return std::min(old, d); } };
struct UnsignedMax { template <typename T> static T next(T old, T d) { return std::max(old, d); } };
struct And { template <typename T> static T next(T old, T d) { return old & d; } };
struct Or { template <typename T> static T next(T old, T d) { return old | d; } };
struct Xor { template <typename T> static T next(T old, T d) { return old ^ d; } };
struct Inc {
  template <typename T>
  static T next(T old, T d) {
    return old >= d ? T{0} : static_cast<T>(old + 1);
  }
};
struct Dec {
  template <typename T>
  static T next(T old, T d) {
    return old == 0 || old > d ? d : static_cast<T>(old - 1);
  }
};

template <typename T> auto as_float(T bits) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<double>(bits);
  else return std::bit_cast<float>(bits);
}
struct FloatAdd {
  template <typename T>
  static T next(T old, T d) {
    return std::bit_cast<T>(as_float(old) + as_float(d));
  }
};
struct FloatMin {
  template <typename T>
  static T next(T old, T d) {
    return std::bit_cast<T>(std::fmin(as_float(old), as_float(d)));
  }
};
struct FloatMax {
  template <typename T>
  static T next(T old, T d) {
    return std::bit_cast<T>(std::fmax(as_float(old), as_float(d)));
  }
};
struct PackedAddF16 {
  static uint32_t next(uint32_t old, uint32_t d) {
    const uint32_t lo = float_to_half(half_to_float(old & 0xffff) + half_to_float(d & 0xffff));
    return lo | float_to_half(half_to_float(old >> 16) + half_to_float(d >> 16)) << 16;
  }
};
struct PackedAddBf16 {
  static uint32_t next(uint32_t old, uint32_t d) {
    const uint32_t lo = float_to_bfloat(bfloat_to_float(old & 0xffff) + bfloat_to_float(d & 0xffff));
    return (lo & 0xffff) | float_to_bfloat(bfloat_to_float(old >> 16) + bfloat_to_float(d >> 16)) << 16;
  }
};

// The atomics that buffer, global and flat memory have: X(name, operation, type); void is compare-and-swap.
#define MI350_MEMORY_ATOMICS(X)                                                                          \
  MI350_BOTH_WIDTHS(X, swap, op::Swap) MI350_BOTH_WIDTHS(X, cmpswap, void)                               \
  MI350_BOTH_WIDTHS(X, add, op::Add) MI350_BOTH_WIDTHS(X, sub, op::Sub)                                  \
  MI350_BOTH_WIDTHS(X, smin, op::SignedMin) MI350_BOTH_WIDTHS(X, umin, op::UnsignedMin)                  \
  MI350_BOTH_WIDTHS(X, smax, op::SignedMax) MI350_BOTH_WIDTHS(X, umax, op::UnsignedMax)                  \
  MI350_BOTH_WIDTHS(X, and, op::And) MI350_BOTH_WIDTHS(X, or, op::Or) MI350_BOTH_WIDTHS(X, xor, op::Xor) \
  MI350_BOTH_WIDTHS(X, inc, op::Inc) MI350_BOTH_WIDTHS(X, dec, op::Dec)                                  \
  X(add_f32, op::FloatAdd, uint32_t) X(add_f64, op::FloatAdd, uint64_t)                                  \
  X(min_f64, op::FloatMin, uint64_t) X(max_f64, op::FloatMax, uint64_t)                                  \
  X(pk_add_f16, op::PackedAddF16, uint32_t) X(pk_add_bf16, op::PackedAddBf16, uint32_t)
#define MI350_BOTH_WIDTHS(X, name, Op) X(name, Op, uint32_t) X(name##_x2, Op, uint64_t)

// On memory that other host threads may touch. `p` must be aligned. Returns the old value.
template <class Op, typename T>
inline T atomic_apply(T* p, T data, bool* changed) {
  T old = __atomic_load_n(p, __ATOMIC_RELAXED), next;
  do {
    next = Op::next(old, data);
  } while (!__atomic_compare_exchange_n(p, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  *changed |= next != old;
  return old;
}
template <typename T>
inline T atomic_compare_swap(T* p, T data, T expected, bool* changed) {
  T old = expected;
  *changed |=
      __atomic_compare_exchange_n(p, &old, data, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) && data != expected;
  return old;
}

}  // namespace mi350::emu::MI350_EMU_LEVEL::op
