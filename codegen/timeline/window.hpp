// The steady state of a run: what an iteration takes, and a picture of two.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/timeline/run.hpp"
#include "palladium/report.hpp"

namespace palladium::timeline {

/// Iterations of which one may be steady.
inline constexpr int least_iterations = 3;

/// What comes again and again: a loop, of the last time that it begins, or, none, the blocks of a
/// kernel.
using Repeated = const lowered::protocol::Step*;

class Window {
 public:
  Window(const Model& m, const Events& events, const Trace& trace, Repeated of, int blocks);
  /// Nothing where there are too few iterations for a steady state.
  std::optional<Timeline::Loop> loop() const;

 private:
  int iteration_of(const Track& t, const Moment& m) const;
  bool is_steady(const Track& t, const Moment& m) const;
  bool find_steady();
  std::vector<double> starts(const Track& t) const;
  void add_lanes(Timeline::Loop& out) const;
  Timeline::Lane lane_of(const Track& t, double end) const;
  void add_flights(Timeline::Loop& out, double end) const;
  void add_waits(Timeline::Loop& out) const;
  void add_uses(Timeline::Loop& out) const;
  void judge(Timeline::Loop& out) const;
  std::string name_of(const Track& t, bool names_group) const;
  const Event& event(int agent, int number) const {
    return events_[static_cast<std::size_t>(agent)][static_cast<std::size_t>(number)];
  }

  const Model& m_;
  const Events& events_;
  const Trace& trace_;
  Repeated of_;
  int blocks_;
  int entry_ = 0, count_ = 0;   // which time that the loop begins, its iterations
  int first_ = 0, last_ = 0;    // those that are steady: from, up to
  double begin_ = 0, end_ = 0;  // of these, by the first track that computes
  double cycles_ = 0;
};

/// "computes 'acc'", "begins a product of ...".
std::string words_of(const Model& m, const Event& e);
/// What the event waits for.
struct Reason {
  std::string what;
  Location at;
};
/// Why work takes longer than alone.
inline constexpr const char* others = "what others do on the multiprocessor";
Reason reason_of(const Model& m, const Events& events, const Event& e);

}  // namespace palladium::timeline
