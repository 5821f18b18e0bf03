// One wave with memory and LDS of its own, for handlers of memory instructions.
#pragma once
#include <vector>

#include "exec_fixture.h"
#include "memory.h"

namespace mi350::emu {

struct ExecMemoryTest : ExecTest {
  static constexpr uint32_t kBytes = 1 << 16, kLdsBytes = 4096;
  Memory memory;
  Workgroup group;
  std::vector<uint8_t> lds = std::vector<uint8_t>(kLdsBytes);
  uint8_t* data = static_cast<uint8_t*>(AllocationMap::get().allocate(kBytes, RangeKind::kDevice, 0));

  ExecMemoryTest() {
    w.memory = &memory;
    w.group = &group;
    group.lds = lds.data();
    group.lds_bytes = kLdsBytes;
  }
  ~ExecMemoryTest() override {
    AllocationMap::get().remove(reinterpret_cast<uint64_t>(data), {RangeKind::kDevice});
  }

  // A descriptor of `data` in s[4:7].
  void describe(uint32_t stride, uint32_t records, uint32_t word3 = 0, bool swizzled = false) {
    const auto base = reinterpret_cast<uint64_t>(data);
    w.sgpr[4] = static_cast<uint32_t>(base);
    w.sgpr[5] = static_cast<uint32_t>(base >> 32) | stride << 16 | uint32_t{swizzled} << 31;
    w.sgpr[6] = records;
    w.sgpr[7] = word3;
  }
  // A buffer instruction with v[addr], v[data register], s[4:7] and soffset 0.
  static Inst buffer(int data_register, int addr, bool idxen, bool offen, int offset = 0) {
    Inst i;
    i.dst = i.data = v(data_register);
    i.addr = v(addr);
    i.idxen = idxen;
    i.offen = offen;
    i.imm = offset;
    i.sbase = 4;
    i.soffset = kInt0;
    return i;
  }
  void fill_random(uint32_t seed) {
    uint32_t x = seed;
    for (uint32_t n = 0; n < kBytes; ++n) {
      x = x * 1664525 + 1013904223;
      data[n] = static_cast<uint8_t>(x >> 24);
    }
  }
  uint32_t word(uint32_t byte) const {
    uint32_t x;
    std::memcpy(&x, data + byte, 4);
    return x;
  }
};

}  // namespace mi350::emu
