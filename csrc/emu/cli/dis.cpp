// mi350-emu dis FILE [--raw]: the text of a code object, line by line as `llvm-objdump -d` prints it.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "code_object.h"
#include "command.h"
#include "print.h"

namespace mi350::emu::cli {
namespace {

constexpr const char* kUsage =
    "usage: mi350-emu dis FILE [--raw]\n"
    "  FILE   gfx950 code object or clang offload bundle\n"
    "  --raw  instructions only: no symbols, addresses or words\n"
    "example: mi350-emu dis gemm.hsaco | grep v_mfma\n";

void print_symbol(const CodeObject& object, uint32_t index, uint64_t address) {
  for (const KernelInfo& k : object.kernels)
    if (k.entry == index) std::printf("\n%016lx <%s>:\n", static_cast<unsigned long>(address), k.name.c_str());
}

void print_line(const Inst& inst, uint64_t address) {
  std::printf("\t%-59s// %012lX:", print(inst).c_str(), static_cast<unsigned long>(address));
  for (unsigned n = 0; n < inst.size_bytes / 4u; ++n) std::printf(" %08X", inst.words[n]);
  std::putchar('\n');
}

}  // namespace

bool read_file(std::string_view path, std::vector<uint8_t>& out) {
  std::ifstream in{std::string(path), std::ios::binary};
  if (!in) {
    std::fprintf(stderr, "mi350-emu: cannot open %.*s\n", static_cast<int>(path.size()), path.data());
    return false;
  }
  out.assign(std::istreambuf_iterator<char>(in), {});
  return true;
}

int dis(Arguments arguments) {
  std::string_view path;
  bool raw = false;
  for (std::string_view a : arguments) {
    if (a == "--help" || a == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (a == "--raw") raw = true;
    else if (path.empty() && !a.starts_with("-")) path = a;
    else path = "-";
  }
  if (path.empty() || path == "-") {
    std::fputs(kUsage, stderr);
    return 2;
  }
  std::vector<uint8_t> file;
  if (!read_file(path, file)) return 1;
  std::string error;
  const auto object = load_code_object(file, &error);
  if (!object) {
    std::fprintf(stderr, "mi350-emu: %.*s: %s\n", static_cast<int>(path.size()), path.data(), error.c_str());
    return 1;
  }
  const Program& p = object->program;
  const uint64_t image = reinterpret_cast<uint64_t>(object->image.get());
  for (uint32_t n = 0; n < p.end(); ++n) {
    const uint64_t address = p.address_of(n) - image;
    if (raw) {
      std::puts(print(p.insts[n]).c_str());
      continue;
    }
    print_symbol(*object, n, address);
    print_line(p.insts[n], address);
  }
  return 0;
}

}  // namespace mi350::emu::cli
