// Random grids, arrays and blocks: what random_kernel() starts from.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/dim.hpp"
#include "codegen/graph/builder.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::test::random_graph {

using namespace palladium::graph;

inline bool is_small(const Extents& shape, int most) { return element_count(shape) <= most; }

// A grid axis and the array extent that its blocks of `block` elements cover.
struct Axis {
  std::int64_t block = 1, programs = 1, extent = 1;
  Dim array_extent = 1;  // `extent`, or a symbol for it
};

struct Restart {};  // the blocks came out too large

class RandomOperands {
 public:
  RandomOperands(std::uint64_t seed, const RandomOptions& options) : random_(seed), o_(options) {}

 protected:
  Location here_() const { return {"random.cpp", line_}; }
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
    std::int64_t index = 0;  // where axis < 0: of so many blocks
    int blocks = 1;
    bool reversed = false;  // last program first
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
    d.blocks = blocks;
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
    // Of equal bytes: views of other bits see them too.
    if (o_.ragged && random_.chance(30))
      m.fill = random_.chance(50) ? 0
               : dtype.is_bool()  ? 1
                                  : std::uint64_t{0x3c3c3c3c3c3c3c3c} >> (64 - dtype.bits());
    if (!trivial || random_.chance(50)) {
      const RegionId r = g_.add_region();
      Builder b(g_, r);
      std::vector<ValueId> ids, starts;
      for (std::size_t i = 0; i < axes_.size(); ++i)
        ids.push_back(b.param(Type::value(i32), here_()));
      std::vector<ValueId> prefetched;
      for (int i = 0; i < g_.mapping.num_index_operands; ++i) {
        const BlockMapping& operand = g_.mapping.block_mappings[static_cast<std::size_t>(i)];
        prefetched.push_back(b.param(
            Type::ref(operand.array_aval.dtype, operand.ref_shape(), Space::gmem), here_()));
      }
      for (const Dimension& d : dims) {
        if (d.axis < 0 && d.blocks > 1 && !prefetched.empty()) {
          starts.push_back(chosen_block(b, random_.pick(prefetched), ids, d.blocks));
          continue;
        }
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

  // One of so many blocks, as an index operand says for the program.
  ValueId chosen_block(Builder& b, ValueId operand, const std::vector<ValueId>& ids, int blocks) {
    Subscript all;
    SubscriptDim dim{.is_slice = false, .dynamic = !ids.empty()};
    std::vector<ValueId> at;
    const auto number = [&](std::int64_t n) { return b.constant(i32, n, {}, here_()); };
    const auto with = [&](Op op, ValueId x, ValueId y) {
      return b.add(op, {x, y}, Attr{}, {}, here_());
    };
    if (dim.dynamic)
      at.push_back(with(Op::Rem, random_.pick(ids), number(g_[operand].type.shape[0])));
    all.dims.push_back(dim);
    const ValueId element = b.at(operand, all, std::move(at), here_());
    const ValueId held = b.cast(b.load(element, no_value, no_value, here_()), i32, here_());
    return with(Op::Min, with(Op::Max, held, number(0)), number(blocks - 1));
  }

  // Index operands; one of a single element may bound an axis of the grid.
  void make_index_operands() {
    GridMapping& m = g_.mapping;
    const int count = random_.chance(30) ? random_.between(1, 2) : 0;
    for (int i = 0; i < count; ++i) {
      BlockMapping operand;
      const std::int64_t n = random_.pick({1, 2, 5});
      const DType dtype = random_.pick({i32, i64, u8, i16});
      operand.block_shape = {BlockDim(n)};
      operand.array_aval = {{n}, dtype};
      operand.origin = "args[" + std::to_string(i) + "]";
      operand.memory_space = Space::gmem;
      operand.alignment = random_.chance(30) ? dtype.bytes() : 16;
      m.index_map_avals.push_back({operand.array_aval, true, Space::gmem});
      m.block_mappings.push_back(std::move(operand));
      g_.arguments.push_back({Argument::Kind::input, i, dtype});
      const bool bounds = n == 1 && !axes_.empty() && m.bounds.empty() && random_.chance(70);
      if (!bounds) continue;
      m.bounds.assign(axes_.size(), -1);
      m.bounds[static_cast<std::size_t>(random_.below(static_cast<int>(axes_.size())))] = i;
    }
    m.num_index_operands = m.num_inputs = count;
    m.index_map_tree.num_index_operands = count;
  }

  bool fits(const std::vector<Dimension>& dims) const {
    std::int64_t n = 1;
    for (const Dimension& d : dims) n *= d.block.size;
    return n <= o_.max_elements && dims.size() <= 4;
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
    make_index_operands();
    const int first = m.num_inputs;
    m.num_inputs += random_.between(1, 3);
    m.num_outputs = random_.between(1, 2);
    for (int i = first; i < m.num_inputs; ++i) {
      const std::vector<Dimension> dims = dimensions(false, [&](int axis) {
        const bool binds =
            i == first && !axes_[static_cast<std::size_t>(axis)].array_extent.is_static();
        return binds || random_.chance(60);
      });
      map_array(("args[" + std::to_string(i) + "]").c_str(), dtype(), dims);
      g_.arguments.push_back({Argument::Kind::input, i, m.block_mappings.back().array_aval.dtype});
    }
    const int scalars = random_.below(3);
    for (int i = 0; i < scalars; ++i) {
      const int at = random_.below(static_cast<int>(g_.arguments.size()) + 1);
      g_.arguments.insert(g_.arguments.begin() + at, {Argument::Kind::scalar, 0, dtype()});
    }
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
      BlockMapping& in = m.block_mappings[static_cast<std::size_t>(first)];
      const BlockMapping& out = m.block_mappings[static_cast<std::size_t>(m.num_inputs)];
      const std::string origin = in.origin;
      bool bound = true;  // the first input binds the symbols
      for (const Dim& d : in.array_aval.shape) bound = bound && d.is_static();
      if (bound) {
        in = out;
        in.origin = origin;
        for (Argument& a : g_.arguments)
          if (a.kind == Argument::Kind::input && a.index == first) a.dtype = in.array_aval.dtype;
        g_.aliases.push_back({first, 0});
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

  Random random_;
  RandomOptions o_;
  Graph g_;
  std::vector<Axis> axes_;
  int revisited_ = -1;
  int symbol_count_ = 0;
  std::int64_t symbol_values_[8] = {};
  int line_ = 1;  // one per statement
};

}  // namespace palladium::test::random_graph
