// Pinned memory by whichever runtime is mapped. The two runtimes differ in names alone.
#include "runtime/pinned.h"

#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include <c10/util/Exception.h>

#include "runtime/find_hip.h"

namespace mi350::runtime {
namespace {

constexpr unsigned kPortableMapped = 1 | 2;  // cudaHostAllocPortable | cudaHostAllocMapped, the same in HIP

// Of the CUDA runtime or HIP.
struct GpuRuntime {
  std::string path;
  int (*allocate)(void**, size_t, unsigned) = nullptr;
  int (*release)(void*) = nullptr;
  int (*synchronize)() = nullptr;
  int (*get_device)(int*) = nullptr;
  int (*set_device)(int) = nullptr;
  int (*is_capturing)(void*, int*) = nullptr;
};

template <class F>
void take(F*& function, void* handle, const std::string& path, const char* name) {
  function = reinterpret_cast<F*>(dlsym(handle, name));
  TORCH_CHECK(function != nullptr, "torch_mi350: ", path, " lacks ", name);
}

GpuRuntime find_gpu_runtime() {
  struct Kind {
    const char *stem, *allocate, *release, *synchronize, *get_device, *set_device, *is_capturing;
  };
  constexpr Kind kKinds[] = {
      {"libcudart", "cudaHostAlloc", "cudaFreeHost", "cudaDeviceSynchronize", "cudaGetDevice",
       "cudaSetDevice", "cudaStreamIsCapturing"},
      {"libamdhip64", "hipHostMalloc", "hipHostFree", "hipDeviceSynchronize", "hipGetDevice", "hipSetDevice",
       "hipStreamIsCapturing"},
  };
  for (const Kind& kind : kKinds) {
    const std::vector<std::string> paths = mapped_libraries(kind.stem);
    if (paths.empty()) continue;
    GpuRuntime found;
    found.path = paths[0];
    void* handle = dlopen(paths[0].c_str(), RTLD_NOW | RTLD_NOLOAD);
    TORCH_CHECK(handle != nullptr, "torch_mi350: the mapped runtime ", paths[0], " cannot be opened");
    take(found.allocate, handle, found.path, kind.allocate);
    take(found.release, handle, found.path, kind.release);
    take(found.synchronize, handle, found.path, kind.synchronize);
    take(found.get_device, handle, found.path, kind.get_device);
    take(found.set_device, handle, found.path, kind.set_device);
    take(found.is_capturing, handle, found.path, kind.is_capturing);
    return found;
  }
  TORCH_CHECK(false,
              "torch_mi350: neither libcudart nor libamdhip64 is mapped into this process, and pinned memory "
              "needs one of them (is this a CUDA or ROCm build of torch?)");
}

const GpuRuntime& gpu_runtime() {
  static const GpuRuntime found = find_gpu_runtime();
  return found;
}

class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    changed_ = gpu_runtime().get_device(&previous_) == 0 && device >= 0 && device != previous_ &&
               gpu_runtime().set_device(device) == 0;
  }
  ~DeviceScope() {
    if (changed_) gpu_runtime().set_device(previous_);
  }

 private:
  int previous_ = 0;
  bool changed_ = false;
};

struct Ranges {
  std::shared_mutex mutex;
  std::map<uint64_t, uint64_t> end_by_begin;
};

// Never destroyed: tensors may be freed while the process exits.
Ranges& ranges() {
  static auto* const all = new Ranges;
  return *all;
}

}  // namespace

bool is_pinned(const void* address) {
  Ranges& all = ranges();
  const auto at = reinterpret_cast<uint64_t>(address);
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  auto after = all.end_by_begin.upper_bound(at);
  return after != all.end_by_begin.begin() && at < (--after)->second;
}

bool gpu_stream_captures(void* stream) {
  int status = 0;
  return gpu_runtime().is_capturing(stream, &status) != 0 || status != 0;
}

}  // namespace mi350::runtime

using namespace mi350::runtime;

void* mi350_pinned_alloc(size_t bytes, int device, void*) {
  if (bytes == 0) return nullptr;
  const DeviceScope scope(device);
  void* memory = nullptr;
  const int error = gpu_runtime().allocate(&memory, bytes, kPortableMapped);
  TORCH_CHECK(error == 0 && memory != nullptr, "torch_mi350: ", gpu_runtime().path, " could not pin ", bytes,
              " bytes for device ", device, ": error ", error);
  using Register = int(void*, size_t, unsigned);
  const int refused = reinterpret_cast<Register*>(emulator_symbol("hipHostRegister"))(memory, bytes, 0);
  if (refused != 0) gpu_runtime().release(memory);
  TORCH_CHECK(refused == 0, "torch_mi350: the emulator refused ", bytes, " pinned bytes: error ", refused);
  const std::unique_lock<std::shared_mutex> lock(ranges().mutex);
  ranges().end_by_begin[reinterpret_cast<uint64_t>(memory)] = reinterpret_cast<uint64_t>(memory) + bytes;
  return memory;
}

void mi350_pinned_free(void* address, size_t, int device, void*) {
  if (address == nullptr) return;
  const DeviceScope scope(device);
  gpu_runtime().synchronize();
  {
    const std::unique_lock<std::shared_mutex> lock(ranges().mutex);
    ranges().end_by_begin.erase(reinterpret_cast<uint64_t>(address));
  }
  using Unregister = int(void*);
  reinterpret_cast<Unregister*>(emulator_symbol("hipHostUnregister"))(address);
  gpu_runtime().release(address);
}
