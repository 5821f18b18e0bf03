// The sub-commands of mi350-emu. Each takes what follows its name and returns the exit status.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mi350::emu::cli {

using Arguments = std::span<const std::string_view>;

struct Command {
  std::string_view name, summary;
  int (*run)(Arguments);
};

int check(Arguments arguments);
int dis(Arguments arguments);
int isa(Arguments arguments);
int run(Arguments arguments);

// False, with a sentence on stderr, when the file cannot be read.
bool read_file(std::string_view path, std::vector<uint8_t>& out);

}  // namespace mi350::emu::cli
