#include "device.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "emu_api.h"
#include "random.h"

namespace mi350::emu::fuzz {
namespace {

// Small integers, bit patterns that are special in some format, and anything.
uint32_t value(Random& r) {
  constexpr uint32_t kSpecial[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
                                   0x00000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0x7c007c00, 0xfc01ffff,
                                   0x0001ffff, 0x03ff0400, 0x7fffffff, 0xffffffff, 0x7f807fc0, 0x80808080,
                                   0x7e7f7e7f, 0x4f000000, 0xcf000001};
  if (r.percent(30)) return r.pick(kSpecial);
  if (r.percent(30)) return r.below(256);
  return r.percent(40)
             ? std::bit_cast<uint32_t>(static_cast<float>(static_cast<int>(r.below(4096)) - 2048) / 64)
             : r.word();
}

}  // namespace

void prepare() {
  setenv("TORCH_MI350_EMU_THREADS", "1", 1);
  setenv("TORCH_MI350_EMU_PATIENCE", "1500", 1);
  setenv("TORCH_MI350_EMU_LIMIT", "2000", 1);
}

uint8_t* filled_buffer(uint64_t seed) {
  static uint8_t* const buffer = [] {
    void* p = nullptr;
    if (hipMalloc(&p, kBufferBytes) != 0) std::abort();
    return static_cast<uint8_t*>(p);
  }();
  static std::map<uint64_t, std::vector<uint32_t>> contents;
  std::vector<uint32_t>& words = contents[seed];
  if (words.empty()) {
    Random r(seed);
    for (uint32_t n = 0; n < kBufferBytes / 4; ++n) words.push_back(value(r));
  }
  std::memcpy(buffer, words.data(), kBufferBytes);
  return buffer;
}

bool succeeded(int error, const char* what) {
  if (error == 0) return true;
  hipGetLastError();
  const char* sentence = mi350emuLastReport();
  if (std::strlen(sentence) > 8) return false;
  std::fprintf(stderr, "%s: error %d without a sentence: '%s'\n", what, error, sentence);
  std::abort();
}

}  // namespace mi350::emu::fuzz
