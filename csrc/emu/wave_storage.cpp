// Free lists of one host thread over anonymous mappings.
#include "wave_storage.h"

#include <sys/mman.h>

#include <new>

namespace mi350::emu {
namespace {

constexpr size_t kKeptWaves = 32, kKeptLds = 4, kKeptScratchBytes = 4 << 20;
constexpr size_t kPage = 4096;
constexpr size_t kWaveBytes = (sizeof(Wave) + kPage - 1) / kPage * kPage;

uint8_t* map(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<uint8_t*>(p);
}

}  // namespace

Storage& Storage::of_thread() {
  static thread_local Storage storage;
  return storage;
}

Storage::~Storage() {
  for (Wave* w : waves_) munmap(w, kWaveBytes);
  for (uint8_t* p : lds_) munmap(p, kLdsCapacity);
  for (const Block& b : scratch_) munmap(b.p, b.bytes);
}

Wave* Storage::take_wave() {
  uint8_t* p;
  if (waves_.empty()) {
    p = map(kWaveBytes);
  } else {
    p = reinterpret_cast<uint8_t*>(waves_.back());
    waves_.pop_back();
  }
  return new (p) Wave;  // registers keep what they held: whoever starts the wave clears what the kernel owns
}
void Storage::give_wave(Wave* w) {
  w->~Wave();
  waves_.push_back(w);
}

uint8_t* Storage::take_lds() {
  if (lds_.empty()) return map(kLdsCapacity);
  uint8_t* p = lds_.back();
  lds_.pop_back();
  return p;
}
void Storage::give_lds(uint8_t* p) { lds_.push_back(p); }

uint8_t* Storage::take_scratch(size_t bytes) {
  if (bytes == 0) return nullptr;
  for (size_t n = 0; n < scratch_.size(); ++n) {
    if (scratch_[n].bytes != bytes) continue;
    uint8_t* p = scratch_[n].p;
    scratch_[n] = scratch_.back();
    scratch_.pop_back();
    return p;
  }
  return map(bytes);
}
void Storage::give_scratch(uint8_t* p, size_t bytes) {
  if (p != nullptr) scratch_.push_back({p, bytes});
}

void Storage::trim() {
  for (; waves_.size() > kKeptWaves; waves_.pop_back()) munmap(waves_.back(), kWaveBytes);
  for (; lds_.size() > kKeptLds; lds_.pop_back()) munmap(lds_.back(), kLdsCapacity);
  size_t kept = 0;
  for (size_t n = 0; n < scratch_.size();) {
    if (kept + scratch_[n].bytes <= kKeptScratchBytes) {
      kept += scratch_[n++].bytes;
      continue;
    }
    munmap(scratch_[n].p, scratch_[n].bytes);
    scratch_[n] = scratch_.back();
    scratch_.pop_back();
  }
}

}  // namespace mi350::emu
