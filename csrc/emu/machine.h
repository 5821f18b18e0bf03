// The machine that the emulator stands for: dies, compute units, devices, and how workgroups get onto it.
//
//   TORCH_MI350_EMU_XCDS=1..8            dies of a device (a partition has fewer than the board's 8)
//   TORCH_MI350_EMU_CUS=n                compute units of a device, the same number on every die, at most 32 there
//   TORCH_MI350_EMU_DEVICES=0..64        devices
//   TORCH_MI350_EMU_ORDER=forward|reverse  workgroups start from the first or from the last id
//   TORCH_MI350_EMU_RESIDENT=n           workgroups on the device at once, if fewer than it could hold
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "code_object.h"

namespace mi350::emu {

constexpr int kMostXcds = 8, kUnitsPerXcd = 32, kMostDevices = 64;

struct Machine {
  int xcds = kMostXcds;
  int units = kMostXcds * kUnitsPerXcd;
  int devices = 1;
  bool reverse = false;
  uint64_t resident = 0;  // 0: what fits

  int units_per_xcd() const { return units / xcds; }
};

// A sentence about the first bad value, which keeps its default; or empty.
std::string read_machine(Machine* out);
Machine machine();

// Workgroups of `work_items` that one compute unit holds by registers, waves, barriers and LDS; 0: not one.
int workgroups_per_unit(const KernelInfo& kernel, uint32_t work_items, size_t dynamic_lds_bytes);

// Workgroups of a launch that the device holds at once: more must not be needed for progress.
uint64_t resident_workgroups(const Machine& m, const KernelInfo& kernel, uint32_t work_items,
                             size_t dynamic_lds_bytes);

}  // namespace mi350::emu
