// Reader of .debug_line (DWARF 5 standard, section 6.2). Everything in the file is untrusted.
#include "check/line_table.h"

#include <algorithm>
#include <cstring>

namespace mi350::emu {

namespace {

constexpr size_t kMostRows = 4u << 20, kMostNames = 1u << 16;

// Reads stop at the end: zeros from there on, and ok turns false.
struct Cursor {
  std::span<const uint8_t> bytes;
  size_t at = 0;
  bool ok = true;

  template <typename T>
  T read() {
    T v{};
    if (!ok || bytes.size() - at < sizeof v) {
      ok = false;
      return v;
    }
    std::memcpy(&v, bytes.data() + at, sizeof v);
    at += sizeof v;
    return v;
  }
  uint64_t word(bool wide) { return wide ? read<uint64_t>() : read<uint32_t>(); }
  uint64_t unsigned_leb() {
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t b = read<uint8_t>();
      if (shift < 64) v |= uint64_t{b & 0x7fu} << shift;
      if (!(b & 0x80)) return v;
    }
  }
  int64_t signed_leb() {
    uint64_t v = 0;
    for (unsigned shift = 0;;) {
      const uint8_t b = read<uint8_t>();
      if (shift < 64) v |= uint64_t{b & 0x7fu} << shift;
      shift += 7;
      if (b & 0x80) continue;
      if (b & 0x40 && shift < 64) v |= ~0ull << shift;
      return static_cast<int64_t>(v);
    }
  }
  void skip(uint64_t n) {
    if (n > bytes.size() - at) ok = false;
    else at += n;
  }
  std::string text() {
    const size_t from = at;
    while (read<uint8_t>() != 0) {}
    return ok ? std::string(reinterpret_cast<const char*>(bytes.data()) + from, at - from - 1) : "";
  }
};

std::string text_at(std::span<const uint8_t> section, uint64_t offset) {
  Cursor c{section};
  c.skip(offset);
  return c.text();
}

std::string joined(const std::string& folder, const std::string& name) {
  return folder.empty() || name.starts_with('/') ? name : folder + "/" + name;
}

struct Name {
  std::string text;
  uint64_t folder = 0;
};

}  // namespace

// One line-number program: a unit of the section.
class LineProgram {
 public:
  LineProgram(const LineSections& sections, Cursor unit, bool wide, LineTable& table)
      : sections_(sections), c_(unit), wide_(wide), table_(table) {}

  void run() {
    if (!read_header()) return;
    while (c_.ok && c_.at < c_.bytes.size() && table_.rows_.size() < kMostRows) step(c_.read<uint8_t>());
  }

 private:
  bool read_header() {
    const uint16_t version = c_.read<uint16_t>();
    if (version != 4 && version != 5) return false;
    if (version == 5) c_.skip(2);  // sizes of addresses and segment selectors
    const uint64_t length = c_.word(wide_);
    const size_t start = c_.at;
    min_length_ = c_.read<uint8_t>();
    c_.skip(2);  // operations of an instruction, default is_stmt
    line_base_ = c_.read<int8_t>();
    line_range_ = c_.read<uint8_t>();
    opcode_base_ = c_.read<uint8_t>();
    if (!c_.ok || line_range_ == 0 || opcode_base_ == 0) return false;
    operands_.resize(opcode_base_);
    for (size_t n = 1; n < opcode_base_; ++n) operands_[n] = c_.read<uint8_t>();
    version == 5 ? read_names() : read_old_names();
    if (!c_.ok) return false;
    c_.at = start;
    c_.skip(length);
    return c_.ok;
  }

  // Version 5: a list of folders, a list of files, each with a format of its own. Folder 0 is where the compiler
  // ran: names stay relative to it, as in its messages.
  void read_names() {
    const std::vector<Name> folders = read_list();
    first_file_ = static_cast<uint32_t>(table_.files_.size());
    for (const Name& f : read_list())
      table_.files_.push_back(joined(f.folder != 0 && f.folder < folders.size() ? folders[f.folder].text : "", f.text));
  }
  std::vector<Name> read_list() {
    struct Column { uint64_t content, form; };
    std::vector<Column> columns(c_.read<uint8_t>());
    for (Column& k : columns) k = {c_.unsigned_leb(), c_.unsigned_leb()};
    const uint64_t count = c_.unsigned_leb();
    if (count > kMostNames || columns.empty()) c_.ok = c_.ok && count == 0;
    std::vector<Name> names;
    for (uint64_t n = 0; c_.ok && n < count; ++n) {
      Name& name = names.emplace_back();
      for (const Column& k : columns) read_column(k.content, k.form, name);
    }
    return names;
  }
  void read_column(uint64_t content, uint64_t form, Name& name) {
    enum : uint64_t { kPath = 1, kFolder = 2 };
    std::string text;
    uint64_t number = 0;
    switch (form) {
      case 0x08: text = c_.text(); break;
      case 0x0e: text = text_at(sections_.strings, c_.word(wide_)); break;
      case 0x1f: text = text_at(sections_.line_strings, c_.word(wide_)); break;
      case 0x0b: number = c_.read<uint8_t>(); break;
      case 0x05: number = c_.read<uint16_t>(); break;
      case 0x06: number = c_.read<uint32_t>(); break;
      case 0x07: number = c_.read<uint64_t>(); break;
      case 0x0f: number = c_.unsigned_leb(); break;
      case 0x1e: c_.skip(16); break;
      case 0x09: c_.skip(c_.unsigned_leb()); break;
      default: c_.ok = false;
    }
    if (content == kPath) name.text = text;
    if (content == kFolder) name.folder = number;
  }

