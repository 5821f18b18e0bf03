// Bank conflicts and uncoalesced accesses: a count per instruction, not findings.
//
// In a loop the lanes keep their distances and only the start moves, so the count of a pattern is remembered.
#include "check/access_counts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "check/findings.h"
#include "print.h"

namespace mi350::emu {
namespace {

constexpr uint64_t kLine = 128, kBankRow = 256;

// Lanes that are served together, first half of the wave; the other half follows with + 32.
constexpr uint64_t lanes(int from, int to) { return (2ull << to) - (1ull << from); }
struct Phases {
  uint32_t banks;
  std::vector<uint64_t> lanes;
};
Phases both_halves(uint32_t banks, std::vector<uint64_t> half) {
  const size_t n = half.size();
  for (size_t p = 0; p < n; ++p) half.push_back(half[p] << 32);
  return {banks, std::move(half)};
}
Phases consecutive(uint32_t banks, int together) {
  Phases p{banks, {}};
  for (int first = 0; first < kLanes; first += together) p.lanes.push_back(lanes(first, first + together - 1));
  return p;
}
const Phases& phases_of(int bytes, bool write) {
  static const Phases dword{64, {~0ull}}, read2 = consecutive(64, 32), write2 = consecutive(32, 16),
                      write4 = consecutive(32, 8);
  static const Phases read4 = both_halves(64, {lanes(0, 3) | lanes(12, 15) | lanes(20, 27),
                                               lanes(4, 11) | lanes(16, 19) | lanes(28, 31)});
  static const Phases read3 = both_halves(32, {lanes(0, 3) | lanes(20, 23), lanes(4, 7) | lanes(16, 19),
                                               lanes(8, 11) | lanes(28, 31), lanes(12, 15) | lanes(24, 27)});
  if (bytes <= 4) return dword;
  if (bytes <= 8) return write ? write2 : read2;
  if (write) return write4;
  return bytes <= 12 ? read3 : read4;
}

// Addresses of the lanes relative to the first one's, and what they cost.
struct Pattern {
  uint64_t mask = 0, start = 0;
  int bytes = 0;
  std::array<uint32_t, kLanes> apart;
  LdsClocks cost;
};
// One instruction: what it cost in all, and the last patterns: waves and turns of a loop differ in a few.
struct Count {
  static constexpr size_t kKept = 16;
  AccessCount sum;
  std::vector<Pattern> patterns;
  size_t oldest = 0;

  const Pattern* find(const Pattern& p) const {
    for (const Pattern& known : patterns) {
      if (known.start == p.start && known.mask == p.mask && known.bytes == p.bytes && known.apart == p.apart)
        return &known;
    }
    return nullptr;
  }
  void keep(const Pattern& p) {
    if (patterns.size() < kKept) return patterns.push_back(p);
    patterns[oldest] = p;
    oldest = (oldest + 1) % kKept;
  }
};

// Lane addresses relative to the first lane's.
template <typename At>
uint64_t pattern(const At* at, uint64_t mask, std::array<uint32_t, kLanes>& apart) {
  const At start = at[std::countr_zero(mask)];
  for (int l = 0; l < kLanes; ++l) apart[l] = static_cast<uint32_t>(at[l] - start);
  if (mask == ~0ull) return start;
  for (int l = 0; l < kLanes; ++l) apart[l] = mask >> l & 1 ? apart[l] : 0;
  return start;
}

LdsClocks line_count(const Access& a) {
  std::array<uint64_t, 2 * kLanes> lines;
  size_t n = 0;
  for (uint64_t mask = a.mask; mask != 0; mask &= mask - 1) {
    const uint64_t address = a.address(std::countr_zero(mask));
    lines[n++] = address / kLine;
    lines[n++] = (address + static_cast<uint64_t>(a.bytes) - 1) / kLine;
  }
  std::sort(lines.begin(), lines.begin() + n);
  const auto distinct = std::unique(lines.begin(), lines.begin() + n) - lines.begin();
  const uint64_t bytes = static_cast<uint64_t>(std::popcount(a.mask)) * static_cast<uint64_t>(a.bytes);
  return {static_cast<uint32_t>(distinct), static_cast<uint32_t>((bytes + kLine - 1) / kLine)};
}

class AccessCounts final : public Part {
 public:
  explicit AccessCounts(Reporter& reporter)
      : reporter_(reporter), counts_(reporter.launch.object->program.insts.size()) {}

  ~AccessCounts() override {
    for (size_t n = 0; n < counts_.size(); ++n) {
      if (counts_[n] == nullptr) continue;
      const Inst& i = reporter_.launch.object->program.insts[n];
      AccessCount& sum = counts_[n]->sum;
      sum.kernel = reporter_.launch.kernel->name;
      sum.pc = i.offset_bytes;
      sum.disassembly = print(i);
      sum.source = reporter_.source_of(i);
      Findings::get().add(std::move(sum));
    }
  }

  void access(Wave& w, const Inst& i, const Access& a) override {
    if (a.mask == 0 || a.scalar || a.space == Access::kScratch) return;
    auto& slot = counts_[static_cast<size_t>(&i - w.program->insts.data())];
    if (slot == nullptr) slot = std::make_unique<Count>();
    Count& c = *slot;
    const bool in_lds = a.space == Access::kLds;
    const uint64_t row = in_lds ? kBankRow : kLine;
    Pattern p;
    p.mask = a.mask;
    p.bytes = a.bytes;
    p.start = (in_lds ? pattern(a.lds, a.mask, p.apart) : a.base + pattern(a.at, a.mask, p.apart)) % row;
    if (const Pattern* known = c.find(p)) {
      p.cost = known->cost;
    } else {
      p.cost = in_lds ? lds_clocks(a.lds, a.mask, a.bytes, a.kind != Access::kLoad) : line_count(a);
      c.keep(p);
    }
    ++c.sum.executions;
    (in_lds ? c.sum.lds_cycles : c.sum.lines) += p.cost.taken;
    (in_lds ? c.sum.lds_ideal : c.sum.lines_ideal) += p.cost.ideal;
  }

 private:
  Reporter& reporter_;
  std::vector<std::unique_ptr<Count>> counts_;  // by instruction
};

}  // namespace

LdsClocks lds_clocks(const uint32_t* at, uint64_t mask, int bytes, bool write) {
  const Phases& phases = phases_of(bytes, write);
  const uint32_t dwords = static_cast<uint32_t>(bytes + 3) / 4;
  LdsClocks out;
  for (const uint64_t together : phases.lanes) {
    std::array<uint32_t, 4 * kLanes> words;
    size_t n = 0;
    for (uint64_t rest = mask & together; rest != 0; rest &= rest - 1) {
      for (uint32_t d = 0; d < dwords; ++d) words[n++] = at[std::countr_zero(rest)] / 4 + d;
    }
    if (n == 0) continue;
    std::sort(words.begin(), words.begin() + n);
    std::array<uint32_t, 64> load{};
    uint32_t most = 0;
    for (size_t k = 0; k < n; ++k) {
      if (k == 0 || words[k] != words[k - 1]) most = std::max(most, ++load[words[k] % phases.banks]);
    }
    out.taken += most;
    ++out.ideal;
  }
  return out;
}

std::unique_ptr<Part> make_access_counts(Reporter& reporter) { return std::make_unique<AccessCounts>(reporter); }

}  // namespace mi350::emu
