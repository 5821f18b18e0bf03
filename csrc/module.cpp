// The pybind11 surface of _C: loading, installation, flags, report, explain, status. No logic of its own.
#include <dlfcn.h>

#include <locale>

#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include "cdna/cdna.h"
#include "emu/emu_api.h"
#include "ops/gemm.h"
#include "route/explain.h"
#include "route/install.h"
#include "route/ledger.h"
#include "route/verify.h"
#include "runtime/arch.h"
#include "runtime/find_hip.h"
#include "runtime/launch.h"
#include "runtime/profiler.h"
#include "runtime/torch_version.h"

namespace py = pybind11;
using namespace mi350;

namespace {

#define MI350_TEXT_(x) #x
#define MI350_TEXT(x) MI350_TEXT_(x)
#define MI350_TORCH_MINOR MI350_TEXT(TORCH_VERSION_MAJOR) "." MI350_TEXT(TORCH_VERSION_MINOR)

// Read from the file by _load.py before it is loaded: another torch may lack symbols that _C needs.
__attribute__((used)) const char kBuiltFor[] = "mi350-built-for-torch=" MI350_TORCH_MINOR ";";

void refuse_other_torch() {
  const auto running = py::module_::import("torch").attr("__version__").cast<std::string>();
  const std::string built = MI350_TORCH_MINOR;
  if (running.rfind(built + ".", 0) == 0) return;
  throw py::import_error("torch_mi350 was built for torch " + built + " and cannot be used with torch " +
                         running + ": install a build for that torch (pip install --no-build-isolation .)");
}

// A compiler that puts a libstdc++ of its own into _C makes a module that crashes in torch's stream operators.
void refuse_own_libstdcxx() {
  Dl_info ours{}, theirs{};
  dladdr(kBuiltFor, &ours);
  dladdr(reinterpret_cast<const void*>(&std::locale::classic), &theirs);
  if (ours.dli_fbase != theirs.dli_fbase) return;
  throw py::import_error(
      "torch_mi350 was linked with a libstdc++ of its own, which cannot share objects with torch's: rebuild "
      "with a compiler that links libstdc++.so (CXX=/usr/bin/g++; not -static-libstdc++)");
}

template <class F>
F* emulator_function(const char* name) {
  return reinterpret_cast<F*>(runtime::emulator_symbol(name));
}

py::dict emulator_counters() {
  Mi350EmuCounters c{};
  emulator_function<decltype(mi350emuCounters)>("mi350emuCounters")(&c);
  py::dict d;
  d["launches"] = c.launches;
  d["workgroups"] = c.workgroups;
  d["instructions"] = c.instructions;
  d["mfma_instructions"] = c.mfma_instructions;
  d["mfma_flops"] = c.mfma_flops;
  d["global_bytes"] = c.global_bytes;
  d["lds_bytes"] = c.lds_bytes;
  d["kernel_ns"] = c.kernel_ns;
  return d;
}

route::OpState& known_op(const std::string& name) {
  const int op = route::find_op(name);
  if (op >= 0) return route::op_state(op);
  std::string known;
  for (int i = 0; i < route::op_count(); ++i)
    known += (i == 0 ? "" : ", ") + std::string(route::op_state(i).name);
  throw py::value_error("torch_mi350: no op is called '" + name + "', known ops are " +
                        (known.empty() ? "none (nothing is installed)" : known));
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (int i = 0; i < route::op_count(); ++i) names.push_back(route::op_state(i).name);
  return names;
}

py::list rows_to_list(const std::vector<route::InstalledRow>& rows) {
  py::list list;
  for (const auto& row : rows) {
    py::dict d;
    d["name"] = row.name;
    d["key"] = row.key;
    d["skipped"] = row.skipped;
    list.append(d);
  }
  return list;
}

// Installs at PrivateUse1; cdna_install has been called.
py::list install_cdna() { return rows_to_list(route::install(route::HomeId::kCdna, &runtime::emulator())); }

// Installs at CUDA if the mapped runtime and a gfx950 are there; else (None, why not).
py::tuple install_cuda() {
  std::string why;
  const runtime::Hip* hip = runtime::mapped_runtime(&why);
  if (hip == nullptr) return py::make_tuple(py::none(), why);
  why = runtime::why_none(runtime::process_gpus());
  if (!why.empty()) return py::make_tuple(py::none(), why);
  return py::make_tuple(rows_to_list(route::install(route::HomeId::kCuda, hip)), "");
}

// Installs at `where` for devices that are not gfx950 (TORCH_MI350_FORCE).
py::list install_forced(route::HomeId where, const std::string& mode) {
  if (mode != "fallback" && mode != "emulate") {
    throw py::value_error("torch_mi350: TORCH_MI350_FORCE must be fallback or emulate, got '" + mode + "'");
  }
  const bool emulate = mode == "emulate";
  return rows_to_list(route::install(where, emulate ? &runtime::emulator() : nullptr,
                                     emulate ? route::Force::kEmulate : route::Force::kFallback));
}

py::dict report() {
  py::dict ops, cpu, cpu_ns;
  for (const auto& op : route::report_ops()) {
    py::dict one;
    one["hits"] = op.hits;
    one["misses"] = op.misses;
    ops[py::str(op.op)] = one;
  }
  for (const auto& [name, entry] : route::report_cpu()) {
    cpu[py::str(name)] = entry.calls;
    cpu_ns[py::str(name)] = entry.ns;
  }
  py::dict all;
  all["ops"] = ops;
  all["cpu"] = cpu;
  all["cpu_ns"] = cpu_ns;
  return all;
}

py::list end_explaining() {
  py::list calls;
  for (const auto& call : route::end_explaining()) {
    py::list candidates;
    for (const auto& c : call.candidates) candidates.append(py::make_tuple(c.config, c.refused, c.cost));
    py::dict d;
    d["op"] = call.op;
    d["problem"] = call.problem;
    d["kernel"] = call.kernel;
    d["refused"] = call.refused;
    d["candidates"] = candidates;
    calls.append(d);
  }
  return calls;
}

py::list gpus_to_list(const std::vector<runtime::Gpu>& gpus) {
  py::list list;
  for (const auto& gpu : gpus) {
    py::dict d;
    d["arch"] = gpu.arch;
    d["cus"] = gpu.cus;
    d["xcds"] = gpu.xcds;
    d["unique_id"] = gpu.unique_id;
    list.append(d);
  }
  return list;
}

py::object mapped_runtime_path() {
  const runtime::Hip* hip = runtime::mapped_runtime(nullptr);
  return hip == nullptr ? py::object(py::none()) : py::object(py::str(hip->path));
}

void bind_loading(py::module_& m) {
  m.attr("built_for_torch") = MI350_TORCH_MINOR;
  m.attr("has_kineto_registry") = bool(MI350_HAS_KINETO_REGISTRY);
  m.def("package_dir", &runtime::package_dir);
  m.def("cdna_install", [] {
    cdna::install();
    runtime::install_profiler();
  });
  m.def("install_cdna", &install_cdna);
  m.def("install_cuda", &install_cuda);
  m.def("install_forced", [](const std::string& mode) { return install_forced(route::HomeId::kCuda, mode); });
  m.def("mapped_runtime", &mapped_runtime_path);
  m.def("why_no_runtime", [] {
    std::string why;
    runtime::mapped_runtime(&why);
    return why;
  });
  m.def("gpus", [] { return gpus_to_list(runtime::process_gpus()); });
  m.def("why_no_gpu", [] { return runtime::why_none(runtime::process_gpus()); });
  m.def("emulator_counters", &emulator_counters);
  m.def("reset_emulator_counters",
        [] { emulator_function<decltype(mi350emuResetCounters)>("mi350emuResetCounters")(); });
}

void bind_routing(py::module_& m) {
  m.def("ops", &op_names);
  m.def("set_enabled", [](const std::string& op, bool on) { known_op(op).enabled.store(on); });
  m.def("push_disabled", [](const std::string& op) { known_op(op).disabled_depth.fetch_add(1); });
  m.def("pop_disabled", [](const std::string& op) { known_op(op).disabled_depth.fetch_sub(1); });
  m.def("is_enabled", [](const std::string& op) { return known_op(op).on(); });
  m.def("set_log", &route::set_log);
  m.def("pin", [](const std::string& op, const std::string& config) {
    known_op(op);
    ops::pin_gemm(op, config);
  });
  m.def("report", &report);
  m.def("reset", &route::reset_ledger);
  route::bind_verify(m);
  m.def("begin_explaining", &route::begin_explaining);
  m.def("end_explaining", &end_explaining);
}

// For tests and benchmarks.
void bind_testing(py::module_& m) {
  m.def(
      "_install_for_test",
      [](const std::string& key, const std::string& force) {
        if (key != "CPU") throw py::value_error("_install_for_test: key must be CPU, got " + key);
        if (!force.empty()) return install_forced(route::HomeId::kTest, force);
        return rows_to_list(route::install(route::HomeId::kTest, nullptr));
      },
      py::arg("key"), py::arg("force") = "");
  m.def("_set_noop_launch", &runtime::set_noop_launch);
  m.def("_read_topology", [](const std::string& root) { return gpus_to_list(runtime::read_topology(root)); });
  m.def("_why_none", [](const std::string& root) { return runtime::why_none(runtime::read_topology(root)); });
  m.def("_visible_gpus", [](const std::string& root, const std::string& list) {
    return gpus_to_list(runtime::visible_gpus(runtime::read_topology(root), list));
  });
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  refuse_other_torch();
  refuse_own_libstdcxx();
  bind_loading(m);
  bind_routing(m);
  bind_testing(m);
}
