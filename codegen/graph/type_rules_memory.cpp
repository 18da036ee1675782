// What views by subscripts and bitcasts, and accesses of memory, accept and give.
#include <cstdlib>

#include "codegen/graph/type_rule.hpp"

namespace palladium::graph::typing {
namespace {

// All index arrays have one shape, `of_all` once it is known.
void expect_indices(const Context& c, std::size_t arg, Extents& of_all, const std::string& where) {
  const Type& type = c.type(arg);
  if (!type.is_value() || type.dtype != i32 || type.shape.empty())
    c.fail("expected an array of i32 as the index of " + where + ", given " + text(type));
  if (of_all.empty()) of_all = type.shape;
  if (of_all != type.shape)
    c.fail("expected index arrays of one shape, given " + text(type) + " beside " +
           text(Type::value(i32, of_all)));
}

}  // namespace

// A slice that only a mask can keep inside.
void expect_inside(const Context& c, ValueId view) {
  for (; c.graph[view].op != Op::Param; view = c.graph[view].args[0]) {
    if (c.graph[view].op != Op::At) continue;
    const Type& from = c.graph[c.graph[view].args[0]].type;
    const Subscript subscript = Subscript::of(c.graph[view]);
    for (std::size_t i = 0; i < subscript.dims.size(); ++i) {
      const SubscriptDim& d = subscript.dims[i];
      if (!d.is_slice || !Subscript::leaves(d, from.shape[i])) continue;
      const std::string strided =
          d.stride == 1 ? std::string() : ", stride " + std::to_string(d.stride);
      c.fail("slice of " + (d.dynamic ? std::string() : "start " + std::to_string(d.start) + ", ") +
             "size " + std::to_string(d.size) + strided + " is out of bounds for dimension " +
             std::to_string(i) + " of " + text(from) + ": a mask may keep it inside");
    }
  }
}

void expect_own_block(const Context& c, ValueId view) {
  if (c.graph.peer(view) != no_value)
    c.fail(
        "memory of another block of the cluster is loaded and stored to, and no more, given a "
        "view by plgpu::cluster_ref");
}

namespace {

// Checks mask and `other` against the view and that args hold just what attr.ints says.
const Type& memory(const Context& c) {
  const Type& view = reference(c, 0);
  if (view.space == Space::semaphore)
    c.fail(text(view) + " is read by pl::semaphore_read, signalled and waited for");
  if (view.space == Space::barrier)
    c.fail(text(view) +
           " holds barriers, at which plgpu::barrier_arrive arrives, and for which "
           "plgpu::barrier_wait waits");
  const bool load = c.op == Op::Load, atomic = c.op == Op::Atomic;
  if (view.space == Space::accumulator &&
      (c.graph[c.args[0]].op != Op::Param || c.args.size() > (load ? 1u : 2u) ||
       (!load && c.op != Op::Store)))
    c.fail(text(view) + " is of an accumulator, which is read and stored as a whole");
  expect_ints(c, atomic ? 3 : 2);
  for (const std::int64_t flag : c.ints().first(2))
    if (flag != 0 && flag != 1) c.fail("expected flags 0 or 1, given " + text(c.ints()));
  const bool has_mask = c.ints()[0] != 0, has_other = c.ints()[1] != 0;
  if (has_other && !atomic && !(load && has_mask)) c.fail("expected a mask with `other`");
  if (!has_mask) expect_inside(c, c.args[0]);
  const std::size_t expected = 1 + !load + has_mask + has_other;
  if (c.args.size() != expected)
    c.fail("expected " + std::to_string(expected) + " operands, given " +
           std::to_string(c.args.size()));
  std::size_t next = 1;
  const Type stored = Type::value(view.dtype, view.shape);
  if (!load && c.graph.repeats(c.args[0])) c.fail("expected a view without a slice of stride 0");
  if (!load) {
    if (c.type(next).is_ref())
      c.fail("expected a value " + text(stored) + ", given " + text(c.type(next)) +
             "; to copy a Ref write o[_] = x[_]");
    if (!(c.type(next) == stored))
      c.fail("expected a value " + text(stored) + ", given " + text(c.type(next)));
    ++next;
  }
  if (has_mask) {
    const Type mask = Type::value(bool_, view.shape);
    if (!(c.type(next) == mask))
      c.fail("expected a mask " + text(mask) + ", given " + text(c.type(next)));
    ++next;
  }
  if (has_other && !(c.type(next) == stored))
    c.fail("expected `other` of type " + text(stored) + ", given " + text(c.type(next)));
  return view;
}

}  // namespace

Type rule_at(const Context& c) {
  const Type& from = reference(c, 0);
  const std::size_t rank = from.shape.size();
  if (c.ints().size() != 4 * rank)
    c.fail("expected one subscript per dimension of " + text(from) + ", given " +
           std::to_string(c.ints().size() / 4));
  for (std::size_t i = 0; i < rank; ++i)
    if ((c.ints()[4 * i] < 0 || c.ints()[4 * i] > 3) && c.ints()[4 * i] != 6)
      c.fail("a subscript is malformed");
  Inst inst;
  inst.attr = c.attr;
  const Subscript subscript = Subscript::of(inst);
  Type type = from;
  type.swizzle = 0;
  type.shape.clear();
  Extents arrays;
  bool everything = true;
  std::size_t next = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const SubscriptDim& d = subscript.dims[i];
    const std::int64_t extent = from.shape[i];
    const std::string where = "dimension " + std::to_string(i) + " of " + text(from);
    if (d.size < 1 || d.stride < 0)
      c.fail("expected a size of at least 1 and a stride of at least 0 in " + where +
             ", given size " + std::to_string(d.size) + " and stride " + std::to_string(d.stride));
    if (!d.is_slice && (d.size != 1 || d.stride != 1)) c.fail("an index has a size or a stride");
    if (d.size == 1 && d.stride != 1) c.fail("a slice of one element has a stride");
    // Masked accesses may leave the Ref; where they stand is an i32.
    if (d.size > INT32_MAX || d.stride > INT32_MAX || std::abs(d.start) > INT32_MAX ||
        (d.size - 1) * d.stride > INT32_MAX - d.start)
      c.fail("a slice in " + where + " reaches over 2^31");
    if (d.dynamic) {
      if (d.start != 0) c.fail("a dynamic start has a static part");
      if (next >= c.args.size()) c.fail("expected a start for each dynamic dimension");
      if (d.array)
        expect_indices(c, next++, arrays, where);
      else if (c.type(next).is_value() && !c.type(next).is_scalar())
        c.fail("an index must be a scalar, given " + text(c.type(next)) + " in " + where);
      else
        expect_scalar(c, next++, i32, "an index");
    } else if (!d.is_slice && (d.start < 0 || d.start >= extent)) {
      c.fail("index " + std::to_string(d.start) + " is out of bounds for " + where);
    }
    if (d.is_slice) type.shape.push_back(d.size);
    everything =
        everything && d.is_slice && !d.dynamic && d.start == 0 && d.size == extent && d.stride == 1;
  }
  if (next != c.args.size())
    c.fail("expected " + std::to_string(next - 1) + " dynamic starts, given " +
           std::to_string(c.args.size() - 1));
  if (everything) c.fail("a subscript that selects everything is no view");
  const std::size_t first = subscript.chosen(type.shape.size() + arrays.size()).first;
  type.shape.insert(type.shape.begin() + static_cast<std::ptrdiff_t>(first), arrays.begin(),
                    arrays.end());
  return type;
}

