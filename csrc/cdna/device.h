// Current device of a thread, error check of HIP calls, state after fork.
#pragma once
#include "cdna/cdna.h"
#include "runtime/find_hip.h"

namespace mi350::cdna {

// 0 when the emulator cannot be loaded or has no device.
c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device() noexcept;
void set_device(c10::DeviceIndex index);
void unchecked_set_device(c10::DeviceIndex index) noexcept;

// `index` -1 means the current device.
c10::DeviceIndex checked_index(c10::DeviceIndex index);

// The HIP functions with the emulator's current device set to this thread's. Marks the device as used;
// throws in a child that was forked after its parent had used the device.
const runtime::Hip& hip();
bool used() noexcept;
bool in_bad_fork() noexcept;

void check_hip(runtime::hipError_t code, const char* what);

}  // namespace mi350::cdna

#define MI350_CDNA_CHECK(fn, ...) ::mi350::cdna::check_hip(::mi350::cdna::hip().fn(__VA_ARGS__), #fn)
