#include "tests/support/random_graph.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "codegen/base/dim.hpp"
#include "codegen/graph/builder.hpp"
#include "codegen/graph/grid_order.hpp"
#include "codegen/graph/transform.hpp"

namespace palladium::test {
namespace {

using namespace palladium::graph;

bool is_small(const Extents& shape, int most) { return element_count(shape) <= most; }

// A grid axis and the array extent that its blocks of `block` elements cover.
struct Axis {
  std::int64_t block = 1, programs = 1, extent = 1;
  Dim array_extent = 1;  // `extent`, or a symbol for it
};

// The values that a scope may use.
struct Pool {
  std::vector<ValueId> values;
};

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomOptions& options) : random_(seed), o_(options) {}

  struct Restart {};  // the blocks came out too large

  RandomKernel run() {
    g_.name = "random_" + std::to_string(random_.below(1000));
    g_.at = here_();
    g_.fma = random_.chance(70);
    make_axes();
    make_operands();
    make_body();
    RandomKernel result;
    result.recorded = g_;
    std::vector<std::uint32_t> order;
    for (const BlockMapping& m : g_.mapping.block_mappings)
      for (const Dim& d : m.array_aval.shape) collect_symbols(d, order);
    for (const std::uint32_t s : order) result.symbols.push_back(symbol_values_[s]);
    result.graph = canonicalize(g_);
    result.graph.semantics = grid_order(result.graph, {});
    result.recorded.semantics = result.graph.semantics;
    verify(result.graph, "random_kernel");
    return result;
  }

 private:
  Location here_() { return {"random.cpp", ++line_}; }
  const Type& type(ValueId v) const { return g_[v].type; }

  DType dtype() { return random_.pick(o_.dtypes); }
  template <class Predicate>
  std::optional<DType> dtype_where(const Predicate& predicate) {
    std::vector<DType> fitting;
    for (const DType d : o_.dtypes)
      if (predicate(d)) fitting.push_back(d);
    if (fitting.empty()) return {};
    return random_.pick(fitting);
  }

  // ---- grid and arrays

