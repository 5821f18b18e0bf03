// A kernel launch described in JSON: what `mi350-emu run` and `check` read. docs/emulator.md describes the fields.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "element.h"

namespace mi350::emu::cli {

// Where the contents of a buffer, or of what it is compared with, come from.
struct Source {
  enum Kind { kFill, kValues, kRandom, kFile } kind = kFill;
  double fill = 0, low = 0, high = 0;
  std::vector<double> values;
  std::string path;
};

struct Comparison {
  Source with;
  double atol = 0, rtol = 0;
};

struct BufferSpec {
  std::string name;
  const Element* element = nullptr;
  std::vector<uint64_t> shape;
  Source contents;
  std::optional<Comparison> compare;
  std::string save;      // path, or empty
  uint64_t print = 0;    // elements
  uint64_t elements() const;
  uint64_t bytes() const { return elements() * element->bytes; }
};

struct ArgumentSpec {
  enum Kind { kBuffer, kScalar, kBytes } kind = kBuffer;
  size_t buffer = 0;              // index
  uint64_t buffer_offset = 0;     // bytes added to the address
  std::vector<uint8_t> bytes;     // of scalars and raw arguments
  std::optional<uint64_t> offset; // in the argument buffer
};

struct LaunchFile {
  std::string object, kernel;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{64, 1, 1};
  uint32_t lds = 0;
  uint64_t seed = 0;
  uint64_t argument_align = 0;    // of every argument in the buffer; 0: its own size
  bool one_buffer = false;        // pass: "buffer" (HIP's `extra`), else "pointers" (kernelParams)
  std::vector<BufferSpec> buffers;
  std::vector<ArgumentSpec> arguments;
};

// Paths in the file are relative to its folder. False: `error` says field, expected and got.
bool read_launch_file(const std::string& path, LaunchFile* out, std::string* error);

}  // namespace mi350::emu::cli
