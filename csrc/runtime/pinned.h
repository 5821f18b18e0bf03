// Memory that both a GPU and the emulator can use, for TORCH_MI350_FORCE=emulate: pinned by the CUDA or HIP
// runtime that torch has mapped, and registered with the emulator. torch.cuda.memory.CUDAPluggableAllocator
// takes the two C functions from _C by name (torch_mi350/testing/pinned.py).
#pragma once
#include <cstddef>

namespace mi350::runtime {

// True if the address lies in a live allocation of mi350_pinned_alloc.
bool is_pinned(const void* address);

// True while the stream (a native handle of the mapped runtime) records a graph.
bool gpu_stream_captures(void* stream);

}  // namespace mi350::runtime

extern "C" {
// Throws c10::Error naming the size and the runtime's error. Null for no bytes.
__attribute__((visibility("default"))) void* mi350_pinned_alloc(size_t bytes, int device, void* stream);
// Waits for the device first: its work may still use the memory.
__attribute__((visibility("default"))) void mi350_pinned_free(void* address, size_t bytes, int device,
                                                              void* stream);
}
