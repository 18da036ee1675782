#include "codegen/trace/recorder.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <mutex>

#include "codegen/base/forking.hpp"
#include "palladium/error.hpp"

namespace palladium::trace {
namespace {

thread_local Recorder* current_recorder = nullptr;

std::atomic<std::uint32_t> next_serial{1};

// Names of the latest traces, for messages about values that outlived theirs.
struct Names {
  std::mutex mutex;
  std::array<std::pair<std::uint32_t, std::string>, 64> ring;
};
Names& names() {
  static Names* n = new Names;
  return *n;
}
void remember(std::uint32_t serial, const std::string& name) {
  const forking::Section section;
  std::lock_guard lock(names().mutex);
  names().ring[serial % names().ring.size()] = {serial, name};
}
std::string kernel_named(std::uint32_t serial) {
  const forking::Section section;
  std::lock_guard lock(names().mutex);
  const auto& [owner, name] = names().ring[serial % names().ring.size()];
  return owner == serial ? "kernel '" + name + "'" : "another kernel";
}

void insert(std::vector<int>& set, int element) {
  if (std::find(set.begin(), set.end(), element) == set.end()) set.push_back(element);
}
void merge(std::vector<int>& into, const std::vector<int>& set) {
  for (const int element : set) insert(into, element);
}
bool intersect(const std::vector<int>& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](int x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

[[noreturn]] void two_effects(const std::string& what, Location at) {
  throw CompileError(at, what +
                             "; C++ leaves their order to the compiler: give the first result a "
                             "name: pl::Value old = ...;");
}

}  // namespace

// ---- The recorder

Recorder::Recorder(std::string kernel)
    : serial_(next_serial.fetch_add(1, std::memory_order_relaxed)), outer_(current_recorder) {
  graph.name = std::move(kernel);
  remember(serial_, graph.name);
  current_recorder = this;
}

Recorder::~Recorder() { current_recorder = outer_; }

Recorder* Recorder::innermost() { return current_recorder; }

Recorder& Recorder::current(const std::string& what, Location at) {
  if (!current_recorder)
    throw CompileError(at, what + ": used outside a kernel body, where nothing is recorded");
  return *current_recorder;
}

void Recorder::sync() {
  const RegionId here = open_.empty() ? RegionId{} : open_.back().region;
  region_of_.resize(graph.insts.size(), here);
}

void Recorder::enter(RegionId region, bool repeats) {
  sync();
  open_.push_back({region, {}, {}, repeats});
}

bool Recorder::repeats() const { return std::ranges::any_of(open_, &Open::repeats); }

Touched Recorder::leave() {
  sync();
  Touched touched = std::move(open_.back().touched);
  open_.pop_back();
  return touched;
}

void Recorder::unwind(std::size_t depth) {
  sync();
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(depth), open_.end());
}

// ---- Handles

Value Recorder::value(ValueId v) const { return detail::Access::value(serial_, graph::index(v)); }
Ref Recorder::ref(ValueId v) const { return detail::Access::ref(serial_, graph::index(v)); }

ValueId Recorder::check(std::uint32_t trace, std::uint32_t id, const char* what, Location at) {
  if (trace != serial_) {
    const bool encloses = [&] {
      for (const Recorder* r = outer_; r; r = r->outer_)
        if (r->serial_ == trace) return true;
      return false;
    }();
    throw CompileError(
        at, std::string(what) + " in kernel '" + graph.name + "' uses a value of " +
                kernel_named(trace) +
                (encloses ? ", which encloses it; pass it as an argument"
                          : ", whose trace is over or runs on another thread; values and Refs are "
                            "good only in the call of the body that received them"));
  }
  sync();
  const RegionId region = region_of_[id];
  if (std::none_of(open_.begin(), open_.end(), [&](const Open& o) { return o.region == region; }))
    throw CompileError(
        at, std::string(what) + " uses a value recorded at " +
                to_string(graph.location(ValueId{id})) +
                " inside a body that has ended; carry it out: acc = pl::loop(lo, hi, body, init)");
  return ValueId{id};
}

ValueId Recorder::id(const Value& v, const char* what, Location at) {
  expect_given(v, what, at);
  return check(detail::Access::trace(v), detail::Access::id(v), what, at);
}

ValueId Recorder::id(const Ref& r, const char* what, Location at) {
  return check(detail::Access::trace(r), detail::Access::id(r), what, at);
}

ValueId Recorder::typed(const Value& v, const char* what, Location at) {
  expect_given(v, what, at);
  return is_literal(v) ? typed(v, literal(v).dtype(), what, at) : id(v, what, at);
}

ValueId Recorder::typed(const Value& v, DType dtype, const char* what, Location at, Extents shape) {
  expect_given(v, what, at);
  if (!is_literal(v)) {
    const ValueId known = id(v, what, at);
    return is_weak_size(known) ? builder().cast(known, dtype, at) : known;
  }
  return builder().add(Op::Constant, {}, Attr{{}, to_bits(literal(v), dtype, what, at)},
                       Type::value(dtype, std::move(shape)), at);
}

ValueId Recorder::i32_scalar(const Value& v, const char* what, const char* role, Location at) {
  expect_given(v, what, at);
  if (is_literal(v)) {
    if (!literal(v).is_integer())
      throw CompileError(at, std::string(what) + ": " + role + " must be an integer, given " +
                                 literal(v).dtype().name());
    return typed(v, i32, what, at);
  }
  const ValueId id = this->id(v, what, at);
  const Type& type = graph[id].type;
  if (!type.is_scalar() || !type.dtype.is_integer())
    throw CompileError(at, std::string(what) + ": " + role + " must be an integer scalar, given " +
                               graph::to_string(type));
  return as_i32(id, at);
}

ValueId Recorder::as_i32(ValueId v, Location at) {
  const DType dtype = graph[v].type.dtype;
  const auto limited = [&](Op op, std::int64_t limit) {
    v = builder().elementwise(op, {v, builder().constant(dtype, limit, {}, at)}, at);
  };
  if (dtype.bits() == 64 && dtype.is_signed()) limited(Op::Max, INT32_MIN);
  if (dtype.bits() == 64 || dtype == u32) limited(Op::Min, INT32_MAX);
  return builder().cast(v, i32, at);
}

// ---- Specifications

namespace {

bool is_array_of(const BlockMapping& m, const Extents& shape) {
  if (shape.size() != static_cast<std::size_t>(m.array_aval.shape.rank())) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Dim& extent = m.array_aval.shape[static_cast<int>(d)];
    if (!extent.is_static() || extent.value() != shape[d]) return false;
  }
  return true;
}

std::string type_of_ref(const BlockMapping& m) {
  return graph::to_string(Type::value(m.array_aval.dtype, m.ref_shape()));
}

}  // namespace

