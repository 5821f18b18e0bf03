// Moves, selects and everything that crosses lanes.
#include "exec_lanes.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

uint32_t* row(Wave& w, uint16_t code, int operand) { return w.vgpr[gpr_index(w, code, operand)]; }

// Swaps `count` lanes: of the destination from `to`, of the source from `from`, once per `step` lanes.
void swap_groups(Wave& w, const Inst& i, int count, int step) {
  uint32_t *d = row(w, i.dst, 3), *s = row(w, i.src[0], 0);
  for (int base = 0; base < kLanes; base += step)
    for (int l = 0; l < count; ++l) {
      const uint32_t old = d[base + count + l];
      d[base + count + l] = s[base + l];
      s[base + l] = old;
    }
}

// Set bits of the mask below each lane, counted within dwords [0, 32) or [32, 64).
void count_below(Wave& w, const Inst& i, int first_lane) {
  Scope s(w, i);
  with_sources<U32, U32>(s, [&](const auto& mask, const auto& base) {
    alignas(64) Lanes out;
    for (int l = 0; l < kLanes; ++l) {
      const int bits = l - first_lane;
      const uint32_t below = bits <= 0 ? 0 : bits >= 32 ? ~0u : (1u << bits) - 1;
      out[l] = static_cast<uint32_t>(__builtin_popcount(mask[l] & below)) + base[l];
    }
    commit_lanes(s, out, Repr::kBits32, false);
  });
}

}  // namespace

void v_nop(Wave&, const Inst&) {}
void v_clrexcp(Wave&, const Inst&) {}
void v_mov_b32(Wave& w, const Inst& i) { lanes<U32, U32>(w, i, [](uint32_t a) { return a; }); }
void v_mov_b64(Wave& w, const Inst& i) { lanes<U64, U64>(w, i, [](uint64_t a) { return a; }); }
void v_accvgpr_mov_b32(Wave& w, const Inst& i) { v_mov_b32(w, i); }
void v_accvgpr_read_b32(Wave& w, const Inst& i) { v_mov_b32(w, i); }
void v_accvgpr_write_b32(Wave& w, const Inst& i) { v_mov_b32(w, i); }
void v_cndmask_b32(Wave& w, const Inst& i) {
  lanes<U32, U32, U32, MaskBit>(w, i, [](uint32_t a, uint32_t b, uint32_t m) { return m ? b : a; });
}

namespace {
// Which of four shader engines a rectangle of screen tiles touches; two table entries a byte, low first.
constexpr uint8_t kScreenPartition[128] = {
    0x31, 0xf7, 0xf5, 0xff, 0xf7, 0xff, 0xff, 0xff, 0x2f, 0xe6, 0xaf, 0xff, 0xbf, 0xff, 0xff, 0xff,
    0xfd, 0xc4, 0xff, 0xf5, 0xff, 0xfd, 0xff, 0xff, 0xb9, 0x8f, 0xff, 0xaf, 0xff, 0xef, 0xff, 0xff,
    0xff, 0xff, 0xc4, 0xfd, 0xf6, 0xff, 0xfe, 0xff, 0xff, 0xff, 0x8f, 0xb9, 0x9f, 0xf9, 0xdf, 0xff,
    0xff, 0xff, 0xf7, 0x31, 0xff, 0xf9, 0xff, 0xfb, 0xff, 0xff, 0xe6, 0x2f, 0xf6, 0x6f, 0xff, 0x7f,
    0xfb, 0xff, 0xff, 0xff, 0x32, 0xfb, 0xfa, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x1f, 0xd9, 0x5f, 0xff,
    0xff, 0xfe, 0xff, 0xff, 0xfe, 0xc8, 0xff, 0xfa, 0xff, 0xdf, 0xff, 0xff, 0x76, 0x4f, 0xff, 0x5f,
    0xf9, 0xff, 0xfd, 0xff, 0xff, 0xff, 0xc8, 0xfe, 0x6f, 0xf6, 0xef, 0xff, 0xff, 0xff, 0x4f, 0x76,
    0xff, 0xf6, 0xff, 0xf7, 0xff, 0xff, 0xfb, 0x32, 0xf9, 0x9f, 0xff, 0xbf, 0xff, 0xff, 0xd9, 0x1f};
}  // namespace
void v_screen_partition_4se_b32(Wave& w, const Inst& i) {
  lanes<U32, U32>(w, i, [](uint32_t a) {
    return static_cast<uint32_t>(kScreenPartition[(a & 0xff) / 2] >> (4 * (a & 1)) & 15);
  });
}

void v_swap_b32(Wave& w, const Inst& i) {
  uint32_t *a = row(w, i.dst, 3), *b = row(w, i.src[0], 0);
  const uint64_t exec = w.exec();
  for (int l = 0; l < kLanes; ++l)
    if (lane_on(exec, l)) {
      const uint32_t old = a[l];
      a[l] = b[l];
      b[l] = old;
    }
}
// The swaps ignore EXEC: they exchange halves of rows whole.
void v_permlane16_swap_b32(Wave& w, const Inst& i) { swap_groups(w, i, 16, 32); }
void v_permlane32_swap_b32(Wave& w, const Inst& i) { swap_groups(w, i, 32, 64); }

void v_readfirstlane_b32(Wave& w, const Inst& i) {
  const uint64_t exec = w.exec();
  const int lane = exec ? std::countr_zero(exec) : 0;
  write_s32(w, i.dst, is_vector(i.src[0]) ? row(w, i.src[0], 0)[lane] : read_s32(w, i, i.src[0]));
}
void v_readlane_b32(Wave& w, const Inst& i) {
  const uint32_t lane = read_s32(w, i, i.src[1]) & 63;
  write_s32(w, i.dst, is_vector(i.src[0]) ? row(w, i.src[0], 0)[lane] : read_s32(w, i, i.src[0]));
}
void v_writelane_b32(Wave& w, const Inst& i) {
  row(w, i.dst, 3)[read_s32(w, i, i.src[1]) & 63] = read_s32(w, i, i.src[0]);
}
void v_mbcnt_lo_u32_b32(Wave& w, const Inst& i) { count_below(w, i, 0); }
void v_mbcnt_hi_u32_b32(Wave& w, const Inst& i) { count_below(w, i, 32); }

// Two halves into one register, by OP_SEL and with f16 sign modifiers; the bits stay as they are.
void v_pack_b32_f16(Wave& w, const Inst& i) {
  lanes<U32, H16, H16>(w, i, [](uint32_t a, uint32_t b) { return a | b << 16; });
}

}  // namespace mi350::emu::MI350_EMU_LEVEL
