// File offset = virtual address: headers, note, descriptor, symbols, strings, text, section headers.
#include "object_maker.h"

#include <elf.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

namespace mi350::emu::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;

template <class T>
void append(Bytes& out, const T& value) {
  const auto* p = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), p, p + sizeof value);
}
void append_text(Bytes& out, std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }
void align(Bytes& out, size_t to) { out.resize((out.size() + to - 1) / to * to); }
template <class T>
void put(Bytes& out, size_t at, const T& value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

Bytes metadata(const KernelSpec& s) {
  using nlohmann::json;
  json args = json::array();
  args.push_back({{".name", "a"}, {".offset", 0}, {".size", 8}, {".value_kind", "global_buffer"}});
  args.push_back({{".name", "b"}, {".offset", 8}, {".size", 4}, {".value_kind", "by_value"}});
  args.push_back({{".offset", 16}, {".size", 4}, {".value_kind", "hidden_block_count_x"}});
  const json kernel = {{".name", s.name},
                       {".symbol", s.name + ".kd"},
                       {".kernarg_segment_size", s.kernarg_bytes},
                       {".kernarg_segment_align", 8},
                       {".group_segment_fixed_size", s.group_segment_bytes},
                       {".private_segment_fixed_size", s.private_segment_bytes},
                       {".wavefront_size", 64},
                       {".max_flat_workgroup_size", s.max_workgroup_size},
                       {".sgpr_count", 32},
                       {".args", args}};
  const json root = {{"amdhsa.version", {1, 2}}, {"amdhsa.kernels", json::array({kernel})}};
  return json::to_msgpack(root);
}

Bytes descriptor(const KernelSpec& s, int64_t entry) {
  Bytes d(64);
  put(d, 0, s.group_segment_bytes);
  put(d, 4, s.private_segment_bytes);
  put(d, 8, s.kernarg_bytes);
  put(d, 16, entry);
  put(d, 44, s.rsrc3);
  put(d, 48, s.rsrc1);
  put(d, 52, s.rsrc2);
  put(d, 56, s.properties);
  put(d, 58, s.preload);
  return d;
}

Elf64_Phdr segment(uint32_t type, uint32_t flags, size_t from, size_t to) {
  Elf64_Phdr p{};
  p.p_type = type;
  p.p_flags = flags;
  p.p_offset = p.p_vaddr = p.p_paddr = from;
  p.p_filesz = p.p_memsz = to - from;
  p.p_align = 4;
  return p;
}
Elf64_Shdr section(uint32_t type, size_t from, size_t to, size_t entry, uint32_t link) {
  Elf64_Shdr h{};
  h.sh_type = type;
  h.sh_flags = SHF_ALLOC;
  h.sh_addr = h.sh_offset = from;
  h.sh_size = to - from;
  h.sh_entsize = entry;
  h.sh_link = link;
  return h;
}
Elf64_Sym symbol(uint32_t name, uint8_t type, uint16_t section, size_t value, size_t bytes) {
  Elf64_Sym s{};
  s.st_name = name;
  s.st_info = static_cast<uint8_t>(STB_GLOBAL << 4 | type);
  s.st_shndx = section;
  s.st_value = value;
  s.st_size = bytes;
  return s;
}

Elf64_Ehdr header() {
  Elf64_Ehdr h{};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64;
  h.e_ident[EI_DATA] = ELFDATA2LSB;
  h.e_ident[EI_VERSION] = 1;
  h.e_ident[EI_OSABI] = 64;
  h.e_ident[EI_ABIVERSION] = 3;
  h.e_type = ET_DYN;
  h.e_machine = 224;
  h.e_version = 1;
  h.e_flags = 0x54f;
  h.e_ehsize = sizeof(Elf64_Ehdr);
  h.e_phentsize = sizeof(Elf64_Phdr);
  h.e_shentsize = sizeof(Elf64_Shdr);
  return h;
}

}  // namespace

Bytes make_object(const KernelSpec& s) {
  constexpr uint16_t kSegments = 4, kSections = 3;
  Bytes out(sizeof(Elf64_Ehdr) + kSegments * sizeof(Elf64_Phdr));
  const size_t note = out.size();
  const Bytes packed = metadata(s);
  append(out, Elf64_Nhdr{7, static_cast<Elf64_Word>(packed.size()), 32});
  append_text(out, std::string_view("AMDGPU\0\0", 8));
  out.insert(out.end(), packed.begin(), packed.end());
  align(out, 4);
  const size_t note_end = out.size();
  align(out, 64);
  const size_t kd = out.size(), symbols = kd + 64, strings = symbols + 3 * sizeof(Elf64_Sym);
  const auto name_bytes = static_cast<uint32_t>(s.name.size());
  const size_t text = (strings + 2 * name_bytes + 6 + 255) / 256 * 256;
  const Bytes d = descriptor(s, static_cast<int64_t>(text - kd));
  out.insert(out.end(), d.begin(), d.end());
  append(out, Elf64_Sym{});
  append(out, symbol(1, STT_FUNC, 1, text, 4 * s.words.size()));
  append(out, symbol(2 + name_bytes, STT_OBJECT, 1, kd, 64));
  append_text(out, std::string_view("\0", 1));
  append_text(out, s.name + '\0' + s.name + ".kd" + '\0');
  const size_t strings_end = out.size();
  out.resize(text);
  for (uint32_t w : s.words) append(out, w);
  const size_t text_end = out.size();
  align(out, 8);
  Elf64_Ehdr h = header();
  h.e_phoff = sizeof h;
  h.e_phnum = kSegments;
  h.e_shoff = out.size();
  h.e_shnum = kSections;
  append(out, Elf64_Shdr{});
  append(out, section(SHT_DYNSYM, symbols, strings, sizeof(Elf64_Sym), 2));
  append(out, section(SHT_STRTAB, strings, strings_end, 0, 0));
  put(out, 0, h);
  const Elf64_Phdr segments[kSegments] = {
      segment(PT_LOAD, PF_R, 0, text), segment(PT_LOAD, PF_R | PF_X, text, text_end),
      segment(PT_NOTE, PF_R, note, note_end), segment(PT_GNU_STACK, PF_R | PF_W, 0, 0)};
  std::memcpy(out.data() + sizeof h, segments, sizeof segments);
  return out;
}

Bytes make_bundle(const std::string& id, const Bytes& payload) {
  Bytes out;
  const uint64_t at = 256;
  append_text(out, std::string_view("__CLANG_OFFLOAD_BUNDLE__"));
  append(out, uint64_t{1});
  append(out, at);
  append(out, uint64_t{payload.size()});
  append(out, uint64_t{id.size()});
  append_text(out, id);
  out.resize(at);
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

}  // namespace mi350::emu::fuzz
