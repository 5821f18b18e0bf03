// Buffer loads and stores with format conversion: MUBUF format (the descriptor names the format and, for
// loads and stores, which component goes where) and MTBUF (the instruction names it; components in order).
// In range or not as a whole: out of range loads give 0, or 1 where the descriptor selects 1.
#include "buffer_format.h"
#include "lane_buffer.h"
#include "lane_lds.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

enum Select : uint8_t { kZero = 0, kOne = 1, kFirst = 4 };  // dst_sel; 4..7 are X..W

// How the components lie in registers: one dword each, 16 bits each, or 16 bits in the high half.
enum class Registers : uint8_t { kDwords, kHalves, kHighHalf };

struct FormatAccess {
  Descriptor descriptor;
  Layout layout{};
  Number number{};
  uint8_t select[4] = {kFirst, kFirst + 1, kFirst + 2, kFirst + 3};
  Addresses at;
  uint64_t inside = 0;
  bool ok = false;

  FormatAccess(Wave& w, const Inst& i, bool write) : descriptor(&w.sgpr[i.sbase]) {
    ok = take_format(w, i) && resolve(w, i, write ? Access::kStore : i.lds ? Access::kDma : Access::kLoad);
  }
  Access access(Access::Kind kind, uint64_t mask, uint64_t exec) const {
    Access a = global_access(kind, at, mask, exec, layout.bytes);
    a.base = descriptor.base;
    a.clamped = true;
    return a;
  }

 private:
  static bool refuse(Wave& w, std::string why) {
    w.stop(std::move(why));
    return false;
  }
  bool take_format(Wave& w, const Inst& i) {
    const bool typed = i.row->encoding == Encoding::kMtbuf;
    if (!typed && descriptor.add_lane)
      return refuse(w, "format access through a descriptor with add_tid_enable: its format field holds stride bits");
    const uint32_t data = typed ? i.format & 15u : descriptor.data_format;
    number = static_cast<Number>(typed ? i.format >> 4 : descriptor.number_format);
    if (!format_exists(data, number)) {
      return refuse(w, "buffer data format " + std::to_string(data) + " with number format " +
                           std::to_string(static_cast<int>(number)) + " does not exist");
    }
    layout = kLayouts[data];
    if (!typed) std::memcpy(select, descriptor.dst_sel, sizeof select);
    if (descriptor.swizzled && layout.bytes > 4)
      return refuse(w, "swizzled format access of more than 4 bytes per element");
    return true;
  }
  bool resolve(Wave& w, const Inst& i, Access::Kind kind) {
    place_lanes(w, i, descriptor, layout.bytes, 0, at, inside);
    if (!check(w, i, kind)) return false;
    if (w.watch && kind != Access::kDma) [[unlikely]] w.watch->access(w, i, access(kind, inside, w.exec()));
    return true;
  }
  // Lanes outside every allocation; those that may go on read as out of range.
  bool check(Wave& w, const Inst& i, Access::Kind kind) {
    uint64_t bad = 0;
    for (uint64_t mask = inside; mask != 0; mask &= mask - 1) {
      const int l = first_lane(mask);
      if (!w.memory->at(descriptor.base + at[l], layout.bytes, kind == Access::kStore)) bad |= 1ull << l;
    }
    inside &= ~bad;
    return bad == 0 || settle_outside(w, i, access(kind, bad, bad));
  }
};

// Component n of a lane's result; `words` is null out of range.
uint32_t component(const FormatAccess& a, const uint32_t* words, int n, bool narrow) {
  const uint8_t select = a.select[n];
  if (select == kOne) return is_integer(a.number) ? 1 : narrow ? 0x3c00 : 0x3f800000;
  const int c = select - kFirst;
  if (c < 0 || c >= a.layout.components || words == nullptr) return 0;
  unsigned position = 0;
  for (int k = 0; k < c; ++k) position += a.layout.bits[k];
  const uint32_t raw = field(words, position, a.layout.bits[c]);
  return narrow ? load_component_16(raw, a.layout.bits[c], a.number)
                : load_component(raw, a.layout.bits[c], a.number);
}

template <int kComponents, Registers kRegisters>
void put_components(Wave& w, const Inst& i, int l, const uint32_t (&value)[4]) {
  uint32_t* dst = vreg(w, i.dst);
  if constexpr (kRegisters == Registers::kHighHalf) dst[l] = (dst[l] & 0xffff) | value[0] << 16;
  else if constexpr (kRegisters == Registers::kDwords)
    for (int n = 0; n < kComponents; ++n) dst[n * kLanes + l] = value[n];
  else
    for (int n = 0; n < kComponents; n += 2) {
      uint32_t& reg = dst[n / 2 * kLanes + l];
      reg = (value[n] & 0xffff) | (n + 1 < kComponents ? value[n + 1] << 16 : reg & 0xffff0000);
    }
}

