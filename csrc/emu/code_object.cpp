// Code objects: offload bundle -> ELF -> segments at their virtual addresses in one buffer -> relocations ->
// kernel descriptors and metadata -> decoded text.
#include "code_object.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <map>

#include "check/line_table.h"
#include "elf_file.h"
#include "metadata.h"
#include "readable_memory.h"

namespace mi350::emu {
namespace {

constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__", kCompressedMagic = "CCOB";
constexpr uint64_t kMaxImageBytes = 256ull << 20, kMaxFileBytes = 2 * kMaxImageBytes, kMaxBundleEntries = 1024;
constexpr uint64_t kMaxBundleHeaderBytes = 1 << 20, kMaxKernargBytes = 1 << 20;
constexpr uint32_t kNoteMetadata = 32;  // NT_AMDGPU_METADATA
constexpr uint32_t kMachGfx950 = 0x4f;
constexpr uint32_t kXnackOn = 0x300, kXnackMask = 0x300, kSrameccOff = 0x800, kSrameccMask = 0xc00;
constexpr uint32_t kPreloadFallbackBytes = 256, kDescriptorBytes = 64;
enum Relocation : uint32_t {
  kNone = 0, kAbs32Lo = 1, kAbs32Hi = 2, kAbs64 = 3, kRel32 = 4, kRel64 = 5, kAbs32 = 6,
  kRel32Lo = 10, kRel32Hi = 11, kRelative64 = 13,
};

bool starts_with(std::span<const uint8_t> file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

struct BundleEntry {
  uint64_t offset = 0, bytes = 0;
  uint64_t header_end = 0;  // where this entry of the header ends
  std::string id;
};

// header: u64 count, then per entry u64 offset, u64 size, u64 length of the id, id.
std::string read_bundle(std::span<const uint8_t> file, std::vector<BundleEntry>& entries) {
  size_t at = kBundleMagic.size();
  auto u64 = [&](uint64_t& v) {
    if (file.size() - at < 8) return false;
    std::memcpy(&v, file.data() + at, 8);
    at += 8;
    return true;
  };
  uint64_t count = 0;
  if (!u64(count) || count > kMaxBundleEntries) return "corrupt offload bundle: bad entry count";
  for (uint64_t n = 0; n < count; ++n) {
    BundleEntry e;
    uint64_t id_bytes = 0;
    if (!u64(e.offset) || !u64(e.bytes) || !u64(id_bytes) || id_bytes > file.size() - at)
      return "corrupt offload bundle: truncated entry " + std::to_string(n);
    e.id.assign(reinterpret_cast<const char*>(file.data()) + at, id_bytes);
    at += id_bytes;
    e.header_end = at;
    entries.push_back(std::move(e));
  }
  return "";
}

std::string find_in_bundle(std::span<const uint8_t> file, std::span<const uint8_t>& elf) {
  std::vector<BundleEntry> entries;
  if (std::string why = read_bundle(file, entries); !why.empty()) return why;
  std::string seen;
  for (const BundleEntry& e : entries) {
    if (e.id.find("gfx950") == std::string::npos || e.id.find("xnack+") != std::string::npos ||
        e.id.find("sramecc-") != std::string::npos) {
      seen += (seen.empty() ? "" : ", ") + e.id;
      continue;
    }
    if (e.offset > file.size() || e.bytes > file.size() - e.offset)
      return "corrupt offload bundle: entry " + e.id + " reaches outside the file";
    elf = file.subspan(e.offset, e.bytes);
    return "";
  }
  return "no entry for gfx950 in the offload bundle, it has: " + (seen.empty() ? "nothing" : seen);
}

std::string check_target(uint32_t flags) {
  if ((flags & 0xff) != kMachGfx950) {
    char text[96];
    std::snprintf(text, sizeof text, "foreign processor: e_flags must name gfx950 (0x4f), got 0x%02x", flags & 0xff);
    return text;
  }
  if ((flags & kXnackMask) == kXnackOn) return "built for gfx950:xnack+, the device is gfx950:sramecc+:xnack-";
  if ((flags & kSrameccMask) == kSrameccOff)
    return "built for gfx950:sramecc-, the device is gfx950:sramecc+:xnack-";
  return "";
}

// What a launch allocates and copies follows from these numbers.
std::string check_arguments(const KernelMetadata& m, uint64_t kernarg_bytes) {
  uint64_t end = kernarg_bytes;
  for (const KernelArgument& a : m.args) end = std::max(end, uint64_t{a.offset} + a.size);
  if (end <= kMaxKernargBytes) return "";
  return "kernel " + m.name + ": " + std::to_string(end) + " bytes of arguments, the most is " +
         std::to_string(kMaxKernargBytes);
}

class Loader {
 public:
  explicit Loader(CodeObject& object) : object_(object) {}

  std::string load(std::span<const uint8_t> file) {
    if (std::string why = elf_.open(file); !why.empty()) return why;
    for (auto step : {&Loader::map_segments, &Loader::collect_symbols, &Loader::relocate})
      if (std::string why = (this->*step)(); !why.empty()) return why;
    if (std::string why = read_metadata(elf_.note("AMDGPU", kNoteMetadata), metadata_); !why.empty()) return why;
    keep_lines();
    return add_kernels();
  }

 private:
  std::string map_segments();
  std::string collect_symbols();
  std::string relocate();
  std::string relocate_one(const Elf64_Rela& r, const std::vector<ElfFile::Symbol>& symbols);
  std::string add_kernels();
  std::string add_kernel(const KernelMetadata& m, std::vector<uint64_t>& entries);
  void resolve_entries(const std::vector<uint64_t>& entries);
  void keep_lines();

  bool in_image(uint64_t address, uint64_t bytes) const {
    return address <= object_.image_bytes && bytes <= object_.image_bytes - address;
  }
  uint8_t* at(uint64_t address) const { return object_.image.get() + address; }
  uint64_t host(uint64_t address) const { return std::bit_cast<uint64_t>(at(0)) + address; }

  CodeObject& object_;
  ElfFile elf_;
  std::map<std::string_view, Elf64_Sym> symbols_;  // names lie in the file
  std::vector<KernelMetadata> metadata_;
  uint64_t text_begin_ = 0, text_end_ = 0;
};

std::string Loader::map_segments() {
  if (std::string why = check_target(elf_.header().e_flags); !why.empty()) return why;
  uint64_t end = 0;
  for (const Elf64_Phdr& p : elf_.segments()) {
    if (p.p_type != PT_LOAD) continue;
    if (!elf_.fits(p.p_offset, p.p_filesz)) return "truncated: a segment reaches outside the file";
    if (p.p_filesz > p.p_memsz || p.p_vaddr > kMaxImageBytes || p.p_memsz > kMaxImageBytes)
      return "corrupt program header: a segment has an impossible address or size";
    end = std::max(end, p.p_vaddr + p.p_memsz);
    if (!(p.p_flags & PF_X)) continue;
    if (text_end_) return "more than one executable segment";
    if (p.p_filesz == 0) return "no code: the executable segment is empty (a file of debug information alone?)";
    text_begin_ = p.p_vaddr;
    text_end_ = p.p_vaddr + p.p_filesz;
  }
  if (end == 0) return "nothing to load: no PT_LOAD segment";
  if (text_begin_ % 4) return "corrupt program header: the text is not aligned to 4 bytes";
  const size_t bytes = (end + 4095) & ~size_t{4095};
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return "out of memory: " + std::to_string(bytes) + " bytes for the image";
  object_.image = std::unique_ptr<uint8_t, FreeImage>(static_cast<uint8_t*>(memory), FreeImage{bytes});
  object_.image_bytes = bytes;
  for (const Elf64_Phdr& p : elf_.segments())
    if (p.p_type == PT_LOAD && p.p_filesz)
      std::memcpy(at(p.p_vaddr), elf_.bytes(p.p_offset, p.p_filesz).data(), p.p_filesz);
  return "";
}

std::string Loader::collect_symbols() {
  unsigned seen = 0;
  for (size_t n = 0; n < elf_.sections().size(); ++n) {
    const uint32_t type = elf_.sections()[n].sh_type;
    if (type != SHT_DYNSYM && type != SHT_SYMTAB) continue;
    if (++seen > 2) return "corrupt section headers: more than two symbol tables";
    for (const ElfFile::Symbol& s : elf_.symbols(n)) {
      if (s.name.empty() || s.entry.st_shndx == SHN_UNDEF || s.entry.st_shndx == SHN_ABS) continue;
      symbols_.emplace(s.name, s.entry);
    }
  }
  for (const auto& [name, s] : symbols_) {
    const bool descriptor = name.size() > 3 && name.ends_with(".kd");
    if (ELF64_ST_TYPE(s.st_info) == STT_OBJECT && !descriptor && in_image(s.st_value, s.st_size))
      object_.variables.push_back({std::string(name), host(s.st_value), s.st_size});
  }
  return "";
}

std::string Loader::relocate() {
  uint64_t total = 0;  // no more than the file holds: tables that overlap would cost their product
  std::vector<ElfFile::Symbol> symbols;
  uint32_t link = 0;
  for (const Elf64_Shdr& s : elf_.sections()) {
    if (s.sh_type != SHT_RELA || !(s.sh_flags & SHF_ALLOC)) continue;
    if (s.sh_entsize != sizeof(Elf64_Rela) || !elf_.fits(s.sh_offset, s.sh_size))
      return "corrupt relocation section";
    total += s.sh_size;
    if (!elf_.fits(0, total)) return "corrupt relocation sections: they overlap";
    if (s.sh_link != link) symbols = elf_.symbols(link = s.sh_link);
    for (uint64_t n = 0; n + sizeof(Elf64_Rela) <= s.sh_size; n += sizeof(Elf64_Rela)) {
      Elf64_Rela r;
      elf_.read(s.sh_offset + n, r);
      if (std::string why = relocate_one(r, symbols); !why.empty()) return why;
    }
  }
  return "";
}

std::string Loader::relocate_one(const Elf64_Rela& r, const std::vector<ElfFile::Symbol>& symbols) {
  const auto type = static_cast<uint32_t>(ELF64_R_TYPE(r.r_info));
  const auto index = static_cast<uint32_t>(ELF64_R_SYM(r.r_info));
  if (type == kNone) return "";
  const bool wide = type == kAbs64 || type == kRel64 || type == kRelative64;
  if (!in_image(r.r_offset, wide ? 8 : 4)) return "corrupt relocation: offset outside the image";
  uint64_t value = host(0) + static_cast<uint64_t>(r.r_addend);
  if (type != kRelative64) {
    if (index >= symbols.size()) return "corrupt relocation: symbol " + std::to_string(index) + " does not exist";
    const ElfFile::Symbol& s = symbols[index];
    if (s.entry.st_shndx == SHN_UNDEF && ELF64_ST_BIND(s.entry.st_info) != STB_WEAK)
      return "undefined symbol: " + std::string(s.name);
    value = s.entry.st_shndx == SHN_UNDEF ? static_cast<uint64_t>(r.r_addend) : value + s.entry.st_value;
  }
  if (type == kRel32 || type == kRel64 || type == kRel32Lo || type == kRel32Hi) value -= host(r.r_offset);
  switch (type) {
    case kAbs64: case kRel64: case kRelative64: break;
    case kAbs32Hi: case kRel32Hi: value >>= 32; break;
    case kAbs32Lo: case kAbs32: case kRel32: case kRel32Lo: break;
    default: return "unsupported relocation type " + std::to_string(type);
  }
  std::memcpy(at(r.r_offset), &value, wide ? 8 : 4);
  return "";
}

std::string Loader::add_kernel(const KernelMetadata& m, std::vector<uint64_t>& entries) {
  const auto symbol = symbols_.find(m.descriptor_symbol);
  if (symbol == symbols_.end()) return "kernel " + m.name + ": symbol " + m.descriptor_symbol + " is missing";
  const uint64_t address = symbol->second.st_value;
  if (!in_image(address, kDescriptorBytes)) return "kernel " + m.name + ": descriptor outside the image";
  const uint8_t* d = at(address);
  auto field = [d](unsigned offset, auto& out) { std::memcpy(&out, d + offset, sizeof out); };

  KernelInfo k;
  uint32_t kernarg = 0;
  int64_t entry = 0;
  uint16_t preload = 0;
  field(0, k.group_segment_bytes);
  field(4, k.private_segment_bytes);
  field(8, kernarg);
  field(16, entry);
  field(44, k.rsrc3);
  field(48, k.rsrc1);
  field(52, k.rsrc2);
  field(56, k.properties);
  field(58, preload);
  k.name = m.name;
  if (std::string why = check_arguments(m, std::max(kernarg, m.kernarg_bytes)); !why.empty()) return why;
  k.descriptor = host(address);
  k.kernarg_bytes = std::max(kernarg, m.kernarg_bytes);  // hand-written descriptors say 0
  k.kernarg_align = m.kernarg_align;
  k.preload_dwords = preload & 0x7f;
  k.preload_offset_dwords = preload >> 7;
  k.vgprs = 8 * ((k.rsrc1 & 63) + 1);
  k.accum_offset = 4 * ((k.rsrc3 & 63) + 1);
  k.sgprs = m.sgprs;
  k.max_workgroup_size = m.max_workgroup_size;
  std::copy_n(m.required_workgroup_size, 3, k.required_workgroup_size);
  k.vgpr_spills = m.vgpr_spills;
  k.sgpr_spills = m.sgpr_spills;
  k.args = m.args;
  if (m.wavefront != 64 || (k.properties & 1024))
    return "kernel " + m.name + ": wavefront size must be 64, got " +
           std::to_string(m.wavefront == 64 ? 32 : m.wavefront);
  const uint64_t start = address + static_cast<uint64_t>(entry);
  if (start % 4 || start < text_begin_ || start >= text_end_)
    return "kernel " + m.name + ": entry point outside the text";
  entries.push_back(start - text_begin_);
  object_.kernels.push_back(std::move(k));
  return "";
}

std::string Loader::add_kernels() {
  std::vector<uint64_t> entries;
  for (const KernelMetadata& m : metadata_)
    if (std::string why = add_kernel(m, entries); !why.empty()) return why;
  if (text_end_) resolve_entries(entries);
  return "";
}

void Loader::resolve_entries(const std::vector<uint64_t>& entries) {
  std::vector<uint64_t> starts = entries;
  for (size_t n = 0; n < entries.size(); ++n)
    if (object_.kernels[n].preload_dwords) starts.push_back(entries[n] + kPreloadFallbackBytes);
  for (const auto& [name, s] : symbols_)
    if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_value % 4 == 0 && s.st_value >= text_begin_ &&
        s.st_value < text_end_)
      starts.push_back(s.st_value - text_begin_);
  std::sort(starts.begin(), starts.end());
  std::vector<uint32_t> words((text_end_ - text_begin_) / 4);
  if (!words.empty()) std::memcpy(words.data(), at(text_begin_), 4 * words.size());
  Program& p = object_.program;
  p = decode_text(words, starts);
  p.text_address = host(text_begin_);
  for (size_t n = 0; n < entries.size(); ++n) {
    KernelInfo& k = object_.kernels[n];
    k.entry = k.preloaded_entry = p.index_of_offset(static_cast<int64_t>(entries[n]));
    if (k.preload_dwords)
      k.preloaded_entry = p.index_of_offset(static_cast<int64_t>(entries[n] + kPreloadFallbackBytes));
  }
}

// Sections that no segment loads; a file without them, or a damaged name table, has no source lines.
void Loader::keep_lines() {
  DebugLines& d = object_.debug;
  d.text_address = text_begin_;
  for (const Elf64_Shdr& s : elf_.sections()) {
    const std::string_view name = elf_.string_at(elf_.header().e_shstrndx, s.sh_name);
    std::vector<uint8_t>* to = name == ".debug_line"       ? &d.line
                               : name == ".debug_line_str" ? &d.line_strings
                               : name == ".debug_str"      ? &d.strings
                                                           : nullptr;
    if (to == nullptr || !to->empty() || s.sh_type != SHT_PROGBITS || (s.sh_flags & SHF_COMPRESSED)) continue;
    const auto bytes = elf_.bytes(s.sh_offset, s.sh_size);
    to->assign(bytes.begin(), bytes.end());
  }
}

// Where [offset, offset + bytes) ends; nothing of a file lies beyond kMaxFileBytes.
uint64_t end_of(uint64_t offset, uint64_t bytes) {
  return offset > kMaxFileBytes || bytes > kMaxFileBytes ? kMaxFileBytes : std::min(offset + bytes, kMaxFileBytes);
}

uint64_t elf_bytes(const void* data) {
  const std::vector<uint8_t> head = copy_readable(data, sizeof(Elf64_Ehdr));
  Elf64_Ehdr h;
  if (head.size() < sizeof h) return head.size();
  std::memcpy(&h, head.data(), sizeof h);
  uint64_t end = std::max({uint64_t{sizeof h}, end_of(h.e_shoff, uint64_t{h.e_shnum} * h.e_shentsize),
                           end_of(h.e_phoff, uint64_t{h.e_phnum} * h.e_phentsize)});
  const std::vector<uint8_t> tables = copy_readable(data, end);
  for (uint64_t n = 0; n < h.e_phnum; ++n) {
    Elf64_Phdr p;
    const uint64_t at = h.e_phoff + n * sizeof p;
    if (at > tables.size() || tables.size() - at < sizeof p) break;
    std::memcpy(&p, tables.data() + at, sizeof p);
    end = std::max(end, end_of(p.p_offset, p.p_filesz));
  }
  return end;
}

uint64_t bundle_bytes(const void* data) {
  const std::vector<uint8_t> head = copy_readable(data, kMaxBundleHeaderBytes);
  std::vector<BundleEntry> entries;
  if (head.size() < kBundleMagic.size() || !read_bundle(head, entries).empty()) return head.size();
  uint64_t end = kBundleMagic.size() + 8;
  for (const BundleEntry& e : entries) end = std::max({end, e.header_end, end_of(e.offset, e.bytes)});
  return end;
}

}  // namespace

void FreeImage::operator()(uint8_t* image) const { munmap(image, bytes); }

uint32_t KernelInfo::start_mode() const {
  const uint32_t round_and_denorm = (rsrc1 >> 12) & 0xff;
  const uint32_t clamp = (rsrc1 >> 21) & 1, ieee = (rsrc1 >> 23) & 1, f16_overflow = (rsrc1 >> 26) & 1;
  return round_and_denorm | clamp << 8 | ieee << 9 | f16_overflow << 23;
}

CodeObject::CodeObject() = default;
CodeObject::~CodeObject() = default;

std::string CodeObject::source_of(const Inst& i) const {
  std::call_once(lines_once_, [this] {
    lines_ = std::make_unique<LineTable>(LineSections{debug.line, debug.line_strings, debug.strings});
  });
  return lines_->at(debug.text_address + i.offset_bytes);
}

const KernelInfo* CodeObject::find_kernel(const std::string& name) const {
  for (const KernelInfo& k : kernels)
    if (k.name == name || k.name + ".kd" == name) return &k;
  return nullptr;
}

std::unique_ptr<CodeObject> load_code_object(std::span<const uint8_t> file, std::string* error) {
  std::string why;
  std::span<const uint8_t> elf = file;
  if (starts_with(file, kCompressedMagic)) why = "compressed offload bundle: rebuild with --no-offload-compress";
  else if (starts_with(file, kBundleMagic)) why = find_in_bundle(file, elf);
  auto object = std::make_unique<CodeObject>();
  if (why.empty()) why = Loader(*object).load(elf);
  if (error) *error = why.empty() ? "" : "code object: " + why;
  return why.empty() ? std::move(object) : nullptr;
}

std::vector<uint8_t> copy_code_object(const void* data) {
  const std::vector<uint8_t> magic = copy_readable(data, kBundleMagic.size());
  if (starts_with(magic, ELFMAG)) return copy_readable(data, elf_bytes(data));
  if (starts_with(magic, kBundleMagic)) return copy_readable(data, bundle_bytes(data));
  if (starts_with(magic, kCompressedMagic)) return magic;  // enough for the loader to name it
  return {};
}

}  // namespace mi350::emu
