// What runs the programs of a call on one OS thread, one after the other.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "runtime/fiber/fiber.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/launch.hpp"
#include "runtime/interpreter/races.hpp"
#include "runtime/interpreter/semaphores.hpp"

namespace palladium::interpreter {

/// The blocks of a cluster with their windows, scratch and Pallas threads; of a launch whose
/// programs wait for each other all of its clusters.
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
    std::uint64_t place = 0;                   // counted from the one that is run
    std::size_t number = 0;                    // in the cluster
    std::vector<std::int64_t> rank;            // per cluster axis
    std::vector<std::int64_t> id;              // along the axes of the grid
    std::deque<Window> windows;                // as block mappings
    std::deque<Window> scratch;                // that in registers is the first thread's
    std::deque<std::deque<Window>> registers;  // per further thread: its scratch in registers
    std::deque<Frame> threads;
    std::vector<RegionId> regions;  // per thread
  };

  void make_blocks();
  void open_index_operands();
  void make_cluster(std::uint64_t place);
  Window scratch_window(std::size_t number) const;
  void make_registers(Block& block);
  void watch(Block& block);
  void run_visits(std::uint64_t place);
  void move_windows(Block& block, std::uint64_t place, bool first);
  // The block that the index map names where the maps stand.
  void find_block(const BlockMapping& mapping, std::vector<std::int64_t>& index);
  void visit();
  void bind(Frame& frame, const std::vector<ValueId>& params, Block& block, std::size_t thread);
  void close(Window& window);
  void add_copy_agents(Frame& frame, const std::string& thread);
  void check_ends();

  const Launch& launch_;
  const graph::Graph& graph_;
  Frame maps_;                         // evaluates index maps
  std::deque<Window> index_operands_;  // as index maps see them
  std::deque<Block> blocks_;
  // Where each window of a block goes; used again.
  struct Move {
    std::vector<std::int64_t> indices;
    bool moves = false;
  };
  std::vector<Move> moves_;
  fiber::Scheduler scheduler_;
  bool runs_through_ = false;  // without fibers
  Semaphores semaphores_;
  std::map<std::pair<const Window*, std::int64_t>, Barrier> barriers_;  // that somebody has used
  std::optional<Races> races_;
  std::vector<Races::Memory*> arrays_;  // whole ones, by block mapping
};

}  // namespace palladium::interpreter
