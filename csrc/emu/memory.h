// Device memory: host memory between guard pages, and the map of everything that a kernel may touch.
//
// One allocation:   [PROT_NONE page][..... pages, used from `lo` to `hi` .....][PROT_NONE page]
// `lo` is 256-byte aligned and the last byte lies within 256 bytes of the upper guard page, so a host access
// that overruns faults too. Kernels are held to [lo, hi) exactly, by the map and not by the guard.
//
// Frees wait for running kernels, as hipFree does; so a range that a kernel has found stays valid for it.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <shared_mutex>
#include <string>

namespace mi350::emu {

enum class RangeKind : uint8_t { kDevice, kHost, kRegistered, kCode, kManaged };

struct Range {
  uint64_t lo = 0, hi = 0;
  RangeKind kind = RangeKind::kDevice;
  bool writable = true;
  int device = 0;
  uint64_t map_base = 0, map_bytes = 0;  // the mapping with its guard pages; 0: owned by somebody else
};

class AllocationMap {
 public:
  static AllocationMap& get();

  // Zeroed memory of exactly `bytes` usable bytes, or null when the host refuses.
  void* allocate(size_t bytes, RangeKind kind, int device);
  // Memory that somebody else owns. False if it overlaps a known range.
  bool add(uint64_t lo, uint64_t bytes, RangeKind kind, int device, bool writable = true);
  // Removes the range that starts at `lo` and has one of the kinds; unmaps what allocate() made.
  bool remove(uint64_t lo, std::initializer_list<RangeKind> kinds);

  bool find(uint64_t address, Range* out) const;
  // What lies at or near an address, for reports.
  std::string describe(uint64_t address) const;
  uint64_t bytes_in_use(int device) const;

  // Whether kernels of device `from` reach memory of device `to`; what it was before.
  bool set_peer_access(int from, int to, bool on);
  bool peer_access(int from, int to) const;

  // Held shared while a kernel runs, exclusively while a range is removed.
  std::shared_mutex& running() { return running_; }

 private:
  void keep_freed(Range range);

  mutable std::shared_mutex mutex_;
  std::shared_mutex running_;
  std::map<uint64_t, Range> ranges_;  // by lo
  std::deque<Range> freed_;           // the last few; their addresses are not given out again yet
  std::array<std::atomic<uint64_t>, 64> peers_{};  // [from]: a bit per device
};

// The view of one host thread: the ranges it used last. Not shared between threads.
class Memory {
 public:
  // Host pointer to [address, address + bytes), or null if that is not inside one range (or is read-only
  // and `write` is set).
  uint8_t* at(uint64_t address, uint64_t bytes, bool write) {
    for (const Entry& e : entries_) {
      if (address >= e.lo && address < e.hi && bytes <= e.hi - address && (e.writable || !write)) {
        return reinterpret_cast<uint8_t*>(address);
      }
    }
    return miss(address, bytes, write);
  }
  void forget() { entries_ = {}; local_ = {}; }
  // The device whose kernel looks: memory of another one needs peer access.
  void set_device(int device) { device_ = device; }
  bool reaches(const Range& range) const;
  // AllocationMap::describe, and who may not reach it.
  std::string describe(uint64_t address) const;
  // Ranges of the running launch alone (kernel arguments, dispatch packet): readable, not in the map.
  void set_local(uint64_t lo, uint64_t hi) { local_ = {lo, hi, false}; }
  // Loads that a descriptor allows and no allocation holds give 0 instead of a fault.
  void set_lenient(bool on) { lenient_ = on; }
  bool lenient() const { return lenient_; }

 private:
  struct Entry { uint64_t lo = 0, hi = 0; bool writable = false; };
  uint8_t* miss(uint64_t address, uint64_t bytes, bool write);
  std::array<Entry, 6> entries_{};
  Entry local_;
  unsigned next_ = 0;
  bool lenient_ = false;
  int device_ = 0;
};

}  // namespace mi350::emu
