// What an observer of running waves sees: the checkers of check mode, the timing model of time mode.
//
// Fast mode has none and pays for none: the run loop has a second copy for watched waves, and the memory handlers
// ask `w.watch` only. One Watch per host thread; waves and workgroups stay on the thread that started them.
#pragma once
#include <cstdint>

#include "inst.h"

namespace mi350::emu {

struct Wave;
struct Workgroup;

// One memory access of one instruction; the two-address LDS forms make two. Told before memory or registers
// change. Pointers are valid during the call only.
struct Access {
  enum Space : uint8_t { kGlobal, kLds, kScratch };
  enum Kind : uint8_t { kLoad, kStore, kAtomic, kDma };
  Space space = kGlobal;  // a load to LDS is one access of kGlobal with kind kDma
  Kind kind = kLoad;
  bool scalar = false;    // lane 0 only; the data are SGPRs
  bool clamped = false;   // a descriptor's range check stood before it
  int bytes = 0;          // per lane
  uint64_t mask = 0;      // lanes that touch memory
  uint64_t outside = 0;   // active lanes that the descriptor or the LDS limit held off: they load 0, store nothing
  uint64_t base = 0;      // kGlobal: lane l is at base + at[l]
  const uint64_t* at = nullptr;
  const uint32_t* lds = nullptr;        // kLds: byte offset of the lane; kDma: where it lands; kScratch: offset in
                                        // the lane's private memory
  const uint8_t* lane_bytes = nullptr;  // bytes of the lanes in `mask` that are cut short; null: none is
  uint64_t lds_mask = 0;  // kDma: lanes that write LDS (also those in `outside`, which bring 0)
  int lds_bytes = 0;      // kDma: per lane; narrow loads are widened to 4

  uint64_t address(int lane) const { return base + at[lane]; }
  int bytes_of(int lane) const { return lane_bytes == nullptr ? bytes : lane_bytes[lane]; }
};

class Watch {
 public:
  virtual ~Watch() = default;

  // Registers and LDS are in their start state. end_wave: its last instruction ran, or the launch stopped.
  virtual void start_group(Workgroup&) {}
  virtual void start_wave(Wave&) {}
  virtual void end_wave(Wave&) {}
  virtual void end_group(Workgroup&) {}
  // The waves of the group that wait at a barrier go on.
  virtual void release_barrier(Workgroup&) {}
  // The launch stops because this wave and all others have made no progress for too long.
  virtual void stuck(Wave&) {}

  // Around every instruction; w.pc is already the index after it.
  virtual void before(Wave& w, const Inst& i) = 0;
  virtual void after(Wave& w, const Inst& i) = 0;
  virtual void access(Wave& w, const Inst& i, const Access& a) = 0;

  // The lanes of a.mask are outside every allocation. True: they load 0 and store nothing; false: the wave faults.
  virtual bool tolerates(Wave& w, const Inst& i, const Access& a) = 0;
  // Asked after access() of a load to LDS. data: 16 bytes a lane. True: the watch will write the LDS itself.
  virtual bool defer_dma(Wave&, const Inst&, const Access&, const uint8_t* data) { return false; }
};

}  // namespace mi350::emu
