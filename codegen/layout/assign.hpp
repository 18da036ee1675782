// Exact minimum-cost choice of one candidate per variable under unary and pairwise costs.
#pragma once

#include <vector>

namespace palladium::layout {

struct AssignmentProblem {
  struct Edge {
    int a = 0, b = 0;          // different variables; several edges may join the same two
    std::vector<double> cost;  // [candidate of a * candidates of b + candidate of b]
  };
  std::vector<std::vector<double>> unary;  // [variable][candidate]; at least one candidate each
  std::vector<Edge> edges;
};

/// The candidate of each variable that makes the total cost least: exact by bucket elimination in
/// min-degree order while no elimination joins more than `max_width` variables, local search from
/// there on. Deterministic: ties go to the lower candidate.
std::vector<int> solve(const AssignmentProblem& problem, int max_width = 6);

double total_cost(const AssignmentProblem& problem, const std::vector<int>& choice);

}  // namespace palladium::layout
