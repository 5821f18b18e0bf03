// Order of accesses to LDS between waves, loads to LDS in flight, LDS out of range.
#pragma once
#include <memory>

#include "check/part.h"

namespace mi350::emu {

std::unique_ptr<Part> make_lds_order(Reporter& reporter);

}  // namespace mi350::emu
