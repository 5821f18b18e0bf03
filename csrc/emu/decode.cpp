// Machine words to Inst, one function per encoding. Field positions are those of the CDNA4 manual; which
// operands an opcode has comes from isa.def.
#include "decode.h"

#include <algorithm>
#include <string_view>

#include "isa.h"

namespace mi350::emu {
namespace {

constexpr uint32_t kSdwa = 249, kDpp = 250;
constexpr uint32_t kScalePrefixOpcode = 44, kScaledRow = 128;

constexpr uint32_t bits(uint32_t word, unsigned low, unsigned count) {
  return (word >> low) & ((1u << count) - 1);
}
constexpr bool bit(uint32_t word, unsigned at) { return (word >> at) & 1; }
constexpr int32_t sign_extend(uint32_t value, unsigned count) {
  return static_cast<int32_t>(value << (32 - count)) >> (32 - count);
}
constexpr uint16_t vgpr(uint32_t n) { return static_cast<uint16_t>(kVgpr0 + n); }
constexpr uint16_t vector_or_acc(uint32_t n, bool acc) {
  return static_cast<uint16_t>((acc ? kAcc0 : kVgpr0) + n);
}

// The words of one instruction on the way to an Inst; fails by returning false.
struct Decoder {
  std::span<const uint32_t> words;
  Inst inst;
  const RowForm* form = nullptr;

  uint32_t word(unsigned n) const { return words[n]; }

  bool row(Encoding encoding, uint32_t opcode, unsigned dwords) {
    inst.row = find_row(encoding, opcode);
    if (!inst.row || words.size() < dwords) return false;
    form = &form_of(*inst.row);
    inst.size_bytes = static_cast<uint8_t>(4 * dwords);
    return true;
  }
  bool has(char kind) const { return form->find(kind) != nullptr; }

  bool take_literal() {
    const unsigned at = inst.size_bytes / 4;
    if (words.size() <= at) return false;
    inst.literal = words[at];
    inst.size_bytes = static_cast<uint8_t>(inst.size_bytes + 4);
    return true;
  }
  bool literal_if_any() {
    for (uint16_t s : inst.src)
      if (s == kLiteral) return take_literal();
    return true;
  }

  bool sop1();
  bool sop2();
  bool sopc();
  bool sopk();
  bool sopp();
  bool smem();
  bool vop_short(Encoding encoding, uint32_t opcode);
  bool dpp(bool two_sources);
  bool sdwa(Encoding encoding);
  bool vop3();
  bool vop3p();
  bool mai(unsigned first_word);
  bool scaled_mai();
  bool ds();
  bool mubuf();
  bool mtbuf();
  bool flat();
  bool any();

