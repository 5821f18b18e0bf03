// Bytes that end where an unreadable page begins: a read past them is a crash.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace mi350::emu::fuzz {

class Guarded {
 public:
  explicit Guarded(std::span<const uint8_t> bytes) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t body = (bytes.size() + page - 1) / page * page;
    total_ = body + page;
    void* base = mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) std::abort();
    base_ = static_cast<uint8_t*>(base);
    mprotect(base_ + body, page, PROT_NONE);
    data_ = base_ + body - bytes.size();
    if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
  }
  ~Guarded() { munmap(base_, total_); }
  Guarded(const Guarded&) = delete;
  const uint8_t* data() const { return data_; }

 private:
  uint8_t *base_ = nullptr, *data_ = nullptr;
  size_t total_ = 0;
};

}  // namespace mi350::emu::fuzz
