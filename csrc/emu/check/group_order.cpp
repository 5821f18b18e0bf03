// Cross-workgroup reads of plain data. Workgroups run on different XCDs whose L2 caches are not coherent for plain
// accesses: the writer must write back (buffer_wbl2 sc1, or stores with sc1), the reader must invalidate
// (buffer_inv sc1) or read past the caches (sc1, scalar glc). Advisory: what stands in no cache by luck is read
// right without.
#include "check/group_order.h"

#include <bit>
#include <string_view>

#include "isa.h"

namespace mi350::emu {
namespace {

constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kMostGroups = 1 << 20;

enum class Fence : uint8_t { kNone, kWriteBack, kInvalidate, kScalarWriteBack, kScalarInvalidate };
Fence fence_of(const Inst& i) {
  const std::string_view name = i.row->mnemonic;
  if (name == "buffer_wbl2" && i.sc1) return Fence::kWriteBack;
  if (name == "buffer_inv" && i.sc1) return Fence::kInvalidate;
  if (name == "s_dcache_wb" || name == "s_dcache_wb_vol") return Fence::kScalarWriteBack;
  if (name == "s_dcache_inv" || name == "s_dcache_inv_vol") return Fence::kScalarInvalidate;
  return Fence::kNone;
}

class GroupOrder final : public Part {
 public:
  GroupOrder(Reporter& reporter, LineWriters& writers)
      : reporter_(reporter), writers_(writers), several_(reporter.launch.workgroups() > 1) {}

  unsigned wants(const Inst& i) const override {
    return several_ && fence_of(i) != Fence::kNone ? kAfter : kNothing;
  }
  void start_wave(Wave& w) override {
    if (waves_.size() <= w.watch_slot) waves_.resize(w.watch_slot + 1);
    waves_[w.watch_slot] = {};
  }
  void after(Wave& w, const Inst& i) override {
    Seen& s = waves_[w.watch_slot];
    switch (fence_of(i)) {
      case Fence::kWriteBack: case Fence::kScalarWriteBack: return writers_.release(group(w));
      case Fence::kInvalidate: s.vector = writers_.tick(); return;
      case Fence::kScalarInvalidate: s.scalar = writers_.tick(); return;
      case Fence::kNone: return;
    }
  }
  void access(Wave& w, const Inst& i, const Access& a) override {
    if (!several_ || a.space != Access::kGlobal) return;
    if (a.kind == Access::kStore || a.kind == Access::kAtomic) return store(w, i, a);
    uint64_t last = 0;
    for (uint64_t mask = a.mask; mask != 0; mask &= mask - 1) {
      const int l = std::countr_zero(mask);
      const uint64_t from = a.address(l), to = from + static_cast<uint64_t>(a.bytes_of(l));
      for (uint64_t line = from / kLineBytes; line * kLineBytes < to; ++line) {
        // Lanes side by side share the look-up; a line of the filter has no store in it at all.
        if (line == last && !holds_) continue;
        if (line != last) holds_ = writers_.may_hold(line);
        last = line;
        if (holds_) load(w, i, a, l, line, bytes(line, from, to));
      }
    }
  }

 private:
  struct Seen { uint32_t vector = 0, scalar = 0; };  // times of the last invalidations

  static uint32_t group(const Wave& w) { return static_cast<uint32_t>(w.group->linear); }
  // A bit per byte of the line: neighbours in one dword are no hand-over.
  static uint64_t bytes(uint64_t line, uint64_t from, uint64_t to) {
    const uint64_t start = line * kLineBytes;
    const uint64_t first = from > start ? from - start : 0, end = std::min(to - start, kLineBytes);
    return (~0ull << first) & (~0ull >> (kLineBytes - end));
  }

  void store(Wave& w, const Inst& i, const Access& a) {
    const bool scoped = i.sc1 || a.kind == Access::kAtomic || (a.scalar && i.sc0);
    uint64_t line = 0;
    uint64_t mask_of_line = 0;
    for (uint64_t mask = a.mask; mask != 0; mask &= mask - 1) {
      const int l = std::countr_zero(mask);
      const uint64_t from = a.address(l), to = from + static_cast<uint64_t>(a.bytes_of(l));
      for (uint64_t n = from / kLineBytes; n * kLineBytes < to; ++n) {
        if (n != line && mask_of_line != 0) writers_.store(line, mask_of_line, group(w), scoped);
        if (n != line) mask_of_line = 0;
        line = n;
        mask_of_line |= bytes(n, from, to);
      }
    }
    if (mask_of_line != 0) writers_.store(line, mask_of_line, group(w), scoped);
  }

  void load(Wave& w, const Inst& i, const Access& a, int lane, uint64_t line, uint64_t wanted) {
    LineWriters::Store s;
    if (!writers_.find(line, wanted, group(w), &s)) return;
    const Seen& seen = waves_[w.watch_slot];
    const bool acquired = a.scalar ? i.sc0 || seen.scalar > s.time : i.sc1 || seen.vector > s.time;
    const bool released = writers_.released_since(s);
    if (released && acquired) return;
    Finding* f = reporter_.open(w, i, "group-order", Severity::kAdvisory);
    if (f == nullptr) return;
    f->lane = a.scalar ? -1 : lane;
    f->where = "global";
    f->has_address = true;
    f->address = a.address(lane);
    f->message = "reads what workgroup " + std::to_string(s.group) + " stored, without " +
                 (released ? "an acquire of this wave (buffer_inv sc1, or a load with sc1)"
                           : "a release of that workgroup (buffer_wbl2 sc1, or a store with sc1)");
  }

  Reporter& reporter_;
  LineWriters& writers_;
  const bool several_;
  bool holds_ = false;
  std::vector<Seen> waves_;
};

}  // namespace

LineWriters::LineWriters(uint64_t groups)
    : stores_(kLines), released_(std::min(groups, kMostGroups)), pages_(kPages) {}

void LineWriters::store(uint64_t line, uint64_t bytes, uint32_t group, bool scoped) {
  pages_[page(line)].store(true, std::memory_order_relaxed);
  const size_t n = slot(line);
  std::lock_guard lock(locks_[n % kLocks]);
  Store& s = stores_[n];
  const bool more = s.line == line && s.group == group && s.scoped == scoped;
  s = {line, group, clock_.load(std::memory_order_relaxed), bytes | (more ? s.bytes : 0),
       scoped};
}

bool LineWriters::find(uint64_t line, uint64_t bytes, uint32_t group, Store* out) const {
  const size_t n = slot(line);
  std::lock_guard lock(locks_[n % kLocks]);
  const Store& s = stores_[n];
  if (s.line != line || s.group == group || (s.bytes & bytes) == 0) return false;
  *out = s;
  return true;
}

std::unique_ptr<Part> make_group_order(Reporter& reporter, LineWriters& writers) {
  return std::make_unique<GroupOrder>(reporter, writers);
}

}  // namespace mi350::emu
