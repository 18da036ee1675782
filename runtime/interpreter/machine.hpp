// What runs the programs of a call on one OS thread, one after the other.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "runtime/fiber/fiber.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/launch.hpp"
#include "runtime/interpreter/races.hpp"

namespace palladium::interpreter {

/// The blocks of a cluster with their windows, scratch and Pallas threads.
class Machine {
 public:
  /// On the thread that runs it.
  explicit Machine(const Launch& launch);

  /// All that runs at one place of the parallel axes: the sequential ones are a loop inside, which
  /// keeps scratch, and windows as long as their block index stays. Throws what interpreter::run
  /// says; the machine is then of no use.
  void run(std::uint64_t place);

 private:
  // One of the blocks of a cluster: it has windows and scratch of its own, shared by its threads.
  struct Block {
    std::vector<std::int64_t> rank;            // per cluster axis
    std::deque<Window> windows;                // as block mappings
    std::deque<Window> scratch;                // that in registers is the first thread's
    std::deque<std::deque<Window>> registers;  // per further thread: its scratch in registers
    std::deque<Frame> threads;
    std::vector<RegionId> regions;  // per thread
  };

  void make_blocks();
  Window scratch_window(std::size_t number) const;
  void make_registers(Block& block);
  void watch(Block& block);
  void run_visits(std::uint64_t place);
  void move_windows(std::size_t b, std::uint64_t place, const std::vector<std::int64_t>& id,
                    bool first);
  std::vector<std::int64_t> block_index(const BlockMapping& mapping);
  void visit(const std::vector<std::int64_t>& id);
  void bind(Frame& frame, const std::vector<ValueId>& params, Block& block, std::size_t thread);
  void close(Window& window);

  const Launch& launch_;
  const graph::Graph& graph_;
  Frame maps_;  // evaluates index maps
  std::deque<Block> blocks_;
  fiber::Scheduler scheduler_;
  std::optional<Races> races_;
};

}  // namespace palladium::interpreter
