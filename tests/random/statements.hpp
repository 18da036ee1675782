// The statements of a random body while they are recorded, each defined whatever its operands are.
//
// What they compute is exact, so that both targets must agree in every bit but those of NaNs and of
// the sign of zeros: sums and products get small whole numbers. No call here has two arguments that
// draw: compilers evaluate them in different orders.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/random/plan.hpp"

namespace palladium::test::random_calls {

class Statements {
 public:
  Statements(const Plan& plan, const Parts& parts);
  void run();

 private:
  void load_some();
  void initialise(std::size_t i);
  void finish(std::size_t i);
  void statement(int depth);
  void keep(const Value& v) { values_.push_back(v); }

  // ---- their operands

  DType dtype();
  Value some();
  Value leaf();
  /// A value of that dtype and shape made of `v`.
  Value coerced(Value v, DType d, const Shape& shape);
  /// Small whole numbers, so that their sums and products are exact in any order.
  Value small(const Value& v, DType d);
  /// 0 .. limit, whatever the value is.
  Value index_up_to(std::int64_t limit);
  /// The same, and sometimes a multiple of something that it is said to be.
  Value start_up_to(std::int64_t limit);
  Value condition();

  // ---- values.cpp

  Value unary(const Value& v);
  Value binary();
  Value select();
  Value moved(const Value& v);
  /// Elements of `v` elsewhere.
  Value elsewhere(const Value& v);
  /// Along a dimension of its own, so that something is left.
  Value padded(const Value& v);
  /// Elements that arrays of numbers name, some out of bounds.
  Value named(const Value& v);
  /// By updates whose order changes nothing.
  Value changed(const Value& v);
  Value reduced(const Value& v);
  Value product();

  // ---- accesses.cpp

  /// A part of `ref`, which is never empty. What is stored to has no element twice.
  Ref view(const Ref& ref, bool repeats);
  Ref chosen(const Ref& ref, bool repeats);
  /// A row of `ref` from somewhere before or behind it on, of which the mask keeps what exists.
  Value beyond(const Ref& ref);
  MaybeValue mask(const Shape& shape);
  Value load();
  /// An input at several offsets, by a sum or a maximum.
  Value neighbours();
  /// Where elements of the block of an input lie in its array, or nearly so.
  Value in_array(int input, const std::vector<std::int64_t>& from,
                 const std::vector<std::int64_t>& size);
  void store();
  void swapped();
  /// In ways whose result no order changes. What was there depends on it.
  void updated();

  // ---- regions.cpp

  /// Statements in a region, whose values stay there.
  void inside(int depth);
  void when_(int depth);
  void loop_(int depth);
  /// A carry counts, so that there is an end.
  void while_(int depth);
  /// Memory of its own, which is written first.
  void scope(int depth);
  void choose(int depth);

  Random random_;
  const Plan& plan_;
  const Parts& parts_;
  std::vector<const Ref*> readable_, writable_;
  std::vector<Value> values_;
};

}  // namespace palladium::test::random_calls
