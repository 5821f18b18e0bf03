// HIP's C functions: streams and events. Work runs in the call that submits it, so a stream is a name and an
// event a time stamp; order holds by construction.
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "hip_types.h"

namespace mi350::emu {
namespace {

struct Stream { int device; unsigned flags; int priority; };
struct Event { int device; unsigned flags; bool recorded; int64_t ns; };

constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kKnownEventFlags = 0x1 | kEventDisableTiming | 0x4 | 0xE0000000u;
constexpr uintptr_t kStreamPerThread = 2;  // 0 the null stream, 1 legacy, 2 per thread

// Handles are counted up and never used again, so a stale one is always recognised.
template <typename T>
class Handles {
 public:
  void* add(T value) {
    std::lock_guard lock(mutex_);
    next_ += 16;
    items_.emplace(next_, value);
    return reinterpret_cast<void*>(next_);
  }
  bool get(void* handle, T* out) {
    std::lock_guard lock(mutex_);
    auto it = items_.find(reinterpret_cast<uintptr_t>(handle));
    if (it == items_.end()) return false;
    *out = it->second;
    return true;
  }
  bool set(void* handle, const T& value) {
    std::lock_guard lock(mutex_);
    auto it = items_.find(reinterpret_cast<uintptr_t>(handle));
    if (it == items_.end()) return false;
    it->second = value;
    return true;
  }
  bool remove(void* handle) {
    std::lock_guard lock(mutex_);
    return items_.erase(reinterpret_cast<uintptr_t>(handle)) == 1;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uintptr_t, T> items_;
  uintptr_t next_ = 0x1000;
};

Handles<Stream>& streams() { static auto* h = new Handles<Stream>; return *h; }
Handles<Event>& events() { static auto* h = new Handles<Event>; return *h; }

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

hipError_t check_event(void* event, const char* function, Event* out) {
  if (events().get(event, out)) return hipSuccess;
  return fail(hipErrorInvalidHandle, std::string(function) + ": unknown or destroyed event");
}

}  // namespace

bool stream_known(void* stream, int* device) {
  *device = current_device();
  if (reinterpret_cast<uintptr_t>(stream) <= kStreamPerThread) return true;
  Stream s;
  if (!streams().get(stream, &s)) return false;
  *device = s.device;
  return true;
}

hipError_t check_stream(void* stream, const char* function) {
  int device;
  if (stream_known(stream, &device)) return hipSuccess;
  return fail(hipErrorContextIsDestroyed, std::string(function) + ": unknown or destroyed stream");
}

MI350_HIP hipError_t hipStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  if (stream == nullptr || flags > 1)
    return fail(hipErrorInvalidValue, "hipStreamCreate: flags must be 0 or 1 (non-blocking)");
  *stream = streams().add({current_device(), flags, priority});
  return hipSuccess;
}
MI350_HIP hipError_t hipStreamCreateWithFlags(void** stream, unsigned flags) {
  return hipStreamCreateWithPriority(stream, flags, 0);
}
MI350_HIP hipError_t hipStreamCreate(void** stream) { return hipStreamCreateWithPriority(stream, 0, 0); }
MI350_HIP hipError_t hipExtStreamCreateWithCUMask(void** stream, uint32_t words, const uint32_t* mask) {
  if (words == 0 || mask == nullptr) return fail(hipErrorInvalidValue, "hipExtStreamCreateWithCUMask: no mask");
  return hipStreamCreateWithPriority(stream, 0, 0);
}
MI350_HIP hipError_t hipStreamDestroy(void* stream) {
  if (reinterpret_cast<uintptr_t>(stream) <= kStreamPerThread)
    return fail(hipErrorInvalidHandle, "hipStreamDestroy: the null stream cannot be destroyed");
  if (streams().remove(stream)) return hipSuccess;
  return check_stream(stream, "hipStreamDestroy");
}
MI350_HIP hipError_t hipStreamSynchronize(void* stream) { return check_stream(stream, "hipStreamSynchronize"); }
MI350_HIP hipError_t hipStreamQuery(void* stream) { return check_stream(stream, "hipStreamQuery"); }
MI350_HIP hipError_t hipStreamWaitEvent(void* stream, void* event, unsigned flags) {
  Event e;
  if (hipError_t error = check_stream(stream, "hipStreamWaitEvent")) return error;
  return check_event(event, "hipStreamWaitEvent", &e);
}
MI350_HIP hipError_t hipStreamGetFlags(void* stream, unsigned* flags) {
  Stream s{};
  if (flags == nullptr) return fail(hipErrorInvalidValue, "hipStreamGetFlags: null pointer");
  if (hipError_t error = check_stream(stream, "hipStreamGetFlags")) return error;
  streams().get(stream, &s);
  *flags = s.flags;
  return hipSuccess;
}
MI350_HIP hipError_t hipStreamGetPriority(void* stream, int* priority) {
  Stream s{};
  if (priority == nullptr) return fail(hipErrorInvalidValue, "hipStreamGetPriority: null pointer");
  if (hipError_t error = check_stream(stream, "hipStreamGetPriority")) return error;
  streams().get(stream, &s);
  *priority = s.priority;
  return hipSuccess;
}
MI350_HIP hipError_t hipStreamGetDevice(void* stream, int* device) {
  if (device == nullptr) return fail(hipErrorInvalidValue, "hipStreamGetDevice: null pointer");
  if (stream_known(stream, device)) return hipSuccess;
  return check_stream(stream, "hipStreamGetDevice");
}
// Nothing captures here: begin is refused, the queries answer "not capturing".
MI350_HIP hipError_t hipStreamBeginCapture(void* stream, int) {
  return fail(hipErrorNotSupported, "hipStreamBeginCapture: the emulator does not capture graphs");
}
MI350_HIP hipError_t hipStreamIsCapturing(void* stream, int* status) {
  if (status == nullptr) return fail(hipErrorInvalidValue, "hipStreamIsCapturing: null pointer");
  *status = 0;
  return check_stream(stream, "hipStreamIsCapturing");
}
MI350_HIP hipError_t hipStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  if (status == nullptr) return fail(hipErrorInvalidValue, "hipStreamGetCaptureInfo: null pointer");
  *status = 0;
  if (id != nullptr) *id = 0;
  return check_stream(stream, "hipStreamGetCaptureInfo");
}
MI350_HIP hipError_t hipStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                                                const void*** dependencies, size_t* count) {
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (count != nullptr) *count = 0;
  return hipStreamGetCaptureInfo(stream, status, id);
}
MI350_HIP hipError_t hipThreadExchangeStreamCaptureMode(int* mode) {
  constexpr int kRelaxed = 2;
  thread_local int current = 0;
  if (mode == nullptr || *mode < 0 || *mode > kRelaxed)
    return fail(hipErrorInvalidValue, "hipThreadExchangeStreamCaptureMode: the mode must be 0, 1 or 2");
  std::swap(*mode, current);
  return hipSuccess;
}
// Host functions run at once, like everything else.
MI350_HIP hipError_t hipStreamAddCallback(void* stream, void (*callback)(void*, hipError_t, void*), void* argument,
                                          unsigned flags) {
  if (callback == nullptr || flags != 0)
    return fail(hipErrorInvalidValue, "hipStreamAddCallback: needs a function, flags must be 0");
  if (hipError_t error = check_stream(stream, "hipStreamAddCallback")) return error;
  callback(stream, hipSuccess, argument);
  return hipSuccess;
}
MI350_HIP hipError_t hipLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  if (function == nullptr) return fail(hipErrorInvalidValue, "hipLaunchHostFunc: null function");
  if (hipError_t error = check_stream(stream, "hipLaunchHostFunc")) return error;
  function(argument);
  return hipSuccess;
}

