// Caching allocator over hipMalloc/hipFree.
//
//   request <= 64 KiB   a block of a power-of-two class (>= 512 B), cut from 2 MiB slabs of that class
//   larger              its own hipMalloc, rounded to an eighth of its power of two
//
// Freed blocks wait in a list per size; at most kMaxCachedBytes of large blocks are kept. TORCH_MI350_NO_CACHING=1
// gives every tensor its own exact hipMalloc, so that the emulator's bounds are the tensor's.
#include "cdna/allocator.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cdna/device.h"

namespace mi350::cdna {
namespace {

using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr size_t kMinBlock = 512;
constexpr size_t kMaxSmall = 64 << 10;
constexpr size_t kSlab = 2 << 20;
constexpr size_t kMaxCachedBytes = 256 << 20;

struct Slab {
  void* base = nullptr;
  size_t live = 0;
};

struct Block {
  size_t size = 0;  // reserved for it
  size_t requested = 0;
  c10::DeviceIndex device = 0;
  Slab* slab = nullptr;  // null: its own hipMalloc
};

struct DevicePool {
  std::unordered_map<size_t, std::vector<std::pair<void*, Slab*>>> free;  // by size
  std::vector<std::unique_ptr<Slab>> slabs;
  size_t cached_large = 0;
  DeviceStats stats;
};

bool caching_disabled() {
  static const bool disabled = [] {
    const char* text = std::getenv("TORCH_MI350_NO_CACHING");
    return text != nullptr && text[0] == '1';
  }();
  return disabled;
}

size_t rounded(size_t bytes) {
  if (caching_disabled()) return bytes;
  if (bytes <= kMinBlock) return kMinBlock;
  if (bytes <= kMaxSmall) return std::bit_ceil(bytes);
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

void free_block(void* ptr);

class CachingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const auto index = current_device();
    return allocate_device_memory(bytes, index, c10::Device(kType, index));
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* dest, const void* src, size_t count) const override {
    default_copy_data(dest, src, count);
  }

  bool initialized() override { return used(); }
  // Work runs in the call that submits it, so memory is never in use by a stream after the call.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}

  void emptyCache(c10::MempoolId_t = {0, 0}) override {
    if (in_bad_fork()) return;
    const std::lock_guard lock(mutex);
    for (auto& [index, pool] : pools) release_cached(pool);
  }
  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    const std::lock_guard lock(mutex);
    return pools[checked_index(index)].stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    for_each_stat(index, [](auto& stat) { stat.reset_accumulated(); });
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    for_each_stat(index, [](auto& stat) { stat.reset_peak(); });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override;

  void* take(size_t bytes, c10::DeviceIndex index);
  // False if `ptr` is not a block of ours.
  bool give_back(void* ptr);

  std::mutex mutex;
  std::map<c10::DeviceIndex, DevicePool> pools;
  std::unordered_map<void*, Block> live;

