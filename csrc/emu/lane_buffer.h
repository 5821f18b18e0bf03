// Buffer descriptors and where the lanes of a buffer instruction fall (CDNA4 manual, buffer addressing).
//
//   index  = register if idxen, + lane if add_tid_enable        offset = register if offen, + instruction offset
//   linear:    base + soffset + index * stride + offset
//   swizzled:  elements of 4 bytes of `index stride` neighbouring indices lie side by side
// Range: with idxen and a stride by index against num_records elements, else by byte against num_records bytes.
#pragma once
#include "lane_memory.h"

namespace mi350::emu::MI350_EMU_LEVEL {

struct Descriptor {
  uint64_t base;
  uint32_t stride, records, index_stride;
  bool swizzled, add_lane;
  uint8_t dst_sel[4], number_format, data_format;

  explicit Descriptor(const uint32_t* d)
      : base(d[0] | static_cast<uint64_t>(d[1] & 0xffff) << 32), stride((d[1] >> 16) & 0x3fff), records(d[2]),
        index_stride(8u << (d[3] >> 21 & 3)), swizzled(d[1] >> 31), add_lane(d[3] >> 23 & 1),
        dst_sel{static_cast<uint8_t>(d[3] & 7), static_cast<uint8_t>(d[3] >> 3 & 7),
                static_cast<uint8_t>(d[3] >> 6 & 7), static_cast<uint8_t>(d[3] >> 9 & 7)},
        number_format(d[3] >> 12 & 7), data_format(d[3] >> 15 & 15) {
    if (add_lane) stride |= static_cast<uint32_t>(data_format) << 14;  // the field then holds stride bits 17:14
  }
  // Neither stride nor index: the case that needs no arithmetic per lane.
  bool plain() const { return stride == 0 && !swizzled; }
  bool by_index(const Inst& i) const { return i.idxen && stride != 0; }
};

inline uint64_t buffer_offset(const Descriptor& d, uint64_t index, uint64_t offset) {
  constexpr uint64_t kElement = 4;
  if (!d.swizzled) return index * d.stride + offset;
  return (index / d.index_stride * d.stride + offset / kElement * kElement) * d.index_stride +
         index % d.index_stride * kElement + offset % kElement;
}

// Offsets from d.base of accesses of `bytes` bytes, `skip` bytes into each lane's element, and the active
// lanes that are in range.
inline void place_lanes(Wave& w, const Inst& i, const Descriptor& d, uint32_t bytes, uint32_t skip,
                        Addresses& at, uint64_t& inside) {
  const uint32_t* index = i.idxen ? vreg(w, i.addr) : nullptr;
  const uint32_t* offset = i.offen ? vreg(w, static_cast<uint16_t>(i.addr + i.idxen)) : nullptr;
  const uint64_t scalar = read_s32(w, i, i.soffset), fixed = static_cast<uint64_t>(i.imm) + skip;
  inside = 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t n = (index ? index[l] : 0ull) + (d.add_lane ? static_cast<uint32_t>(l) : 0u);
    at[l] = buffer_offset(d, n, (offset ? offset[l] : 0ull) + fixed) + scalar;
    inside |= uint64_t{d.by_index(i) ? n < d.records : at[l] + bytes <= d.records} << l;
  }
  inside &= w.exec();
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
