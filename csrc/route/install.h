// Puts the rows of register.cpp into the dispatcher, on top of what is there.
#pragma once
#include <string>
#include <vector>

#include <torch/library.h>

#include "route/call.h"

namespace mi350::route {

// A row of the table: what is known of the overload, and its kernel as the dispatcher takes it.
struct TableRow {
  Row* row;
  torch::CppFunction (*kernel)();
};

template <class AtenOp, class Op>
TableRow table_row() {
  using Wrapper = Routed<AtenOp, Op>;
  return {&Wrapper::row, [] { return torch::CppFunction(TORCH_FN(Wrapper::kernel)); }};
}

// register.cpp.
const std::vector<TableRow>& table();

struct InstalledRow {
  std::string name;     // "addmm.dtype_out"
  std::string key;      // "PrivateUse1"
  std::string skipped;  // empty: installed
};

// Installs every row at the home's key. A row whose overload or schema text differs in this torch is skipped
// with a reason. The second call for a home does nothing. Returns what became of each row.
const std::vector<InstalledRow>& install(HomeId id, const runtime::Hip* hip, Force force = Force::kNone);

}  // namespace mi350::route
