// Scalar memory: loads and stores of SGPRs, scalar atomics, clocks, cache control.
//
//   address = base + offset (21-bit signed or unsigned register) [+ soffset], low two bits ignored;
//   s_buffer_*: base and num_records of a descriptor, dwords beyond num_records read 0 and are not stored.
#include <atomic>
#include <chrono>

#include "lane_atomics.h"
#include "lane_memory.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

struct Span { uint64_t address; uint32_t dwords; bool clamped = false; };  // dwords that are in range

int64_t byte_offset(const Wave& w, const Inst& i) {
  int64_t offset = i.imm;
  if (i.soffset != kNoOperand) offset += read_s32(w, i, i.soffset);
  return offset;
}

Span plain(const Wave& w, const Inst& i, uint32_t dwords) {
  return {(read_s64(w, i, i.sbase) + static_cast<uint64_t>(byte_offset(w, i))) & ~3ull, dwords};
}

Span buffer(const Wave& w, const Inst& i, uint32_t dwords) {
  const uint32_t* d = &w.sgpr[i.sbase];
  const uint64_t base = d[0] | static_cast<uint64_t>(d[1] & 0xffff) << 32;
  const uint64_t stride = (d[1] >> 16) & 0x3fff;
  const uint64_t size = stride == 0 ? d[2] : stride * d[2];
  const uint64_t offset = static_cast<uint64_t>(byte_offset(w, i)) & 0xfffffffcull;
  const uint64_t left = offset < size ? (size - offset) / 4 : 0;
  return {(base + offset) & ~3ull, left < dwords ? static_cast<uint32_t>(left) : dwords, true};
}

Access scalar_access(Access::Kind kind, const Span& s, uint32_t bytes) {
  static constexpr uint64_t kNothing[1] = {0};
  Access a;
  a.kind = kind;
  a.scalar = true;
  a.clamped = s.clamped;
  a.bytes = static_cast<int>(bytes);
  a.mask = 1;
  a.base = s.address;
  a.at = kNothing;
  return a;
}

// Null after a fault, or if the access is outside every allocation and may go on.
uint8_t* touch(Wave& w, const Inst& i, const Span& s, uint32_t bytes, Access::Kind kind) {
  const bool write = kind != Access::kLoad;
  if (uint8_t* p = w.memory->at(s.address, bytes, write)) {
    if (w.watch) [[unlikely]] w.watch->access(w, i, scalar_access(kind, s, bytes));
    return p;
  }
  const Access a = scalar_access(kind, s, bytes);
  if (w.watch != nullptr ? w.watch->tolerates(w, i, a) : w.memory->lenient() && s.clamped && !write) return nullptr;
  char text[96];
  std::snprintf(text, sizeof text, "scalar %s of %u bytes at 0x%llx: ", write ? "store" : "load", bytes,
                static_cast<unsigned long long>(s.address));
  w.illegal_address = true;
  Range r;
  const bool inside = AllocationMap::get().find(s.address, &r);
  w.stop(text + (inside && write && !r.writable ? std::string("read-only: ") : std::string()) +
         w.memory->describe(inside && bytes > r.hi - s.address ? r.hi : s.address));
  return nullptr;
}

template <uint32_t kDwords>
void load(Wave& w, const Inst& i, Span s) {
  uint32_t values[kDwords] = {};
  if (s.dwords != 0) {
    const uint8_t* p = touch(w, i, s, 4 * s.dwords, Access::kLoad);
    if (p == nullptr && w.status == WaveStatus::kFault) return;
    for (uint32_t d = 0; p != nullptr && d < s.dwords; ++d)
      values[d] = __atomic_load_n(reinterpret_cast<const uint32_t*>(p) + d, __ATOMIC_RELAXED);
  }
  if (i.dst + kDwords <= 128) std::memcpy(&w.sgpr[i.dst], values, sizeof values);
  w.counters.global_bytes += 4 * s.dwords;
  note_load(w, s.address, values[0]);
}

template <uint32_t kDwords>
void store(Wave& w, const Inst& i, Span s) {
  if (s.dwords == 0) return;
  uint8_t* p = touch(w, i, s, 4 * s.dwords, Access::kStore);
  if (p == nullptr) return;
  for (uint32_t d = 0; d < s.dwords; ++d) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(p) + d, read_s32(w, i, static_cast<uint16_t>(i.data + d)),
                     __ATOMIC_RELEASE);
  }
  w.counters.global_bytes += 4 * s.dwords;
  ++w.progress;
}

template <typename T> T read_data(const Wave& w, uint16_t code) {
  T value;
  std::memcpy(&value, &w.sgpr[code], sizeof value);
  return value;
}

