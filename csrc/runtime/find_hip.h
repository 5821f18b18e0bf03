// Finds the HIP functions of each home.
#pragma once
#include <string>
#include <vector>

#include "runtime/hip.h"

namespace mi350::runtime {

// Folder of the installed package: _C, libmi350emu.so, code_objects/ lie in it.
const std::string& package_dir();

// libmi350emu.so of this package, opened RTLD_LOCAL on first use. Throws c10::Error if it cannot be loaded.
const Hip& emulator();

// A symbol of the emulator library beyond HIP's own (emu_api.h).
void* emulator_symbol(const char* name);

// hipDeviceGetAttribute of the emulator. Throws its sentence, which names a bad TORCH_MI350_EMU_* variable.
int emulator_attribute(int attribute, int device);

// Paths of the mapped libraries whose file name starts with `stem`, sorted.
std::vector<std::string> mapped_libraries(const char* stem);

// The HIP runtime that torch has already mapped (RTLD_NOLOAD, any path), or null with a sentence in `why`.
// Never loads a second copy, never initialises a GPU.
const Hip* mapped_runtime(std::string* why);

}  // namespace mi350::runtime
