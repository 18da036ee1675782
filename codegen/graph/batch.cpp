#include "codegen/graph/batch.hpp"

#include <algorithm>
#include <vector>

namespace palladium::graph {
namespace {

template <class T>
void insert_at(std::vector<T>& list, int position, T element) {
  list.insert(list.begin() + position, std::move(element));
}

void insert_at(Shape& shape, int position, const Dim& d) {
  Shape longer;
  longer.set_argument(shape.argument());
  for (int i = 0; i <= shape.rank(); ++i) {
    if (i == position) longer.push_back(d);
    if (i < shape.rank()) longer.push_back(shape[i]);
  }
  shape = longer;
}

class Batching {
 public:
  Batching(Graph& g, const Dim& size, std::span<const int> axes)
      : g_(g), m_(g.mapping), size_(size), axes_(axes.begin(), axes.end()) {
    axes_.resize(m_.block_mappings.size(), 0);  // outputs
    for (const Alias& a : g_.aliases)
      if (is_shared(a) && !is_written(a)) axes_[output_of(a)] = -1;
  }

  std::string run() {
    if (const std::string problem = find_problem(); !problem.empty()) return problem;
    shift_axes();
    extend_grid();
    for (std::size_t i = 0; i < m_.block_mappings.size(); ++i)
      if (axes_[i] >= 0) extend(static_cast<int>(i));
    for (BlockMapping& m : m_.block_mappings)
      if (m.index_map != no_region) extend_index_map(m);
    for (const Body& body : g_.bodies) choose_in_body(body);
    return "";
  }

 private:
  bool is_index_operand(int mapping) const { return mapping < m_.num_index_operands; }

  std::size_t output_of(const Alias& a) const {
    return static_cast<std::size_t>(m_.num_inputs + a.output);
  }
  /// A Ref that is one for the whole batch.
  bool is_shared(const Alias& a) const {
    return g_.whole_arrays && axes_[static_cast<std::size_t>(a.input)] < 0;
  }
  bool is_written(const Alias& a) const {
    const std::size_t parameter = g_.arguments.size() + static_cast<std::size_t>(a.output);
    return std::ranges::any_of(g_.insts, [&](const Inst& in) {
      return std::ranges::any_of(g_.bodies, [&](const Body& body) {
        return g_.writes(in, g_[body.region].params[parameter]);
      });
    });
  }

  std::string find_problem() const {
    const auto origin = [&](int i) {
      return m_.block_mappings[static_cast<std::size_t>(i)].origin;
    };
    for (const int input : m_.bounds)
      if (input >= 0 && axes_[static_cast<std::size_t>(input)] >= 0)
        return origin(input) +
               " is a size of the grid, which a batch cannot have several of: call the kernel for "
               "each element";
    for (const Alias& a : g_.aliases) {
      const auto output = static_cast<int>(output_of(a));
      if (is_shared(a) && is_written(a))
        return origin(a.input) +
               " is one Ref for the whole batch, which each element of it would write; give each "
               "its own: pass pl::new_ref(array) as an argument, with the batch as its axis 0";
      if (axes_[static_cast<std::size_t>(a.input)] != axes_[output_of(a)])
        return origin(a.input) + " is aliased to " + origin(output) +
               ", whose first axis is the batch: it needs the batch as its axis 0 too";
    }
    for (std::size_t i = 0; i < axes_.size(); ++i)
      if (axes_[i] >= 0 && m_.block_mappings[i].array_aval.shape.rank() == Shape::max_rank)
        return origin(static_cast<int>(i)) + " has " + std::to_string(Shape::max_rank) +
               " dimensions already, the most that there are";
    return "";
  }

  // What counted the axes of the grid counts one more in front.
  void shift_axes() {
    for (Inst& in : g_.insts) {
      if (in.op == Op::ProgramId || in.op == Op::NumPrograms) ++in.attr.ints[0];
      if (in.op != Op::AxisIndex && in.op != Op::AxisSize) continue;
      if (AxisView::of(in).kind == AxisKind::grid) ++in.attr.ints[1];
    }
  }

