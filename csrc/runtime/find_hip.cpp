// Where the HIP functions of each home come from: the emulator beside this extension, or the runtime that
// torch has mapped. Nothing here loads a second runtime or touches a GPU.
#include "runtime/find_hip.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include <c10/util/Exception.h>

namespace mi350::runtime {
namespace {

const char kEmulatorName[] = "libmi350emu.so";
const char kRuntimeStem[] = "libamdhip64";

// Fills the table from `handle`; returns the name of the first function it lacks, or null.
const char* fill(Hip& hip, void* handle) {
  const char* missing = nullptr;
#define MI350_FILL(fn, ret, args)                             \
  hip.fn = reinterpret_cast<ret(*) args>(dlsym(handle, #fn)); \
  if (hip.fn == nullptr && missing == nullptr) missing = #fn;
  MI350_HIP_FUNCTIONS(MI350_FILL)
#undef MI350_FILL
  return missing;
}

void* emulator_handle() {
  static void* const handle = [] {
    const std::string path = package_dir() + "/" + kEmulatorName;
    void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* error = opened == nullptr ? dlerror() : nullptr;
    TORCH_CHECK(opened != nullptr, "torch_mi350: the emulator could not be loaded: ", error);
    return opened;
  }();
  return handle;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

struct Search {
  const char* stem;
  std::vector<std::string> paths;
};

int collect(dl_phdr_info* info, size_t, void* out) {
  auto& search = *static_cast<Search*>(out);
  const std::string path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  if (base_name(path).rfind(search.stem, 0) == 0) search.paths.push_back(path);
  return 0;
}

}  // namespace

std::vector<std::string> mapped_libraries(const char* stem) {
  Search search{stem, {}};
  dl_iterate_phdr(collect, &search);
  auto& paths = search.paths;
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

const std::string& package_dir() {
  static const std::string dir = [] {
    Dl_info info{};
    TORCH_CHECK(dladdr(reinterpret_cast<const void*>(&package_dir), &info) != 0 && info.dli_fname != nullptr,
                "torch_mi350: the folder of the extension is unknown to the loader");
    const std::string path = info.dli_fname;
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
  }();
  return dir;
}

const Hip& emulator() {
  static const Hip hip = [] {
    Hip table;
    void* handle = emulator_handle();
    const char* missing = fill(table, handle);
    TORCH_CHECK(missing == nullptr, "torch_mi350: ", kEmulatorName, " lacks ", missing);
    table.path = package_dir() + "/" + kEmulatorName;
    return table;
  }();
  return hip;
}

void* emulator_symbol(const char* name) {
  void* symbol = dlsym(emulator_handle(), name);
  TORCH_CHECK(symbol != nullptr, "torch_mi350: ", kEmulatorName, " lacks ", name);
  return symbol;
}

int emulator_attribute(int attribute, int device) {
  using Get = hipError_t (*)(int*, int, int);
  int value = 0;
  const hipError_t code = reinterpret_cast<Get>(emulator_symbol("hipDeviceGetAttribute"))(&value, attribute, device);
  TORCH_CHECK(code == 0, "torch_mi350: ", reinterpret_cast<const char* (*)()>(emulator_symbol("mi350emuLastReport"))());
  return value;
}

const Hip* mapped_runtime(std::string* why) {
  static std::mutex mutex;
  static std::unique_ptr<const Hip> found;
  const auto refuse = [&](std::string sentence) -> const Hip* {
    if (why != nullptr) *why = std::move(sentence);
    return nullptr;
  };
  const std::lock_guard<std::mutex> lock(mutex);
  const std::vector<std::string> paths = mapped_libraries(kRuntimeStem);
  if (paths.empty()) return refuse("no HIP runtime is mapped into this process (torch is not a ROCm build)");
  if (paths.size() > 1) {
    return refuse("two HIP runtimes are mapped into this process (" + paths[0] + " and " + paths[1] +
                  "), and which of them torch uses cannot be told");
  }
  if (found != nullptr && found->path == paths[0]) return found.get();
  void* handle = dlopen(paths[0].c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return refuse("the mapped HIP runtime " + paths[0] + " cannot be opened");
  auto table = std::make_unique<Hip>();
  if (const char* missing = fill(*table, handle)) {
    return refuse("the mapped HIP runtime " + paths[0] + " lacks " + missing);
  }
  table->path = paths[0];
  found = std::move(table);
  return found.get();
}

}  // namespace mi350::runtime
