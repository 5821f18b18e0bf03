// The part of check mode that watches registers: loads in flight, wait states, EXEC, undefined data.
#pragma once
#include <memory>

#include "check/definedness.h"
#include "check/footprint.h"
#include "check/in_flight.h"
#include "check/part.h"
#include "check/undefined_memory.h"
#include "check/wait_states.h"

namespace mi350::emu {

std::unique_ptr<Part> make_register_checks(Reporter& reporter, std::shared_ptr<UndefinedMemory> memory);

}  // namespace mi350::emu
