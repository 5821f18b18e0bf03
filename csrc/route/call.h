// The one wrapper around every aten overload that we serve. For each call it
//   1. steps aside if the op is disabled, every kernel is refused, the device is not ours, or we are inside another call of ours,
//   2. refuses unusual inputs (mixed devices, complex, lazy conj/neg, sparse, output that stock would resize,
//      convert or reject, memory overlap),
//   3. asks the op, which plans, allocates and launches through Call, or gives a reason,
//   4. counts exactly one hit or miss, and on a miss calls the kernel that was there before us.
// An op is a type with
//   static constexpr const char* kInputs[]     names of its tensor inputs in schema order
//   static constexpr int kElementwise          index of the input that may be the output itself, or -1
//   static Decision run(Call&, inputs of the schema without out...)
//   static std::string describe(the same)      the problem, for log lines, errors and explain()
#pragma once
#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include "route/explain.h"
#include "route/home.h"
#include "route/ledger.h"
#include "route/verify.h"
#include "runtime/launch.h"

namespace mi350::route {

// What the wrapper knows about one aten overload. Filled by install, read by calls.
struct Row {
  const char* name;          // "aten::addmm_"
  const char* overload;      // "dtype_out"
  const char* schema;        // "addmm.dtype_out(Tensor self, ..."
  const char* op = nullptr;  // ledger name: "addmm"
  int op_id = -1;
  std::optional<c10::OperatorHandle> handle;
  struct Previous {
    std::optional<c10::SafeKernelFunction> kernel;
    const c10::KernelFunction* unboxed = nullptr;  // the one in `kernel`
    bool serves = false;          // false: nothing there would compute this overload
    bool checks_devices = false;  // false: a fallback that takes tensors of any device
  };
  std::array<Previous, kHomes> previous;
};

constexpr int kMaxInputs = 8;

// One call, as the op sees it.
class Call {
 public:
  Call(const Row& row, Home& where, at::Tensor* out, int elementwise)
      : row_(row), home_(where), out_(out), elementwise_(elementwise), explanation_(explaining()) {}
  Call(const Call&) = delete;

  // Declares the output. Not null: why the caller's out= tensor needs stock's treatment.
  ReasonId declare_output(at::IntArrayRef sizes, at::ScalarType dtype);
  // The output's strides: the caller's, or contiguous ones.
  at::IntArrayRef output_strides() const { return out_strides_; }
  // Bytes; 0 (aligned) where nothing is allocated yet or, in explain(), known.
  uint64_t output_address() const;
  // Allocates the output of a functional form. Not called in explain().
  at::Tensor& output();

  uint64_t address(const at::Tensor& input) const;
  const Device& device() const { return facts_->planner; }
  bool explaining_only() const { return explanation_ != nullptr; }
  Explanation* explanation() const { return explanation_; }
  const char* op() const { return row_.op; }
  int op_id() const { return row_.op_id; }

  // Not null: the kernel cannot be used now (first use while a graph is captured). Loads it otherwise.
  ReasonId prepare(int kernel);
  // Launches on the current stream of the output's device; raises RuntimeError if HIP refuses.
  void launch(int kernel, const Launch& shape, const void* args, size_t size);
  // Nothing to compute: the output has no element.
  Decision answer_empty();

 private:
  template <class AtenOp, class Op, class Schema>
  friend struct Routed;

  ReasonId check_inputs();
  ReasonId check_emulated(const at::Tensor& t) const;
  ReasonId prepare_emulated(const c10::impl::DeviceGuardImplInterface& guard, c10::Stream stream);
  bool overlaps_output(const at::Tensor& input, bool elementwise) const;
  std::string problem() const { return describe_ ? (*describe_)() : std::string(); }

  const Row& row_;
  Home& home_;
  at::Tensor* out_;  // the caller's, or null
  int elementwise_;
  Explanation* explanation_;
  at::Tensor made_;  // functional forms: the result
  std::array<const at::Tensor*, kMaxInputs> inputs_{};
  int input_count_ = 0;
  const DeviceFacts* facts_ = nullptr;
  runtime::Target target_{};
  c10::SmallVector<int64_t, 4> out_sizes_, out_strides_;
  at::ScalarType out_dtype_ = at::ScalarType::Undefined;
  const c10::function_ref<std::string()>* describe_ = nullptr;
  std::unique_ptr<Verification> verification_;  // TORCH_MI350_VERIFY: this call is one to check
};

// True while this thread runs a previous kernel on behalf of a call that is already counted.
bool nested();
class PreviousScope {
 public:
  PreviousScope();
  ~PreviousScope();
  PreviousScope(const PreviousScope&) = delete;
};

// Why a call is refused whatever its arguments, or null. Null too where somebody wants to see the call: the
// long way explains and logs it, and refuses it for the same reason.
ReasonId quick_refusal(const Row& row, const Home& where);

// Runs the previous kernel with `stack`, not counting what it calls.
void call_previous(const Row& row, Home& where, c10::DispatchKeySet keys, torch::jit::Stack& stack);

// There is no previous kernel: NotImplementedError naming op, problem and reason.
[[noreturn]] void raise_not_served(const Row& row, const Home& where, const std::string& problem,
                                   ReasonId reason);

// On a home whose previous kernel would take any mix of devices: stock's error for a mix.
void check_devices(const Row& row, const Home& where, const at::Tensor* const* tensors,
                   const char* const* names, int count);

ReasonId reason_disabled();

template <class AtenOp, class Op, class Schema = typename AtenOp::schema>
struct Routed;

template <class AtenOp, class Op, class R, class... A>
struct Routed<AtenOp, Op, R(A...)> {
  static constexpr size_t kArity = sizeof...(A);
  using First = std::tuple_element_t<0, std::tuple<A...>>;
  using Last = std::tuple_element_t<kArity - 1, std::tuple<A...>>;
  static constexpr bool kInPlace = std::is_same_v<First, at::Tensor&>;
  static constexpr bool kOut = !kInPlace && std::is_same_v<Last, at::Tensor&>;
  static constexpr size_t kInputArgs = kOut ? kArity - 1 : kArity;