  void make_axes() {
    const int count = random_.below(4);
    for (int i = 0; i < count; ++i) {
      Axis a;
      a.block = random_.pick({1, 2, 3, 4, 5, 8, 16});
      a.programs = random_.pick({1, 2, 2, 3, 4});
      a.extent = a.block * a.programs;
      if (o_.ragged && random_.chance(60)) a.extent -= random_.below(static_cast<int>(a.block));
      a.array_extent = a.extent;
      axes_.push_back(a);
    }
    if (count > 0 && o_.revisited && random_.chance(50)) revisited_ = random_.below(count);
    // Symbols are given by the first input, which has every axis that it can.
    if (o_.symbolic)
      for (Axis& a : axes_)
        if (random_.chance(40)) {
          // Recorded in another numbering than the canonical one.
          const auto symbol = static_cast<std::uint32_t>(7 - symbol_count_++);
          a.array_extent = dim_symbol(symbol);
          symbol_values_[symbol] = a.extent;
        }
    GridMapping& m = g_.mapping;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      m.grid.push_back(cdiv(axes_[i].array_extent, axes_[i].block));
      m.index_map_avals.push_back({{{}, i32}, false, Space::automatic});
    }
    if (!axes_.empty() && random_.chance(30))
      for (std::size_t i = 0; i < axes_.size(); ++i)
        m.grid_names.push_back("axis" + std::to_string(i));
    m.index_map_tree = {static_cast<int>(axes_.size()), 0};
  }

  // A dimension of an array and how the grid cuts it.
  struct Dimension {
    BlockDim block;
    Dim extent;
    int axis = -1;           // of the grid; -1: a constant
    std::int64_t scale = 1;  // element index per program
    std::int64_t index = 0;  // where axis < 0
    bool reversed = false;   // last program first
  };

  Dimension along(int axis, bool output) {
    const Axis& a = axes_[axis];
    Dimension d{BlockDim(a.block), a.array_extent, axis};
    const bool symbolic = !a.array_extent.is_static();
    if (symbolic) return d;
    if (random_.chance(25)) {
      d.block = BlockDim(BlockDim::Kind::squeezed, 1);
      d.extent = a.programs + (output ? 0 : random_.below(3));
    } else if (!output && random_.chance(30)) {
      const std::int64_t size = random_.pick({2, 3, 4, 8});
      d.scale = random_.pick({1, 2, 3});
      const std::int64_t lo = random_.below(static_cast<int>(size));
      const std::int64_t last = (a.programs - 1) * d.scale - lo;  // start of the last window
      const std::int64_t extent =
          std::max<std::int64_t>(1, last + random_.between(1, static_cast<int>(size)));
      d.block = BlockDim(BlockDim::Kind::element, size, lo,
                         std::max<std::int64_t>(0, last + size - extent));
      d.extent = extent;
      if (!o_.ragged) {
        d.block.pad_lo = d.block.pad_hi = 0;
        d.extent = (a.programs - 1) * d.scale + size;
      }
    }
    d.reversed = random_.chance(15);
    return d;
  }

  Dimension apart(bool output) {
    const std::int64_t n = random_.pick({1, 1, 2, 3, 4, 5, 8, 16, 17});
    Dimension d{BlockDim(n), n};
    if (output || !random_.chance(30)) {
      if (o_.ragged && random_.chance(15)) d.block.size += random_.below(3);
      return d;
    }
    const int blocks = random_.between(1, 3);
    d.extent = n * blocks - (o_.ragged ? random_.below(static_cast<int>(n)) : 0);
    d.index = random_.below(blocks);
    return d;
  }

  void map_array(const char* origin, DType dtype, const std::vector<Dimension>& dims) {
    BlockMapping m;
    m.origin = origin;
    m.array_aval.dtype = dtype;
    m.alignment = random_.chance(30) ? dtype.bytes() : 16;
    const bool trivial = std::all_of(dims.begin(), dims.end(),
                                     [](const Dimension& d) { return d.axis < 0 && d.index == 0; });
    for (const Dimension& d : dims) {
      m.block_shape.push_back(d.block);
      m.array_aval.shape.push_back(d.extent);
    }
    if (!trivial || random_.chance(50)) {
      const RegionId r = g_.add_region();
      Builder b(g_, r);
      std::vector<ValueId> ids, starts;
      for (std::size_t i = 0; i < axes_.size(); ++i)
        ids.push_back(b.param(Type::value(i32), here_()));
      for (const Dimension& d : dims) {
        if (d.axis < 0) {
          starts.push_back(b.constant(i32, d.index, {}, here_()));
          continue;
        }
        ValueId v = ids[static_cast<std::size_t>(d.axis)];
        if (d.reversed)
          v = b.add(Op::Sub,
                    {b.add(Op::Sub, {b.add(Op::NumPrograms, {}, Attr{{d.axis}, 0}, {}, here_()),
                                     b.constant(i32, 1)}),
                     v},
                    Attr{}, {}, here_());
        if (d.scale != 1) v = b.add(Op::Mul, {v, b.constant(i32, d.scale)}, Attr{}, {}, here_());
        if (random_.chance(20)) v = b.cast(v, i64, here_());
        starts.push_back(v);
      }
      b.yield(starts);
      m.index_map = index(r);
    }
    g_.mapping.block_mappings.push_back(std::move(m));
  }

  bool fits(const std::vector<Dimension>& dims) const {
    std::int64_t n = 1;
    for (const Dimension& d : dims) n *= d.block.size;
    return n <= o_.max_elements && dims.size() <= 4;
  }

  bool is_ragged(const BlockMapping& m) const {
    for (std::size_t i = 0; i < m.block_shape.size(); ++i) {
      const Dim& extent = m.array_aval.shape[static_cast<int>(i)];
      if (!extent.is_static() || extent.value() % m.block_shape[i].size != 0 ||
          m.block_shape[i].kind == BlockDim::Kind::element)
        return true;
    }
    return false;
  }

  // Blocks of an array that has the grid axes for which `has` holds.
  template <class Has>
  std::vector<Dimension> dimensions(bool output, const Has& has) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::vector<Dimension> dims;
      for (int a = 0; a < static_cast<int>(axes_.size()); ++a)
        if (has(a)) dims.push_back(along(a, output));
      while (random_.chance(40)) dims.push_back(apart(output));
      shuffle(dims);
      if (fits(dims)) return dims;
    }
    throw Restart{};
  }

  void make_operands() {
    GridMapping& m = g_.mapping;
    m.num_inputs = random_.between(1, 3);
    m.num_outputs = random_.between(1, 2);
    for (int i = 0; i < m.num_inputs; ++i) {
      const std::vector<Dimension> dims = dimensions(false, [&](int axis) {
        const bool binds =
            i == 0 && !axes_[static_cast<std::size_t>(axis)].array_extent.is_static();
        return binds || random_.chance(60);
      });
      map_array(("args[" + std::to_string(i) + "]").c_str(), dtype(), dims);
      g_.arguments.push_back({Argument::Kind::input, i, m.block_mappings.back().array_aval.dtype});
    }
    const int scalars = random_.below(3);
    for (int i = 0; i < scalars; ++i)
      g_.arguments.insert(
          g_.arguments.begin() + random_.below(static_cast<int>(g_.arguments.size()) + 1),
          {Argument::Kind::scalar, 0, dtype()});
    int number = 0;
    for (Argument& a : g_.arguments)
      if (a.kind == Argument::Kind::scalar) a.index = number++;
    for (int i = 0; i < m.num_outputs; ++i) {
      // One output at least is the same along the revisited axis.
      const bool skip = revisited_ >= 0 && (i == 0 || random_.chance(50));
      const std::vector<Dimension> dims =
          dimensions(true, [&](int axis) { return axis != revisited_ || !skip; });
      map_array(("outputs[" + std::to_string(i) + "]").c_str(), dtype(), dims);
    }
    if (o_.aliases && random_.chance(70)) {
      BlockMapping& in = m.block_mappings[0];
      const BlockMapping& out = m.block_mappings[static_cast<std::size_t>(m.num_inputs)];
      const std::string origin = in.origin;
      bool bound = true;  // the first input binds the symbols
      for (const Dim& d : in.array_aval.shape) bound = bound && d.is_static();
      if (bound) {
        in = out;
        in.origin = origin;
        for (Argument& a : g_.arguments)
          if (a.kind == Argument::Kind::input && a.index == 0) a.dtype = in.array_aval.dtype;
        g_.aliases.push_back({0, 0});
      }
    }
    const int scratch = o_.scratch ? random_.below(3) : 0;
    for (int i = 0; i < scratch; ++i) {
      ShapeDtype t;
      t.dtype = dtype();
      const Extents shape = some_shape();
      for (const std::int64_t n : shape) t.shape.push_back(n);
      m.scratch_avals.push_back({t, true, random_.chance(70) ? Space::smem : Space::regs});
    }
    g_.semantics.assign(axes_.size(), Semantics::parallel);
  }

  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<std::size_t>(random_.below(static_cast<int>(i)))]);
  }

  Extents some_shape() {
    Extents shape;
    do {
      shape.clear();
      const int rank = random_.below(4);
      for (int i = 0; i < rank; ++i) shape.push_back(random_.pick({1, 2, 3, 4, 5, 7, 8, 16, 32}));
    } while (!is_small(shape, o_.max_elements));
    return shape;
  }

  // ---- values

  ValueId add(Builder& b, Op op, std::vector<ValueId> args, Attr attr = {}, Type given = {}) {
    const ValueId v = b.add(op, std::move(args), std::move(attr), std::move(given), here_());
    if (random_.chance(5)) {
      g_.names.resize(g_.insts.size());
      g_.names[index(v)] = "v" + std::to_string(line_);
    }
    return v;
  }

  ValueId constant(Builder& b, DType dtype, const Extents& shape = {}) {
    return b.add(Op::Constant, {}, {{}, random_number(random_, dtype)}, Type::value(dtype, shape),
                 here_());
  }

  ValueId some_value(Builder& b, Pool& pool) {
    if (pool.values.empty() || random_.chance(10)) {
      const ValueId v = random_.chance(50) ? leaf(b) : constant(b, dtype(), some_shape());
      pool.values.push_back(v);
      return v;
    }
    // Recent values more often, so that chains grow.
    const int n = static_cast<int>(pool.values.size());
    const int i = random_.chance(60) ? n - 1 - random_.below(std::min(n, 4)) : random_.below(n);
    return pool.values[static_cast<std::size_t>(i)];
  }

  ValueId leaf(Builder& b) {
    const int axes = static_cast<int>(axes_.size());
    if (axes > 0 && random_.chance(50)) {
      const std::int64_t axis = random_.below(axes);
      switch (random_.below(4)) {
      case 0: return add(b, Op::NumPrograms, {}, {{axis}, 0});
      case 1: return add(b, Op::AxisIndex, {}, {{0, axis}, 0});
      default: return add(b, Op::ProgramId, {}, {{axis}, 0});
      }
    }
    const Extents shape = some_shape();
    const auto number = dtype_where([](DType d) { return !d.is_bool(); });
    if (shape.empty() || !number) return constant(b, dtype());
    const std::int64_t d = random_.below(static_cast<int>(shape.size()));
    return add(b, Op::Iota, {}, {{d}, 0}, Type::value(*number, shape));
  }

  // A value of that dtype and shape made of `v`.
  ValueId coerce(Builder& b, ValueId v, DType dtype, const Extents& shape) {
    const Extents& own = type(v).shape;
    bool broadcasts = own.size() <= shape.size();
    for (std::size_t i = 0; broadcasts && i < own.size(); ++i) {
      const std::int64_t to = shape[shape.size() - own.size() + i];
      broadcasts = own[i] == to || own[i] == 1;
    }
    if (!broadcasts && element_count(own) == element_count(shape)) {
      v = add(b, Op::Reshape, {v}, {}, Type::value({}, shape));
    } else if (!broadcasts) {
      if (o_.contractions && !own.empty()) {
        Attr all;
        for (std::size_t i = 0; i < own.size(); ++i)
          all.ints.push_back(static_cast<std::int64_t>(i));
        v = add(b, random_.chance(50) ? Op::ReduceMax : Op::ReduceMin, {v}, all);
      } else {
        v = constant(b, type(v).dtype);
      }
    }
    if (random_.chance(50)) return b.broadcast_to(b.cast(v, dtype, here_()), shape, here_());
    return b.cast(b.broadcast_to(v, shape, here_()), dtype, here_());
  }

  // Small whole numbers, so that their sums and products are exact in any order.
  ValueId small(Builder& b, ValueId v, DType dtype) {
    const ValueId whole = b.cast(v, i32, here_());
    const ValueId low = b.elementwise(Op::And, {whole, b.constant(i32, 7, {}, here_())}, here_());
    return b.cast(low, dtype, here_());
  }

  // 0 .. limit, whatever the scalar is.
  ValueId index_up_to(Builder& b, Pool& pool, std::int64_t limit) {
    const ValueId v = coerce(b, some_value(b, pool), i32, {});
    const ValueId low = add(b, Op::Max, {v, b.constant(i32, 0, {}, here_())});
    return add(b, Op::Min, {low, b.constant(i32, limit, {}, here_())});
  }

  ValueId condition(Builder& b, Pool& pool) {
    const ValueId v = coerce(b, some_value(b, pool), dtype(), {});
    if (type(v).dtype.is_bool()) return v;
    return add(b, random_.pick({Op::Eq, Op::Ne, Op::Lt, Op::Ge}), {v, constant(b, type(v).dtype)});
  }

  ValueId unary(Builder& b, ValueId v) {
    const DType d = type(v).dtype;
    if (d.is_bool()) return add(b, Op::Not, {v});
    if (!d.is_float()) return add(b, random_.pick({Op::Neg, Op::Abs, Op::Sign, Op::Not}), {v});
    const Op op = random_.pick(
        {Op::Neg, Op::Abs, Op::Sign, Op::Sqrt, Op::Floor, Op::Ceil, Op::Round, Op::IsFinite});
    return add(b, op, {v});
  }

  ValueId binary(Builder& b, Pool& pool) {
    const ValueId x = some_value(b, pool);
    const ValueId other = some_value(b, pool);
    const DType d = type(x).dtype;
    // Either shape may be the larger one; else the other operand is made to fit.
    bool compatible = true;
    const Extents &p = type(x).shape, &q = type(other).shape;
    std::int64_t elements = 1;
    for (std::size_t i = 1; i <= std::max(p.size(), q.size()); ++i) {
      const std::int64_t m = i <= p.size() ? p[p.size() - i] : 1;
      const std::int64_t n = i <= q.size() ? q[q.size() - i] : 1;
      compatible = compatible && (m == n || m == 1 || n == 1);
      elements *= std::max(m, n);
    }
    const ValueId y = compatible && elements <= o_.max_elements ? b.cast(other, d, here_())
                                                                : coerce(b, other, d, Extents(p));
    const Location at = here_();
    if (random_.chance(20))
      return b.elementwise(random_.pick({Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge}), {x, y},
                           at);
    if (d.is_bool()) return b.elementwise(random_.pick({Op::And, Op::Or, Op::Xor}), {x, y}, at);
    if (!d.is_float())
      return b.elementwise(
          random_.pick({Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::Max, Op::Min, Op::And,
                        Op::Or, Op::Xor, Op::ShiftLeft, Op::ShiftRight}),
          {x, y}, at);
    const Op op =
        random_.pick({Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min, Op::Add, Op::Mul, Op::Div});
    if (op != Op::Div) return b.elementwise(op, {x, y}, at);
    const ValueId above =
        b.elementwise(Op::Add, {add(b, Op::Abs, {y}), b.constant(d, 1, {}, at)}, at);
    return b.elementwise(Op::Div, {x, above}, at);
  }

  ValueId select(Builder& b, Pool& pool) {
    const ValueId x = some_value(b, pool);
    const Type t = type(x);
    const ValueId y = coerce(b, some_value(b, pool), t.dtype, t.shape);
    return add(b, Op::Select, {coerce(b, some_value(b, pool), bool_, t.shape), x, y});
  }

  ValueId reshaped(Builder& b, ValueId v) {
    const Extents shape = type(v).shape;
    switch (random_.below(3)) {
    case 0: return add(b, Op::Transpose, {v}, {permutation(shape.size()), 0});
    case 1: return add(b, Op::Reshape, {v}, {}, Type::value({}, regrouped(shape)));
    default: break;
    }
    Extents to = shape;
    Attr attr;
    const int at = random_.below(static_cast<int>(shape.size()) + 1);
    for (std::size_t i = 0; i < shape.size(); ++i)
      attr.ints.push_back(static_cast<std::int64_t>(i) + (static_cast<int>(i) >= at ? 1 : 0));
    to.insert(to.begin() + at, random_.pick({1, 2, 3, 4}));
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == 1 && random_.chance(50))
        to[static_cast<std::size_t>(attr.ints[i])] = random_.pick({2, 3, 5});
    if (to.size() > 4 || !is_small(to, o_.max_elements)) return v;
    return add(b, Op::Broadcast, {v}, attr, Type::value({}, to));
  }

  std::vector<std::int64_t> permutation(std::size_t rank) {
    std::vector<std::int64_t> p;
    for (std::size_t i = 0; i < rank; ++i) p.push_back(static_cast<std::int64_t>(i));
    shuffle(p);
    return p;
  }

  // The same elements in another shape: two dimensions merged, or one split.
  Extents regrouped(Extents shape) {
    if (shape.size() >= 2 && random_.chance(50)) {
      const std::size_t i =
          static_cast<std::size_t>(random_.below(static_cast<int>(shape.size()) - 1));
      shape[i] *= shape[i + 1];
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return shape;
    }
    if (shape.empty() || shape.size() >= 4) return shape;
    const std::size_t i = static_cast<std::size_t>(random_.below(static_cast<int>(shape.size())));
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= shape[i]; ++d)
      if (shape[i] % d == 0) divisors.push_back(d);
    const std::int64_t d = random_.pick(divisors);
    shape[i] /= d;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1, d);
    return shape;
  }

  ValueId reduced(Builder& b, ValueId v) {
    const std::size_t rank = type(v).shape.size();
    if (rank == 0) return unary(b, v);
    Attr dims;
    for (std::size_t i = 0; i < rank; ++i)
      if (random_.chance(50)) dims.ints.push_back(static_cast<std::int64_t>(i));
    if (dims.ints.empty()) dims.ints.push_back(random_.below(static_cast<int>(rank)));
    const DType d = type(v).dtype;
    const Op op = random_.pick({Op::ReduceSum, Op::ReduceMax, Op::ReduceMin});
    if (op != Op::ReduceSum) return add(b, op, {v}, dims);
    if (d.is_integer()) return add(b, op, {v}, dims);
    return add(b, op, {small(b, v, d.is_float() ? d : i32)}, dims);
  }

  ValueId dot(Builder& b, Pool& pool) {
    const auto d = dtype_where([](DType t) {
      return t.is_float() || (t.is_integer() && t.is_signed() && t.bytes() <= 4);
    });
    if (!d) return binary(b, pool);
    const std::int64_t m = random_.pick({1, 3, 8, 16, 17}), n = random_.pick({1, 2, 8, 16, 24}),
                       k = random_.pick({1, 4, 8, 16, 19});
    const std::int64_t ta = random_.below(2), tb = random_.below(2);
    const auto operand = [&](Extents shape, bool transposed) {
      if (transposed) std::swap(shape[0], shape[1]);
      const ValueId v = coerce(b, some_value(b, pool), *d, shape);
      return d->is_float() ? small(b, v, *d) : v;
    };
    if (m * n > o_.max_elements || m * k > o_.max_elements || k * n > o_.max_elements)
      return binary(b, pool);
    const ValueId x = operand({m, k}, ta), y = operand({k, n}, tb);
    return add(b, Op::Dot, {x, y}, {{ta, tb, 0}, 0});
  }

  // ---- memory

  ValueId view(Builder& b, Pool& pool, ValueId ref) {
    for (int step = random_.below(3); o_.memory && step > 0; --step) {
      const Type t = type(ref);
      switch (random_.below(5)) {
      case 0: ref = add(b, Op::RefTranspose, {ref}, {permutation(t.shape.size()), 0}); break;
      case 1: ref = add(b, Op::RefReshape, {ref}, {}, Type::ref({}, regrouped(t.shape), {})); break;
      case 2:
        if (t.dtype.is_integer())
          ref = add(b, Op::RefBitcast, {ref}, {}, Type::ref(same_size(t.dtype), {}, {}));
        break;
      default: ref = part(b, pool, ref);
      }
    }
    return ref;
  }

  DType same_size(DType d) {
    const auto kind = d.kind() >= DType::U8 ? d.kind() - 4 : d.kind() + 4;
    return DType(static_cast<DType::Kind>(kind));
  }

  ValueId part(Builder& b, Pool& pool, ValueId ref) {
    const Type t = type(ref);
    Subscript s;
    std::vector<ValueId> starts;
    bool everything = true;
    for (const std::int64_t extent : t.shape) {
      SubscriptDim d;
      d.is_slice = random_.chance(70);
      if (d.is_slice) {
        d.size = random_.chance(40) ? extent : random_.between(1, static_cast<int>(extent));
        if (d.size > 1)
          d.stride = random_.between(1, static_cast<int>((extent - 1) / (d.size - 1)));
        if (random_.chance(60)) d.stride = 1;
      }
      const std::int64_t last = extent - 1 - (d.size - 1) * d.stride;
      d.dynamic = random_.chance(40);
      if (d.dynamic)
        starts.push_back(index_up_to(b, pool, last));
      else
        d.start = random_.below(static_cast<int>(last) + 1);
      everything = everything && d.is_slice && !d.dynamic && d.size == extent;
      s.dims.push_back(d);
    }
    if (everything) return ref;
    return b.at(ref, s, starts, here_());
  }

  ValueId mask(Builder& b, Pool& pool, const Extents& shape) {
    if (!o_.memory || random_.chance(60)) return no_value;
    return coerce(b, some_value(b, pool), bool_, shape);
  }

  ValueId load(Builder& b, Pool& pool) {
    const ValueId v = view(b, pool, random_.pick(readable_));
    const Type t = type(v);
    const ValueId m = mask(b, pool, t.shape);
    if (m == no_value) return b.load(v, no_value, no_value, here_());
    return b.load(v, m, coerce(b, some_value(b, pool), t.dtype, t.shape), here_());
  }

  void store(Builder& b, Pool& pool) {
    if (writable_.empty()) return;
    const ValueId v = view(b, pool, random_.pick(writable_));
    const Type t = type(v);
    const ValueId x = coerce(b, some_value(b, pool), t.dtype, t.shape);
    b.store(v, x, mask(b, pool, t.shape), here_());
  }

  void swap(Builder& b, Pool& pool) {
    std::vector<ValueId> both;
    for (const ValueId r : writable_)
      if (std::find(readable_.begin(), readable_.end(), r) != readable_.end()) both.push_back(r);
    if (both.empty()) return;
    const ValueId v = view(b, pool, random_.pick(both));
    const Type t = type(v);
    const ValueId x = coerce(b, some_value(b, pool), t.dtype, t.shape);
    pool.values.push_back(b.swap(v, x, mask(b, pool, t.shape), here_()));
  }

  // ---- statements

  void statement(Builder& b, Pool& pool, int depth) {
    const auto keep = [&](ValueId v) { pool.values.push_back(v); };
    const int kind = random_.below(100);
    if (kind < 18) return keep(load(b, pool));
    if (kind < 42) return keep(binary(b, pool));
    if (kind < 50) return keep(unary(b, some_value(b, pool)));
    if (kind < 56) return keep(select(b, pool));
    if (kind < 62) return keep(b.cast(some_value(b, pool), dtype(), here_()));
    if (kind < 68) return keep(reshaped(b, some_value(b, pool)));
    if (kind < 74) return keep(o_.contractions ? reduced(b, some_value(b, pool)) : leaf(b));
    if (kind < 77) return keep(o_.contractions ? dot(b, pool) : leaf(b));
    if (kind < 85) return store(b, pool);
    if (kind < 88) return o_.memory ? swap(b, pool) : keep(leaf(b));
    if (kind < 91) return keep(leaf(b));
    if (depth == 0) return keep(binary(b, pool));
    kind < 95 ? when(b, pool, depth) : loop(b, pool, depth);
  }

  void statements(Builder& b, Pool& pool, int count, int depth) {
    for (int i = 0; i < count; ++i) statement(b, pool, depth);
  }

  void when(Builder& b, Pool& pool, int depth) {
    const ValueId c = condition(b, pool);
    const RegionId r = g_.add_region();
    Builder inner(g_, r);
    Pool scope = pool;
    statements(inner, scope, random_.between(1, 5), depth - 1);
    store(inner, scope);
    b.add(Op::When, {c}, std::vector<RegionId>{r}, {}, here_());
  }

  void loop(Builder& b, Pool& pool, int depth) {
    const ValueId lo = b.constant(i32, random_.below(3), {}, here_());
    const ValueId hi = random_.chance(50) ? b.constant(i32, random_.below(6), {}, here_())
                                          : index_up_to(b, pool, 5);
    std::vector<ValueId> args{lo, hi};
    const int carries = random_.below(4);
    for (int i = 0; i < carries; ++i) args.push_back(some_value(b, pool));
    const RegionId r = g_.add_region();
    Builder inner(g_, r);
    Pool scope = pool;
    scope.values.push_back(inner.param(Type::value(i32), here_()));
    std::vector<ValueId> params;
    for (int i = 0; i < carries; ++i) {
      params.push_back(inner.param(type(args[static_cast<std::size_t>(2 + i)]), here_()));
      scope.values.push_back(params.back());
    }
    statements(inner, scope, random_.between(1, 6), depth - 1);
    std::vector<ValueId> yields;
    for (const ValueId p : params) {
      const Type t = type(p);
      yields.push_back(coerce(inner, some_value(inner, scope), t.dtype, t.shape));
    }
    inner.yield(yields);
    const std::int64_t step = random_.pick({1, 1, 1, 2, 3}), unroll = random_.pick({1, 1, 2, 4});
    const ValueId v = b.add(Op::Loop, args, std::vector<RegionId>{r}, {{step, unroll}, 0}, here_());
    for (int i = 0; i < carries; ++i)
      if (random_.chance(80)) pool.values.push_back(add(b, Op::Get, {v}, {{i}, 0}));
  }

  // ---- body

  void initialise(Builder& b, Pool& pool, ValueId ref, bool once) {
    const Type t = type(ref);
    if (once && revisited_ >= 0) {
      const ValueId id = add(b, Op::ProgramId, {}, {{revisited_}, 0});
      const ValueId first = add(b, Op::Eq, {id, b.constant(i32, 0, {}, here_())});
      const RegionId r = g_.add_region();
      Builder inner(g_, r);
      Pool scope = pool;
      inner.store(ref, coerce(inner, some_value(inner, scope), t.dtype, t.shape), no_value,
                  here_());
      b.add(Op::When, {first}, std::vector<RegionId>{r}, {}, here_());
    } else {
      b.store(ref, coerce(b, some_value(b, pool), t.dtype, t.shape), no_value, here_());
    }
  }

  void make_body() {
    const RegionId r = g_.add_region();
    g_.bodies.push_back({r, 1});
    Builder b(g_, r);
    Pool pool;
    const GridMapping& m = g_.mapping;
    const auto block = [&](int i) {
      const BlockMapping& bm = m.block_mappings[static_cast<std::size_t>(i)];
      return b.param(Type::ref(bm.array_aval.dtype, bm.ref_shape(), bm.memory_space), here_());
    };
    for (const Argument& a : g_.arguments)
      if (a.kind == Argument::Kind::scalar)
        pool.values.push_back(b.param(Type::value(a.dtype), here_()));
      else
        readable_.push_back(block(a.index));
    std::vector<ValueId> outputs, scratch;
    for (int i = 0; i < m.num_outputs; ++i) outputs.push_back(block(m.num_inputs + i));
    for (const AbstractValue& s : m.scratch_avals) {
      Extents shape;
      for (const Dim& d : s.type.shape) shape.push_back(d.value());
      scratch.push_back(b.param(Type::ref(s.type.dtype, shape, s.memory_space), here_()));
    }
    for (int i = random_.between(1, 3); i > 0; --i) pool.values.push_back(load(b, pool));
    statements(b, pool, 2, 0);
    for (const ValueId s : scratch) {
      initialise(b, pool, s, random_.chance(50));
      readable_.push_back(s);
      writable_.push_back(s);
    }
    for (int i = 0; i < m.num_outputs; ++i) {
      const ValueId o = outputs[static_cast<std::size_t>(i)];
      const BlockMapping& bm = m.block_mappings[static_cast<std::size_t>(m.num_inputs + i)];
      const bool revisits = revisited_ >= 0 && bm.index_map != no_region &&
                            !depends_on_axis(g_, m.num_inputs + i, revisited_);
      initialise(b, pool, o, revisits || bm.index_map == no_region);
      writable_.push_back(o);
      // What lies beyond the end of an array was not kept: it may not be read again.
      if (!is_ragged(bm)) readable_.push_back(o);
    }
    statements(b, pool, o_.statements, o_.depth);
    for (const ValueId o : outputs) {
      const Type t = type(o);
      ValueId x = coerce(b, some_value(b, pool), t.dtype, t.shape);
      // Element by element, so that what lies beyond the end stays there.
      if (random_.chance(50) && !t.dtype.is_bool())
        x = add(b, random_.pick({Op::Add, Op::Max}), {b.load(o, no_value, no_value, here_()), x});
      if (o_.elementary && t.dtype.is_float() && random_.chance(70))
        x = add(b,
                random_.pick({Op::Exp, Op::Exp2, Op::Expm1, Op::Sin, Op::Cos, Op::Tanh,
                              Op::Logistic, Op::Erf}),
                {x});
      b.store(o, x, no_value, here_());
    }
  }

  Random random_;
  RandomOptions o_;
  Graph g_;
  std::vector<Axis> axes_;
  int revisited_ = -1;
  int symbol_count_ = 0;
  std::int64_t symbol_values_[8] = {};
  std::vector<ValueId> readable_, writable_;
  int line_ = 0;
};

}  // namespace

