// What differs between the torch versions we build for (2.11 to 2.14), in one place. Presence is asked of the
// headers and never concluded from a version number; schemas are compared at run time by route/install.
#pragma once
#include <ATen/core/boxing/KernelFunction.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

// Kineto's plug-in registry for PrivateUse1: absent from 2.11, where kernels on `cdna` are not profiled.
#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)
#define MI350_HAS_KINETO_REGISTRY 1
#else
#define MI350_HAS_KINETO_REGISTRY 0
#endif

namespace mi350::runtime {

// The kernel that `captured` holds, to be called without boxing. No public access before 2.14; the member has
// had this name since 2.9, and naming it in an explicit instantiation is what the language allows.
const c10::KernelFunction& captured_kernel(const c10::SafeKernelFunction& captured);

}  // namespace mi350::runtime
