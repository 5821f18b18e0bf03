// Reading a launch file. Every complaint names the field, what is expected there and what was found.
#include "launch_file.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace mi350::emu::cli {

uint64_t BufferSpec::elements() const {
  uint64_t n = 1;
  for (uint64_t extent : shape) n *= extent;
  return n;
}

namespace {

using nlohmann::json;

struct Complaint : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr uint64_t kMostBytes = uint64_t{1} << 40;

// A place in the file: its value and its path, "arguments[2].dtype".
class Field {
 public:
  Field(const json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[noreturn]] void complain(const std::string& expected) const {
    std::string got = value_->dump(-1, ' ', false, json::error_handler_t::replace);
    if (got.size() > 60) got = got.substr(0, 57) + "...";
    throw Complaint(path_ + ": expected " + expected + ", got " + got);
  }
  void only(std::initializer_list<const char*> known) const {
    if (!value_->is_object()) complain("an object");
    for (const auto& [key, value] : value_->items()) {
      bool found = false;
      std::string list;
      for (const char* k : known) {
        found |= key == k;
        list += (list.empty() ? "" : ", ") + std::string(k);
      }
      if (!found) throw Complaint((path_.empty() ? key : path_ + "." + key) + ": unknown field, expected " + list);
    }
  }
  bool has(const char* key) const { return value_->contains(key); }
  Field at(const char* key) const {
    const std::string path = path_.empty() ? key : path_ + "." + key;
    if (!value_->contains(key)) throw Complaint(path + ": missing");
    return Field((*value_)[key], path);
  }
  std::vector<Field> list(const char* of) const {
    if (!value_->is_array()) complain("a list of " + std::string(of));
    std::vector<Field> fields;
    for (size_t n = 0; n < value_->size(); ++n)
      fields.emplace_back((*value_)[n], path_ + "[" + std::to_string(n) + "]");
    return fields;
  }
  std::string text(const char* expected) const {
    if (!value_->is_string()) complain(expected);
    return value_->get<std::string>();
  }
  uint64_t whole(uint64_t least, uint64_t most) const {
    if (!value_->is_number_unsigned() || value_->get<uint64_t>() < least || value_->get<uint64_t>() > most)
      complain("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return value_->get<uint64_t>();
  }
  double number() const {
    if (value_->is_string()) {
      const auto t = value_->get<std::string>();
      if (t == "nan") return NAN;
      if (t == "inf") return INFINITY;
      if (t == "-inf") return -INFINITY;
    }
    if (!value_->is_number()) complain("a number, \"nan\", \"inf\" or \"-inf\"");
    return value_->get<double>();
  }
  double number_of(const Element& e) const {
    const double v = number();
    if (e.integer && (std::trunc(v) != v || v < least(e) || v > most(e)))
      complain("a whole number that " + std::string(e.name) + " holds");
    return v;
  }
  bool is_text() const { return value_->is_string(); }
  const json& value() const { return *value_; }

 private:
  const json* value_;
  std::string path_;
};

class Reader {
 public:
  Reader(std::filesystem::path folder, LaunchFile* out) : folder_(std::move(folder)), out_(*out) {}

  void read(const Field& top) {
    top.only({"object", "kernel", "grid", "block", "lds", "seed", "pass", "argument_align", "arguments"});
    out_.object = resolve(top.at("object").text("the path of a code object"));
    out_.kernel = top.at("kernel").text("the name of a kernel");
    out_.grid = triple(top.at("grid"));
    out_.block = triple(top.at("block"));
    if (top.has("lds")) out_.lds = static_cast<uint32_t>(top.at("lds").whole(0, UINT32_MAX));
    if (top.has("seed")) out_.seed = top.at("seed").whole(0, UINT64_MAX);
    if (top.has("argument_align")) out_.argument_align = top.at("argument_align").whole(1, 4096);
    if (top.has("pass")) {
      const std::string pass = top.at("pass").text("\"pointers\" or \"buffer\"");
      if (pass != "pointers" && pass != "buffer") top.at("pass").complain("\"pointers\" or \"buffer\"");
      out_.one_buffer = pass == "buffer";
    }
    for (const Field& f : top.at("arguments").list("arguments")) argument(f);
  }

 private:
  std::string resolve(const std::string& path) const { return (folder_ / path).string(); }

  static std::array<uint32_t, 3> triple(const Field& f) {
    const std::vector<Field> parts = f.list("one to three whole numbers");
    if (parts.empty() || parts.size() > 3) f.complain("a list of one to three whole numbers");
    std::array<uint32_t, 3> out{1, 1, 1};
    for (size_t n = 0; n < parts.size(); ++n) out[n] = static_cast<uint32_t>(parts[n].whole(0, UINT32_MAX));
    return out;
  }

  static const Element& element(const Field& f) {
    const Element* e = find_element(f.text("an element type"));
    if (e == nullptr) f.complain("one of " + element_names());
    return *e;
  }

