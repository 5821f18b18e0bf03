// Bounds-checked reading of an AMDGPU ELF file. Every offset and count in the file is untrusted.
#pragma once
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mi350::emu {

class ElfFile {
 public:
  // Empty on success, else what is wrong with the file.
  std::string open(std::span<const uint8_t> file);

  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }

  bool fits(uint64_t offset, uint64_t bytes) const {
    return offset <= file_.size() && bytes <= file_.size() - offset;
  }
  // False when the object would reach outside the file.
  template <class T>
  bool read(uint64_t offset, T& out) const {
    if (!fits(offset, sizeof(T))) return false;
    std::memcpy(&out, file_.data() + offset, sizeof(T));
    return true;
  }
  std::span<const uint8_t> bytes(uint64_t offset, uint64_t count) const {
    return fits(offset, count) ? file_.subspan(offset, count) : std::span<const uint8_t>{};
  }
  // The zero-terminated string at `at` of a string table section; empty when there is none within 64 KiB.
  std::string_view string_at(uint32_t string_section, uint64_t at) const;

  struct Symbol {
    std::string_view name;
    Elf64_Sym entry;
  };
  // The symbols of section `index` (SHT_DYNSYM or SHT_SYMTAB); none if there is no such section.
  std::vector<Symbol> symbols(size_t index) const;
  // The descriptor of the first note with this owner and type; empty when there is none.
  std::span<const uint8_t> note(std::string_view owner, uint32_t type) const;

 private:
  std::string read_tables();

  std::span<const uint8_t> file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace mi350::emu
