// What each Pallas thread of a block does to memory, barriers and copies, one thing behind the
// other, on one way through its body.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/lowered/hand_numbers.hpp"

namespace palladium::lowered::hand {

/// A root Ref in the block; one of run_scoped in each thread.
struct Memory {
  ValueId root = graph::no_value;
  std::string name = {};  // "scratch[1]"
  bool is_shared = false;
};

/// A box of the elements of a memory, or where an access is inexact: somewhere in it.
struct Region {
  struct Span {
    std::int32_t from = 0, to = 0;  // what lies beyond is one place
  };
  static constexpr std::size_t most_spans = 6;  // of more dimensions it may be anywhere
  std::array<Span, most_spans> spans = {};
  std::uint8_t rank = 0;
  bool is_exact = true;
  int memory = -1;

  std::span<const Span> box() const { return {spans.data(), rank}; }

  bool meets(const Region& o) const;
  bool covers(const Region& o) const;
};

/// One of a Ref of barriers.
struct Barrier {
  std::string name = {};  // "scratch[2][0]"
  int arrivals = 1;
};

struct Event {
  enum class Kind : std::uint8_t {
    read,
    write,
    atomic,
    fetch,  // from[0] to from[1]; arrives at the barrier when it is done
    send,
    take,   // from[0] to from[1] without a barrier
    taken,  // all of these but `pending` are there
    commit,
    close,
    await,  // all groups but `pending`
    arrive,
    wait,
    bring,     // a part of a copy that blocks share, to another one's memory, for its barrier
    multiply,  // from and `other` are read, and added to `sum`, until the product is awaited
    finish,    // all products but `pending`
    hold,      // an accumulator is read or stored to
    part,      // its warps go each their own way
    meet,      // ... until all of them have ended
    begin,     // of a warp, when its thread parts
    end,
  };
  Kind kind = Kind::read;
  ValueId by = graph::no_value;
  int from = -1, to = -1;  // regions: what is read, what is written
  int other = -1;          // ... and what a product reads beside `from`
  int sum = -1;            // the memory of an accumulator
  int barrier = -1, pending = 0, iteration = -1;
  int parts = 0;  // of a fetch that blocks share: as many come, one of them by this one
  bool read_only = false;
  bool updates = false;  // what a send writes, element by element, each at once
};

struct Way {
  std::vector<std::vector<Event>> threads = {};
  std::vector<std::string> names = {};  // of threads
  /// Behind the threads come the warps of each, where they do anything for themselves; 0: nowhere.
  int first_warp = 0;
  std::vector<Region> regions = {};
  std::vector<Memory> memories = {};
  std::vector<Barrier> barriers = {};
  std::map<std::pair<int, std::int64_t>, int> barrier_of = {};
  std::map<std::tuple<int, ValueId, int>, int> memory_of = {};
  ValueId supposed = graph::no_value;
  /// What keeps it from being followed, and where; "": nothing.
  std::string stop = {};
  ValueId at = graph::no_value;
  bool is_wrong = false;  // ... which is no barrier that there is

  static int thread_of(const Position& at) {
    return std::max(at.block, 0) * at.threads + at.thread;
  }
  /// Whose way this is, by number: the thread's, or that of its warp which is at work.
  std::size_t agent(const Position& at) const {
    const int thread = thread_of(at);
    return static_cast<std::size_t>(at.warp < 0 ? thread
                                                : first_warp + thread * graph::num_warps + at.warp);
  }
  /// What is first counts.
  void refuse(ValueId where, std::string why, bool wrong) {
    if (!stop.empty()) return;
    stop = std::move(why);
    at = where;
    is_wrong = wrong;
  }
};

/// The last name in a path, and the line: "kernel.cpp:12".
std::string place_of(const Location& at);

/// Pallas threads of a block, or of a cluster whose blocks reach each other: of each in turn.
/// Behind them their warps, in the same order, where these do anything for themselves.
struct Agent {
  const graph::Body* body = nullptr;
  std::string name = {};
  Position at = {};
};
std::vector<Agent> agents(const graph::Graph& g);

/// False: more than so many things.
bool walk(const graph::Graph& g, const Facts& facts, protocol::Answers& answers, std::int64_t most,
          Way& out);

}  // namespace palladium::lowered::hand
