// Code objects on demand: one module per (home, device, object), one function per (home, device, kernel).
#include "runtime/module_cache.h"

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include <c10/util/Exception.h>

#include "runtime/find_hip.h"

namespace mi350::runtime {
namespace {

constexpr int kSlots = 3;

std::array<KernelName, kMaxKernels> names;
std::atomic<int> count{0};
std::array<std::atomic<hipFunction_t>, size_t(kSlots) * kMaxDevices * kMaxKernels> functions;

std::mutex& mutex() {
  static std::mutex m;
  return m;
}

std::atomic<hipFunction_t>& entry(const ModuleKey& key, int kernel) {
  return functions[(size_t(key.slot) * kMaxDevices + key.device) * kMaxKernels + kernel];
}

std::vector<char> read_object(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  TORCH_CHECK(file.good(), "torch_mi350: code object ", path, " is missing: reinstall the package");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

hipModule_t load_module(const ModuleKey& key, const char* object) {
  // Kept for the life of the process, with the bytes: a runtime may read them later.
  static auto* const modules =
      new std::map<std::tuple<int, int, std::string>, std::pair<std::vector<char>, hipModule_t>>;
  const auto id = std::make_tuple(key.slot, key.device, std::string(object));
  const auto found = modules->find(id);
  if (found != modules->end()) return found->second.second;
  const std::string path = package_dir() + "/code_objects/" + object;
  std::vector<char> bytes = read_object(path);
  hipModule_t module = nullptr;
  const hipError_t error = key.hip->hipModuleLoadData(&module, bytes.data());
  TORCH_CHECK(error == 0, "torch_mi350: ", path, " cannot be loaded on device ", key.device, ": ",
              key.hip->hipGetErrorString(error));
  (*modules)[id] = {std::move(bytes), module};
  return module;
}

}  // namespace

int add_kernels(const KernelName* added, int added_count) {
  const std::lock_guard<std::mutex> lock(mutex());
  const int first = count.load(std::memory_order_relaxed);
  TORCH_CHECK(first + added_count <= kMaxKernels, "torch_mi350: the module cache holds ", kMaxKernels,
              " kernels, got ", first + added_count);
  for (int i = 0; i < added_count; ++i) names[first + i] = added[i];
  count.store(first + added_count, std::memory_order_release);
  return first;
}

int kernel_count() { return count.load(std::memory_order_acquire); }
const KernelName& kernel_name(int kernel) { return names[kernel]; }

hipFunction_t loaded_function(const ModuleKey& key, int kernel) {
  return entry(key, kernel).load(std::memory_order_acquire);
}

hipFunction_t load_function(const ModuleKey& key, int kernel) {
  if (hipFunction_t loaded = loaded_function(key, kernel)) return loaded;
  const std::lock_guard<std::mutex> lock(mutex());
  if (hipFunction_t loaded = loaded_function(key, kernel)) return loaded;
  const KernelName& name = names[kernel];
  hipFunction_t function = nullptr;
  const hipError_t error =
      key.hip->hipModuleGetFunction(&function, load_module(key, name.object), name.symbol);
  TORCH_CHECK(error == 0, "torch_mi350: kernel ", name.symbol, " is not in ", name.object, ": ",
              key.hip->hipGetErrorString(error));
  entry(key, kernel).store(function, std::memory_order_release);
  return function;
}

}  // namespace mi350::runtime