  // Version 4: folders from 1, files from 1.
  void read_old_names() {
    std::vector<std::string> folders{""};
    while (c_.ok && folders.size() < kMostNames) {
      folders.push_back(c_.text());
      if (folders.back().empty()) break;
    }
    first_file_ = static_cast<uint32_t>(table_.files_.size());
    table_.files_.emplace_back();
    for (size_t n = 0; c_.ok && n < kMostNames; ++n) {
      const std::string name = c_.text();
      if (name.empty()) break;
      const uint64_t folder = c_.unsigned_leb();
      c_.unsigned_leb();
      c_.unsigned_leb();
      table_.files_.push_back(joined(folder < folders.size() ? folders[folder] : "", name));
    }
  }

  void step(uint8_t opcode) {
    if (opcode >= opcode_base_) {
      const unsigned adjusted = opcode - opcode_base_;
      address_ += uint64_t{adjusted / line_range_} * min_length_;
      line_ += static_cast<uint32_t>(line_base_ + static_cast<int>(adjusted % line_range_));
      return row(line_);
    }
    switch (opcode) {
      case 0: return extended();
      case 1: return row(line_);                                                       // copy
      case 2: address_ += c_.unsigned_leb() * min_length_; return;                     // advance_pc
      case 3: line_ += static_cast<uint32_t>(c_.signed_leb()); return;                 // advance_line
      case 4: file_ = static_cast<uint32_t>(std::min<uint64_t>(c_.unsigned_leb(), kMostNames)); return;
      case 8: address_ += uint64_t{(255u - opcode_base_) / line_range_} * min_length_; return;  // const_add_pc
      case 9: address_ += c_.read<uint16_t>(); return;                                 // fixed_advance_pc
      default:
        for (unsigned n = 0; n < operands_[opcode]; ++n) c_.unsigned_leb();
    }
  }
  void extended() {
    const uint64_t length = c_.unsigned_leb();
    const size_t start = c_.at;
    if (length == 0) return;
    switch (c_.read<uint8_t>()) {
      case 1:  // end_sequence
        row(0);
        address_ = 0;
        file_ = line_ = 1;
        break;
      case 2: address_ = c_.read<uint64_t>(); break;
      default: break;
    }
    if (!c_.ok) return;
    c_.at = start;
    c_.skip(length);
  }
  void row(uint32_t line) { table_.rows_.push_back({address_, first_file_ + file_, line}); }

  const LineSections& sections_;
  Cursor c_;
  bool wide_;
  LineTable& table_;
  std::vector<uint8_t> operands_;
  uint32_t first_file_ = 0;
  uint8_t min_length_ = 1, line_range_ = 1, opcode_base_ = 1;
  int line_base_ = 0;
  uint64_t address_ = 0;
  uint32_t file_ = 1, line_ = 1;
};

LineTable::LineTable(const LineSections& sections) {
  Cursor c{sections.line};
  while (c.ok && c.at < c.bytes.size()) {
    uint64_t length = c.read<uint32_t>();
    const bool wide = length == 0xffffffff;
    if (wide) length = c.read<uint64_t>();
    if (!c.ok || length > c.bytes.size() - c.at) break;
    LineProgram(sections, Cursor{c.bytes.subspan(c.at, length)}, wide, *this).run();
    c.skip(length);
  }
  std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.address < b.address; });
}

std::string LineTable::at(uint64_t address) const {
  auto after = std::upper_bound(rows_.begin(), rows_.end(), address,
                                [](uint64_t a, const Row& r) { return a < r.address; });
  if (after == rows_.begin()) return "";
  const Row& r = *std::prev(after);
  if (r.line == 0 || r.file >= files_.size() || files_[r.file].empty()) return "";
  return files_[r.file] + ":" + std::to_string(r.line);
}

}  // namespace mi350::emu
