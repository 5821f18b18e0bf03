// One footprint look-up per instruction for all register checkers, see register_checks.h.
#include "check/register_checks.h"

#include <bit>

#include "dispatch.h"

namespace mi350::emu {
namespace {

constexpr uint32_t kModeGprIndex = 1u << 27;

// s_set_gpr_idx adds M0's low byte to the VGPR numbers of the operands that its mode bits name.
Inst indexed(const Wave& w, Inst i) {
  const uint32_t m0 = w.sgpr[kM0];
  const auto shift = [m0](uint16_t code, int operand) {
    const bool applies = code >= kVgpr0 && code < kAcc0 && (m0 >> (12 + operand) & 1);
    return applies ? static_cast<uint16_t>(kVgpr0 + ((code - kVgpr0 + (m0 & 0xff)) & 0xff)) : code;
  };
  for (int n = 0; n < 3; ++n) i.src[n] = shift(i.src[n], n);
  i.dst = shift(i.dst, 3);
  return i;
}

class RegisterChecks final : public Part {
 public:
  RegisterChecks(Reporter& reporter, std::shared_ptr<UndefinedMemory> memory)
      : reporter_(reporter), footprints_(reporter.launch.object->program), in_flight_(reporter),
        wait_states_(reporter, footprints_), definedness_(reporter, std::move(memory)) {}

  unsigned wants(const Inst& i) const override {
    const bool nop = i.row->encoding == Encoding::kSopp && i.row->opcode == 0;
    return nop ? kNothing : kBefore;
  }
  void start_group(Workgroup& g) override { definedness_.start_group(g); }
  void start_wave(Wave& w) override {
    in_flight_.start_wave(w);
    wait_states_.start_wave(w);
    definedness_.start_wave(w);
  }
  void before(Wave& w, const Inst& i) override {
    const Footprint& f = footprints_.of(i);
    if ((w.mode & kModeGprIndex) && f.is(kIsValu)) [[unlikely]] return before_indexed(w, i);
    in_flight_.before(w, i, f);
    wait_states_.before(w, i, f);
    if (f.is(kIsTransposeRead | kIsMfma) && w.exec() != ~0ull) [[unlikely]] exec_not_full(w, i, f);
    definedness_.before(w, i, f);
    if (f.is(kIsSetvskip)) [[unlikely]] in_flight_.forget(w);
  }
  void access(Wave& w, const Inst& i, const Access& a) override { definedness_.access(w, i, footprints_.of(i), a); }

 private:
  void before_indexed(Wave& w, const Inst& i) {
    const Inst plain = indexed(w, i);
    const Footprint f = footprint_of(plain);
    in_flight_.before(w, plain, f);
    const uint32_t mode = w.mode;
    w.mode &= ~kModeGprIndex;
    definedness_.before(w, plain, f);
    w.mode = mode;
  }
  void exec_not_full(Wave& w, const Inst& i, const Footprint& f) {
    const bool transpose = f.is(kIsTransposeRead);
    Finding* found = reporter_.open(w, i, "exec-not-full", transpose ? Severity::kError : Severity::kAdvisory);
    if (found == nullptr) return;
    found->lane = std::countr_one(w.exec());
    found->message = transpose ? "a transpose read with lanes off: their rows are missing from the other lanes"
                               : "an MFMA ignores EXEC: lanes that are off take part and are written";
  }

  Reporter& reporter_;
  Footprints footprints_;
  InFlight in_flight_;
  WaitStates wait_states_;
  Definedness definedness_;
};

}  // namespace

std::unique_ptr<Part> make_register_checks(Reporter& reporter, std::shared_ptr<UndefinedMemory> memory) {
  return std::make_unique<RegisterChecks>(reporter, std::move(memory));
}

}  // namespace mi350::emu
