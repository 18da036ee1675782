// Where each value of a graph lives while a Pallas thread runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::interpreter {

class Frame;
/// What an instruction does to a frame.
using Eval = void(Frame& f, graph::ValueId v, const graph::Inst& inst);

/// Shapes are static, so every value has a fixed place in its thread's frame; places are used again
/// after a value's last use. Small constants have places of their own, which hold them from the
/// start. The regions of bodies and of index maps are placed on their own: they
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
  /// Whether somebody reads the value.
  bool is_used(graph::ValueId v) const { return is_used_[graph::index(v)]; }
  std::span<const graph::ValueId> constants() const { return constants_; }
  /// Of each region in order: all but those constants.
  struct Step {
    Eval* eval;
    const graph::Inst* inst;
    graph::ValueId v;
  };
  std::span<const Step> steps(graph::RegionId region) const {
    return steps_[graph::index(region)];
  }
  /// How many regions lie inside each other.
  std::size_t depth() const { return depth_; }

  /// A carry, or a result, at `to` takes what a region yields, through `stage` where that is
  /// another carry, which must be read before it changes.
  struct Handing {
    graph::ValueId from;
    std::size_t to = 0;
    bool staged = false;
    std::size_t stage = 0;
  };
  /// What a region of `v`, a loop or a switch, hands on when it ends.
  const std::vector<Handing>& handed_on(graph::ValueId v, std::size_t region) const {
    return results_[number_[graph::index(v)]].handed_on[region];
  }
  /// Where result `i` of `v` lies.
  std::size_t result(graph::ValueId v, std::size_t i) const {
    return results_[number_[graph::index(v)]].places[i];
  }
  /// Of a Load, Store, Swap or Atomic.
  const graph::MemoryView& memory(graph::ValueId v) const {
    return memories_[number_[graph::index(v)]];
  }
  /// Of an At.
  const graph::Subscript& subscript(graph::ValueId v) const {
    return subscripts_[number_[graph::index(v)]];
  }

 private:
  class Placement;
  const graph::Graph& graph_;
  std::vector<std::size_t> places_;
  std::vector<std::int64_t> counts_;
  std::vector<bool> is_used_;
  struct Results {
    std::vector<std::size_t> places;
    std::vector<std::vector<Handing>> handed_on;  // by region
  };
  bool is_kept(graph::ValueId v) const;
  void place_constants();
  void place_arrays();
  void decode(graph::ValueId v);

  std::vector<graph::ValueId> constants_;
  std::vector<std::vector<Step>> steps_;
  // Per instruction, its number in that of the following which its kind has.
  std::vector<std::uint32_t> number_;
  std::vector<Results> results_;
  std::vector<graph::MemoryView> memories_;
  std::vector<graph::Subscript> subscripts_;
  std::size_t constant_bytes_ = 0;  // at the front of the frame
  std::size_t frame_bytes_ = 0, depth_ = 0;
};

}  // namespace palladium::interpreter
