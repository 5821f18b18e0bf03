// Inst to assembly text. The operand list comes from isa.def; modifiers follow in LLVM's order.
#include "print.h"

#include <cstdio>
#include <string_view>

#include "isa.h"

namespace mi350::emu {
namespace {

std::string hex(uint32_t v) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", v);
  return text;
}
std::string number(int64_t v) { return std::to_string(v); }

// Constants that would fit an inline constant print as decimal.
std::string small_or_hex(int32_t v) { return v <= 64 ? number(v) : hex(static_cast<uint32_t>(v)); }
std::string signed_hex(int32_t v) {
  const auto bits = static_cast<uint32_t>(v);
  return v < 0 ? "-" + hex(0u - bits) : hex(bits);
}

std::string register_range(const char* file, unsigned first, unsigned dwords) {
  if (dwords <= 1) return file + number(first);
  return std::string(file) + "[" + number(first) + ":" + number(first + dwords - 1) + "]";
}

struct SpecialRegister { uint16_t code; const char* name; const char* pair; };
constexpr SpecialRegister kSpecial[] = {
    {kFlatScratchLo, "flat_scratch_lo", "flat_scratch"}, {kFlatScratchHi, "flat_scratch_hi", nullptr},
    {kXnackMaskLo, "xnack_mask_lo", "xnack_mask"}, {kXnackMaskHi, "xnack_mask_hi", nullptr},
    {kVccLo, "vcc_lo", "vcc"}, {kVccHi, "vcc_hi", nullptr}, {kM0, "m0", nullptr}, {125, "null", "null"},
    {kExecLo, "exec_lo", "exec"}, {kExecHi, "exec_hi", nullptr},
    {kSharedBase, "src_shared_base", "src_shared_base"},
    {kSharedLimit, "src_shared_limit", "src_shared_limit"},
    {kPrivateBase, "src_private_base", "src_private_base"},
    {kPrivateLimit, "src_private_limit", "src_private_limit"},
    {239, "src_pops_exiting_wave_id", "src_pops_exiting_wave_id"},
    {kVccz, "src_vccz", "src_vccz"}, {kExecz, "src_execz", "src_execz"}, {kScc, "src_scc", "src_scc"},
    {254, "src_lds_direct", nullptr},
};

constexpr uint32_t kFloat32[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                 0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
constexpr uint16_t kFloat16[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
constexpr uint16_t kBfloat16[] = {0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x4080, 0xc080, 0x3e23};
constexpr uint32_t kFloat64High[] = {0x3fe00000, 0xbfe00000, 0x3ff00000, 0xbff00000,
                                     0x40000000, 0xc0000000, 0x40100000, 0xc0100000};
constexpr const char* kFloatText[] = {"0.5",  "-0.5", "1.0",  "-1.0",      "2.0",
                                      "-2.0", "4.0",  "-4.0", "0.15915494"};

constexpr bool inline_int(int64_t v) { return v >= -16 && v <= 64; }
template <class T, size_t N>
int index_in(const T (&table)[N], uint32_t v) {
  for (size_t n = 0; n < N; ++n)
    if (table[n] == v) return static_cast<int>(n);
  return -1;
}

// Whether an inline constant could have carried the literal: then it prints as lit(), so that the text
// assembles back to the same words.
bool could_be_inline(uint32_t v, unsigned dwords, char suffix) {
  const auto half = static_cast<int16_t>(v);
  const bool small = inline_int(static_cast<int32_t>(v));
  if (dwords == 2) return v <= 64;
  switch (suffix) {
    case 'h': return inline_int(half) || index_in(kFloat16, v & 0xffff) >= 0;
    case 'b': return inline_int(half) || index_in(kBfloat16, v & 0xffff) >= 0;
    case 'p': return small || index_in(kFloat16, v) >= 0;
    case 'P': return small || index_in(kBfloat16, v) >= 0;
    default: return small || index_in(kFloat32, v) >= 0;
  }
}

std::string literal(uint32_t v, unsigned dwords, char suffix) {
  if (suffix == 'd') {  // the high half of a double
    const int n = index_in(kFloat64High, v);
    return v == 0 ? "0" : n >= 0 ? kFloatText[n] : hex(v);
  }
  if (could_be_inline(v, dwords, suffix)) return "lit(" + hex(v) + ")";
  return hex(suffix == 'h' || suffix == 'i' ? v & 0xffff : v);
}

// s_setreg_imm32: the constant prints as an inline constant where it could be one.
std::string plain_constant(uint32_t v) {
  const int n = index_in(kFloat32, v);
  if (inline_int(static_cast<int32_t>(v))) return number(static_cast<int32_t>(v));
  return n >= 0 ? kFloatText[n] : hex(v);
}

// Inline float constants 240..248; the 16-bit integer kinds print the half-precision bits.
std::string float_constant(uint16_t code, char suffix, bool wide) {
  const unsigned n = code - kFloatHalf;
  if (suffix == 'i') return hex(kFloat16[n]);
  if (n == 8 && wide) return "0.15915494309189532";
  return kFloatText[n];
}

std::string operand(const Inst& i, uint16_t code, unsigned dwords, char suffix, bool wide) {
  if (code >= kAcc0) return register_range("a", code - kAcc0, dwords);
  if (code >= kVgpr0) return register_range("v", code - kVgpr0, dwords);
  if (code < kFlatScratchLo) return register_range("s", code, dwords);
  if (code >= kTtmp0 && code < kM0) return register_range("ttmp", code - kTtmp0, dwords);
  if (code >= 128 && code <= 192) return number(code - 128);
  if (code > 192 && code <= 208) return number(192 - code);
  if (code >= kFloatHalf && code <= 248) return float_constant(code, suffix, wide);
  if (code == kLiteral) return literal(i.literal, dwords, suffix);
  for (const SpecialRegister& s : kSpecial)
    if (s.code == code && (dwords < 2 || s.pair)) return dwords < 2 ? s.name : s.pair;
  return "?" + number(code);
}

std::string list(const char* name, unsigned mask, unsigned count) {
  std::string text = std::string(" ") + name + ":[";
  for (unsigned n = 0; n < count; ++n) text += (n ? "," : "") + number((mask >> n) & 1);
  return text + "]";
}

std::string wait_counters(uint32_t simm) {
  const uint32_t vm = (simm & 15) | ((simm >> 10) & 0x30), exp = (simm >> 4) & 7, lgkm = (simm >> 8) & 15;
  const bool all_off = vm == 63 && exp == 7 && lgkm == 15;
  std::string text;
  auto add = [&](const char* name, uint32_t value, uint32_t off) {
    if (value == off && !all_off) return;
    text += (text.empty() ? "" : " ") + std::string(name) + "(" + number(value) + ")";
  };
  add("vmcnt", vm, 63);
  add("expcnt", exp, 7);
  add("lgkmcnt", lgkm, 15);
  return text;
}

const char* hardware_register(uint32_t id) {
  switch (id) {
    case 1: return "HW_REG_MODE"; case 2: return "HW_REG_STATUS"; case 3: return "HW_REG_TRAPSTS";
    case 4: return "HW_REG_HW_ID"; case 5: return "HW_REG_GPR_ALLOC"; case 6: return "HW_REG_LDS_ALLOC";
    case 7: return "HW_REG_IB_STS"; case 15: return "HW_REG_SH_MEM_BASES"; case 16: return "HW_REG_TBA_LO";
    case 17: return "HW_REG_TBA_HI"; case 18: return "HW_REG_TMA_LO"; case 19: return "HW_REG_TMA_HI";
    case 20: return "HW_REG_XCC_ID"; case 21: return "HW_REG_SQ_PERF_SNAPSHOT_DATA";
    case 22: return "HW_REG_SQ_PERF_SNAPSHOT_DATA1"; case 23: return "HW_REG_SQ_PERF_SNAPSHOT_PC_LO";
    case 24: return "HW_REG_SQ_PERF_SNAPSHOT_PC_HI";
    default: return nullptr;
  }
}

std::string hwreg(uint32_t simm) {
  const uint32_t id = simm & 63, offset = (simm >> 6) & 31, width = ((simm >> 11) & 31) + 1;
  const char* name = hardware_register(id);
  std::string text = "hwreg(" + (name ? std::string(name) : number(id));
  if (offset != 0 || width != 32) text += ", " + number(offset) + ", " + number(width);
  return text + ")";
}

std::string gpr_index_mode(uint32_t bits) {
  constexpr const char* kNames[] = {"SRC0", "SRC1", "SRC2", "DST"};
  if (bits > 15) return hex(bits);
  std::string text = "gpr_idx(";
  bool any = false;
  for (unsigned n = 0; n < 4; ++n) {
    if (!((bits >> n) & 1)) continue;
    text += (any ? "," : "") + std::string(kNames[n]);
    any = true;
  }
  return text + ")";
}

std::string message(uint32_t simm) {
  constexpr const char* kGsOps[] = {"GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"};
  constexpr const char* kSysOps[] = {nullptr, "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD",
                                     nullptr, "SYSMSG_OP_TTRACE_PC"};
  const uint32_t id = simm & 15, op = (simm >> 4) & 7, stream = (simm >> 8) & 3;
  auto named = [&](const char* name) { return "sendmsg(" + std::string(name) + ")"; };
  if (op == 0 && stream == 0) {
    switch (id) {
      case 1: return named("MSG_INTERRUPT");
      case 4: return named("MSG_SAVEWAVE");
      case 5: return named("MSG_STALL_WAVE_GEN");
      case 6: return named("MSG_HALT_WAVES");
      case 7: return named("MSG_ORDERED_PS_DONE");
      case 8: return named("MSG_EARLY_PRIM_DEALLOC");
      case 9: return named("MSG_GS_ALLOC_REQ");
      case 10: return named("MSG_GET_DOORBELL");
      default: break;
    }
  }
  if (id == 3 && op < 4 && !(op == 0 && stream)) {
    std::string text = std::string("sendmsg(MSG_GS_DONE, ") + kGsOps[op];
    if (op) text += ", " + number(stream);
    return text + ")";
  }
  if (id == 2 && op > 0 && op < 4)
    return std::string("sendmsg(MSG_GS, ") + kGsOps[op] + ", " + number(stream) + ")";
  if (id == 15 && op < 5 && stream == 0 && kSysOps[op])
    return std::string("sendmsg(MSG_SYSMSG, ") + kSysOps[op] + ")";
  if (simm & ~0x37fu) return number(simm);
  return "sendmsg(" + number(id) + ", " + number(op) + ", " + number(stream) + ")";
}

std::string dpp_control(uint16_t c) {
  const std::string low = number(c & 15);
  if (c < 0x100)
    return "quad_perm:[" + number(c & 3) + "," + number((c >> 2) & 3) + "," + number((c >> 4) & 3) + "," +
           number((c >> 6) & 3) + "]";
  switch (c) {
    case 0x130: return "wave_shl:1"; case 0x134: return "wave_rol:1";
    case 0x138: return "wave_shr:1"; case 0x13c: return "wave_ror:1";
    case 0x140: return "row_mirror"; case 0x141: return "row_half_mirror";
    case 0x142: return "row_bcast:15"; case 0x143: return "row_bcast:31";
    default: break;
  }
  if (c & 15) {
    if (c >> 4 == 0x10) return "row_shl:" + low;
    if (c >> 4 == 0x11) return "row_shr:" + low;
    if (c >> 4 == 0x12) return "row_ror:" + low;
  }
  if (c >> 4 == 0x15) return "row_newbcast:" + low;
  return "dpp_ctrl:" + hex(c);
}

bool single_bit(uint32_t v) { return v && !(v & (v - 1)); }

std::string bitmask_swizzle(uint32_t and_mask, uint32_t or_mask, uint32_t xor_mask) {
  if (and_mask == 31 && or_mask == 0 && single_bit(xor_mask)) return "SWAP," + number(xor_mask);
  if (and_mask == 31 && or_mask == 0 && xor_mask && single_bit(xor_mask + 1))
    return "REVERSE," + number(xor_mask + 1);
  const uint32_t group = 32 - and_mask;
  if (group > 1 && single_bit(group) && or_mask < group && xor_mask == 0)
    return "BROADCAST," + number(group) + "," + number(or_mask);
  std::string text = "BITMASK_PERM,\"";
  for (uint32_t mask = 16; mask; mask >>= 1) {
    const bool of_zero = (or_mask ^ xor_mask) & mask, of_one = ((and_mask | or_mask) ^ xor_mask) & mask;
    text += of_zero == of_one ? (of_zero ? '1' : '0') : (of_zero ? 'i' : 'p');
  }
  return text + "\"";
}

std::string swizzle(uint32_t v) {
  if (v == 0) return "";
  if (v >= 0xe000) return " offset:swizzle(FFT," + number(v & 31) + ")";
  if (v >= 0xc000)
    return " offset:swizzle(ROTATE," + number((v >> 10) & 1) + "," + number((v >> 5) & 31) + ")";
  if ((v & 0xff00) == 0x8000)
    return " offset:swizzle(QUAD_PERM," + number(v & 3) + "," + number((v >> 2) & 3) + "," +
           number((v >> 4) & 3) + "," + number((v >> 6) & 3) + ")";
  if (v & 0x8000) return " offset:" + number(v);
  return " offset:swizzle(" + bitmask_swizzle(v & 31, (v >> 5) & 31, (v >> 10) & 31) + ")";
}

// Data and number format of MTBUF; the defaults (8, UNORM) do not print.
std::string buffer_format(uint32_t format) {
  constexpr const char* kData[] = {"INVALID",  "8",           "16",      "8_8",         "32",     "16_16",
                                   "10_11_11", "11_11_10",    "10_10_10_2", "2_10_10_10", "8_8_8_8", "32_32",
                                   "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15"};
  constexpr const char* kNumber[] = {"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6",
                                     "FLOAT"};
  const uint32_t data = format & 15, number = format >> 4 & 7;
  if (data == 1 && number == 0) return "";
  std::string text = " format:[";
  if (data != 1) text += std::string("BUF_DATA_FORMAT_") + kData[data];
  if (number != 0) text += (data != 1 ? "," : "") + std::string("BUF_NUM_FORMAT_") + kNumber[number];
  return text + "]";
}

// F8F6F4: the registers of A and B follow from the format that cbsz and blgp name.
unsigned f8f6f4_dwords(uint8_t format) { return format == 4 ? 4 : format == 2 || format == 3 ? 6 : 8; }

struct Printer {
  const Inst& i;
  const RowForm& form;
  std::string text;
  bool first = true;

  explicit Printer(const Inst& inst) : i(inst), form(form_of(*inst.row)), text(inst.row->mnemonic) {}

  std::string_view mnemonic() const { return i.row->mnemonic; }
  bool is_f8f6f4() const { return mnemonic().ends_with("_f8f6f4"); }
  bool short_vector() const {
    const Encoding e = i.row->encoding;
    return e == Encoding::kVop1 || e == Encoding::kVop2 || e == Encoding::kVopc;
  }
  bool in_vop3() const {
    return short_vector() && i.lane_mode == LaneMode::kPlain && i.words[0] >> 26 == 0b110100;
  }

  void put(const std::string& s) {
    text += (first ? " " : ", ") + s;
    first = false;
  }

  void name_suffix() {
    if (!short_vector() || form.no_suffix) return;
    if (i.lane_mode == LaneMode::kDpp) text += "_dpp";
    else if (i.lane_mode == LaneMode::kSdwa) text += "_sdwa";
    else text += in_vop3() ? "_e64" : "_e32";
  }

  void source(unsigned n, const OperandForm& f) {
    const uint16_t code = i.src[n];
    unsigned dwords = f.dwords;
    if (is_f8f6f4() && n < 2) dwords = f8f6f4_dwords(n == 0 ? i.cbsz : i.blgp);
    const bool scalar = i.row->encoding < Encoding::kVop1;
    const bool wide = f.suffix == 'd' || f.suffix == 'l' || (scalar && dwords == 2);
    std::string s = operand(i, code, dwords, f.suffix, wide);
    const bool packed = form.packed && form.packed != 'x';
    if (!packed && i.row->encoding != Encoding::kMai) {
      const bool literal_like =
          (code >= kInt0 && code <= 208) || (code >= kFloatHalf && code <= 248) || code == kLiteral;
      if ((i.abs >> n) & 1) s = "|" + s + "|";
      if ((i.neg >> n) & 1) s = literal_like && !((i.abs >> n) & 1) ? "neg(" + s + ")" : "-" + s;
    }
    const bool sext = i.lane_mode == LaneMode::kSdwa && ((n == 0 && i.src0_sext) || (n == 1 && i.src1_sext));
    if (sext) s = "sext(" + s + ")";
    put(s);
  }

  void operands();
  void memory_operands();
  void operand_of(const OperandForm& f);
  void modifiers();
  void vop3_modifiers();
  void vop3p_modifiers();
  void mai_modifiers();
  void lane_modifiers();
  void memory_modifiers();
  void cache_bits() {
    if (i.sc0) text += " sc0";
    if (i.nt) text += " nt";
    if (i.sc1) text += " sc1";
  }
};

void Printer::operand_of(const OperandForm& f) {
  const Encoding e = i.row->encoding;
  switch (f.kind) {
    case 'd': case 'D': put(operand(i, i.dst, f.dwords, 0, false)); break;
    case 'a': source(0, f); break;
    case 'b': source(form.operands[2].kind == 'l' ? 2 : 1, f); break;  // behind the literal: src[2]
    case 'c': source(2, f); break;
    case 'm':
      if (e == Encoding::kSopp) put(message(static_cast<uint32_t>(i.imm)));
      else put(operand(i, i.src[2], 2, 0, false));
      break;
    case 'o':
      if (e != Encoding::kSmem) put(operand(i, i.sdst, 2, 0, false));
      else if (i.soffset != kNoOperand) put(operand(i, i.soffset, 1, 0, false));
      else put(signed_hex(i.imm));
      break;
    case 'k': put(hex(static_cast<uint32_t>(i.imm) & 0xffff)); break;
    case 't': put(number(i.imm & 0xffff)); break;
    case 'i': put(small_or_hex(e == Encoding::kSmem ? i.data : i.imm)); break;
    case 'e': if (i.imm) put(number(i.imm)); break;
    case 'l': put(e == Encoding::kSopk ? plain_constant(i.literal) : hex(i.literal)); break;
    case 'h': put(hwreg(static_cast<uint32_t>(i.imm) & 0xffff)); break;
    case 'w': put(wait_counters(static_cast<uint32_t>(i.imm) & 0xffff)); break;
    case 'g': put(gpr_index_mode(static_cast<uint32_t>(i.imm))); break;
    case 'p': put(operand(i, i.addr, f.dwords, 0, false)); break;
    case 'q': put(operand(i, i.data, f.dwords, 0, false)); break;
    case 'r': put(operand(i, i.data1, f.dwords, 0, false)); break;
    case 's': put(operand(i, i.sbase, f.dwords, 0, false)); break;
    case 'x': put(operand(i, i.scale_src[0], 1, 0, false)); break;
    case 'y': put(operand(i, i.scale_src[1], 1, 0, false)); break;
    default: break;
  }
}

// Buffer, global, scratch and flat: data and address follow from the encoding.
void Printer::memory_operands() {
  const Encoding e = i.row->encoding;
  const OperandForm *d = form.find('d'), *q = form.find('q');
  if (e == Encoding::kMubuf || e == Encoding::kMtbuf) {
    if (!form.operand_count) return;
    if (!i.lds) put(operand(i, q ? i.data : i.dst, (q ? q : d)->dwords, 0, false));
    put(i.addr == kNoOperand ? "off" : operand(i, i.addr, i.offen && i.idxen ? 2 : 1, 0, false));
    put(operand(i, i.sbase, 4, 0, false));
    put(operand(i, i.soffset, 1, 0, false));
    return;
  }
  const bool base = i.sbase != kNoOperand;
  if (d && i.dst != kNoOperand) put(operand(i, i.dst, d->dwords, 0, false));
  const unsigned address_dwords = e == Encoding::kScratch || base ? 1 : 2;
  put(i.addr == kNoOperand ? "off" : operand(i, i.addr, address_dwords, 0, false));
  if (q) put(operand(i, i.data, q->dwords, 0, false));
  if (e == Encoding::kFlat) return;
  put(base ? operand(i, i.sbase, e == Encoding::kGlobal ? 2 : 1, 0, false) : "off");
}

void Printer::operands() {
  switch (i.row->encoding) {
    case Encoding::kMubuf: case Encoding::kMtbuf: case Encoding::kGlobal: case Encoding::kScratch:
    case Encoding::kFlat:
      memory_operands();
      return;
    default:
      for (unsigned n = 0; n < form.operand_count; ++n) operand_of(form.operands[n]);
  }
}

void Printer::vop3_modifiers() {
  constexpr const char* kOmod[] = {"", " mul:2", " mul:4", " div:2"};
  if (mnemonic().starts_with("v_bitop3") && i.imm)
    text += " bitop3:" + (i.imm <= 10 ? number(i.imm) : hex(static_cast<uint32_t>(i.imm)));
  if (form.op_sel_mask == 3) {  // v_permlane*_swap
    text += i.op_sel & 2 ? " bound_ctrl:1" : "";
    text += i.op_sel & 1 ? " fi:1" : "";
  } else if (i.op_sel) {
    const bool four = form.op_sel_mask == 15;  // else the destination bit follows the bits of two sources
    text += list("op_sel", four ? i.op_sel : (i.op_sel & 3) | (i.op_sel >> 1 & 4), four ? 4 : 3);
  }
  if (i.clamp) text += " clamp";
  text += kOmod[i.omod];
}

void Printer::vop3p_modifiers() {
  const unsigned sources = form.find('c') ? 3 : 2, all = (1u << sources) - 1;
  const unsigned default_high = form.packed == 'x' ? 0 : all;
  if (form.packed != 'q') {
    if (i.op_sel & all) text += list("op_sel", i.op_sel, sources);
    if ((i.op_sel_hi & all) != default_high) text += list("op_sel_hi", i.op_sel_hi, sources);
  }
  if (form.packed != 'x') {
    if (i.neg & all) text += list("neg_lo", i.neg, sources);
    if (i.abs & all) text += list("neg_hi", i.abs, sources);
  }
  if (i.clamp) text += " clamp";
}

void Printer::mai_modifiers() {
  if (i.scale_src[0] != kNoOperand) {
    const unsigned low = (i.scale_sel[0] & 1) | (i.scale_sel[1] & 1) << 1;
    const unsigned high = i.scale_sel[0] >> 1 | (i.scale_sel[1] >> 1) << 1;
    if (low) text += list("op_sel", low, 3);
    text += list("op_sel_hi", high, 3);
  }
  if (i.cbsz) text += " cbsz:" + number(i.cbsz);
  if (i.abid && i.scale_src[0] == kNoOperand) text += " abid:" + number(i.abid);
  if (!i.blgp) return;
  if (mnemonic().starts_with("v_mfma_f64")) text += list("neg", i.blgp, 3);
  else text += " blgp:" + number(i.blgp);
}

void Printer::lane_modifiers() {
  constexpr const char* kSel[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD", "?"};
  constexpr const char* kUnused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "?"};
  if (i.lane_mode == LaneMode::kDpp) {
    text += " " + dpp_control(i.dpp_ctrl) + " row_mask:" + hex(i.row_mask) + " bank_mask:" + hex(i.bank_mask);
    if (i.bound_ctrl) text += " bound_ctrl:1";
  }
  if (i.lane_mode != LaneMode::kSdwa) return;
  if (i.row->encoding != Encoding::kVopc && !form.sdwa_source_only)
    text += std::string(" dst_sel:") + kSel[i.dst_sel] + " dst_unused:" + kUnused[i.dst_unused];
  text += std::string(" src0_sel:") + kSel[i.src0_sel];
  if (i.row->encoding != Encoding::kVop1) text += std::string(" src1_sel:") + kSel[i.src1_sel];
}

void Printer::memory_modifiers() {
  switch (i.row->encoding) {
    case Encoding::kSmem:
      if (i.soffset != kNoOperand && ((i.words[0] >> 17) & 1)) text += " offset:" + signed_hex(i.imm);
      if (i.sc0 && form.find('s') && (form.find('D') || form.find('q'))) text += " glc";
      break;
    case Encoding::kDs:
      if (form.swizzle) text += swizzle(static_cast<uint32_t>(i.imm));
      else if (form.two_offsets) {
        if (i.imm & 255) text += " offset0:" + number(i.imm & 255);
        if (i.imm >> 8) text += " offset1:" + number(i.imm >> 8);
      } else if (i.imm) {
        text += " offset:" + number(i.imm);
      }
      if (form.gds) text += " gds";
      break;
    case Encoding::kMubuf:
      if (!form.operand_count) {
        text += i.sc0 && i.sc1 ? " sc0 sc1" : i.sc0 ? " sc0" : i.sc1 ? " sc1" : "";
        return;
      }
      [[fallthrough]];
    case Encoding::kMtbuf:
      if (i.row->encoding == Encoding::kMtbuf) text += buffer_format(i.format);
      if (i.idxen) text += " idxen";
      if (i.offen) text += " offen";
      [[fallthrough]];
    default:
      if (i.imm) text += " offset:" + number(i.imm);
      cache_bits();
      if (i.row->encoding == Encoding::kMubuf && i.lds) text += " lds";
  }
}

void Printer::modifiers() {
  switch (i.row->encoding) {
    case Encoding::kVop1: case Encoding::kVop2: case Encoding::kVopc:
    case Encoding::kVop3: case Encoding::kVop3sd:
      vop3_modifiers();
      lane_modifiers();
      break;
    case Encoding::kVop3p: vop3p_modifiers(); break;
    case Encoding::kMai: mai_modifiers(); break;
    case Encoding::kSmem: case Encoding::kDs: case Encoding::kMubuf: case Encoding::kMtbuf:
    case Encoding::kGlobal: case Encoding::kScratch: case Encoding::kFlat: memory_modifiers(); break;
    default: break;
  }
}

}  // namespace

std::string print(const Inst& inst) {
  if (!inst.row) {
    char raw[24];
    std::snprintf(raw, sizeof raw, ".long 0x%08x", inst.words[0]);
    return raw;
  }
  Printer p(inst);
  p.name_suffix();
  p.operands();
  p.modifiers();
  return p.text;
}

}  // namespace mi350::emu
