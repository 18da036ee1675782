#include "codegen/graph/packed.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "codegen/graph/builder.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

constexpr int per_byte = 2;

bool is_packed_ref(const Type& t) { return t.is_ref() && t.dtype.is_packed(); }
bool is_packed_value(const Type& t) { return t.is_value() && t.dtype.is_packed(); }

class Unpacking {
 public:
  explicit Unpacking(const Graph& g) : from_(g), g_(g) {}

  Graph run() {
    map_operands();
    for (BlockMapping& m : g_.mapping.block_mappings)
      if (m.index_map != no_region) rewrite(RegionId{m.index_map});
    for (std::size_t i = 0; i < g_.mapping.block_mappings.size(); ++i) halve_index(i);
    for (const Body& body : g_.bodies) rewrite(body.region);
    return canonicalize(g_);
  }

 private:
  [[noreturn]] void fail(Location at, const std::string& what) const {
    throw CompileError(at.line ? at : g_.at, what);
  }
  [[noreturn]] void refuse(ValueId v, const std::string& expected) const {
    const Inst& in = from_[v];
    fail(from_.location(v), std::string(info(in.op).name) + ": two elements of " +
                                to_string(from_[in.args[0]].type) +
                                " share a byte, and views of it are of whole bytes: expected " +
                                expected + "; load a larger part and choose of the value");
  }

  // ---- arrays and scratch

  void map_operands() {
    GridMapping& m = g_.mapping;
    for (BlockMapping& b : m.block_mappings)
      if (b.array_aval.dtype.is_packed()) map_block(b);
    for (std::vector<AbstractValue>* avals : {&m.scratch_avals, &m.index_map_avals})
      for (AbstractValue& a : *avals)
        if (a.type.dtype.is_packed()) {
          a.type.dtype = u8;
          a.type.shape[-1] = a.type.shape[-1].value() / per_byte;
        }
    for (Argument& a : g_.arguments)
      if (a.kind == Argument::Kind::input)
        a.dtype = m.block_mappings[static_cast<std::size_t>(a.index)].array_aval.dtype;
  }

  void map_block(BlockMapping& b) const {
    const std::string who =
        b.origin + " is " + to_string(b.array_aval) + ", two elements of which share a byte: ";
    if (b.array_aval.shape.rank() == 0) fail(g_.at, who + "an array of them has a dimension");
    Dim& extent = b.array_aval.shape[-1];
    BlockDim& block = b.block_shape.back();
    if (block.kind != BlockDim::Kind::blocked && block.kind != BlockDim::Kind::element)
      fail(g_.at, who +
                      "along its last dimension a block is of a number of elements, or of those "
                      "from an Element on");
    if (!extent.is_static() || extent.value() % per_byte != 0)
      fail(g_.at, who + "its last extent is static and even");
    for (std::int64_t* n : {&block.size, &block.pad_lo, &block.pad_hi}) {
      if (*n % per_byte != 0)
        fail(g_.at, who + "along its last dimension blocks and padding are even, given " +
                        std::to_string(*n));
      *n /= per_byte;
    }
    extent = extent.value() / per_byte;
    b.array_aval.dtype = u8;
    if (b.fill) *b.fill |= *b.fill << 4;
  }

  // An Element counts elements.
  void halve_index(std::size_t i) {
    const BlockMapping& b = g_.mapping.block_mappings[i];
    if (!from_.mapping.block_mappings[i].array_aval.dtype.is_packed() || b.index_map == no_region ||
        b.block_shape.back().kind != BlockDim::Kind::element)
      return;
    const RegionId r{b.index_map};
    Builder builder(g_, r);
    const ValueId index = g_[r].yields[b.block_shape.size() - 1];
    const ValueId half = halved(builder, index, g_.location(index));
    g_[r].yields[b.block_shape.size() - 1] = half;
  }

  // What is said to be even is checked where it is not known.
  static ValueId halved(Builder& builder, ValueId index, Location at) {
    const ValueId even = builder.add(Op::MultipleOf, {index}, Attr{{per_byte}, 0}, {}, at);
    return builder.elementwise(Op::Div, {even, builder.constant(i32, per_byte, {}, at)}, at);
  }

  // ---- regions

