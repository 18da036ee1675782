#include "codegen/timeline/fluid.hpp"

#include <algorithm>

namespace palladium::timeline {
namespace {

constexpr double tiny = 1e-9;

}  // namespace

const char* name_of(Part part) {
  switch (part) {
  case Part::issue: return "issue slots";
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

// All gain speed alike, until a part is used up, whose users stay behind, or all are as fast as
// alone.
void Fluid::share() {
  std::vector<Work*> rising;
  for (Work& w : works_) {
    w.speed = 0;
    rising.push_back(&w);
  }
  Demand left;
  left.fill(1);
  double speed = 0;
  while (!rising.empty() && speed < 1 - tiny) {
    Demand wanted = {};
    for (const Work* w : rising)
      for (std::size_t p = 0; p < parts; ++p) wanted[p] += w->rate[p];
    double more = 1 - speed;
    for (std::size_t p = 0; p < parts; ++p)
      if (wanted[p] > tiny) more = std::min(more, left[p] / wanted[p]);
    speed += more;
    for (std::size_t p = 0; p < parts; ++p) left[p] -= more * wanted[p];
    for (Work* w : rising) w->speed = speed;
    std::erase_if(rising, [&](const Work* w) {
      for (std::size_t p = 0; p < parts; ++p)
        if (w->rate[p] > tiny && left[p] < tiny) return true;
      return false;
    });
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
