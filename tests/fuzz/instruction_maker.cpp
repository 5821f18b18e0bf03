// Field positions are those of the CDNA4 manual: the inverse of decode.cpp, one function per encoding.
#include "instruction_maker.h"

namespace mi350::emu::fuzz {
namespace {

using Words = std::vector<uint32_t>;

constexpr uint32_t kSdwa = 249, kDpp = 250, kScaledRow = 128;

uint32_t vector_register(Random& r) {
  if (r.percent(80)) return r.below(20);
  return r.percent(50) ? 224 + r.below(32) : r.below(256);
}
// The prologue leaves addresses and descriptors in s[4:15].
uint32_t scalar_register(Random& r) {
  constexpr uint32_t kSpecial[] = {106, 107, 124, 126, 127, 102, 101};
  if (r.percent(70)) return 4 + 2 * r.below(8);
  return r.percent(50) ? r.pick(kSpecial) : r.below(128);
}
uint32_t scalar_source(Random& r) {
  constexpr uint32_t kSpecial[] = {128, 129, 192, 193, 208, 235, 236, 237,
                                   238, 240, 243, 248, 251, 252, 253, 255};
  if (r.percent(55)) return scalar_register(r);
  return r.percent(80) ? r.pick(kSpecial) : r.below(256);
}
uint32_t any_source(Random& r) { return r.percent(70) ? 256 + vector_register(r) : scalar_source(r); }

// Modifier bits: usually none, so that plain fast paths run as well.
uint32_t sometimes(Random& r, uint32_t mask) { return r.percent(30) ? r.word() & mask : 0; }

Words with_literal(uint32_t w, bool literal, Random& r) {
  return literal ? Words{w, r.percent(50) ? r.word() : r.below(64)} : Words{w};
}

Words scalar(const IsaRow& row, Random& r) {
  const uint32_t op = row.opcode, a = scalar_source(r), b = scalar_source(r), d = scalar_register(r);
  const uint32_t imm = r.percent(60) ? (r.below(12) - 4) & 0xffff : r.word() & 0xffff;
  const RowForm& form = form_of(row);
  switch (row.encoding) {
    case Encoding::kSop1:
      return with_literal(0xbe800000 | d << 16 | op << 8 | a, form.find('a') && a == 255, r);
    case Encoding::kSop2:
      return with_literal(0x80000000 | op << 23 | d << 16 | b << 8 | a, a == 255 || b == 255, r);
    case Encoding::kSopc:
      return with_literal(0xbf000000 | op << 16 | b << 8 | a, a == 255 || (form.find('b') && b == 255), r);
    case Encoding::kSopk:
      return with_literal(0xb0000000 | op << 23 | d << 16 | imm, form.find('l'), r);
    default:
      return {0xbf800000 | op << 16 | imm};
  }
}

Words smem(const IsaRow& row, Random& r) {
  const uint32_t base = r.percent(80)
                            ? (form_of(row).find('s') && form_of(row).find('s')->dwords == 4 ? 8 : 4)
                            : r.below(64) * 2;
  const uint32_t data = r.percent(70) ? 20 + 4 * r.below(12) : r.below(128);
  const uint32_t offset = r.percent(80) ? 4 * r.below(64) : r.word() & 0x1fffff;
  return {0xc0000000 | uint32_t{row.opcode} << 18 | uint32_t{!r.percent(10)} << 17 | sometimes(r, 1) << 16 |
              sometimes(r, 1) << 14 | data << 6 | base / 2,
          offset | scalar_register(r) << 25};
}

uint32_t dpp_word(Random& r) {
  constexpr uint32_t kControls[] = {0x1b,  0x4e,  0x101, 0x111, 0x12f, 0x130, 0x134, 0x138,
                                    0x13c, 0x140, 0x141, 0x142, 0x143, 0x150, 0x15f};
  const uint32_t control = r.percent(80) ? r.pick(kControls) : r.below(512);
  const uint32_t masks = r.percent(70) ? 0xff000000 : r.word() & 0xff000000;
  return masks | sometimes(r, 0x00f80000) | control << 8 | vector_register(r);
}
uint32_t sdwa_word(Random& r) {
  const bool scalar = r.percent(20);
  return (r.word() & 0xff7fff00) | uint32_t{scalar} << 23 |
         (scalar ? scalar_register(r) : vector_register(r));
}

Words vop3(const IsaRow& row, uint32_t opcode, Random& r) {
  const bool sdst = form_of(row).find('o') != nullptr;
  const uint32_t d = form_of(row).find('d') ? vector_register(r) : scalar_register(r);
  const uint32_t flags = sdst ? scalar_register(r) << 8 | sometimes(r, 1) << 15 : sometimes(r, 0xff) << 8;
  const uint32_t third = form_of(row).find('m') ? scalar_register(r) : any_source(r);
  return {0xd0000000 | opcode << 16 | flags | d,
          any_source(r) | any_source(r) << 9 | third << 18 | sometimes(r, 31) << 27};
}

Words vop_short(const IsaRow& row, Random& r) {
  const uint32_t op = row.opcode;
  const RowForm& form = form_of(row);
  if (form.vop3 && r.percent(35))
    return vop3(row,
                row.encoding == Encoding::kVop1   ? op + 320
                : row.encoding == Encoding::kVop2 ? op + 256
                                                  : op,
                r);
  const uint32_t d =
      form.find('D') && row.encoding == Encoding::kVop1 ? scalar_register(r) : vector_register(r);
  uint32_t src0 = any_source(r);
  if (form.dpp && r.percent(15)) src0 = kDpp;
  if (form.sdwa && r.percent(15)) src0 = kSdwa;
  const uint32_t low = vector_register(r) << 9 | src0;
  uint32_t w = row.encoding == Encoding::kVopc ? 0x7c000000 | op << 17 | low : op << 25 | d << 17 | low;
  if (row.encoding == Encoding::kVop1) w = 0x7e000000 | d << 17 | op << 9 | src0;
  if (src0 == kDpp) return {w, dpp_word(r)};
  if (src0 == kSdwa) return {w, sdwa_word(r)};
  return with_literal(w, src0 == 255 || form.find('l'), r);
}

Words packed(uint32_t opcode, Random& r) {
  const uint32_t halves = r.percent(70) ? 0x18000000 : 0;
  return {0xd3800000 | opcode << 16 | sometimes(r, 0xff) << 8 | vector_register(r),
          any_source(r) | any_source(r) << 9 | any_source(r) << 18 | halves | sometimes(r, 31) << 27};
}

Words mai(const IsaRow& row, Random& r) {
  const bool scaled = row.opcode >= kScaledRow;
  const uint32_t op = scaled ? row.opcode - kScaledRow : row.opcode;
  const auto tuple = [&] { return r.percent(85) ? 4 * r.below(8) : r.below(256); };
  const uint32_t c = r.percent(80) ? 256 + tuple() : scalar_source(r);
  Words main = {0xd3800000 | op << 16 | sometimes(r, 0xff) << 8 | tuple(),
                (256 + tuple()) | (256 + tuple()) << 9 | c << 18 | sometimes(r, 31) << 27};
  if (!scaled) return main;
  return {0xd3ac0000 | (r.word() & 0x1800), any_source(r) | any_source(r) << 9 | (r.word() & 0x18000000),
          main[0], main[1]};
}

Words ds(const IsaRow& row, Random& r) {
  const uint32_t address = r.percent(80) ? (r.percent(50) ? 1 : 16) : vector_register(r);
  const uint32_t offset = r.percent(80) ? r.below(64) : r.word() & 0xffff;
  return {
      0xd8000000 | uint32_t{row.opcode} << 17 | sometimes(r, 1) << 25 | uint32_t{r.percent(3)} << 16 | offset,
      address | vector_register(r) << 8 | vector_register(r) << 16 | vector_register(r) << 24};
}

Words mubuf(const IsaRow& row, Random& r) {
  const uint32_t resource = r.percent(90) ? 2 + r.below(2) : r.below(32);
  const uint32_t address = r.percent(70) ? 1 : vector_register(r),
                 offset = r.percent(80) ? 4 * r.below(32) : r.below(4096);
  const uint32_t lds = form_of(row).may_lds && r.percent(30);
  const uint32_t soffset = r.percent(70) ? 128 : scalar_source(r);
  return {0xe0000000 | uint32_t{row.opcode} << 18 | lds << 16 | sometimes(r, 0xb) << 14 | r.below(4) << 12 |
              offset,
          address | vector_register(r) << 8 | resource << 16 | sometimes(r, 1) << 23 | soffset << 24};
}

Words mtbuf(const IsaRow& row, Random& r) {
  const uint32_t address = r.percent(70) ? 1 : vector_register(r);
  const uint32_t soffset = r.percent(70) ? 128 : scalar_source(r);
  return {0xe8000000 | r.below(128) << 19 | uint32_t{row.opcode} << 15 | sometimes(r, 1) << 14 |
              r.below(4) << 12 | 4 * r.below(32),
          address | vector_register(r) << 8 | (2 + r.below(2)) << 16 | sometimes(r, 7) << 21 | soffset << 24};
}

// s[4:5] and v[2:3] hold addresses of the buffer, v1 a byte offset.
Words flat(const IsaRow& row, Random& r) {
  const uint32_t segment = row.encoding == Encoding::kGlobal ? 2 : row.encoding == Encoding::kScratch ? 1 : 0;
  const bool by_scalar = segment != 0 && r.percent(50);
  const uint32_t saddr = by_scalar ? (r.percent(80) ? 4 : scalar_register(r)) : 0x7f;
  const uint32_t address = r.percent(85) ? (by_scalar ? 1 : 2) : vector_register(r);
  const uint32_t offset = r.percent(80) ? 4 * r.below(64) : r.word() & 0x1fff;
  return {0xdc000000 | uint32_t{row.opcode} << 18 | segment << 14 | sometimes(r, 1) << 25 | r.below(2) << 16 |
              sometimes(r, 1) << 13 | offset,
          address | vector_register(r) << 8 | saddr << 16 | sometimes(r, 1) << 23 | vector_register(r) << 24};
}

}  // namespace

Words make_instruction(const IsaRow& row, Random& r) {
  switch (row.encoding) {
    case Encoding::kSmem:
      return smem(row, r);
    case Encoding::kVop1:
    case Encoding::kVop2:
    case Encoding::kVopc:
      return vop_short(row, r);
    case Encoding::kVop3:
    case Encoding::kVop3sd:
      return vop3(row, row.opcode, r);
    case Encoding::kVop3p:
      return packed(row.opcode, r);
    case Encoding::kMai:
      return mai(row, r);
    case Encoding::kDs:
      return ds(row, r);
    case Encoding::kMtbuf:
      return mtbuf(row, r);
    case Encoding::kMubuf:
      return mubuf(row, r);
    case Encoding::kGlobal:
    case Encoding::kScratch:
    case Encoding::kFlat:
      return flat(row, r);
    default:
      return scalar(row, r);
  }
}

}  // namespace mi350::emu::fuzz
