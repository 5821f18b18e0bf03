// The NT_AMDGPU_METADATA note: msgpack, untrusted.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "code_object.h"

namespace mi350::emu {

struct KernelMetadata {
  std::string name, descriptor_symbol;
  uint32_t kernarg_bytes = 0, kernarg_align = 8, group_segment_bytes = 0, private_segment_bytes = 0;
  uint32_t wavefront = 64, max_workgroup_size = 1024, sgprs = 0, vgpr_spills = 0, sgpr_spills = 0;
  uint32_t required_workgroup_size[3] = {0, 0, 0};
  std::vector<KernelArgument> args;
};

// Empty on success.
std::string read_metadata(std::span<const uint8_t> note, std::vector<KernelMetadata>& out);

}  // namespace mi350::emu
