// Mutations of code objects that know the format. Each takes whatever bytes there are and changes what it
// finds.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "elf_file.h"
#include "instruction_maker.h"
#include "loader_case.h"
#include "object_maker.h"

namespace mi350::emu::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;
using nlohmann::json;

uint64_t interesting(const Bytes& file, Random& r) {
  const uint64_t size = file.size();
  const uint64_t values[] = {0,
                             1,
                             2,
                             3,
                             4,
                             7,
                             8,
                             16,
                             24,
                             56,
                             64,
                             255,
                             256,
                             4095,
                             4096,
                             65535,
                             size,
                             size - 1,
                             size + 1,
                             size / 2,
                             0x7fffffff,
                             0x80000000,
                             0xffffffff,
                             1ull << 28,
                             (1ull << 28) + 1,
                             1ull << 47,
                             1ull << 63,
                             ~0ull,
                             ~0ull - 63,
                             163840,
                             163841,
                             r.below(size),
                             r.next()};
  return r.pick(values);
}

// Overwrites, adds to or flips a little-endian number of 1 to 8 bytes in [at, at + bytes).
void change_number(Bytes& file, size_t at, size_t bytes, Random& r) {
  if (at >= file.size()) return;
  bytes = std::min(bytes, file.size() - at);
  const size_t width = std::min<size_t>(size_t{1} << r.below(4), bytes);
  const size_t place = at + r.below(bytes / width) * width;
  uint64_t value = 0;
  std::memcpy(&value, file.data() + place, width);
  switch (r.below(3)) {
    case 0:
      value = interesting(file, r);
      break;
    case 1:
      value += r.below(17) - 8ull;
      break;
    default:
      value ^= 1ull << r.below(8 * width);
  }
  std::memcpy(file.data() + place, &value, width);
}

// The tables of the file as its header gives them; false when there is no header.
struct Tables {
  Elf64_Ehdr header;
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Shdr> sections;

  explicit Tables(const Bytes& file) {
    ElfFile elf;
    if (!elf.open(file).empty()) return;
    header = elf.header();
    segments = elf.segments();
    sections = elf.sections();
    valid = true;
  }
  bool valid = false;
};

void change_header(Bytes& file, Random& r) { change_number(file, r.below(8) ? 24 : 0, 40, r); }

void change_table(Bytes& file, Random& r) {
  const Tables t(file);
  if (!t.valid) return change_header(file, r);
  const bool segment = r.percent(50);
  const size_t count = segment ? t.segments.size() : t.sections.size(), bytes = segment ? 56 : 64;
  change_number(file, (segment ? t.header.e_phoff : t.header.e_shoff) + r.below(count) * bytes, bytes, r);
}

void change_section(Bytes& file, Random& r) {
  const Tables t(file);
  if (!t.valid || t.sections.empty()) return;
  const Elf64_Shdr& s = r.pick(t.sections);
  const size_t entry = s.sh_entsize >= 8 && s.sh_entsize <= 64 ? s.sh_entsize : 8;
  if (s.sh_size >= entry) change_number(file, s.sh_offset + r.below(s.sh_size / entry) * entry, entry, r);
}

// A section becomes a relocation table over whatever it holds.
void make_relocations(Bytes& file, Random& r) {
  const Tables t(file);
  if (!t.valid || t.sections.empty()) return;
  const size_t n = r.below(t.sections.size()), at = t.header.e_shoff + n * sizeof(Elf64_Shdr);
  Elf64_Shdr s = t.sections[n];
  s.sh_type = SHT_RELA;
  s.sh_flags |= SHF_ALLOC;
  s.sh_entsize = sizeof(Elf64_Rela);
  s.sh_link = 1 + r.below(3);
  s.sh_offset = file.size();
  s.sh_size = sizeof(Elf64_Rela) * (1 + r.below(4));
  std::memcpy(file.data() + at, &s, sizeof s);
  for (size_t count = s.sh_size / sizeof(Elf64_Rela); count > 0; --count) {
    Elf64_Rela e{r.percent(70) ? 8 * r.below(256) : interesting(file, r),
                 ELF64_R_INFO(uint64_t{r.below(5)}, r.below(15)), static_cast<int64_t>(interesting(file, r))};
    const auto* p = reinterpret_cast<const uint8_t*>(&e);
    file.insert(file.end(), p, p + sizeof e);
  }
}

// One of the 64-byte kernel descriptors, by its symbol.
void change_descriptor(Bytes& file, Random& r) {
  ElfFile elf;
  if (!elf.open(file).empty()) return;
  std::vector<uint64_t> found;
  for (size_t n = 0; n < elf.sections().size(); ++n) {
    if (elf.sections()[n].sh_type != SHT_DYNSYM) continue;
    for (const ElfFile::Symbol& s : elf.symbols(n))
      if (s.name.ends_with(".kd")) found.push_back(s.entry.st_value);
  }
  if (found.empty()) return;
  constexpr size_t kFields[] = {0, 4, 8, 16, 44, 48, 52, 56, 58};
  change_number(file, r.pick(found) + r.pick(kFields), 8, r);
}

