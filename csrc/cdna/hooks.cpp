// Hooks and pinned memory. The emulator reads host memory as it is, so pinned memory is ordinary memory that
// remembers to be called pinned.
#include "cdna/hooks.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/StorageImpl.h>

#include "cdna/allocator.h"
#include "cdna/device.h"
#include "cdna/generator.h"

namespace mi350::cdna {
namespace {

constexpr size_t kPinnedAlign = 64;

void free_pinned(void* ptr);

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::Device(c10::kCPU)};
    void* ptr = nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, posix_memalign(&ptr, kPinnedAlign, bytes) == 0,
                     "cdna: pinned memory: tried to allocate ", bytes, " bytes");
    const std::lock_guard lock(mutex_);
    ranges_.emplace(reinterpret_cast<uintptr_t>(ptr), bytes);
    return {ptr, ptr, &free_pinned, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* dest, const void* src, size_t count) const override {
    default_copy_data(dest, src, count);
  }

  // Copies have finished when the call that asked for them returns.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}

  bool contains(const void* address) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    const std::lock_guard lock(mutex_);
    auto next = ranges_.upper_bound(at);
    if (next == ranges_.begin()) return false;
    --next;
    return at < next->first + next->second;
  }
  void release(void* ptr) {
    {
      const std::lock_guard lock(mutex_);
      ranges_.erase(reinterpret_cast<uintptr_t>(ptr));
    }
    std::free(ptr);
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, size_t> ranges_;
};

PinnedAllocator& pinned() {
  static auto* const p = new PinnedAllocator;
  return *p;
}

void free_pinned(void* ptr) { pinned().release(ptr); }

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return used(); }
  void init() const override {}

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const auto before = current_device();
    set_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    const auto before = current_device();
    if (index >= 0) set_device(index);
    return before;
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

  c10::Device getDeviceFromPtr(void* data) const override {
    const auto index = device_of_address(data);
    TORCH_CHECK(index >= 0, "cdna: the pointer ", data, " is not in cdna memory");
    return c10::Device(kType, index);
  }
  bool isPinnedPtr(const void* data) const override { return pinned().contains(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned(); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    c10::DataPtr grown = allocate_device_memory(bytes, impl->device().index(), impl->device());
    const size_t kept = std::min(bytes, impl->nbytes());
    if (kept > 0) std::memcpy(grown.get(), impl->data(), kept);
    impl->set_data_ptr_noswap(std::move(grown));
    impl->set_nbytes(bytes);
  }
};

}  // namespace

void install_hooks() {
  at::setHostAllocator(kType, &pinned());
  at::RegisterPrivateUse1HooksInterface(new Hooks);
}

}  // namespace mi350::cdna
