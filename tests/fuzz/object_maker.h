// The smallest code object that the loader takes: one kernel, its descriptor, its metadata.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mi350::emu::fuzz {

struct KernelSpec {
  std::string name = "k";
  uint32_t group_segment_bytes = 0, private_segment_bytes = 0, kernarg_bytes = 64;
  uint32_t rsrc1 = 0x00af0000;         // nearest, denormals on, DX10_CLAMP, IEEE
  uint32_t rsrc2 = 2u << 1 | 7u << 7;  // two user SGPRs, three workgroup ids
  uint32_t rsrc3 = 0;
  uint16_t properties = 8;  // kernarg pointer
  uint16_t preload = 0;
  uint32_t max_workgroup_size = 1024;
  std::vector<uint32_t> words;
};

std::vector<uint8_t> make_object(const KernelSpec& spec);

// A clang offload bundle with one entry.
std::vector<uint8_t> make_bundle(const std::string& id, const std::vector<uint8_t>& payload);

}  // namespace mi350::emu::fuzz
