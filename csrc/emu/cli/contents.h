// The bytes of a buffer from its description, and comparing, saving and printing what a kernel left there.
#pragma once
#include <string>
#include <vector>

#include "launch_file.h"

namespace mi350::emu::cli {

// Random contents depend on the seed of the file and the name of the buffer alone. False: a sentence in `error`.
bool make_contents(const BufferSpec& b, const Source& s, uint64_t seed, std::vector<uint8_t>* out,
                   std::string* error);

struct Difference {
  uint64_t beyond = 0;        // elements further away than atol + rtol * |expected|
  uint64_t worst_at = 0;      // the largest difference, NaN against a number first
  double worst = 0, got = 0, want = 0;
};
Difference compare(const BufferSpec& b, const std::vector<uint8_t>& got, const std::vector<uint8_t>& want);

bool save(const std::string& path, const std::vector<uint8_t>& bytes, std::string* error);
void print_elements(const BufferSpec& b, const std::vector<uint8_t>& bytes);
// [2, 3] of element `at` in a buffer of that shape.
std::string coordinates(const BufferSpec& b, uint64_t at);

}  // namespace mi350::emu::cli