MI350_HIP hipError_t hipEventCreateWithFlags(void** event, unsigned flags) {
  if (event == nullptr || (flags & ~kKnownEventFlags) != 0) {
    return fail(hipErrorInvalidValue, "hipEventCreateWithFlags: unknown flags " + std::to_string(flags));
  }
  *event = events().add({current_device(), flags, false, 0});
  return hipSuccess;
}
MI350_HIP hipError_t hipEventCreate(void** event) { return hipEventCreateWithFlags(event, 0); }
MI350_HIP hipError_t hipEventDestroy(void* event) {
  if (events().remove(event)) return hipSuccess;
  return fail(hipErrorInvalidHandle, "hipEventDestroy: unknown or destroyed event");
}
MI350_HIP hipError_t hipEventRecord(void* event, void* stream) {
  Event e;
  int device;
  if (hipError_t error = check_event(event, "hipEventRecord", &e)) return error;
  if (hipError_t error = check_stream(stream, "hipEventRecord")) return error;
  stream_known(stream, &device);
  if (device != e.device) {
    return fail(hipErrorInvalidHandle, "hipEventRecord: the event belongs to device " + std::to_string(e.device) +
                                           ", the stream to device " + std::to_string(device));
  }
  e.recorded = true;
  e.ns = now_ns();
  events().set(event, e);
  return hipSuccess;
}
MI350_HIP hipError_t hipEventRecordWithFlags(void* event, void* stream, unsigned) {
  return hipEventRecord(event, stream);
}
MI350_HIP hipError_t hipEventSynchronize(void* event) {
  Event e;
  return check_event(event, "hipEventSynchronize", &e);
}
MI350_HIP hipError_t hipEventQuery(void* event) {
  Event e;
  return check_event(event, "hipEventQuery", &e);
}
MI350_HIP hipError_t hipEventElapsedTime(float* ms, void* start, void* stop) {
  Event a, b;
  if (ms == nullptr) return fail(hipErrorInvalidValue, "hipEventElapsedTime: null pointer");
  if (hipError_t error = check_event(start, "hipEventElapsedTime", &a)) return error;
  if (hipError_t error = check_event(stop, "hipEventElapsedTime", &b)) return error;
  if (!a.recorded || !b.recorded || ((a.flags | b.flags) & kEventDisableTiming) != 0) {
    return fail(hipErrorInvalidHandle, "hipEventElapsedTime: both events must be recorded and keep times");
  }
  if (a.device != b.device) {
    return fail(hipErrorInvalidHandle, "hipEventElapsedTime: the events belong to devices " +
                                           std::to_string(a.device) + " and " + std::to_string(b.device));
  }
  *ms = static_cast<float>(static_cast<double>(b.ns - a.ns) * 1e-6);
  return hipSuccess;
}

}  // namespace mi350::emu
