// The homes, and what decides whether a device of one is served.
#include "route/home.h"

#include <c10/util/Exception.h>

#include "runtime/arch.h"
#include "runtime/find_hip.h"

namespace mi350::route {
namespace {

// The emulated machine: an MI355X, or what TORCH_MI350_EMU_CUS and _XCDS make of it.
Device emulated(int device) {
  constexpr int kMultiprocessorCount = 63, kNumberOfXccs = 10018;
  return Device{runtime::emulator_attribute(kMultiprocessorCount, device),
                runtime::emulator_attribute(kNumberOfXccs, device)};
}

const DeviceFacts* decide(HomeId id, Force force, int device) {
  auto* facts = new DeviceFacts;
  if (force == Force::kFallback) {
    facts->refused = reason_forced();
  } else if (force == Force::kEmulate) {
    facts->planner = emulated(0);
  } else if (id == HomeId::kTest) {
    facts->refused = intern("test installation: every kernel is refused");
  } else if (id == HomeId::kCdna) {
    facts->planner = emulated(device);
  } else {
    const auto& gpus = runtime::process_gpus();
    if (device >= int(gpus.size())) {
      facts->refused = intern("arch unknown");
    } else if (gpus[device].arch != runtime::kServedArch) {
      facts->refused = intern("arch " + gpus[device].arch);
    } else {
      if (gpus[device].cus > 0) facts->planner.cus = gpus[device].cus;
      if (gpus[device].xcds > 0) facts->planner.xcds = gpus[device].xcds;
    }
  }
  return facts;
}

}  // namespace

ReasonId reason_forced() {
  static const ReasonId reason = intern("TORCH_MI350_FORCE=fallback");
  return reason;
}

const DeviceFacts& Home::device_facts(int device) {
  if (device < 0) device = 0;
  if (device >= runtime::kMaxDevices) {
    static const DeviceFacts too_many{
        intern("device index beyond " + std::to_string(runtime::kMaxDevices - 1)), {}};
    return too_many;
  }
  const DeviceFacts* known = facts[device].load(std::memory_order_acquire);
  if (known == nullptr) {
    // Two threads may decide at once and agree; the loser's copy is a few bytes, once.
    known = decide(id, force, device);
    facts[device].store(known, std::memory_order_release);
  }
  return *known;
}

Home& home(HomeId id) {
  static Home homes[kHomes] = {{HomeId::kCdna, c10::DispatchKey::PrivateUse1, c10::DeviceType::PrivateUse1},
                               {HomeId::kCuda, c10::DispatchKey::CUDA, c10::DeviceType::CUDA},
                               {HomeId::kTest, c10::DispatchKey::CPU, c10::DeviceType::CPU}};
  return homes[static_cast<int>(id)];
}

Home& home_of(c10::DispatchKeySet keys) {
  switch (keys.highestPriorityTypeId()) {
    case c10::DispatchKey::PrivateUse1:
      return home(HomeId::kCdna);
    case c10::DispatchKey::CUDA:
      return home(HomeId::kCuda);
    default:
      return home(HomeId::kTest);
  }
}

}  // namespace mi350::route