 private:
  template <class F>
  void for_each_stat(c10::DeviceIndex index, F f) {
    const std::lock_guard lock(mutex);
    DeviceStats& s = pools[checked_index(index)].stats;
    for (auto* array : {&s.allocation, &s.segment, &s.active, &s.allocated_bytes, &s.reserved_bytes,
                        &s.active_bytes, &s.requested_bytes}) {
      for (auto& stat : *array) f(stat);
    }
  }
  void* take_small(DevicePool& pool, size_t size, Slab** slab);
  void* take_large(DevicePool& pool, size_t size);
  void* device_malloc(DevicePool& pool, size_t size);
  void release_cached(DevicePool& pool);
};

CachingAllocator& instance() {
  static auto* const a = new CachingAllocator;
  return *a;
}

template <class F>
void each_type(size_t size, F f) {
  f(static_cast<size_t>(StatType::AGGREGATE));
  f(static_cast<size_t>(size <= kMaxSmall ? StatType::SMALL_POOL : StatType::LARGE_POOL));
}

void count_block(DeviceStats& s, const Block& b, bool taken) {
  const auto change = [taken](auto& stat, size_t amount) {
    taken ? stat.increase(amount) : stat.decrease(amount);
  };
  each_type(b.size, [&](size_t type) {
    change(s.allocation[type], 1);
    change(s.active[type], 1);
    change(s.allocated_bytes[type], b.size);
    change(s.active_bytes[type], b.size);
    change(s.requested_bytes[type], b.requested);
  });
}

void count_segment(DeviceStats& s, size_t size, bool small, bool taken) {
  const size_t type = static_cast<size_t>(small ? StatType::SMALL_POOL : StatType::LARGE_POOL);
  for (const size_t t : {static_cast<size_t>(StatType::AGGREGATE), type}) {
    taken ? s.segment[t].increase(1) : s.segment[t].decrease(1);
    taken ? s.reserved_bytes[t].increase(size) : s.reserved_bytes[t].decrease(size);
  }
  ++(taken ? s.num_device_alloc : s.num_device_free);
}

std::pair<size_t, size_t> free_and_total() {
  using MemInfo = runtime::hipError_t (*)(size_t*, size_t*);
  static const auto info = reinterpret_cast<MemInfo>(runtime::emulator_symbol("hipMemGetInfo"));
  size_t free = 0, total = 0;
  hip();
  check_hip(info(&free, &total), "hipMemGetInfo");
  return {free, total};
}

// The host promises more memory than it has, so the device's size is held here.
void* malloc_within(const DevicePool& pool, size_t size) {
  static const size_t total = free_and_total().second;
  const auto reserved = static_cast<size_t>(pool.stats.reserved_bytes[0].current);
  void* ptr = nullptr;
  if (size > total || reserved > total - size || hip().hipMalloc(&ptr, size) != 0) return nullptr;
  return ptr;
}

void* CachingAllocator::device_malloc(DevicePool& pool, size_t size) {
  if (void* ptr = malloc_within(pool, size)) return ptr;
  ++pool.stats.num_alloc_retries;
  release_cached(pool);
  if (void* ptr = malloc_within(pool, size)) return ptr;
  ++pool.stats.num_ooms;
  return nullptr;
}

void* CachingAllocator::take_small(DevicePool& pool, size_t size, Slab** slab) {
  auto& list = pool.free[size];
  if (list.empty()) {
    void* base = device_malloc(pool, kSlab);
    if (base == nullptr) return nullptr;
    pool.slabs.push_back(std::make_unique<Slab>(Slab{base, 0}));
    count_segment(pool.stats, kSlab, true, true);
    for (size_t offset = kSlab; offset >= size; offset -= size) {
      list.emplace_back(static_cast<char*>(base) + offset - size, pool.slabs.back().get());
    }
  }
  const auto [ptr, owner] = list.back();
  list.pop_back();
  ++owner->live;
  *slab = owner;
  return ptr;
}

void* CachingAllocator::take_large(DevicePool& pool, size_t size) {
  auto found = pool.free.find(size);
  if (found != pool.free.end() && !found->second.empty()) {
    void* ptr = found->second.back().first;
    found->second.pop_back();
    pool.cached_large -= size;
    return ptr;
  }
  void* ptr = device_malloc(pool, size);
  if (ptr != nullptr) count_segment(pool.stats, size, false, true);
  return ptr;
}

void* CachingAllocator::take(size_t bytes, c10::DeviceIndex index) {
  const c10::DeviceIndex before = current_device();
  if (before != index) unchecked_set_device(index);
  Block block{rounded(bytes), bytes, index, nullptr};
  void* ptr = nullptr;
  int64_t total = 0, reserved = 0;
  try {
    const std::lock_guard lock(mutex);
    DevicePool& pool = pools[index];
    const bool small = block.size <= kMaxSmall && !caching_disabled();
    ptr = small ? take_small(pool, block.size, &block.slab) : take_large(pool, block.size);
    if (ptr != nullptr) {
      live.emplace(ptr, block);
      count_block(pool.stats, block, true);
    }
    total = pool.stats.allocated_bytes[0].current;
    reserved = pool.stats.reserved_bytes[0].current;
  } catch (...) {
    unchecked_set_device(before);
    throw;
  }
  unchecked_set_device(before);
  TORCH_CHECK_WITH(OutOfMemoryError, ptr != nullptr, "cdna out of memory. Tried to allocate ", bytes,
                   " bytes on cdna:", int(index), "; ", total, " bytes are allocated by tensors, ", reserved,
                   " bytes reserved");
  c10::reportMemoryUsageToProfiler(ptr, static_cast<int64_t>(block.size), total, reserved,
                                   c10::Device(kType, index));
  return ptr;
}

bool CachingAllocator::give_back(void* ptr) {
  Block block;
  int64_t total = 0, reserved = 0;
  {
    const std::lock_guard lock(mutex);
    const auto found = live.find(ptr);
    if (found == live.end()) return false;
    block = found->second;
    live.erase(found);
    DevicePool& pool = pools[block.device];
    count_block(pool.stats, block, false);
    const bool keep =
        !caching_disabled() && (block.slab != nullptr || pool.cached_large + block.size <= kMaxCachedBytes);
    if (block.slab != nullptr) --block.slab->live;
    if (keep) {
      pool.free[block.size].emplace_back(ptr, block.slab);
      if (block.slab == nullptr) pool.cached_large += block.size;
    } else if (!in_bad_fork()) {
      runtime::emulator().hipFree(ptr);
      count_segment(pool.stats, block.size, false, false);
    }
    total = pool.stats.allocated_bytes[0].current;
    reserved = pool.stats.reserved_bytes[0].current;
  }
  c10::reportMemoryUsageToProfiler(ptr, -static_cast<int64_t>(block.size), total, reserved,
                                   c10::Device(kType, block.device));
  return true;
}

// Gives large cached blocks and wholly free slabs back to the emulator.
void CachingAllocator::release_cached(DevicePool& pool) {
  const runtime::Hip& h = runtime::emulator();
  for (auto& [size, list] : pool.free) {
    std::erase_if(list, [&, size = size](const auto& entry) {
      if (entry.second != nullptr) return entry.second->live == 0;
      h.hipFree(entry.first);
      count_segment(pool.stats, size, false, false);
      return true;
    });
  }
  pool.cached_large = 0;
  std::erase_if(pool.slabs, [&](const auto& slab) {
    if (slab->live != 0) return false;
    h.hipFree(slab->base);
    count_segment(pool.stats, kSlab, true, false);
    return true;
  });
}

std::pair<size_t, size_t> CachingAllocator::getMemoryInfo(c10::DeviceIndex index) {
  checked_index(index);
  return free_and_total();
}

void free_block(void* ptr) { instance().give_back(ptr); }

}  // namespace

c10::DeviceAllocator& allocator() { return instance(); }

c10::DataPtr allocate_device_memory(size_t bytes, c10::DeviceIndex index, c10::Device label) {
  if (bytes == 0) return {nullptr, label};
  void* ptr = instance().take(bytes, index);
  return {ptr, ptr, &free_block, label};
}

bool is_device_memory(const c10::DataPtr& ptr) { return ptr.get_deleter() == &free_block; }

c10::DeviceIndex device_of_address(const void* address) {
  CachingAllocator& a = instance();
  const std::lock_guard lock(a.mutex);
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const auto& [base, block] : a.live) {
    const auto lo = reinterpret_cast<uintptr_t>(base);
    if (at >= lo && at < lo + block.size) return block.device;
  }
  return -1;
}

bool release_device_memory(void* ptr) { return instance().give_back(ptr); }

}  // namespace mi350::cdna
