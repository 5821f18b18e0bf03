#include "executor_case.h"

#include <algorithm>
#include <cstring>

#include "code_object.h"
#include "device.h"
#include "instruction_maker.h"
#include "object_maker.h"
#include "print.h"

namespace mi350::emu::fuzz {
namespace {

using Words = std::vector<uint32_t>;

constexpr size_t kHeaderBytes = 8, kMostWords = 512;
enum Flag : uint8_t {
  kDx10Clamp = 1,
  kIeee = 2,
  kOverflow = 4,
  kTwoWaves = 8,
  kTwoGroups = 16,
  kPartialWave = 32,
  kDynamicStack = 64,
  kNoLds = 128
};
constexpr uint32_t kEndProgram = 0xbf810000;

// Leaves: s[4:5] the buffer, s[8:11] and s[12:15] descriptors of it (raw; stride 16), s[16:19] any values,
// v0 lane, v1 lane * 16, v[2:3] buffer + v1, v[4:15] contents of the buffer, v16 lane * 4, a0-a3 contents.
constexpr uint32_t kPrologue[] = {
    0xc0120100, 0x00000000,  // s_load_dwordx16 s[4:19], s[0:1], 0x0
    0x24020084,              // v_lshlrev_b32 v1, 4, v0
    0x7e060205,              // v_mov_b32 v3, s5
    0x32040204,              // v_add_co_u32 v2, vcc, s4, v1
    0x38060680,              // v_addc_co_u32 v3, vcc, 0, v3, vcc
    0xdc5c8000, 0x04040001,  // global_load_dwordx4 v[4:7], v1, s[4:5]
    0xdc5c8400, 0x08040001,  // global_load_dwordx4 v[8:11], v1, s[4:5] offset:1024
    0xdc5c8800, 0x0c040001,  // global_load_dwordx4 v[12:15], v1, s[4:5] offset:2048
    0xbf8c0000,              // s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
    0x24200082,              // v_lshlrev_b32 v16, 2, v0
    0xd3d94000, 0x18000104,  // v_accvgpr_write_b32 a0, v4
    0xd3d94001, 0x18000108,  // v_accvgpr_write_b32 a1, v8
    0xd3d94002, 0x1800010c,  // v_accvgpr_write_b32 a2, v12
    0xd3d94003, 0x18000105,  // v_accvgpr_write_b32 a3, v5
    0xb07c0040,              // s_movk_i32 m0, 0x40
};

Words words_of(std::span<const uint8_t> bytes) {
  Words out(std::min((bytes.size() - kHeaderBytes) / 4, kMostWords));
  if (!out.empty()) std::memcpy(out.data(), bytes.data() + kHeaderBytes, 4 * out.size());
  return out;
}

KernelSpec spec_of(std::span<const uint8_t> bytes) {
  const uint32_t flags = bytes[1];
  KernelSpec s;
  s.rsrc1 = std::min(bytes[2] & 63u, 63u) | uint32_t{bytes[0]} << 12 | (flags & kDx10Clamp ? 1u << 21 : 0) |
            (flags & kIeee ? 1u << 23 : 0) | (flags & kOverflow ? 1u << 26 : 0);
  s.rsrc3 = bytes[3] & 63;
  s.private_segment_bytes = bytes[4] * 16u;
  s.group_segment_bytes = flags & kNoLds ? 0 : (bytes[5] + 1u) * 256;
  if (flags & kDynamicStack) s.properties |= 2048;
  s.words.assign(std::begin(kPrologue), std::end(kPrologue));
  const Words body = words_of(bytes);
  s.words.insert(s.words.end(), body.begin(), body.end());
  s.words.push_back(kEndProgram);
  return s;
}

struct Arguments {
  uint64_t buffer, again;
  uint32_t raw[4], strided[4], any[4];
};
Arguments arguments(uint64_t seed) {
  Arguments a{};
  a.buffer = a.again = reinterpret_cast<uint64_t>(filled_buffer(seed));
  const auto low = static_cast<uint32_t>(a.buffer), high = static_cast<uint32_t>(a.buffer >> 32);
  Random r(~seed);
  const uint32_t raw[4] = {low, high, kBufferBytes, 0x00027000};
  const uint32_t strided[4] = {low, high | 16u << 16 | (seed & 1 ? 1u << 31 : 0), kBufferBytes / 16,
                               r.word()};
  std::copy_n(raw, 4, a.raw);
  std::copy_n(strided, 4, a.strided);
  for (uint32_t& v : a.any) v = r.percent(50) ? r.below(128) : r.word();
  return a;
}

// Word indexes where instructions begin.
std::vector<size_t> boundaries(const Words& words) {
  std::vector<size_t> out;
  for (size_t at = 0; at < words.size();) {
    out.push_back(at);
    at += std::max<size_t>(decode(std::span(words).subspan(at)).size_bytes / 4, 1);
  }
  return out;
}

void print_all(const Words& words) {
  for (const size_t at : boundaries(words)) print(decode(std::span(words).subspan(at)));
}

void mutate_words(Words& words, Random& r) {
  const std::vector<size_t> starts = boundaries(words);
  const size_t n = r.below(starts.size()), at = starts.empty() ? 0 : starts[n];
  const size_t next = n + 1 < starts.size() ? starts[n + 1] : words.size();
  const auto place = words.begin() + static_cast<long>(at), end = words.begin() + static_cast<long>(next);
  const auto insert = [&](const Words& w) {
    words.insert(words.begin() + static_cast<long>(at), w.begin(), w.end());
  };
  switch (r.below(words.empty() ? 2 : 8)) {
    case 0:
      insert(make_instruction(r));
      break;
    case 1:
      for (unsigned count = 1 + r.below(6); count > 0; --count) insert(make_instruction(r));
      break;
    case 2:
      words.erase(place, end);
      insert(make_instruction(r));
      break;
    case 3:
      words.erase(place, end);
      break;
    case 4:
      words[r.below(words.size())] ^= 1u << r.below(32);
      break;
    case 5:
      words[r.below(words.size())] = r.word();
      break;
    case 6:
      insert(Words(place, end));
      break;
    default: {  // the same operation with other operands
      const IsaRow* row = decode(std::span(words).subspan(at)).row;
      words.erase(place, end);
      insert(row != nullptr ? make_instruction(*row, r) : make_instruction(r));
    }
  }
}

}  // namespace

void run_executor_case(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes) return;
  prepare();
  const std::vector<uint8_t> object = make_object(spec_of(bytes));
  void *module = nullptr, *function = nullptr;
  if (!succeeded(hipModuleLoadData(&module, object.data()), "load")) return;
  if (succeeded(hipModuleGetFunction(&function, module, "k"), "function")) {
    if (bytes[7] & 1) print_all(words_of(bytes));
    Arguments a = arguments(bytes[6]);
    size_t size = sizeof a;
    void* extra[] = {reinterpret_cast<void*>(1), &a, reinterpret_cast<void*>(2), &size,
                     reinterpret_cast<void*>(3)};
    const unsigned block = (bytes[1] & kPartialWave ? 37 : 64) + (bytes[1] & kTwoWaves ? 64 : 0);
    succeeded(hipModuleLaunchKernel(function, bytes[1] & kTwoGroups ? 2 : 1, 1, 1, block, 1, 1, 0, nullptr,
                                    nullptr, extra),
              "launch");
  }
  succeeded(hipModuleUnload(module), "unload");
}

void mutate_executor_case(std::vector<uint8_t>& bytes, size_t limit, Random& r) {
  constexpr uint8_t kUsual[kHeaderBytes] = {0xf0, kDx10Clamp | kIeee, 31, 15, 4, 63, 1, 0};
  if (bytes.size() < kHeaderBytes) bytes.assign(kUsual, kUsual + kHeaderBytes);
  if (r.percent(8)) bytes[r.below(kHeaderBytes)] = static_cast<uint8_t>(r.word());
  Words words = words_of(bytes);
  for (unsigned count = 1 + r.below(3); count > 0; --count) mutate_words(words, r);
  words.resize(
      std::min(words.size(), std::min(kMostWords, (std::max(limit, kHeaderBytes) - kHeaderBytes) / 4)));
  bytes.resize(kHeaderBytes + 4 * words.size());
  if (!words.empty()) std::memcpy(bytes.data() + kHeaderBytes, words.data(), 4 * words.size());
}

}  // namespace mi350::emu::fuzz
