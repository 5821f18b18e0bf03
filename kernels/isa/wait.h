// Waits, barriers and scheduling fences. Those that order memory also stop the compiler from moving it.
#pragma once
#include "types.h"

namespace mi350 {

// At most kOutstanding vector memory instructions of this wave are left in flight.
template <int kOutstanding>
MI350_DEVICE void wait_vmcnt() {
  static_assert(kOutstanding >= 0 && kOutstanding < 64, "vmcnt has 6 bits");
  asm volatile("s_waitcnt vmcnt(%0)" :: "n"(kOutstanding) : "memory");
}

// LDS reads and writes of this wave are done, then the workgroup meets.
MI350_DEVICE void lgkmcnt0_barrier() { asm volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory"); }

// The scheduler moves nothing across: bounds how far loads are hoisted, and with it the registers.
MI350_DEVICE void sched_fence() { __builtin_amdgcn_sched_barrier(0); }

}  // namespace mi350
