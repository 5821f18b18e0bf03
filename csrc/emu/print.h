// Inst to assembly text, the same text as `llvm-objdump -d` of LLVM 22.
#pragma once
#include <string>

#include "inst.h"

namespace mi350::emu {

// "v_add_f32_e32 v0, s1, v0"; ".long 0xffffffff" for what could not be decoded.
std::string print(const Inst& inst);

}  // namespace mi350::emu
