// Bounds-checked reading of an AMDGPU ELF file.
#include "elf_file.h"

#include <algorithm>

namespace mi350::emu {
namespace {

#ifndef EM_AMDGPU
constexpr uint16_t EM_AMDGPU = 224;
#endif
constexpr uint8_t kOsAbiAmdgpuHsa = 64;
constexpr uint16_t kMaxSegments = 256;
constexpr size_t kMaxNameBytes = 65536;
constexpr uint8_t kOldestAbi = 2, kNewestAbi = 4;  // code object versions 4, 5 and 6

}  // namespace

std::string ElfFile::open(std::span<const uint8_t> file) {
  file_ = file;
  if (file.size() < SELFMAG || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0)
    return "not an ELF file: expected the magic bytes 7f 45 4c 46";
  if (!read(0, header_)) return "truncated: an ELF header is 64 bytes, got " + std::to_string(file.size());
  if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB)
    return "not a 64-bit little-endian ELF file";
  if (header_.e_machine != EM_AMDGPU)
    return "foreign machine: e_machine must be 224 (AMDGPU), got " + std::to_string(header_.e_machine);
  if (header_.e_ident[EI_OSABI] != kOsAbiAmdgpuHsa)
    return "foreign OS ABI: must be 64 (AMDGPU HSA), got " + std::to_string(header_.e_ident[EI_OSABI]);
  const unsigned abi = header_.e_ident[EI_ABIVERSION];
  if (abi < kOldestAbi || abi > kNewestAbi)
    return "unsupported code object version: ABI version must be 2 to 4 (code object 4 to 6), got " +
           std::to_string(abi);
  if (header_.e_type != ET_DYN)
    return "not linked: e_type must be 3 (shared object), got " + std::to_string(header_.e_type);
  return read_tables();
}

std::string ElfFile::read_tables() {
  if (header_.e_phnum > kMaxSegments)
    return "corrupt header: " + std::to_string(header_.e_phnum) + " program headers";
  if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_shentsize != sizeof(Elf64_Shdr))
    return "corrupt header: unexpected size of a program or section header";
  if (!fits(header_.e_phoff, uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr)))
    return "truncated: program headers reach outside the file";
  if (!fits(header_.e_shoff, uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr)))
    return "truncated: section headers reach outside the file";
  segments_.resize(header_.e_phnum);
  for (size_t n = 0; n < segments_.size(); ++n) read(header_.e_phoff + n * sizeof(Elf64_Phdr), segments_[n]);
  sections_.resize(header_.e_shnum);
  for (size_t n = 0; n < sections_.size(); ++n) read(header_.e_shoff + n * sizeof(Elf64_Shdr), sections_[n]);
  return "";
}

std::string_view ElfFile::string_at(uint32_t string_section, uint64_t at) const {
  if (string_section >= sections_.size()) return {};
  const Elf64_Shdr& s = sections_[string_section];
  const auto table = bytes(s.sh_offset, s.sh_size);
  if (at >= table.size()) return {};
  const char* text = reinterpret_cast<const char*>(table.data()) + at;
  const auto* end = static_cast<const char*>(std::memchr(text, 0, std::min(table.size() - at, kMaxNameBytes)));
  return end ? std::string_view(text, static_cast<size_t>(end - text)) : std::string_view{};
}

std::vector<ElfFile::Symbol> ElfFile::symbols(size_t index) const {
  std::vector<Symbol> out;
  if (index >= sections_.size()) return out;
  const Elf64_Shdr& s = sections_[index];
  const auto table = bytes(s.sh_offset, s.sh_size);
  if (s.sh_entsize != sizeof(Elf64_Sym)) return out;
  for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
    Symbol symbol;
    std::memcpy(&symbol.entry, table.data() + at, sizeof(Elf64_Sym));
    symbol.name = string_at(s.sh_link, symbol.entry.st_name);
    out.push_back(symbol);
  }
  return out;
}

std::span<const uint8_t> ElfFile::note(std::string_view owner, uint32_t type) const {
  constexpr auto align4 = [](uint64_t n) { return (n + 3) & ~uint64_t{3}; };
  for (const Elf64_Phdr& p : segments_) {
    if (p.p_type != PT_NOTE) continue;
    const auto area = bytes(p.p_offset, p.p_filesz);
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= area.size();) {
      Elf64_Nhdr n;
      std::memcpy(&n, area.data() + at, sizeof n);
      const uint64_t name = at + sizeof n, descriptor = name + align4(n.n_namesz);
      if (name + n.n_namesz > area.size() || descriptor + n.n_descsz > area.size()) break;
      const std::string_view found(reinterpret_cast<const char*>(area.data()) + name, n.n_namesz);
      if (n.n_type == type && found.substr(0, found.find('\0')) == owner)
        return area.subspan(descriptor, n.n_descsz);
      at = descriptor + align4(n.n_descsz);
    }
  }
  return {};
}

}  // namespace mi350::emu
