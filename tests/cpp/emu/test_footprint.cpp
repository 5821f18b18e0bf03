// What the checkers believe an instruction reads and writes, against what its handler does: a handler must change
// nothing outside of the footprint's writes, and must not notice a change outside of its reads.
#include "check/footprint.h"

#include <algorithm>
#include <set>

#include "check/learned_state.h"
#include "exec_fixture.h"
#include "mfma_passes.h"

namespace mi350::emu {
namespace {

struct Random {
  uint64_t state = 88172645463325252ull;
  uint32_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<uint32_t>(state >> 11);
  }
};

// The scalar and vector state that an instruction may touch, by operand code.
struct State {
  std::vector<uint32_t> vgpr = std::vector<uint32_t>(512 * kLanes), sgpr = std::vector<uint32_t>(128);
  bool scc = false;
};

bool runs_alone(const IsaRow& row) {
  const std::string_view name = row.mnemonic;
  if (handlers()[&row - kIsa] == nullptr || row.timing == IsaClass::kBranch || row.timing == IsaClass::kMessage)
    return false;
  if (name.starts_with("s_getpc") || name == "s_setvskip" || name.starts_with("s_rfe")) return false;
  // Relative addressing picks its registers at run time.
  if (name.starts_with("s_movrel") || name.starts_with("s_set_gpr_idx")) return false;
  return row.encoding <= Encoding::kSopc || (row.encoding >= Encoding::kVop1 && row.encoding <= Encoding::kMai);
}

Inst operands_for(const IsaRow& row) {
  Inst i;
  i.row = &row;
  i.exec = handlers()[&row - kIsa];
  i.imm = 0x1004;
  i.literal = 0x3fc00000;
  const RowForm& form = form_of(row);
  const bool vector = row.encoding >= Encoding::kVop1;
  uint16_t next_vector = 40, next_scalar = 8;
  for (unsigned n = 0; n < form.operand_count; ++n) {
    const OperandForm& f = form.operands[n];
    const auto width = static_cast<uint16_t>((f.dwords + 1) & ~1);
    const auto vector_code = [&](uint16_t at) {
      return static_cast<uint16_t>((f.suffix == 'A' ? kAcc0 : kVgpr0) + at);
    };
    switch (f.kind) {
      case 'd': i.dst = vector_code(200); break;
      case 'D': i.dst = 50; break;
      case 'o': i.sdst = 54; break;
      case 'm': i.src[2] = 58; break;
      case 'x': i.scale_src[0] = v(30); break;
      case 'y': i.scale_src[1] = v(31); break;
      case 'l': i.src[form.operands[2].kind == 'l' ? 1 : 2] = kLiteral; break;
      case 'a': case 'b': case 'c': {
        const bool shifted = f.kind == 'b' && form.operands[2].kind == 'l';
        const std::string_view name = row.mnemonic;
        const bool lane = f.kind == 'b' && (name == "v_readlane_b32" || name == "v_writelane_b32");
        uint16_t& source = i.src[shifted ? 2 : f.kind - 'a'];
        if (vector && f.suffix != 's' && !lane) {
          source = vector_code(next_vector);
          next_vector = static_cast<uint16_t>(next_vector + width);
        } else {
          source = next_scalar;
          next_scalar = static_cast<uint16_t>(next_scalar + width);
        }
        break;
      }
      default: break;
    }
  }
  if (row.encoding == Encoding::kSopk && form.find('D')) i.src[0] = i.dst;
  return i;
}

class FootprintTest : public ExecTest {
 protected:
  FootprintTest() { w.group = &group_; }
  State random_state(Random& random) {
    State s;
    for (uint32_t& x : s.vgpr) x = 0x3f800000 ^ (random.next() & 0x00ffffff);
    for (uint32_t& x : s.sgpr) x = random.next();
    s.sgpr[kM0] = 0;
    s.sgpr[kExecLo] = s.sgpr[kExecHi] = ~0u;
    s.scc = random.next() & 1;
    return s;
  }
  State run(const Inst& i, const State& from) {
    std::memcpy(w.vgpr, from.vgpr.data(), sizeof w.vgpr);
    std::memcpy(w.sgpr, from.sgpr.data(), sizeof w.sgpr);
    w.scc = from.scc;
    w.mode = kUsualMode;
    i.exec(w, i);
    State to = from;
    std::memcpy(to.vgpr.data(), w.vgpr, sizeof w.vgpr);
    std::memcpy(to.sgpr.data(), w.sgpr, sizeof w.sgpr);
    to.scc = w.scc;
    return to;
  }
  static std::set<unsigned> codes(const RegisterSpan* spans, unsigned count) {
    std::set<unsigned> out;
    for (unsigned n = 0; n < count; ++n)
      for (unsigned c = 0; c < spans[n].count; ++c) out.insert(spans[n].first + c);
    return out;
  }
  static bool same(const State& a, const State& b, unsigned code) {
    if (code == kScc) return a.scc == b.scc;
    if (code < 128) return a.sgpr[code] == b.sgpr[code];
    const size_t at = size_t{code - kVgpr0} * kLanes;
    return std::equal(&a.vgpr[at], &a.vgpr[at] + kLanes, &b.vgpr[at]);
  }
  static std::vector<unsigned> all_codes() {
    std::vector<unsigned> out;
    for (unsigned c = 0; c < 128; ++c) out.push_back(c);
    out.push_back(kScc);
    for (unsigned c = kVgpr0; c < kRegisterCodes; ++c) out.push_back(c);
    return out;
  }
  Workgroup group_;
};

TEST_F(FootprintTest, HandlersStayInside) {
  Random random;
  int rows = 0;
  for (size_t r = 0; r < kIsaRows; ++r) {
    if (!runs_alone(kIsa[r])) continue;
    ++rows;
    const Inst i = operands_for(kIsa[r]);
    const Footprint f = footprint_of(i);
    std::set<unsigned> reads = codes(f.reads, f.read_count), writes = codes(f.writes, f.write_count);
    if (f.is(kIsValu)) reads.insert({kExecLo, kExecHi});
    const State from = random_state(random), to = run(i, from);
    State other = random_state(random);
    for (const unsigned code : all_codes()) {
      if (!writes.count(code)) {
        EXPECT_TRUE(same(from, to, code)) << kIsa[r].mnemonic << " writes " << code;
      }
      if (!reads.count(code)) continue;
      if (code == kScc) other.scc = from.scc;
      else if (code < 128) other.sgpr[code] = from.sgpr[code];
      else std::copy_n(&from.vgpr[(code - kVgpr0) * kLanes], kLanes, &other.vgpr[(code - kVgpr0) * kLanes]);
    }
    const State elsewhere = run(i, other);
    for (const unsigned code : writes)
      EXPECT_TRUE(same(to, elsewhere, code)) << kIsa[r].mnemonic << ": " << code << " follows what is not read";
  }
  EXPECT_GT(rows, 700);
}

TEST_F(FootprintTest, StateThatNoOperandNames) {
  const auto learned = [](const char* name) { return learned_state(*row_named(name)); };
  EXPECT_TRUE(learned("s_add_u32").writes_scc);
  EXPECT_FALSE(learned("s_add_u32").reads_scc);
  EXPECT_TRUE(learned("s_addc_u32").reads_scc);
  EXPECT_FALSE(learned("s_mov_b32").writes_scc);
  EXPECT_TRUE(learned("s_cselect_b32").reads_scc);
  EXPECT_TRUE(learned("s_cmov_b32").reads_dst);
  EXPECT_FALSE(learned("s_cmpk_eq_u32").writes_dst);
  EXPECT_TRUE(learned("s_and_saveexec_b64").reads_exec);
  EXPECT_TRUE(learned("s_and_saveexec_b64").writes_exec);
  EXPECT_TRUE(learned("v_div_fmas_f32").reads_vcc);
  EXPECT_TRUE(learned("v_fmac_f32").reads_dst);
  EXPECT_FALSE(learned("v_fma_f32").reads_dst);
  EXPECT_TRUE(learned("v_cvt_pk_fp8_f32").reads_dst);
}

TEST_F(FootprintTest, MemoryOperands) {
  Inst i;
  i.row = row_named("buffer_load_dwordx4");
  i.dst = v(8);
  i.addr = v(2);
  i.offen = true;
  i.sbase = 12;
  i.soffset = 20;
  const Footprint f = footprint_of(i);
  EXPECT_EQ(codes(f.reads, f.read_count), (std::set<unsigned>{12, 13, 14, 15, 20, v(2)}));
  EXPECT_EQ(codes(f.writes, f.write_count), (std::set<unsigned>{v(8), v(9), v(10), v(11)}));
  EXPECT_TRUE(f.is(kCountsVm));
  EXPECT_FALSE(f.is(kCountsLgkm));
}

struct PassCase {
  const char* name;
  MatrixUnit unit;
  int passes;
  uint8_t cbsz = 0, blgp = 0;
};
// facts/gfx950-isa.md 4.1
TEST(MfmaPasses, AsTheTableSays) {
  constexpr PassCase kCases[] = {
      {"v_mfma_f32_32x32x1_2b_f32", MatrixUnit::kSgemm, 16}, {"v_mfma_f32_16x16x1_4b_f32", MatrixUnit::kSgemm, 8},
      {"v_mfma_f32_4x4x1_16b_f32", MatrixUnit::kSgemm, 2}, {"v_mfma_f32_32x32x2_f32", MatrixUnit::kSgemm, 16},
      {"v_mfma_f32_16x16x4_f32", MatrixUnit::kSgemm, 8}, {"v_mfma_f32_32x32x4_2b_f16", MatrixUnit::kXdl, 16},
      {"v_mfma_f32_16x16x4_4b_f16", MatrixUnit::kXdl, 8}, {"v_mfma_f32_4x4x4_16b_f16", MatrixUnit::kXdl, 2},
      {"v_mfma_f32_32x32x8_f16", MatrixUnit::kXdl, 8}, {"v_mfma_f32_16x16x16_f16", MatrixUnit::kXdl, 4},
      {"v_mfma_f32_16x16x32_bf16", MatrixUnit::kXdl, 4}, {"v_mfma_f32_32x32x16_bf16", MatrixUnit::kXdl, 8},
      {"v_mfma_i32_16x16x64_i8", MatrixUnit::kXdl, 4}, {"v_mfma_i32_32x32x32_i8", MatrixUnit::kXdl, 8},
      {"v_mfma_f32_16x16x32_fp8_fp8", MatrixUnit::kXdl, 4}, {"v_mfma_f32_32x32x16_bf8_fp8", MatrixUnit::kXdl, 8},
      {"v_mfma_f32_16x16x128_f8f6f4", MatrixUnit::kXdl, 8, 0, 0},
      {"v_mfma_f32_16x16x128_f8f6f4", MatrixUnit::kXdl, 8, 4, 1},
      {"v_mfma_f32_16x16x128_f8f6f4", MatrixUnit::kXdl, 4, 4, 2},
      {"v_mfma_scale_f32_32x32x64_f8f6f4", MatrixUnit::kXdl, 8, 4, 4},
      {"v_mfma_scale_f32_32x32x64_f8f6f4", MatrixUnit::kXdl, 16, 1, 4},
      {"v_mfma_f64_16x16x4_f64", MatrixUnit::kDgemm, 16}, {"v_mfma_f64_4x4x4_4b_f64", MatrixUnit::kDgemm, 4},
      {"v_smfmac_f32_16x16x64_bf16", MatrixUnit::kXdl, 4}, {"v_smfmac_f32_32x32x64_fp8_fp8", MatrixUnit::kXdl, 8},
  };
  for (const PassCase& c : kCases) {
    Inst i;
    i.row = row_named(c.name);
    ASSERT_NE(i.row, nullptr) << c.name;
    i.cbsz = c.cbsz;
    i.blgp = c.blgp;
    EXPECT_EQ(mfma_passes(i).passes, c.passes) << c.name;
    EXPECT_EQ(mfma_passes(i).unit, c.unit) << c.name;
  }
}

}  // namespace
}  // namespace mi350::emu
