// Subscripts, views, loads and stores.
#include <algorithm>
#include <cstdlib>

#include "codegen/trace/accumulators.hpp"
#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {
namespace {

using detail::Access;
using graph::no_value;
using graph::SubscriptDim;

/// One call of selection().
class Selecting {
 public:
  Selecting(Recorder& recorder, const Type& type, SelectionRules rules, const char* what,
            Location at)
      : recorder_(recorder), type_(type), rules_(rules), what_(what), at_(at) {}

  Selection of(const Idx* indices, int count) {
    const std::size_t rank = type_.shape.size();
    const auto is = [&](int i, Access::IndexKind kind) { return Access::kind(indices[i]) == kind; };
    int ellipses = 0;
    for (int i = 0; i < count; ++i) ellipses += is(i, Access::IndexKind::ellipsis);
    const auto named = static_cast<std::size_t>(count - ellipses);
    if (ellipses > 1) fail("only one ellipsis is supported");
    if (named > rank)
      fail(std::to_string(named) + " indices for " + graph::to_string(type_) + ", which has " +
           std::to_string(rank) + " dimensions");
    for (int i = 0; i < count; ++i) {
      if (is(i, Access::IndexKind::ellipsis))
        for (std::size_t n = rank - named; n > 0; --n) whole();
      else if (is(i, Access::IndexKind::all))
        whole();
      else
        part(indices[i]);
    }
    while (dims().size() < rank) whole();
    broadcast_arrays();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw CompileError(at_, std::string(what_) + ": " + text);
  }
  std::vector<SubscriptDim>& dims() { return result_.subscript.dims; }
  std::int64_t extent() { return type_.shape[dims().size()]; }
  std::string place() {
    return "dimension " + std::to_string(dims().size()) + " of " + graph::to_string(type_);
  }
  void whole() { dims().push_back({.size = extent()}); }

  void part(const Idx& index) {
    SubscriptDim dim;
    dim.is_slice = Access::kind(index) == Access::IndexKind::slice;
    if (dim.is_slice) {
      dim.size = Access::size(index);
      dim.stride = Access::stride(index);
      if (dim.size < 1 || dim.stride < (rules_.repeats ? 0 : 1))
        fail(std::string("a slice takes at least one element") +
             (rules_.repeats ? ", and its stride is not negative" : ", at least one apart") +
             "; given size " + std::to_string(dim.size) + ", stride " + std::to_string(dim.stride) +
             " in " + place());
      if (dim.size == 1) dim.stride = 1;  // one spelling
    }
    const Value& start = Access::start(index);
    expect_given(start, what_, at_);
    if (is_literal(start))
      begin(dim, literal(start));
    else
      begin(dim, start);
    result_.everything = result_.everything && dim.is_slice && !dim.dynamic && dim.start == 0 &&
                         dim.size == extent() && dim.stride == 1;
    dims().push_back(dim);
  }

  void begin(SubscriptDim& dim, const Literal& l) {
    if (!l.is_integer())
      fail("an index must be an integer, given " + std::string(l.dtype().name()) + " in " +
           place());
    if (l.kind == Literal::Kind::natural) (void)to_bits(l, i32, what_, at_);  // refuses it
    dim.start = l.integer;
    if (!dim.is_slice && (l.integer < 0 || l.integer >= extent()))
      fail("index " + std::to_string(l.integer) + " is out of bounds for " + place());
    const bool fits = (dim.size <= extent() || dim.stride == 0) && dim.stride <= extent() &&
                      std::abs(l.integer) <= extent() && !graph::Subscript::leaves(dim, extent());
    if (dim.is_slice && !fits && !rules_.beyond)
      fail("slice of start " + std::to_string(l.integer) + ", size " + std::to_string(dim.size) +
           ", stride " + std::to_string(dim.stride) + " is out of bounds for " + place());
  }

