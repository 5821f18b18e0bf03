// What both cases share: the HIP functions, a guarded device buffer with known contents, the rule for errors.
#pragma once
#include <stddef.h>

#include <cstdint>

extern "C" {
int hipMalloc(void**, size_t);
int hipModuleLoadData(void**, const void*);
int hipModuleUnload(void*);
int hipModuleGetFunction(void**, void*, const char*);
int hipModuleGetGlobal(void**, size_t*, void*, const char*);
int hipFuncGetAttribute(int*, int, void*);
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, size_t);
int hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                          void**, void**);
int hipGetLastError();
}

namespace mi350::emu::fuzz {

constexpr uint32_t kBufferBytes = 16384;

// One thread, and few instructions per launch: endless kernels are cut short. Called by every case.
void prepare();

// The one device buffer of the process, filled from `seed`.
uint8_t* filled_buffer(uint64_t seed);

// A failure must come with a sentence. Aborts the process otherwise; returns true on success.
bool succeeded(int error, const char* what);

}  // namespace mi350::emu::fuzz