std::string Recorder::forgotten_specs(const Extents& a, const Extents& b) const {
  for (const Shown& block : shown) {
    const BlockMapping& m = *block.mapping;
    const Extents own = m.ref_shape();
    if (!block.has_spec || is_array_of(m, own) || (own != a && own != b)) continue;
    const Extents& other = own == a ? b : a;
    for (const Shown& whole : shown) {
      if (whole.has_spec || whole.is_output == block.is_output) continue;
      if (whole.mapping->ref_shape() != other && !is_array_of(m, other)) continue;
      return std::string("; ") + (whole.is_output ? "out_specs" : "in_specs") +
             " is not given, so that the Ref of " + whole.mapping->origin +
             " is the whole array, " + type_of_ref(*whole.mapping) + ", beside " + m.origin +
             ", which the grid cuts into blocks of " + type_of_ref(m);
    }
  }
  return "";
}

void Recorder::expect_alike(const std::vector<ValueId>& operands, const char* what, Location at) {
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Type &first = graph[operands[i - 1]].type, &second = graph[operands[i]].type;
    if (first.shape == second.shape) continue;
    const std::string forgotten = forgotten_specs(first.shape, second.shape);
    if (forgotten.empty()) continue;
    const std::string problem = builder().broadcast_problem(operands, what);
    if (!problem.empty()) throw CompileError(at, problem + forgotten);
  }
}

// ---- Captured arrays

