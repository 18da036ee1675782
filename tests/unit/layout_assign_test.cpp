#include "codegen/layout/assign.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "palladium/error.hpp"
#include "tests/support/layouts.hpp"

namespace palladium::layout {
namespace {

AssignmentProblem random_problem(Random& random, int variables, int edges, int max_cost) {
  AssignmentProblem p;
  for (int v = 0; v < variables; ++v) {
    auto& costs = p.unary.emplace_back();
    for (int c = pick(random, 1, 4); c > 0; --c) costs.push_back(pick(random, 0, max_cost));
  }
  for (int i = 0; i < edges && variables > 1; ++i) {
    AssignmentProblem::Edge e{pick(random, 0, variables - 1), pick(random, 0, variables - 1), {}};
    if (e.a == e.b) e.b = (e.b + 1) % variables;
    e.cost.resize(p.unary[e.a].size() * p.unary[e.b].size());
    for (double& cost : e.cost) cost = pick(random, 0, max_cost);
    p.edges.push_back(std::move(e));
  }
  return p;
}

double least_cost(const AssignmentProblem& p) {
  std::vector<int> choice(p.unary.size(), 0);
  double least = total_cost(p, choice);
  for (;;) {
    std::size_t v = 0;
    while (v < choice.size() && ++choice[v] == static_cast<int>(p.unary[v].size())) choice[v++] = 0;
    if (v == choice.size()) return least;
    least = std::min(least, total_cost(p, choice));
  }
}

TEST_CASE("the solver finds the least cost of random problems", "[layout]") {
  Random random(10);
  for (int n = 0; n < 400; ++n) {
    const int variables = pick(random, 1, 7);
    const auto p = random_problem(random, variables, pick(random, 0, 2 * variables), 20);
    const auto choice = solve(p);
    REQUIRE(total_cost(p, choice) == least_cost(p));
    REQUIRE(solve(p) == choice);
  }
}

TEST_CASE("ties go to the lower candidate", "[layout]") {
  AssignmentProblem p;
  p.unary = {{1, 1, 1}, {2, 2}};
  p.edges = {{0, 1, {0, 0, 0, 0, 0, 0}}};
  CHECK(solve(p) == std::vector<int>{0, 0});
}

TEST_CASE("a chain of 2,000 values and a dense problem are solved", "[layout]") {
  Random random(11);
  AssignmentProblem chain;
  for (int v = 0; v < 2000; ++v) {
    chain.unary.push_back({1, 0});
    if (v > 0) chain.edges.push_back({v - 1, v, {0, 5, 5, 0}});
  }
  chain.unary[0] = {0, 7};  // one relayout of cost 5 beats 2,000 detours
  const auto choice = solve(chain);
  CHECK(total_cost(chain, choice) == 5);
  // Wider than the exact method goes: no worse than taking each variable's own best.
  const auto dense = random_problem(random, 40, 400, 20);
  std::vector<int> alone;
  for (const auto& costs : dense.unary) {
    alone.push_back(static_cast<int>(std::min_element(costs.begin(), costs.end()) - costs.begin()));
  }
  CHECK(total_cost(dense, solve(dense)) <= total_cost(dense, alone));
  CHECK(solve(dense) == solve(dense));
}

TEST_CASE("the empty problem has the empty solution, a malformed one none", "[layout]") {
  CHECK(solve({}).empty());
  AssignmentProblem p;
  p.unary = {{}};
  CHECK_THROWS_AS(solve(p), InternalError);
  p.unary = {{1}, {1, 2}};
  p.edges = {{0, 1, {0}}};
  CHECK_THROWS_AS(solve(p), InternalError);
  p.edges = {{0, 0, {0}}};
  CHECK_THROWS_AS(solve(p), InternalError);
  p.edges = {{0, 2, {0, 0}}};
  CHECK_THROWS_AS(solve(p), InternalError);
}

}  // namespace
}  // namespace palladium::layout
