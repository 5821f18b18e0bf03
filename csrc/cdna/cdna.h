// The emulated torch device `cdna` (PrivateUse1). Nothing is registered until install() is called.
#pragma once
#include <cstddef>

#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>

namespace mi350::cdna {

inline constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

// Registers allocator, guard, hooks and kernels with torch and adds the functions of bindings.cpp to _C.
// Called from Python (the GIL is held); a second call does nothing. Touches no device.
void install();

}  // namespace mi350::cdna
