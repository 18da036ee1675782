// Where each value of a graph lives while a Pallas thread runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::interpreter {

/// Shapes are static, so every value has a fixed place in its thread's frame; places are used again
/// after a value's last use. The regions of bodies and of index maps are placed on their own: they
/// run in different frames, or one after the other.
class Plan {
 public:
  /// Of the frame and of each place in it.
  static constexpr std::size_t alignment = 64;

  explicit Plan(const graph::Graph& g);

  const graph::Graph& graph() const { return graph_; }
  /// Byte offset in the frame.
  std::size_t place(graph::ValueId v) const { return places_[graph::index(v)]; }
  std::int64_t count(graph::ValueId v) const { return counts_[graph::index(v)]; }
  std::size_t bytes(graph::ValueId v) const {
    return static_cast<std::size_t>(count(v)) * graph_[v].type.dtype.bytes();
  }
  std::size_t frame_bytes() const { return frame_bytes_; }
  /// How many regions lie inside each other.
  std::size_t depth() const { return depth_; }

  /// A loop's carry `to` takes yield `from`, through `stage` where `from` is another carry, which
  /// must be read before it changes.
  struct CarryCopy {
    graph::ValueId from, to;
    bool staged = false;
    std::size_t stage = 0;
  };
  const std::vector<CarryCopy>& carry_copies(graph::ValueId loop) const {
    return carry_copies_[loop_number_[graph::index(loop)]];
  }

 private:
  class Placement;
  const graph::Graph& graph_;
  std::vector<std::size_t> places_;
  std::vector<std::int64_t> counts_;
  std::vector<std::uint32_t> loop_number_;
  std::vector<std::vector<CarryCopy>> carry_copies_;
  std::size_t frame_bytes_ = 0, depth_ = 0;
};

}  // namespace palladium::interpreter
