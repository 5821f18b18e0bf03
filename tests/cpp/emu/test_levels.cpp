// The handlers are compiled once per vector extension of the host: all of them give the same bits.
#include <random>
#include <string>

#include "exec_fixture.h"

namespace mi350::emu {
namespace base { extern const Handler kHandlers[]; }
#if defined(__x86_64__)
namespace v3 { extern const Handler kHandlers[]; }
namespace v4 { extern const Handler kHandlers[]; }
#endif

namespace {

struct Level { const char* name; const Handler* handlers; bool runs_here; };

const Level* levels(size_t& count) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const Level all[] = {
      {"v3", v3::kHandlers, static_cast<bool>(__builtin_cpu_supports("avx2"))},
      {"v4", v4::kHandlers, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")}};
  count = 2;
  return all;
#else
  count = 0;
  return nullptr;
#endif
}

bool is_vector_arithmetic(const IsaRow& row) {
  switch (row.encoding) {
    case Encoding::kVop1: case Encoding::kVop2: case Encoding::kVopc:
    case Encoding::kVop3: case Encoding::kVop3sd: case Encoding::kVop3p: return true;
    case Encoding::kMai: return std::string_view(row.mnemonic).find("_f64") == std::string_view::npos;
    default: return false;
  }
}

// f32 MFMA: the base level rounds product and sum apart.
bool rounds_apart(const IsaRow& row) {
  const std::string name = row.mnemonic;
  return row.encoding == Encoding::kMai && name.ends_with("_f32");
}

// Bits that are numbers of moderate size as f32, as pairs of f16 and as the high dword of f64, with some
// specials.
uint32_t interesting(std::mt19937& random) {
  constexpr uint32_t kSpecial[] = {0, 0x80000000, 0x7f800000, 0x7fc00000,
                                   1, 0xffffffff, 0x3f800000, 0x7c003c00};
  const uint32_t x = random();
  return x % 16 == 0 ? kSpecial[x / 16 % 8] : (x & 0x83ff83ff) | 0x38003800 | (random() & 0x04000400);
}

struct Start {
  uint32_t vgpr[512][kLanes];
  uint32_t sgpr[128];
};

// Matrix operands stay clear of NaN in every format, since which NaN a sum keeps is not specified.
std::unique_ptr<Start> start_state(uint32_t seed, bool matrix) {
  auto start = std::make_unique<Start>();
  std::mt19937 random(seed);
  for (auto& reg : start->vgpr)
    for (uint32_t& lane : reg) lane = matrix ? (random() & 0x83bf83bf) | 0x38003800 : interesting(random);
  for (uint32_t& s : start->sgpr) s = interesting(random);
  const uint64_t exec = seed % 2 ? ~0ull : 0xfedcba9876543210;
  std::memcpy(&start->sgpr[kExecLo], &exec, sizeof exec);
  return start;
}

struct Levels : ExecTest {
  void load(const Start& start) {
    std::memcpy(w.vgpr, start.vgpr, sizeof w.vgpr);
    std::memcpy(w.sgpr, start.sgpr, sizeof w.sgpr);
  }
};

Inst generic_inst(const IsaRow& row, uint32_t seed) {
  const bool scalar_result = row.operands[0] == 'D', matrix = row.encoding == Encoding::kMai;
  const bool has_mask = std::string_view(row.operands).find('m') != std::string_view::npos;
  Inst i = inst(scalar_result ? uint16_t{10} : v(160), v(0), v(64), has_mask ? uint16_t{20} : v(128));
  i.row = &row;
  i.sdst = 30;
  i.op_sel_hi = 7;
  i.imm = 0x6a;
  i.scale_src[0] = i.scale_src[1] = integer(64);
  i.clamp = seed == 3 && !matrix;
  i.neg = seed == 4 && !matrix ? 1 : 0;
  return i;
}

TEST_F(Levels, EveryVectorHandlerGivesTheSameBitsOnEveryLevel) {
  size_t count = 0;
  const Level* all = levels(count);
  const auto reference = std::make_unique<Start>();
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const auto numbers = start_state(seed, false), matrices = start_state(seed, true);
    for (size_t r = 0; r < kIsaRows; ++r) {
      if (!is_vector_arithmetic(kIsa[r]) || rounds_apart(kIsa[r]) || !base::kHandlers[r]) continue;
      const Start& start = kIsa[r].encoding == Encoding::kMai ? *matrices : *numbers;
      const Inst i = generic_inst(kIsa[r], seed);
      load(start);
      base::kHandlers[r](w, i);
      std::memcpy(reference->vgpr, w.vgpr, sizeof w.vgpr);
      std::memcpy(reference->sgpr, w.sgpr, sizeof w.sgpr);
      for (size_t n = 0; n < count; ++n) {
        if (!all[n].runs_here) continue;
        ASSERT_NE(all[n].handlers[r], nullptr) << kIsa[r].mnemonic << " on " << all[n].name;
        load(start);
        all[n].handlers[r](w, i);
        EXPECT_EQ(std::memcmp(reference->vgpr, w.vgpr, sizeof w.vgpr), 0)
            << kIsa[r].mnemonic << " on " << all[n].name << " seed " << seed;
        EXPECT_EQ(std::memcmp(reference->sgpr, w.sgpr, sizeof w.sgpr), 0)
            << kIsa[r].mnemonic << " on " << all[n].name << " seed " << seed;
      }
    }
  }
}

TEST_F(Levels, EveryArithmeticRowHasAHandler) {
  for (size_t r = 0; r < kIsaRows; ++r) {
    if (!is_vector_arithmetic(kIsa[r]) || refusal(kIsa[r])) continue;
    EXPECT_NE(handlers()[r], nullptr) << kIsa[r].mnemonic;
  }
}

}  // namespace
}  // namespace mi350::emu
