// The trace in progress: what the user's handles mean, and where operations are recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/graph/builder.hpp"
#include "codegen/graph/graph.hpp"
#include "codegen/trace/debug.hpp"
#include "codegen/trace/lengths.hpp"
#include "codegen/trace/mesh.hpp"
#include "palladium/array.hpp"
#include "palladium/control.hpp"
#include "palladium/spec.hpp"

namespace palladium {
struct ReduceOptions;
namespace gpu {
class InlineOperand;
}
}  // namespace palladium

namespace palladium::trace {

using graph::Attr;
using graph::Extents;
using graph::Op;
using graph::RegionId;
using graph::Type;
using graph::ValueId;

/// A weak literal: a C++ number that has met no typed value yet.
struct Literal {
  enum class Kind : std::uint8_t { none, truth, integer, floating, natural };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // truth: 0 or 1; natural: the bits of 2^63 and more
  double floating = 0;

  bool is_integer() const { return kind == Kind::integer || kind == Kind::natural; }
  std::uint64_t natural() const { return static_cast<std::uint64_t>(integer); }
  double number() const {
    return kind == Kind::floating  ? floating
           : kind == Kind::natural ? static_cast<double>(natural())
                                   : static_cast<double>(integer);
  }
  /// bool, i32 or f32.
  DType dtype() const;
};

/// Memory that an operation touches, by alias classes of the kernel's parameters.
struct Touched {
  std::vector<int> reads, writes;
  void add(const Touched& more);
};

/// An array that a body captured as an ArrayRef, and its Ref in each of the bodies that did.
struct Captured {
  Array array;
  Location at;
  Shape shape = {};                // its own, or symbols for it
  std::vector<ValueId> refs = {};  // by body; no_value: it did not
};

/// Memory of the launch, or of each of its clusters or blocks, that is zero when it starts.
struct Global {
  ShapeDtype type;
  Space space = Space::gmem;
  bool of_cluster = false;              // each cluster has its own,
  std::vector<std::size_t> apart = {};  // and in it each block along these axes
  std::string origin;                   // "global[0]", "scratch[1]"
  Location at;
  std::vector<ValueId> refs = {};  // by body; no_value: it knows nothing of it
};

/// One trace. The innermost one of a thread is current; kernels traced inside others nest.
class Recorder {
 public:
  explicit Recorder(std::string kernel);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  /// CompileError (`what` outside a kernel body) if there is none.
  static Recorder& current(const std::string& what, Location at);
  static Recorder* innermost();

  graph::Graph graph;
  std::vector<ValueId> read_only;  // index operands, in the body and in index maps
  /// The inputs of a pallas_call that are aliased to no output: their numbers.
  std::vector<std::pair<ValueId, int>> unaliased;
  std::vector<std::pair<ValueId, const BlockMapping*>> filled;  // blocks with a fill
  /// An operand of the body: whether a specification says what its Ref shows of the array.
  struct Shown {
    const BlockMapping* mapping = nullptr;
    bool is_output = false, has_spec = false;
  };
  std::vector<Shown> shown;
  std::vector<GridAxis> grid_axes;  // that program_id and axis names count
  std::vector<Threads> threads;     // by body
  std::size_t body = 0;             // that is recorded, or will be
  std::vector<Captured> captured;
  std::vector<Global> globals;
  /// Memory of a scope that all threads of a body have in common.
  struct Shared {
    Type type;
    Location at;
    std::size_t body = 0;
    ValueId ref = graph::no_value;
    bool zero = false;  // a number that is 0 when the body begins
  };
  std::vector<Shared> shared;
  /// Of root Refs of barriers that are a ClusterBarrier: groups of cluster axes, by number.
  std::vector<std::pair<ValueId, std::vector<std::vector<std::size_t>>>> cluster_barriers;
  bool captures_symbols = false;  // extents of what is captured are no constants of the kernel
  bool may_capture = false;       // it is the body of a pl::kernel that is recorded
  std::optional<std::string> warp_axis = {};  // what warps run is recorded: its axis, or ""
  DebugKinds debug_recorded = debug_kinds();  // when the trace began
  DebugKinds debug_asked = 0;                 // of which there are some, recorded or not
  int num_debug_sites = 0;
  /// What is kept of scopes; `space` 0: nothing is.
  struct Profile {
    int space = 0;
    bool of_warps = false, cuts = false;
    int scopes = 0;  // so far
  } profile;
  std::uint32_t serial() const { return serial_; }

