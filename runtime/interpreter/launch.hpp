// What all programs of a call share: the sizes of its grid, its arrays and who wrote them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/interpreter.hpp"
#include "runtime/interpreter/plan.hpp"
#include "runtime/interpreter/window.hpp"

namespace palladium::interpreter {

/// Programs on several OS threads may use it at once.
///
/// A *place* is a point of the parallel axes, numbered row-major; a *program* in messages and maps
/// of writers is a block of the cluster there.
class Launch {
 public:
  /// InternalError for an invocation that is not one of the graph.
  Launch(const graph::Graph& g, const Invocation& call, const Options& options);

  const graph::Graph& graph;
  const Invocation& call;
  const Options& options;
  const Plan plan;
  std::vector<std::int64_t> grid, cluster;
  std::vector<std::size_t> parallel_axes, sequential_axes;
  std::vector<std::int64_t> parallel_sizes, sequential_sizes;
  std::uint32_t cluster_blocks = 1;
  /// Programs may wait for each other: all run at once.
  bool is_concurrent = false;
  std::vector<Operand> operands;  // as block mappings

  /// 0 where an axis, of either kind, has no programs.
  std::uint64_t num_places() const;
  /// Its index along each parallel axis.
  std::vector<std::int64_t> index_of(std::uint64_t place) const;
  std::uint32_t program(std::uint64_t place, std::size_t block) const {
    return static_cast<std::uint32_t>(place * cluster_blocks + block);
  }
  /// "(0, 3)", with a star for each sequential axis.
  std::string text_of_place(std::uint64_t place) const;
  /// "(0, 3)", "(0, 3) block 1"
  std::string text_of_position(const Position& position) const;
  std::uint64_t poison(DType dtype) const { return options.poison ? poison_bits(dtype) : 0; }
  /// What elements of a block hold that lie beyond its array.
  std::uint64_t outside(const BlockMapping& m) const {
    return m.fill ? *m.fill : poison(m.array_aval.dtype);
  }

  /// Nobody has read or written anything.
  void forget_accesses();
  /// Poisons what nobody wrote of the outputs to which no input is aliased, where that is asked
  /// for, and tells of it.
  void find_unwritten() const;

  [[noreturn]] void refuse_outside(const Window& window, const std::vector<std::int64_t>& id,
                                   int dimension) const;
  [[noreturn]] void refuse_clash(const Operand& operand, const Clash& clash) const;

 private:
  void measure_grid();
  std::int64_t bound_of(std::size_t axis, const Operand& holder) const;
  void connect_operands();
  void share_memory();
  static void poison_unwritten(const Operand& output);
  std::size_t parameter_of(std::size_t mapping) const;
  bool stores_to(std::size_t mapping) const;
  std::string axis_name(std::size_t axis) const;
  std::string program_text(std::uint32_t program) const;

  std::deque<race::WriterMap> writers_;
  std::deque<race::ReaderMap> readers_;
};

}  // namespace palladium::interpreter
