// mi350-emu isa [--missing]: the instruction table, and which rows are not executed and why.
#include "isa.h"

#include <cstdio>

#include "command.h"

namespace mi350::emu::cli {
namespace {

constexpr const char* kUsage =
    "usage: mi350-emu isa [--missing]\n"
    "  --missing  only instructions that decode but are not executed, with the reason\n"
    "example: mi350-emu isa | grep smfmac\n";

const char* encoding_name(Encoding e) {
  constexpr const char* kNames[] = {"sop1", "sop2", "sopk", "sopc", "sopp", "smem", "vop1", "vop2", "vopc",
                                    "vop3", "vop3sd", "vop3p", "mai", "ds", "mubuf", "global", "scratch", "flat",
                                    "mtbuf"};
  return kNames[static_cast<size_t>(e)];
}

}  // namespace

int isa(Arguments arguments) {
  bool only_missing = false;
  for (std::string_view a : arguments) {
    if (a == "--help" || a == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (a != "--missing") {
      std::fputs(kUsage, stderr);
      return 2;
    }
    only_missing = true;
  }
  size_t missing = 0;
  for (size_t n = 0; n < kIsaRows; ++n) {
    const IsaRow& row = kIsa[n];
    const bool executable = handlers()[n] != nullptr;
    missing += !executable;
    if (only_missing && executable) continue;
    const char* reason = executable ? nullptr : refusal(row) ? refusal(row) : "nobody wrote it yet";
    std::printf("%-40s %-8s %4u  %s%s%s\n", row.mnemonic, encoding_name(row.encoding), row.opcode,
                only_missing ? "" : row.operands, executable || only_missing ? "" : "  not executed: ",
                reason ? reason : "");
  }
  std::printf("%zu instructions, %zu not executed; of LLVM's list none is unknown (image, export and\n"
              "interpolation instructions do not exist on gfx950)\n",
              kIsaRows, missing);
  return 0;
}

}  // namespace mi350::emu::cli
