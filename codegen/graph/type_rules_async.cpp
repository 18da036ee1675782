// What operations on barriers and asynchronous copies accept.
#include <algorithm>
#include <string>

#include "codegen/graph/type_rule.hpp"

namespace palladium::graph::typing {
namespace {

// Of an array of barriers, and which of them.
void expect_barrier(const Context& c, std::size_t operand) {
  const Type& all = reference(c, operand);
  if (all.space != Space::barrier)
    c.fail("expected a barrier as " + operand_name(c, operand) + ", given " + text(all) +
           "; barriers are scratch of a plgpu::kernel, plgpu::Barrier()");
  if (c.graph[c.args[operand]].op != Op::Param)
    c.fail("expected all barriers of an array and the number of one, given a view");
  expect_scalar(c, operand + 1, i32, "the number of the barrier");
}

// Slices, and no more, of which those leave the array that are of all of it.
void expect_beyond(const Context& c, ValueId view) {
  for (; c.graph[view].op != Op::Param; view = c.graph[view].args[0]) {
    if (c.graph[view].op != Op::At)
      c.fail("of a copy that may leave its array expected indices and slices alone, given " +
             std::string(info(c.graph[view].op).name));
    const ValueId of = c.graph[view].args[0];
    const Extents& from = c.graph[of].type.shape;
    const std::vector<SubscriptDim> dims = Subscript::of(c.graph[view]).dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].is_slice && dims[d].stride != 1)
        c.fail("of a copy that may leave its array expected slices of stride 1, given " +
               std::to_string(dims[d].stride));
      if (!dims[d].dynamic && Subscript::leaves(dims[d], from[d]) && !c.graph.is_whole(of, d))
        c.fail("a slice leaves dimension " + std::to_string(d) + " of " + text(c.graph[of].type) +
               ", which is a part of the array: what lies beyond it is no end of the array");
    }
  }
}

// Of shared memory, and of an array in global memory; neither says anything of its elements twice.
void expect_copied(const Context& c, Beyond beyond = Beyond::none) {
  const Type &global = reference(c, 0), &shared = reference(c, 1);
  const bool is_array = global.space == Space::gmem || global.space == Space::automatic;
  if (!is_array) c.fail("expected a Ref in GMEM, given " + text(global));
  if (shared.space != Space::smem) c.fail("expected a Ref in SMEM, given " + text(shared));
  const bool brings = c.op == Op::CopyToShared || c.op == Op::FetchToShared;
  const Type &source = brings ? global : shared, &destination = brings ? shared : global;
  if (source.dtype != destination.dtype)
    c.fail("expected dtypes to match, given a source " + text(source) + " and a destination " +
           text(destination));
  if (source.shape != destination.shape)
    c.fail("expected source shape to be " + text(destination.shape) +
           " as the destination's, given " + text(source.shape));
  for (std::size_t i = 0; i < 2; ++i) {
    if (i == 0 && beyond != Beyond::none)
      expect_beyond(c, c.args[i]);
    else
      expect_inside(c, c.args[i]);
    expect_own_block(c, c.args[i]);
    if (c.graph.chooses(c.args[i])) c.fail("expected a view without index arrays");
    if (c.graph.repeats(c.args[i])) c.fail("expected a view without a slice of stride 0");
  }
}

}  // namespace

Type rule_barrier(const Context& c) {
  const bool says_turn = c.op == Op::BarrierWait && !c.ints().empty();
  expect_ints(c, says_turn ? 1 : 0);
  if (says_turn && c.ints()[0] != wait_in_turn)
    c.fail("there is no way " + std::to_string(c.ints()[0]) + " to wait");
  expect_barrier(c, 0);
  if (c.op == Op::BarrierArrive && c.args.size() > 2)
    expect_scalar(c, 2, i32, "the rank of the block");
  return c.op == Op::BarrierTest ? Type::value(bool_) : Type::none();
}

