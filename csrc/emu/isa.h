// The instruction table. isa.def is the only place where an opcode number stands; decoder, printer,
// handler table and the list of tests are generated from it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "inst.h"

namespace mi350::emu {

enum class IsaClass : uint8_t { kSalu, kSmem, kValu, kTrans, kMfma, kLds, kVmem, kBranch, kMessage };

struct IsaRow {
  const char* mnemonic;   // without _e32 / _e64
  Encoding encoding;
  uint16_t opcode;
  const char* operands;   // kinds and widths, see isa.def
  IsaClass timing;
  const char* forms;      // encodings and modifiers beyond the plain one, see isa.def
};

extern const IsaRow kIsa[];
extern const size_t kIsaRows;

// The row of an opcode, or nullptr. VOP3 opcodes 0-511 reach the VOPC, VOP2 and VOP1 rows that have a VOP3
// form; kVop3 also answers for kVop3sd.
const IsaRow* find_row(Encoding encoding, unsigned opcode);

// The text columns of a row, parsed.
struct OperandForm {
  char kind = 0, suffix = 0;
  uint8_t dwords = 0;
};
struct RowForm {
  OperandForm operands[7];
  uint8_t operand_count = 0;
  bool vop3 = false, dpp = false, sdwa = false, sdwa_source_only = false, no_suffix = false;
  bool clamp = false, omod = false;
  uint8_t neg_mask = 0, abs_mask = 0, op_sel_mask = 0;
  char packed = 0;       // VOP3P: 'p', 'q', 'x' or 's'
  bool two_offsets = false, swizzle = false, gds = false, may_lds = false;

  const OperandForm* find(char kind) const;
};
const RowForm& form_of(const IsaRow& row);

// Why an instruction that decodes and prints is not executed, or nullptr.
const char* refusal(const IsaRow& row);

// Handlers of the widest vector extension this host has, one per row of isa.def.
const Handler* handlers();

}  // namespace mi350::emu
