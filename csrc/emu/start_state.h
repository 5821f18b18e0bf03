// What a wave finds when it starts: kernel arguments, dispatch packet, initial registers.
#pragma once
#include <cstdint>
#include <vector>

#include "dispatch.h"
#include "memory.h"
#include "wave.h"

namespace mi350::emu {

// The memory of a launch beside its tensors, laid out [arguments][dispatch packet][queue]; read-only to kernels.
class LaunchBlock {
 public:
  explicit LaunchBlock(const Launch& launch);
  uint64_t kernarg() const { return address(0); }
  uint64_t packet() const { return address(packet_at_); }
  uint64_t queue() const { return address(queue_at_); }
  void show_to(Memory& memory) const { memory.set_local(kernarg(), address(bytes_)); }

 private:
  uint64_t address(size_t offset) const { return reinterpret_cast<uint64_t>(storage_.data()) + skip_ + offset; }
  std::vector<uint8_t> storage_;
  size_t skip_ = 0, packet_at_ = 0, queue_at_ = 0, bytes_ = 0;
};

// Bytes of private memory of a lane.
uint32_t scratch_bytes_per_lane(const KernelInfo& kernel);

// Registers, pc and MODE of wave `wave_in_group`; the rest of the wave is set by the caller.
void start_wave(Wave& w, const Launch& launch, const LaunchBlock& block);

}  // namespace mi350::emu