Type rule_copy_to_shared(const Context& c) {
  if (!c.ints().empty()) expect_ints(c, std::min<std::size_t>(c.ints().size(), 2));
  const std::int64_t axes = c.ints().empty() ? 0 : c.ints()[0];
  const std::int64_t beyond = c.ints().size() > 1 ? c.ints()[1] : 0;
  if (beyond < 0 || beyond > static_cast<std::int64_t>(Beyond::zeros))
    c.fail("there is no way " + std::to_string(beyond) + " to bring what is out of bounds");
  if (axes < 0 || axes >> c.graph.cluster.size() != 0)
    c.fail("expected a bit for each of " + std::to_string(c.graph.cluster.size()) +
           " cluster axes, given " + std::to_string(axes));
  expect_copied(c, Beyond{static_cast<std::uint8_t>(beyond)});
  expect_barrier(c, 2);
  const std::int64_t blocks = blocks_along(c.graph, axes);
  if (c.args.size() == 4 && divided_among(c.type(1).shape, blocks) < 0)
    c.fail(std::to_string(blocks) + " blocks cannot share a copy of " + text(c.type(1)) +
           ": no extent is a multiple of " + std::to_string(blocks));
  if (c.args.size() > 4) expect_scalar(c, 4, i32, "the blocks that it fills");
  return Type::none();
}

Type rule_copy_to_global(const Context& c) {
  const bool drops = !c.ints().empty();
  expect_ints(c, drops ? 1 : 0);
  if (drops && c.ints()[0] != static_cast<std::int64_t>(Beyond::dropped))
    c.fail("what is out of bounds is dropped, or is not there, given " + text(c.ints()));
  expect_copied(c, drops ? Beyond::dropped : Beyond::none);
  return Type::none();
}

Type rule_reduce_to_global(const Context& c) {
  expect_ints(c, 3);
  expect_copied(c);
  const std::int64_t how = c.ints()[2];
  const Update update{how};
  if (how < 0 || how >= num_updates || update == Update::exchange || update == Update::compare)
    c.fail("there is no reduction " + std::to_string(how));
  if (const DType dtype = c.type(0).dtype; !updates(update, dtype))
    c.fail(std::string(name_of(update)) + " does not support " + dtype.name() + ", but " +
           dtypes_of(update));
  return Type::none();
}

Type rule_fetch_to_shared(const Context& c) {
  expect_ints(c, 0);
  expect_copied(c);
  return Type::none();
}

Type rule_await_fetches(const Context& c) {
  expect_ints(c, 1);
  if (c.ints()[0] < 0 || c.ints()[0] > INT32_MAX)
    c.fail("expected 0 or more copies, given " + std::to_string(c.ints()[0]));
  return Type::none();
}

Type rule_prefetch(const Context& c) {
  expect_ints(c, 0);
  const Type& type = reference(c, 0);
  if (type.space != Space::gmem && type.space != Space::automatic)
    c.fail("expected a Ref in GMEM, given " + text(type));
  expect_inside(c, c.args[0]);
  if (c.graph.chooses(c.args[0])) c.fail("expected a view without index arrays");
  return Type::none();
}

Type rule_commit_shared(const Context& c) {
  expect_ints(c, 0);
  return Type::none();
}

Type rule_close_copies(const Context& c) {
  expect_ints(c, 0);
  return Type::none();
}

Type rule_await_copies(const Context& c) {
  expect_ints(c, 2);
  if (c.ints()[0] < 0 || c.ints()[0] > INT32_MAX)
    c.fail("expected 0 or more groups, given " + std::to_string(c.ints()[0]));
  if (c.ints()[1] != 0 && c.ints()[1] != 1)
    c.fail("expected a flag 0 or 1, given " + text(c.ints()));
  return Type::none();
}

Type rule_set_max_registers(const Context& c) {
  expect_ints(c, 2);
  const std::int64_t n = c.ints()[0];
  if (n < 24 || n > 256 || n % 8 != 0)
    c.fail("expected a multiple of 8 registers, from 24 to 256, given " + std::to_string(n));
  if (c.ints()[1] != 0 && c.ints()[1] != 1)
    c.fail("expected a flag 0 or 1, given " + text(c.ints()));
  return Type::none();
}

Type rule_grid_dependency(const Context& c) {
  expect_ints(c, 0);
  return Type::none();
}

}  // namespace palladium::graph::typing
