// Reads the properties files of the KFD topology. A line is "name value"; gfx_target_version is
// major * 10000 + minor * 100 + stepping, so gfx950 is 90500 and gfx90a is 90010.
#include "runtime/arch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace mi350::runtime {
namespace {

const char kDriverTopology[] = "/sys/class/kfd/kfd/topology/nodes";

std::string arch_name(uint64_t version) {
  char text[32];
  std::snprintf(text, sizeof text, "gfx%d%d%x", int(version / 10000), int(version / 100 % 100),
                int(version % 100));
  return text;
}

std::map<std::string, uint64_t> read_properties(const std::filesystem::path& path) {
  std::map<std::string, uint64_t> values;
  std::ifstream file(path);
  std::string name;
  uint64_t value = 0;
  while (file >> name >> value) values[name] = value;
  return values;
}

std::string hex(uint64_t value) {
  std::ostringstream text;
  text << std::hex << value;
  return text.str();
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
}

const Gpu* named_gpu(const std::vector<Gpu>& gpus, const std::string& name) {
  if (is_number(name)) {
    const size_t index = std::strtoull(name.c_str(), nullptr, 10);
    return index < gpus.size() ? &gpus[index] : nullptr;
  }
  for (const Gpu& gpu : gpus) {
    if (!gpu.unique_id.empty() && name == "GPU-" + gpu.unique_id) return &gpu;
  }
  return nullptr;
}

}  // namespace

std::string topology_root() {
  const char* root = std::getenv("TORCH_MI350_TOPOLOGY");
  return root != nullptr && *root != '\0' ? root : kDriverTopology;
}

std::vector<Gpu> read_topology(const std::string& root) {
  std::error_code error;
  std::vector<std::pair<int, std::filesystem::path>> nodes;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    if (is_number(name)) nodes.emplace_back(std::atoi(name.c_str()), entry.path());
  }
  std::sort(nodes.begin(), nodes.end());
  std::vector<Gpu> gpus;
  for (const auto& [number, path] : nodes) {
    auto values = read_properties(path / "properties");
    const uint64_t version = values["gfx_target_version"];
    if (version == 0) continue;
    Gpu gpu;
    gpu.arch = arch_name(version);
    const uint64_t simd_per_cu = values["simd_per_cu"];
    gpu.cus = simd_per_cu == 0 ? 0 : int(values["simd_count"] / simd_per_cu);
    gpu.xcds = int(values["num_xcc"]);
    if (const uint64_t id = values["unique_id"]) gpu.unique_id = hex(id);
    gpus.push_back(gpu);
  }
  return gpus;
}

std::vector<Gpu> visible_gpus(const std::vector<Gpu>& gpus, const std::string& list) {
  std::vector<Gpu> visible;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
    const Gpu* gpu = named_gpu(gpus, name);
    if (gpu == nullptr) break;
    visible.push_back(*gpu);
  }
  return visible;
}

const std::vector<Gpu>& process_gpus() {
  static const std::vector<Gpu> gpus = [] {
    std::vector<Gpu> seen = read_topology(topology_root());
    if (const char* list = std::getenv("ROCR_VISIBLE_DEVICES")) seen = visible_gpus(seen, list);
    const char* list = std::getenv("HIP_VISIBLE_DEVICES");
    if (list == nullptr) list = std::getenv("CUDA_VISIBLE_DEVICES");
    if (list != nullptr) seen = visible_gpus(seen, list);
    return seen;
  }();
  return gpus;
}

std::string why_none(const std::vector<Gpu>& gpus) {
  if (gpus.empty()) return "no AMD GPU is visible to the driver";
  std::set<std::string> others;
  for (const Gpu& gpu : gpus) {
    if (gpu.arch == kServedArch) return "";
    others.insert(gpu.arch);
  }
  std::string found;
  for (const std::string& arch : others) found += (found.empty() ? "" : ", ") + arch;
  return "found " + found + ", needs gfx950 (MI350X/MI355X)";
}

}  // namespace mi350::runtime
