// What the router decides about one call: the kernel that serves it, or an interned reason to leave it alone.
// Reasons and kernels are interned once, so that counting a decision builds no string and takes no lock.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace mi350::route {

constexpr int kMaxOps = 32;

// An interned text with one miss counter per op. Lives until the process ends.
struct ReasonText {
  std::string text;
  std::array<std::atomic<uint64_t>, kMaxOps> misses{};
};
using ReasonId = ReasonText*;

// The one reason with this text. Takes a lock: keep the result where a call may be refused often.
ReasonId intern(const std::string& text);

struct Decision {
  ReasonId refused = nullptr;  // null: served
  int kernel = -1;             // runtime::Kernels id of the kernel that serves the call

  static Decision hit(int kernel) { return {nullptr, kernel}; }
  static Decision miss(ReasonId reason) { return {reason, -1}; }
};

}  // namespace mi350::route
