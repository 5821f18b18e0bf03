// Initial SGPRs follow the enables of the kernel descriptor: private buffer (4), dispatch pointer, queue
// pointer, kernarg pointer, dispatch id, flat scratch (2 each), private size (1), preloaded arguments; after
// the user SGPRs the workgroup ids. v0 = x | y << 10 | z << 20.
#include "start_state.h"

#include <algorithm>
#include <cstring>

namespace mi350::emu {
namespace {

constexpr size_t kPacketBytes = 64, kQueueBytes = 256, kBlockAlign = 256;
constexpr uint32_t kDynamicStackBytes = 16 * 1024;
constexpr uint64_t kSharedApertureHigh = 1ull << 16, kPrivateApertureHigh = 2ull << 16;  // exec.h: aperture()

size_t round_up(size_t v, size_t to) { return (v + to - 1) / to * to; }

void put(std::vector<uint8_t>& bytes, size_t at, size_t size, uint64_t value) {
  if (at + size <= bytes.size()) std::memcpy(bytes.data() + at, &value, size);
}

// The value of a hidden argument; grids are whole workgroups, so remainders are 0.
uint64_t hidden_value(const Launch& l, const std::string& kind) {
  constexpr const char* kAxis[3] = {"x", "y", "z"};
  for (int a = 0; a < 3; ++a) {
    const std::string axis = kAxis[a];
    if (kind == "hidden_block_count_" + axis) return l.grid[a];
    if (kind == "hidden_group_size_" + axis) return l.block[a];
  }
  if (kind == "hidden_grid_dims") return 3;
  if (kind == "hidden_dynamic_lds_size") return l.dynamic_lds_bytes;
  if (kind == "hidden_shared_base") return kSharedApertureHigh;
  if (kind == "hidden_private_base") return kPrivateApertureHigh;
  return 0;
}

// hsa_kernel_dispatch_packet_t
void fill_packet(std::vector<uint8_t>& s, size_t at, const Launch& l, uint64_t kernarg) {
  put(s, at, 2, 2);
  put(s, at + 2, 2, 3);
  for (size_t a = 0; a < 3; ++a) {
    put(s, at + 4 + 2 * a, 2, l.block[a]);
    put(s, at + 12 + 4 * a, 4, uint64_t{l.block[a]} * l.grid[a]);
  }
  put(s, at + 24, 4, l.kernel->private_segment_bytes);
  put(s, at + 28, 4, l.lds_bytes());
  put(s, at + 32, 8, l.kernel->descriptor);
  put(s, at + 40, 8, kernarg);
}

class UserSgprs {
 public:
  explicit UserSgprs(Wave& w) : w_(w) {}
  void skip(uint32_t n) { next_ += n; }
  void put64(uint64_t v) {
    put32(static_cast<uint32_t>(v));
    put32(static_cast<uint32_t>(v >> 32));
  }
  void put32(uint32_t v) {
    if (next_ < 102) w_.sgpr[next_] = v;
    ++next_;
  }
  uint32_t next() const { return next_; }

 private:
  Wave& w_;
  uint32_t next_ = 0;
};

void fill_sgprs(Wave& w, const Launch& l, const LaunchBlock& block) {
  const KernelInfo& k = *l.kernel;
  UserSgprs s(w);
  if (k.has_private_buffer()) s.skip(4);
  if (k.has_dispatch_ptr()) s.put64(block.packet());
  if (k.has_queue_ptr()) s.put64(block.queue());
  if (k.has_kernarg_ptr()) s.put64(block.kernarg());
  if (k.has_dispatch_id()) s.put64(0);
  if (k.has_flat_scratch()) s.put64(w.scratch_base);
  if (k.has_private_size()) s.put32(w.scratch_bytes_per_lane);
  for (uint32_t d = 0; d < k.preload_dwords; ++d) {
    uint32_t value;
    std::memcpy(&value, reinterpret_cast<const void*>(block.kernarg() + 4 * (k.preload_offset_dwords + d)), 4);
    s.put32(value);
  }
  UserSgprs system(w);
  system.skip(std::max(k.user_sgprs(), s.next()));
  for (int axis = 0; axis < 3; ++axis) {
    if (k.has_workgroup_id(axis)) system.put32(w.group->id[axis]);
  }
  if (k.has_workgroup_info()) system.put32(0);
}

void fill_ids(Wave& w, const Launch& l) {
  const uint32_t axes = l.kernel->work_item_id_axes();
  const uint32_t items = l.work_items(), first = w.wave_in_group * kLanes;
  uint64_t exec = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t n = first + lane;
    if (n >= items) break;
    exec |= 1ull << lane;
    const uint32_t x = n % l.block[0], y = n / l.block[0] % l.block[1], z = n / l.block[0] / l.block[1];
    w.vgpr[0][lane] = x | (axes > 1 ? y << 10 : 0) | (axes > 2 ? z << 20 : 0);
  }
  w.set_exec(exec);
}

}  // namespace

LaunchBlock::LaunchBlock(const Launch& l) {
  const KernelInfo& k = *l.kernel;
  const size_t preload_end = 4 * (size_t{k.preload_offset_dwords} + k.preload_dwords);
  const size_t arguments = std::max({l.kernarg.size(), size_t{k.kernarg_bytes}, preload_end});
  packet_at_ = round_up(arguments, 64);
  queue_at_ = packet_at_ + kPacketBytes;
  bytes_ = queue_at_ + kQueueBytes;
  storage_.assign(bytes_ + kBlockAlign, 0);
  skip_ = round_up(reinterpret_cast<size_t>(storage_.data()), kBlockAlign) -
          reinterpret_cast<size_t>(storage_.data());
  if (!l.kernarg.empty()) std::memcpy(storage_.data() + skip_, l.kernarg.data(), l.kernarg.size());
  for (const KernelArgument& a : k.args) {
    if (a.kind.rfind("hidden_", 0) == 0 && uint64_t{a.offset} + a.size <= arguments) {
      put(storage_, skip_ + a.offset, std::min(a.size, 8u), hidden_value(l, a.kind));
    }
  }
  fill_packet(storage_, skip_ + packet_at_, l, kernarg());
}

uint32_t scratch_bytes_per_lane(const KernelInfo& k) {
  const uint64_t bytes = uint64_t{k.private_segment_bytes} + (k.has_dynamic_stack() ? kDynamicStackBytes : 0);
  return static_cast<uint32_t>(std::min<uint64_t>(bytes + 15, UINT32_MAX)) & ~15u;
}

void start_wave(Wave& w, const Launch& l, const LaunchBlock& block) {
  const KernelInfo& k = *l.kernel;
  const uint32_t arch = std::clamp(k.accum_offset, 1u, 256u);
  const uint32_t acc = std::min(k.vgprs > arch ? k.vgprs - arch : 0, 256u);
  std::memset(w.vgpr[0], 0, size_t{arch} * sizeof w.vgpr[0]);
  std::memset(w.vgpr[256], 0, size_t{acc} * sizeof w.vgpr[0]);
  std::memset(w.sgpr, 0, sizeof w.sgpr);
  std::memset(w.seen_loads, 0, sizeof w.seen_loads);
  w.mode = k.start_mode();
  w.pc = k.preload_dwords != 0 ? k.preloaded_entry : k.entry;
  w.start_pc = w.pc;
  fill_sgprs(w, l, block);
  fill_ids(w, l);
  std::memcpy(&w.sgpr[kFlatScratchLo], &w.scratch_base, 8);
}

}  // namespace mi350::emu