  void rewrite(RegionId r) {
    for (const ValueId p : g_[r].params) retype(p);
    std::vector<ValueId> insts;
    std::swap(insts, g_[r].insts);
    for (const ValueId v : insts) rewrite(r, v);
    for (ValueId& y : g_[r].yields) y = now(y);
  }

  void retype(ValueId v) {
    Type& t = g_[v].type;
    if (is_packed_ref(t)) {
      t.dtype = u8;
      t.shape.back() /= per_byte;
    } else if (is_packed_value(t)) {
      t.dtype = computed_as(t.dtype);
    }
  }

  ValueId now(ValueId v) const {
    const auto it = instead_.find(v);
    return it == instead_.end() ? v : it->second;
  }

  void rewrite(RegionId r, ValueId v) {
    for (ValueId& arg : g_[v].args) arg = now(arg);
    const Inst& was = from_[v];
    const bool of_packed = !was.args.empty() && from_[was.args[0]].type.dtype.is_packed();
    if (!of_packed && !was.type.dtype.is_packed()) return keep(r, v);
    Builder builder(g_, r);
    const Location at = from_.location(v);
    switch (was.op) {
    case Op::At: instead_[v] = part(builder, v, at); return;
    case Op::RefReshape:
      if (was.type.shape.empty() || was.type.shape.back() % per_byte != 0)
        refuse(v, "an even last dimension, given " + to_string(was.type));
      return keep(r, v);
    case Op::RefTranspose:
      if (dimensions(was).back() + 1 != static_cast<std::int64_t>(was.type.shape.size()))
        refuse(v, "the last dimension to stay the last");
      return keep(r, v);
    case Op::RefBitcast: instead_[v] = as_bytes(builder, v, at); return;
    case Op::Load: instead_[v] = load(builder, v, at); return;
    case Op::Store: store(builder, v, at); return;
    case Op::Swap: instead_[v] = swap(builder, v, at); return;
    case Op::Cast:
    case Op::Bitcast: instead_[v] = cast(builder, v, at); return;
    case Op::Constant:
      g_[v].attr.bits = to_bits(computed_as(was.type.dtype), to_int(was.type.dtype, was.attr.bits));
      return keep(r, v);
    default: return keep(r, v);
    }
  }

  void keep(RegionId r, ValueId v) {
    retype(v);
    g_[r].insts.push_back(v);
    const std::vector<RegionId> regions = g_[v].regions;
    for (const RegionId inner : regions) rewrite(inner);
  }

  // ---- views

  ValueId part(Builder& builder, ValueId v, Location at) {
    Subscript s = Subscript::of(from_[v]);
    std::vector<ValueId> starts(g_[v].args.begin() + 1, g_[v].args.end());
    SubscriptDim& last = s.dims.back();
    if (!last.is_slice || last.stride != 1 || last.size % per_byte != 0)
      refuse(v, "a slice of an even number of neighbours along the last dimension");
    if (last.start % per_byte != 0)
      refuse(v, "a slice that starts at an even element, given " + std::to_string(last.start));
    if (last.dynamic) starts.back() = halved(builder, starts.back(), at);
    last.start /= per_byte;
    last.size /= per_byte;
    return builder.at(g_[v].args[0], s, std::move(starts), at);
  }

  ValueId as_bytes(Builder& builder, ValueId v, Location at) {
    const ValueId ref = g_[v].args[0];
    const DType to = from_[v].type.dtype.is_packed() ? u8 : from_[v].type.dtype;
    if (g_[ref].type.dtype == to) return ref;
    Type type = g_[ref].type;
    type.dtype = to;
    return builder.add(Op::RefBitcast, {ref}, Attr{}, type, at);
  }

  // ---- values

  // The bytes with a last dimension of one element or two; in one row where there is no room for
  // it.
  static Extents with_last(Extents bytes, std::int64_t last) {
    if (bytes.size() == Shape::max_rank) bytes = {element_count(bytes)};
    bytes.push_back(last);
    return bytes;
  }
  static Extents bytes_of(Extents elements) {
    elements.back() /= per_byte;
    return elements;
  }

  ValueId reshape(Builder& builder, ValueId v, Extents shape, Location at) {
    if (g_[v].type.shape == shape) return v;
    return builder.add(Op::Reshape, {v}, Attr{}, Type::value(g_[v].type.dtype, std::move(shape)),
                       at);
  }

