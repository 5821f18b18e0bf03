// An AMDGPU code object in memory: loaded and relocated image, kernels, decoded text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "decode.h"

namespace mi350::emu {

class LineTable;  // check/line_table.h

struct KernelArgument {
  uint32_t offset = 0, size = 0;
  std::string kind;    // by_value, global_buffer, dynamic_shared_pointer, hidden_block_count_x, ...
  std::string name;
};

struct KernelInfo {
  std::string name;            // without .kd
  uint64_t descriptor = 0;     // host address of the 64-byte descriptor in the image
  uint32_t entry = 0;          // index of the first instruction
  uint32_t preloaded_entry = 0;  // entry + 256 bytes: where to start once the preloaded SGPRs are filled
  uint32_t group_segment_bytes = 0, private_segment_bytes = 0;
  uint32_t kernarg_bytes = 0, kernarg_align = 8;
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;     // the enables of the leading user SGPRs, see the accessors
  uint32_t preload_dwords = 0, preload_offset_dwords = 0;
  uint32_t vgprs = 0;          // unified registers per lane
  uint32_t accum_offset = 0;   // of them, arch VGPRs
  uint32_t sgprs = 0;
  uint32_t max_workgroup_size = 1024;
  uint32_t required_workgroup_size[3] = {0, 0, 0};  // 0: any
  uint32_t vgpr_spills = 0, sgpr_spills = 0;
  std::vector<KernelArgument> args;

  bool has_private_buffer() const { return properties & 1; }
  bool has_dispatch_ptr() const { return properties & 2; }
  bool has_queue_ptr() const { return properties & 4; }
  bool has_kernarg_ptr() const { return properties & 8; }
  bool has_dispatch_id() const { return properties & 16; }
  bool has_flat_scratch() const { return properties & 32; }
  bool has_private_size() const { return properties & 64; }
  bool has_dynamic_stack() const { return properties & 2048; }
  uint32_t user_sgprs() const { return (rsrc2 >> 1) & 31; }
  bool has_workgroup_id(int axis) const { return (rsrc2 >> (7 + axis)) & 1; }
  bool has_workgroup_info() const { return (rsrc2 >> 10) & 1; }
  uint32_t work_item_id_axes() const { return ((rsrc2 >> 11) & 3) + 1; }
  // The MODE register that waves start with.
  uint32_t start_mode() const;
};

struct Variable {  // device globals, for hipModuleGetGlobal
  std::string name;
  uint64_t address = 0, bytes = 0;
};

struct FreeImage {
  size_t bytes = 0;
  void operator()(uint8_t* image) const;
};

// The line-number sections as they stand in the file, kept for reports.
struct DebugLines {
  std::vector<uint8_t> line, line_strings, strings;
  uint64_t text_address = 0;  // of the text in the file's own counting
};

struct CodeObject {
  CodeObject();
  ~CodeObject();

  std::unique_ptr<uint8_t, FreeImage> image;  // page-aligned; relocations point into it
  size_t image_bytes = 0;
  std::vector<KernelInfo> kernels;
  std::vector<Variable> variables;
  Program program;
  DebugLines debug;

  // "file:line" of an instruction, or empty. Reads the sections at the first call; any thread.
  std::string source_of(const Inst& i) const;
  const KernelInfo* find_kernel(const std::string& name) const;

 private:
  mutable std::once_flag lines_once_;
  mutable std::unique_ptr<LineTable> lines_;
};

// An ELF file or a clang offload bundle with a gfx950 entry. nullptr and one sentence on anything else.
std::unique_ptr<CodeObject> load_code_object(std::span<const uint8_t> file, std::string* error);

// A copy of the ELF or bundle that starts at `data`, for callers who have only a pointer (hipModuleLoadData):
// as long as its own headers say, shorter where memory ends before. Empty if it is neither.
std::vector<uint8_t> copy_code_object(const void* data);

}  // namespace mi350::emu
