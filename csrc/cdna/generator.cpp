// Wraps one mt19937 CPU generator per device generator; every access to it takes its own mutex, as CPU kernels do.
#include "cdna/generator.h"

#include <deque>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>

#include "cdna/device.h"

namespace mi350::cdna {
namespace {

class DeviceGenerator final : public c10::GeneratorImpl {
 public:
  DeviceGenerator(c10::DeviceIndex index, at::Generator cpu)
      : c10::GeneratorImpl(c10::Device(kType, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        cpu_(std::move(cpu)) {}

  void set_current_seed(uint64_t seed) override {
    const std::lock_guard lock(cpu_.mutex());
    cpu_.set_current_seed(seed);
  }
  uint64_t current_seed() const override { return cpu_.current_seed(); }
  uint64_t seed() override {
    const std::lock_guard lock(cpu_.mutex());
    return cpu_.seed();
  }
  void set_offset(uint64_t) override { refuse_offset(); }
  uint64_t get_offset() const override { refuse_offset(); }
  void set_state(const c10::TensorImpl& state) override {
    const std::lock_guard lock(cpu_.mutex());
    cpu_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const std::lock_guard lock(const_cast<at::Generator&>(cpu_).mutex());
    return cpu_.unsafeGetGeneratorImpl()->get_state();
  }
  const at::Generator& cpu() const { return cpu_; }

 private:
  [[noreturn]] static void refuse_offset() {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "cdna generators are mt19937 and have no offset");
    throw;  // not reached
  }
  c10::GeneratorImpl* clone_impl() const override {
    return new DeviceGenerator(device_.index(), cpu_.clone());
  }

  at::Generator cpu_;
};

}  // namespace

at::Generator new_generator(c10::DeviceIndex index) {
  return at::make_generator<DeviceGenerator>(checked_index(index), at::detail::createCPUGenerator());
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* const generators = new std::deque<at::Generator>;
  static std::mutex mutex;
  const auto at = static_cast<size_t>(checked_index(index));
  const std::lock_guard lock(mutex);
  while (generators->size() <= at)
    generators->push_back(new_generator(static_cast<c10::DeviceIndex>(generators->size())));
  return (*generators)[at];
}

const at::Generator& cpu_generator(const at::Generator& generator) {
  TORCH_CHECK(generator.device().type() == kType, "Expected a 'cdna' device type for generator but found '",
              generator.device().type(), "'");
  return generator.get<DeviceGenerator>()->cpu();
}

}  // namespace mi350::cdna
