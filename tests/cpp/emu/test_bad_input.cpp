// Damaged and hostile code objects: every one is a HIP error with a sentence; the process lives on.
#include <nlohmann/json.hpp>

#include "bad_input.h"

extern "C" int hipFuncGetAttribute(int*, int, void*);

namespace mi350::emu::test {
namespace {

TEST(BadInput, TheMinimalObjectItselfRuns) {
  const Module m(spec());
  ASSERT_EQ(m.error, kSuccess) << report();
  EXPECT_EQ(launch_plain(m.function), kSuccess) << report();
}

TEST(BadInput, AnObjectCutAtAnyByteIsAnError) {
  const Bytes good = make_object(spec());
  for (size_t n = 0; n < good.size(); ++n) {
    const Module m(Bytes(good.begin(), good.begin() + static_cast<long>(n)));
    EXPECT_EQ(m.error, kInvalidImage) << "cut to " << n << " of " << good.size();
    EXPECT_NE(report().find("hipModuleLoadData: "), std::string::npos) << report();
  }
}

TEST(BadInput, ABundleCutAtAnyByteIsAnError) {
  const Bytes good = fuzz::make_bundle("hipv4-amdgcn-amd-amdhsa--gfx950", make_object(spec()));
  for (size_t n = 0; n < good.size(); ++n) {
    const Module m(Bytes(good.begin(), good.begin() + static_cast<long>(n)));
    EXPECT_EQ(m.error, kInvalidImage) << "cut to " << n << " of " << good.size();
  }
}

TEST(BadInput, HeadersThatAnnounceMoreThanThereIsAreTruncation) {
  const Bytes good = make_object(spec());
  expect_load(with<uint64_t>(good, offsetof(Elf64_Ehdr, e_phoff), 1ull << 40), kInvalidImage, "truncated");
  expect_load(with<uint64_t>(good, offsetof(Elf64_Ehdr, e_phoff), ~0ull - 8), kInvalidImage, "truncated");
  expect_load(with<uint64_t>(good, offsetof(Elf64_Ehdr, e_shoff), 1ull << 62), kInvalidImage, "truncated");
  expect_load(with<uint16_t>(good, offsetof(Elf64_Ehdr, e_shnum), 0xffff), kInvalidImage, "truncated");
  expect_load(with<uint16_t>(good, offsetof(Elf64_Ehdr, e_phnum), 0xffff), kInvalidImage,
              "65535 program headers");
  const size_t text = program_header(1);
  expect_load(with<uint64_t>(good, text + offsetof(Elf64_Phdr, p_filesz), 1ull << 33), kInvalidImage,
              "truncated");
  expect_load(with<uint64_t>(good, text + offsetof(Elf64_Phdr, p_memsz), 1ull << 40), kInvalidImage,
              "impossible");
  expect_load(with<uint64_t>(good, text + offsetof(Elf64_Phdr, p_vaddr), ~0ull), kInvalidImage, "impossible");
}

TEST(BadInput, ForeignObjectsAreNamed) {
  const Bytes good = make_object(spec());
  const size_t flags = offsetof(Elf64_Ehdr, e_flags);
  expect_load(with<uint32_t>(good, flags, 0x54c), kNoBinary, "gfx950");
  expect_load(with<uint32_t>(good, flags, 0x74f), kNoBinary, "xnack+");
  expect_load(with<uint32_t>(good, flags, 0x94f), kNoBinary, "sramecc-");
  expect_load(with<uint8_t>(good, EI_ABIVERSION, 0), kInvalidImage, "code object version");
  expect_load(with<uint8_t>(good, EI_ABIVERSION, 9), kInvalidImage, "code object version");
  expect_load(with<uint16_t>(good, offsetof(Elf64_Ehdr, e_type), ET_REL), kInvalidImage, "not linked");
  expect_load(fuzz::make_bundle("hipv4-amdgcn-amd-amdhsa--gfx950:xnack+", good), kNoBinary,
              "no entry for gfx950");
  expect_load(fuzz::make_bundle("host-x86_64-unknown-linux-gnu", good), kNoBinary, "no entry for gfx950");
  expect_load({'C', 'C', 'O', 'B', 2, 0, 1, 0}, kInvalidImage, "compressed");
  expect_load(Bytes(64, 'x'), kInvalidImage, "neither");
}

// objcopy --only-keep-debug leaves the program headers and takes the contents.
TEST(BadInput, AFileOfDebugInformationAloneHasNoCode) {
  Bytes file = make_object(spec());
  for (size_t n = 0; n < 2; ++n)
    file = with<uint64_t>(file, program_header(n) + offsetof(Elf64_Phdr, p_filesz), 0);
  expect_load(file, kInvalidImage, "no code");
}

TEST(BadInput, BundleHeadersThatLie) {
  const Bytes good = fuzz::make_bundle("hipv4-amdgcn-amd-amdhsa--gfx950", make_object(spec()));
  expect_load(with<uint64_t>(good, 24, ~0ull), kInvalidImage, "bad entry count");
  expect_load(with<uint64_t>(good, 32, 1ull << 50), kInvalidImage, "reaches outside");
  expect_load(with<uint64_t>(good, 40, ~0ull), kInvalidImage, "reaches outside");
  expect_load(with<uint64_t>(good, 48, ~0ull / 2), kInvalidImage, "truncated entry");
}

TEST(BadInput, WildDescriptors) {
  KernelSpec s = spec();
  s.group_segment_bytes = 0xfffffff0;
  const Module lds(s);
  ASSERT_EQ(lds.error, kSuccess) << report();
  expect(launch_plain(lds.function), kInvalidValue, "163840 bytes of LDS");
  int value = -1;
  EXPECT_EQ(hipFuncGetAttribute(&value, 8, lds.function), kSuccess);
  EXPECT_EQ(value, 0);

  s = spec();
  s.private_segment_bytes = 0xfffffff8;
  s.properties |= 2048;
  const Module scratch(s);
  ASSERT_EQ(scratch.error, kSuccess) << report();
  expect(launch_plain(scratch.function), kInvalidValue, "private memory");

  s = spec();
  s.kernarg_bytes = 0xffffffff;
  expect(Module(s).error, kInvalidImage, "bytes of arguments");
}

TEST(BadInput, AnEntryPointOutsideTheTextIsAnError) {
  const Bytes good = make_object(spec());
  Elf64_Shdr dynsym;
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof header);
  std::memcpy(&dynsym, good.data() + header.e_shoff + sizeof dynsym, sizeof dynsym);
  Elf64_Sym kd;
  std::memcpy(&kd, good.data() + dynsym.sh_offset + 2 * sizeof kd, sizeof kd);
  for (const int64_t entry : {int64_t{0}, int64_t{-4096}, int64_t{2}, INT64_MAX, INT64_MIN, int64_t{1} << 40})
    expect_load(with(good, kd.st_value + 16, entry), kInvalidImage, "entry point");
  const size_t value = dynsym.sh_offset + 2 * sizeof kd + offsetof(Elf64_Sym, st_value);
  for (const uint64_t at : {~0ull, 1ull << 40, ~0ull - 32})
    expect_load(with(good, value, at), kInvalidImage, "descriptor outside");
}

TEST(BadInput, PreloadPastTheArgumentsReadsZeros) {
  KernelSpec s = spec(std::vector<uint32_t>(64, 0xbf800000));
  s.words.push_back(kEnd);
  s.preload = 0x7f | 511 << 7;
  const Module m(s);
  ASSERT_EQ(m.error, kSuccess) << report();
  EXPECT_EQ(launch_plain(m.function), kSuccess) << report();
}

// The sizes of the metadata decide what a launch copies.
TEST(BadInput, ArgumentsThatTheMetadataPutsAnywhere) {
  const Bytes good = make_object(spec());
  const auto patched = [&](const char* key, uint32_t value) {
    // Both are fixints in the object; the note is found by its key and rewritten whole.
    Elf64_Phdr note;
    std::memcpy(&note, good.data() + program_header(2), sizeof note);
    const auto from = good.begin() + static_cast<long>(note.p_offset) + 20;
    auto root = nlohmann::json::from_msgpack(from, from + static_cast<long>(note.p_filesz) - 20, false);
    root["amdhsa.kernels"][0][".args"][2][key] = value;
    const Bytes packed = nlohmann::json::to_msgpack(root);
    Bytes file = good;
    const Elf64_Nhdr head{7, static_cast<Elf64_Word>(packed.size()), 32};
    note.p_offset = file.size();
    note.p_filesz = 20 + packed.size();
    file.resize(file.size() + 12);
    std::memcpy(file.data() + note.p_offset, &head, sizeof head);
    for (const char c : std::string("AMDGPU\0\0", 8)) file.push_back(static_cast<uint8_t>(c));
    file.insert(file.end(), packed.begin(), packed.end());
    return with(file, program_header(2), note);
  };
  expect_load(patched(".offset", 0xfffffff8), kInvalidImage, "bytes of arguments");
  expect_load(patched(".size", 0xfffffff8), kInvalidImage, "bytes of arguments");
  const Module wide(patched(".size", 48));  // a hidden argument of 48 bytes has a value of 8
  ASSERT_EQ(wide.error, kSuccess) << report();
  EXPECT_EQ(launch_plain(wide.function), kSuccess) << report();
}

}  // namespace
}  // namespace mi350::emu::test