Type rule_ref_bitcast(const Context& c) {
  Type type = reference(c, 0);
  type.swizzle = 0;
  const DType to = c.given.dtype;
  if (to == DType()) c.fail("expected a dtype, given none");
  if (to.is_bool() || type.dtype.is_bool())
    c.fail("expected dtypes other than bool, given " + text(type) + " to " + to.name());
  if (to.bits() != type.dtype.bits()) {
    if (type.shape.empty() || (type.shape.back() * type.dtype.bits()) % to.bits() != 0)
      c.fail("expected a last dimension whose bytes are a multiple of those of " +
             std::string(to.name()) + ", given " + text(type));
    type.shape.back() = type.shape.back() * type.dtype.bits() / to.bits();
  }
  type.dtype = to;
  return type;
}

Type rule_ref_part(const Context& c) {
  expect_ints(c, 1);
  const Type &bytes = reference(c, 0), &part = c.given;
  if (bytes.space != Space::smem || bytes.dtype != u8 || bytes.shape.size() != 1 ||
      c.graph[c.args[0]].op != Op::Param)
    c.fail("expected bytes of SMEM, given " + text(bytes));
  if (!part.is_ref() || part.space != Space::smem)
    c.fail("expected a Ref in SMEM within them, given " + text(part));
  const std::int64_t offset = c.ints()[0];
  const std::int64_t end = offset + element_count(part.shape) * part.dtype.bits() / 8;
  if (offset < 0 || offset % union_alignment != 0 || end > bytes.shape[0])
    c.fail(text(part) + " from byte " + std::to_string(offset) + " on does not lie in " +
           text(bytes) + ", from a multiple of " + std::to_string(union_alignment));
  return part;
}

Type rule_ref_peer(const Context& c) {
  const Type& of = reference(c, 0);
  if (of.space != Space::smem)
    c.fail("expected a Ref in SMEM, which alone blocks of a cluster see of each other, given " +
           text(of));
  expect_own_block(c, c.args[0]);
  expect_scalar(c, 1, i32, "the rank of the block");
  Type type = of;
  type.swizzle = 0;
  return type;
}

Type rule_load(const Context& c) {
  const Type& view = memory(c);
  return Type::value(view.dtype, view.shape);
}

Type rule_store(const Context& c) {
  memory(c);
  return Type::none();
}

Type rule_swap(const Context& c) { return rule_load(c); }

Type rule_atomic(const Context& c) {
  const Type type = rule_load(c);
  const std::int64_t how = c.ints()[2];
  if (how < 0 || how >= num_updates) c.fail("there is no update " + std::to_string(how));
  const Update update{how};
  const bool is_peer = c.graph.peer(c.args[0]) != no_value;
  if (is_peer && (update > Update::bit_xor || !type.dtype.is_integer() || type.dtype.bytes() < 4))
    c.fail(
        "memory of another block of the cluster takes atomic_add, _max, _min, _and, _or and "
        "_xor of i32, u32, i64 and u64, given " +
        std::string(name_of(update)) + " of " + type.dtype.name());
  if (update > Update::compare && memory(c).space != Space::gmem)
    c.fail(std::string(name_of(update)) + " is of arrays in global memory");
  if (!updates(update, type.dtype))
    c.fail(std::string(name_of(update)) + " does not support " + type.dtype.name() + ", but " +
           dtypes_of(update));
  if ((update == Update::compare) != (c.ints()[1] != 0))
    c.fail("expected a value to compare with for atomic_cas alone");
  return type;
}

}  // namespace palladium::graph::typing
