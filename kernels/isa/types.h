// Register types and qualifiers of device code. No HIP header: clang's attributes only.
#pragma once
#include <cstdint>

#define MI350_GLOBAL extern "C" __attribute__((global))
#define MI350_DEVICE __attribute__((device, always_inline)) inline

namespace mi350 {

using Bf16 = __bf16;
using F16 = _Float16;
using F32 = float;

#define MI350_VECTOR(name, element, lanes) typedef element name __attribute__((ext_vector_type(lanes)))
MI350_VECTOR(Bf16x4, __bf16, 4);
MI350_VECTOR(Bf16x8, __bf16, 8);
MI350_VECTOR(F16x4, _Float16, 4);
MI350_VECTOR(F16x8, _Float16, 8);
MI350_VECTOR(F32x4, float, 4);
MI350_VECTOR(F32x16, float, 16);
MI350_VECTOR(I16x4, short, 4);
MI350_VECTOR(I32x8, int, 8);
MI350_VECTOR(U32x2, unsigned, 2);
MI350_VECTOR(U32x4, unsigned, 4);
#undef MI350_VECTOR

using LdsBytes = __attribute__((address_space(3))) char*;

constexpr int kLanes = 64;

MI350_DEVICE uint32_t lane_id() { return __builtin_amdgcn_workitem_id_x() % kLanes; }
// Uniform, in an SGPR.
MI350_DEVICE uint32_t wave_id() { return __builtin_amdgcn_readfirstlane(__builtin_amdgcn_workitem_id_x() / kLanes); }

}  // namespace mi350