  void begin(SubscriptDim& dim, const Value& start) {
    dim.dynamic = true;
    const ValueId v = recorder_.id(start, what_, at_);
    const Type& type = recorder_.graph[v].type;
    dim.array = !dim.is_slice && type.is_value() && !type.is_scalar();
    if (!dim.array) {
      result_.starts.push_back(recorder_.i32_scalar(start, what_, "an index", at_));
      return;
    }
    if (!rules_.arrays)
      fail("an index must be an integer scalar, given " + graph::to_string(type) +
           "; elements by an array of numbers: pl::take, pl::take_along_axis");
    if (type.dtype.is_bool())
      fail("booleans are no indices, given " + graph::to_string(type) + " in " + place() +
           "; access with a mask: pl::load(x, {.mask = m})");
    if (!type.dtype.is_integer())
      fail("an index must be of integers, given " + graph::to_string(type) + " in " + place());
    result_.starts.push_back(recorder_.as_i32(v, at_));
  }

  // Index arrays have one shape, to which they are broadcast.
  void broadcast_arrays() {
    Extents all;
    std::string shapes;
    bool fits = true;
    for_each_array([&](ValueId v) {
      const Extents& own = recorder_.graph[v].type.shape;
      shapes += (shapes.empty() ? "" : ", ") + to_string(to_shape(own));
      if (own.size() > all.size()) all.insert(all.begin(), own.size() - all.size(), 1);
      for (std::size_t i = 1; i <= own.size(); ++i) {
        std::int64_t& extent = all[all.size() - i];
        const std::int64_t n = own[own.size() - i];
        fits = fits && (n == extent || n == 1 || extent == 1);
        if (extent == 1) extent = n;
      }
    });
    if (!fits) fail("cannot broadcast shapes for indexing: " + shapes);
    for_each_array([&](ValueId& v) { v = recorder_.builder().broadcast_to(v, all, at_); });
  }

  template <class F>
  void for_each_array(F&& f) {
    std::size_t next = 0;
    for (const SubscriptDim& d : dims())
      if (d.dynamic) {
        if (d.array) f(result_.starts[next]);
        ++next;
      }
  }

  Recorder& recorder_;
  const Type type_;  // recording moves those of the graph
  const SelectionRules rules_;
  const char* const what_;
  const Location at_;
  Selection result_;
};

}  // namespace

Selection selection(Recorder& recorder, const Type& type, const Idx* indices, int count,
                    SelectionRules rules, const char* what, Location at) {
  return Selecting(recorder, type, rules, what, at).of(indices, count);
}

