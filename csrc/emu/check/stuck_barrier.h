// Barriers that never complete.
#pragma once
#include <memory>

#include "check/part.h"

namespace mi350::emu {

std::unique_ptr<Part> make_stuck_barrier(Reporter& reporter);

}  // namespace mi350::emu
