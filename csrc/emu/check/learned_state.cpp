// Runs a row's handler on a wave of random registers, twice with one thing changed, and compares the outcome.
#include "check/learned_state.h"

#include <cfenv>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "wave.h"

namespace mi350::emu {
namespace {

constexpr uint16_t kScalarDst = 30, kScalarSrc = 40, kCarryOut = 24, kMaskIn = 22;
constexpr uint16_t kVectorSrc = 100, kVectorDst = 20;
constexpr int kTries = 6;
constexpr uint32_t kNearest = 0xf0;

struct Random {
  uint64_t state;
  uint32_t next() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state >> 33);
  }
};

bool is_vector_encoding(Encoding e) { return e >= Encoding::kVop1 && e <= Encoding::kMai; }

bool can_run(const IsaRow& row) {
  const std::string_view name = row.mnemonic;
  if (handlers()[&row - kIsa] == nullptr || row.timing == IsaClass::kBranch) return false;
  if (name == "s_getpc_b64" || name == "s_setvskip" || name.starts_with("s_rfe")) return false;
  switch (row.encoding) {
    case Encoding::kSop1: case Encoding::kSop2: case Encoding::kSopk: case Encoding::kSopc: return true;
    case Encoding::kMai: return row.timing == IsaClass::kValu;
    default: return is_vector_encoding(row.encoding);
  }
}

// The instruction with a register of its own for every operand.
Inst sample(const IsaRow& row) {
  Inst i;
  i.row = &row;
  i.imm = 0x0305;
  i.literal = 0x40490fdb;
  const RowForm& form = form_of(row);
  uint16_t vector = kVectorSrc, scalar = kScalarSrc;
  for (unsigned n = 0; n < form.operand_count; ++n) {
    const OperandForm& f = form.operands[n];
    const bool vectors = is_vector_encoding(row.encoding) && f.suffix != 's';
    switch (f.kind) {
      case 'd': i.dst = static_cast<uint16_t>(kVgpr0 + kVectorDst); break;
      case 'D': i.dst = kScalarDst; break;
      case 'o': i.sdst = kCarryOut; break;
      case 'm': i.src[2] = kMaskIn; break;
      case 'l': i.src[form.operands[2].kind == 'l' ? 1 : 2] = kLiteral; break;
      case 'a': case 'b': case 'c': {
        const bool shifted = f.kind == 'b' && form.operands[2].kind == 'l';  // v_fmamk
        uint16_t& source = i.src[shifted ? 2 : f.kind - 'a'];
        source = vectors ? static_cast<uint16_t>(kVgpr0 + vector) : scalar;
        (vectors ? vector : scalar) += static_cast<uint16_t>((f.dwords + 1) & ~1);
        break;
      }
      default: break;
    }
  }
  const std::string_view name = row.mnemonic;
  if (name == "v_readlane_b32" || name == "v_writelane_b32") i.src[1] = scalar;
  if (row.encoding == Encoding::kSopk && form.find('D')) i.src[0] = i.dst;
  return i;
}

// The registers that a sample can touch, and the scalar state.
struct State {
  uint32_t vgpr[256][kLanes], sgpr[128];
  bool scc;
};

class Bench {
 public:
  explicit Bench(const IsaRow& row) : inst_(sample(row)), handler_(handlers()[&row - kIsa]) {
    wave_->group = &group_;
  }
  Inst& inst() { return inst_; }

  void start(uint64_t seed) {
    Random random{seed * 77 + 5};
    for (auto& reg : start_->vgpr)
      for (uint32_t& lane : reg) lane = 0x3f800000 ^ (random.next() & 0x01ffffff);
    for (uint32_t& s : start_->sgpr) s = random.next() ^ random.next() << 16;
    const uint64_t exec = ~0ull;
    std::memcpy(&start_->sgpr[kExecLo], &exec, 8);
    start_->sgpr[kM0] &= 3;
    start_->scc = seed & 1;
  }
  State& before() { return *start_; }
  void run(State& out) {
    std::memcpy(wave_->vgpr, start_->vgpr, sizeof start_->vgpr);
    std::memcpy(wave_->sgpr, start_->sgpr, sizeof start_->sgpr);
    wave_->scc = start_->scc;
    wave_->mode = kNearest;
    handler_(*wave_, inst_);
    std::memcpy(out.vgpr, wave_->vgpr, sizeof out.vgpr);
    std::memcpy(out.sgpr, wave_->sgpr, sizeof out.sgpr);
    out.scc = wave_->scc;
  }

