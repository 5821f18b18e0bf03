// explain(): the calls of one thread are decided and recorded, and nothing is allocated or launched.
#pragma once
#include <string>
#include <vector>

#include "route/decision.h"

namespace mi350::route {

struct Candidate {
  std::string config;
  std::string refused;  // empty: may serve the problem
  double cost = 0;      // the planner's own units
};

struct Explained {
  std::string op, problem;
  std::string kernel;  // empty: refused
  std::string refused;
  std::vector<Candidate> candidates;
};

// Collects the decisions of a thread between begin and end.
class Explanation {
 public:
  // From the op, before the decision is settled.
  void consider(Candidate candidate) { candidates_.push_back(std::move(candidate)); }
  void settle(const std::string& op, const std::string& problem, const Decision& decision);
  const std::vector<Explained>& calls() const { return calls_; }

 private:
  std::vector<Candidate> candidates_;
  std::vector<Explained> calls_;
};

// This thread's, or null.
Explanation* explaining();
void begin_explaining();
std::vector<Explained> end_explaining();

}  // namespace mi350::route
