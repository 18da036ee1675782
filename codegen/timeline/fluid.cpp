#include "codegen/timeline/fluid.hpp"

#include <algorithm>

namespace palladium::timeline {
namespace {

constexpr double tiny = 1e-9;

}  // namespace

const char* name_of(Part part) {
  switch (part) {
  case Part::issue: return "issue slots";
  case Part::integer: return "integer units";
  case Part::special: return "special functions";
  case Part::shared: return "shared memory";
  case Part::tensor: return "tensor cores";
  case Part::copies: return "TMA";
  case Part::l2: return "L2 cache";
  case Part::memory: return "memory";
  case Part::sends: return "TMA stores";
  }
  return "";
}

double Cost::least() const { return std::max(alone, *std::ranges::max_element(demand)); }

int Fluid::begin(const Cost& cost) {
  Work w{.number = next_++, .least = std::max(cost.least(), tiny)};
  w.left = w.least;
  for (std::size_t p = 0; p < parts; ++p) w.rate[p] = cost.demand[p] / w.least;
  works_.push_back(w);
  share();
  return w.number;
}

// The most that each user of a part may take of it: who asks for less has what he asks for.
double Fluid::level(std::size_t part) const {
  std::vector<double> wanted;
  for (const Work& w : works_)
    if (w.rate[part] > tiny) wanted.push_back(w.rate[part]);
  std::ranges::sort(wanted);
  double left = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double each = left / static_cast<double>(wanted.size() - i);
    if (wanted[i] > each) return each;
    left -= wanted[i];
  }
  return 1;
}

// Parts are shared alike; what somebody leaves because another part is scarcer goes to all others.
void Fluid::share() {
  Demand left;
  left.fill(1);
  std::array<double, parts> levels;
  for (std::size_t p = 0; p < parts; ++p) levels[p] = level(p);
  std::vector<Work*> rising;
  for (Work& w : works_) {
    w.speed = 1;
    for (std::size_t p = 0; p < parts; ++p)
      if (w.rate[p] > levels[p]) w.speed = std::min(w.speed, levels[p] / w.rate[p]);
    for (std::size_t p = 0; p < parts; ++p) left[p] -= w.speed * w.rate[p];
    rising.push_back(&w);
  }
  raise(rising, left);
}

// All gain speed alike, until a part is used up, whose users stay behind, or all are as fast as
// alone.
void Fluid::raise(std::vector<Work*>& rising, Demand& left) {
  for (;;) {
    std::erase_if(rising, [&](const Work* w) {
      bool stays = w->speed >= 1 - tiny;
      for (std::size_t p = 0; p < parts; ++p) stays |= w->rate[p] > tiny && left[p] < tiny;
      return stays;
    });
    if (rising.empty()) return;
    double more = 1;
    for (const Work* w : rising) more = std::min(more, 1 - w->speed);
    for (std::size_t p = 0; p < parts; ++p) {
      double wanted = 0;
      for (const Work* w : rising) wanted += w->rate[p];
      if (wanted > tiny) more = std::min(more, left[p] / wanted);
    }
    for (Work* w : rising) {
      w->speed += more;
      for (std::size_t p = 0; p < parts; ++p) left[p] -= more * w->rate[p];
    }
  }
}

double Fluid::until_next() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Work& w : works_)
    if (w.speed > 0) least = std::min(least, w.left / w.speed);
  return least;
}

std::vector<int> Fluid::advance(double time) {
  Stretch stretch{now_, now_ + time, {}};
  for (Work& w : works_) {
    w.left -= time * w.speed;
    for (std::size_t p = 0; p < parts; ++p) stretch.busy[p] += w.rate[p] * w.speed;
  }
  if (time > 0) stretches_.push_back(stretch);
  now_ += time;
  std::vector<int> done;
  for (const Work& w : works_)
    if (w.left <= tiny * std::max(1.0, w.least)) done.push_back(w.number);
  std::erase_if(works_,
                [&](const Work& w) { return std::ranges::find(done, w.number) != done.end(); });
  if (!done.empty()) share();
  return done;
}

}  // namespace palladium::timeline