  // Of pairs the first or the second, in the shape of the bytes.
  ValueId half(Builder& builder, ValueId elements, std::int64_t which, const Extents& bytes,
               Location at) {
    SliceView slice{.starts = Extents(bytes.size()), .strides = Extents(bytes.size(), 1)};
    slice.starts.back() = which;
    slice.strides.back() = per_byte;
    return builder.add(Op::Slice, {elements}, Attr{slice.encode(), 0},
                       Type::value(g_[elements].type.dtype, bytes), at);
  }

  ValueId constant(Builder& builder, ValueId like, std::int64_t number, Location at) {
    return builder.constant(g_[like].type.dtype, number, g_[like].type.shape, at);
  }

  // The low 4 bits as a number of the packed dtype.
  ValueId wrapped(Builder& builder, ValueId v, DType packed, Location at) {
    if (!packed.is_signed())
      return builder.elementwise(Op::And, {v, constant(builder, v, 15, at)}, at);
    const ValueId four = constant(builder, v, 4, at);
    return builder.elementwise(Op::ShiftRight,
                               {builder.elementwise(Op::ShiftLeft, {v, four}, at), four}, at);
  }

  ValueId elements_of(Builder& builder, ValueId bytes, const Type& elements, Location at) {
    const Extents shape = bytes_of(elements.shape), pairs = with_last(shape, per_byte);
    const DType computed = computed_as(elements.dtype);
    const ValueId column = reshape(builder, bytes, with_last(shape, 1), at);
    ValueId v = builder.cast(builder.broadcast_to(column, pairs, at), computed, at);
    const auto last = static_cast<std::int64_t>(pairs.size()) - 1;
    const ValueId which =
        builder.add(Op::Iota, {}, Attr{{last}, 0}, Type::value(computed, pairs), at);
    const ValueId four = constant(builder, v, 4, at);
    const ValueId shift = builder.elementwise(Op::Mul, {which, four}, at);
    v = wrapped(builder, builder.elementwise(Op::ShiftRight, {v, shift}, at), elements.dtype, at);
    return reshape(builder, v, elements.shape, at);
  }

  ValueId joined(Builder& builder, ValueId elements, const Extents& bytes, Location at) {
    const ValueId low = builder.cast(half(builder, elements, 0, bytes, at), u8, at);
    const ValueId high = builder.cast(half(builder, elements, 1, bytes, at), u8, at);
    const ValueId four = constant(builder, high, 4, at);
    return builder.elementwise(
        Op::Or,
        {wrapped(builder, low, u4, at), builder.elementwise(Op::ShiftLeft, {high, four}, at)}, at);
  }

  // ---- memory

  /// Operands of an access, and the bytes that it touches.
  struct Access {
    MemoryView m;
    Type elements;
    Extents shape;             // of the bytes
    ValueId bytes = no_value;  // mask
  };
  Access access(Builder& builder, ValueId v, Location at) {
    Access a{MemoryView::of(g_[v]), from_[from_[v].args[0]].type, {}, no_value};
    a.elements = Type::value(a.elements.dtype, a.elements.shape);
    a.shape = g_[a.m.ref].type.shape;
    if (a.m.mask != no_value)
      a.bytes = builder.elementwise(
          Op::Or,
          {half(builder, a.m.mask, 0, a.shape, at), half(builder, a.m.mask, 1, a.shape, at)}, at);
    return a;
  }
  ValueId loaded(Builder& builder, const Access& a, Location at) {
    return elements_of(builder, builder.load(a.m.ref, a.bytes, no_value, at), a.elements, at);
  }
  ValueId chosen(Builder& builder, const Access& a, ValueId on, ValueId off, Location at) {
    return a.m.mask == no_value ? on : builder.elementwise(Op::Select, {a.m.mask, on, off}, at);
  }

  ValueId load(Builder& builder, ValueId v, Location at) {
    const Access a = access(builder, v, at);
    const ValueId all = loaded(builder, a, at);
    return a.m.other == no_value ? all : chosen(builder, a, all, a.m.other, at);
  }

  void put(Builder& builder, const Access& a, ValueId old, Location at) {
    const ValueId all = chosen(builder, a, a.m.value, old, at);
    builder.store(a.m.ref, joined(builder, all, a.shape, at), a.bytes, at);
  }

