// A home is a device type whose tensors we serve: `cuda` by the HIP runtime that torch has mapped, `cdna` by
// the emulator. The CPU home exists for tests: everything is installed there and every call is refused.
#pragma once
#include <array>
#include <atomic>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/DispatchKeySet.h>

#include "plan.h"
#include "route/decision.h"
#include "runtime/module_cache.h"

namespace mi350::route {

enum class HomeId : int { kCdna = 0, kCuda = 1, kTest = 2 };
constexpr int kHomes = 3;

// What is known of one device of a home, decided when a tensor on it first arrives.
struct DeviceFacts {
  ReasonId refused = nullptr;  // "arch gfx942"
  Device planner;
};

// TORCH_MI350_FORCE, for a home whose devices are not gfx950: refuse every call, or run hits in the emulator.
enum class Force : int { kNone = 0, kFallback = 1, kEmulate = 2 };

struct Home {
  HomeId id;
  c10::DispatchKey key;
  c10::DeviceType type;
  std::atomic<bool> installed{false};
  const runtime::Hip* hip = nullptr;
  Force force = Force::kNone;
  std::array<std::atomic<const DeviceFacts*>, runtime::kMaxDevices> facts{};

  Home(HomeId id_, c10::DispatchKey key_, c10::DeviceType type_) : id(id_), key(key_), type(type_) {}
  const DeviceFacts& device_facts(int device);
};

// The reason of every call under Force::kFallback.
ReasonId reason_forced();

Home& home(HomeId id);
// The home whose kernel runs for a call with this key set.
Home& home_of(c10::DispatchKeySet keys);

}  // namespace mi350::route
