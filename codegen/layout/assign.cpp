#include "codegen/layout/assign.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "palladium/error.hpp"

namespace palladium::layout {
namespace {

// Cost tables of several variables, row-major in the order of `variables`.
struct Factor {
  std::vector<int> variables;
  std::vector<double> cost;
};

// How an eliminated variable follows from its neighbours.
struct Step {
  int variable = 0;
  std::vector<int> neighbours;
  std::vector<int> best;  // by the neighbours' choices, row-major
};

void validate(const AssignmentProblem& problem) {
  const auto variables = static_cast<int>(problem.unary.size());
  for (const auto& candidates : problem.unary) {
    if (candidates.empty()) throw InternalError("assignment: a variable has no candidate");
  }
  for (const auto& e : problem.edges) {
    if (e.a < 0 || e.b < 0 || e.a >= variables || e.b >= variables || e.a == e.b ||
        e.cost.size() != problem.unary[e.a].size() * problem.unary[e.b].size()) {
      throw InternalError("assignment: malformed edge " + std::to_string(e.a) + "-" +
                          std::to_string(e.b));
    }
  }
}

void insert(std::vector<int>& sorted, int v) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), v);
  if (at == sorted.end() || *at != v) sorted.insert(at, v);
}

class Elimination {
 public:
  Elimination(const AssignmentProblem& problem, int max_width)
      : problem_(problem),
        max_width_(max_width),
        factors_of_(problem.unary.size()),
        neighbours_(problem.unary.size()),
        choice_(problem.unary.size(), 0),
        live_(problem.unary.size(), true) {
    for (std::size_t v = 0; v < problem.unary.size(); ++v) {
      add({{static_cast<int>(v)}, problem.unary[v]});
    }
    for (const auto& e : problem.edges) add({{e.a, e.b}, e.cost});
  }

  std::vector<int> run() {
    for (;;) {
      const int variable = least_connected();
      if (variable < 0) break;
      if (static_cast<int>(neighbours_[variable].size()) > max_width_) {
        search_rest();
        break;
      }
      eliminate(variable);
    }
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      choice_[step->variable] = step->best[entry(step->neighbours, choice_)];
    }
    return std::move(choice_);
  }

 private:
  std::size_t candidates(int v) const { return problem_.unary[v].size(); }

  std::size_t entry(const std::vector<int>& variables, const std::vector<int>& choice) const {
    std::size_t n = 0;
    for (const int v : variables) n = n * candidates(v) + static_cast<std::size_t>(choice[v]);
    return n;
  }

  void add(Factor factor) {
    for (const int v : factor.variables) {
      factors_of_[v].push_back(factors_.size());
      for (const int w : factor.variables) {
        if (w != v) insert(neighbours_[v], w);
      }
    }
    factors_.push_back(std::move(factor));
  }

  int least_connected() const {
    int best = -1;
    for (int v = 0; v < static_cast<int>(live_.size()); ++v) {
      if (live_[v] && (best < 0 || neighbours_[v].size() < neighbours_[best].size())) best = v;
    }
    return best;
  }

  // The factors of a live variable all join live ones.
  std::vector<const Factor*> touching(int variable) const {
    std::vector<const Factor*> list;
    for (const std::size_t n : factors_of_[variable]) list.push_back(&factors_[n]);
    return list;
  }

  void eliminate(int variable) {
    const std::vector<int> around = neighbours_[variable];
    std::size_t entries = 1;
    for (const int v : around) entries *= candidates(v);
    Factor message{around, std::vector<double>(entries)};
    Step step{variable, around, std::vector<int>(entries)};
    const auto factors = touching(variable);
    for (std::size_t n = 0; n < entries; ++n) {
      std::size_t digits = n;
      for (auto v = around.rbegin(); v != around.rend(); ++v) {
        choice_[*v] = static_cast<int>(digits % candidates(*v));
        digits /= candidates(*v);
      }
      message.cost[n] = cheapest(variable, factors, choice_, step.best[n]);
    }
    live_[variable] = false;
    for (const int v : around) {
      std::erase(neighbours_[v], variable);
      std::erase_if(factors_of_[v], [&](std::size_t n) {
        const auto& joined = factors_[n].variables;
        return std::find(joined.begin(), joined.end(), variable) != joined.end();
      });
    }
    add(std::move(message));
    steps_.push_back(std::move(step));
  }

  // The least sum over `factors` for the candidates of `variable`, the others being chosen.
  double cheapest(int variable, const std::vector<const Factor*>& factors, std::vector<int>& choice,
                  int& best) const {
    double least = std::numeric_limits<double>::infinity();
    best = 0;
    for (int c = 0; c < static_cast<int>(candidates(variable)); ++c) {
      choice[variable] = c;
      double sum = 0;
      for (const Factor* f : factors) sum += f->cost[entry(f->variables, choice)];
      if (sum < least) {
        least = sum;
        best = c;
      }
    }
    return least;
  }

  // What is left is too dense for tables: one variable after another takes its cheapest candidate
  // given the others', until none changes.
  void search_rest() {
    for (std::size_t v = 0; v < live_.size(); ++v) {
      const auto& costs = problem_.unary[v];
      choice_[v] = static_cast<int>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (int v = 0; v < static_cast<int>(live_.size()); ++v) {
        if (!live_[v]) continue;
        const int before = choice_[v];
        int best = 0;
        const double least = cheapest(v, touching(v), choice_, best);
        choice_[v] = before;
        double now = 0;
        for (const Factor* f : touching(v)) now += f->cost[entry(f->variables, choice_)];
        if (least < now) {
          choice_[v] = best;
          changed = true;
        }
      }
    }
  }

  const AssignmentProblem& problem_;
  int max_width_;
  std::vector<Factor> factors_;
  std::vector<std::vector<std::size_t>> factors_of_;
  std::vector<std::vector<int>> neighbours_;  // sorted
  std::vector<Step> steps_;
  std::vector<int> choice_;
  std::vector<bool> live_;
};

}  // namespace

std::vector<int> solve(const AssignmentProblem& problem, int max_width) {
  validate(problem);
  return Elimination(problem, max_width).run();
}

double total_cost(const AssignmentProblem& problem, const std::vector<int>& choice) {
  double sum = 0;
  for (std::size_t v = 0; v < problem.unary.size(); ++v) sum += problem.unary[v][choice[v]];
  for (const auto& e : problem.edges) {
    sum += e.cost[static_cast<std::size_t>(choice[e.a]) * problem.unary[e.b].size() +
                  static_cast<std::size_t>(choice[e.b])];
  }
  return sum;
}

}  // namespace palladium::layout
