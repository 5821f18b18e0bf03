// The handler table of one vector extension. A row whose handler nobody wrote yet stays null: it decodes and
// prints, and a launch that reaches it stops with its name.
#include "exec.h"

namespace mi350::emu::MI350_EMU_LEVEL {

#define ROW(mnemonic, encoding, opcode, operands, timing, forms) \
  [[gnu::weak]] void mnemonic(Wave&, const Inst&);
#include "isa.def"
#undef ROW

extern const Handler kHandlers[];
const Handler kHandlers[] = {
#define ROW(mnemonic, encoding, opcode, operands, timing, forms) &mnemonic,
#include "isa.def"
#undef ROW
};

}  // namespace mi350::emu::MI350_EMU_LEVEL
