// Which GPUs the driver knows, read from its sysfs topology: no HIP call, no context. Decides per device.
#pragma once
#include <string>
#include <vector>

#include "plan.h"

namespace mi350::runtime {

inline const char kServedArch[] = "gfx950";

struct Gpu {
  std::string arch;  // "gfx950"
  int cus = 0, xcds = 0;
  std::string unique_id;  // as in ROCR_VISIBLE_DEVICES after "GPU-", empty if the driver gives none
};

// The driver's topology folder, or TORCH_MI350_TOPOLOGY.
std::string topology_root();

// GPUs under `root`/<node>/properties in node order: nodes without a GPU are skipped. Empty if unreadable.
std::vector<Gpu> read_topology(const std::string& root);

// `gpus` as a process sees them that has this *_VISIBLE_DEVICES list: "2,0" or "GPU-<unique id>"; an entry
// that names no GPU ends the list, as in HIP.
std::vector<Gpu> visible_gpus(const std::vector<Gpu>& gpus, const std::string& list);

// read_topology(topology_root()) after ROCR_VISIBLE_DEVICES and then HIP_/CUDA_VISIBLE_DEVICES.
// Read once per process.
const std::vector<Gpu>& process_gpus();

// Why no GPU of the list can be served, "" if one can: "found gfx942, needs gfx950 (MI350X/MI355X)".
std::string why_none(const std::vector<Gpu>& gpus);

}  // namespace mi350::runtime
