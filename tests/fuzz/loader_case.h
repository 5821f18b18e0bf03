// The loader under fuzz: the bytes of a case are a code object; what it offers is looked up, asked about and
// launched.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "random.h"

namespace mi350::emu::fuzz {

void run_loader_case(std::span<const uint8_t> bytes);

// Knows ELF headers, symbols, descriptors, notes and bundles. At most `limit` bytes.
void mutate_loader_case(std::vector<uint8_t>& bytes, size_t limit, Random& random);

}  // namespace mi350::emu::fuzz
