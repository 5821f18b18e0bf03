// Reads, writes and traits of an instruction; see footprint.h.
#include "check/footprint.h"

#include <new>
#include <string_view>

#include "check/learned_state.h"
#include "decode.h"
#include "mfma_passes.h"

namespace mi350::emu {
namespace {

bool contains(std::string_view s, std::string_view part) { return s.find(part) != std::string_view::npos; }

class Builder {
 public:
  explicit Builder(const Inst& i) : i_(i), name_(i.row->mnemonic), form_(form_of(*i.row)) {}

  Footprint build() {
    classify();
    if (is_memory()) memory_operands();
    else operands();
    implicit();
    out_.ready = true;
    return out_;
  }

 private:
  Encoding encoding() const { return i_.row->encoding; }
  bool is_memory() const {
    return encoding() == Encoding::kSmem || encoding() >= Encoding::kDs;
  }
  bool starts(std::string_view s) const { return name_.starts_with(s); }
  bool has(std::string_view s) const { return contains(name_, s); }
  unsigned dwords(char kind) const {
    const OperandForm* f = form_.find(kind);
    return f == nullptr ? 0 : f->dwords;
  }

  void read(uint16_t code, unsigned count, uint16_t role) {
    if (code == kVccz) { out_.traits |= kReadsVccz; code = kVccLo; count = 2; }
    if (code == kExecz) { out_.traits |= kReadsExecz; code = kExecLo; count = 2; }
    const bool is_register = code < 128 || code == kScc || (code >= kVgpr0 && code < kRegisterCodes);
    if (!is_register || count == 0 || out_.read_count == std::size(out_.reads)) return;
    out_.reads[out_.read_count++] = {code, static_cast<uint8_t>(count), role};
  }
  void write(uint16_t code, unsigned count) {
    const bool is_register = code < 128 || code == kScc || (code >= kVgpr0 && code < kRegisterCodes);
    if (!is_register || count == 0 || out_.write_count == std::size(out_.writes)) return;
    out_.writes[out_.write_count++] = {code, static_cast<uint8_t>(count), 0};
    if (code == kM0 || code == kExecLo || code == kExecHi) out_.traits |= kWritesExecOrM0;
  }

  void classify();
  void classify_valu();
  void classify_memory();
  void operands();
  void source(unsigned n, unsigned dwords);
  void memory_operands();
  void implicit();

