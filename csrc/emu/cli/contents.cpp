// Contents of buffers, see contents.h.
#include "contents.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

namespace mi350::emu::cli {
namespace {

void put(const Element& e, std::vector<uint8_t>& bytes, uint64_t at, uint64_t bits) {
  std::memcpy(bytes.data() + at * e.bytes, &bits, e.bytes);
}
uint64_t bits_at(const Element& e, const std::vector<uint8_t>& bytes, uint64_t at) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + at * e.bytes, e.bytes);
  return bits;
}

// splitmix64: the same numbers on every machine.
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}
uint64_t stream_of(const std::string& name, uint64_t seed) {
  uint64_t h = seed ^ 0xcbf29ce484222325ull;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

void fill_random(const BufferSpec& b, const Source& s, uint64_t seed, std::vector<uint8_t>& out) {
  uint64_t state = stream_of(b.name, seed);
  const Element& e = *b.element;
  for (uint64_t n = 0; n < b.elements(); ++n) {
    const double unit = static_cast<double>(next_random(state) >> 11) * 0x1p-53;
    const double v = e.integer ? std::min(s.low + std::floor(unit * (s.high - s.low + 1)), s.high)
                               : s.low + unit * (s.high - s.low);
    put(e, out, n, e.encode(v));
  }
}

bool read_contents(const BufferSpec& b, const Source& s, std::vector<uint8_t>* out, std::string* error) {
  std::ifstream in(s.path, std::ios::binary);
  if (!in) {
    *error = b.name + ": cannot open " + s.path;
    return false;
  }
  out->assign(std::istreambuf_iterator<char>(in), {});
  if (out->size() == b.bytes()) return true;
  *error = b.name + ": " + s.path + " must have " + std::to_string(b.bytes()) + " bytes (" +
           std::to_string(b.elements()) + " of " + std::string(b.element->name) + "), has " +
           std::to_string(out->size());
  return false;
}

}  // namespace

bool make_contents(const BufferSpec& b, const Source& s, uint64_t seed, std::vector<uint8_t>* out,
                   std::string* error) {
  if (s.kind == Source::kFile) return read_contents(b, s, out, error);
  out->assign(b.bytes(), 0);
  const Element& e = *b.element;
  if (s.kind == Source::kRandom) fill_random(b, s, seed, *out);
  else
    for (uint64_t n = 0; n < b.elements(); ++n)
      put(e, *out, n, e.encode(s.kind == Source::kFill ? s.fill : s.values[n]));
  return true;
}

Difference compare(const BufferSpec& b, const std::vector<uint8_t>& got, const std::vector<uint8_t>& want) {
  Difference d;
  const Element& e = *b.element;
  for (uint64_t n = 0; n < b.elements(); ++n) {
    const uint64_t g_bits = bits_at(e, got, n), w_bits = bits_at(e, want, n);
    if (g_bits == w_bits) continue;
    const double g = e.decode(g_bits), w = e.decode(w_bits);
    if (std::isnan(g) && std::isnan(w)) continue;
    const double apart = g == w ? 0 : std::isnan(g) || std::isnan(w) ? INFINITY : std::fabs(g - w);
    // 64-bit integers that a double cannot tell apart differ all the same.
    const bool beyond = !(apart <= b.compare->atol + b.compare->rtol * std::fabs(w)) ||
                        (e.integer && apart == 0 && b.compare->atol + b.compare->rtol == 0);
    d.beyond += beyond;
    if (apart > d.worst || (beyond && d.beyond == 1)) d.worst = apart, d.worst_at = n, d.got = g, d.want = w;
  }
  return d;
}

bool save(const std::string& path, const std::vector<uint8_t>& bytes, std::string* error) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out) return true;
  *error = "cannot write " + path;
  return false;
}

void print_elements(const BufferSpec& b, const std::vector<uint8_t>& bytes) {
  const uint64_t row = b.shape.empty() ? 1 : b.shape.back();
  for (uint64_t n = 0; n < std::min(b.print, b.elements()); ++n) {
    if (n % row == 0) std::printf("%s  %s %s:", n == 0 ? "" : "\n", b.name.c_str(), coordinates(b, n).c_str());
    const uint64_t bits = bits_at(*b.element, bytes, n);
    if (!b.element->integer) std::printf(" %g", b.element->decode(bits));
    else if (b.element->is_signed) std::printf(" %.0f", b.element->decode(bits));
    else std::printf(" %" PRIu64, bits);
  }
  std::putchar('\n');
}

std::string coordinates(const BufferSpec& b, uint64_t at) {
  std::string text;
  for (auto extent = b.shape.rbegin(); extent != b.shape.rend(); ++extent) {
    text = std::to_string(at % *extent) + (text.empty() ? "" : ", ") + text;
    at /= *extent;
  }
  return "[" + text + "]";
}

}  // namespace mi350::emu::cli