  // ---- Regions

  /// `repeats`: it is run any number of times.
  void enter(RegionId region, bool repeats = false);
  /// Closes the innermost region; values recorded in it can no longer be used.
  Touched leave();
  std::size_t depth() const { return open_.size(); }
  /// Whether what is recorded now may be run several times.
  bool repeats() const;
  /// Abandons regions down to this depth (an exception passes through them).
  void unwind(std::size_t depth);
  graph::Builder builder() { return {graph, open_.back().region}; }

  // ---- Handles

  Value value(ValueId v) const;
  Ref ref(ValueId v) const;
  /// The instruction of a typed value; CompileError if it is not one of this trace's open regions.
  ValueId id(const Value& v, const char* what, Location at);
  /// As above; a literal becomes a constant of its own dtype.
  ValueId typed(const Value& v, const char* what, Location at);
  /// As above; a literal becomes a constant of this dtype.
  ValueId typed(const Value& v, DType dtype, const char* what, Location at, Extents shape = {});
  ValueId id(const Ref& r, const char* what, Location at);
  /// An integer as i32. One that i32 does not hold becomes its nearest, which as an index is out of
  /// bounds of everything, as it was.
  ValueId as_i32(ValueId v, Location at);
  /// Any integer scalar as i32; CompileError for a literal that i32 does not hold.
  ValueId i32_scalar(const Value& v, const char* what, const char* role, Location at);

  // ---- Memory

  /// Notes that only a call knows some extents of a Ref, if so: those of its array.
  void note_unknown(ValueId ref, const Shape& array, const std::string& origin);
  /// The extents of a Ref: those that only a call knows are symbols.
  Shape shape_of(ValueId ref) const;
  /// Pins those where they are bound to sizes; CompileError where they are not: values have shapes.
  void expect_known(ValueId view, const char* what, Location at);
  /// A size in a call as an i32[]. A weak one takes the dtype of what it meets, as a literal does.
  Value value_of(const Dim& dim, bool is_weak, Location at);
  bool is_weak_size(ValueId v) const;
  /// Of a weak size that is bound the number, which pins it; other values as they are.
  Value as_number(const Value& v) const;
  /// Whether some have become numbers while the kernel was traced.
  bool has_bound() const { return has_bound_; }

  // ---- Lengths

  LengthTable lengths{graph};
  /// How many elements a value or a Ref has along a dimension, as an integer.
  Value length(ValueId v, std::size_t dimension, Location at);
  /// The value with this number in its dtype instead of what lies beyond its length along these
  /// dimensions.
  ValueId filled_beyond(ValueId v, std::span<const std::int64_t> dimensions, std::uint64_t bits,
                        Location at);
  /// The next value of what a carry is now: beyond lengths that the carry has not it stays.
  ValueId carried_on(ValueId next, ValueId carry, Location at);
  /// What a region gives: lengths that are known in it alone become zeros.
  ValueId given_out(ValueId v, Location at);
  /// The mask of what stores the value there: and that it is no more than its length.
  ValueId within(ValueId value, ValueId view, ValueId mask, Location at);

  /// Where two shapes do not go together since one is of blocks and the other of whole arrays, for
  /// which no specifications were given: "; in_specs is not given, ...". Else "".
  std::string forgotten_specs(const Extents& a, const Extents& b) const;
  /// CompileError for operands that do not broadcast to one shape for that reason.
  void expect_alike(const std::vector<ValueId>& operands, const char* what, Location at);
  /// The Ref of an array of the host's that the body captured.
  ValueId capture(const Array& array, Location at);
  /// The Ref of globals[number] in the body that is recorded.
  ValueId global(std::size_t number);
  /// The Ref of fresh memory of the block, in the body that is recorded.
  ValueId share(const Type& type, Location at);
  /// The same of a number, in registers of each thread, that is 0 when the body begins.
  ValueId share_counter(Location at);
  int memory_of(ValueId ref) const;
  /// CompileError for a view of what is read only, or of an input that is aliased to no output.
  void expect_writable(ValueId view, const char* what, Location at) const;
  /// CompileError for a bitcast of a block whose fill has no meaning then.
  void expect_fill_as(ValueId view, DType to, Location at) const;
  /// Notes a read, and marks the expression with it if `mark` is given. CompileError if a write of
  /// the same memory stands in the same expression.
  void note_read(ValueId load, detail::Mark* mark, Location at);
  void note_write(ValueId ref);
  /// Notes that an operation with a result writes. CompileError if another effect, or a read of the
  /// same memory which `operands` do not depend on, stands in the same expression.
  void check_effect(const char* what, const Touched& touched, std::span<const ValueId> operands,
                    Location at);
  void mark_effect(const char* what, const Touched& touched, detail::Mark& mark, Location at);
  /// Notes what a region touched, for the region around it.
  void note(const Touched& touched);

