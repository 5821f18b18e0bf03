// Host threads that help the launching thread. They start with the first launch that wants them and live on.
#pragma once
#include <functional>

namespace mi350::emu {

// TORCH_MI350_EMU_THREADS, else the number of host cores; at least 1.
unsigned host_threads();

// Runs `work` on this thread and on up to `helpers` others; returns when all of them have returned. The helpers
// of a second launch at the same time are not available: that one runs on its own thread alone.
void run_with_helpers(unsigned helpers, const std::function<void()>& work);

}  // namespace mi350::emu