  Source source(const Field& f, const BufferSpec& b) const {
    Source s;
    int given = 0;
    if (f.has("fill")) s.kind = Source::kFill, s.fill = f.at("fill").number_of(*b.element), ++given;
    if (f.has("values")) {
      s.kind = Source::kValues;
      for (const Field& v : f.at("values").list("numbers")) s.values.push_back(v.number_of(*b.element));
      if (s.values.size() != b.elements())
        f.at("values").complain(std::to_string(b.elements()) + " numbers, as the shape says");
      ++given;
    }
    if (f.has("random")) {
      s.kind = Source::kRandom;
      const std::vector<Field> ends = f.at("random").list("two numbers, low and high");
      if (ends.size() != 2) f.at("random").complain("two numbers, low and high");
      s.low = ends[0].number_of(*b.element), s.high = ends[1].number_of(*b.element);
      if (!(s.low <= s.high) || !std::isfinite(s.high - s.low)) f.at("random").complain("low <= high, both finite");
      ++given;
    }
    if (f.has("file")) s.kind = Source::kFile, s.path = resolve(f.at("file").text("a path")), ++given;
    if (given > 1) f.complain("one of fill, values, random, file");
    return s;
  }

  size_t buffer_named(const std::string& name) const {
    size_t n = 0;
    while (n < out_.buffers.size() && out_.buffers[n].name != name) ++n;
    return n;
  }

  void buffer(const Field& f, ArgumentSpec& a) {
    f.only({"buffer", "dtype", "shape", "fill", "values", "random", "file", "compare", "save", "print", "offset",
            "byte_offset"});
    BufferSpec b;
    b.name = f.at("buffer").text("the name of a buffer");
    a.buffer = buffer_named(b.name);
    if (a.buffer == out_.buffers.size()) {
      b.element = &element(f.at("dtype"));
      const Field shape = f.at("shape");
      uint64_t room = kMostBytes / b.element->bytes;
      for (const Field& extent : shape.list("whole numbers")) {
        b.shape.push_back(extent.whole(1, kMostBytes));
        if (b.shape.back() > room) shape.complain("at most 2^40 bytes");
        room /= b.shape.back();
      }
      b.contents = source(f, b);
      outputs(f, b);
      out_.buffers.push_back(std::move(b));
    } else if (f.has("dtype") || f.has("shape")) {
      f.at("buffer").complain("a new name: this one was described before, and is named alone from then on");
    }
    if (f.has("byte_offset")) a.buffer_offset = f.at("byte_offset").whole(0, out_.buffers[a.buffer].bytes());
  }

  void outputs(const Field& f, BufferSpec& b) const {
    if (f.has("save")) b.save = resolve(f.at("save").text("a path"));
    if (f.has("print")) b.print = f.at("print").whole(0, UINT64_MAX);
    if (!f.has("compare")) return;
    const Field c = f.at("compare");
    c.only({"fill", "values", "file", "atol", "rtol"});
    if (!c.has("fill") && !c.has("values") && !c.has("file")) c.complain("one of fill, values, file");
    b.compare.emplace();
    b.compare->with = source(c, b);
    if (c.has("atol")) b.compare->atol = c.at("atol").number();
    if (c.has("rtol")) b.compare->rtol = c.at("rtol").number();
  }

  static void put(std::vector<uint8_t>& bytes, uint64_t bits, uint32_t count) {
    for (uint32_t n = 0; n < count; ++n) bytes.push_back(static_cast<uint8_t>(bits >> 8 * n));
  }

  static void scalar(const Field& f, ArgumentSpec& a) {
    f.only({"scalar", "dtype", "offset"});
    const Element& e = element(f.at("dtype"));
    const Field v = f.at("scalar");
    // Whole numbers of 64 bits do not pass through a double.
    if (e.integer && v.value().is_number_integer()) {
      v.number_of(e);
      const uint64_t bits = v.value().is_number_unsigned() ? v.value().get<uint64_t>()
                                                           : static_cast<uint64_t>(v.value().get<int64_t>());
      put(a.bytes, bits, e.bytes);
    } else {
      put(a.bytes, e.encode(v.number_of(e)), e.bytes);
    }
    a.kind = ArgumentSpec::kScalar;
  }

  static void raw(const Field& f, ArgumentSpec& a) {
    f.only({"bytes", "offset"});
    const Field b = f.at("bytes");
    const std::string digits = b.text("pairs of hexadecimal digits");
    if (digits.empty() || digits.size() % 2 != 0 || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos)
      b.complain("pairs of hexadecimal digits");
    for (size_t n = 0; n < digits.size(); n += 2)
      a.bytes.push_back(static_cast<uint8_t>(std::stoul(digits.substr(n, 2), nullptr, 16)));
    a.kind = ArgumentSpec::kBytes;
  }

  void argument(const Field& f) {
    ArgumentSpec a;
    if (!f.value().is_object() || f.has("buffer") + f.has("scalar") + f.has("bytes") != 1)
      f.complain("an object with one of buffer, scalar, bytes");
    if (f.has("buffer")) buffer(f, a);
    else if (f.has("scalar")) scalar(f, a);
    else raw(f, a);
    if (f.has("offset")) a.offset = f.at("offset").whole(0, 1 << 20);
    if (a.offset && !out_.one_buffer) f.at("offset").complain("no offset unless \"pass\" is \"buffer\"");
    out_.arguments.push_back(std::move(a));
  }

  std::filesystem::path folder_;
  LaunchFile& out_;
};

}  // namespace

bool read_launch_file(const std::string& path, LaunchFile* out, std::string* error) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    *error = "cannot open " + path;
    return false;
  }
  try {
    const json top = json::parse(in, nullptr, true, true);  // comments are welcome
    Reader(std::filesystem::path(path).parent_path(), out).read(Field(top, ""));
    return true;
  } catch (const json::parse_error& e) {
    *error = path + ": not JSON: " + e.what();
  } catch (const Complaint& e) {
    *error = path + ": " + e.what();
  }
  return false;
}

}  // namespace mi350::emu::cli