namespace {

bool are_same(const Array& a, const Array& b) {
  if (a.data() != b.data() || a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  for (int d = 0; d < a.rank(); ++d)
    if (a.stride(d) != b.stride(d)) return false;
  return true;
}

}  // namespace

ValueId Recorder::capture(const Array& array, Location at) {
  if (!may_capture)
    throw CompileError(at, "kernel '" + graph.name +
                               "' captures an ArrayRef, which only the bodies of pl::kernel and "
                               "pl::core_map can; pass the array as an argument");
  auto known =
      std::ranges::find_if(captured, [&](const Captured& c) { return are_same(c.array, array); });
  const std::string origin = "captured[" + std::to_string(known - captured.begin()) + "]";
  if (known == captured.end()) {
    known = captured.insert(known, {array, at, array.shape()});
    for (int d = 0; captures_symbols && d < array.rank(); ++d) {
      known->shape[d] = dim((origin + ".shape[" + std::to_string(d) + "]").c_str());
      DimBinding::current()->bind(dim_node(known->shape[d]).symbol, array.shape()[d].value());
    }
  }
  known->refs.resize(graph.bodies.size(), graph::no_value);
  ValueId& ref = known->refs[body];
  if (ref != graph::no_value) return ref;
  ref = late_parameter(Type::ref(array.dtype(), known_extents(known->shape), Space::gmem), at);
  note_unknown(ref, known->shape, origin);
  return ref;
}

ValueId Recorder::global(std::size_t number) {
  Global& global = globals[number];
  global.refs.resize(graph.bodies.size(), graph::no_value);
  ValueId& ref = global.refs[body];
  if (ref != graph::no_value) return ref;
  ref = late_parameter(Type::ref(global.type.dtype, known_extents(global.type.shape), global.space),
                       global.at);
  note_unknown(ref, global.type.shape, global.origin);
  return ref;
}

ValueId Recorder::share(const Type& type, Location at) {
  shared.push_back({type, at, body, late_parameter(type, at)});
  return shared.back().ref;
}

ValueId Recorder::share_counter(Location at) {
  const ValueId ref = share(Type::ref(i32, {}, Space::regs), at);
  shared.back().zero = true;
  return ref;
}

// Behind all parameters of the body.
ValueId Recorder::late_parameter(const Type& type, Location at) {
  const RegionId region = open_.front().region;
  sync();
  const ValueId param = graph.add({.op = Op::Param, .type = type}, at);
  graph[region].params.push_back(param);
  region_of_.resize(graph.insts.size(), region);
  return param;
}

// ---- Effects in one expression

int Recorder::memory_of(ValueId ref) const { return graph.alias_class(graph.root(ref)); }

void Recorder::refuse_input(int number, const char* what, Location at) const {
  const std::vector<BlockMapping>& mappings = graph.mapping.block_mappings;
  const BlockMapping& input = mappings[static_cast<std::size_t>(number)];
  const std::string message = "kernel '" + graph.name + "': " + what + ": " + input.origin +
                              " is an input to which no output is aliased, so that nobody would "
                              "see it change: ";
  for (int o = 0; o < graph.mapping.num_outputs; ++o) {
    const BlockMapping& output = mappings[static_cast<std::size_t>(graph.mapping.num_inputs + o)];
    const bool is_taken =
        std::ranges::any_of(graph.aliases, [&](const graph::Alias& a) { return a.output == o; });
    if (is_taken || !(output.array_aval == input.array_aval)) continue;
    throw CompileError(at, message + "store to " + output.origin +
                               ", or let the two share memory: .input_output_aliases = {{" +
                               std::to_string(number) + ", " + std::to_string(o) + "}}");
  }
  throw CompileError(at, message +
                             "store to scratch (.scratch_types), or to an output of its type, "
                             "which .input_output_aliases = {{" +
                             std::to_string(number) +
                             ", number of the output}} lets share its memory");
}

void Recorder::expect_writable(ValueId view, const char* what, Location at) const {
  const ValueId root = graph.root(view);
  if (std::find(read_only.begin(), read_only.end(), root) != read_only.end())
    throw CompileError(at, std::string(what) + ": " + graph::to_string(graph[root].type) +
                               " is an index operand (num_scalar_prefetch), which is read only");
  for (const auto& [input, number] : unaliased)
    if (input == root) refuse_input(number, what, at);
  if (graph.repeats(view))
    throw CompileError(at, std::string(what) +
                               ": the view has a slice of stride 0, in which one element stands "
                               "several times: it is read only");
}

void Recorder::expect_fill_as(ValueId view, DType to, Location at) const {
  if (graph[view].type.dtype.bytes() == to.bytes()) return;
  const ValueId root = graph.root(view);
  for (const auto& [ref, mapping] : filled)
    if (ref == root && !graph::fill_as(*mapping, to))
      throw CompileError(at, "bitcast: " + mapping->origin +
                                 " has a .fill whose bytes differ, which elements of another size "
                                 "cannot hold; a fill of 0, and each of equal bytes, can be seen "
                                 "in any size");
}

void Recorder::mark(detail::Mark& mark, Marked marked) {
  end_mark(detail::Access::trace(mark), detail::Access::number(mark));
  marked.number = next_mark_++;
  detail::Access::set(mark, serial_, marked.number);
  open_.back().marks.push_back(std::move(marked));
}

void Recorder::end_mark(std::uint32_t trace, std::uint32_t number) {
  if (number == 0) return;
  for (Recorder* r = current_recorder; r; r = r->outer_) {
    if (r->serial_ != trace) continue;
    for (Open& open : r->open_)
      std::erase_if(open.marks, [&](const Marked& m) { return m.number == number; });
  }
}

void Recorder::note_read(ValueId load, detail::Mark* mark, Location at) {
  const int memory = memory_of(graph[load].args[0]);
  for (const Marked& m : open_.back().marks)
    if (m.writes && intersect(m.memory, {memory}))
      two_effects("a read and a write of one Ref in one expression: load after " + m.what + " at " +
                      to_string(m.at),
                  at);
  insert(open_.back().touched.reads, memory);
  if (mark) this->mark(*mark, {0, false, {memory}, load, "load", at});
}

void Recorder::note_write(ValueId ref) { insert(open_.back().touched.writes, memory_of(ref)); }

void Recorder::check_effect(const char* what, const Touched& touched,
                            std::span<const ValueId> operands, Location at) {
  for (const Marked& m : open_.back().marks) {
    if (m.writes)
      two_effects("two effects in one expression: " + std::string(what) + " after " + m.what +
                      " at " + to_string(m.at),
                  at);
    if (intersect(m.memory, touched.writes) && !depends(operands, m.load))
      two_effects("a read and a write of one Ref in one expression: " + std::string(what) +
                      " after load at " + to_string(m.at),
                  at);
  }
}

void Recorder::mark_effect(const char* what, const Touched& touched, detail::Mark& mark,
                           Location at) {
  this->mark(mark, {0, true, touched.writes, graph::no_value, what, at});
}

void Touched::add(const Touched& more) {
  merge(reads, more.reads);
  merge(writes, more.writes);
}

void Recorder::note(const Touched& touched) { open_.back().touched.add(touched); }

bool Recorder::depends(std::span<const ValueId> values, ValueId on) const {
  std::vector<ValueId> stack(values.begin(), values.end());
  std::vector<bool> seen(graph.insts.size());
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (v == on) return true;
    // Operands have smaller numbers than their users.
    if (v < on || seen[graph::index(v)]) continue;
    seen[graph::index(v)] = true;
    const graph::Inst& inst = graph[v];
    stack.insert(stack.end(), inst.args.begin(), inst.args.end());
    for (const RegionId r : inst.regions) {
      stack.insert(stack.end(), graph[r].insts.begin(), graph[r].insts.end());
      stack.insert(stack.end(), graph[r].yields.begin(), graph[r].yields.end());
    }
  }
  return false;
}