  static void end_mark(std::uint32_t trace, std::uint32_t number);

 private:
  [[noreturn]] void refuse_input(int number, const char* what, Location at) const;
  struct Marked {
    std::uint32_t number;
    bool writes;
    std::vector<int> memory;
    ValueId load;  // of a read
    std::string what;
    Location at;
  };
  struct Open {
    RegionId region;
    std::vector<Marked> marks;
    Touched touched;
    bool repeats = false;
  };

  ValueId late_parameter(const Type& type, Location at);
  ValueId is_within(const Extents& shape, const Lengths& of, Location at);
  void bind_extents();
  void sync();
  void mark(detail::Mark& mark, Marked marked);
  ValueId check(std::uint32_t trace, std::uint32_t id, const char* what, Location at);
  bool depends(std::span<const ValueId> values, ValueId on) const;

  std::uint32_t serial_;
  Recorder* outer_;
  std::vector<Open> open_;
  std::vector<RegionId> region_of_;  // per instruction
  std::uint32_t next_mark_ = 1;
  struct Unknown {
    ValueId ref;
    Shape shape;  // as bodies see it
    std::string origin;
  };
  const Unknown* unknown(ValueId ref) const;
  [[noreturn]] void refuse_unknown(ValueId view, int dimension, const Dim& extent, const char* what,
                                   Location at) const;
  std::vector<Unknown> unknown_;
  std::vector<std::pair<ValueId, Dim>> weak_sizes_;
  bool has_bound_ = false;
};

/// An axis by its name.
struct NamedAxis {
  graph::AxisKind kind = graph::AxisKind::grid;
  int number = 0;
};
/// CompileError with the names that there are if it is none of them.
NamedAxis axis_named(const Recorder& recorder, const char* name, const char* what, Location at);

// ---- Values

bool is_literal(const Value& v);
Literal literal(const Value& v);
/// `what` uses an empty pl::Value.
void expect_given(const Value& v, const char* what, Location at);
Value weak(const Literal& literal);
/// The literal's bits in a dtype as a cast gives them.
std::uint64_t converted_bits(const Literal& literal, DType dtype);
/// The same for a dtype that holds it; floats round. CompileError for an integer dtype that does
/// not.
std::uint64_t to_bits(const Literal& literal, DType dtype, const char* what, Location at);

/// Loads what is still a subscript.
Value resolve(const Operand& operand);
Location location(const Operand& operand);

/// Floats of 8 bits as f32, in which they are computed: the graph has no arithmetic of their own.
Value computable(const Value& x, Location at);
ValueId computable(Recorder& recorder, ValueId v, Location at);
/// What was computed of x as f32, as x's dtype.
ValueId rounded_as(Recorder& recorder, ValueId v, DType dtype, Location at);

/// Elementwise operation on operands of one dtype.
Value elementwise(Op op, std::initializer_list<Value> operands, Location at);

/// Of one dtype, which literals take, and one shape, by broadcasting. CompileError by the name
/// `what` where they are not.
std::vector<Value> alike(const char* what, std::initializer_list<Value> values, Location at);
/// x where the condition holds, else y.
Value selected(const char* what, Value condition, const Value& x, const Value& y, Location at);

/// What folds the dimensions attr.ints, as far as the value's lengths reach.
ValueId summed(Recorder& recorder, Op op, ValueId x, Attr attr, Location at);
/// Folds over these axes, or over all if there are none.
Value reduced(Op op, const char* what, const Value& x, const ReduceOptions& options, Location at);
/// The same elements in row-major order.
Value reshaped(const Value& x, const Shape& shape, Location at);
Value counted(const Extents& shape, std::size_t dimension, Location at);  ///< an iota, i32
/// CompileError where the value is no number, or is no float.
void expect_numbers(const Value& x, const char* what, Location at);
void expect_floats(const Value& x, const char* what, Location at);

/// What a subscript says of something of this type.
struct Selection {
  graph::Subscript subscript = {};
  std::vector<ValueId> starts = {};  // dynamic ones
  bool everything = true;
};
/// What it may hold: index arrays, slices that leave the thing, as masked accesses may, and slices
/// of stride 0, which repeat an element.
struct SelectionRules {
  bool arrays = false, beyond = false, repeats = false;
};
Selection selection(Recorder& recorder, const Type& type, const Idx* indices, int count,
                    SelectionRules rules, const char* what, Location at);

Extents extents(const Shape& shape);
/// Of a Ref: unknown_extent for those that only a call knows.
Extents known_extents(const Shape& shape);
/// Gives a whole array's block the extents that have been pinned since it was made, as by an output
/// that shares its memory.
void bind_pinned(BlockMapping& m);
Shape to_shape(const Extents& extents);
/// The shape with its -1, if any, made what is left of `count` elements.
Extents completed(const Shape& shape, std::int64_t count, const char* what, Location at);
/// Negative axes counted from the end; CompileError for one out of range or given twice.
std::vector<std::int64_t> normalized(const Axes& axes, std::size_t rank, const char* what,
                                     Location at);

}  // namespace palladium::trace

