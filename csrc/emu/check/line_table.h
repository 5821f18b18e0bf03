// Source lines of a code object: the line-number program of DWARF 4 and 5 (.debug_line).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mi350::emu {

struct LineSections {
  std::span<const uint8_t> line, line_strings, strings;  // .debug_line, .debug_line_str, .debug_str
};

class LineTable {
 public:
  // Damage ends the reading; what was read before it stays.
  explicit LineTable(const LineSections& sections);

  // "file:line" of the code at an address as the file counts them, or empty.
  std::string at(uint64_t address) const;

 private:
  struct Row {
    uint64_t address;
    uint32_t file;   // index into files_
    uint32_t line;   // 0: no line, or the end of a sequence
  };
  friend class LineProgram;
  std::vector<Row> rows_;
  std::vector<std::string> files_;
};

}  // namespace mi350::emu
