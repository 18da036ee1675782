// A kernel made by hand: whole arrays as blocks, no grid unless given.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/graph/builder.hpp"
#include "codegen/graph/transform.hpp"

namespace palladium::graph {

class HandMade {
 public:
  explicit HandMade(std::vector<ShapeDtype> inputs, std::vector<ShapeDtype> outputs = {},
                    std::vector<Dim> grid = {}, std::vector<ShapeDtype> scratch = {},
                    std::vector<DType> scalars = {})
      : b((g.regions.emplace_back(), g), RegionId{0}) {
    g.name = "k";
    g.bodies.push_back({RegionId{0}, 1});
    GridMapping& m = g.mapping;
    m.num_inputs = static_cast<int>(inputs.size());
    m.num_outputs = static_cast<int>(outputs.size());
    m.grid = std::move(grid);
    m.index_map_tree = {static_cast<int>(m.grid.size()), 0};
    m.index_map_avals.assign(m.grid.size(), {{{}, i32}, false, Space::automatic});
    g.semantics.assign(m.grid.size(), Semantics::parallel);
    int number = 0;
    const auto block = [&](const ShapeDtype& t, const std::string& origin) {
      BlockMapping mapping;
      mapping.array_aval = t;
      mapping.origin = origin;
      for (const Dim& d : t.shape) mapping.block_shape.push_back(BlockDim(d.value()));
      m.block_mappings.push_back(std::move(mapping));
      refs.push_back(b.param(Type::ref(t.dtype, extents(t), Space::automatic)));
    };
    for (const ShapeDtype& t : inputs) {
      g.arguments.push_back({Argument::Kind::input, number, t.dtype});
      block(t, "args[" + std::to_string(number++) + "]");
    }
    number = 0;
    for (const DType d : scalars) {
      g.arguments.push_back({Argument::Kind::scalar, number++, d});
      refs.push_back(b.param(Type::value(d)));
    }
    number = 0;
    for (const ShapeDtype& t : outputs) block(t, "outputs[" + std::to_string(number++) + "]");
    for (const ShapeDtype& t : scratch) {
      m.scratch_avals.push_back({t, true, Space::smem});
      refs.push_back(b.param(Type::ref(t.dtype, extents(t), Space::smem)));
    }
  }
  HandMade(const HandMade&) = delete;

  static Extents extents(const ShapeDtype& t) {
    Extents shape;
    for (const Dim& d : t.shape) shape.push_back(d.value());
    return shape;
  }

  /// Sets the index map of block mapping `i` to `results(ids, builder)`.
  template <class Results>
  void map(int i, const Results& results) {
    const RegionId r = g.add_region();
    Builder inner(g, r);
    std::vector<ValueId> ids;
    for (std::size_t a = 0; a < g.mapping.grid.size(); ++a)
      ids.push_back(inner.param(Type::value(i32)));
    inner.yield(results(ids, inner));
    g.mapping.block_mappings[static_cast<std::size_t>(i)].index_map = index(r);
  }

  /// A region in which to record; ends with `b` recording outside of it.
  template <class Record>
  RegionId region(const Record& record) {
    const RegionId r = g.add_region();
    Builder inner(g, r);
    record(inner);
    return r;
  }

  ValueId op(Op op, std::vector<ValueId> args, Attr attr = {}, Type given = {}) {
    return b.add(op, std::move(args), std::move(attr), std::move(given));
  }

  /// Canonical and verified.
  Graph canonical() const {
    Graph result = canonicalize(g);
    verify(result, "test");
    return result;
  }
  /// The lines of the canonical text between the body's braces.
  std::string body() const { return body_of(canonical()); }

  static std::string body_of(const Graph& graph) {
    const std::string text = to_text(graph);
    const std::size_t begin = text.find('\n', text.find("\n{") + 1) + 1;
    return text.substr(begin, text.rfind('}') - begin);
  }

  Graph g;
  Builder b;
  std::vector<ValueId> refs;  // inputs, scalars, outputs, scratch
};

}  // namespace palladium::graph