template <int kComponents, Registers kRegisters> void load(Wave& w, const Inst& i) {
  const FormatAccess a(w, i, false);
  if (!a.ok) return;
  const LdsTarget to(w, i, 4, 4);
  uint32_t first = 0;
  alignas(16) uint8_t data[kLanes][16] = {};
  for (uint64_t mask = w.exec(); mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    const bool inside = a.inside >> l & 1;
    uint32_t words[4] = {}, value[4] = {};
    if (inside) std::memcpy(words, place(a.descriptor.base, a.at[l]), a.layout.bytes);
    for (int n = 0; n < kComponents; ++n)
      value[n] = component(a, inside ? words : nullptr, n, kRegisters != Registers::kDwords);
    if (!i.lds) put_components<kComponents, kRegisters>(w, i, l, value);
    else if (w.watch) std::memcpy(data[l], value, 4);
    else if (to.inside >> l & 1) std::memcpy(to.at(l), value, 4);
    first = words[0];
  }
  if (w.watch && i.lds) [[unlikely]] {
    Access access = a.access(Access::kDma, a.inside, w.exec());
    land_watched(w, i, to, access, data[0], 4);
  }
  if (a.inside != 0) note_load(w, a.descriptor.base + a.at[first_lane(a.inside)], first);
  count_global(w, w.exec(), a.layout.bytes);
}

template <int kComponents, Registers kRegisters>
uint32_t register_component(const uint32_t* src, int l, int n) {
  if constexpr (kRegisters == Registers::kDwords) return src[n * kLanes + l];
  else if constexpr (kRegisters == Registers::kHighHalf) return src[l] >> 16;
  else return src[n / 2 * kLanes + l] >> (16 * (n % 2)) & 0xffff;
}

// An element as a store leaves it: `written` has the bits of the components that the instruction supplies.
struct Element { uint32_t words[4] = {}, written[4] = {}; };

template <int kComponents, Registers kRegisters>
Element pack_element(const FormatAccess& a, const uint32_t* src, int l) {
  Element e;
  unsigned position = 0;
  for (int c = 0; c < a.layout.components; position += a.layout.bits[c++]) {
    int n = 0;
    while (n < kComponents && a.select[n] != kFirst + c) ++n;
    if (n == kComponents) continue;
    const unsigned bits = a.layout.bits[c];
    const uint32_t value = register_component<kComponents, kRegisters>(src, l, n);
    const uint32_t code = kRegisters == Registers::kDwords ? store_component(value, bits, a.number)
                                                           : store_component_16(value, bits, a.number);
    e.words[position / 32] |= code << (position % 32);
    e.written[position / 32] |= (bits == 32 ? ~0u : (1u << bits) - 1) << (position % 32);
  }
  return e;
}

// Bytes of components that the store supplies; false if one shares a byte with a component it does not.
bool put_element(const Element& e, uint32_t bytes, uint8_t* to) {
  for (uint32_t b = 0; b < bytes; ++b) {
    const uint32_t mask = e.written[b / 4] >> (8 * (b % 4)) & 0xff;
    if (mask == 0xff) to[b] = static_cast<uint8_t>(e.words[b / 4] >> (8 * (b % 4)));
    else if (mask != 0) return false;
  }
  return true;
}

template <int kComponents, Registers kRegisters> void store(Wave& w, const Inst& i) {
  const FormatAccess a(w, i, true);
  if (!a.ok) return;
  const uint32_t* src = vreg(w, i.data);
  for (uint64_t mask = a.inside; mask != 0; mask &= mask - 1) {
    const int l = first_lane(mask);
    const Element e = pack_element<kComponents, kRegisters>(a, src, l);
    if (!put_element(e, a.layout.bytes, place(a.descriptor.base, a.at[l])))
      return w.stop("format store of some components of a format that packs them across bytes");
  }
  if (a.inside != 0) ++w.progress;
  count_global(w, w.exec(), a.layout.bytes);
}

}  // namespace

#define MI350_FORMAT(prefix, suffix, components, registers)                              \
  void prefix##_load_format_##suffix(Wave& w, const Inst& i) {                           \
    load<components, Registers::registers>(w, i);                                        \
  }                                                                                      \
  void prefix##_store_format_##suffix(Wave& w, const Inst& i) {                          \
    store<components, Registers::registers>(w, i);                                       \
  }
#define MI350_FORMATS(prefix)                                                            \
  MI350_FORMAT(prefix, x, 1, kDwords) MI350_FORMAT(prefix, xy, 2, kDwords)               \
  MI350_FORMAT(prefix, xyz, 3, kDwords) MI350_FORMAT(prefix, xyzw, 4, kDwords)           \
  MI350_FORMAT(prefix, d16_x, 1, kHalves) MI350_FORMAT(prefix, d16_xy, 2, kHalves)       \
  MI350_FORMAT(prefix, d16_xyz, 3, kHalves) MI350_FORMAT(prefix, d16_xyzw, 4, kHalves)
MI350_FORMATS(buffer)
MI350_FORMATS(tbuffer)
MI350_FORMAT(buffer, d16_hi_x, 1, kHighHalf)
#undef MI350_FORMATS
#undef MI350_FORMAT

}  // namespace mi350::emu::MI350_EMU_LEVEL