std::uint64_t Random::bits() {  // splitmix64
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t random_number(Random& random, DType dtype) {
  if (dtype.is_bool()) return random.bits() & 1;
  if (dtype.is_float()) {
    if (random.chance(3))
      return to_bits(dtype, random.chance(50) ? std::numeric_limits<double>::infinity() : 0.0);
    const double sign = random.chance(50) ? 1 : -1;
    return to_bits(dtype, sign * random.between(1, 80) / random.pick({1, 2, 4, 8, 3}));
  }
  if (random.chance(5)) {
    const std::uint64_t most = to_bits(dtype, std::numeric_limits<double>::infinity());
    return random.chance(50) ? most : to_bits(dtype, -std::numeric_limits<double>::infinity());
  }
  return to_bits(dtype, static_cast<std::int64_t>(random.between(dtype.is_signed() ? -20 : 0, 40)));
}

std::vector<std::int64_t> RandomKernel::array_shape(int i) const {
  std::vector<std::int64_t> shape;
  for (const Dim& d : graph.mapping.block_mappings[static_cast<std::size_t>(i)].array_aval.shape)
    shape.push_back(evaluate(d, symbols));
  return shape;
}

RandomKernel random_kernel(std::uint64_t seed, const RandomOptions& options) {
  // Blocks that came out too large are drawn again, from a seed that follows from this one.
  for (std::uint64_t attempt = 0;; ++attempt) try {
      return Generator(seed + (attempt << 40), options).run();
    } catch (const Generator::Restart&) {
    }
}

}  // namespace palladium::test
