// The CPU fallback. Facts of an op are read from its schema once (OpFacts); a call then
//   1. finds the device: of the tensors, else of the device argument, else the current one;
//   2. refuses mixed devices as stock does (a 0-dim CPU tensor may stand for a number, except as an output);
//   3. swaps tensors for CPU views, device arguments for cpu, generators for the CPU generator inside;
//   4. runs the CPU kernel with its allocations in device memory;
//   5. writes geometry and bytes back and turns results into device tensors.
#include "cdna/fallback.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/List.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/op_registration/adaption.h>

#include "cdna/allocator.h"
#include "cdna/device.h"
#include "cdna/generator.h"
#include "route/ledger.h"

namespace mi350::cdna {
namespace {

enum class ArgKind : uint8_t { kTensor, kList, kDevice, kGenerator };

struct ArgFacts {
  uint16_t position;
  ArgKind kind;
  bool written;      // the schema marks it as mutated
  bool cpu_allowed;  // stock reads this argument from the CPU
  std::string name;
};

struct OpFacts {
  std::string name;  // aten::add.out
  size_t arity;
  bool pointwise;  // stock's kernel is a TensorIterator's, which words its refusals itself
  std::vector<ArgFacts> args;
};

// Arguments that CUDA kernels accept as CPU tensors of any size.
bool accepts_cpu(const std::string& op, const std::string& arg) {
  if (arg == "indices") return op.find("index") != std::string::npos;
  if (op.rfind("aten::_ctc_loss", 0) == 0) return arg == "input_lengths" || arg == "target_lengths";
  if (op.rfind("aten::_pack_padded_sequence", 0) == 0) return arg == "lengths" || arg == "batch_sizes";
  return false;
}

bool kind_of(const c10::Argument& arg, ArgKind* kind) {
  c10::TypePtr type = arg.type();
  if (type->kind() == c10::TypeKind::OptionalType)
    type = type->expectRef<c10::OptionalType>().getElementType();
  switch (type->kind()) {
    case c10::TypeKind::TensorType: *kind = ArgKind::kTensor; return true;
    case c10::TypeKind::DeviceObjType: *kind = ArgKind::kDevice; return true;
    case c10::TypeKind::GeneratorType: *kind = ArgKind::kGenerator; return true;
    case c10::TypeKind::ListType: {
      c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
      if (element->kind() == c10::TypeKind::OptionalType) {
        element = element->expectRef<c10::OptionalType>().getElementType();
      }
      *kind = ArgKind::kList;
      return element->kind() == c10::TypeKind::TensorType;
    }
    default: return false;
  }
}

OpFacts read_facts(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  OpFacts facts{c10::toString(op.operator_name()), schema.arguments().size(),
                op.hasTag(at::Tag::pointwise), {}};
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& arg = schema.arguments()[i];
    ArgKind kind{};
    if (!kind_of(arg, &kind)) continue;
    const bool written = arg.alias_info() != nullptr && arg.alias_info()->isWrite();
    facts.args.push_back(
        {static_cast<uint16_t>(i), kind, written, !written && accepts_cpu(facts.name, arg.name()), arg.name()});
  }
  return facts;
}

bool describes(const OpFacts& facts, const c10::FunctionSchema& schema) {
  const std::string& overload = schema.overload_name();
  return facts.arity == schema.arguments().size() && facts.name.starts_with(schema.name()) &&
         facts.name.ends_with(overload) &&
         facts.name.size() == schema.name().size() + (overload.empty() ? 0 : overload.size() + 1);
}

// By address of the schema. A library that goes away may leave its address to another schema, so what is found is
// compared. Entries are never freed: the ledger keeps their names.
const OpFacts& facts_of(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<const c10::FunctionSchema*, const OpFacts*> seen;
  const c10::FunctionSchema& schema = op.schema();
  const OpFacts*& entry = seen[&schema];
  if (entry != nullptr && describes(*entry, schema)) return *entry;
  static std::mutex mutex;
  static auto* const all = new std::unordered_map<std::string, std::unique_ptr<const OpFacts>>;
  const std::lock_guard lock(mutex);
  auto& owned = (*all)[c10::toString(schema)];
  if (owned == nullptr) owned = std::make_unique<const OpFacts>(read_facts(op));
  entry = owned.get();
  return *entry;
}

template <class F>
void each_tensor(const c10::IValue& value, ArgKind kind, F f) {
  if (kind == ArgKind::kTensor) {
    if (value.isTensor() && value.toTensor().defined()) f(value.toTensor());
  } else if (kind == ArgKind::kList && value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor() && item.toTensor().defined()) f(item.toTensor());
    }
  }
}

struct Placement {
  c10::DeviceIndex device = -1;
  bool tensors = false;         // a cdna tensor is among the arguments
  bool results_on_cpu = false;  // the call asks for the CPU
};

// In stock's words.
[[noreturn]] void mixed_devices(const OpFacts& facts, const ArgFacts& arg, c10::DeviceIndex first,
                                const at::Tensor& t) {
  const c10::Device common(kType, first);
  TORCH_CHECK(!facts.pointwise, "Expected all tensors to be on the same device, but found at least two devices, ",
              common, " and ", t.device(), "!");
  c10::impl::common_device_check_failure(common, t, facts.name.c_str(), arg.name.c_str());
  throw;  // not reached
}

