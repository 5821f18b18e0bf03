// Device memory for tensors and, inside a CPU fallback, for what CPU kernels allocate.
#pragma once
#include <c10/core/CachingDeviceAllocator.h>

#include "cdna/cdna.h"

namespace mi350::cdna {

c10::DeviceAllocator& allocator();

// Memory of device `index` whose DataPtr says `label`: cdna for device storages, cpu for what a CPU kernel
// allocates during a fallback. Only the label differs.
c10::DataPtr allocate_device_memory(size_t bytes, c10::DeviceIndex index, c10::Device label);
bool is_device_memory(const c10::DataPtr& ptr);
// Device that owns an address, or -1.
c10::DeviceIndex device_of_address(const void* address);

// Takes back a block of allocate_device_memory; false if it is not one.
bool release_device_memory(void* ptr);

// Sets torch's allocators of cdna and, in front of the stock one, of the CPU.
void install_allocators();

// While one lives, CPU tensors made on this thread take their memory from a device: outputs of CPU kernels
// become device tensors without a copy.
class HostedAllocations {
 public:
  explicit HostedAllocations(c10::DeviceIndex index);
  ~HostedAllocations();
  HostedAllocations(const HostedAllocations&) = delete;
  HostedAllocations& operator=(const HostedAllocations&) = delete;

 private:
  c10::DeviceIndex previous_;
};

// What CPU storages over device memory use to grow.
c10::Allocator* hosted_allocator();

}  // namespace mi350::cdna
