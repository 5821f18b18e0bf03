// The NT_AMDGPU_METADATA note.
#include "metadata.h"

#include <nlohmann/json.hpp>

namespace mi350::emu {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 32;

// The parser recurses per nesting level, so depth is bounded before it sees the bytes. A level is a container
// whose announced items have not all started; truncated input is left to the parser.
bool nests_too_deep(std::span<const uint8_t> data) {
  std::vector<uint64_t> open;  // items left per container
  size_t at = 0;
  auto big_endian = [&](size_t bytes) {
    uint64_t v = 0;
    for (size_t n = 0; n < bytes; ++n) v = v << 8 | (at + n < data.size() ? data[at + n] : 0);
    at += bytes;
    return v;
  };
  while (at < data.size()) {
    while (!open.empty() && open.back() == 0) open.pop_back();
    if (!open.empty()) --open.back();
    const uint8_t tag = data[at++];
    uint64_t items = 0, skip = 0;
    if (tag >= 0x80 && tag <= 0x8f) items = 2u * (tag & 15);
    else if (tag >= 0x90 && tag <= 0x9f) items = tag & 15;
    else if (tag >= 0xa0 && tag <= 0xbf) skip = tag & 31;
    else switch (tag) {
      case 0xc4: case 0xd9: skip = big_endian(1); break;
      case 0xc5: case 0xda: skip = big_endian(2); break;
      case 0xc6: case 0xdb: skip = big_endian(4); break;
      case 0xcc: case 0xd0: skip = 1; break;
      case 0xcd: case 0xd1: skip = 2; break;
      case 0xca: case 0xce: case 0xd2: skip = 4; break;
      case 0xcb: case 0xcf: case 0xd3: skip = 8; break;
      case 0xdc: items = big_endian(2); break;
      case 0xdd: items = big_endian(4); break;
      case 0xde: items = 2 * big_endian(2); break;
      case 0xdf: items = 2 * big_endian(4); break;
      default: break;
    }
    at += skip;
    if (items == 0) continue;
    open.push_back(items);
    if (open.size() > kMaxDepth) return true;
  }
  return false;
}

uint32_t uint_of(const json& object, const char* key, uint32_t otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return otherwise;
  const auto value = found->get<int64_t>();
  return value < 0 || value > UINT32_MAX ? otherwise : static_cast<uint32_t>(value);
}
std::string string_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

KernelArgument read_argument(const json& a) {
  return {uint_of(a, ".offset", 0), uint_of(a, ".size", 0), string_of(a, ".value_kind"), string_of(a, ".name")};
}

KernelMetadata read_kernel(const json& k) {
  KernelMetadata m;
  m.name = string_of(k, ".name");
  m.descriptor_symbol = string_of(k, ".symbol");
  m.kernarg_bytes = uint_of(k, ".kernarg_segment_size", 0);
  m.kernarg_align = uint_of(k, ".kernarg_segment_align", 8);
  m.group_segment_bytes = uint_of(k, ".group_segment_fixed_size", 0);
  m.private_segment_bytes = uint_of(k, ".private_segment_fixed_size", 0);
  m.wavefront = uint_of(k, ".wavefront_size", 64);
  m.max_workgroup_size = uint_of(k, ".max_flat_workgroup_size", 1024);
  m.sgprs = uint_of(k, ".sgpr_count", 0);
  m.vgpr_spills = uint_of(k, ".vgpr_spill_count", 0);
  m.sgpr_spills = uint_of(k, ".sgpr_spill_count", 0);
  const auto size = k.find(".reqd_workgroup_size");
  if (size != k.end() && size->is_array() && size->size() == 3)
    for (size_t n = 0; n < 3; ++n)
      if ((*size)[n].is_number_unsigned()) m.required_workgroup_size[n] = (*size)[n].get<uint32_t>();
  if (const auto args = k.find(".args"); args != k.end() && args->is_array())
    for (const json& a : *args)
      if (a.is_object()) m.args.push_back(read_argument(a));
  return m;
}

}  // namespace

std::string read_metadata(std::span<const uint8_t> note, std::vector<KernelMetadata>& out) {
  if (note.empty()) return "no NT_AMDGPU_METADATA note";
  if (nests_too_deep(note)) return "corrupt metadata note: nested too deep";
  const json root = json::from_msgpack(note.begin(), note.end(), true, false);
  if (root.is_discarded() || !root.is_object()) return "corrupt metadata note: not a msgpack map";
  const auto kernels = root.find("amdhsa.kernels");
  if (kernels == root.end()) return "";
  if (!kernels->is_array()) return "corrupt metadata note: amdhsa.kernels is not an array";
  for (const json& k : *kernels) {
    if (!k.is_object()) return "corrupt metadata note: a kernel is not a map";
    out.push_back(read_kernel(k));
    if (out.back().name.empty() || out.back().descriptor_symbol.empty())
      return "corrupt metadata note: a kernel without .name or .symbol";
  }
  return "";
}

}  // namespace mi350::emu
