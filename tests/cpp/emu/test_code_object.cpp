// The code-object loader: shipped objects load, and no damaged or foreign file gets past it or crashes it.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "code_object.h"
#include "print.h"

namespace mi350::emu {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<std::filesystem::path> shipped() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(MI350_CODE_OBJECT_DIR))
    if (entry.path().extension() == ".hsaco") out.push_back(entry.path());
  return out;
}
Bytes read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
// The smallest shipped object keeps the byte-by-byte loops short.
Bytes sample() {
  Bytes best;
  for (const auto& path : shipped()) {
    Bytes b = read(path);
    if (best.empty() || b.size() < best.size()) best = std::move(b);
  }
  return best;
}
std::string error_of(const Bytes& file) {
  std::string error;
  const auto object = load_code_object(file, &error);
  EXPECT_EQ(object == nullptr, !error.empty());
  return error;
}
Bytes bundle(const std::string& id, const Bytes& payload) {
  Bytes out;
  auto text = [&](std::string_view s) { out.insert(out.end(), s.begin(), s.end()); };
  auto u64 = [&](uint64_t v) {
    for (int n = 0; n < 8; ++n) out.push_back(static_cast<uint8_t>(v >> (8 * n)));
  };
  const uint64_t at = 4096;
  text("__CLANG_OFFLOAD_BUNDLE__");
  u64(1);
  u64(at);
  u64(payload.size());
  u64(id.size());
  text(id);
  out.resize(at);
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

TEST(CodeObject, EveryShippedObjectLoadsWithKernelsAndDecodesEveryReachableWord) {
  ASSERT_FALSE(shipped().empty()) << MI350_CODE_OBJECT_DIR;
  for (const auto& path : shipped()) {
    std::string error;
    const auto object = load_code_object(read(path), &error);
    ASSERT_NE(object, nullptr) << path << ": " << error;
    ASSERT_FALSE(object->kernels.empty()) << path;
    for (const KernelInfo& k : object->kernels) {
      EXPECT_LT(k.entry, object->program.end()) << k.name;
      EXPECT_NE(object->program.insts[k.entry].row, nullptr) << k.name;
      EXPECT_GT(k.kernarg_bytes, 0u) << k.name;
      EXPECT_LE(k.accum_offset, k.vgprs) << k.name;
      EXPECT_LE(k.group_segment_bytes, 163840u) << k.name;
      EXPECT_EQ(object->find_kernel(k.name), &k);
      EXPECT_EQ(object->find_kernel(k.name + ".kd"), &k);
    }
    EXPECT_EQ(object->find_kernel("no such kernel"), nullptr);
  }
}

TEST(CodeObject, BundleAndItsElfGiveTheSameKernels) {
  const Bytes elf = sample();
  std::string error;
  const auto plain = load_code_object(elf, &error);
  const auto bundled = load_code_object(bundle("hipv4-amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-", elf), &error);
  ASSERT_NE(plain, nullptr);
  ASSERT_NE(bundled, nullptr) << error;
  ASSERT_EQ(plain->kernels.size(), bundled->kernels.size());
  EXPECT_EQ(plain->kernels[0].name, bundled->kernels[0].name);
  EXPECT_EQ(plain->program.insts.size(), bundled->program.insts.size());
}

TEST(CodeObject, BundleWithoutOurProcessorNamesWhatItHas) {
  const std::string error = error_of(bundle("hipv4-amdgcn-amd-amdhsa--gfx90a", sample()));
  EXPECT_NE(error.find("no entry for gfx950"), std::string::npos) << error;
  EXPECT_NE(error.find("gfx90a"), std::string::npos) << error;
}

TEST(CodeObject, SizeFromHeadersMatchesTheFile) {
  const Bytes elf = sample(), packed = bundle("hipv4-amdgcn-amd-amdhsa--gfx950", elf);
  EXPECT_EQ(copy_code_object(elf.data()), elf);
  EXPECT_EQ(copy_code_object(packed.data()), packed);
  EXPECT_TRUE(copy_code_object("neither of the two formats, only text").empty());
}

TEST(CodeObject, ForeignFilesAreNamedForWhatTheyAre) {
  const Bytes good = sample();
  auto with = [&](size_t at, uint8_t value) {
    Bytes b = good;
    b.at(at) = value;
    return error_of(b);
  };
  EXPECT_NE(error_of({}).find("not an ELF file"), std::string::npos);
  EXPECT_NE(error_of(Bytes(1000, 'x')).find("not an ELF file"), std::string::npos);
  EXPECT_NE(with(EI_CLASS, ELFCLASS32).find("64-bit"), std::string::npos);
  EXPECT_NE(with(EI_OSABI, 0).find("OS ABI"), std::string::npos);
  EXPECT_NE(with(EI_ABIVERSION, 1).find("code object version"), std::string::npos);
  EXPECT_NE(with(offsetof(Elf64_Ehdr, e_machine), EM_X86_64).find("e_machine must be 224"), std::string::npos);
  EXPECT_NE(with(offsetof(Elf64_Ehdr, e_type), ET_REL).find("not linked"), std::string::npos);
  EXPECT_NE(with(offsetof(Elf64_Ehdr, e_flags), 0x3f).find("gfx950 (0x4f), got 0x3f"), std::string::npos);
  EXPECT_NE(with(offsetof(Elf64_Ehdr, e_flags) + 1, 0x07).find("xnack+"), std::string::npos);
  EXPECT_NE(with(offsetof(Elf64_Ehdr, e_flags) + 1, 0x09).find("sramecc-"), std::string::npos);
  std::ifstream self("/proc/self/exe", std::ios::binary);
  const Bytes host(std::istreambuf_iterator<char>(self), {});
  EXPECT_NE(error_of(host).find("foreign machine"), std::string::npos);
  EXPECT_NE(error_of({'C', 'C', 'O', 'B', 0, 0}).find("--no-offload-compress"), std::string::npos);
}

TEST(CodeObject, TruncationAnywhereIsAnErrorOrHarmless) {
  const Bytes good = sample();
  for (size_t n = 0; n < good.size(); n += 64) {
    const std::string error = error_of(Bytes(good.begin(), good.begin() + static_cast<long>(n)));
    EXPECT_FALSE(error.empty()) << "cut to " << n << " of " << good.size();
  }
}

// A flip may leave a loadable file (an instruction word, a padding byte); it must never crash or hang.
TEST(CodeObject, NoSingleBitFlipCrashesTheLoader) {
  Bytes file = sample();
  size_t rejected = 0;
  const size_t bits = 8 * file.size(), step = bits / 20000 + 1;
  for (size_t n = 0; n < bits; n += n < 8 * 1024 ? 1 : step) {
    file[n / 8] ^= static_cast<uint8_t>(1 << (n % 8));
    rejected += !error_of(file).empty();
    file[n / 8] ^= static_cast<uint8_t>(1 << (n % 8));
  }
  EXPECT_GT(rejected, 100u);
}

TEST(CodeObject, NoBurstOfRandomBytesInTheTablesCrashesTheLoader) {
  const Bytes good = sample();
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof header);
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    Bytes file = good;
    // Program headers and notes sit in front, section headers at the end.
    const size_t base = round % 2 ? 16 : header.e_shoff, span = round % 2 ? 1400 : file.size() - header.e_shoff;
    for (int n = 0; n < 6; ++n) file.at(std::min(base + random() % span, file.size() - 1)) = static_cast<uint8_t>(random());
    error_of(file);
  }
}

TEST(CodeObject, DeeplyNestedMetadataIsRefusedBeforeItIsParsed) {
  Bytes file = sample();
  const std::string owner = "AMDGPU";
  const auto name = std::search(file.begin(), file.end(), owner.begin(), owner.end());
  ASSERT_NE(name, file.end());
  uint32_t descriptor_bytes = 0;
  std::memcpy(&descriptor_bytes, &*(name - 8), 4);
  std::fill_n(name + 8, descriptor_bytes, uint8_t{0x91});  // arrays of one array of one array of ...
  EXPECT_NE(error_of(file).find("nested too deep"), std::string::npos);
}

TEST(CodeObject, StartModeFollowsTheDescriptor) {
  KernelInfo k;
  k.rsrc1 = 0x00AF0000;  // LLVM: round to nearest, all denormals, DX10_CLAMP, IEEE
  EXPECT_EQ(k.start_mode(), 0x3f0u);
  k.rsrc1 = 0x000C0000;  // hand-written kernels: f32 denormals flushed, no clamp, no IEEE
  EXPECT_EQ(k.start_mode(), 0x0c0u);
}

}  // namespace
}  // namespace mi350::emu
