// The checkers of check mode, in the order in which they see an instruction.
#include "check/checker.h"

namespace mi350::emu {

Parts make_parts(LaunchChecks& shared, Reporter& reporter) {
  Parts parts;
  return parts;
}

}  // namespace mi350::emu
