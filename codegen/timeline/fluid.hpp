// Work that shares a multiprocessor: each part of it has some for several at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace palladium::timeline {

enum class Part : std::uint8_t {
  issue,
  integer,
  special,
  shared,
  tensor,
  copies,
  l2,
  memory,
  sends
};
inline constexpr std::size_t parts = 9;
const char* name_of(Part part);

/// For how many cycles each part is busy with it.
using Demand = std::array<double, parts>;

/// What somebody does at a stretch: it takes `alone` at least, whoever else is there, and goes on
/// for `behind` when it has had all that it demands.
struct Cost {
  Demand demand = {};
  double alone = 0, behind = 0;

  double& of(Part p) { return demand[static_cast<std::size_t>(p)]; }
  /// At least as long as its largest demand.
  double least() const;
};

/// All that is under way goes on side by side. Of a part that is asked for more than it has all get
/// as much, but for those who ask for less, and are slowed down to that.
class Fluid {
 public:
  /// The number of the work, which is under way from now on.
  int begin(const Cost& cost);
  /// How long it takes until some of it is done; infinity where nothing is under way.
  double until_next() const;
  /// What is done after that time, or before, in order of its numbers.
  std::vector<int> advance(double time);
  double now() const { return now_; }

  /// How busy parts were from one time to the other.
  struct Stretch {
    double begin = 0, end = 0;
    Demand busy = {};  // 0 to 1
  };
  const std::vector<Stretch>& stretches() const { return stretches_; }

 private:
  struct Work {
    int number = 0;
    Demand rate = {};  // of parts, at full speed
    double least = 0, left = 0, speed = 0;
  };
  double level(std::size_t part) const;
  void share();
  static void raise(std::vector<Work*>& rising, Demand& left);

  std::vector<Work> works_;
  std::vector<Stretch> stretches_;
  double now_ = 0;
  int next_ = 0;
};

}  // namespace palladium::timeline