  static inline Row row{
      AtenOp::name, AtenOp::overload_name, AtenOp::schema_str, nullptr, -1, std::nullopt, {}};

  static R kernel(c10::DispatchKeySet keys, A... args) {
    Home& where = home_of(keys);
    auto all = std::forward_as_tuple(args...);
    ReasonId reason = nullptr;
    if (!nested()) reason = quick_refusal(row, where);
    if (reason != nullptr) {
      count_miss(row.op_id, reason);
    } else if (!nested()) {
      Call call(row, where, out_of(all), Op::kElementwise);
      const Decision decision = decide(call, all, std::make_index_sequence<kInputArgs>());
      if (call.explaining_only()) return answer<R>(call, all);
      if (decision.refused == nullptr) {
        count_hit(op_state(row.op_id), decision.kernel);
        if (call.verification_ != nullptr) [[unlikely]] verify(call, where, keys, all);
        return answer<R>(call, all);
      }
      count_miss(row.op_id, decision.refused);
      reason = decision.refused;
    }
    const auto& previous = row.previous[static_cast<int>(where.id)];
    if (!previous.checks_devices) check_call_devices(where, all, std::make_index_sequence<kInputArgs>());
    if (!previous.serves) {
      raise_not_served(row, where, describe(all, std::make_index_sequence<kInputArgs>()), reason);
    }
    const PreviousScope scope;
    return previous.unboxed->template call<R, A...>(*row.handle, keys, std::forward<A>(args)...);
  }

 private:
  template <class Tuple>
  static at::Tensor* out_of(Tuple& all) {
    if constexpr (kInPlace) return &std::get<0>(all);
    else if constexpr (kOut) return &std::get<kArity - 1>(all);
    else return nullptr;
  }

  template <class Tuple, size_t... I>
  static std::string describe(Tuple& all, std::index_sequence<I...>) {
    return Op::describe(std::as_const(std::get<I>(all))...);
  }

  template <class Tuple, size_t... I>
  static Decision decide(Call& call, Tuple& all, std::index_sequence<I...>) {
    (note_input(call, std::get<I>(all)), ...);
    const auto describe_inputs = [&] { return describe(all, std::index_sequence<I...>()); };
    const c10::function_ref<std::string()> describe_ref(describe_inputs);
    call.describe_ = &describe_ref;
    Decision decision;
    if (!op_state(row.op_id).on()) decision = Decision::miss(reason_disabled());
    else if (ReasonId reason = call.check_inputs()) decision = Decision::miss(reason);
    else {
      const c10::OptionalDeviceGuard guard(call.explaining_only() ? std::nullopt
                                                                  : std::optional(call.inputs_[0]->device()));
      decision = Op::run(call, std::as_const(std::get<I>(all))...);
    }
    if (call.explaining_only()) call.explanation()->settle(row.op, describe_inputs(), decision);
    else if (logs(log_mode(), decision.refused == nullptr)) log_line(row.op, describe_inputs(), decision);
    call.describe_ = nullptr;
    return decision;
  }

  template <class T>
  static void note_input(Call& call, const T& value) {
    if constexpr (std::is_same_v<T, at::Tensor>) call.inputs_[call.input_count_++] = &value;
  }

  template <class Result, class Tuple>
  static Result answer(Call& call, Tuple& all) {
    if constexpr (std::is_reference_v<Result>) return *out_of(all);
    else return std::move(call.made_);
  }

  template <class Tuple, size_t... I>
  static torch::jit::Stack boxed(Tuple& all, std::index_sequence<I...>) {
    torch::jit::Stack stack;
    stack.reserve(kArity);
    (stack.emplace_back(std::get<I>(all)), ...);
    return stack;
  }

  template <class Tuple>
  static void verify(Call& call, Home& where, c10::DispatchKeySet keys, Tuple& all) {
    const at::Tensor* out = out_of(all);
    call.verification_->finish(row, where, keys, boxed(all, std::make_index_sequence<kArity>()),
                               out != nullptr ? *out : call.made_);
  }

  template <class Tuple, size_t... I>
  static void check_call_devices(Home& where, Tuple& all, std::index_sequence<I...>) {
    std::array<const at::Tensor*, kMaxInputs> tensors{};
    std::array<const char*, kMaxInputs> names{};
    int count = 0;
    if constexpr (kOut) {
      tensors[count] = &std::get<kArity - 1>(all);
      names[count++] = "out";
    }
    int named = 0;
    const auto add = [&](const auto& value) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, at::Tensor>) {
        tensors[count] = &value;
        names[count++] = Op::kInputs[named++];
      }
    };
    (add(std::get<I>(all)), ...);
    check_devices(row, where, tensors.data(), names.data(), count);
  }
};

}  // namespace mi350::route
