// The parts of the wrapper that do not depend on an op's signature.
#include "route/call.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/ops/empty_ops.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "runtime/pinned.h"

namespace mi350::route {
namespace {

thread_local int previous_depth = 0;

const c10::DispatchKeySet kLazyBits({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                     c10::DispatchKey::ZeroTensor});

// Where a tensor's elements lie. Without memory (explain on fake tensors) positions count from the storage.
struct Span {
  const void* base;
  uint64_t begin, end;  // bytes
};

uint64_t storage_position(const at::Tensor& t) { return uint64_t(t.storage_offset()) * t.element_size(); }

Span span_of(const at::Tensor& t, bool fake) {
  int64_t low = 0, high = 1;
  for (int64_t d = 0; d < t.dim(); ++d) {
    const int64_t reach = (t.size(d) - 1) * t.stride(d);
    (reach < 0 ? low : high) += reach;
  }
  const void* base = fake ? t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() : nullptr;
  const uint64_t at = fake ? storage_position(t) : reinterpret_cast<uint64_t>(t.const_data_ptr());
  return {base, at + low * t.element_size(), at + high * t.element_size()};
}

// True if the strides keep all elements apart: each dimension steps over all that lies inside it.
bool keeps_apart(const at::Tensor& t) {
  c10::SmallVector<std::pair<int64_t, int64_t>, 4> dims;  // stride, size
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.size(d) > 1) dims.emplace_back(t.stride(d), t.size(d));
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

bool has_no_element(at::IntArrayRef sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size == 0; });
}

// Static reasons, interned once.
#define MI350_REASON(function, text)             \
  ReasonId function() {                          \
    static const ReasonId reason = intern(text); \
    return reason;                               \
  }
MI350_REASON(reason_devices, "tensors on different devices")
MI350_REASON(reason_complex, "complex dtype")
MI350_REASON(reason_lazy, "lazy conjugate or negative view")
MI350_REASON(reason_layout, "not a strided tensor")
MI350_REASON(reason_undefined, "undefined tensor")
MI350_REASON(reason_out_dtype, "out has another dtype than the result")
MI350_REASON(reason_out_shape, "out has another shape than the result")
MI350_REASON(reason_out_self, "elements of out may share memory")
MI350_REASON(reason_out_overlap, "out shares memory with an input")
MI350_REASON(reason_capture, "first use of the kernel during graph capture")
MI350_REASON(reason_nested, "called by another op's stock kernel")
MI350_REASON(reason_emulated_capture, "graph capture (TORCH_MI350_FORCE=emulate runs kernels on the host)")
MI350_REASON(reason_unpinned,
             "not in pinned memory: TORCH_MI350_FORCE=emulate needs "
             "torch_mi350.testing.pinned.use_pinned_allocator() before the first cuda tensor")

}  // namespace

MI350_REASON(reason_disabled, "disabled")
#undef MI350_REASON

bool nested() { return previous_depth > 0; }
PreviousScope::PreviousScope() { ++previous_depth; }
PreviousScope::~PreviousScope() { --previous_depth; }

ReasonId quick_refusal(const Row& row, const Home& where) {
  const bool off = !op_state(row.op_id).on();
  if (!off && where.force != Force::kFallback) return nullptr;
  if (explaining() != nullptr || log_mode() != Log::kOff) return nullptr;
  return off ? reason_disabled() : reason_forced();
}

ReasonId Call::check_emulated(const at::Tensor& t) const {
  if (explaining_only() || t.numel() == 0 || runtime::is_pinned(t.const_data_ptr())) return nullptr;
  TORCH_WARN_ONCE("torch_mi350: ", row_.op, " was left to stock: ", reason_unpinned()->text);
  return reason_unpinned();
}

ReasonId Call::check_inputs() {
  const at::Tensor& first = *inputs_[0];
  if (!first.defined()) return reason_undefined();
  const c10::Device device = first.device();
  if (device.type() != home_.type) return reason_devices();
  const auto check = [&](const at::Tensor& t) -> ReasonId {
    if (!t.defined()) return reason_undefined();
    if (t.device() != device) return reason_devices();
    if (t.key_set().has_any(kLazyBits)) return reason_lazy();
    if (t.is_complex()) return reason_complex();
    if (t.layout() != at::kStrided) return reason_layout();
    return nullptr;
  };
  for (int i = 0; i < input_count_; ++i) {
    if (ReasonId reason = check(*inputs_[i])) return reason;
  }
  if (out_ != nullptr && out_ != inputs_[0]) {
    if (ReasonId reason = check(*out_)) return reason;
  }
  facts_ = &home_.device_facts(device.index());
  if (facts_->refused != nullptr) return facts_->refused;
  if (home_.force == Force::kEmulate) {
    for (int i = 0; i < input_count_; ++i) {
      if (ReasonId reason = check_emulated(*inputs_[i])) return reason;
    }
    if (out_ != nullptr && out_ != inputs_[0]) {
      if (ReasonId reason = check_emulated(*out_)) return reason;
    }
  }
  target_.key = {home_.hip, static_cast<int>(home_.id), device.index() < 0 ? 0 : int(device.index())};
  return nullptr;
}

bool Call::overlaps_output(const at::Tensor& input, bool elementwise) const {
  if (input.numel() == 0) return false;
  const Span a = span_of(input, explaining_only()), d = span_of(*out_, explaining_only());
  if (a.base != d.base || a.end <= d.begin || d.end <= a.begin) return false;
  const bool same =
      a.begin == d.begin && input.sizes() == out_->sizes() && input.strides() == out_->strides();
  return !(elementwise && same);
}