template <class Op, typename T>
void atomic(Wave& w, const Inst& i, Span s) {
  if (s.dwords * 4 < sizeof(T)) return;  // all or nothing
  uint8_t* p = touch(w, i, s, sizeof(T), Access::kAtomic);
  if (p == nullptr) return;
  if (s.address % sizeof(T) != 0) return w.stop("misaligned scalar atomic");
  bool changed = false;
  T* at = reinterpret_cast<T*>(p);
  T old;
  if constexpr (std::is_void_v<Op>) {
    old = op::atomic_compare_swap(at, read_data<T>(w, i.data),
                                  read_data<T>(w, static_cast<uint16_t>(i.data + sizeof(T) / 4)), &changed);
  } else {
    old = op::atomic_apply<Op>(at, read_data<T>(w, i.data), &changed);
  }
  if (i.dst != kNoOperand) std::memcpy(&w.sgpr[i.dst], &old, sizeof old);
  w.counters.global_bytes += sizeof(T);
  if (changed) ++w.progress;
  else note_load(w, s.address, static_cast<uint32_t>(old));
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

#define MI350_SCALAR(width, dwords)                                                                      \
  void s_load_##width(Wave& w, const Inst& i) { load<dwords>(w, i, plain(w, i, dwords)); }               \
  void s_buffer_load_##width(Wave& w, const Inst& i) { load<dwords>(w, i, buffer(w, i, dwords)); }
MI350_SCALAR(dword, 1) MI350_SCALAR(dwordx2, 2) MI350_SCALAR(dwordx4, 4) MI350_SCALAR(dwordx8, 8)
MI350_SCALAR(dwordx16, 16)
#undef MI350_SCALAR

#define MI350_SCALAR(width, dwords)                                                                      \
  void s_store_##width(Wave& w, const Inst& i) { store<dwords>(w, i, plain(w, i, dwords)); }             \
  void s_buffer_store_##width(Wave& w, const Inst& i) { store<dwords>(w, i, buffer(w, i, dwords)); }
MI350_SCALAR(dword, 1) MI350_SCALAR(dwordx2, 2) MI350_SCALAR(dwordx4, 4)
#undef MI350_SCALAR

#define MI350_SCALAR(name, Op) \
  void s_atomic_##name(Wave& w, const Inst& i) { atomic<Op, uint32_t>(w, i, plain(w, i, 1)); } \
  void s_atomic_##name##_x2(Wave& w, const Inst& i) { atomic<Op, uint64_t>(w, i, plain(w, i, 2)); } \
  void s_buffer_atomic_##name(Wave& w, const Inst& i) { atomic<Op, uint32_t>(w, i, buffer(w, i, 1)); } \
  void s_buffer_atomic_##name##_x2(Wave& w, const Inst& i) { atomic<Op, uint64_t>(w, i, buffer(w, i, 2)); }
MI350_SCALAR(swap, op::Swap) MI350_SCALAR(cmpswap, void) MI350_SCALAR(add, op::Add)
MI350_SCALAR(sub, op::Sub) MI350_SCALAR(smin, op::SignedMin) MI350_SCALAR(umin, op::UnsignedMin)
MI350_SCALAR(smax, op::SignedMax) MI350_SCALAR(umax, op::UnsignedMax) MI350_SCALAR(and, op::And)
MI350_SCALAR(or, op::Or) MI350_SCALAR(xor, op::Xor) MI350_SCALAR(inc, op::Inc) MI350_SCALAR(dec, op::Dec)
#undef MI350_SCALAR

// s_memtime counts core clocks (2.4 GHz), s_memrealtime 100 MHz; both from the host's monotonic clock.
void s_memtime(Wave& w, const Inst& i) { write_s64(w, i.dst, now_ns() * 12 / 5); }
void s_memrealtime(Wave& w, const Inst& i) { write_s64(w, i.dst, now_ns() / 10); }

void s_dcache_inv(Wave&, const Inst&) {}
void s_dcache_inv_vol(Wave&, const Inst&) {}
void s_dcache_wb(Wave&, const Inst&) { std::atomic_thread_fence(std::memory_order_seq_cst); }
void s_dcache_wb_vol(Wave&, const Inst&) { std::atomic_thread_fence(std::memory_order_seq_cst); }
void s_dcache_discard(Wave&, const Inst&) {}
void s_dcache_discard_x2(Wave&, const Inst&) {}
void s_atc_probe(Wave&, const Inst&) {}
void s_atc_probe_buffer(Wave&, const Inst&) {}

}  // namespace mi350::emu::MI350_EMU_LEVEL
