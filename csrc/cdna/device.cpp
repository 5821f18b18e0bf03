// Current device, HIP error text, fork state. Devices of the emulator are indices; the emulator keeps its own
// current device per host thread, which follows ours lazily.
#include "cdna/device.h"

#include <pthread.h>

#include <atomic>
#include <string>

#include <c10/util/Exception.h>

namespace mi350::cdna {
namespace {

thread_local c10::DeviceIndex thread_device = 0;
thread_local c10::DeviceIndex emulator_device = 0;  // what the emulator believes on this thread
std::atomic<bool> device_used{false};
std::atomic<bool> bad_fork{false};

void mark_child() {
  if (device_used.load()) bad_fork.store(true);
}

void mark_used() {
  static const int registered = pthread_atfork(nullptr, nullptr, mark_child);
  TORCH_CHECK(registered == 0, "cdna: pthread_atfork failed with ", registered);
  device_used.store(true, std::memory_order_relaxed);
}

struct Devices {
  c10::DeviceIndex count = 0;
  std::string why;  // there is none
};

const Devices& devices() noexcept {
  static const Devices found = [] {
    Devices d;
    try {
      int n = 0;
      const runtime::hipError_t code = runtime::emulator().hipGetDeviceCount(&n);
      if (code != 0) d.why = reinterpret_cast<const char* (*)()>(runtime::emulator_symbol("mi350emuLastReport"))();
      if (code == 0 && n > 0) d.count = static_cast<c10::DeviceIndex>(n);
    } catch (const c10::Error& e) {
      d.why = e.what_without_backtrace();
    } catch (...) {
      d.why = "the emulator could not be loaded";
    }
    return d;
  }();
  return found;
}

}  // namespace

c10::DeviceIndex device_count() noexcept { return devices().count; }

c10::DeviceIndex current_device() noexcept { return thread_device; }

void set_device(c10::DeviceIndex index) { thread_device = checked_index(index); }

void unchecked_set_device(c10::DeviceIndex index) noexcept {
  if (index >= 0) thread_device = index;
}

c10::DeviceIndex checked_index(c10::DeviceIndex index) {
  if (index == -1) return thread_device;
  TORCH_CHECK(device_count() > 0, "cdna: there is no device: ", devices().why);
  TORCH_CHECK(index >= 0 && index < device_count(), "cdna: device index must be in [0, ", int(device_count()),
              "), got ", int(index), " (TORCH_MI350_EMU_DEVICES sets how many there are)");
  return index;
}

const runtime::Hip& hip() {
  const runtime::Hip& table = runtime::emulator();
  TORCH_CHECK(
      !bad_fork.load(std::memory_order_relaxed),
      "Cannot re-initialize cdna in forked subprocess. To use cdna with multiprocessing, you must use "
      "the 'spawn' start method");
  if (!device_used.load(std::memory_order_relaxed)) mark_used();
  if (emulator_device != thread_device) {
    check_hip(table.hipSetDevice(thread_device), "hipSetDevice");
    emulator_device = thread_device;
  }
  return table;
}

bool used() noexcept { return device_used.load(std::memory_order_relaxed); }
bool in_bad_fork() noexcept { return bad_fork.load(std::memory_order_relaxed); }

void check_hip(runtime::hipError_t code, const char* what) {
  if (code == 0) return;
  TORCH_CHECK(false, "cdna: ", what, " failed: ", runtime::emulator().hipGetErrorString(code), " (", code,
              ")");
}

}  // namespace mi350::cdna
