// What an instruction reads and writes: registers as spans of operand codes, and the traits that the register
// checkers ask for. Explicit operands follow from isa.def; state that no operand names (SCC, VCC, EXEC, M0,
// a destination that is also read) is learned by running the row's handler on two states that differ in it.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "isa.h"
#include "wave.h"

namespace mi350::emu {

struct Program;

// Operand codes name registers: SGPRs with VCC, M0, EXEC below 128, SCC by kScc, VGPRs from kVgpr0, AccVGPRs
// from kAcc0.
constexpr unsigned kRegisterCodes = 768;

enum Role : uint16_t {
  kRoleA = 1, kRoleB = 2, kRoleC = 4,      // plain sources
  kRoleMask = 8,                           // carry-in or select mask
  kRoleAddress = 16, kRoleData = 32,       // of memory instructions
  kRoleResource = 64, kRoleBase = 128,     // descriptor; scalar base or offset
  kRoleOld = 256,                          // the destination, where the instruction keeps or combines it
  kRoleImplicit = 512, kRoleLaneSelect = 1024, kRoleScale = 2048,
};
constexpr uint16_t kRoleSources = kRoleA | kRoleB | kRoleC;

struct RegisterSpan {
  uint16_t first = 0;
  uint8_t count = 0;
  uint16_t role = 0;
};

enum Trait : uint64_t {
  kIsSalu = 1u << 0, kIsValu = 1u << 1, kIsTrans = 1u << 2, kIsMfma = 1u << 3, kIsVmem = 1u << 4,
  kIsLds = 1u << 5, kIsSmem = 1u << 6, kIsFlat = 1u << 7, kIsBranch = 1u << 8, kIsMemory = 1u << 9,
  kIsDpp = 1u << 10, kIsReadlane = 1u << 11, kIsFirstLane = 1u << 12, kIsWritelane = 1u << 13,
  kIsLaneOp = 1u << 14,                 // any of the three
  kIsPermlane = 1u << 15, kMovesLanes = 1u << 16, kIsDivFmas = 1u << 17, kIsCmpx = 1u << 18,
  kOtherThanTrans = 1u << 19,           // VALU that is not transcendental
  kOtherThanDot = 1u << 20,             // VALU that is not a dot product
  kIsPartialWrite = 1u << 21, kReadsVccz = 1u << 22, kReadsExecz = 1u << 23,
  kIsSetreg = 1u << 24, kIsGetreg = 1u << 25, kIsSetvskip = 1u << 26, kNeedsM0 = 1u << 27,
  kWritesExecOrM0 = 1u << 28, kIsWaitcnt = 1u << 29, kCountsVm = 1u << 30, kCountsLgkm = 1u << 31,
  kIsWideStore = 1ull << 32, kIsAtomic = 1ull << 33, kIsTransposeRead = 1ull << 34,
  kIsD16 = 1ull << 35, kIsD16High = 1ull << 36,
};

struct Footprint {
  RegisterSpan reads[10], writes[4];
  uint8_t read_count = 0, write_count = 0;
  bool ready = false;
  uint64_t traits = 0;

  bool is(uint64_t t) const { return (traits & t) != 0; }
};

Footprint footprint_of(const Inst& i);

// Footprints of one program, each made when it is first asked for.
class Footprints {
 public:
  explicit Footprints(const Program& program);
  const Footprint& of(const Inst& i) {
    Footprint& f = table_[&i - first_];
    if (!f.ready) [[unlikely]] f = footprint_of(i);
    return f;
  }
  size_t index(const Inst& i) const { return static_cast<size_t>(&i - first_); }
  const Inst& inst(size_t index) const { return first_[index]; }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(Footprint* p) const { std::free(p); }
  };
  const Inst* first_;
  size_t size_;
  std::unique_ptr<Footprint[], Free> table_;  // pages that no instruction touched cost nothing
};

// "v12", "v[4:7]", "a3", "s[0:1]", "vcc", "exec", "m0", "scc".
std::string register_name(uint16_t code, unsigned count);

}  // namespace mi350::emu
