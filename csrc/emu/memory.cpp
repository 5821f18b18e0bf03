// The allocation map and the guarded allocations behind it.
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

namespace mi350::emu {
namespace {

constexpr uint64_t kAlign = 256;
constexpr uint64_t kHugePage = 2u << 20;
constexpr uint64_t kAddressLimit = 1ull << 47;  // hand-written kernels mask the high half of pointers with 0xffff
constexpr size_t kFreedKept = 64;

uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }
uint64_t page_bytes() {
  static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

const char* kind_name(RangeKind kind) {
  switch (kind) {
    case RangeKind::kDevice: return "device allocation";
    case RangeKind::kHost: return "pinned host allocation";
    case RangeKind::kRegistered: return "registered host range";
    case RangeKind::kCode: return "code object image (read-only)";
    case RangeKind::kManaged: return "managed allocation";
  }
  return "range";
}

std::string sentence(const Range& r, uint64_t address, const char* prefix) {
  char text[256];
  unsigned long long bytes = r.hi - r.lo, lo = r.lo;
  if (address >= r.hi) {
    std::snprintf(text, sizeof text, "%llu bytes past the end of the %s%s of %llu bytes at 0x%llx",
                  static_cast<unsigned long long>(address - r.hi), prefix, kind_name(r.kind), bytes, lo);
  } else if (address < r.lo) {
    std::snprintf(text, sizeof text, "%llu bytes before the %s%s of %llu bytes at 0x%llx",
                  static_cast<unsigned long long>(r.lo - address), prefix, kind_name(r.kind), bytes, lo);
  } else {
    std::snprintf(text, sizeof text, "byte %llu of the %s%s of %llu bytes at 0x%llx",
                  static_cast<unsigned long long>(address - r.lo), prefix, kind_name(r.kind), bytes, lo);
  }
  return text;
}

}  // namespace

AllocationMap& AllocationMap::get() {
  // Never destroyed: kernels and frees may still come from other threads while the process exits.
  static AllocationMap* map = new AllocationMap;
  return *map;
}

void* AllocationMap::allocate(size_t bytes, RangeKind kind, int device) {
  const uint64_t page = page_bytes();
  if (bytes == 0 || bytes >= kAddressLimit / 2) return nullptr;
  const uint64_t used = round_up(bytes, kAlign);
  const uint64_t total = round_up(used, page) + 2 * page;
  void* base = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  const uint64_t start = reinterpret_cast<uint64_t>(base);
  void* body = reinterpret_cast<void*>(start + page);
  if (start + total > kAddressLimit || mprotect(body, total - 2 * page, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, total);
    return nullptr;
  }
  if (total >= 2 * kHugePage) madvise(body, total - 2 * page, MADV_HUGEPAGE);
  Range range;
  range.lo = start + total - page - used;
  range.hi = range.lo + bytes;
  range.kind = kind;
  range.device = device;
  range.map_base = start;
  range.map_bytes = total;
  std::unique_lock lock(mutex_);
  std::erase_if(freed_,
                [&](const Range& f) { return f.lo < start + total && f.hi > start; });  // addresses come back
  ranges_[range.lo] = range;
  return reinterpret_cast<void*>(range.lo);
}

bool AllocationMap::add(uint64_t lo, uint64_t bytes, RangeKind kind, int device, bool writable) {
  if (bytes == 0 || lo + bytes < lo) return false;
  std::unique_lock lock(mutex_);
  auto after = ranges_.lower_bound(lo);
  if (after != ranges_.end() && after->second.lo < lo + bytes) return false;
  if (after != ranges_.begin() && std::prev(after)->second.hi > lo) return false;
  Range range;
  range.lo = lo;
  range.hi = lo + bytes;
  range.kind = kind;
  range.device = device;
  range.writable = writable;
  ranges_[lo] = range;
  return true;
}

bool AllocationMap::remove(uint64_t lo, std::initializer_list<RangeKind> kinds) {
  std::unique_lock quiet(running_);
  std::unique_lock lock(mutex_);
  auto it = ranges_.find(lo);
  if (it == ranges_.end()) return false;
  bool wanted = false;
  for (RangeKind kind : kinds) wanted |= kind == it->second.kind;
  if (!wanted) return false;
  const Range range = it->second;
  ranges_.erase(it);
  keep_freed(range);
  return true;
}

// The address space of a freed allocation stays taken for a while, without memory behind it: accesses to it are
// named as what they are and cannot fall into a newer allocation.
void AllocationMap::keep_freed(Range range) {
  if (range.map_bytes != 0) {
    void* at = reinterpret_cast<void*>(range.map_base);
    if (mmap(at, range.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
      munmap(at, range.map_bytes);
      range.map_bytes = 0;
    }
  }
  freed_.push_back(range);
  if (freed_.size() <= kFreedKept) return;
  const Range& oldest = freed_.front();
  if (oldest.map_bytes != 0) munmap(reinterpret_cast<void*>(oldest.map_base), oldest.map_bytes);
  freed_.pop_front();
}

bool AllocationMap::find(uint64_t address, Range* out) const {
  std::shared_lock lock(mutex_);
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return false;
  --it;
  if (address >= it->second.hi) return false;
  *out = it->second;
  return true;
}

std::string AllocationMap::describe(uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto after = ranges_.upper_bound(address);
  if (after != ranges_.begin()) {
    const Range& r = std::prev(after)->second;
    if (address < r.hi) return sentence(r, address, "");
  }
  for (auto it = freed_.rbegin(); it != freed_.rend(); ++it) {
    if (address >= it->lo && address < it->hi) return sentence(*it, address, "freed ");
  }
  // The nearest range on either side, if it is close enough to be the likely culprit.
  constexpr uint64_t kNear = 1ull << 30;
  const Range* below = after != ranges_.begin() ? &std::prev(after)->second : nullptr;
  const Range* above = after != ranges_.end() ? &after->second : nullptr;
  const uint64_t below_gap = below ? address - below->hi : ~0ull;
  const uint64_t above_gap = above ? above->lo - address : ~0ull;
  if (below_gap <= above_gap && below_gap < kNear) return sentence(*below, address, "");
  if (above_gap < kNear) return sentence(*above, address, "");
  return "not near any allocation";
}

uint64_t AllocationMap::bytes_in_use(int device) const {
  std::shared_lock lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [lo, r] : ranges_) {
    if (r.device == device && (r.kind == RangeKind::kDevice || r.kind == RangeKind::kManaged))
      bytes += r.hi - r.lo;
  }
  return bytes;
}

bool AllocationMap::set_peer_access(int from, int to, bool on) {
  const uint64_t bit = uint64_t{1} << to;
  auto& row = peers_.at(static_cast<size_t>(from));
  return ((on ? row.fetch_or(bit) : row.fetch_and(~bit)) & bit) != 0;
}
bool AllocationMap::peer_access(int from, int to) const {
  return (peers_.at(static_cast<size_t>(from)).load() >> to & 1) != 0;
}

// Host and managed memory is everybody's.
bool Memory::reaches(const Range& r) const {
  const bool local = r.kind == RangeKind::kDevice || r.kind == RangeKind::kCode;
  return !local || r.device == device_ || AllocationMap::get().peer_access(device_, r.device);
}

std::string Memory::describe(uint64_t address) const {
  std::string text = AllocationMap::get().describe(address);
  Range r;
  if (AllocationMap::get().find(address, &r) && !reaches(r)) {
    text += " on device " + std::to_string(r.device) + ", which kernels of device " + std::to_string(device_) +
            " cannot reach without hipDeviceEnablePeerAccess";
  }
  return text;
}

uint8_t* Memory::miss(uint64_t address, uint64_t bytes, bool write) {
  if (address >= local_.lo && address < local_.hi && bytes <= local_.hi - address) {
    return write ? nullptr : reinterpret_cast<uint8_t*>(address);
  }
  Range r;
  if (!AllocationMap::get().find(address, &r)) return nullptr;
  if (bytes > r.hi - address || (write && !r.writable) || !reaches(r)) return nullptr;
  entries_[next_] = Entry{r.lo, r.hi, r.writable};
  next_ = (next_ + 1) % entries_.size();
  return reinterpret_cast<uint8_t*>(address);
}

}  // namespace mi350::emu
