// Text of failures: what mi350emuLastReport() returns, and the report of a stopped wave.
#pragma once
#include <string>

#include "dispatch.h"

namespace mi350::emu {

void set_last_report(std::string text);
const char* last_report();

// Kernel, reason, workgroup, wave, pc, words and disassembly, the last ten instructions before it.
std::string wave_report(const Launch& launch, const Wave& wave, const std::string& why);

}  // namespace mi350::emu
