// What slices, concatenations and choices by number accept and give.
#include <cstdlib>

#include "codegen/graph/type_rule.hpp"

namespace palladium::graph::typing {
namespace {

// The operands from `first` on are a start for each dimension of the value.
void expect_starts(const Context& c, std::size_t first, const Type& of) {
  if (c.args.size() - first != of.shape.size())
    c.fail("expected a start for each dimension of " + text(of) + ", given " +
           std::to_string(c.args.size() - first));
  for (std::size_t i = first; i < c.args.size(); ++i) expect_scalar(c, i, i32, "a start");
}

void expect_fits(const Context& c, const Extents& part, const Type& whole) {
  bool fits = part.size() == whole.shape.size();
  for (std::size_t d = 0; fits && d < part.size(); ++d)
    fits = part[d] >= 1 && part[d] <= whole.shape[d];
  if (!fits) c.fail("a part of shape " + text(part) + " does not fit into " + text(whole));
}

}  // namespace

Type rule_slice(const Context& c) {
  Type type = value(c, 0);
  const std::size_t rank = type.shape.size();
  expect_ints(c, 2 * rank);
  if (c.given.shape.size() != rank)
    c.fail("expected a shape of " + std::to_string(rank) + " dimensions for " + text(type) +
           ", given " + text(c.given.shape));
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t extent = type.shape[d], size = c.given.shape[d];
    const std::int64_t start = c.ints()[d], stride = c.ints()[rank + d];
    const std::int64_t most = stride > 0 ? extent - 1 - start : start;  // towards the far end
    const bool fits = size >= 1 && stride != 0 && stride >= -extent && stride <= extent &&
                      start >= 0 && start < extent && size - 1 <= most / std::abs(stride);
    if (!fits)
      c.fail("slice of start " + std::to_string(start) + ", size " + std::to_string(size) +
             ", stride " + std::to_string(stride) + " is out of bounds for dimension " +
             std::to_string(d) + " of " + text(type));
    type.shape[d] = size;
  }
  return type;
}

Type rule_concatenate(const Context& c) {
  Type type = value(c, 0);
  expect_ints(c, 1);
  const std::int64_t along = c.ints()[0];
  if (along < 0 || along >= static_cast<std::int64_t>(type.shape.size()))
    c.fail("expected a dimension of " + text(type) + ", given " + std::to_string(along));
  for (std::size_t i = 1; i < c.args.size(); ++i) {
    Type other = value(c, i);
    const bool same_rank = other.shape.size() == type.shape.size();
    const std::int64_t more = same_rank ? other.shape[along] : 0;
    if (same_rank) other.shape[along] = type.shape[along];
    if (!(other == type))
      c.fail("expected operands of one dtype, and of one shape but for dimension " +
             std::to_string(along) + ", given " + operands(c));
    type.shape[along] += more;
  }
  return type;
}

Type rule_dynamic_slice(const Context& c) {
  const Type& from = value(c, 0);
  expect_starts(c, 1, from);
  expect_fits(c, c.given.shape, from);
  return Type::value(from.dtype, c.given.shape);
}

Type rule_dynamic_update(const Context& c) {
  const Type& whole = value(c, 0);
  const Type& part = value(c, 1);
  if (part.dtype != whole.dtype) c.fail("expected operands of one dtype, given " + operands(c));
  expect_fits(c, part.shape, whole);
  expect_starts(c, 2, whole);
  return whole;
}

Type rule_take_along(const Context& c) {
  const Type& from = value(c, 0);
  const Type& indices = value(c, 1);
  expect_ints(c, 1);
  const std::int64_t along = c.ints()[0];
  if (along < 0 || along >= static_cast<std::int64_t>(from.shape.size()))
    c.fail("expected a dimension of " + text(from) + ", given " + std::to_string(along));
  bool same = indices.dtype == i32 && indices.shape.size() == from.shape.size();
  for (std::size_t d = 0; same && d < from.shape.size(); ++d)
    same = static_cast<std::int64_t>(d) == along || indices.shape[d] == from.shape[d];
  if (!same)
    c.fail("expected indices i32 of the operand's shape but for dimension " +
           std::to_string(along) + ", given " + operands(c));
  return Type::value(from.dtype, indices.shape);
}

}  // namespace palladium::graph::typing