namespace {

// The view that a subscript selects; the Ref itself where that is all of it.
ValueId select(Recorder& recorder, ValueId ref, const Idx* indices, int count, bool beyond,
               const char* what, Location at) {
  if (count == 1 && Access::kind(indices[0]) == Access::IndexKind::all) return ref;
  const Type type = recorder.graph[ref].type;
  Selection s = selection(recorder, type, indices, count,
                          {.arrays = true, .beyond = beyond, .repeats = true}, what, at);
  if (s.everything) return ref;
  return recorder.builder().at(ref, s.subscript, std::move(s.starts), at);
}

ValueId place(Recorder& recorder, const detail::Place& p, const char* what) {
  const ValueId ref = recorder.id(Access::ref(p), what, Access::at(p));
  return select(recorder, ref, Access::indices(p), Access::count(p), false, what, Access::at(p));
}

// What a view holds; of an accumulator behind a wait for all products.
ValueId loaded(Recorder& recorder, ValueId view, ValueId mask, ValueId other, Location at) {
  if (is_accumulator(recorder, view) && mask == no_value)
    return load_accumulator(recorder, view, 0, at);
  return recorder.builder().load(view, mask, other, at);
}

// How a value of another shape could be meant.
std::string other_shape(Recorder& recorder, const Extents& from, const Extents& to) {
  if (std::string forgotten = recorder.forgotten_specs(from, to); !forgotten.empty())
    return forgotten;
  const bool is_one_element =
      from.empty() && std::ranges::all_of(to, [](std::int64_t extent) { return extent == 1; });
  if (!is_one_element) return "; nothing is broadcast here: pl::broadcast_to(v, shape)";
  std::string zeros = to.size() == 1 ? "0" : "{0";
  for (std::size_t i = 1; i < to.size(); ++i) zeros += i + 1 < to.size() ? ", 0" : ", 0}";
  return "; a scalar is stored into an element, as in o[" + zeros + "] = v";
}

// What a store into the view stores: its exact shape, its dtype after the conversions that are
// implied (literals, and integers among each other).
ValueId stored(Recorder& recorder, const Value& value, ValueId view, const char* what,
               Location at) {
  recorder.expect_writable(view, what, at);
  recorder.expect_known(view, what, at);
  const Type to = recorder.graph[view].type;
  if (is_literal(value)) return recorder.typed(value, to.dtype, what, at, to.shape);
  const ValueId v = recorder.id(value, what, at);
  const Type& from = recorder.graph[v].type;
  if (from.shape != to.shape) {
    throw CompileError(at, std::string(what) + ": expected a value of the view's shape, " +
                               graph::to_string(Type::value(to.dtype, to.shape)) + ", given " +
                               graph::to_string(from) +
                               other_shape(recorder, from.shape, to.shape));
  }
  if (from.dtype == to.dtype) return v;
  if (from.dtype.is_integer() && to.dtype.is_integer())
    return recorder.builder().cast(v, to.dtype, at);
  throw CompileError(at, std::string(what) + ": expected a value of the Ref's dtype " +
                             to.dtype.name() + ", given " + from.dtype.name() +
                             "; convert it: pl::" + to.dtype.name() + "(v)");
}

ValueId mask_given(Recorder& recorder, const MaybeValue& mask, ValueId view, const char* what) {
  if (!Access::given(mask)) return no_value;
  const Location at = Access::at(mask);
  const Extents shape = recorder.graph[view].type.shape;
  const ValueId v = recorder.typed(Access::value(mask), what, at);
  const Type& type = recorder.graph[v].type;
  if (!type.dtype.is_bool())
    throw CompileError(at, std::string(what) + ": the mask must be bool, given " +
                               graph::to_string(type) + "; compare: v != 0");
  bool fits = type.shape.size() <= shape.size();
  for (std::size_t i = 0; fits && i < type.shape.size(); ++i) {
    const std::int64_t own = type.shape[type.shape.size() - 1 - i];
    fits = own == 1 || own == shape[shape.size() - 1 - i];
  }
  if (!fits)
    throw CompileError(at, std::string(what) + ": cannot broadcast the mask " +
                               graph::to_string(type) + " to the view's shape, " +
                               to_string(to_shape(shape)));
  return recorder.builder().broadcast_to(v, shape, at);
}

// Of what stores `value` there.
ValueId mask_of(Recorder& recorder, const MaybeValue& mask, ValueId view, ValueId value,
                const char* what, Location at) {
  return recorder.within(value, view, mask_given(recorder, mask, view, what), at);
}

}  // namespace

Value resolve(const Operand& operand) {
  Slot* slot = Access::slot(operand);
  return slot ? static_cast<Value>(std::move(*slot)) : Access::value(operand);
}

Location location(const Operand& operand) { return Access::at(operand); }

}  // namespace palladium::trace

