// Installation: probe the schema, capture the previous kernel, then register ours.
#include "route/install.h"

#include <mutex>

#include <ATen/core/function_schema.h>
#include <c10/util/Exception.h>

#include "runtime/torch_version.h"

namespace mi350::route {
namespace {

std::string full_name(const Row& row) {
  const std::string overload = row.overload;
  return std::string(row.name + 6) + (overload.empty() ? "" : "." + overload);
}

// "aten::addmm_" counts as "addmm". The text lives as long as the process.
const char* ledger_name(const Row& row) {
  std::string name = row.name + 6;
  if (name.back() == '_') name.pop_back();
  const int known = find_op(name);
  return known >= 0 ? op_state(known).name : (new std::string(name))->c_str();
}

// Empty, or why this torch's overload is not the one we were compiled for.
std::string probe(Row& row) {
  const auto handle = c10::Dispatcher::singleton().findSchema({row.name, row.overload});
  if (!handle.has_value()) return "torch has no such overload";
  const std::string expected = std::string("aten::") + row.schema;
  const std::string found = c10::toString(handle->schema());
  if (found != expected) return "torch's schema is " + found;
  row.handle = *handle;
  return "";
}

Row::Previous capture(const c10::OperatorHandle& op, const Home& where) {
  Row::Previous previous;
  if (!op.hasComputedKernelForDispatchKey(where.key)) return previous;
  previous.kernel = op.getComputedKernelForDispatchKey(where.key);
  previous.serves = true;
  previous.checks_devices = true;
  if (where.id != HomeId::kCdna) return previous;
  // On cdna what was there is the CPU fallback, or a default that ends in it.
  previous.checks_devices = false;
  const bool composite =
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  previous.serves =
      composite || op.hasKernelForDispatchKey(where.key) || op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
  return previous;
}

struct Silent : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

InstalledRow install_row(const TableRow& entry, Home& where) {
  Row& row = *entry.row;
  InstalledRow result{full_name(row), c10::toString(where.key), probe(row)};
  if (!result.skipped.empty()) return result;
  auto& previous = row.previous[static_cast<int>(where.id)];
  previous = capture(*row.handle, where);
  if (previous.kernel.has_value()) previous.unboxed = &runtime::captured_kernel(*previous.kernel);
  if (where.id == HomeId::kCuda && !previous.serves) {
    result.skipped = "torch has no CUDA kernel for it";
    return result;
  }
  // Lives until the process exits: a disabled op is a flag, because nothing waits for running kernels.
  auto* library = new torch::Library(torch::Library::IMPL, "aten", where.key, "torch_mi350/register.cpp", 0);
  library->impl(full_name(row).c_str(), entry.kernel());
  return result;
}

}  // namespace

const std::vector<InstalledRow>& install(HomeId id, const runtime::Hip* hip, Force force) {
  static std::mutex mutex;
  static std::array<std::vector<InstalledRow>, kHomes> installed;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& rows = installed[static_cast<int>(id)];
  Home& where = home(id);
  if (where.installed.load()) return rows;
  where.hip = hip;
  where.force = force;
  Silent silent;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silent);
  for (const TableRow& entry : table()) {
    if (entry.row->op == nullptr) {
      entry.row->op = ledger_name(*entry.row);
      entry.row->op_id = op_index(entry.row->op);
    }
    rows.push_back(install_row(entry, where));
  }
  where.installed.store(true);
  return rows;
}

}  // namespace mi350::route
