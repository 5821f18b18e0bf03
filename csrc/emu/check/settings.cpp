// Settings from the environment, and what emu_api.h sets before it.
#include "check/settings.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "emu_api.h"

namespace mi350::emu {
namespace {

constexpr int kUnset = -1;
std::atomic<int> chosen_mode{kUnset}, chosen_strict{kUnset};

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

// Index of the variable's value among `values`, 0 if it is not set; else a sentence.
std::string choose(const char* name, std::initializer_list<const char*> values, int* out) {
  *out = 0;
  const std::string_view text = variable(name);
  if (text.empty()) return "";
  std::string list;
  for (const char* value : values) {
    if (text == value) return "";
    list += (list.empty() ? "" : ", ") + std::string(value);
    ++*out;
  }
  return std::string(name) + " must be one of " + list + ", got '" + std::string(text) + "'";
}

std::string read_seed(Settings* s) {
  const std::string text(variable("TORCH_MI350_EMU_SEED"));
  if (text.empty()) return "";
  char* end = nullptr;
  errno = 0;
  s->seed = std::strtoull(text.c_str(), &end, 10);
  s->permute = true;
  if (*end == 0 && errno == 0 && text[0] != '-') return "";
  return "TORCH_MI350_EMU_SEED must be a whole number of 64 bits, got '" + text + "'";
}

}  // namespace

std::string read_settings(Settings* out) {
  int mode, strict, findings, dma, soffset;
  *out = {};
  for (const std::string& why :
       {choose("TORCH_MI350_EMU", {"fast", "check"}, &mode),
        choose("TORCH_MI350_EMU_STRICT", {"1", "0"}, &strict),
        choose("TORCH_MI350_EMU_FINDINGS", {"fail", "report"}, &findings),
        choose("TORCH_MI350_EMU_DMA", {"early", "late"}, &dma),
        choose("TORCH_MI350_EMU_SOFFSET_CHECK", {"include", "exclude"}, &soffset), read_seed(out)}) {
    if (!why.empty()) return why;
  }
  if (const int chosen = chosen_mode.load(); chosen != kUnset) mode = chosen;
  if (const int chosen = chosen_strict.load(); chosen != kUnset) strict = chosen == 0;
  out->mode = mode == 0 ? Mode::kFast : Mode::kCheck;
  out->strict = strict == 0;
  out->report_only = findings == 1;
  out->late_dma = dma == 1;
  out->soffset_in_range = soffset == 0;
  return "";
}

bool set_mode(const char* mode) {
  const std::string_view text = mode == nullptr ? "" : mode;
  if (text != "" && text != "fast" && text != "check") return false;
  chosen_mode = text == "" ? kUnset : text == "fast" ? 0 : 1;
  return true;
}
void set_strict(int strict) { chosen_strict = strict < 0 ? kUnset : strict != 0; }

}  // namespace mi350::emu
