// Device guard: devices, streams, events. A stream is an index into the streams of its device: 0 is the null
// stream, 1..kPoolSize the shared pool, above that the ones that were asked for one by one.
#include "cdna/guard.h"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "cdna/device.h"

namespace mi350::cdna {
namespace {

constexpr c10::StreamId kPoolSize = 16;
constexpr int kMaxDevices = 64;
constexpr unsigned kNonBlocking = 1;
constexpr unsigned kDisableTiming = 2;

thread_local std::array<c10::StreamId, kMaxDevices> current_streams{};

class DeviceScope {
 public:
  explicit DeviceScope(c10::DeviceIndex index) : previous_(current_device()) { unchecked_set_device(index); }
  ~DeviceScope() { unchecked_set_device(previous_); }

 private:
  c10::DeviceIndex previous_;
};

class Streams {
 public:
  runtime::hipStream_t handle(c10::DeviceIndex index, c10::StreamId id) {
    if (id == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    auto& list = of(index);
    TORCH_CHECK(id > 0 && static_cast<size_t>(id) <= list.size(), "cdna: stream ", id, " of device ",
                int(index), " does not exist");
    return list[static_cast<size_t>(id) - 1];
  }
  c10::StreamId from_pool(c10::DeviceIndex index) {
    const std::lock_guard lock(mutex_);
    of(index);
    return 1 + static_cast<c10::StreamId>(next_[index]++ % kPoolSize);
  }
  c10::StreamId add(c10::DeviceIndex index) {
    const std::lock_guard lock(mutex_);
    auto& list = of(index);
    list.push_back(create(index));
    return static_cast<c10::StreamId>(list.size());
  }

 private:
  static runtime::hipStream_t create(c10::DeviceIndex index) {
    const DeviceScope scope(index);
    runtime::hipStream_t stream = nullptr;
    MI350_CDNA_CHECK(hipStreamCreateWithFlags, &stream, kNonBlocking);
    return stream;
  }
  std::deque<runtime::hipStream_t>& of(c10::DeviceIndex index) {
    auto& list = streams_.at(static_cast<size_t>(index));
    while (list.size() < static_cast<size_t>(kPoolSize)) list.push_back(create(index));
    return list;
  }
  std::mutex mutex_;
  std::array<std::deque<runtime::hipStream_t>, kMaxDevices> streams_;
  std::array<size_t, kMaxDevices> next_{};
};

Streams& streams() {
  static auto* const s = new Streams;
  return *s;
}

c10::Stream make_stream(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, index), id);
}

runtime::hipStream_t raw(const c10::Stream& stream) {
  return streams().handle(stream.device_index(), stream.id());
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before(kType, current_device());
    if (device.index() != before.index()) set_device(device.index());
    return before;
  }
  c10::Device getDevice() const override { return c10::Device(kType, current_device()); }
  void setDevice(c10::Device device) const override { set_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    unchecked_set_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  c10::Stream getStream(c10::Device device) const override {
    const auto index = checked_index(device.index());
    return make_stream(index, current_streams[static_cast<size_t>(index)]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return make_stream(checked_index(device.index()), 0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool = false) const override {
    const auto index = checked_index(device.index());
    return make_stream(index, streams().from_pool(index));
  }
  c10::Stream getNewStream(c10::Device device, int = 0) const override {
    const auto index = checked_index(device.index());
    return make_stream(index, streams().add(index));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    raw(stream);  // refuses a stream that does not exist
    current_streams[static_cast<size_t>(stream.device_index())] = stream.id();
    return before;
  }
  // Who asks is about to call HIP, for which the emulator's current device must be the thread's.
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    hip();
    return raw(stream);
  }
  bool queryStream(const c10::Stream& stream) const override {
    const DeviceScope scope(stream.device_index());
    return hip().hipStreamQuery(raw(stream)) == 0;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    const DeviceScope scope(stream.device_index());
    MI350_CDNA_CHECK(hipStreamSynchronize, raw(stream));
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    const DeviceScope scope(checked_index(index));
    MI350_CDNA_CHECK(hipDeviceSynchronize);
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex index,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(index == -1 || index == stream.device_index(), "cdna: the event belongs to device ",
                int(index), ", the stream to device ", int(stream.device_index()));
    const DeviceScope scope(stream.device_index());
    if (*event == nullptr) {
      const unsigned flags = flag == c10::EventFlag::BACKEND_DEFAULT ? 0 : kDisableTiming;
      MI350_CDNA_CHECK(hipEventCreateWithFlags, event, flags);
    }
    MI350_CDNA_CHECK(hipEventRecord, *event, raw(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    const DeviceScope scope(stream.device_index());
    MI350_CDNA_CHECK(hipStreamWaitEvent, raw(stream), event, 0);
  }
  bool queryEvent(void* event) const override { return event == nullptr || hip().hipEventQuery(event) == 0; }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) MI350_CDNA_CHECK(hipEventSynchronize, event);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event != nullptr && !in_bad_fork()) runtime::emulator().hipEventDestroy(event);
  }
  double elapsedTime(void* start, void* stop, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && stop != nullptr,
                "Both events must be recorded before calculating elapsed time.");
    float milliseconds = 0;
    MI350_CDNA_CHECK(hipEventElapsedTime, &milliseconds, start, stop);
    return milliseconds;
  }
};

}  // namespace

void install_guard() { static const c10::impl::DeviceGuardImplRegistrar registrar(kType, new Guard); }

}  // namespace mi350::cdna