  void store(Builder& builder, ValueId v, Location at) {
    const Access a = access(builder, v, at);
    put(builder, a, a.m.mask == no_value ? no_value : loaded(builder, a, at), at);
  }

  ValueId swap(Builder& builder, ValueId v, Location at) {
    const Access a = access(builder, v, at);
    const ValueId old = loaded(builder, a, at);
    put(builder, a, old, at);
    return chosen(builder, a, old, a.m.value, at);
  }

  // ---- conversions

  ValueId cast(Builder& builder, ValueId v, Location at) {
    const DType to = from_[v].type.dtype;
    ValueId x = g_[v].args[0];
    if (!to.is_packed()) return builder.cast(x, to, at);
    if (g_[x].type.dtype.is_float()) {
      x = builder.cast(x, computed_as(g_[x].type.dtype), at);
      const auto limit = [&](Op op, double number) {
        const ValueId most = builder.constant(g_[x].type.dtype, number, g_[x].type.shape, at);
        x = builder.elementwise(op, {x, most}, at);
      };
      limit(Op::Max, to.is_signed() ? -8 : 0);
      limit(Op::Min, to.is_signed() ? 7 : 15);
      return builder.cast(x, computed_as(to), at);
    }
    return wrapped(builder, builder.cast(x, computed_as(to), at), to, at);
  }

  const Graph& from_;
  Graph g_;
  std::map<ValueId, ValueId> instead_;
};

}  // namespace

namespace {

bool is_constant(const Inst& i, std::uint64_t number) {
  return i.op == Op::Constant && i.attr.bits == number;
}

// What an operation has beside such a constant; no_value where it is another operation.
ValueId beside(const Graph& g, ValueId v, Op op, std::uint64_t constant) {
  const Inst& i = g[v];
  if (i.op != op) return no_value;
  if (is_constant(g[i.args[1]], constant)) return i.args[0];
  const bool turns = op == Op::Mul || op == Op::And;
  return turns && is_constant(g[i.args[0]], constant) ? i.args[1] : no_value;
}

}  // namespace

Halves halves_in_order(const Graph& g, ValueId v) {
  constexpr std::uint64_t bits = 4, lowest = 15;
  if (g[v].op != Op::Reshape) return {};
  const ValueId pairs = g[v].args[0];
  const bool is_signed = g[pairs].op == Op::ShiftRight;
  ValueId moved =
      is_signed ? beside(g, pairs, Op::ShiftRight, bits) : beside(g, pairs, Op::And, lowest);
  if (is_signed && moved != no_value) moved = beside(g, moved, Op::ShiftLeft, bits);
  if (moved == no_value || g[moved].op != Op::ShiftRight) return {};
  const ValueId which = beside(g, g[moved].args[1], Op::Mul, bits);
  const auto last = static_cast<int>(g[pairs].type.shape.size()) - 1;
  if (which == no_value || g[which].op != Op::Iota || iota_dimension(g[which]) != last) return {};
  ValueId both = g[moved].args[0];
  if (g[both].op == Op::Cast) both = g[both].args[0];
  if (g[both].op != Op::Broadcast || g[g[both].args[0]].op != Op::Reshape) return {};
  const ValueId bytes = g[g[both].args[0]].args[0];
  if (g[bytes].type.dtype != u8 || g[bytes].type.shape.empty()) return {};
  return {bytes, is_signed ? i4 : u4};
}

Halves halves_of(const Graph& g, ValueId v) {
  const Halves halves = halves_in_order(g, v);
  if (halves.bytes == no_value) return {};
  Extents elements = g[halves.bytes].type.shape;
  elements.back() *= per_byte;
  return elements == g[v].type.shape ? halves : Halves();
}

std::set<ValueId> halved_bytes(const Graph& g) {
  std::set<ValueId> all;
  for (std::uint32_t i = 0; i < g.insts.size(); ++i)
    if (const Halves h = halves_of(g, ValueId{i}); h.bytes != no_value) all.insert(h.bytes);
  return all;
}

bool has_packed(const Graph& g) {
  return std::ranges::any_of(g.insts, [](const Inst& in) { return in.type.dtype.is_packed(); }) ||
         std::ranges::any_of(g.mapping.block_mappings,
                             [](const BlockMapping& m) { return m.array_aval.dtype.is_packed(); });
}

Graph in_bytes(const Graph& g) { return Unpacking(g).run(); }

}  // namespace palladium::graph
