// Propagation of undefined bits by trial, see definedness_trials.h.
#include "check/definedness_trials.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "exec.h"

namespace mi350::emu {
namespace {

// How undefined bits are set. kOther: to what the other source holds, so that comparisons come out equal.
enum Pattern : int { kZeros, kOnes, kRandom, kParity, kNotParity, kRandom2, kLargest, kSmallest, kOther, kTrials };
constexpr int kMatrixTrials = 3;  // zeros against NaN settle a row; random bits where there is no NaN

uint32_t mix(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

uint32_t bits_of_trial(int trial, uint32_t place, uint32_t other) {
  switch (trial) {
    case kZeros: return 0;
    case kOnes: return ~0u;
    case kParity: return place / kLanes & 1 ? ~0u : 0;
    case kNotParity: return place / kLanes & 1 ? 0 : ~0u;
    case kLargest: return 0x7fffffff;
    case kSmallest: return 0x80000000;
    case kOther: return other;
    default: return mix(place * 16 + static_cast<uint32_t>(trial));
  }
}

enum class Widen : uint8_t { kExact, kUpward, kWhole };
struct Element {
  Widen widen;
  uint8_t bits;  // 16, 32, 64
};

bool contains_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [name](std::string_view p) { return name.find(p) != std::string_view::npos; });
}

// What the mnemonic says about the result.
Element element_of(const Inst& i) {
  const std::string_view name = i.row->mnemonic;
  const bool sums = contains_any(name, {"add", "sub", "mad", "mul"});
  const bool floating = contains_any(name, {"_f16", "_f32", "_f64", "bf16", "fp8", "bf8", "fp4", "fp6", "bf6"});
  const bool small = contains_any(name, {"16", "fp8", "bf8", "fp4", "fp6", "bf6", "u8", "i8"}) ||
                     i.lane_mode == LaneMode::kSdwa;
  const bool packed_f32 = name.starts_with("v_pk_") && name.ends_with("_f32");
  const bool wide = !packed_f32 && contains_any(name, {"f64", "i64", "u64"});
  const uint8_t bits = wide ? 64 : small && !(i.row->timing == IsaClass::kMfma) ? 16 : 32;
  if (i.row->encoding == Encoding::kVopc || i.row->encoding == Encoding::kSopc) return {Widen::kExact, 32};
  if (sums) return {floating ? Widen::kWhole : Widen::kUpward, bits};
  const bool moves =
      !contains_any(name, {"cvt", "min", "max", "floor"}) &&
      contains_any(name, {"mov", "and", "or_", "or3", "orn", "xor", "not", "xnor", "nor", "bfi", "bfe", "bfm",
                          "perm", "align", "lshl", "lshr", "ashr", "cndmask", "cselect", "swap", "lane", "pack",
                          "accvgpr", "bitop3", "brev", "bfrev", "swizzle", "wqm", "quadmask", "bitset", "exec",
                          "sext", "bitreplicate"});
  return {moves ? Widen::kExact : Widen::kWhole, bits};
}

uint32_t widened(uint32_t differs, Element e) {
  if (differs == 0 || e.widen == Widen::kExact) return differs;
  const bool halves = e.bits == 16;
  uint32_t out = 0;
  for (uint32_t part = halves ? 0xffffu : ~0u; part != 0; part = halves && part == 0xffffu ? 0xffff0000u : 0) {
    const uint32_t d = differs & part;
    if (d != 0) out |= e.widen == Widen::kWhole ? part : part & ~((d & -d) - 1);
  }
  return out;
}

uint32_t value_of(const Wave& w, const Inst& i, uint16_t code, unsigned lane) {
  if (code == kNoOperand) return 0;
  if (code >= kVgpr0 && code < kRegisterCodes) return w.vgpr[code - kVgpr0][lane];
  return base::read_s32(w, i, code);
}

// The register beside `code` in the other of the first two sources.
uint16_t other_source(const Inst& i, uint16_t code) {
  for (int n = 0; n < 2; ++n) {
    const uint16_t mine = i.src[n], other = i.src[1 - n];
    if (mine == kNoOperand || code < mine || code > mine + 1) continue;
    const bool is_register = other < 128 || (other >= kVgpr0 && other < kRegisterCodes);
    return is_register ? static_cast<uint16_t>(other + (code - mine)) : other;
  }
  return kNoOperand;
}

// What a handler may change beside registers.
class Undisturbed {
 public:
  explicit Undisturbed(Wave& w) : w_(w), counters_(w.counters), watch_(w.watch), mode_(w.mode), pc_(w.pc) {
    w.watch = nullptr;
  }
  ~Undisturbed() {
    w_.counters = counters_;
    w_.watch = watch_;
    w_.mode = mode_;
    w_.pc = pc_;
    w_.status = WaveStatus::kRunning;
    w_.fault.clear();
  }

 private:
  Wave& w_;
  Counters counters_;
  Watch* watch_;
  uint32_t mode_, pc_;
};

}  // namespace

void Trials::add_row(const Wave& w, const ShadowRegisters& shadow, unsigned index, bool written) {
  if (index >= ShadowRegisters::kRows) return;
  for (size_t n = 0; n < used_; ++n) {
    if (rows_[n].index != index) continue;
    rows_[n].written |= written;
    return;
  }
  if (used_ == rows_.size()) rows_.resize(used_ + 8);
  Row& row = rows_[used_++];
  row.index = index;
  row.written = written;
  std::memcpy(row.saved, w.vgpr[index], sizeof row.saved);
  row.perturbed = shadow.lanes_defined(index) != ~0ull;
  if (row.perturbed) shadow.load_row(index, row.undefined);
  std::memset(row.differs, 0, sizeof row.differs);
}

