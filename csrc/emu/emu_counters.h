// The sums behind mi350emuCounters() and the launch hook.
#pragma once
#include "dispatch.h"

namespace mi350::emu {

// Called by the launching thread after a kernel ran; times in ns of CLOCK_REALTIME.
void count_launch(const Launch& launch, const LaunchOutcome& outcome, uint64_t begin_ns, uint64_t end_ns,
                  void* stream);
uint64_t realtime_ns();

}  // namespace mi350::emu
