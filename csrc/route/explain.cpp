// The thread's explanation, if it asked for one.
#include "route/explain.h"

#include <memory>

#include "runtime/module_cache.h"

namespace mi350::route {
namespace {

// A plain pointer beside the owner: what every call reads needs no constructor check.
thread_local Explanation* current = nullptr;
thread_local std::unique_ptr<Explanation> owner;

}  // namespace

void Explanation::settle(const std::string& op, const std::string& problem, const Decision& decision) {
  Explained call;
  call.op = op;
  call.problem = problem;
  if (decision.refused != nullptr) call.refused = decision.refused->text;
  else call.kernel = runtime::kernel_name(decision.kernel).symbol;
  call.candidates = std::move(candidates_);
  candidates_.clear();
  calls_.push_back(std::move(call));
}

Explanation* explaining() { return current; }

void begin_explaining() {
  owner = std::make_unique<Explanation>();
  current = owner.get();
}

std::vector<Explained> end_explaining() {
  std::vector<Explained> calls;
  if (owner != nullptr) calls = owner->calls();
  current = nullptr;
  owner.reset();
  return calls;
}

}  // namespace mi350::route
