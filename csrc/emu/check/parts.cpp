// The checkers of check mode, in the order in which they see an instruction.
#include "check/access_counts.h"
#include "check/checker.h"
#include "check/group_order.h"
#include "check/lds_order.h"
#include "check/register_checks.h"
#include "check/stuck_barrier.h"

namespace mi350::emu {

Parts make_parts(LaunchChecks& shared, Reporter& reporter) {
  Parts parts;
  parts.push_back(make_lds_order(reporter));
  parts.push_back(make_group_order(reporter, shared.writers));
  parts.push_back(make_access_counts(reporter));
  parts.push_back(make_stuck_barrier(reporter));
  parts.push_back(make_register_checks(reporter, shared.undefined_memory));
  return parts;
}

}  // namespace mi350::emu
