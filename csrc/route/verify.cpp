// Runs the previous kernel beside ours and calls Python with both results.
#include "route/verify.h"

#include <array>

#include <ATen/ops/empty_strided.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/utils/pybind.h>

#include "route/call.h"

namespace py = pybind11;

namespace mi350::route {

std::atomic<bool> verify_armed_flag{false};

namespace {

struct Schedule {
  std::atomic<uint32_t> every{0};  // 0: off
  std::atomic<uint64_t> hits{0};
};
std::array<Schedule, kMaxOps> schedules;

// Never released: backward threads may still verify while the interpreter ends.
std::atomic<PyObject*> callback{nullptr};

thread_local bool busy = false;

// What a verification computes is neither recorded by autograd nor cast by autocast nor verified.
class Scope {
 public:
  Scope() { busy = true; }
  ~Scope() { busy = false; }

 private:
  c10::impl::ExcludeDispatchKeyGuard quiet_{c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                            c10::autocast_dispatch_keyset};
};

at::Tensor copy_of(const at::Tensor& t) {
  at::Tensor copy = at::empty_strided(t.sizes(), t.strides(), t.options());
  copy.copy_(t);
  return copy;
}

void warn_unchecked(const char* op, const std::string& problem, const char* why) noexcept {
  try {
    TORCH_WARN("torch_mi350: TORCH_MI350_VERIFY could not check ", op, " ", problem, ": ", why);
  } catch (...) {
    // Warnings are errors in this process: the caller's result is right or wrong without us.
  }
}

py::object to_python(const c10::IValue& value) {
  if (value.isTensor()) return py::cast(value.toTensor());
  if (value.isDouble()) return py::float_(value.toDouble());
  if (value.isBool()) return py::bool_(value.toBool());
  if (value.isInt()) return py::int_(value.toInt());
  TORCH_CHECK(value.isNone(), "an argument of type ", value.tagKind(), " has no place in a repro file");
  return py::none();
}

bool is_tensor_at(const c10::IValue& value, const at::Tensor& written) {
  if (!value.isTensor()) return false;
  const at::Tensor& t = value.toTensor();
  // An input that shares memory with the output is the output: call.h refuses every other overlap.
  return t.is_same(written) || (t.numel() != 0 && t.const_data_ptr() == written.const_data_ptr());
}

// Positions of the written tensor among the arguments; it is replaced by `with`.
std::vector<size_t> replace_written(torch::jit::Stack& args, const at::Tensor& written,
                                    const at::Tensor& with) {
  std::vector<size_t> places;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!is_tensor_at(args[i], written)) continue;
    args[i] = with;
    places.push_back(i);
  }
  return places;
}

// The previous kernel's result, undefined with `why` if there is none.
at::Tensor run_previous(const Row& row, Home& where, c10::DispatchKeySet keys, torch::jit::Stack args,
                        std::string& why) {
  if (!row.previous[static_cast<int>(where.id)].serves) {
    why = "there is no other kernel";
    return {};
  }
  try {
    call_previous(row, where, keys, args);
    return args.at(0).toTensor();
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
    return {};
  }
}

}  // namespace

bool verify_due(int op) {
  if (busy) return false;
  const uint32_t every = schedules[op].every.load(std::memory_order_relaxed);
  return every != 0 && (schedules[op].hits.fetch_add(1, std::memory_order_relaxed) + 1) % every == 0;
}

std::unique_ptr<Verification> Verification::begin(const Row& row, int kernel, const Launch& shape,
                                                  const at::Tensor* written, std::string problem) {
  std::unique_ptr<Verification> made(new Verification(kernel, shape, std::move(problem)));
  if (written == nullptr) return made;
  try {
    const Scope scope;
    made->before_ = copy_of(*written);
    return made;
  } catch (const std::exception& error) {
    warn_unchecked(row.op, made->problem_, error.what());
    return nullptr;
  }
}

void Verification::finish(const Row& row, Home& where, c10::DispatchKeySet keys, torch::jit::Stack args,
                          const at::Tensor& ours) noexcept {
  try {
    const Scope scope;
    std::vector<size_t> written;
    torch::jit::Stack stock_args = args;
    if (before_.defined()) {
      written = replace_written(args, ours, before_);
      replace_written(stock_args, ours, copy_of(before_));
    }
    std::string why;
    const at::Tensor stock = run_previous(row, where, keys, std::move(stock_args), why);
    PyObject* function = callback.load(std::memory_order_acquire);
    if (function == nullptr || !Py_IsInitialized()) return;
    const py::gil_scoped_acquire gil;
    try {
      py::list values;
      for (const auto& value : args) values.append(to_python(value));
      const runtime::KernelName& name = runtime::kernel_name(kernel_);
      py::dict launch;
      launch["grid"] = shape_.grid;
      launch["block"] = shape_.block;
      launch["lds_bytes"] = shape_.lds_bytes;
      const py::object stock_result = stock.defined() ? py::cast(stock) : py::object(py::none());
      const py::handle check(function);
      check(py::arg("name") = row.name, py::arg("overload") = row.overload, py::arg("op") = row.op,
            py::arg("problem") = problem_, py::arg("kernel") = name.symbol, py::arg("object") = name.object,
            py::arg("launch") = launch, py::arg("args") = values, py::arg("written") = written,
            py::arg("ours") = ours, py::arg("stock") = stock_result, py::arg("why_no_stock") = why);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("torch_mi350: TORCH_MI350_VERIFY");
    }
  } catch (const std::exception& error) {
    warn_unchecked(row.op, problem_, error.what());
  } catch (...) {
    warn_unchecked(row.op, problem_, "unknown error");
  }
}

void bind_verify(py::module_& m) {
  m.def("set_verify", [](const std::string& op, uint32_t every) {
    const int id = find_op(op);
    if (id < 0) throw py::value_error("torch_mi350: no op is called '" + op + "'");
    schedules[id].hits.store(0);
    schedules[id].every.store(every);
    bool any = false;
    for (const Schedule& schedule : schedules) any |= schedule.every.load() != 0;
    verify_armed_flag.store(any);
  });
  m.def("set_verify_callback",
        [](py::function function) { callback.store(function.release().ptr(), std::memory_order_release); });
}

}  // namespace mi350::route
