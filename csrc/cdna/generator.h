// Random number generator of cdna: torch's CPU generator under a device label, so that a seed gives the same
// numbers on cdna and on the CPU.
#pragma once
#include <ATen/core/Generator.h>

#include "cdna/cdna.h"

namespace mi350::cdna {

const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);

// The CPU generator inside: what CPU kernels draw from. Throws stock's error for a generator of another device.
const at::Generator& cpu_generator(const at::Generator& generator);

}  // namespace mi350::cdna
