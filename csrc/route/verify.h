// TORCH_MI350_VERIFY: each n-th hit of an op that launches a kernel also runs the previous kernel on the same
// inputs and hands both results to Python (_verify.py), which compares them by the numerics policy.
//   begin    before the launch: counts the hit, copies what the call is about to write
//   finish   after it: runs the previous kernel on the inputs as they were, calls Python
// Nothing that happens here reaches the caller. Off, all of it costs one relaxed load per launch.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKeySet.h>

#include "plan.h"

namespace pybind11 {
class module_;
}

namespace mi350::route {

struct Row;
struct Home;

extern std::atomic<bool> verify_armed_flag;
inline bool verify_armed() { return verify_armed_flag.load(std::memory_order_relaxed); }

// Counts a hit of the op; true if it is one to verify. Never inside a verification.
bool verify_due(int op);

class Verification {
 public:
  // `written`: the tensor that the launch writes and that existed before the call, or null.
  // Null: the copy could not be made (a warning says why).
  static std::unique_ptr<Verification> begin(const Row& row, int kernel, const Launch& shape,
                                             const at::Tensor* written, std::string problem);
  // `args`: all arguments of the overload; `ours`: what the kernel wrote.
  void finish(const Row& row, Home& where, c10::DispatchKeySet keys, torch::jit::Stack args,
              const at::Tensor& ours) noexcept;

 private:
  Verification(int kernel, const Launch& shape, std::string problem)
      : kernel_(kernel), shape_(shape), problem_(std::move(problem)) {}

  int kernel_;
  Launch shape_;
  std::string problem_;
  at::Tensor before_;  // the written tensor's elements and strides before the launch
};

// set_verify(op, every_n) and set_verify_callback(function) for _verify.py.
void bind_verify(pybind11::module_& m);

}  // namespace mi350::route
