// What agents do when each goes as far as it comes, and what could have come too early.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "codegen/lowered/protocol_order.hpp"
#include "codegen/lowered/protocol_walk.hpp"

namespace palladium::lowered::protocol {

struct Fault {
  std::string what = {};
  const Statement* by = nullptr;
  /// What happens, in this order, until it can go wrong.
  std::vector<Happening> steps = {};
  bool is_found() const { return by != nullptr; }
};

/// Runs the agents, each as far as it comes, and asks of all that could meet in another order
/// whether it does. Where it does not, all orders do the same: each agent does one thing behind
/// the other, and waits are all that they learn of each other.
class Run {
 public:
  explicit Run(const Model& m) : m_(m) {}
  /// The fault that fewest happenings lead to.
  Fault operator()(const std::vector<std::vector<Event>>& events);
  /// In all runs.
  std::int64_t happenings() const { return total_; }
  /// Of the last one, in the order in which they came.
  const std::vector<Happening>& order() const { return happenings_; }

 private:
  struct Access {
    int begin = -1, end = -1, thread = 0;
    const Event* event = nullptr;
    bool asynchronous = false;
  };
  struct CellState {
    std::vector<Access> fills, reads;  // of what it holds; the last of each thread
    std::vector<Access> before;        // reads of what was there, where blocks fill it by parts
    std::int64_t version = -1;
    bool is_filled = false, is_seen = false;
  };
  struct Barrier {
    int arrivals = 1, pending = 1;
    std::int64_t bytes = 0, phases = 0;  // that are over
    std::vector<int> behind = {};        // of this phase
    std::vector<int> over = {};          // the end of each
    struct Awaited {
      std::int64_t phase;
      int at;
      const Event* event;
    };
    std::vector<Awaited> awaited = {};
  };
  /// A thread for all that do the same: the first of each warpgroup, and another one of the first.
  struct Thread {
    int last = -1, warpgroup = 0;
    bool is_first = true;
    std::vector<int> copies = {}, groups = {};      // cp.async: those of no group yet
    std::vector<int> products = {};                 // of its warpgroup
    std::vector<int> sends = {}, send_groups = {};  // by TMA
  };
  struct Team {
    std::vector<Thread> threads = {};
    std::size_t next = 0;
    std::size_t meetings = 0;  // that it has come to and left
  };
  /// What a block does to the memory of another one.
  struct Reach {
    int block = 0, at = 0;
    const Event* event = nullptr;
  };

  void begin(const std::vector<std::vector<Event>>& events);
  bool advance(int agent);
  int others_that_arrive(BarrierId b, const std::vector<std::vector<Event>>& events) const;
  bool is_open(const std::vector<std::vector<Event>>& events, const Event& e) const;
  void perform(const Event& e);
  void access(const Event& e);
  void copy_by_threads(const Event& e);
  void copy(const Event& e);
  void send(const Event& e);
  void product(const Event& e);
  void wait(const Event& e);
  void close(const Event& e);
  void wait_group(const Event& e);
  std::vector<int> told(const Event& e) const;
  int block() const { return m_.agents[static_cast<std::size_t>(agent_)].block; }
  CellState& state(int cell, int block) {
    return cells_[m_.cells.size() * static_cast<std::size_t>(block) +
                  static_cast<std::size_t>(cell)];
  }
  std::size_t barrier(const Event& e, int block) const {
    return static_cast<std::size_t>(m_.barriers * block + e.barrier);
  }
  void tell(const Event& e, int at);
  void arrive(const Event& e, int block, int at, std::int64_t bytes, int counts);
  void end_phase(const Event& e, Barrier& b);
  void sync();
  void sync_warpgroups();
  bool all_meet(const std::vector<std::vector<Event>>& events) const;
  void meet();
  bool tell_stuck(const std::vector<std::vector<Event>>& events, const std::vector<int>& lasts);
  void finish(const std::vector<std::vector<Event>>& events);
  void end_cells(const std::vector<std::vector<int>>& lasts);
  bool is_over(int at, const std::vector<int>& lasts) const;

  int happen(Thread& t, std::initializer_list<int> behind = {});
  int end_of(int begun, int behind = -1);
  void read(const Touch& t, const Access& a);
  void fill(const Touch& t, const std::vector<Access>& all) { fill(t, all, block()); }
  void fill(const Touch& t, const std::vector<Access>& all, int block);
  bool is_other_part(const CellState& c, const Touch& t, const Access& a);
  void require_free(const CellState& c, const Touch& t, const Access& a, bool same);
  void fail(const Event& e, const std::string& what, std::initializer_list<int> behind);
  void keep(const Event& e, std::string what, std::span<const int> behind);
  std::string name(const Touch& t) const;
  std::string name(const Event& e) const;
  std::string line(const Event& e) const;

  const Model& m_;
  Order order_;
  std::vector<Happening> happenings_;
  std::vector<Team> teams_;
  std::vector<CellState> cells_;
  std::vector<Barrier> barriers_;
  std::vector<int> meetings_ = {};  // where all threads of all blocks have met
  std::vector<Reach> reached_ = {};
  int agent_ = 0, event_ = 0;  // at work
  std::int64_t total_ = 0;
  Fault found_;
};

}  // namespace palladium::lowered::protocol
