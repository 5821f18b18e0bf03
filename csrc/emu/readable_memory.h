// Reading memory that may not be there: hipModuleLoadData gets a pointer and no size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mi350::emu {

// The first `most` bytes at `from`, fewer where this process cannot read them all.
std::vector<uint8_t> copy_readable(const void* from, size_t most);

}  // namespace mi350::emu
