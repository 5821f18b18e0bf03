// Tensor factories, views, copies, storage changes, dropout and convolution of cdna. Device memory is host
// addressable and work runs in the call that submits it, so a copy is a CPU copy over CPU views.
#include "cdna/native_ops.h"

#include <chrono>

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>

#include "cdna/allocator.h"
#include "cdna/cpu_storage.h"
#include "cdna/device.h"
#include "cdna/fallback.h"
#include "route/ledger.h"

namespace mi350::cdna {
namespace {

using OptionalType = std::optional<at::ScalarType>;

c10::DeviceIndex factory_device(const char* op, OptionalType, std::optional<at::Layout> layout,
                                std::optional<at::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(at::kStrided) == at::kStrided, op,
                              ": the device cdna holds dense strided tensors only, got layout ", *layout);
  return checked_index(device ? device->index() : -1);
}

void fill_if_deterministic(at::Tensor& t) {
  const auto& context = at::globalContext();
  if (context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory()) {
    at::native::fill_empty_deterministic_(t);
  }
}

at::Tensor empty(at::IntArrayRef size, OptionalType dtype, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pin_memory,
                 std::optional<at::MemoryFormat> format) {
  const auto index = factory_device("empty", dtype, layout, device, pin_memory);
  const c10::DeviceGuard guard(at::Device(kType, index));
  at::Tensor t =
      at::detail::empty_generic(size, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                at::dtype_or_default(dtype), format);
  fill_if_deterministic(t);
  return t;
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, OptionalType dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  const auto index = factory_device("empty_strided", dtype, layout, device, pin_memory);
  const c10::DeviceGuard guard(at::Device(kType, index));
  at::Tensor t = at::detail::empty_strided_generic(size, stride, &allocator(),
                                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                   at::dtype_or_default(dtype));
  fill_if_deterministic(t);
  return t;
}

// What autograd makes of gradients that are known to be 0: sizes and a key, no memory.
at::Tensor efficient_zero_tensor(at::IntArrayRef size, OptionalType dtype, std::optional<at::Layout> layout,
                                 std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const auto index = factory_device("_efficientzerotensor", dtype, layout, device, pin_memory);
  at::native::ZeroTensorAllocator no_memory(at::Device(kType, index));
  const c10::DispatchKeySet keys({c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor});
  return at::detail::empty_generic(size, &no_memory, keys, at::dtype_or_default(dtype), std::nullopt);
}

// Counted as CPU work only when it computes: between two device tensors.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  const bool from_device = self.device().type() == kType, to_device = dst.device().type() == kType;
  TORCH_CHECK((from_device || self.is_cpu()) && (to_device || dst.is_cpu()), "cdna: cannot copy from ",
              self.device(), " to ", dst.device(), " directly: go through the CPU");
  const auto begin = std::chrono::steady_clock::now();
  CpuViews views(to_device ? dst.device().index() : self.device().index());
  const at::Tensor from = from_device ? views.to_cpu(self, false) : self;
  at::Tensor to = to_device ? views.to_cpu(dst, true) : dst;
  at::_ops::copy_::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), to, from, non_blocking);
  if (from_device && to_device) {
    const auto spent = std::chrono::steady_clock::now() - begin;
    route::count_cpu("aten::copy_", static_cast<uint64_t>(
                                        std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count()));
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (dst.sizes() != self.sizes()) at::native::resize_output(dst, self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  CpuViews views(self.device().index());
  return at::native::_local_scalar_dense_cpu(views.to_cpu(self, false));
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size,
                          std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(self.device());
  return at::native::resize_(self, size, format);
}

at::Tensor& set_source_storage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return at::native::set_storage_cpu_(self, std::move(source), 0, elements, {});
}

// Work has finished when the call that submitted it returns: nothing to keep alive.
void record_stream(at::Tensor& self, c10::Stream stream) {
  TORCH_CHECK(stream.device_type() == kType, "record_stream: expected a cdna stream, got one of ",
              stream.device());
}

// The CPU kernel draws from the CPU's default generator and takes no other: drawn here from the device's.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p,
                                                  std::optional<bool> train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (input.numel() == 0 || !train.value_or(true)) {
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  if (p == 1) return {at::zeros_like(input), at::zeros_like(input, input.options().dtype(at::kBool))};
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool)).bernoulli_(1 - p);
  return {input.mul(mask).mul_(1.0 / (1.0 - p)), mask};
}

c10::OperatorHandle handle(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

// On a PrivateUse1 device torch sends every convolution to these two ops, which have no kernel of their own.
void convolution(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  static const c10::OperatorHandle op = handle("aten::convolution", "");
  run_on_cpu(op, stack);
}

// convolution_backward takes bias_sizes after weight; the bias gradient's shape follows from the weight.
void convolution_backward(const c10::OperatorHandle& self, torch::jit::Stack* stack) {
  static const c10::OperatorHandle op = handle("aten::convolution_backward", "");
  const size_t begin = stack->size() - self.schema().arguments().size();
  const auto& args = *stack;
  const at::Tensor& weight = args[begin + 2].toTensor();
  const bool transposed = args[begin + 6].toBool();
  const int64_t groups = args[begin + 8].toInt();
  const int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  const bool has_bias = args[begin + 9].toBoolList().get(2);
  c10::IValue bias_sizes = has_bias ? c10::IValue(std::vector<int64_t>{channels}) : c10::IValue();
  stack->insert(stack->begin() + static_cast<ptrdiff_t>(begin) + 3, std::move(bias_sizes));
  run_on_cpu(op, stack);
}

// Ops for which torch would prefer its generic formula over a fallback: the CPU kernel is faster and gives the
// CPU's bits. conj_physical_ has no generic form that works on an out-of-tree device; that of addr_ resizes self
// where the CPU refuses, that of mode's out form knows torch's own devices only.
constexpr const char* kCpuKernelPreferred[] = {
    "_stack",
    "_stack.out",
    "addr",
    "addr.out",
    "addr_",
    "all.dims",
    "all.dims_out",
    "any.dims",
    "any.dims_out",
    "conj_physical_",
    "linalg__powsum",
    "mish_backward",
    "mode.values",
    "mse_loss",  // and smooth_l1_loss: through their out form torch warns that the reduced output was resized
    "native_channel_shuffle",
    "native_group_norm",
    "native_layer_norm",
    "silu_backward",
    "smooth_l1_loss",
};

bool has_schema(const char* name) {
  const std::string full(name);
  const size_t dot = full.find('.');
  const std::string overload = dot == std::string::npos ? "" : full.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema({"aten::" + full.substr(0, dot), overload}).has_value();
}

// Nested tensors do not exist on cdna; "not left aligned" makes nn.TransformerEncoder keep the padded tensor.
bool nested_tensor_from_mask_left_aligned(const at::Tensor&, const at::Tensor&) { return false; }

}  // namespace

void register_native_ops(torch::Library& m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zero_tensor));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("set_.source_Storage", TORCH_FN(set_source_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(at::native::set_storage_cpu_));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("native_dropout", TORCH_FN(native_dropout));
  m.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(nested_tensor_from_mask_left_aligned));
  for (const char* name : kCpuKernelPreferred) {
    if (has_schema(name)) m.impl(name, torch::CppFunction::makeFromBoxedFunction<&cpu_fallback>());
  }
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable",
         torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

}  // namespace mi350::cdna
