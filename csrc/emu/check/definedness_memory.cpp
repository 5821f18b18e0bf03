// Undefined data through LDS, private and global memory, see definedness.h.
//
// LDS and private memory have an image of the same layout that holds their undefined bits. Loads and stores only
// move bits, so what they do to undefined ones is what the handler does when it runs on the images.
#include <algorithm>
#include <bit>
#include <cstring>

#include "check/definedness.h"

namespace mi350::emu {
namespace {

// Rows that stand in for the data and the result while a handler runs on the images: behind every address.
constexpr unsigned kSpareRow = 480, kSpareRows = 24, kResultRow = 480, kDataRow = 488, kData1Row = 496;

const RegisterSpan* span_with(const Footprint& f, uint16_t role, unsigned nth = 0) {
  for (unsigned n = 0; n < f.read_count; ++n)
    if (f.reads[n].role == role && nth-- == 0) return &f.reads[n];
  return nullptr;
}

template <int kBytes>
bool all_defined(const uint8_t* image, const uint32_t* at, uint64_t mask) {
  uint64_t low = 0, high = 0;
  for (; mask != 0; mask &= mask - 1) {
    const uint8_t* p = image + at[std::countr_zero(mask)];
    uint64_t part = 0;
    std::memcpy(&part, p, std::min(kBytes, 8));
    low |= part;
    if constexpr (kBytes > 8) {
      part = 0;
      std::memcpy(&part, p + 8, kBytes - 8);
      high |= part;
    }
  }
  return (low | high) == 0;
}
bool all_defined(const uint8_t* image, const Access& a) {
  switch (a.bytes) {
    case 1: return all_defined<1>(image, a.lds, a.mask);
    case 2: return all_defined<2>(image, a.lds, a.mask);
    case 4: return all_defined<4>(image, a.lds, a.mask);
    case 8: return all_defined<8>(image, a.lds, a.mask);
    case 12: return all_defined<12>(image, a.lds, a.mask);
    default: return all_defined<16>(image, a.lds, a.mask);
  }
}
void set_defined(uint8_t* image, const uint32_t* at, uint64_t mask, int bytes) {
  if (bytes == 16) {
    for (; mask != 0; mask &= mask - 1) std::memset(image + at[std::countr_zero(mask)], 0, 16);
  } else {
    for (; mask != 0; mask &= mask - 1)
      std::memset(image + at[std::countr_zero(mask)], 0, static_cast<size_t>(bytes));
  }
}

}  // namespace

// Addresses are checked, and results of loads from global memory taken for defined until access() knows better.
void Definedness::start_memory(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& s) {
  const uint64_t exec = w.exec();
  for (unsigned n = 0; n < f.read_count; ++n) {
    const RegisterSpan r = f.reads[n];
    if (r.role == kRoleAddress) check_operand(w, i, r, exec, "an address", s);
    if (r.role == kRoleResource) check_operand(w, i, r, 0, "a buffer descriptor", s);
    if (r.role == kRoleBase) check_operand(w, i, r, 0, r.first == kM0 ? "M0 of an access" : "an address", s);
  }
  if (f.is(kIsLds) || i.row->encoding == Encoding::kScratch || f.write_count == 0) return;
  const RegisterSpan to = f.writes[0];
  if (!f.is(kIsD16) || s.defined(to, exec)) {
    s.define(to, exec);
  } else {
    const uint32_t kept = f.is(kIsD16High) ? 0xffff : 0xffff0000;
    for (unsigned l = 0; l < kLanes; ++l)
      if (exec >> l & 1) s.set_lane(to.first - kVgpr0, l, s.lane(to.first - kVgpr0, l) & kept);
  }
  check_scalar_results(w, i, f, s);
}

void Definedness::access(Wave& w, const Inst& i, const Footprint& f, const Access& a) {
  WaveState& s = *waves_[w.watch_slot];
  if (a.kind == Access::kDma) return fill_lds(w, a);
  if (a.space == Access::kGlobal) return access_global(w, i, f, a, s);
  const bool whole = !f.is(kIsFlat) || a.mask == w.exec();
  if (a.space == Access::kLds) return access_lds(w, i, f, a, s);
  if (whole && !f.is(kIsAtomic)) run_on_image(w, i, f, s);
}

void Definedness::access_global(Wave& w, const Inst& i, const Footprint& f, const Access& a, WaveState& s) {
  if (a.kind != Access::kLoad) {
    if (const RegisterSpan* data = span_with(f, kRoleData)) check_store(w, i, f, *data, a, s.registers);
  } else if (f.write_count != 0 && !memory_->empty()) {
    load_undefined(f, a, s.registers);
  }
}

void Definedness::check_store(Wave& w, const Inst& i, const Footprint& f, RegisterSpan data, const Access& a,
                              ShadowRegisters& s) {
  const bool narrow = a.bytes < 4, high = narrow && f.is(kIsD16High);
  const uint32_t bits = (narrow ? (1u << 8 * a.bytes) - 1 : ~0u) << (high ? 16 : 0);
  const bool clean = s.defined(data, a.mask);
  if (clean && memory_->empty()) return;
  for (uint64_t mask = a.mask; mask != 0; mask &= mask - 1) {
    const int lane = std::countr_zero(mask);
    const auto dwords = static_cast<unsigned>((a.bytes_of(lane) + 3) / 4);
    for (unsigned d = 0; d < std::min<unsigned>(data.count, dwords); ++d) {
      const auto code = static_cast<uint16_t>(data.first + d);
      const uint32_t undefined =
          bits & (code < kVgpr0 ? s.scalar(code) : s.lane(code - kVgpr0, static_cast<unsigned>(lane)));
      if (undefined != 0)
        report(w, i, {code, 1, 0}, code < kVgpr0 ? -1 : lane, "data of a store to global memory");
      if (a.kind == Access::kStore) {
        const unsigned bytes = narrow ? static_cast<unsigned>(a.bytes) : 4;
        memory_->store(a.address(lane) + 4 * d, bytes, high ? undefined >> 16 : undefined);
      }
    }
  }
}

void Definedness::load_undefined(const Footprint& f, const Access& a, ShadowRegisters& s) {
  const RegisterSpan to = f.writes[0];
  const bool high = f.is(kIsD16High);
  for (uint64_t mask = a.mask; mask != 0; mask &= mask - 1) {
    const int lane = std::countr_zero(mask);
    for (unsigned d = 0; d < to.count && static_cast<int>(4 * d) < a.bytes_of(lane); ++d) {
      uint32_t undefined = memory_->load(a.address(lane) + 4 * d, static_cast<unsigned>(std::min(a.bytes, 4)));
      if (undefined == 0) continue;
      if (a.bytes < 4) undefined = high ? 0xffff0000 : f.is(kIsD16) ? 0xffff : ~0u;
      const unsigned code = to.first + d, l = static_cast<unsigned>(lane);
      if (code < kVgpr0) s.set_scalar(static_cast<uint16_t>(code), undefined);
      else s.set_lane(code - kVgpr0, l, undefined | s.lane(code - kVgpr0, l));
    }
  }
}

void Definedness::fill_lds(const Wave& w, const Access& a) {
  uint8_t* image = lds_[w.group->watch_slot].data();
  set_defined(image, a.lds, a.lds_mask, a.lds_bytes);
  if (memory_->empty()) return;
  for (uint64_t mask = a.mask & a.lds_mask; mask != 0; mask &= mask - 1) {
    const int lane = std::countr_zero(mask);
    for (int b = 0; b < a.bytes_of(lane); ++b)
      image[a.lds[lane] + static_cast<uint32_t>(b)] =
          static_cast<uint8_t>(memory_->load(a.address(lane) + static_cast<uint64_t>(b), 1));
  }
}

void Definedness::access_lds(Wave& w, const Inst& i, const Footprint& f, const Access& a, WaveState& s) {
  uint8_t* image = lds_[w.group->watch_slot].data();
  ShadowRegisters& registers = s.registers;
  const unsigned nth = accesses_++;
  if (f.is(kIsFlat) && (a.mask | a.outside) != w.exec()) return;  // lanes elsewhere too: they count as defined
  if (a.kind == Access::kAtomic) return lds_atomic(i, f, a, image, registers);
  if (ran_on_image_) return;
  const bool two = form_of(*i.row).two_offsets;
  if (a.kind == Access::kStore) {
    const RegisterSpan* data = span_with(f, kRoleData, two ? nth : 0);
    if (data == nullptr || registers.defined(*data, a.mask)) return set_defined(image, a.lds, a.mask, a.bytes);
  } else {
    if (f.write_count == 0) return;
    RegisterSpan to = f.writes[0];
    if (two) {
      to.count /= 2;
      to.first = static_cast<uint16_t>(to.first + nth * to.count);
    }
    const bool merges = f.is(kIsD16) && !registers.defined(to, w.exec());
    if (!merges && all_defined(image, a)) return registers.define(to, w.exec());
  }
  run_on_image(w, i, f, s);
}

// An element with an undefined input ends undefined; the old value comes back with the bits it had.
void Definedness::lds_atomic(const Inst& i, const Footprint& f, const Access& a, uint8_t* image,
                             ShadowRegisters& s) {
  const unsigned nth = accesses_ - 1;
  const bool two = form_of(*i.row).two_offsets;
  bool clean = all_defined(image, a);
  for (unsigned n = 0; n < f.read_count; ++n)
    if (f.reads[n].role == kRoleData) clean &= s.defined(f.reads[n], a.mask);
  RegisterSpan to = f.write_count != 0 ? f.writes[0] : RegisterSpan{};
  if (two) {
    to.count /= 2;
    to.first = static_cast<uint16_t>(to.first + nth * to.count);
  }
  if (to.count != 0) s.define(to, a.mask | a.outside);
  if (clean) return;
  for (uint64_t mask = a.mask; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    bool bad = false;
    for (unsigned d = 0; d < to.count; ++d) {
      uint32_t undefined = 0;
      std::memcpy(&undefined, image + a.lds[lane] + 4 * d, 4);
      s.set_lane(to.first - kVgpr0 + d, lane, undefined);
    }
    for (int b = 0; b < a.bytes; ++b) bad |= image[a.lds[lane] + static_cast<uint32_t>(b)] != 0;
    for (unsigned n = 0; n < f.read_count; ++n)
      if (f.reads[n].role == kRoleData) bad |= !s.defined(f.reads[n], 1ull << lane);
    std::memset(image + a.lds[lane], bad ? 0xff : 0, static_cast<size_t>(a.bytes));
  }
}

void Definedness::run_on_image(Wave& w, const Inst& i, const Footprint& f, WaveState& s) {
  ran_on_image_ = true;
  alignas(64) static thread_local uint32_t saved[kSpareRows][kLanes];
  std::memcpy(saved, w.vgpr[kSpareRow], sizeof saved);
  if (s.scratch.empty()) s.scratch.assign(size_t{w.scratch_bytes_per_lane} * kLanes + 64, 0xff);
  const Counters counters = w.counters;
  const uint64_t progress = w.progress, scratch = w.scratch_base;
  Watch* const watch = w.watch;
  uint8_t* const lds = w.group->lds;

  Inst moved = i;
  const auto stand_in = [&](uint16_t& code, const RegisterSpan* r, unsigned row) {
    if (r == nullptr || code == kNoOperand) return;
    for (unsigned n = 0; n < r->count; ++n) s.registers.load_row(r->first - kVgpr0 + n, w.vgpr[row + n]);
    code = static_cast<uint16_t>(kVgpr0 + row);
  };
  const RegisterSpan* result = f.write_count != 0 ? &f.writes[0] : nullptr;
  stand_in(moved.dst, result, kResultRow);
  stand_in(moved.data, span_with(f, kRoleData), kDataRow);
  stand_in(moved.data1, span_with(f, kRoleData, 1), kData1Row);
  w.watch = nullptr;
  w.group->lds = lds_[w.group->watch_slot].data();
  w.scratch_base = reinterpret_cast<uint64_t>(s.scratch.data());
  const WaveStatus status = w.status;
  moved.exec(w, moved);
  for (unsigned n = 0; result != nullptr && n < result->count; ++n)
    s.registers.store_row(result->first - kVgpr0 + n, w.vgpr[kResultRow + n]);

  if (w.status == WaveStatus::kFault) w.fault.clear();  // the real run will say it again
  w.status = status;
  w.watch = watch;
  w.group->lds = lds;
  w.scratch_base = scratch;
  w.counters = counters;
  w.progress = progress;
  std::memcpy(w.vgpr[kSpareRow], saved, sizeof saved);
}

}  // namespace mi350::emu