void change_text(Bytes& file, Random& r) {
  const Tables t(file);
  for (const Elf64_Phdr& p : t.segments) {
    if (p.p_type != PT_LOAD || !(p.p_flags & PF_X) || p.p_filesz < 4 || p.p_offset > file.size()) continue;
    size_t at = p.p_offset + 4 * r.below(std::min<uint64_t>(p.p_filesz / 4, 64));
    for (unsigned count = 1 + r.below(4); count > 0; --count) {
      for (const uint32_t w : make_instruction(r)) {
        if (at + 4 > file.size()) return;
        std::memcpy(file.data() + at, &w, 4);
        at += 4;
      }
    }
  }
}

void change_json(json& j, const Bytes& file, Random& r, int depth) {
  if (j.is_structured() && !j.empty() && depth < 12 && r.percent(90)) {
    auto item = j.begin();
    std::advance(item, r.below(j.size()));
    if (r.percent(5)) {
      j.erase(item);
      return;
    }
    if (j.is_array() && r.percent(5)) {
      j.push_back(json(*item));
      return;
    }
    return change_json(*item, file, r, depth + 1);
  }
  if (j.is_string() && r.percent(60)) {
    auto text = j.get<std::string>();
    if (r.percent(30)) text.append(r.below(300), static_cast<char>(r.word()));
    else if (!text.empty()) text[r.below(text.size())] = static_cast<char>(r.word());
    j = text;
    return;
  }
  switch (r.below(7)) {
    case 0:
      j = interesting(file, r);
      break;
    case 1:
      j = static_cast<int64_t>(interesting(file, r));
      break;
    case 2:
      j = "";
      break;
    case 3:
      j = json::array({interesting(file, r), 1, 1});
      break;
    case 4:
      j = nullptr;
      break;
    case 5:
      j = 1.5e300;
      break;
    default:
      j = json::array({j, j});
  }
}

// The metadata note is written anew, in place or at the end of the file.
void change_metadata(Bytes& file, Random& r) {
  Tables t(file);
  for (size_t n = 0; n < t.segments.size(); ++n) {
    Elf64_Phdr p = t.segments[n];
    if (p.p_type != PT_NOTE || p.p_filesz < 20 || p.p_offset > file.size() ||
        p.p_filesz > file.size() - p.p_offset)
      continue;
    const auto from = file.begin() + static_cast<long>(p.p_offset) + 20;
    const auto to = file.begin() + static_cast<long>(p.p_offset + p.p_filesz);
    json root = json::from_msgpack(from, to, false, false);
    if (root.is_discarded()) return change_number(file, p.p_offset, p.p_filesz, r);
    for (unsigned count = 1 + r.below(3); count > 0; --count) change_json(root, file, r, 0);
    Bytes packed = json::to_msgpack(root);
    if (r.percent(10)) change_number(packed, 0, packed.size(), r);
    const Elf64_Nhdr note{7, static_cast<Elf64_Word>(packed.size()), 32};
    packed.resize((packed.size() + 3) / 4 * 4);
    if (packed.size() + 20 > p.p_filesz) {
      p.p_offset = file.size();
      file.resize(file.size() + 20 + packed.size());
    }
    p.p_filesz = 20 + packed.size();
    std::memcpy(file.data() + p.p_offset, &note, sizeof note);
    std::memcpy(file.data() + p.p_offset + 12, "AMDGPU\0", 8);
    std::copy(packed.begin(), packed.end(), file.begin() + static_cast<long>(p.p_offset) + 20);
    std::memcpy(file.data() + t.header.e_phoff + n * sizeof p, &p, sizeof p);
    return;
  }
}

void start_anew(Bytes& file, Random& r) {
  KernelSpec s;
  s.group_segment_bytes = r.below(2) * 1024;
  s.private_segment_bytes = r.below(3) * 64;
  s.preload = static_cast<uint16_t>(r.below(3) * 4);
  if (s.preload) s.words.assign(64, 0xbf800000);
  for (unsigned count = r.below(12); count > 0; --count) {
    const auto w = make_instruction(r);
    s.words.insert(s.words.end(), w.begin(), w.end());
  }
  s.words.push_back(0xbf810000);
  file = make_object(s);
}

void change_bundle(Bytes& file, Random& r) {
  if (file.size() > 24 && std::memcmp(file.data(), "__CLANG_", 8) == 0) return change_number(file, 24, 64, r);
  file = make_bundle(r.percent(80) ? "hipv4-amdgcn-amd-amdhsa--gfx950" : "host-x86_64-unknown-linux", file);
}

}  // namespace

void mutate_loader_case(Bytes& file, size_t limit, Random& r) {
  if (file.size() < 64) start_anew(file, r);
  for (unsigned count = 1 + r.below(3); count > 0; --count) {
    switch (r.below(16)) {
      case 0:
        file.resize(r.below(file.size()) + 1);
        break;
      case 1:
        change_header(file, r);
        break;
      case 2:
      case 3:
        change_table(file, r);
        break;
      case 4:
      case 5:
        change_section(file, r);
        break;
      case 6:
        make_relocations(file, r);
        break;
      case 7:
      case 8:
        change_descriptor(file, r);
        break;
      case 9:
        change_text(file, r);
        break;
      case 10:
      case 11:
      case 12:
        change_metadata(file, r);
        break;
      case 13:
        change_bundle(file, r);
        break;
      case 14:
        change_number(file, 0, file.size(), r);
        break;
      default:
        r.percent(10) ? start_anew(file, r) : change_number(file, 0, file.size(), r);
    }
  }
  if (file.size() > limit) file.resize(limit);
}

}  // namespace mi350::emu::fuzz
