// One checker: what the Checker of a host thread forwards to it. A part keeps its state of a wave under
// w.watch_slot and of a workgroup under w.group->watch_slot; both are small numbers that come back after the end.
#pragma once
#include "check/reporter.h"
#include "watch.h"
#include "wave.h"

namespace mi350::emu {

class Part {
 public:
  enum Want : uint8_t { kNothing = 0, kBefore = 1, kAfter = 2 };
  virtual ~Part() = default;

  // Asked once per instruction of a launch: where before() and after() are to be called.
  virtual unsigned wants(const Inst&) const { return kNothing; }

  virtual void start_group(Workgroup&) {}
  virtual void start_wave(Wave&) {}
  virtual void end_wave(Wave&) {}
  virtual void end_group(Workgroup&) {}
  virtual void release_barrier(Workgroup&) {}
  virtual void stuck(Wave&) {}
  virtual void before(Wave&, const Inst&) {}
  virtual void after(Wave&, const Inst&) {}
  virtual void access(Wave&, const Inst&, const Access&) {}
  virtual bool defer_dma(Wave&, const Inst&, const Access&, const uint8_t*) { return false; }
};

}  // namespace mi350::emu
