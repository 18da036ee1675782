// What the Pallas threads of a cluster do to the Refs that they share, and the races in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "runtime/race/engine.hpp"
#include "runtime/race/shadow.hpp"

namespace palladium::interpreter {

/// Loads, stores and swaps are recorded as they happen, copies when they begin. Whatever orders
/// threads is told to `engine()`: who signals releases, who waits acquires, an asynchronous copy is
/// an agent of its own, of which those learn who wait for it. Threads are not ordered by being
/// visited in turn: a sequential axis is a loop inside each.
class Races {
 public:
  /// A Ref's contents in one block.
  struct Memory {
    Memory(race::Engine& engine, std::string name, DType dtype, graph::Extents shape);
    std::string name;  // "outputs[0]", "scratch[1]"
    DType dtype;
    graph::Extents shape;
    race::Shadow shadow;
  };

  explicit Races(const graph::Graph& g) : graph_(g) {}

  Memory& add_memory(std::string name, DType dtype, graph::Extents shape);
  race::Agent add_thread(std::string name);

  /// Nothing has happened yet. `program` is its name, "(0, 3)".
  void start_program(std::string program);

  /// Instruction `by`, run by `agent`, accesses bytes of `memory`.
  void record(Memory& memory, std::size_t offset, std::size_t bytes, race::Agent agent,
              race::Kind kind, graph::ValueId by, race::Proxy through = race::Proxy::generic) {
    const auto found =
        memory.shadow.access(offset, bytes, {agent, kind, through, graph::index(by)});
    if (found) report(memory, *found);
  }
  race::Engine& engine() { return engine_; }

  bool found() const { return !texts_.empty(); }
  /// Throws a CompileError that tells all races, each pair of lines once per Ref, and then what
  /// else went wrong.
  [[noreturn]] void refuse(const std::string& besides = {}) const;

 private:
  void report(const Memory& memory, const race::Race& race);

  const graph::Graph& graph_;
  race::Engine engine_;
  std::deque<Memory> memories_;
  std::vector<std::string> threads_;  // by agent
  std::string program_;
  using Line = std::pair<std::string, int>;
  std::set<std::tuple<std::string, Line, Line>> known_;
  std::vector<std::string> texts_;
  Location first_;
};

}  // namespace palladium::interpreter
