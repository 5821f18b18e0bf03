// One row per aten overload that is routed, and nothing else: overload, op. route/install puts them into the
// dispatcher at the keys of the homes.
#include "ops/gemm.h"
#include "route/install.h"

// After the above: in 2.11 these declare nothing that they use.
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/mm_ops.h>

namespace mi350::route {

#define ROW(overload, op) table_row<at::_ops::overload, ops::op>()

const std::vector<TableRow>& table() {
  static const std::vector<TableRow> rows = {
      ROW(mm, Mm),
      ROW(mm_out, Mm),
      ROW(mm_dtype, Mm),
      ROW(mm_dtype_out, Mm),
      ROW(addmm, Addmm),
      ROW(addmm_out, Addmm),
      ROW(addmm_, Addmm),
      ROW(addmm_dtype, Addmm),
      ROW(addmm_dtype_out, Addmm),
      ROW(bmm, Bmm),
      ROW(bmm_out, Bmm),
      ROW(bmm_dtype, Bmm),
      ROW(bmm_dtype_out, Bmm),
      ROW(baddbmm, Baddbmm),
      ROW(baddbmm_out, Baddbmm),
      ROW(baddbmm_, Baddbmm),
      ROW(baddbmm_dtype, Baddbmm),
      ROW(baddbmm_dtype_out, Baddbmm),
  };
  return rows;
}

#undef ROW

}  // namespace mi350::route