namespace palladium::detail {

/// The handles' inside.
class Access {
 public:
  static std::uint32_t trace(const Value& v) { return v.trace_; }
  static std::uint32_t id(const Value& v) { return v.id_; }
  static trace::Literal literal(const Value& v);
  static Value weak(const trace::Literal& literal);
  static Value value(std::uint32_t trace, std::uint32_t id);

  static std::uint32_t trace(const Ref& r) { return r.trace_; }
  static std::uint32_t id(const Ref& r) { return r.id_; }
  static Ref ref(std::uint32_t trace, std::uint32_t id) { return {trace, id}; }

  static const Value& value(const Operand& o) { return o.value_; }
  static Slot* slot(const Operand& o) { return o.slot_; }
  static Location at(const Operand& o) { return o.at_; }

  using IndexKind = Idx::Kind;
  static IndexKind kind(const Idx& i) { return i.kind_; }
  static const Value& start(const Idx& i) { return i.at_; }
  static std::int64_t size(const Idx& i) { return i.size_; }
  static std::int64_t stride(const Idx& i) { return i.stride_; }

  static Ref ref(const Place& p) { return {p.trace_, p.id_}; }
  static const Idx* indices(const Place& p) { return p.indices_; }
  static int count(const Place& p) { return p.count_; }
  static Location at(const Place& p) { return p.at_; }
  static Mark& mark(Place& p) { return p.mark_; }
  static const Place& place(const Subscript& s) { return s.slot_; }

  /// `note` is given the mark that lives as long as the effect.
  template <class F>
  static Effect effect(const Value& v, const F& note) {
    return Effect(v, note);
  }
  static const Value& value(const Effect& e) { return e.value_; }
  static Location at(const Expression& e) { return e.at_; }
  static Mark& mark(const Expression& e) { return e.mark_; }
  static std::uint32_t trace(const Mark& m) { return m.trace_; }
  static std::uint32_t number(const Mark& m) { return m.number_; }
  static void set(Mark& m, std::uint32_t trace, std::uint32_t number) {
    m.trace_ = trace;
    m.number_ = number;
  }

  static bool given(const MaybeValue& v) { return v.given_; }
  static const Value& value(const MaybeValue& v) { return v.value_; }
  static Location at(const MaybeValue& v) { return v.at_; }

  static const Value& value(const Bound& b) { return b.value_; }
  static Location at(const Bound& b) { return b.at_; }
  static Mark& mark(const Bound& b) { return b.mark_; }

  struct InlineFields;  // codegen/trace/inline.hpp
  static InlineFields fields(const gpu::InlineOperand& o);

  static IndexMapBase* function(const IndexMap& m) { return m.map_.operator->(); }
  static Location at(const IndexMap& m) { return m.at_; }
  static BodyBase* function(const Body& b) { return b.body_.operator->(); }
  static Scratch scratch(const Ref* refs, const std::vector<std::string>* names) {
    return {refs, names};
  }
};

}  // namespace palladium::detail
