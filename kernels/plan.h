// What every planner takes and returns. Host-includable, no GPU, no torch.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace mi350 {

enum class DType : uint8_t { kBF16, kF16, kF32 };
constexpr int size_bytes(DType t) { return t == DType::kF32 ? 4 : 2; }
constexpr const char* name(DType t) { return t == DType::kBF16 ? "bf16" : t == DType::kF16 ? "f16" : "f32"; }

// The device as the planner sees it.
struct Device {
  int cus = 256;   // 32 in a partition
  int xcds = 8;
};

// Precision and determinism flags of the process that a plan must honour.
struct Flags {
  bool deterministic = false;
  bool allow_tf32 = false;
  bool allow_reduced_precision_reduction = true;
};

// One kernel launch of a plan. `args` is the kernarg segment, filled by the planner except for the
// pointers that launch.cpp patches in (see PointerSlot).
struct Launch {
  uint16_t kernel = 0;                    // row of the op's config table
  std::array<uint32_t, 3> grid{1, 1, 1};  // workgroups
  uint32_t block = 256;                   // work-items of a workgroup
  uint32_t lds_bytes = 0;                 // dynamic LDS
};

constexpr int kMaxLaunches = 4;

// Why a problem, or a config for it, is refused: empty means accepted.
using Reason = std::string;

}  // namespace mi350