void Trials::collect(const Wave& w, const Footprint& f, const ShadowRegisters& shadow) {
  used_ = 0;
  std::memcpy(saved_.sgpr, w.sgpr, sizeof saved_.sgpr);
  saved_.scc = w.scc;
  undefined_ = {};
  differs_ = {};
  const auto add = [&](const RegisterSpan& r, bool written) {
    for (unsigned code = r.first; code < r.first + r.count; ++code) {
      if (code >= kVgpr0) add_row(w, shadow, code - kVgpr0, written);
      else if (code == kScc) undefined_.scc = shadow.scalar(kScc) != 0;
      else if (code != kExecLo && code != kExecHi && code < 128)
        undefined_.sgpr[code] = shadow.scalar(static_cast<uint16_t>(code));
    }
  };
  for (unsigned n = 0; n < f.read_count; ++n) add(f.reads[n], false);
  for (unsigned n = 0; n < f.write_count; ++n) add(f.writes[n], true);
}

void Trials::perturb(Wave& w, const Inst& i, int trial) {
  for (size_t n = 0; n < used_; ++n) {
    const Row& row = rows_[n];
    if (!row.perturbed) continue;
    const auto code = static_cast<uint16_t>(row.index + kVgpr0);
    const uint16_t other = trial == kOther ? other_source(i, code) : static_cast<uint16_t>(kNoOperand);
    for (unsigned l = 0; l < kLanes; ++l) {
      const uint32_t u = row.undefined[l];
      const uint32_t set = bits_of_trial(trial, row.index * kLanes + l, value_of(w, i, other, l));
      w.vgpr[row.index][l] = (row.saved[l] & ~u) | (set & u);
    }
  }
  for (uint16_t s = 0; s < 128; ++s) {
    const uint32_t u = undefined_.sgpr[s];
    if (u == 0) continue;
    const uint16_t other = trial == kOther ? other_source(i, s) : static_cast<uint16_t>(kNoOperand);
    const uint32_t set = bits_of_trial(trial, (s + 1024u) * kLanes, value_of(w, i, other, 0));
    w.sgpr[s] = (saved_.sgpr[s] & ~u) | (set & u);
  }
  if (undefined_.scc) w.scc = trial & 1;
}

void Trials::compare(const Wave& w, bool first) {
  for (size_t n = 0; n < used_; ++n) {
    Row& row = rows_[n];
    if (!row.written) continue;
    if (first) std::memcpy(row.first, w.vgpr[row.index], sizeof row.first);
    for (unsigned l = 0; l < kLanes; ++l) row.differs[l] |= row.first[l] ^ w.vgpr[row.index][l];
  }
  if (first) {
    std::memcpy(first_.sgpr, w.sgpr, sizeof first_.sgpr);
    first_.scc = w.scc;
  }
  for (unsigned s = 0; s < 128; ++s) differs_.sgpr[s] |= first_.sgpr[s] ^ w.sgpr[s];
  differs_.scc |= first_.scc != w.scc;
}

void Trials::restore(Wave& w) {
  for (size_t n = 0; n < used_; ++n) std::memcpy(w.vgpr[rows_[n].index], rows_[n].saved, sizeof rows_[n].saved);
  std::memcpy(w.sgpr, saved_.sgpr, sizeof saved_.sgpr);
  w.scc = saved_.scc;
}

void Trials::commit(const Inst& i, const Footprint& f, uint64_t exec, ShadowRegisters& shadow) {
  const Element e = element_of(i);
  const uint64_t active = f.is(kIsMfma) ? ~0ull : exec;
  for (size_t n = 0; n < used_; ++n) {
    Row& row = rows_[n];
    if (!row.written) continue;
    // The upper half of a 64-bit element follows the lower one.
    const bool high = e.bits == 64 && e.widen != Widen::kExact && n > 0 && rows_[n - 1].written &&
                      rows_[n - 1].index + 1 == row.index && (row.index - (f.writes[0].first - kVgpr0)) % 2 == 1;
    for (unsigned l = 0; l < kLanes; ++l) {
      if (!(active >> l & 1)) continue;
      row.differs[l] = high && rows_[n - 1].differs[l] != 0 ? ~0u : widened(row.differs[l], e);
    }
    shadow.store_row(row.index, row.differs);
  }
  const Element scalar = f.is(kIsSalu) ? e : Element{Widen::kExact, 32};
  for (unsigned n = 0; n < f.write_count; ++n) {
    const RegisterSpan r = f.writes[n];
    if (r.first == kScc) shadow.set_scalar(kScc, differs_.scc);
    for (unsigned s = r.first; r.first < 128 && s < r.first + r.count && s < 128u; ++s)
      shadow.set_scalar(static_cast<uint16_t>(s), widened(differs_.sgpr[s], scalar));
  }
}

void Trials::run(Wave& w, const Inst& i, const Footprint& f, ShadowRegisters& shadow) {
  collect(w, f, shadow);
  const uint64_t exec = w.exec();
  {
    Undisturbed scope(w);
    const int trials = f.is(kIsMfma) ? kMatrixTrials : kTrials;
    for (int t = 0; t < trials; ++t) {
      perturb(w, i, t);
      i.exec(w, i);
      compare(w, t == 0);
      restore(w);
    }
  }
  commit(i, f, exec, shadow);
}

}  // namespace mi350::emu
