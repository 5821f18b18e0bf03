// What a checker found.
#pragma once
#include <cstdint>
#include <string>

namespace mi350::emu {

enum class Severity : uint8_t { kAdvisory, kError };

struct Finding {
  const char* checker = "";    // "lds-race", "missing-wait", ...; a literal
  Severity severity = Severity::kError;
  std::string kernel;
  uint64_t pc = 0;             // byte offset in the text
  std::string disassembly;
  uint32_t group[3] = {0, 0, 0};
  uint32_t wave = 0;
  int lane = -1;               // -1: the wave as a whole
  bool has_address = false;
  uint64_t address = 0;        // global address or LDS offset
  std::string where;           // "v12", "s[4:7]", "LDS", "global"; may be empty
  std::string message;
  std::string source;          // file:line, if the code object has line info
  uint64_t count = 1;          // times that this checker spoke at this pc

  std::string text() const;    // one paragraph for reports
};

}  // namespace mi350::emu
