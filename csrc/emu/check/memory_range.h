// Global accesses outside every allocation.
#pragma once
#include "check/reporter.h"
#include "watch.h"

namespace mi350::emu {

// Reports the lanes of a.mask. True if the wave may go on: they load 0 and store nothing.
bool note_outside_access(Reporter& reporter, const Wave& w, const Inst& i, const Access& a);

}  // namespace mi350::emu
