// Element types of the buffers and scalars of a launch file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace mi350::emu::cli {

struct Element {
  std::string_view name;
  uint32_t bytes;
  bool integer, is_signed;
  uint64_t (*encode)(double value);   // round to nearest; integers from their own range only
  double (*decode)(uint64_t bits);
};

// Null for an unknown name.
const Element* find_element(std::string_view name);
std::string element_names();

// Smallest and largest value of an integer type.
double least(const Element& e);
double most(const Element& e);

}  // namespace mi350::emu::cli
