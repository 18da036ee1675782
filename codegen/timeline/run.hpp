// What agents do, in cycles: each goes as far as it comes, and what they begin goes on beside them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "codegen/lowered/protocol_walk.hpp"
#include "codegen/timeline/costs.hpp"
#include "codegen/timeline/fluid.hpp"

namespace palladium::timeline {

using lowered::protocol::Event;
using lowered::protocol::Model;
using Events = std::vector<std::vector<Event>>;

/// A warpgroup of an agent of a block came to the event, could go on, and was done with it.
struct Moment {
  int event = 0, round = 0;
  double reached = 0, open = 0, end = 0;
  double alone = 0;  // that it would have taken with nobody else there
};
struct Track {
  int block = 0, agent = 0, group = 0;
  std::vector<Moment> moments = {};
};
/// What goes on by itself, one behind the other in each queue: what the L2 cache has does not wait
/// for what memory brings.
enum class Queue : std::uint8_t { products, copies, copies_from_memory, sends, thread_copies };
inline constexpr std::size_t queues = 5;
struct Flight {
  Queue queue = Queue::products;
  int block = 0, agent = 0, group = 0, event = 0;
  double begin = 0, end = 0;  // of its part of the machine: who waits learns of it later
};
struct Trace {
  std::vector<Track> tracks = {};
  std::vector<Flight> flights = {};
  std::vector<Fluid::Stretch> stretches = {};
  double end = 0;
  bool is_stuck = false;
};

/// Runs the agents of `blocks` side by side, each block `rounds` times, one behind the other; one
/// begins `apart` cycles behind the one before.
class Run {
 public:
  Run(const Model& m, const Costs& costs, const Events& events)
      : m_(m), costs_(costs), events_(events) {}
  Trace operator()(int blocks, int rounds, double apart);

 private:
  struct Barrier {
    int arrivals = 1, pending = 1;
    std::int64_t bytes = 0, phases = 0;
  };
  struct Block {
    std::vector<Barrier> barriers = {};
    int round = 0;
    double from = 0;
  };
  struct Worker {
    Track track;
    std::size_t next = 0;
    bool has_come = false, works = false;
    int work = -1;      // under way
    double behind = 0;  // how long it goes on when that is done
    int syncs = 0;      // that it has come to
    Moment now = {};
    std::vector<int> products = {}, copies = {}, sends = {};  // flights
    std::vector<int> copy_groups = {}, send_groups = {};      // how many flights there were
  };
  struct Waiting {
    int flight = 0;
    Cost cost = {};
    int barrier = -1;
    std::int64_t bytes = 0;
  };
  struct Line {
    std::deque<Waiting> waiting = {};
    int work = -1;
  };
  struct Timer {
    int worker = -1, flight = -1, barrier = -1, block = 0;
    std::int64_t bytes = 0;
    int counts = 0;
  };

  void begin(int blocks, double apart);
  void enter(Block& b);
  bool step(Worker& w);
  bool is_open(const Worker& w, const Event& e) const;
  bool is_over(const std::vector<int>& flights, std::size_t count) const;
  bool is_others(const Worker& w, const Event& e) const;
  void start(Worker& w, const Event& e);
  void finish(Worker& w);
  void perform(Worker& w, const Event& e);
  int launch(Worker& w, const Event& e, Queue queue, std::int64_t bytes = 0);
  void pump(Queue queue);
  void arrive(int block, int barrier, std::int64_t bytes, int counts);
  void end_round(Block& b, int number);
  bool pass_time();
  void done(int work);
  void ring(const Timer& t);
  const Event& event(const Worker& w) const {
    return events_[static_cast<std::size_t>(w.track.agent)][w.next];
  }
  bool is_done(const Worker& w) const {
    return w.next == events_[static_cast<std::size_t>(w.track.agent)].size();
  }
  Block& block(const Worker& w) { return blocks_[static_cast<std::size_t>(w.track.block)]; }
  const Block& block(const Worker& w) const {
    return blocks_[static_cast<std::size_t>(w.track.block)];
  }

  const Model& m_;
  const Costs& costs_;
  const Events& events_;
  int rounds_ = 1;
  std::vector<Block> blocks_;
  std::vector<Worker> workers_;
  std::array<Line, queues> lines_;
  std::vector<Flight> flights_;
  std::vector<bool> is_known_;  // of each flight: who waits for it knows that it is over
  std::multimap<double, Timer> timers_;
  Fluid fluid_;
};

}  // namespace palladium::timeline
