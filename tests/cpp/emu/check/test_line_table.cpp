// Source lines against a line program made by hand, and damage, which may cost lines and nothing else.
#include <gtest/gtest.h>

#include <random>

#include "check/line_table.h"

namespace mi350::emu {
namespace {

// DWARF 5: folders "x", "src"; files 0 "a.hip", 1 "b.h" in folder 1; three rows and an end.
std::vector<uint8_t> version_5() {
  std::vector<uint8_t> header{4, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1,
                              1, 1, 0x08, 2, 'x', 0, 's', 'r', 'c', 0,
                              2, 1, 0x08, 2, 0x0b, 2, 'a', '.', 'h', 'i', 'p', 0, 0, 'b', '.', 'h', 0, 1};
  const std::vector<uint8_t> program{0, 9, 2, 0x00, 0x1d, 0, 0, 0, 0, 0, 0,  // set_address 0x1d00
                                     4, 0, 3, 9, 1,                         // file 0, line 10, copy
                                     2, 2, 4, 1, 3, 10, 1,                  // + 2 instructions, file 1, line 20, copy
                                     13 + 14 + 5 + 2,                       // + 1 instruction, line + 2
                                     2, 1, 0, 1, 1};                        // + 1 instruction, end_sequence
  std::vector<uint8_t> unit{5, 0, 8, 0};
  const auto n = static_cast<uint32_t>(header.size());
  for (int b = 0; b < 4; ++b) unit.push_back(static_cast<uint8_t>(n >> 8 * b));
  unit.insert(unit.end(), header.begin(), header.end());
  unit.insert(unit.end(), program.begin(), program.end());
  std::vector<uint8_t> out;
  for (int b = 0; b < 4; ++b) out.push_back(static_cast<uint8_t>(unit.size() >> 8 * b));
  out.insert(out.end(), unit.begin(), unit.end());
  return out;
}

TEST(LineTable, NamesTheFileAndTheLineOfAnAddress) {
  const std::vector<uint8_t> bytes = version_5();
  const LineTable table({bytes, {}, {}});
  EXPECT_EQ(table.at(0x1cff), "");
  EXPECT_EQ(table.at(0x1d00), "a.hip:10");
  EXPECT_EQ(table.at(0x1d04), "a.hip:10");
  EXPECT_EQ(table.at(0x1d08), "src/b.h:20");
  EXPECT_EQ(table.at(0x1d0c), "src/b.h:22");
  EXPECT_EQ(table.at(0x1d10), "");
}

TEST(LineTable, SurvivesTruncationAndDamage) {
  const std::vector<uint8_t> good = version_5();
  for (size_t n = 0; n < good.size(); ++n) {
    const LineTable cut({std::span(good).first(n), {}, {}});
    EXPECT_EQ(cut.at(0x1000), "");
  }
  std::mt19937 random(5);
  size_t with_lines = 0;
  for (int n = 0; n < 20000; ++n) {
    std::vector<uint8_t> bad = good;
    for (int changes = 0; changes < 3; ++changes) bad[random() % bad.size()] = static_cast<uint8_t>(random());
    const LineTable table({bad, bad, bad});
    with_lines += !table.at(0x1d04).empty();
  }
  EXPECT_GT(with_lines, 1000u);
}

}  // namespace
}  // namespace mi350::emu