  const Inst& i_;
  std::string_view name_;
  const RowForm& form_;
  Footprint out_;
};

void Builder::classify() {
  uint64_t& t = out_.traits;
  switch (i_.row->timing) {
    case IsaClass::kSalu: t |= kIsSalu; break;
    case IsaClass::kSmem: t |= kIsSmem; break;
    case IsaClass::kValu: t |= kIsValu; break;
    case IsaClass::kTrans: t |= kIsValu | kIsTrans; break;
    case IsaClass::kMfma: t |= kIsMfma; break;
    case IsaClass::kLds: t |= kIsLds; break;
    case IsaClass::kVmem: t |= kIsVmem; break;
    case IsaClass::kBranch: t |= kIsBranch; break;
    case IsaClass::kMessage: break;
  }
  if (t & kIsValu) classify_valu();
  if (is_memory()) classify_memory();
  if (starts("s_setreg")) t |= kIsSetreg;
  if (starts("s_getreg")) t |= kIsGetreg;
  if (name_ == "s_setvskip") t |= kIsSetvskip;
  if (name_ == "s_waitcnt") t |= kIsWaitcnt;
  if (starts("s_sendmsg") || starts("s_movrel")) t |= kNeedsM0;
}

void Builder::classify_valu() {
  uint64_t& t = out_.traits;
  if (i_.lane_mode == LaneMode::kDpp) t |= kIsDpp | kMovesLanes;
  if (starts("v_readlane") || starts("v_readfirstlane")) t |= kIsReadlane;
  if (starts("v_readfirstlane")) t |= kIsFirstLane;
  if (starts("v_writelane")) t |= kIsWritelane;
  if (t & (kIsReadlane | kIsWritelane)) t |= kIsLaneOp | kMovesLanes;
  if (starts("v_permlane")) t |= kIsPermlane | kMovesLanes;
  if (starts("v_div_fmas")) t |= kIsDivFmas;
  if (starts("v_cmpx")) t |= kIsCmpx;
  if (!(t & kIsTrans)) t |= kOtherThanTrans;
  if (!starts("v_dot")) t |= kOtherThanDot;
  const bool sdwa_part = i_.lane_mode == LaneMode::kSdwa && encoding() != Encoding::kVopc && i_.dst_sel < 6;
  const bool half_part = form_.packed == 0 && ((i_.op_sel & 8) != 0 || (has("cvt") && (i_.op_sel & 12) != 0));
  if (sdwa_part || half_part) t |= kIsPartialWrite;
}

void Builder::classify_memory() {
  uint64_t& t = out_.traits;
  t |= kIsMemory;
  const bool moves_only = starts("ds_swizzle") || starts("ds_permute") || starts("ds_bpermute");
  if (moves_only) t |= kMovesLanes;
  if (starts("ds_read") && has("_tr_")) t |= kIsTransposeRead;
  if (has("_addtid") || i_.lds) t |= kNeedsM0;
  if (has("_d16")) t |= kIsD16;
  if (has("_d16_hi")) t |= kIsD16High;
  if (has("atomic")) t |= kIsAtomic;
  // LDS read-modify-write: data goes in, and it is neither a store nor a lane permutation.
  if (encoding() == Encoding::kDs && form_.find('q') && !has("_write") && !moves_only) t |= kIsAtomic;
  const bool wide = dwords('q') >= 3 || has("cmpswap_x2");
  // A buffer store with a register in soffset has one more cycle to read its data.
  const bool spare_cycle = encoding() == Encoding::kMubuf && i_.soffset < 128;
  if ((t & kIsVmem) && form_.find('q') && wide && !spare_cycle) t |= kIsWideStore;
  if (encoding() == Encoding::kFlat) t |= kIsFlat;
  if ((t & kIsVmem) && name_ != "buffer_inv") t |= kCountsVm;
  if ((t & (kIsLds | kIsSmem)) || encoding() == Encoding::kFlat) t |= kCountsLgkm;
}

void Builder::source(unsigned n, unsigned dwords) {
  constexpr uint16_t kRoles[3] = {kRoleA, kRoleB, kRoleC};
  uint16_t role = kRoles[n];
  if (n == 1 && (out_.traits & kIsLaneOp)) role = kRoleLaneSelect;
  if (name_.ends_with("_f8f6f4") && n < 2) dwords = f8f6f4_operand_dwords(n == 0 ? i_.cbsz : i_.blgp);
  read(i_.src[n], dwords, role);
}

void Builder::operands() {
  const bool scalar = encoding() <= Encoding::kSopp;
  const LearnedState& learned = learned_state(*i_.row);
  const bool directed_high = i_.op_sel & 8;
  const bool keeps_rest = i_.lane_mode == LaneMode::kSdwa && i_.dst_sel < 6 && i_.dst_unused == 2;
  const bool reads_dst = (out_.traits & kIsMfma) ? starts("v_smfmac")
                         : directed_high && (form_.op_sel_mask & 8) ? learned.reads_dst_high_half
                                                                    : learned.reads_dst || keeps_rest;
  for (unsigned n = 0; n < form_.operand_count; ++n) {
    const OperandForm& f = form_.operands[n];
    switch (f.kind) {
      case 'd': case 'D':
        if (reads_dst) read(i_.dst, f.dwords, scalar && encoding() == Encoding::kSopk ? kRoleA : kRoleOld);
        if (out_.traits & kIsSetreg) read(i_.dst, f.dwords, kRoleA);
        else if (learned.writes_dst || !scalar) write(i_.dst, f.dwords);
        break;
      case 'a': case 'b': case 'c': {
        const bool shifted = f.kind == 'b' && form_.operands[2].kind == 'l';
        source(shifted ? 2 : static_cast<unsigned>(f.kind - 'a'), f.dwords);
        break;
      }
      case 'o': write(i_.sdst, f.dwords); break;
      case 'm': if (!scalar) read(i_.src[2], f.dwords, kRoleMask); break;
      case 'x': read(i_.scale_src[0], 1, kRoleScale); break;
      case 'y': read(i_.scale_src[1], 1, kRoleScale); break;
      default: break;
    }
  }
  // The swaps write their source too.
  if (has("_swap_b32")) {
    write(i_.src[0], 1);
    read(i_.dst, 1, kRoleOld);
  }
}

void Builder::memory_operands() {
  const Encoding e = encoding();
  if (i_.addr != kNoOperand) {
    unsigned count = 1;
    if (e == Encoding::kMubuf) count = static_cast<unsigned>(i_.offen) + i_.idxen;
    if (e == Encoding::kFlat || (e == Encoding::kGlobal && i_.sbase == kNoOperand)) count = 2;
    read(i_.addr, count, kRoleAddress);
  }
  if (e == Encoding::kMubuf && form_.operand_count != 0) read(i_.sbase, 4, kRoleResource);
  else if (e == Encoding::kSmem) read(i_.sbase, dwords('s'), dwords('s') == 4 ? kRoleResource : kRoleBase);
  else read(i_.sbase, e == Encoding::kGlobal ? 2 : 1, kRoleBase);
  read(i_.soffset, 1, kRoleBase);
  read(i_.data, dwords('q'), kRoleData);
  read(i_.data1, dwords('r'), kRoleData);
  const unsigned result = form_.find('d') ? dwords('d') : form_.find('D') ? dwords('D') : dwords('q');
  if (i_.dst != kNoOperand) {
    if (out_.traits & kIsD16) read(i_.dst, result, kRoleOld);
    write(i_.dst, result);
  }
  if ((out_.traits & kNeedsM0) != 0) read(kM0, 1, kRoleBase);
}

void Builder::implicit() {
  const LearnedState& learned = learned_state(*i_.row);
  const bool scalar = encoding() <= Encoding::kSopp;
  if (learned.reads_scc || starts("s_cbranch_scc")) read(kScc, 1, kRoleImplicit);
  if (learned.writes_scc) write(kScc, 1);
  if (learned.reads_vcc || starts("s_cbranch_vcc")) read(kVccLo, 2, kRoleImplicit);
  if ((scalar && learned.reads_exec) || starts("s_cbranch_exec")) read(kExecLo, 2, kRoleImplicit);
  if (learned.writes_exec || (out_.traits & kIsCmpx)) write(kExecLo, 2);
  if (learned.reads_m0 && !is_memory()) read(kM0, 1, kRoleImplicit);
  if (learned.writes_m0) write(kM0, 1);
}

}  // namespace

Footprint footprint_of(const Inst& i) {
  if (i.row == nullptr) {
    Footprint f;
    f.ready = true;
    return f;
  }
  return Builder(i).build();
}

Footprints::Footprints(const Program& program)
    : first_(program.insts.data()),
      size_(program.insts.size()),
      table_(static_cast<Footprint*>(std::calloc(program.insts.size(), sizeof(Footprint)))) {
  if (table_ == nullptr) throw std::bad_alloc();
}

std::string register_name(uint16_t code, unsigned count) {
  switch (code) {
    case kVccLo: return count > 1 ? "vcc" : "vcc_lo";
    case kVccHi: return "vcc_hi";
    case kM0: return "m0";
    case kExecLo: return count > 1 ? "exec" : "exec_lo";
    case kExecHi: return "exec_hi";
    case kScc: return "scc";
    case kFlatScratchLo: return "flat_scratch";
    default: break;
  }
  const std::string file(1, code >= kAcc0 ? 'a' : code >= kVgpr0 ? 'v' : 's');
  const unsigned n = code >= kAcc0 ? code - kAcc0 : code >= kVgpr0 ? code - kVgpr0 : code;
  if (count <= 1) return file + std::to_string(n);
  return file + "[" + std::to_string(n) + ":" + std::to_string(n + count - 1) + "]";
}

}  // namespace mi350::emu
