// mi350-emu: dispatches to a sub-command.
#include <cstdio>

#include "command.h"

namespace mi350::emu::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "FILE.json      run one kernel; compare, save and print its buffers", run},
    {"check", "FILE.json    run one kernel in check mode and report what the checkers found", check},
    {"dis", "FILE [--raw]   disassemble a gfx950 code object", dis},
    {"isa", "[--missing]    list the instructions that the emulator knows", isa},
};

int usage(std::FILE* out, int status) {
  std::fputs("mi350-emu: the gfx950 emulator without a program around it\n\n", out);
  for (const Command& c : kCommands)
    std::fprintf(out, "  mi350-emu %s %s\n", std::string(c.name).c_str(), std::string(c.summary).c_str());
  std::fputs("\nmi350-emu COMMAND --help says more.\n"
             "\nexamples\n  mi350-emu run softmax.json\n  mi350-emu check softmax.json --json\n"
             "  mi350-emu dis gemm.hsaco --raw\n  mi350-emu isa --missing\n", out);
  return status;
}

}  // namespace
}  // namespace mi350::emu::cli

int main(int argc, char** argv) {
  using namespace mi350::emu::cli;
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words.empty()) return usage(stderr, 2);
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") return usage(stdout, 0);
  for (const Command& c : kCommands)
    if (c.name == words[0]) return c.run(Arguments(words).subspan(1));
  std::fprintf(stderr, "mi350-emu: no command %s\n\n", argv[1]);
  return usage(stderr, 2);
}
