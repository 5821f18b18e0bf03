// The machine from the environment. Unit limits: facts of the gfx950 ISA page and of LLVM's GCN subtarget.
#include "machine.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "wave.h"
#include "wave_storage.h"

namespace mi350::emu {
namespace {

constexpr uint32_t kSimds = 4, kRegisters = 512, kWavesPerSimd = 8, kRegisterGranule = 8;
constexpr uint32_t kBarriers = 16;  // a workgroup of several waves holds one

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

std::string sentence(const char* name, const std::string& expected, std::string_view got) {
  return std::string(name) + " must be " + expected + ", got '" + std::string(got) + "'";
}

// False: set, but no whole number within the limits. Not set: `out` keeps its value.
bool read_number(const char* name, uint64_t least, uint64_t most, uint64_t* out, std::string_view* text) {
  *text = variable(name);
  if (text->empty()) return true;
  char* end = nullptr;
  errno = 0;
  const uint64_t v = std::strtoull(text->data(), &end, 10);
  const bool digits = text->front() >= '0' && text->front() <= '9' && *end == 0;
  if (!digits || errno != 0 || v < least || v > most) return false;
  *out = v;
  return true;
}

std::string range(uint64_t least, uint64_t most) {
  return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
}

std::string read_xcds(Machine* m) {
  std::string_view text;
  uint64_t n = kMostXcds;
  if (!read_number("TORCH_MI350_EMU_XCDS", 1, kMostXcds, &n, &text))
    return sentence("TORCH_MI350_EMU_XCDS", range(1, kMostXcds), text);
  m->xcds = static_cast<int>(n);
  m->units = m->xcds * kUnitsPerXcd;
  return "";
}

std::string read_units(Machine* m) {
  std::string_view text;
  const auto dies = static_cast<uint64_t>(m->xcds);
  uint64_t n = static_cast<uint64_t>(m->units);
  if (!read_number("TORCH_MI350_EMU_CUS", dies, dies * kUnitsPerXcd, &n, &text) || n % dies != 0) {
    return sentence("TORCH_MI350_EMU_CUS",
                    "a multiple of the number of dies (TORCH_MI350_EMU_XCDS), " + std::to_string(dies) +
                        ", and at most " + std::to_string(dies * kUnitsPerXcd),
                    text);
  }
  m->units = static_cast<int>(n);
  return "";
}

std::string read_devices(Machine* m) {
  std::string_view text;
  uint64_t n = 1;
  if (!read_number("TORCH_MI350_EMU_DEVICES", 0, kMostDevices, &n, &text))
    return sentence("TORCH_MI350_EMU_DEVICES", range(0, kMostDevices), text);
  m->devices = static_cast<int>(n);
  return "";
}

std::string read_order(Machine* m) {
  const std::string_view text = variable("TORCH_MI350_EMU_ORDER");
  if (!text.empty() && text != "forward" && text != "reverse")
    return sentence("TORCH_MI350_EMU_ORDER", "forward or reverse", text);
  m->reverse = text == "reverse";
  return "";
}

std::string read_resident(Machine* m) {
  std::string_view text;
  constexpr uint64_t kMost = uint64_t{1} << 32;
  if (!read_number("TORCH_MI350_EMU_RESIDENT", 1, kMost, &m->resident, &text))
    return sentence("TORCH_MI350_EMU_RESIDENT", range(1, kMost) + " (workgroups)", text);
  return "";
}

}  // namespace

std::string read_machine(Machine* out) {
  *out = {};
  std::string first;
  for (const auto read : {read_xcds, read_units, read_devices, read_order, read_resident}) {
    std::string why = read(out);
    if (first.empty()) first = std::move(why);
  }
  return first;
}

Machine machine() {
  Machine m;
  read_machine(&m);
  return m;
}

int workgroups_per_unit(const KernelInfo& k, uint32_t work_items, size_t dynamic_lds_bytes) {
  if (work_items == 0 || work_items > std::min(1024u, k.max_workgroup_size)) return 0;
  const uint32_t registers =
      std::max(kRegisterGranule, (k.vgprs + kRegisterGranule - 1) / kRegisterGranule * kRegisterGranule);
  const uint32_t per_simd = std::min(kWavesPerSimd, kRegisters / std::min(registers, kRegisters));
  const uint32_t waves = (work_items + kLanes - 1) / kLanes;
  const size_t lds = k.group_segment_bytes + dynamic_lds_bytes;
  if (lds > kLdsCapacity) return 0;
  size_t most = per_simd * kSimds / waves;
  if (waves > 1) most = std::min<size_t>(most, kBarriers);
  if (lds != 0) most = std::min(most, kLdsCapacity / lds);
  return static_cast<int>(most);
}

uint64_t resident_workgroups(const Machine& m, const KernelInfo& k, uint32_t work_items, size_t dynamic_lds_bytes) {
  const auto per_unit = static_cast<uint64_t>(std::max(workgroups_per_unit(k, work_items, dynamic_lds_bytes), 1));
  const uint64_t fits = per_unit * static_cast<uint64_t>(m.units);
  return m.resident != 0 ? std::min(m.resident, fits) : fits;
}

}  // namespace mi350::emu
