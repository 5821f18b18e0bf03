// How launches run: the mode and its parameters, from the environment or set through emu_api.h.
#pragma once
#include <cstdint>
#include <string>

namespace mi350::emu {

enum class Mode : uint8_t { kFast, kCheck };

struct Settings {
  Mode mode = Mode::kFast;
  bool strict = true;         // TORCH_MI350_EMU_STRICT: our rules; off: those that proven code breaks are advisory
  bool report_only = false;   // TORCH_MI350_EMU_FINDINGS=report: findings do not fail the launch
  bool late_dma = false;      // TORCH_MI350_EMU_DMA=late: loads to LDS land at the wait, not at the issue
  bool permute = false;       // TORCH_MI350_EMU_SEED: wave order and slice lengths by seed
  uint64_t seed = 0;
  bool soffset_in_range = true;  // TORCH_MI350_EMU_SOFFSET_CHECK=exclude: raw buffers are checked without soffset
};

// A sentence about the first bad value, or empty.
std::string read_settings(Settings* out);

// Before the environment; an empty mode or a negative value gives the choice back. False: unknown mode.
bool set_mode(const char* mode);
void set_strict(int strict);

}  // namespace mi350::emu