  void extend_grid() {
    insert_at(m_.grid, 0, size_);
    if (!m_.bounds.empty()) insert_at(m_.bounds, 0, -1);
    if (!m_.grid_names.empty()) insert_at(m_.grid_names, 0, std::string());
    for (int& d : m_.vmapped_dims) ++d;
    insert_at(m_.vmapped_dims, 0, 0);
    insert_at(m_.index_map_avals, 0, AbstractValue{{{}, i32}});
    ++m_.index_map_tree.num_program_ids;
    if (!size_.is_static()) return;
    for (std::int64_t* n : {&g_.cost.flops, &g_.cost.transcendentals, &g_.cost.bytes_accessed})
      *n *= size_.value();
  }

  // One element of the batch is a block; of an index operand all of it.
  void extend(int mapping) {
    BlockMapping& m = m_.block_mappings[static_cast<std::size_t>(mapping)];
    const int axis = axes_[static_cast<std::size_t>(mapping)];
    insert_at(m.array_aval.shape, axis, size_);
    insert_at(m.block_shape, axis,
              is_index_operand(mapping) ? BlockDim::all_of(size_)
                                        : BlockDim(BlockDim::Kind::squeezed, 1));
    if (!is_index_operand(mapping)) return;
    AbstractValue& parameter =
        m_.index_map_avals[m_.grid.size() + static_cast<std::size_t>(mapping)];
    insert_at(parameter.type.shape, axis, BlockDim::all_of(size_).size);
  }

  void extend_index_map(const BlockMapping& m) {
    const auto mapping = static_cast<int>(&m - m_.block_mappings.data());
    const RegionId r{m.index_map};
    const ValueId id = g_.add({Op::Param, Type::value(i32), {}, {}, {}}, g_.at);
    insert_at(g_[r].params, 0, id);
    if (const int axis = axes_[static_cast<std::size_t>(mapping)]; axis >= 0)
      insert_at(g_[r].yields, axis, id);
    for (int i = 0; i < m_.num_index_operands; ++i)
      choose(r, g_[r].params[m_.grid.size() + static_cast<std::size_t>(i)], i, id);
  }

  void choose_in_body(const Body& body) {
    ValueId id = no_value;
    for (std::size_t a = 0; a < g_.arguments.size(); ++a) {
      const Argument& argument = g_.arguments[a];
      if (argument.kind != Argument::Kind::input || !is_index_operand(argument.index)) continue;
      if (axes_[static_cast<std::size_t>(argument.index)] < 0) continue;
      if (id == no_value) {
        id = g_.add({Op::ProgramId, Type::value(i32), {{0}, 0}, {}, {}}, g_.at);
        insert_at(g_[body.region].insts, 0, id);
      }
      choose(body.region, g_[body.region].params[a], argument.index, id);
    }
  }

  // Makes the parameter the whole batch of an index operand, and its users use the element `id`.
  void choose(RegionId r, ValueId parameter, int operand, ValueId id) {
    const int axis = axes_[static_cast<std::size_t>(operand)];
    if (axis < 0) return;
    Inst element{Op::At, g_[parameter].type, {}, {parameter, id}, {}};
    Subscript subscript;
    for (const std::int64_t extent : element.type.shape) subscript.dims.push_back({.size = extent});
    insert_at(subscript.dims, axis, SubscriptDim{.is_slice = false, .dynamic = true});
    element.attr.ints = subscript.encode();
    insert_at(g_[parameter].type.shape, axis, BlockDim::all_of(size_).size);
    const Location at = g_.location(parameter);
    const auto last = static_cast<std::uint32_t>(g_.insts.size());
    const ValueId view = g_.add(std::move(element), at);
    for (std::uint32_t i = 0; i < last; ++i)
      std::ranges::replace(g_.insts[i].args, parameter, view);
    // Behind the id, if that stands here.
    const int behind = !g_[r].insts.empty() && g_[r].insts[0] == id ? 1 : 0;
    insert_at(g_[r].insts, behind, view);
  }

  Graph& g_;
  GridMapping& m_;
  const Dim size_;
  std::vector<int> axes_;  // by block mapping
};

}  // namespace

std::string add_batch_axis(Graph& g, const Dim& size, std::span<const int> axes) {
  return Batching(g, size, axes).run();
}

}  // namespace palladium::graph
