// The kernel copies for us and stops at a page that is not there, where memcpy would end the process.
#include "readable_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace mi350::emu {
namespace {

constexpr size_t kPagesPerCall = 512;  // IOV_MAX is 1024

// Up to kPagesPerCall pages, one element each: a transfer never ends inside an element.
ssize_t copy_pages(uint8_t* to, uintptr_t from, size_t bytes, size_t page) {
  std::array<iovec, kPagesPerCall> pages;
  size_t count = 0, taken = 0;
  for (; count < pages.size() && taken < bytes; ++count) {
    const size_t left = std::min(page - (from + taken) % page, bytes - taken);
    pages[count] = {reinterpret_cast<void*>(from + taken), left};
    taken += left;
  }
  const iovec local{to, taken};
  return process_vm_readv(getpid(), &local, 1, pages.data(), count, 0);
}

}  // namespace

std::vector<uint8_t> copy_readable(const void* from, size_t most) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(from);
  std::vector<uint8_t> out;
  for (size_t done = 0; done < most;) {
    const size_t step = std::min(most - done, (kPagesPerCall - 1) * page);
    out.resize(done + step);
    ssize_t n = copy_pages(out.data() + done, address + done, step, page);
    if (n < 0 && (errno == ENOSYS || errno == EPERM)) {  // a sandbox forbids the call: trust the pointer
      std::memcpy(out.data() + done, static_cast<const uint8_t*>(from) + done, step);
      n = static_cast<ssize_t>(step);
    }
    done += n > 0 ? static_cast<size_t>(n) : 0;
    if (done < out.size()) {
      out.resize(done);
      break;
    }
  }
  return out;
}

}  // namespace mi350::emu
