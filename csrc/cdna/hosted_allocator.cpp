// Stands in front of torch's CPU allocator and differs from it only on a thread inside a HostedAllocations scope,
// where CPU tensors take device memory.
#include <c10/core/CPUAllocator.h>

#include "cdna/allocator.h"

namespace mi350::cdna {
namespace {

thread_local c10::DeviceIndex hosted_device = -1;

void free_raw(void* ptr);

class HostedAllocator final : public c10::Allocator {
 public:
  explicit HostedAllocator(c10::Allocator* stock) : stock_(stock) {}
  c10::DataPtr allocate(size_t bytes) override {
    if (hosted_device < 0) return stock_->allocate(bytes);
    return allocate_device_memory(bytes, hosted_device, c10::Device(c10::kCPU));
  }
  // oneDNN takes scratch memory through raw_allocate in one call and returns it in another, inside or outside a
  // scope: the address tells whose it is.
  c10::DeleterFnPtr raw_deleter() const override { return &free_raw; }
  bool is_simple_data_ptr(const c10::DataPtr& ptr) const override { return stock_->is_simple_data_ptr(ptr); }
  void copy_data(void* dest, const void* src, size_t count) const override {
    default_copy_data(dest, src, count);
  }
  c10::DeleterFnPtr stock_deleter() const { return stock_->raw_deleter(); }

 private:
  c10::Allocator* stock_;
};

HostedAllocator& hosted() {
  static auto* const a = new HostedAllocator(c10::GetCPUAllocator());
  return *a;
}

void free_raw(void* ptr) {
  if (ptr != nullptr && !release_device_memory(ptr)) hosted().stock_deleter()(ptr);
}

}  // namespace

void install_allocators() {
  c10::SetAllocator(kType, &allocator());
  c10::SetCPUAllocator(&hosted());
}

HostedAllocations::HostedAllocations(c10::DeviceIndex index) : previous_(hosted_device) {
  hosted_device = index;
}
HostedAllocations::~HostedAllocations() { hosted_device = previous_; }

c10::Allocator* hosted_allocator() { return &hosted(); }

}  // namespace mi350::cdna