// A cdna generator alone brings a call on CPU tensors here.
void refuse_foreign_generator(const OpFacts& facts, c10::ArrayRef<c10::IValue> args, const Placement& p) {
  if (p.tensors) return;
  bool cpu_tensors = false, generator = false;
  for (const ArgFacts& arg : facts.args) {
    each_tensor(args[arg.position], arg.kind, [&](const at::Tensor&) { cpu_tensors = true; });
    generator |= arg.kind == ArgKind::kGenerator && args[arg.position].isGenerator();
  }
  TORCH_CHECK(!(cpu_tensors && generator), "Expected a 'cpu' device type for generator but found 'cdna'");
}

Placement place(const OpFacts& facts, c10::ArrayRef<c10::IValue> args) {
  Placement p;
  for (const ArgFacts& arg : facts.args) {
    each_tensor(args[arg.position], arg.kind, [&](const at::Tensor& t) {
      if (t.device().type() != kType) return;
      if (p.tensors && t.device().index() != p.device)
        mixed_devices(facts, arg, p.device, t);
      p.tensors = true;
      p.device = t.device().index();
    });
  }
  for (const ArgFacts& arg : facts.args) {
    const c10::IValue& value = args[arg.position];
    if (arg.kind == ArgKind::kDevice && value.isDevice()) {
      if (value.toDevice().type() == kType) {
        p.device = checked_index(value.toDevice().index());
      } else {
        p.results_on_cpu = value.toDevice().is_cpu();
      }
    } else if (arg.kind == ArgKind::kGenerator && value.isGenerator() && p.device == -1 &&
               value.toGenerator().device().type() == kType) {
      p.device = value.toGenerator().device().index();
    }
  }
  refuse_foreign_generator(facts, args, p);
  if (p.device == -1) p.device = current_device();
  return p;
}

at::Tensor view_on_cpu(const OpFacts& facts, const ArgFacts& arg, const Placement& p, CpuViews& views,
                       const at::Tensor& t) {
  if (!t.defined()) return t;
  if (t.device().type() == kType) {
    TORCH_CHECK_NOT_IMPLEMENTED(t.layout() == c10::kStrided && t.has_storage(), facts.name,
                                ": the device cdna holds dense strided tensors only, got layout ",
                                t.layout());
    return views.to_cpu(t, arg.written);
  }
  const bool number = t.dim() == 0 && t.device().is_cpu() && !arg.written;
  if (p.tensors && !number && !(arg.cpu_allowed && t.device().is_cpu())) {
    mixed_devices(facts, arg, p.device, t);
  }
  return t;
}

c10::IValue list_on_cpu(const OpFacts& facts, const ArgFacts& arg, const Placement& p, CpuViews& views,
                        const c10::IValue& value) {
  if (value.isTensorList()) {
    c10::List<at::Tensor> out;
    out.reserve(value.toListRef().size());
    for (const c10::IValue& item : value.toListRef())
      out.push_back(view_on_cpu(facts, arg, p, views, item.toTensor()));
    return out;
  }
  c10::List<std::optional<at::Tensor>> out;
  out.reserve(value.toListRef().size());
  for (const c10::IValue& item : value.toListRef()) {
    if (item.isNone()) {
      out.push_back(std::nullopt);
    } else {
      out.push_back(view_on_cpu(facts, arg, p, views, item.toTensor()));
    }
  }
  return out;
}

void to_cpu_arguments(const OpFacts& facts, const Placement& p, CpuViews& views, torch::jit::Stack& stack,
                      size_t begin) {
  for (const ArgFacts& arg : facts.args) {
    c10::IValue& value = stack[begin + arg.position];
    switch (arg.kind) {
      case ArgKind::kTensor:
        if (value.isTensor()) value = view_on_cpu(facts, arg, p, views, value.toTensor());
        break;
      case ArgKind::kList:
        if (value.isList()) value = list_on_cpu(facts, arg, p, views, value);
        break;
      case ArgKind::kDevice:
        if (value.isDevice() && value.toDevice().type() == kType) value = c10::Device(c10::kCPU);
        break;
      case ArgKind::kGenerator:
        value = cpu_generator(value.isGenerator() ? value.toGenerator() : default_generator(p.device));
        break;
    }
  }
}

void to_device_results(const OpFacts& facts, CpuViews& views, torch::jit::Stack& stack, size_t begin) {
  for (size_t i = begin; i < stack.size(); ++i) {
    c10::IValue& value = stack[i];
    if (value.isTensor()) {
      value = views.to_device(value.toTensor(), facts.name.c_str());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> out;
      for (const c10::IValue& item : value.toListRef()) {
        out.push_back(views.to_device(item.toTensor(), facts.name.c_str()));
      }
      value = out;
    }
  }
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const uint64_t begin_ns = now_ns();
  const OpFacts& facts = facts_of(op);
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU), facts.name,
      " is not available on cdna: no MI350 kernel of this package serves it and torch has no "
      "CPU kernel to fall back on");
  const size_t begin = stack->size() - op.schema().arguments().size();
  const Placement p = place(facts, c10::ArrayRef<c10::IValue>(stack->data() + begin, stack->size() - begin));
  CpuViews views(p.device);
  to_cpu_arguments(facts, p, views, *stack, begin);
  {
    const HostedAllocations hosted(p.device);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  views.write_back();
  if (!p.results_on_cpu) to_device_results(facts, views, *stack, begin);
  route::count_cpu(facts.name.c_str(), now_ns() - begin_ns);
}

void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) { run_on_cpu(op, stack); }

void refuse_layout(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, c10::toString(op.operator_name()),
      " is not available on cdna: the device holds dense strided tensors only (no sparse, "
      "quantized or nested ones)");
}

}  // namespace mi350::cdna