// ---- Literals

DType Literal::dtype() const {
  switch (kind) {
  case Kind::none: return {};
  case Kind::truth: return bool_;
  case Kind::natural:
  case Kind::integer: return i32;
  case Kind::floating: return f32;
  }
  return {};
}

bool is_literal(const Value& v) { return detail::Access::trace(v) == 0; }
Literal literal(const Value& v) { return detail::Access::literal(v); }
Value weak(const Literal& l) { return detail::Access::weak(l); }

void expect_given(const Value& v, const char* what, Location at) {
  if (is_literal(v) && literal(v).kind == Literal::Kind::none)
    throw CompileError(at, std::string(what) + " uses a pl::Value that was given no value");
}

namespace {

std::string text_of(const Literal& l) {
  if (l.kind == Literal::Kind::natural) return std::to_string(l.natural());
  if (l.kind != Literal::Kind::floating) return std::to_string(l.integer);
  char text[32];
  std::snprintf(text, sizeof text, "%g", l.floating);
  return text;
}

// "0 to 255"
std::string range_of(DType dtype) {
  if (dtype.is_bool()) return "0 to 1";
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - dtype.bits() + dtype.is_signed());
  const auto least = dtype.is_signed() ? -static_cast<std::int64_t>(most) - 1 : 0;
  return std::to_string(least) + " to " + std::to_string(most);
}

