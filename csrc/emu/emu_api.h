// What libmi350emu exports beside HIP's C functions: the report of the last fault and the counters.
// Plain C, resolved by dlsym; all functions are thread-safe.
#pragma once
#include <cstdint>

extern "C" {

struct Mi350EmuCounters {
  uint64_t launches, workgroups, instructions, mfma_instructions, mfma_flops, global_bytes, lds_bytes;
  uint64_t kernel_ns;   // host time spent in kernels
};

// Sums since the process started or the last reset.
void mi350emuCounters(Mi350EmuCounters* out);
void mi350emuResetCounters();

// Report of the last failed launch or load of this process: kernel, pc, words, disassembly, wave, last
// ten instructions. Empty if none. Valid until the next failure.
const char* mi350emuLastReport();

// Kernel launches are reported to this function after they ran, on the launching thread.
// times in ns of CLOCK_REALTIME.
typedef void (*Mi350EmuLaunchHook)(const char* kernel, uint64_t begin_ns, uint64_t end_ns, void* stream);
void mi350emuSetLaunchHook(Mi350EmuLaunchHook hook);

// Mode of the launches to come: "fast" or "check"; null or "": what TORCH_MI350_EMU says. 1: unknown mode.
int mi350emuSetMode(const char* mode);
// 1: our own rules; 0: rules that code proven on hardware breaks only advise; -1: what TORCH_MI350_EMU_STRICT says.
void mi350emuSetStrict(int strict);

// What check mode found since the process started or the last clear: distinct findings, those of severity error,
// and {"findings": [...], "counters": [...]} as JSON, valid until the calling thread asks again.
uint64_t mi350emuFindingCount();
uint64_t mi350emuErrorCount();
const char* mi350emuFindings();
void mi350emuClearFindings();
}
