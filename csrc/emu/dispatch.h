// Runs one kernel: workgroups over host threads, waves of a workgroup on one thread in turns.
//
// Workgroups start in the order of their ids, or in the opposite one. A thread runs a workgroup until it ends, polls, sleeps or has used
// its slice; then the next id starts or an earlier one goes on. So a workgroup may wait for any other one, with
// any number of host threads, as long as the machine (machine.h) holds them at once.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "check/settings.h"
#include "code_object.h"
#include "machine.h"
#include "wave.h"

namespace mi350::emu {

struct Launch {
  const CodeObject* object = nullptr;
  const KernelInfo* kernel = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1};    // workgroups
  std::array<uint32_t, 3> block{64, 1, 1};  // work-items
  uint32_t dynamic_lds_bytes = 0;
  std::vector<uint8_t> kernarg;             // the explicit arguments in place; hidden ones are filled in here
  Settings settings;
  Machine machine;
  int device = 0;

  uint64_t workgroups() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  uint32_t work_items() const { return block[0] * block[1] * block[2]; }
  uint32_t waves() const { return (work_items() + kLanes - 1) / kLanes; }
  uint32_t lds_bytes() const { return kernel->group_segment_bytes + dynamic_lds_bytes; }
};

enum class LaunchResult : uint8_t { kDone, kFault, kIllegalAddress, kNoProgress };

struct LaunchOutcome {
  LaunchResult result = LaunchResult::kDone;
  std::string report;
  Counters counters;
  uint64_t workgroups = 0;
};

LaunchOutcome run_launch(const Launch& launch);

// Every undecodable or unimplemented instruction gets a handler that stops the wave and names it.
void make_executable(Program& program);

}  // namespace mi350::emu