namespace palladium {

using detail::Access;
using graph::no_value;
using trace::Attr;
using trace::Op;
using trace::Recorder;
using trace::Touched;
using trace::Type;
using trace::ValueId;

MaybeValue::MaybeValue(Given, const Operand& value)
    : given_(true), value_(trace::resolve(value)), at_(trace::location(value)) {}

Idx::Idx(Slot&& slot) : kind_(Kind::index), at_(std::move(slot)) {}

// ---- x[...]

Shape detail::Place::shape(Location at) const {
  Recorder& recorder = Recorder::current("shape", at);
  return recorder.shape_of(trace::place(recorder, *this, "shape"));
}

DType detail::Place::dtype(Location at) const { return Access::ref(*this).dtype(at); }

Value detail::Place::load() {
  Recorder& recorder = Recorder::current("load", at_);
  const ValueId view = trace::place(recorder, *this, "load");
  recorder.expect_known(view, "load", at_);
  const ValueId v = trace::loaded(recorder, view, no_value, no_value, at_);
  recorder.note_read(trace::load_of(recorder, v), &mark_, at_);
  return recorder.value(v);
}

void detail::Place::store(const Operand& operand) {
  const Value value = trace::resolve(operand);
  Recorder& recorder = Recorder::current("store", at_);
  trace::expect_given(value, "store", at_);
  const ValueId view = trace::place(recorder, *this, "store");
  const ValueId v = trace::stored(recorder, value, view, "store", at_);
  const ValueId mask = recorder.within(v, view, no_value, at_);
  recorder.builder().store(view, v, mask, at_);
  recorder.note_write(view);
}

void detail::Place::store(Place&& from) { store(Operand(from.load(), at_)); }

void detail::Place::store(Effect&& effect) { store(Operand(Access::value(effect), at_)); }

void detail::Place::update(Update update, const Operand& operand) {
  static constexpr Op ops[] = {Op::Add, Op::Sub, Op::Mul, Op::Div,       Op::Rem,
                               Op::And, Op::Or,  Op::Xor, Op::ShiftLeft, Op::ShiftRight};
  const Value value = trace::resolve(operand);
  Recorder& recorder = Recorder::current("store", at_);
  const ValueId view = trace::place(recorder, *this, "load");
  recorder.expect_known(view, "load", at_);
  // Sequenced after the operand by the language: never one of two effects in an expression.
  const ValueId old = trace::loaded(recorder, view, no_value, no_value, at_);
  recorder.note({{recorder.memory_of(view)}, {}});
  const Value result =
      trace::elementwise(ops[static_cast<int>(update)], {recorder.value(old), value}, at_);
  const ValueId v = trace::stored(recorder, result, view, "store", at_);
  const ValueId mask = recorder.within(v, view, no_value, at_);
  recorder.builder().store(view, v, mask, at_);
  recorder.note_write(view);
}

// ---- Views

Ref Ref::at(std::initializer_list<Idx> subscript, Location at) const {
  Recorder& recorder = Recorder::current("at", at);
  const ValueId ref = recorder.id(*this, "at", at);
  return recorder.ref(trace::select(recorder, ref, subscript.begin(),
                                    static_cast<int>(subscript.size()), true, "at", at));
}

Ref Ref::reshape(Shape shape, Location at) const {
  Recorder& recorder = Recorder::current("reshape", at);
  const ValueId ref = recorder.id(*this, "reshape", at);
  recorder.expect_known(ref, "reshape", at);
  Type to = recorder.graph[ref].type;
  to.shape = trace::completed(shape, graph::element_count(to.shape), "reshape", at);
  return recorder.ref(recorder.builder().add(Op::RefReshape, {ref}, Attr{}, to, at));
}

Ref Ref::transpose(Axes permutation, Location at) const {
  Recorder& recorder = Recorder::current("transpose", at);
  const ValueId ref = recorder.id(*this, "transpose", at);
  Attr attr{trace::normalized(permutation, recorder.graph[ref].type.shape.size(), "transpose", at),
            0};
  return recorder.ref(recorder.builder().add(Op::RefTranspose, {ref}, std::move(attr), {}, at));
}

Ref Ref::bitcast(DType dtype, Location at) const {
  Recorder& recorder = Recorder::current("bitcast", at);
  const ValueId ref = recorder.id(*this, "bitcast", at);
  const Type& from = recorder.graph[ref].type;
  // Of other widths the last extent is another number.
  if (from.dtype.bits() != dtype.bits() && !from.shape.empty() &&
      from.shape.back() == unknown_extent)
    recorder.expect_known(ref, "bitcast", at);
  Type to = recorder.graph[ref].type;
  to.dtype = dtype;
  recorder.expect_fill_as(ref, dtype, at);
  return recorder.ref(recorder.builder().add(Op::RefBitcast, {ref}, Attr{}, to, at));
}

Shape Ref::shape(Location at) const {
  Recorder& recorder = Recorder::current("shape", at);
  return recorder.shape_of(recorder.id(*this, "shape", at));
}

DType Ref::dtype(Location at) const {
  Recorder& recorder = Recorder::current("dtype", at);
  return recorder.graph[recorder.id(*this, "dtype", at)].type.dtype;
}

// ---- load, store, swap

Value load(const Ref& view, LoadOptions options, const detail::Expression& expression) {
  const Location at = Access::at(expression);
  Recorder& recorder = Recorder::current("load", at);
  const ValueId ref = recorder.id(view, "load", at);
  recorder.expect_known(ref, "load", at);
  const ValueId mask = trace::mask_given(recorder, options.mask, ref, "load");
  ValueId other = no_value;
  if (Access::given(options.other)) {
    if (mask == no_value)
      throw CompileError(at, "load: `other` requires a mask: {.mask = m, .other = 0}");
    const Type type = recorder.graph[ref].type;
    const Location where = Access::at(options.other);
    other = recorder.typed(Access::value(options.other), type.dtype, "load", where);
    if (recorder.graph[other].type.dtype != type.dtype)
      throw CompileError(where, std::string("load: `other` must have the Ref's dtype ") +
                                    type.dtype.name() + ", given " +
                                    graph::to_string(recorder.graph[other].type));
    other = recorder.builder().broadcast_to(other, type.shape, where);
  }
  const ValueId v = trace::loaded(recorder, ref, mask, other, at);
  recorder.note_read(trace::load_of(recorder, v), &Access::mark(expression), at);
  return recorder.value(v);
}

void store(const Ref& view, const Operand& operand, StoreOptions options) {
  const Location at = trace::location(operand);
  const Value value = trace::resolve(operand);
  Recorder& recorder = Recorder::current("store", at);
  trace::expect_given(value, "store", at);
  const ValueId ref = recorder.id(view, "store", at);
  const ValueId v = trace::stored(recorder, value, ref, "store", at);
  const ValueId mask = trace::mask_of(recorder, options.mask, ref, v, "store", at);
  recorder.builder().store(ref, v, mask, at);
  recorder.note_write(ref);
}

namespace trace {
namespace {

// What an operation that gives old elements has to do beside recording itself.
template <class Record>
Effect exchanged(Recorder& recorder, const char* what, ValueId ref,
                 const std::vector<ValueId>& operands, Location at, Record&& record) {
  const int memory = recorder.memory_of(ref);
  const Touched touched{{memory}, {memory}};
  recorder.check_effect(what, touched, operands, at);
  const ValueId old = record();
  recorder.note(touched);
  return Access::effect(recorder.value(old),
                        [&](detail::Mark& mark) { recorder.mark_effect(what, touched, mark, at); });
}

void expect_updates(Recorder& recorder, graph::Update how, ValueId ref, Location at) {
  const DType dtype = recorder.graph[ref].type.dtype;
  if (!graph::updates(how, dtype))
    throw CompileError(at, std::string(graph::name_of(how)) + " does not support " + dtype.name() +
                               ", but " + graph::dtypes_of(how));
  // What is joined of several elements no instruction updates at once.
  const graph::Graph& g = recorder.graph;
  for (ValueId v = ref; g.is_view(v); v = g[v].args[0])
    if (const DType from = g[g[v].args[0]].type.dtype; from.bytes() < dtype.bytes())
      throw CompileError(at, std::string(graph::name_of(how)) +
                                 ": expected elements of a Ref, or " +
                                 "parts of them, given several of " + from.name() +
                                 " seen as one " + dtype.name());
}

Effect atomic(graph::Update how, const Ref& view, const Operand* expected, const Operand& operand,
              StoreOptions options) {
  const char* const what = graph::name_of(how);
  const Location at = location(expected ? *expected : operand);
  const Value compared = expected ? resolve(*expected) : Value();
  const Value value = resolve(operand);
  Recorder& recorder = Recorder::current(what, at);
  expect_given(value, what, at);
  const ValueId ref = recorder.id(view, what, at);
  expect_updates(recorder, how, ref, at);
  std::vector<ValueId> operands{ref};
  ValueId other = no_value;
  if (expected) {
    expect_given(compared, what, at);
    operands.push_back(other = stored(recorder, compared, ref, what, at));
  }
  const ValueId v = stored(recorder, value, ref, what, at);
  operands.push_back(v);
  const ValueId mask = mask_of(recorder, options.mask, ref, v, what, at);
  if (mask != no_value) operands.push_back(mask);
  return exchanged(recorder, what, ref, operands, at,
                   [&] { return recorder.builder().atomic(how, ref, v, mask, other, at); });
}

}  // namespace
}  // namespace trace

Effect swap(const Ref& view, const Operand& operand, StoreOptions options) {
  const Location at = trace::location(operand);
  const Value value = trace::resolve(operand);
  Recorder& recorder = Recorder::current("swap", at);
  trace::expect_given(value, "swap", at);
  const ValueId ref = recorder.id(view, "swap", at);
  std::vector<ValueId> operands{ref, trace::stored(recorder, value, ref, "swap", at)};
  const ValueId mask = trace::mask_of(recorder, options.mask, ref, operands[1], "swap", at);
  if (mask != no_value) operands.push_back(mask);
  return trace::exchanged(recorder, "swap", ref, operands, at,
                          [&] { return recorder.builder().swap(ref, operands[1], mask, at); });
}

void addupdate(const Ref& view, const Operand& operand, StoreOptions options) {
  const Location at = trace::location(operand);
  const Value value = trace::resolve(operand);
  Recorder& recorder = Recorder::current("addupdate", at);
  trace::expect_given(value, "addupdate", at);
  const ValueId ref = recorder.id(view, "addupdate", at);
  const ValueId v = trace::stored(recorder, value, ref, "addupdate", at);
  const ValueId mask = trace::mask_of(recorder, options.mask, ref, v, "addupdate", at);
  graph::Builder builder = recorder.builder();
  const int memory = recorder.memory_of(ref);
  if (recorder.graph.chooses(ref)) {
    trace::expect_updates(recorder, graph::Update::add, ref, at);
    builder.atomic(graph::Update::add, ref, v, mask, no_value, at);
  } else {
    const ValueId old = builder.load(ref, mask, no_value, at);
    const ValueId sum = builder.elementwise(Op::Add, {old, v}, at);
    builder.store(ref, sum, mask, at);
  }
  recorder.note({{memory}, {memory}});
}

#define PALLADIUM_ATOMIC(name, how)                                          \
  Effect name(const Ref& view, const Operand& value, StoreOptions options) { \
    return trace::atomic(graph::Update::how, view, nullptr, value, options); \
  }
PALLADIUM_ATOMIC(atomic_add, add)
PALLADIUM_ATOMIC(atomic_max, max)
PALLADIUM_ATOMIC(atomic_min, min)
PALLADIUM_ATOMIC(atomic_and, bit_and)
PALLADIUM_ATOMIC(atomic_or, bit_or)
PALLADIUM_ATOMIC(atomic_xor, bit_xor)
PALLADIUM_ATOMIC(atomic_xchg, exchange)
#undef PALLADIUM_ATOMIC

Effect atomic_cas(const Ref& view, const Operand& expected, const Operand& value,
                  StoreOptions options) {
  return trace::atomic(graph::Update::compare, view, &expected, value, options);
}

}  // namespace palladium