ReasonId Call::declare_output(at::IntArrayRef sizes, at::ScalarType dtype) {
  out_sizes_.assign(sizes.begin(), sizes.end());
  out_dtype_ = dtype;
  if (out_ == nullptr) {
    out_strides_.resize(sizes.size());
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      out_strides_[d] = stride;
      stride *= std::max<int64_t>(sizes[d], 1);
    }
    return nullptr;
  }
  if (out_->scalar_type() != dtype) return reason_out_dtype();
  if (out_->sizes() != sizes) return reason_out_shape();
  out_strides_.assign(out_->strides().begin(), out_->strides().end());
  if (has_no_element(sizes)) return nullptr;
  if (!keeps_apart(*out_)) return reason_out_self();
  for (int i = 0; i < input_count_; ++i) {
    if (inputs_[i] != out_ && overlaps_output(*inputs_[i], i == elementwise_)) return reason_out_overlap();
  }
  return nullptr;
}

uint64_t Call::address(const at::Tensor& input) const {
  return explaining_only() ? storage_position(input) : reinterpret_cast<uint64_t>(input.const_data_ptr());
}

uint64_t Call::output_address() const {
  if (out_ != nullptr)
    return explaining_only() ? storage_position(*out_) : reinterpret_cast<uint64_t>(out_->mutable_data_ptr());
  return made_.defined() ? reinterpret_cast<uint64_t>(made_.mutable_data_ptr()) : 0;
}

at::Tensor& Call::output() {
  if (out_ != nullptr) return *out_;
  if (made_.defined()) return made_;
  if (home_.id == HomeId::kCdna) {
    made_ = at::detail::empty_generic(out_sizes_, c10::GetAllocator(home_.type),
                                      c10::DispatchKeySet(home_.key), out_dtype_, std::nullopt);
  } else {
    // c10::GetAllocator(CUDA) would not see a pluggable allocator; the key's own kernel does.
    const c10::Device device(home_.type, static_cast<c10::DeviceIndex>(target_.key.device));
    made_ = at::_ops::empty_memory_format::redispatch(
        c10::DispatchKeySet(home_.key), c10::fromIntArrayRefSlow(out_sizes_), out_dtype_, std::nullopt, device,
        std::nullopt, std::nullopt);
  }
  return made_;
}

ReasonId Call::prepare(int kernel) {
  const auto* guard = c10::impl::getDeviceGuardImpl(home_.type);
  const c10::Device device(home_.type, static_cast<c10::DeviceIndex>(target_.key.device));
  const c10::Stream stream = guard->getStream(device);
  if (home_.force == Force::kEmulate) return prepare_emulated(*guard, stream);
  target_.stream = guard->getStreamNativeHandle(stream);
  if (runtime::loaded_function(target_.key, kernel) != nullptr) return nullptr;
  if (runtime::is_capturing(target_)) return reason_capture();
  runtime::load_function(target_.key, kernel);
  return nullptr;
}

// An emulated kernel runs on the host, after all that the current stream holds: streams, events that it waits
// for, backward threads and other devices keep their order.
ReasonId Call::prepare_emulated(const c10::impl::DeviceGuardImplInterface& guard, c10::Stream stream) {
  target_.stream = nullptr;
  if (stream.device_type() != c10::DeviceType::CPU) {
    if (runtime::gpu_stream_captures(guard.getStreamNativeHandle(stream))) return reason_emulated_capture();
  }
  if (out_ == nullptr) {
    if (ReasonId reason = check_emulated(output())) return reason;
  }
  guard.synchronizeStream(stream);
  return nullptr;
}

void Call::launch(int kernel, const Launch& shape, const void* args, size_t size) {
  if (verify_armed() && verification_ == nullptr && !runtime::is_capturing(target_) && verify_due(row_.op_id))
      [[unlikely]] {
    verification_ = Verification::begin(row_, kernel, shape, out_, problem());
  }
  const runtime::hipError_t error = runtime::launch(target_, kernel, shape, args, size);
  if (error != 0) runtime::raise_launch_error(target_, error, kernel, row_.op, problem());
}

Decision Call::answer_empty() {
  static const runtime::KernelName kNone{"no kernel (empty output)", nullptr};
  static const int kernel = runtime::add_kernels(&kNone, 1);
  if (!explaining_only()) output();
  return Decision::hit(kernel);
}

void call_previous(const Row& row, Home& where, c10::DispatchKeySet keys, torch::jit::Stack& stack) {
  const PreviousScope scope;
  row.previous[static_cast<int>(where.id)].kernel->callBoxed(*row.handle, keys, &stack);
}

void raise_not_served(const Row& row, const Home& where, const std::string& problem, ReasonId reason) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, row.op, ": ", row.name, *row.overload != '\0' ? "." : "", row.overload,
                              " has no other kernel for device type '", c10::DeviceTypeName(where.type, true),
                              "', and ours does not serve ", problem, ": ",
                              (reason != nullptr ? reason : reason_nested())->text);
}

void check_devices(const Row& row, const Home& where, const at::Tensor* const* tensors,
                   const char* const* names, int count) {
  if (row.previous[static_cast<int>(where.id)].checks_devices) return;
  std::optional<c10::Device> common;
  for (int i = 0; i < count; ++i) {
    if (!tensors[i]->defined()) continue;
    if (!common.has_value()) common = tensors[i]->device();
    if (*common == tensors[i]->device()) continue;
    const std::string overload = row.overload;
    std::string method = std::string("wrapper_") + c10::toString(where.key) + "_" + (row.name + 6);
    if (overload.size() >= 3 && overload.compare(overload.size() - 3, 3, "out") == 0) method += "_out";
    if (!overload.empty()) method += "_" + overload;
    c10::impl::common_device_check_failure(*common, *tensors[i], method.c_str(), names[i]);
  }
}

}  // namespace mi350::route
