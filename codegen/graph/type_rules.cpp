// What each op accepts and gives: one function per type rule of ops.def.
#include <algorithm>
#include <string>

#include "codegen/graph/debug.hpp"
#include "codegen/graph/grid_env.hpp"
#include "codegen/graph/type_rule.hpp"

namespace palladium::graph {
namespace typing {

std::string text(const Type& type) {
  return type.kind == Type::Kind::none ? "an instruction without a value" : to_string(type);
}

std::string text(std::span<const std::int64_t> ints) {
  std::string list = "[";
  for (std::size_t i = 0; i < ints.size(); ++i) list += (i ? "," : "") + std::to_string(ints[i]);
  return list + "]";
}

// "f32[4] and i32[4]"
std::string operands(const Context& c) {
  std::string list;
  for (std::size_t i = 0; i < c.args.size(); ++i)
    list += (i == 0 ? "" : i + 1 == c.args.size() ? " and " : ", ") + text(c.type(i));
  return list;
}

std::string operand_name(const Context& c, std::size_t i) {
  const std::uint32_t id = index(c.args[i]);
  const bool named = id < c.graph.names.size() && !c.graph.names[id].empty();
  return "operand " + std::to_string(i) + (named ? " (" + c.graph.names[id] + ")" : "");
}

const Type& value(const Context& c, std::size_t i) {
  const Type& type = c.type(i);
  if (type.is_ref())
    c.fail("expected a value as " + operand_name(c, i) + ", given " + text(type) +
           "; did you forget to load it: x[_] ?");
  if (!type.is_value())
    c.fail("expected a value as " + operand_name(c, i) + ", given " + text(type));
  return type;
}

const Type& reference(const Context& c, std::size_t i) {
  if (!c.type(i).is_ref())
    c.fail("expected a Ref as " + operand_name(c, i) + ", given " + text(c.type(i)));
  return c.type(i);
}

void expect_scalar(const Context& c, std::size_t i, DType dtype, const char* role) {
  if (!(c.type(i) == Type::value(dtype)))
    c.fail(std::string("expected ") + dtype.name() + "[] as " + role + ", given " +
           text(c.type(i)));
}

void expect_ints(const Context& c, std::size_t n) {
  if (c.ints().size() != n)
    c.fail("expected " + std::to_string(n) + " integers as attributes, given " +
           std::to_string(c.ints().size()));
}

}  // namespace typing

namespace {

using namespace typing;

// All operands are values of one dtype and shape.
const Type& uniform(const Context& c) {
  const Type& first = value(c, 0);
  for (std::size_t i = 1; i < c.args.size(); ++i)
    if (!(value(c, i) == first))
      c.fail("expected operands of one dtype and shape, given " + operands(c));
  return first;
}

void expect_arithmetic(const Context& c, const Type& type) {
  if (!is_computed(type.dtype))
    c.fail(std::string("expected operands converted to ") + computed_as(type.dtype).name() +
           ", as which " + type.dtype.name() + " is computed, given " + operands(c));
}

// The same of a dtype that has arithmetic.
const Type& computed(const Context& c) {
  const Type& type = uniform(c);
  expect_arithmetic(c, type);
  return type;
}

Type rule_given(const Context& c) {
  if (c.op == Op::Cast) {
    const Type& from = value(c, 0);
    if (c.given.dtype == DType()) c.fail("expected a dtype to convert to, given none");
    return Type::value(c.given.dtype, from.shape);
  }
  if (c.given.kind == Type::Kind::none || c.given.dtype == DType())
    c.fail("expected a type, given none");
  if (c.op == Op::Param) return c.given;
  if (!c.given.is_value()) c.fail("expected the type of a value, given " + text(c.given));
  if (c.op == Op::Constant) {
    const int bits = c.given.dtype.bits();
    const bool fits = bits == 64 || c.attr.bits >> bits == 0;
    if (!fits || (c.given.dtype.is_bool() && c.attr.bits > 1))
      c.fail("expected a number of dtype " + std::string(c.given.dtype.name()) +
             ", given bits beyond it");
  }
  if (c.op == Op::Iota) {
    expect_ints(c, 1);
    if (c.ints()[0] < 0 || c.ints()[0] >= static_cast<std::int64_t>(c.given.shape.size()))
      c.fail("expected a dimension of " + text(c.given) + ", given " + std::to_string(c.ints()[0]));
    if (c.given.dtype.is_bool()) c.fail("expected a number's dtype, given bool");
    if (!is_computed(c.given.dtype))
      c.fail(std::string("expected ") + computed_as(c.given.dtype).name() + " to count in, given " +
             text(c.given));
  }
  return c.given;
}

Type rule_bitcast(const Context& c) {
  const Type& from = value(c, 0);
  const DType to = c.given.dtype;
  if (to == DType()) c.fail("expected a dtype, given none");
  if (to.is_bool() || from.dtype.is_bool())
    c.fail("expected dtypes other than bool, given " + text(from) + " to " + to.name());
  if (to.bits() != from.dtype.bits())
    c.fail("expected a dtype of " + std::to_string(from.dtype.bits()) + " bits for " + text(from) +
           ", given " + to.name());
  return Type::value(to, from.shape);
}

Type rule_dim_value(const Context& c) {
  expect_ints(c, 1);
  if (c.ints()[0] < 0) c.fail("expected a symbol's number, given " + text(c.ints()));
  return Type::value(i32);
}

Type rule_index(const Context& c) {
  const bool of_program = c.op == Op::ProgramId || c.op == Op::NumPrograms;
  expect_ints(c, of_program ? 1 : 2);
  const std::int64_t axis = c.ints().back();
  std::size_t axes = std::max(c.graph.mapping.grid.size(), num_visible_axes(c.graph));
  const char* kind = "grid";
  if (!of_program) switch (static_cast<AxisKind>(c.ints()[0])) {
    case AxisKind::grid: break;
    case AxisKind::cluster:
      axes = c.graph.cluster.size();
      kind = "cluster";
      break;
    case AxisKind::thread:
      axes = 1;
      kind = "thread";
      break;
    case AxisKind::warp:
      axes = 1;
      kind = "warp";
      break;
    default: c.fail("expected a grid, cluster, thread or warp axis, given kind " + text(c.ints()));
    }
  if (axis < 0 || static_cast<std::size_t>(axis) >= axes)
    c.fail("expected a " + std::string(kind) + " axis below " + std::to_string(axes) + ", given " +
           std::to_string(axis));
  return Type::value(i32);
}

Type rule_same(const Context& c) {
  const Type& type = computed(c);
  if (c.op == Op::Fma && !type.dtype.is_float())
    c.fail("expected floating-point operands, given " + operands(c));
  // For bool, max and min are or and and.
  if (type.dtype.is_bool() && c.op != Op::Max && c.op != Op::Min)
    c.fail("expected numbers, given " + operands(c));
  return type;
}

Type rule_bits(const Context& c) {
  const Type& type = uniform(c);
  if (type.dtype.is_float()) c.fail("expected integers or bools, given " + operands(c));
  expect_arithmetic(c, type);
  return type;
}

Type rule_integers(const Context& c) {
  const Type& type = uniform(c);
  if (!type.dtype.is_integer()) c.fail("expected integers, given " + operands(c));
  expect_arithmetic(c, type);
  return type;
}

Type rule_hint(const Context& c) {
  const Type type = rule_integers(c);
  const bool of_scalars = c.op == Op::MultipleOf;
  if (type.shape.empty() && !of_scalars)
    c.fail("expected a value of at least one dimension, given " + text(type));
  const std::size_t expected = std::max<std::size_t>(type.shape.size(), 1);
  if (c.ints().size() != expected)
    c.fail("expected " + (expected == 1 ? "one number" : std::to_string(expected) + " numbers") +
           " for " + text(type) + (type.shape.empty() ? "" : ", one per dimension") + ", given " +
           text(c.ints()));
  for (const std::int64_t n : c.ints())
    if (n < 1) c.fail("expected numbers from 1, given " + text(c.ints()));
  return type;
}

Type rule_floating(const Context& c) {
  const Type& type = computed(c);
  if (!type.dtype.is_float()) c.fail("expected floating-point operands, given " + operands(c));
  return type;
}

Type rule_predicate(const Context& c) {
  const Type& type = computed(c);
  if (c.op == Op::IsFinite && !type.dtype.is_float())
    c.fail("expected a floating-point operand, given " + operands(c));
  return Type::value(bool_, type.shape);
}

Type rule_select(const Context& c) {
  const Type& condition = value(c, 0);
  const Type& type = value(c, 1);
  if (!(value(c, 2) == type))
    c.fail("expected two choices of one dtype and shape, given " + operands(c));
  if (!(condition == Type::value(bool_, type.shape)))
    c.fail("expected a condition " + text(Type::value(bool_, type.shape)) + ", given " +
           text(condition));
  return type;
}

// Checked here because the products of element_count must not overflow before they are compared.
void check_shape(const Context& c, const Type& type) {
  if (type.shape.size() > Shape::max_rank)
    c.fail("expected at most " + std::to_string(Shape::max_rank) + " dimensions, given " +
           text(type));
  const std::int64_t most = type.is_ref() ? std::int64_t(1) << 47 : (std::int64_t(1) << 31) - 1;
  std::int64_t count = 1;
  for (const std::int64_t extent : type.shape) {
    if (extent < 1) c.fail("expected extents of at least 1, given " + text(type));
    if (type.is_ref() && extent == unknown_extent) continue;
    if (extent > most / count)
      c.fail("expected at most " + std::to_string(most) + " elements, given " + text(type));
    count *= extent;
  }
}

Type reshaped(const Context& c, Type type) {
  type.shape = c.given.shape;
  type.swizzle = 0;
  check_shape(c, type);
  if (element_count(type.shape) != element_count(c.type(0).shape))
    c.fail("expected a shape of " + std::to_string(element_count(c.type(0).shape)) +
           " elements for " + text(c.type(0)) + ", given " + text(c.given.shape));
  return type;
}

Type transposed(const Context& c, Type type) {
  const Extents from = type.shape;
  type.swizzle = 0;
  std::vector<bool> seen(from.size());
  bool permutation = c.ints().size() == from.size();
  for (std::size_t i = 0; permutation && i < from.size(); ++i) {
    const std::int64_t d = c.ints()[i];
    permutation = d >= 0 && d < static_cast<std::int64_t>(from.size()) && !seen[d];
    if (!permutation) break;
    seen[d] = true;
    type.shape[i] = from[d];
  }
  if (!permutation)
    c.fail("expected a permutation of the " + std::to_string(from.size()) + " dimensions of " +
           text(c.type(0)) + ", given " + text(c.ints()));
  return type;
}

Type rule_reshape(const Context& c) { return reshaped(c, value(c, 0)); }
Type rule_transpose(const Context& c) { return transposed(c, value(c, 0)); }
Type rule_ref_reshape(const Context& c) { return reshaped(c, reference(c, 0)); }
Type rule_ref_transpose(const Context& c) { return transposed(c, reference(c, 0)); }

Type rule_broadcast(const Context& c) {
  const Type& from = value(c, 0);
  const Extents& to = c.given.shape;
  expect_ints(c, from.shape.size());
  std::int64_t previous = -1;
  for (std::size_t i = 0; i < from.shape.size(); ++i) {
    const std::int64_t d = c.ints()[i];
    if (d <= previous || d >= static_cast<std::int64_t>(to.size()))
      c.fail("expected ascending dimensions of the result " + text(to) + ", given " +
             text(c.ints()));
    if (from.shape[i] != 1 && from.shape[i] != to[d])
      c.fail("cannot broadcast " + text(from) + " to shape " + text(to) +
             ": expected extent 1 or " + std::to_string(to[d]) + " in dimension " +
             std::to_string(i) + ", given " + std::to_string(from.shape[i]));
    previous = d;
  }
  return Type::value(from.dtype, to);
}

Type rule_reduce(const Context& c) {
  const Type& from = value(c, 0);
  expect_arithmetic(c, from);
  std::vector<bool> gone(from.shape.size());
  std::int64_t previous = -1;
  for (const std::int64_t d : c.ints()) {
    if (d <= previous || d >= static_cast<std::int64_t>(from.shape.size()))
      c.fail("expected ascending dimensions of " + text(from) + ", given " + text(c.ints()));
    gone[d] = true;
    previous = d;
  }
  if (c.ints().empty()) c.fail("expected at least one dimension of " + text(from) + ", given none");
  if ((c.op == Op::ReduceSum || c.op == Op::ReduceProd) && from.dtype.is_bool())
    c.fail("expected numbers, given " + text(from));
  Type type = Type::value(from.dtype);
  for (std::size_t i = 0; i < from.shape.size(); ++i)
    if (!gone[i]) type.shape.push_back(from.shape[i]);
  return type;
}

Type rule_scan(const Context& c) {
  const Type& from = value(c, 0);
  expect_arithmetic(c, from);
  expect_ints(c, 2);
  if (c.ints()[0] < 0 || c.ints()[0] >= static_cast<std::int64_t>(from.shape.size()))
    c.fail("expected a dimension of " + text(from) + ", given " + std::to_string(c.ints()[0]));
  if (c.ints()[1] != 0 && c.ints()[1] != 1)
    c.fail("expected 0 or 1 for the direction, given " + std::to_string(c.ints()[1]));
  if (from.dtype.is_bool()) c.fail("expected numbers, given " + text(from));
  return from;
}

Type rule_dot(const Context& c) {
  const Type& a = value(c, 0);
  const Type& b = value(c, 1);
  expect_ints(c, 3);
  if (a.shape.size() != 2 || b.shape.size() != 2)
    c.fail("operands must be 2D, given " + operands(c));
  const auto is_byte = [](DType t) { return t == i8 || t == u8; };
  const bool of_floats = is_byte_float(a.dtype) && is_byte_float(b.dtype);
  if (a.dtype != b.dtype && !(is_byte(a.dtype) && is_byte(b.dtype)) && !of_floats)
    c.fail("expected operands of one dtype, given " + operands(c));
  for (int i = 0; i < 2; ++i)
    if (c.ints()[i] != 0 && c.ints()[i] != 1)
      c.fail("expected 0 or 1 for each transposition, given " + text(c.ints()));
  const bool trans_a = c.ints()[0] != 0, trans_b = c.ints()[1] != 0;
  const std::int64_t m = a.shape[trans_a], ka = a.shape[!trans_a];
  const std::int64_t kb = b.shape[trans_b], n = b.shape[!trans_b];
  if (ka != kb)
    c.fail("inner sizes differ: " + text(a) + (trans_a ? " transposed" : "") + " has " +
           std::to_string(ka) + ", " + text(b) + (trans_b ? " transposed" : "") + " has " +
           std::to_string(kb));
  const auto precision = static_cast<Precision>(c.ints()[2]);
  if (precision != Precision::ieee && precision != Precision::tf32)
    c.fail("expected a precision, given " + std::to_string(c.ints()[2]));
  if (precision == Precision::tf32 && a.dtype != f32)
    c.fail("expected f32 operands for precision tf32, given " + operands(c));
  DType result;
  switch (a.dtype.kind()) {
  case DType::F8E4M3:
  case DType::F8E5M2:
  case DType::F16:
  case DType::BF16:
  case DType::F32: result = f32; break;
  case DType::F64: result = f64; break;
  case DType::I8:
  case DType::U8:
  case DType::I16:
  case DType::I32: result = i32; break;
  default:
    c.fail("expected f16, bf16, f32, f64, i8, u8, i16 or i32 operands, given " + operands(c));
  }
  return Type::value(result, {m, n});
}

Type rule_semaphore(const Context& c) {
  const Type& view = reference(c, 0);
  if (view.space != Space::semaphore)
    c.fail("expected a semaphore, given " + text(view) +
           "; semaphores are scratch, plgpu::SemaphoreType::REGULAR(), or pl::get_global of that");
  if (!view.shape.empty())
    c.fail("expected one semaphore, given " + text(view) + "; choose one: s.at({i})");
  if (view.dtype != i32) c.fail("expected a semaphore of i32, given " + text(view));
  const std::size_t plain = c.op == Op::SemaphoreWait ? 1 : 0;
  const bool says_who = c.op != Op::SemaphoreRead && c.ints().size() > plain;
  expect_ints(c, plain + (says_who ? 1 : 0));
  if (says_who && (c.ints().back() < 0 || c.ints().back() > 3))
    c.fail("there is no memory scope " + std::to_string(c.ints().back()));
  if (c.op == Op::SemaphoreRead) return Type::value(i32);
  expect_scalar(c, 1, i32, c.op == Op::SemaphoreWait ? "what is waited for" : "the increment");
  return Type::none();
}

Type rule_delay(const Context& c) {
  expect_scalar(c, 0, i32, "the nanoseconds");
  return Type::none();
}

void expect_site(const Context& c) {
  expect_ints(c, 1);
  if (c.ints()[0] < 0 || c.ints()[0] > INT32_MAX)
    c.fail("expected the number of a site, given " + std::to_string(c.ints()[0]));
}

Type rule_debug_print(const Context& c) {
  expect_site(c);
  std::vector<Type> types;
  for (std::size_t i = 0; i < c.args.size(); ++i) types.push_back(value(c, i));
  if (const std::string problem = format_problem(c.attr.text, types); !problem.empty())
    c.fail(problem);
  return Type::none();
}

Type rule_debug_check(const Context& c) {
  expect_site(c);
  expect_scalar(c, 0, bool_, "the condition");
  return Type::none();
}

Type rule_scope_event(const Context& c) {
  expect_ints(c, 5);
  const auto is_flag = [&](std::size_t i) { return c.ints()[i] == 0 || c.ints()[i] == 1; };
  if (c.ints()[0] < 0 || c.ints()[2] < 1 || c.ints()[2] > most_scope_events || !is_flag(1) ||
      !is_flag(3) || !is_flag(4))
    c.fail("expected the number of a scope, whether it ends, and of how many, given " +
           text(c.ints()));
  return Type::none();
}

Type rule_none(const Context& c) {
  expect_scalar(c, 0, bool_, "the condition");
  return Type::none();
}

Type rule_loop(const Context& c) {
  expect_ints(c, 2);
  expect_scalar(c, 0, i32, "the lower bound");
  expect_scalar(c, 1, i32, "the upper bound");
  for (std::size_t i = 2; i < c.args.size(); ++i) value(c, i);
  if (c.ints()[0] < 1 || c.ints()[0] > INT32_MAX)
    c.fail("expected a step of at least 1, given " + std::to_string(c.ints()[0]));
  if (c.ints()[1] < 1 || c.ints()[1] > INT32_MAX)
    c.fail("expected an unroll factor of at least 1, given " + std::to_string(c.ints()[1]));
  return Type::none();
}

Type rule_while(const Context& c) {
  for (std::size_t i = 0; i < c.args.size(); ++i) value(c, i);
  return Type::none();
}

Type rule_switch(const Context& c) {
  if (!(c.type(0) == Type::value(i32)) && !(c.type(0) == Type::value(bool_)))
    c.fail("expected i32[] or bool[] as the index, given " + text(c.type(0)));
  return Type::none();
}

Type rule_scoped(const Context& c) {
  expect_ints(c, 0);
  return Type::none();
}

Type rule_warps(const Context& c) { return rule_scoped(c); }

// What a Get may read: first carries, or what the first region yields.
std::span<const ValueId> results(const Context& c) {
  const Inst& of = c.graph[c.args[0]];
  switch (of.op) {
  case Op::Loop: return std::span(of.args).subspan(2);
  case Op::While: return of.args;
  case Op::Switch:
  case Op::Scoped:
    if (of.regions.empty() || index(of.regions[0]) >= c.graph.regions.size())
      c.fail("the " + std::string(info(of.op).name) + " has no region");
    return c.graph[of.regions[0]].yields;
  default: c.fail("expected a loop or a switch, given " + std::string(info(of.op).name));
  }
}

Type rule_get(const Context& c) {
  expect_ints(c, 1);
  if (c.graph[c.args[0]].op == Op::InlineCuda) return result_of_text(c);
  const std::span<const ValueId> given = results(c);
  const auto count = static_cast<std::int64_t>(given.size());
  const bool carries = repeats(c.graph[c.args[0]].op);
  if (c.ints()[0] < 0 || c.ints()[0] >= count)
    c.fail(std::string("expected a ") + (carries ? "carry" : "result") + " below " +
           std::to_string(count) + ", given " + std::to_string(c.ints()[0]));
  const ValueId of = given[static_cast<std::size_t>(c.ints()[0])];
  if (index(of) >= c.graph.insts.size()) c.fail("a region yields no instruction of this graph");
  return c.graph[of].type;
}

using Rule = Type (*)(const Context&);
constexpr Rule rules[] = {
#define PL_OP(Name, text, op_class, literals, min_args, max_args, rule, ...) rule_##rule,
#include "codegen/graph/ops.def"
#undef PL_OP
};

}  // namespace

Type infer(const Graph& g, Op op, const Attr& attr, std::span<const ValueId> args,
           const Type& given, Location at) {
  const Context c{g, op, attr, args, given, at};
  const OpInfo& row = info(op);
  const auto n = static_cast<int>(args.size());
  if (n < row.min_args || (row.max_args >= 0 && n > row.max_args))
    c.fail("expected " + std::to_string(row.min_args) +
           (row.max_args < 0              ? " or more"
            : row.max_args > row.min_args ? " to " + std::to_string(row.max_args)
                                          : "") +
           " operands, given " + std::to_string(n));
  for (const ValueId arg : args)
    if (index(arg) >= g.insts.size()) c.fail("an operand is no instruction of this graph");
  Type type = rules[static_cast<int>(op)](c);
  if (type.kind != Type::Kind::none) check_shape(c, type);
  return type;
}

}  // namespace palladium::graph