 private:
  std::unique_ptr<Wave> wave_ = std::make_unique<Wave>();
  std::unique_ptr<State> start_ = std::make_unique<State>();
  Workgroup group_;
  Inst inst_;
  Handler handler_;
};

bool scalars_differ(const State& a, const State& b, uint16_t except, unsigned count) {
  for (unsigned s = 0; s < 128; ++s)
    if ((s < except || s >= except + count) && a.sgpr[s] != b.sgpr[s]) return true;
  return false;
}
bool vectors_differ(const State& a, const State& b) { return std::memcmp(a.vgpr, b.vgpr, sizeof a.vgpr) != 0; }

// Does the outcome follow the scalar registers [code, code + count), and are they written?
void probe_scalar(Bench& bench, uint16_t code, unsigned count, bool* reads, bool* writes) {
  auto one = std::make_unique<State>(), two = std::make_unique<State>();
  bench.run(*one);
  State& s = bench.before();
  *writes |= std::memcmp(&one->sgpr[code], &s.sgpr[code], 4 * count) != 0;
  uint32_t old[2];
  std::memcpy(old, &s.sgpr[code], 4 * count);
  for (unsigned n = 0; n < count; ++n) s.sgpr[code + n] ^= code == kM0 ? 1 : 0x5a5a5a5a;
  bench.run(*two);
  std::memcpy(&s.sgpr[code], old, 4 * count);
  *reads |= scalars_differ(*one, *two, code, count) || vectors_differ(*one, *two) || one->scc != two->scc;
}

void probe_scc(Bench& bench, LearnedState* out) {
  auto one = std::make_unique<State>(), two = std::make_unique<State>();
  bench.run(*one);
  bool& scc = bench.before().scc;
  out->writes_scc |= one->scc != scc;
  scc = !scc;
  bench.run(*two);
  out->writes_scc |= two->scc != scc;
  scc = !scc;
  out->reads_scc |= scalars_differ(*one, *two, 128, 0) || vectors_differ(*one, *two);
}

// Flips all bits of the old destination; bits that follow show that it is read.
bool probe_destination(Bench& bench, bool* written) {
  const uint16_t dst = bench.inst().dst;
  if (dst == kNoOperand) return false;
  auto one = std::make_unique<State>(), two = std::make_unique<State>();
  bench.run(*one);
  State& s = bench.before();
  if (dst < 128) {
    *written |= one->sgpr[dst] != s.sgpr[dst] || one->sgpr[dst + 1] != s.sgpr[dst + 1];
    s.sgpr[dst] ^= 0x00ff00ff;
  } else {
    *written = true;
    for (uint32_t& lane : s.vgpr[dst - kVgpr0]) lane ^= 0x00ff00ff;
  }
  bench.run(*two);
  return scalars_differ(*one, *two, 128, 0) || vectors_differ(*one, *two) || one->scc != two->scc;
}

LearnedState learn(const IsaRow& row) {
  LearnedState out;
  if (!can_run(row)) return out;
  const bool vector = is_vector_encoding(row.encoding);
  auto bench = std::make_unique<Bench>(row);
  const OperandForm* d = form_of(row).find('D');
  bool written = d == nullptr;
  for (int n = 0; n < kTries; ++n) {
    bool unused = false;
    bench->start(static_cast<uint64_t>(n));
    probe_scc(*bench, &out);
    probe_scalar(*bench, kVccLo, 2, &out.reads_vcc, &out.writes_vcc);
    probe_scalar(*bench, kM0, 1, &out.reads_m0, &out.writes_m0);
    probe_scalar(*bench, kExecLo, 2, vector ? &unused : &out.reads_exec, &out.writes_exec);
    out.reads_dst |= probe_destination(*bench, &written);
    if (!(form_of(row).op_sel_mask & 8)) continue;
    bench->start(static_cast<uint64_t>(n));
    bench->inst().op_sel = 8;
    out.reads_dst_high_half |= probe_destination(*bench, &written);
    bench->inst().op_sel = 0;
  }
  out.writes_dst = written;
  return out;
}

}  // namespace

const LearnedState& learned_state(const IsaRow& row) {
  struct Entry {
    std::once_flag once;
    LearnedState state;
  };
  static std::vector<Entry>* const entries = new std::vector<Entry>(kIsaRows);
  Entry& e = (*entries)[static_cast<size_t>(&row - kIsa)];
  std::call_once(e.once, [&] {
    std::fenv_t host;
    std::fegetenv(&host);
    e.state = learn(row);
    std::fesetenv(&host);
  });
  return e.state;
}

}  // namespace mi350::emu
