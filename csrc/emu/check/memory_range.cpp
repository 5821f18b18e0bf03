// Global accesses outside every allocation. Proven kernels load past the end of a tensor inside num_records and
// never use what came; everything else is an error for everybody.
#include "check/memory_range.h"

#include <bit>

#include "memory.h"

namespace mi350::emu {

bool note_outside_access(Reporter& reporter, const Wave& w, const Inst& i, const Access& a) {
  const bool prefetch = a.clamped && (a.kind == Access::kLoad || a.kind == Access::kDma);
  const Severity severity = prefetch ? reporter.if_strict() : Severity::kError;
  const bool goes_on = severity == Severity::kAdvisory || reporter.settings.report_only;
  Finding* f = reporter.open(w, i, "global-bounds", severity);
  if (f == nullptr) return goes_on;
  const int lane = std::countr_zero(a.mask);
  const uint64_t address = a.address(lane);
  const auto bytes = static_cast<uint64_t>(a.bytes_of(lane));
  // An access that begins inside a range and leaves it is named by its first byte outside.
  Range r;
  uint64_t bad = address;
  if (AllocationMap::get().find(address, &r)) {
    if (bytes > r.hi - address) bad = r.hi;
    else if (w.memory->reaches(r)) f->message = "read-only: ";
  }
  f->lane = a.scalar ? -1 : lane;
  f->has_address = true;
  f->address = address;
  f->where = "global";
  f->message += (a.kind == Access::kLoad || a.kind == Access::kDma ? "loads " : "stores ") + std::to_string(bytes) +
                " bytes: " + w.memory->describe(bad);
  if (prefetch) f->message += "; the descriptor's num_records allows it";
  return goes_on;
}

}  // namespace mi350::emu