  void carries_of_short_form();
  bool operands_exist() const;
};

bool Decoder::sop1() {
  const uint32_t w = word(0);
  if (!row(Encoding::kSop1, bits(w, 8, 8), 1)) return false;
  if (has('D')) inst.dst = static_cast<uint16_t>(bits(w, 16, 7));
  if (has('a')) inst.src[0] = static_cast<uint16_t>(bits(w, 0, 8));
  return literal_if_any();
}

bool Decoder::sop2() {
  const uint32_t w = word(0);
  if (!row(Encoding::kSop2, bits(w, 23, 7), 1)) return false;
  if (has('D')) inst.dst = static_cast<uint16_t>(bits(w, 16, 7));
  inst.src[0] = static_cast<uint16_t>(bits(w, 0, 8));
  inst.src[1] = static_cast<uint16_t>(bits(w, 8, 8));
  return literal_if_any();
}

bool Decoder::sopc() {
  const uint32_t w = word(0);
  if (!row(Encoding::kSopc, bits(w, 16, 7), 1)) return false;
  inst.src[0] = static_cast<uint16_t>(bits(w, 0, 8));
  if (has('b')) inst.src[1] = static_cast<uint16_t>(bits(w, 8, 8));
  else inst.imm = static_cast<int32_t>(bits(w, 8, 8));
  return literal_if_any();
}

bool Decoder::sopk() {
  const uint32_t w = word(0);
  if (!row(Encoding::kSopk, bits(w, 23, 5), 1)) return false;
  inst.imm = sign_extend(w & 0xffff, 16);
  if (has('D')) inst.dst = inst.src[0] = static_cast<uint16_t>(bits(w, 16, 7));
  return has('l') ? take_literal() : true;
}

bool Decoder::sopp() {
  const uint32_t w = word(0);
  if (!row(Encoding::kSopp, bits(w, 16, 7), 1)) return false;
  inst.imm = static_cast<int32_t>(w & 0xffff);
  return true;
}

bool Decoder::smem() {
  const uint32_t w = word(0);
  if (!row(Encoding::kSmem, bits(w, 18, 8), 2)) return false;
  const uint32_t w1 = word(1);
  const bool imm_enable = bit(w, 17), register_enable = bit(w, 14);
  inst.sc0 = bit(w, 16);
  const auto data = static_cast<uint16_t>(bits(w, 6, 7));
  if (has('D')) inst.dst = data;
  if (has('q')) {
    inst.data = data;
    if (inst.sc0) inst.dst = data;
  }
  if (has('i')) inst.data = data;
  if (has('s')) inst.sbase = static_cast<uint16_t>(bits(w, 0, 6) * 2);
  if (!has('o')) return true;
  if (imm_enable) inst.imm = sign_extend(bits(w1, 0, 21), 21);
  if (register_enable) inst.soffset = static_cast<uint16_t>(bits(w1, 25, 7));
  else if (!imm_enable) inst.soffset = static_cast<uint16_t>(bits(w1, 0, 7));
  return true;
}

// VCC is the implicit carry-out, carry-in and select mask of the 32-bit forms.
void Decoder::carries_of_short_form() {
  if (has('o')) inst.sdst = kVccLo;
  if (has('m')) inst.src[2] = kVccLo;
}

bool Decoder::dpp(bool two_sources) {
  if (!form->dpp || words.size() < 2) return false;
  const uint32_t w = word(1);
  inst.size_bytes = 8;
  inst.lane_mode = LaneMode::kDpp;
  inst.src[0] = vgpr(bits(w, 0, 8));
  inst.dpp_ctrl = static_cast<uint16_t>(bits(w, 8, 9));
  inst.bound_ctrl = bit(w, 19);
  inst.bank_mask = static_cast<uint8_t>(bits(w, 24, 4));
  inst.row_mask = static_cast<uint8_t>(bits(w, 28, 4));
  inst.neg = static_cast<uint8_t>((bit(w, 20) | (two_sources && bit(w, 22)) << 1) & form->neg_mask);
  inst.abs = static_cast<uint8_t>((bit(w, 21) | (two_sources && bit(w, 23)) << 1) & form->abs_mask);
  return true;
}

bool Decoder::sdwa(Encoding encoding) {
  if (!form->sdwa || words.size() < 2) return false;
  const uint32_t w = word(1);
  inst.size_bytes = 8;
  inst.lane_mode = LaneMode::kSdwa;
  inst.src[0] = static_cast<uint16_t>(bit(w, 23) ? bits(w, 0, 8) : vgpr(bits(w, 0, 8)));
  inst.src0_sel = static_cast<uint8_t>(bits(w, 16, 3));
  inst.src0_sext = bit(w, 19);
  inst.neg = bit(w, 20);
  inst.abs = bit(w, 21);
  if (encoding != Encoding::kVop1) {
    if (bit(w, 31)) inst.src[1] = static_cast<uint16_t>(bits(word(0), 9, 8));
    inst.src1_sel = static_cast<uint8_t>(bits(w, 24, 3));
    inst.src1_sext = bit(w, 27);
    inst.neg = static_cast<uint8_t>(inst.neg | bit(w, 28) << 1);
    inst.abs = static_cast<uint8_t>(inst.abs | bit(w, 29) << 1);
  }
  inst.neg &= form->neg_mask;
  inst.abs &= form->abs_mask;
  if (encoding == Encoding::kVopc) {
    inst.dst = bit(w, 15) ? static_cast<uint16_t>(bits(w, 8, 7)) : static_cast<uint16_t>(kVccLo);
    return true;
  }
  inst.dst_sel = static_cast<uint8_t>(bits(w, 8, 3));
  inst.dst_unused = static_cast<uint8_t>(bits(w, 11, 2));
  inst.clamp = bit(w, 13);
  if (form->omod) inst.omod = static_cast<uint8_t>(bits(w, 14, 2));
  return true;
}

bool Decoder::vop_short(Encoding encoding, uint32_t opcode) {
  if (!row(encoding, opcode, 1)) return false;
  const uint32_t w = word(0), src0 = bits(w, 0, 9), field = bits(w, 17, 8);
  const bool two_sources = encoding != Encoding::kVop1;
  if (encoding == Encoding::kVopc) {
    inst.dst = kVccLo;
  } else if (const OperandForm* d = form->find('d')) {
    inst.dst = vector_or_acc(field, d->suffix == 'A');
  } else if (has('D')) {
    inst.dst = static_cast<uint16_t>(field);
  }
  if (two_sources) inst.src[1] = vgpr(bits(w, 9, 8));
  carries_of_short_form();
  if (!form->operand_count) return true;
  if (src0 == kDpp) return dpp(two_sources);
  if (src0 == kSdwa) return sdwa(encoding);
  if (const OperandForm* a = form->find('a'))
    inst.src[0] = static_cast<uint16_t>(a->suffix == 'A' && src0 >= kVgpr0 ? src0 + 256 : src0);
  if (!has('l')) return literal_if_any();
  const bool literal_second = form->operands[2].kind == 'l';
  if (literal_second) inst.src[2] = inst.src[1];
  inst.src[literal_second ? 1 : 2] = kLiteral;
  return take_literal();
}

bool Decoder::vop3() {
  const uint32_t w = word(0), opcode = bits(w, 16, 10);
  if (!row(Encoding::kVop3, opcode, 2)) return false;
  const uint32_t w1 = word(1);
  const bool has_sdst = has('o');
  inst.dst = has('d') ? vgpr(bits(w, 0, 8)) : static_cast<uint16_t>(bits(w, 0, 8));
  if (!has('d') && !has('D')) inst.dst = kNoOperand;
  const uint16_t sources[3] = {static_cast<uint16_t>(bits(w1, 0, 9)), static_cast<uint16_t>(bits(w1, 9, 9)),
                               static_cast<uint16_t>(bits(w1, 18, 9))};
  if (has('a')) inst.src[0] = sources[0];
  if (has('b')) inst.src[1] = sources[1];
  if (has('c') || has('m')) inst.src[2] = sources[2];
  for (uint16_t s : inst.src)
    if (s == kLiteral) return false;
  if (has_sdst) inst.sdst = static_cast<uint16_t>(bits(w, 8, 7));
  if (form->clamp) inst.clamp = bit(w, 15);
  if (form->omod) inst.omod = static_cast<uint8_t>(bits(w1, 27, 2));
  inst.neg = static_cast<uint8_t>(bits(w1, 29, 3) & form->neg_mask);
  if (!has_sdst) {
    inst.abs = static_cast<uint8_t>(bits(w, 8, 3) & form->abs_mask);
    inst.op_sel = static_cast<uint8_t>(bits(w, 11, 4) & form->op_sel_mask);
  }
  if (std::string_view(inst.row->mnemonic).starts_with("v_bitop3"))
    inst.imm = static_cast<int32_t>(bits(w1, 27, 2) << 6 | bits(w, 8, 3) << 3 | bits(w1, 29, 3));
  return true;
}

bool Decoder::vop3p() {
  const uint32_t w = word(0), opcode = bits(w, 16, 7);
  if (opcode == kScalePrefixOpcode) {
    if (scaled_mai()) return true;
    inst = Inst{};  // a prefix on its own
  }
  if (find_row(Encoding::kMai, opcode)) return mai(0);
  if (!row(Encoding::kVop3p, opcode, 2)) return false;
  const uint32_t w1 = word(1);
  if (has('d')) inst.dst = vgpr(bits(w, 0, 8));
  inst.src[0] = static_cast<uint16_t>(bits(w1, 0, 9));
  inst.src[1] = static_cast<uint16_t>(bits(w1, 9, 9));
  if (has('c')) inst.src[2] = static_cast<uint16_t>(bits(w1, 18, 9));
  for (uint16_t s : inst.src)
    if (s == kLiteral) return false;
  inst.clamp = form->clamp && bit(w, 15);
  inst.neg = static_cast<uint8_t>(bits(w1, 29, 3));
  inst.abs = static_cast<uint8_t>(bits(w, 8, 3));
  inst.op_sel = static_cast<uint8_t>(bits(w, 11, 3));
  inst.op_sel_hi = static_cast<uint8_t>(bits(w1, 27, 2) | bit(w, 14) << 2);
  return true;
}

bool Decoder::mai(unsigned first_word) {
  const uint32_t w = word(first_word);
  if (!row(Encoding::kMai, bits(w, 16, 7) + (first_word ? kScaledRow : 0), first_word + 2)) return false;
  const uint32_t w1 = word(first_word + 1);
  const bool acc_cd = bit(w, 15);
  const OperandForm* a = form->find('a');
  const bool moves = !has('b');
  inst.dst = vector_or_acc(bits(w, 0, 8), moves ? form->find('d')->suffix == 'A' : acc_cd);
  const uint32_t sources[3] = {bits(w1, 0, 9), bits(w1, 9, 9), bits(w1, 18, 9)};
  const OperandForm* c = form->find('c');
  const bool acc_c = acc_cd && !(c && c->suffix == 'v');  // the index of SMFMAC is always a VGPR
  const bool acc[3] = {moves ? a->suffix == 'A' : bit(w1, 27), bit(w1, 28), acc_c};
  for (int i = 0; i < 3; ++i) {
    if (!has("abc"[i])) continue;
    const bool vector = sources[i] >= kVgpr0;
    inst.src[i] = vector ? vector_or_acc(sources[i] - kVgpr0, acc[i]) : static_cast<uint16_t>(sources[i]);
    if (sources[i] == kLiteral) return false;
  }
  if (moves) return true;
  inst.cbsz = static_cast<uint8_t>(bits(w, 8, 3));
  inst.abid = static_cast<uint8_t>(bits(w, 11, 4));
  inst.blgp = static_cast<uint8_t>(bits(w1, 29, 3));
  return true;
}

bool Decoder::scaled_mai() {
  if (words.size() < 4 || bits(word(2), 23, 9) != bits(word(0), 23, 9)) return false;
  if (!mai(2)) return false;
  const uint32_t w = word(0), w1 = word(1);
  inst.scale_src[0] = static_cast<uint16_t>(bits(w1, 0, 9));
  inst.scale_src[1] = static_cast<uint16_t>(bits(w1, 9, 9));
  for (unsigned i = 0; i < 2; ++i)
    inst.scale_sel[i] = static_cast<uint8_t>(bit(w, 11 + i) | bit(w1, 27 + i) << 1);
  return true;
}

bool Decoder::ds() {
  const uint32_t w = word(0);
  if (!row(Encoding::kDs, bits(w, 17, 8), 2)) return false;
  const uint32_t w1 = word(1);
  const bool acc = bit(w, 25);
  inst.gds = bit(w, 16);
  inst.imm = static_cast<int32_t>(w & 0xffff);
  if (has('d')) inst.dst = vector_or_acc(bits(w1, 24, 8), acc);
  if (has('p')) inst.addr = vgpr(bits(w1, 0, 8));
  if (has('q')) inst.data = vector_or_acc(bits(w1, 8, 8), acc);
  if (has('r')) inst.data1 = vector_or_acc(bits(w1, 16, 8), acc);
  return true;
}

bool Decoder::mubuf() {
  const uint32_t w = word(0);
  if (!row(Encoding::kMubuf, bits(w, 18, 7), 2)) return false;
  const uint32_t w1 = word(1);
  inst.imm = static_cast<int32_t>(bits(w, 0, 12));
  inst.offen = bit(w, 12);
  inst.idxen = bit(w, 13);
  inst.sc0 = bit(w, 14);
  inst.sc1 = bit(w, 15);
  inst.lds = bit(w, 16);
  inst.nt = bit(w, 17);
  if (!form->operand_count) return true;  // cache control
  if (inst.lds && !form->may_lds) return false;
  const uint16_t data = vector_or_acc(bits(w1, 8, 8), bit(w1, 23));
  if (has('q')) inst.data = data;
  if (has('d') && !inst.lds && (inst.sc0 || !has('q'))) inst.dst = data;
  if (inst.offen || inst.idxen) inst.addr = vgpr(bits(w1, 0, 8));
  inst.sbase = static_cast<uint16_t>(bits(w1, 16, 5) * 4);
  inst.soffset = static_cast<uint16_t>(bits(w1, 24, 8));
  return inst.soffset != kLiteral;
}

bool Decoder::mtbuf() {
  const uint32_t w = word(0);
  if (!row(Encoding::kMtbuf, bits(w, 15, 4), 2)) return false;
  const uint32_t w1 = word(1);
  inst.imm = static_cast<int32_t>(bits(w, 0, 12));
  inst.offen = bit(w, 12);
  inst.idxen = bit(w, 13);
  inst.sc0 = bit(w, 14);
  inst.sc1 = bit(w1, 21);
  inst.nt = bit(w1, 22);
  inst.format = static_cast<uint8_t>(bits(w, 19, 7));
  (has('d') ? inst.dst : inst.data) = vector_or_acc(bits(w1, 8, 8), bit(w1, 23));
  if (inst.offen || inst.idxen) inst.addr = vgpr(bits(w1, 0, 8));
  inst.sbase = static_cast<uint16_t>(bits(w1, 16, 5) * 4);
  inst.soffset = static_cast<uint16_t>(bits(w1, 24, 8));
  return inst.soffset != kLiteral;
}

bool Decoder::flat() {
  constexpr Encoding kSegment[3] = {Encoding::kFlat, Encoding::kScratch, Encoding::kGlobal};
  constexpr uint32_t kOff = 0x7f;
  const uint32_t w = word(0), segment = bits(w, 14, 2);
  if (segment > 2 || !row(kSegment[segment], bits(w, 18, 7), 2)) return false;
  const uint32_t w1 = word(1);
  const Encoding encoding = kSegment[segment];
  const uint32_t offset = bits(w, 0, 13);
  inst.imm = encoding == Encoding::kFlat ? static_cast<int32_t>(offset) : sign_extend(offset, 13);
  inst.sc0 = bit(w, 16);
  inst.nt = bit(w, 17);
  inst.sc1 = bit(w, 25);
  inst.lds = !form->operand_count;
  const bool acc = bit(w1, 23);
  if (has('q')) inst.data = vector_or_acc(bits(w1, 8, 8), acc);
  if (has('d') && (inst.sc0 || !has('q'))) inst.dst = vector_or_acc(bits(w1, 24, 8), acc);
  if (encoding != Encoding::kFlat && bits(w1, 16, 7) != kOff)
    inst.sbase = static_cast<uint16_t>(bits(w1, 16, 7));
  if (encoding != Encoding::kScratch || bit(w, 13)) inst.addr = vgpr(bits(w1, 0, 8));
  return true;
}

// Codes that name nothing, and 64-bit operands that start at the second half of a pair.
bool Decoder::operands_exist() const {
  auto exists = [](uint16_t code, unsigned dwords) {
    if (code >= kVgpr0) return true;
    if ((code > 208 && code < kSharedBase) || code == kSdwa || code == kDpp) return false;
    const bool unpaired = code == kFlatScratchHi || code == kXnackMaskHi || code == kVccHi || code == kM0 ||
                          code == kExecHi || code == 254;
    return dwords < 2 || !unpaired;
  };
  if (inst.soffset != kNoOperand && !exists(inst.soffset, 1)) return false;
  for (unsigned n = 0; n < form->operand_count; ++n) {
    const OperandForm& f = form->operands[n];
    if (f.kind == 'D' && !exists(inst.dst, f.dwords)) return false;
    if (f.kind < 'a' || f.kind > 'c') continue;
    const uint16_t code = inst.src[f.kind - 'a'];
    if (code != kNoOperand && !exists(code, f.dwords)) return false;
  }
  return true;
}

bool Decoder::any() {
  const uint32_t w = word(0);
  if (!bit(w, 31)) {
    const uint32_t top = bits(w, 25, 7);
    if (top == 0x3f) return vop_short(Encoding::kVop1, bits(w, 9, 8));
    if (top == 0x3e) return vop_short(Encoding::kVopc, bits(w, 17, 8));
    return vop_short(Encoding::kVop2, bits(w, 25, 6));
  }
  if (bits(w, 30, 2) == 0b10) {
    switch (bits(w, 23, 9)) {
      case 0x17d: return sop1();
      case 0x17e: return sopc();
      case 0x17f: return sopp();
      default: return bits(w, 28, 4) == 0b1011 ? sopk() : sop2();
    }
  }
  switch (bits(w, 26, 6)) {
    case 0b110000: return smem();
    case 0b110100: return bits(w, 23, 3) == 7 ? vop3p() : vop3();
    case 0b110110: return ds();
    case 0b110111: return flat();
    case 0b111000: return mubuf();
    case 0b111010: return mtbuf();
    default: return false;
  }
}

int64_t branch_offset(const Inst& i) {
  return static_cast<int64_t>(i.offset_bytes) + 4 + 4 * int64_t{static_cast<int16_t>(i.imm)};
}

}  // namespace

Inst decode(std::span<const uint32_t> words) {
  Decoder d{words, {}, nullptr};
  if (words.empty() || !d.any() || !d.operands_exist()) {
    d.inst = Inst{};
    d.inst.size_bytes = words.empty() ? 0 : 4;
  }
  for (unsigned n = 0; n < d.inst.size_bytes / 4u; ++n) d.inst.words[n] = words[n];
  if (d.inst.row) d.inst.exec = handlers()[d.inst.row - kIsa];
  return d.inst;
}

uint32_t Program::index_of_offset(int64_t offset) const {
  if (offset < 0 || offset % 4 || offset / 4 >= static_cast<int64_t>(index_of_dword.size())) return end();
  const int32_t index = index_of_dword[static_cast<size_t>(offset / 4)];
  return index < 0 ? end() : static_cast<uint32_t>(index);
}

uint32_t Program::index_of_address(uint64_t address) const {
  return address < text_address ? end() : index_of_offset(static_cast<int64_t>(address - text_address));
}

Program decode_text(std::span<const uint32_t> text, std::span<const uint64_t> starts) {
  Program p;
  p.index_of_dword.assign(text.size(), -1);
  size_t next_start = 0;
  for (size_t at = 0; at < text.size();) {
    while (next_start < starts.size() && starts[next_start] / 4 <= at) ++next_start;
    const size_t limit = next_start < starts.size() ? starts[next_start] / 4 : text.size();
    Inst inst = decode(text.subspan(at, std::min(limit, text.size()) - at));
    inst.offset_bytes = static_cast<uint32_t>(4 * at);
    p.index_of_dword[at] = static_cast<int32_t>(p.insts.size());
    at += inst.size_bytes / 4;
    p.insts.push_back(inst);
  }
  Inst last;
  last.offset_bytes = static_cast<uint32_t>(4 * text.size());
  last.size_bytes = 0;
  p.insts.push_back(last);
  for (Inst& i : p.insts)
    if (i.row && form_of(*i.row).find('t')) i.target = p.index_of_offset(branch_offset(i));
  return p;
}

}  // namespace mi350::emu