bool holds(DType dtype, const Literal& l) {
  if (l.kind == Literal::Kind::natural) return dtype == u64;
  if (dtype.is_bool()) return l.integer == 0 || l.integer == 1;
  if (l.integer < 0) return dtype.is_signed() && l.integer >> (dtype.bits() - 1) == -1;
  return dtype == u64 || l.natural() >> (dtype.bits() - dtype.is_signed()) == 0;
}

}  // namespace

std::uint64_t converted_bits(const Literal& l, DType dtype) {
  switch (l.kind) {
  case Literal::Kind::floating: return graph::to_bits(dtype, l.floating);
  case Literal::Kind::natural: return graph::natural_to_bits(dtype, l.natural());
  default: return graph::to_bits(dtype, l.integer);
  }
}

std::uint64_t to_bits(const Literal& l, DType dtype, const char* what, Location at) {
  if (dtype.is_float()) return converted_bits(l, dtype);
  const auto refuse = [&](const std::string& advice) {
    throw CompileError(
        at, std::string(what) + ": the literal " + text_of(l) + " is no " + dtype.name() + advice);
  };
  Literal whole = l;
  if (l.kind == Literal::Kind::floating) {
    if (std::trunc(l.floating) != l.floating || std::abs(l.floating) >= 0x1p63)
      refuse("; convert the other operand: pl::f32(x)");
    whole = {Literal::Kind::integer, static_cast<std::int64_t>(l.floating), 0};
  }
  if (!holds(dtype, whole)) {
    const std::string number = text_of(whole);
    refuse(", which holds " + range_of(dtype) +
           "; pl::" + (whole.kind == Literal::Kind::natural ? "u64" : "i64") + "(" + number +
           ") has a dtype that does, pl::" + dtype.name() + "(" + number + ") keeps its low bits");
  }
  return converted_bits(whole, dtype);
}

Extents extents(const Shape& shape) {
  Extents result;
  for (const Dim& d : shape) result.push_back(d.value());
  return result;
}

Shape to_shape(const Extents& extents) {
  Shape shape;
  for (const std::int64_t e : extents) shape.push_back(e);
  return shape;
}

}  // namespace palladium::trace

namespace palladium::detail {

void Mark::end() { trace::Recorder::end_mark(trace_, number_); }

trace::Literal Access::literal(const Value& v) {
  using Kind = trace::Literal::Kind;
  switch (v.id_) {
  case Value::truth: return {Kind::truth, v.literal_.integer, 0};
  case Value::integer: return {Kind::integer, v.literal_.integer, 0};
  case Value::floating: return {Kind::floating, 0, v.literal_.floating};
  case Value::natural: return {Kind::natural, v.literal_.integer, 0};
  default: return {};
  }
}

Value Access::weak(const trace::Literal& l) {
  using Kind = trace::Literal::Kind;
  switch (l.kind) {
  case Kind::truth: return l.integer != 0;
  case Kind::integer: return l.integer;
  case Kind::floating: return l.floating;
  case Kind::natural: return l.natural();
  case Kind::none: break;
  }
  return {};
}

Value Access::value(std::uint32_t trace, std::uint32_t id) {
  Value v;
  v.trace_ = trace;
  v.id_ = id;
  return v;
}

}  // namespace palladium::detail
