// State of one wave of 64 lanes and of the workgroup it belongs to.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

#include "inst.h"

namespace mi350::emu {

constexpr int kLanes = 64;

class Memory;       // memory.h: the allocation map, bounds checks
struct Program;     // code_object.h: decoded instructions of one code object
class Watch;        // watch.h: observer of check and time mode

struct Counters {   // per launch, summed over waves
  uint64_t instructions = 0, mfma_flops = 0, mfma_instructions = 0, global_bytes = 0, lds_bytes = 0;
};

struct Workgroup {
  uint32_t id[3] = {0, 0, 0};
  uint64_t linear = 0;         // position in the order of ids
  uint8_t* lds = nullptr;
  uint32_t lds_bytes = 0;
  uint32_t waves = 0, ended = 0, at_barrier = 0;
  uint32_t xcd = 0, unit = 0;  // where it runs: dies in turn by id, then the units of a die
  uint32_t watch_slot = 0;     // the watch's own number of it, small and reused
};

enum class WaveStatus : uint8_t {
  kRunning, kBarrier,   // waits at s_barrier
  kYield,               // gave up its slice (s_sleep, polling); runnable
  kEnded, kFault,
};

struct alignas(64) Wave {
  uint32_t vgpr[512][kLanes];  // arch 0..255, accumulation 256..511; operand code - kVgpr0 indexes it
  uint32_t sgpr[128];          // by operand code: 106/107 vcc, 124 m0, 126/127 exec
  uint32_t pc = 0;             // index of the next instruction in program->insts; the run loop increments it before exec
  bool scc = false;
  WaveStatus status = WaveStatus::kRunning;
  uint32_t mode = 0;           // MODE register (rounding 3:0, denormals 7:4, DX10_CLAMP 8, IEEE 9, FP16_OVFL 23)
  uint32_t wave_in_group = 0;
  uint64_t progress = 0;       // stores, atomics and changed loads: what keeps a long kernel alive
  uint64_t scratch_base = 0;   // host address of the wave's private memory, lane-swizzled by dword
  uint32_t scratch_bytes_per_lane = 0;
  Workgroup* group = nullptr;
  Memory* memory = nullptr;
  const Program* program = nullptr;
  Counters counters;
  Watch* watch = nullptr;
  uint32_t watch_slot = 0;     // the watch's own number of the wave, small and reused
  uint64_t cached_lo = 0, cached_hi = 0;  // last allocation that an access fell into: [lo, hi)
  std::string fault;           // set with status kFault
  bool illegal_address = false;  // the fault is an access outside every allocation

  // Taken branches, newest at (jump_count - 1) % kJumps: the last instructions of a report follow from them.
  static constexpr uint32_t kJumps = 16;
  struct Jump { uint32_t from, to; } jumps[kJumps];
  uint32_t jump_count = 0;
  uint32_t start_pc = 0;
  // What loads saw, by hash of the address: a repeated load of an unchanged value is a poll (note_load).
  static constexpr uint32_t kSeenLoads = 256;
  uint32_t seen_loads[kSeenLoads];
  uint64_t load_progress = 0;   // loads of something new; weaker evidence of life than `progress`
  uint32_t polls = 0;

  uint64_t exec() const { uint64_t v; std::memcpy(&v, &sgpr[kExecLo], 8); return v; }
  void set_exec(uint64_t v) { std::memcpy(&sgpr[kExecLo], &v, 8); }
  uint64_t vcc() const { uint64_t v; std::memcpy(&v, &sgpr[kVccLo], 8); return v; }
  void stop(std::string why) { status = WaveStatus::kFault; fault = std::move(why); }
};

}  // namespace mi350::emu
