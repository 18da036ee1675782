#include "codegen/timeline/call.hpp"

#include <algorithm>
#include <variant>

namespace palladium::timeline {

using lowered::protocol::Step;
using lowered::protocol::Steps;

namespace {

/// How often something comes in a block: where it was followed, and in a call.
struct Times {
  double followed = 1, called = 1;
};

bool is_over_programs(const Step& loop) {
  const auto* const axis = std::get_if<lowered::GridLoop>(&loop.by->what);
  return axis != nullptr && axis->axis == lowered::programs_axis;
}

/// Of a loop's iterations, and of the beginnings of the innermost loop.
struct Found {
  Times iterations, begins;
};

class Search {
 public:
  Search(Repeated loop, double programs) : loop_(loop), programs_(programs) {}

  // Nothing where it is not among them; where a number of iterations is unknown it is 0.
  std::optional<Found> in(const Steps& steps, Times times) const {
    for (const Step& s : steps) {
      const Times inner = s.kind == Step::Kind::loop ? inside(s, times) : times;
      if (s.kind == Step::Kind::loop && s.question == loop_->question) return Found{inner, times};
      for (const Steps& body : s.bodies)
        if (const auto found = in(body, inner)) return found;
    }
    return {};
  }

 private:
  Times inside(const Step& s, Times times) const {
    const double trips = is_over_programs(s) ? programs_ : static_cast<double>(s.trips.value_or(0));
    return {times.followed * s.counts.front(), times.called * trips};
  }

  Repeated loop_;
  double programs_;
};

bool goes_through_programs(const Steps& steps) {
  return std::ranges::any_of(steps, [](const Step& s) {
    return (s.kind == Step::Kind::loop && is_over_programs(s)) ||
           std::ranges::any_of(s.bodies, goes_through_programs);
  });
}

}  // namespace

// What stands around the innermost loops comes as often as they begin.
std::optional<double> cycles_of_call(const Model& m, const std::vector<Steady>& loops,
                                     const Trace& trace, int blocks, std::int64_t of_each) {
  const auto waves = static_cast<double>(cdiv(of_each, std::int64_t{blocks}));
  if (loops.size() == 1 && loops[0].loop == nullptr) return waves * loops[0].cycles;
  const Steps* computes = nullptr;
  for (std::size_t a = 0; a < m.agents.size() && computes == nullptr; ++a)
    if (!m.agents[a].is_one_thread) computes = &m.steps[a];
  if (computes == nullptr) return {};
  double around = trace.end, called = 0, begins = 1;
  for (const Steady& s : loops) {
    const auto found = Search(s.loop, waves).in(*computes, {});
    if (!found || found->iterations.called == 0) return {};
    around -= found->iterations.followed * s.cycles;
    called += found->iterations.called * s.cycles;
    begins = std::max(begins, found->begins.called / found->begins.followed);
  }
  const double of_block = called + std::max(0.0, around) * begins;
  return goes_through_programs(*computes) ? of_block : waves * of_block;
}

}  // namespace palladium::timeline
