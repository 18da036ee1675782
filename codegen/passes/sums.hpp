// Integers of a graph as sums over program ids and coordinates, and conditions on them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "codegen/passes/coordinates.hpp"

namespace palladium::passes {

class Sums {
 public:
  using ProgramId = std::function<thread::ExprId(int axis)>;
  using Symbol = std::function<thread::ExprId(std::uint32_t symbol)>;
  Sums(const graph::Graph& g, thread::Exprs& exprs, ProgramId program_id, Symbol symbol)
      : g_(g), e_(exprs), program_id_(std::move(program_id)), symbol_(std::move(symbol)) {}

  /// Of the element at `c` of a value; nothing where it is no such sum, or where its type may not
  /// hold it.
  std::optional<thread::Affine> of(ValueId v, const Coordinates& c);
  /// Where the block of a program begins along dimension d.
  std::optional<thread::Affine> start(const BlockMapping& m, int d);

  /// Sums that are all not negative exactly where a condition holds. What never is negative is none
  /// of them.
  using Conditions = std::vector<thread::Affine>;
  /// Of the element at `c` of a value of bools.
  std::optional<Conditions> of_condition(ValueId v, const Coordinates& c);
  /// That the element at `c` of a view of a block in global memory lies in its array.
  std::optional<Conditions> of_bounds(const Window& w, ValueId view, const Coordinates& c);
  /// That all of a block does.
  std::optional<Conditions> of_whole_block(const Window& w);

  /// Where the element at `c` of a view stands in the block that its root shows.
  std::optional<Coordinates> in_block(ValueId view, Coordinates c);

  /// Whether `sum` is not negative where none of these is.
  bool follows(const thread::Affine& sum, const Conditions& from) const;

 private:
  std::optional<thread::Affine> of(ValueId v, const Coordinates& c, int depth);
  std::optional<Coordinates> of_operand(ValueId v, const Coordinates& c) const;
  std::optional<thread::Affine> checked(DType t, thread::Affine sum) const;
  bool add_bounds(const BlockMapping& m, int d, const thread::Affine& first,
                  const thread::Affine& last, Conditions& found);
  std::optional<thread::Affine> of_extent(const Dim& d) const;
  void add(thread::Affine sum, Conditions& found) const;

  const graph::Graph& g_;
  thread::Exprs& e_;
  ProgramId program_id_;
  Symbol symbol_;
  std::span<const ValueId> map_params_ = {};  // of the index map that is looked at
};

}  // namespace palladium::passes
