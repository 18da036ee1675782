// The scalars of a graph that say which way a Pallas thread goes through it, and what it touches.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/lowered/protocol_walk.hpp"

namespace palladium::lowered::hand {

using graph::ValueId;

/// What is asked of a graph again and again, by instruction.
struct Facts {
  explicit Facts(const graph::Graph& g);
  std::vector<bool> deciding;                // as below
  std::vector<graph::Subscript> subscripts;  // of views that choose
  std::vector<std::vector<ValueId>> views;   // of a Ref, from its root on
};

/// By instruction: integers and bools that conditions, numbers of iterations, indices and numbers
/// of barriers are made of, through carries and results.
std::vector<bool> deciding(const graph::Graph& g);

/// Where a thread of a block stands; the block in its cluster, where all of that are looked at; and
/// a warp in the thread, where each does something for itself.
struct Position {
  int thread = 0, threads = 1;
  int block = -1;
  int warp = -1;
};

/// What these are in one thread, on one way. What a call alone knows is one of a few numbers, each
/// on a way of its own, and all that follows from it goes with it.
class Numbers {
 public:
  Numbers(const graph::Graph& g, const Facts& facts, protocol::Answers& answers, const Position& at)
      : g_(g), deciding_(facts.deciding), answers_(answers), at_(at), bits_(g.insts.size()) {}

  bool decides(ValueId v) const { return deciding_[graph::index(v)]; }
  /// Of an instruction without regions, whose operands are known.
  void compute(ValueId v, int iteration);
  std::int64_t of(ValueId v) const { return graph::to_int(g_[v].type.dtype, bits(v)); }
  std::uint64_t bits(ValueId v) const { return bits_[graph::index(v)]; }
  void set(ValueId v, std::uint64_t bits) { bits_[graph::index(v)] = bits; }
  void set_number(ValueId v, std::int64_t n) { set(v, graph::to_bits(g_[v].type.dtype, n)); }

  /// What nobody knows before it is loaded: the same for all who load it from there.
  void suppose(ValueId v, std::vector<int> question);
  /// What was supposed of data, or of arguments, on this way; no_value: nothing.
  ValueId supposed() const { return supposed_; }

 private:
  std::optional<std::int64_t> position(const graph::Inst& inst);
  std::int64_t programs(int axis);

  const graph::Graph& g_;
  const std::vector<bool>& deciding_;
  protocol::Answers& answers_;
  const Position& at_;
  std::vector<std::uint64_t> bits_;
  ValueId supposed_ = graph::no_value;
};

}  // namespace palladium::lowered::hand
