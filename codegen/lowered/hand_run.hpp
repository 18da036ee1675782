// What can go wrong when the threads of a block do what they do, whichever is first.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/lowered/hand_walk.hpp"

namespace palladium::lowered::hand {

/// An event of a thread, by its number.
struct Happened {
  int thread = 0, event = 0;
};

struct Fault {
  std::string what = {};  // "": none
  ValueId by = graph::no_value, other = graph::no_value;
  std::vector<Happened> steps = {};  // what leads there, in an order in which it can happen
  bool is_found() const { return !what.empty(); }
};

/// Runs the threads, each as far as it comes, and asks of what could happen in another order
/// whether it may. What a thread knows of others, and of the copies under way, is a number for each
/// of them: how much of what they do is sure to have happened.
class Run {
 public:
  Run(const graph::Graph& g, const Way& way);
  Fault operator()();
  /// Two accesses that nothing orders, of which data say whether they meet; "": none.
  const std::string& unsure() const { return unsure_; }
  /// In units of an event.
  std::int64_t work() const { return static_cast<std::int64_t>(order_.size()) + compared_ / 64; }
  const std::vector<Happened>& order() const { return order_; }

 private:
  using Clock = std::vector<std::int32_t>;
  struct Access {
    int region = -1, thread = 0;
    std::int32_t epoch = 0;       // of the thread, when it began
    int until = -1;               // what tells that a copy has done it; -1: it is no copy's
    std::int32_t completion = 0;  // ... and with which number
    const Event* event = nullptr;
    bool is_atomic = false;
  };
  /// By thread, and behind these what copies do.
  using Accesses = std::vector<std::vector<Access>>;
  struct Memory {
    Accesses reads, writes;
    std::vector<int> written;  // regions, of what is shared
  };
  struct Seen {
    int thread = 0;
    std::int32_t epoch = 0;
    const Event* event = nullptr;
  };
  struct Barrier {
    int arrived = 0;
    int coming = 0;  // parts of copies that blocks share, in this phase
    std::int32_t completed = 0;
    Clock told, known;  // of this phase; of the last one
    bool by_copies = false, last_by_copies = false;
    std::vector<Seen> seen;           // who has waited for the last one
    std::vector<std::int32_t> waits;  // of each thread
  };
  struct Thread {
    Clock knows;
    std::size_t next = 0;
    std::int32_t open = 0, closed = 0, read = 0;  // copies of no group; groups; awaited ones
    std::int32_t products = 0;                    // that it began
    std::int32_t takes = 0;                       // copies without a barrier
    const Event* taken = nullptr;                 // the last of them
    std::map<int, std::pair<std::int32_t, const Event*>> sums = {};  // and the last of each sum
    std::vector<bool> has_copies = {};                               // of each group
    const Event* sent = nullptr;                                     // the last copy
    int parts = 0;  // that a thread has begun, or a warp ...
    int ended = 0;  // ... and that it has ended
  };

  int fetched(int barrier) const { return threads() + barrier; }
  int sent(int thread, bool is_written) const {
    return threads() + static_cast<int>(barriers_.size()) + 2 * thread + is_written;
  }
  int committed(int thread) const {
    return 3 * threads() + static_cast<int>(barriers_.size()) + thread;
  }
  int multiplied(int thread) const {
    return 4 * threads() + static_cast<int>(barriers_.size()) + thread;
  }
  int taken(int thread) const {
    return 5 * threads() + static_cast<int>(barriers_.size()) + thread;
  }
  int threads() const { return static_cast<int>(threads_.size()); }
  bool is_warp(int thread) const { return way_.first_warp > 0 && thread >= way_.first_warp; }
  int thread_of(int warp) const { return (warp - way_.first_warp) / graph::num_warps; }
  int warp_of(int thread, int w) const { return way_.first_warp + thread * graph::num_warps + w; }

  bool is_open(int thread, const Event& e) const;
  void perform(int thread, const Event& e);
  void touch(int thread, const Event& e, int region, bool writes, int until = -1,
             std::int32_t completion = 0);
  void compare(const Access& mine, const Accesses& all, const Clock& known);
  void compare(const Access& mine, const Access& other, const Clock& known);
  bool is_stored(const Memory& m, const Region& r) const;
  bool is_stored(std::span<const int> written, Region r, int& steps) const;
  std::vector<Access>& own(Accesses& all, const Access& a) const {
    return all[a.until < 0 ? static_cast<std::size_t>(a.thread) : threads_.size()];
  }
  static bool is_by_threads(const Access& a);
  bool is_before(const Access& a, const Clock& known) const;
  void keep(Memory& m, const Access& a, bool writes, const Clock& known);
  void arrive(int thread, const Event& e);
  void bring(int thread, const Event& e);
  bool is_complete(const Barrier& b, int number) const;
  bool knows_last(const Barrier& b, int number, const Clock& known) const;
  void complete(Barrier& b, const Event& e);
  void wait(int thread, const Event& e);
  std::span<const std::int32_t> waits(const Barrier& b, int thread) const;
  void await(int thread, const Event& e);
  void hold(int thread, const Event& e);
  void begin(int warp);
  void end(int warp);
  void meet(int thread);
  void tell_stuck();
  void check_ends();
  void check_sent(int thread);
  void check_end(int barrier);
  int who_misses(const Barrier& b, int thread) const;
  void fail(const Event& e, std::string what, const Event* other = nullptr,
            const Clock* known = nullptr);
  std::string at(const Event& e) const;
  const std::string& name(int thread) const { return way_.names[static_cast<std::size_t>(thread)]; }
  std::string words(const Access& a, bool is_earlier) const;
  const Region& region(int number) const { return way_.regions[static_cast<std::size_t>(number)]; }
  const hand::Barrier& named(int barrier) const {
    return way_.barriers[static_cast<std::size_t>(barrier)];
  }

  const graph::Graph& g_;
  const Way& way_;
  std::vector<Thread> threads_;
  std::vector<Barrier> barriers_;
  std::vector<Memory> memories_;
  std::vector<Happened> order_;
  int thread_ = 0;  // at work
  std::int64_t compared_ = 0;
  Fault found_;
  std::string unsure_;
};

}  // namespace palladium::lowered::hand
