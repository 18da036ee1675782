#include "codegen/lowered/hand_places.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "codegen/base/format.hpp"

namespace palladium::lowered::hand {

using graph::Inst;
using graph::Op;

namespace {

// A position among the parameters of a body, as the interpreter names it.
std::string name_of(const graph::Graph& g, ValueId root, int position) {
  const auto arguments = static_cast<int>(g.arguments.size());
  if (position < arguments)
    return fmt::format("args[{}]", g.arguments[static_cast<std::size_t>(position)].index);
  if (position < arguments + g.mapping.num_outputs)
    return fmt::format("outputs[{}]", position - arguments);
  const std::string user = graph::index(root) < g.names.size() ? g.names[graph::index(root)] : "";
  const std::string number =
      fmt::format("scratch[{}]", position - arguments - g.mapping.num_outputs);
  return user.empty() ? number : fmt::format("{} ({})", number, user);
}

std::int32_t narrow(std::int64_t n) {
  constexpr std::int64_t most = INT32_MAX;
  return static_cast<std::int32_t>(std::clamp(n, -most, most));
}

}  // namespace

// ---- memories

void Places::open(ValueId root) {
  entry_of_[root] = ++entries_;
  memories_[graph::index(root)] = -1;
}

int Places::memory_of(ValueId root) {
  int& known = memories_[graph::index(root)];
  if (known < 0) known = new_memory(root, at_.block);
  return known;
}

int Places::memory_of(ValueId root, int block) {
  return block < 0 || block == at_.block ? memory_of(root) : new_memory(root, block);
}

int Places::new_memory(ValueId root, int block) {
  const int position = g_.alias_class(root);
  const bool is_scoped = position >= 1 << 24;
  const Space space = g_[root].type.space;
  const bool is_of_block = space == Space::smem || space == Space::barrier;
  const int number =
      is_scoped ? entry_of_[root] * static_cast<int>(way_.threads.size()) + Way::thread_of(at_)
      : is_of_block && block > 0 ? block
                                 : 0;
  const auto [it, is_new] = way_.memory_of.try_emplace(
      {is_scoped ? -1 : position, is_scoped ? root : graph::no_value, number},
      static_cast<int>(way_.memories.size()));
  if (is_new) {
    std::string name = is_scoped ? "scratch of run_scoped" : name_of(g_, root, position);
    if (is_of_block && block >= 0) name += fmt::format(" of block {}", block);
    way_.memories.push_back({root, std::move(name), space == Space::smem});
  }
  return it->second;
}

int Places::block_of(ValueId v, const Inst& inst) {
  const ValueId rank = inst.op == Op::RefPeer ? inst.args[1] : graph::block_of_arrival(inst);
  if (rank == graph::no_value) return -1;
  const std::int64_t block = numbers_.of(rank), count = graph::cluster_blocks(g_);
  if (block >= 0 && block < count) return static_cast<int>(block);
  way_.refuse(v,
              fmt::format("{} names block {} of a cluster of {} at {}", way_.names[way_.agent(at_)],
                          block, count, place_of(g_.location(v))),
              true);
  return -1;
}

// ---- regions

int Places::keep(const Region& r) {
  way_.regions.push_back(r);
  return static_cast<int>(way_.regions.size()) - 1;
}

int Places::part(ValueId view, int dimension, std::int64_t parts, std::int64_t number) {
  Region r = region_of(view);
  const auto d = static_cast<std::size_t>(dimension);
  const std::int64_t size = g_[view].type.shape[d] / parts;
  if (d < axes_.size())
    (void)along(axes_[d], {.start = number * size, .size = size}, number * size, r);
  return keep(r);
}

Region Places::region_of(ValueId ref) {
  const std::vector<ValueId>& views = facts_.views[graph::index(ref)];
  const ValueId root = views.empty() ? ref : g_[views[0]].args[0];
  const graph::Extents& shape = g_[root].type.shape;
  Region r{.memory = memory_of(root)};
  axes_.clear();
  if (shape.size() > Region::most_spans) {
    r.is_exact = views.empty();
    return r;
  }
  r.rank = static_cast<std::uint8_t>(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    r.spans[d] = {0, narrow(shape[d])};
    axes_.push_back({static_cast<int>(d), 1});
  }
  for (const ValueId v : views) see(v, r);
  return r;
}

void Places::see(ValueId v, Region& r) {
  const Inst& view = g_[v];
  if (view.op == Op::RefTranspose) {
    std::vector<Axis> moved;
    for (const std::int64_t d : graph::dimensions(view))
      moved.push_back(axes_[static_cast<std::size_t>(d)]);
    axes_ = std::move(moved);
  } else if (view.op == Op::RefPeer) {
    r.memory = memory_of(g_.root(v), block_of(v, view));
  } else if (view.op == Op::RefPart) {
    enter_part(view, r);
  } else if (view.op == Op::At) {
    select(v, r);
  } else if (view.op == Op::RefBitcast && !axes_.empty()) {
    axes_.back().of = -1;
  } else {
    axes_.assign(view.type.shape.size(), {});
  }
}

// Of bytes: rows of a member stand one behind the other.
void Places::enter_part(const Inst& view, Region& r) {
  const graph::Extents& shape = view.type.shape;
  const std::int64_t bytes = graph::element_count(shape) * view.type.dtype.bits() / 8;
  const std::int64_t begin = graph::offset_of_part(view);
  r.spans[0] = {narrow(begin), narrow(begin + bytes)};
  axes_.assign(shape.size(), {});
  if (!shape.empty()) axes_[0] = {0, bytes / shape[0], bytes / shape[0]};
}

void Places::select(ValueId v, Region& r) {
  const Inst& view = g_[v];
  std::size_t next = 1, left = 0;
  const std::vector<graph::SubscriptDim>& dims = facts_.subscripts[graph::index(v)].dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const graph::SubscriptDim& dim = dims[d];
    const std::int64_t start = dim.array     ? 0
                               : dim.dynamic ? numbers_.of(view.args[next])
                                             : dim.start;
    next += dim.dynamic;
    const Axis axis = dim.array ? Axis() : along(axes_[d], dim, start, r);
    if (dim.array) r.is_exact = false;
    if (dim.is_slice) axes_[left++] = axis;
  }
  axes_.resize(left);
  if (left != view.type.shape.size()) axes_.assign(view.type.shape.size(), {});
}

Places::Axis Places::along(Axis axis, const graph::SubscriptDim& dim, std::int64_t start,
                           Region& r) {
  if (axis.of < 0) {
    r.is_exact = r.is_exact && dim.is_slice && !dim.dynamic && dim.start == 0 && dim.stride == 1;
    return axis;
  }
  Region::Span& s = r.spans[static_cast<std::size_t>(axis.of)];
  s.from = narrow(s.from + start * axis.stride);
  axis.stride *= dim.is_slice ? dim.stride : 1;
  s.to = narrow(s.from + (dim.is_slice ? (dim.size - 1) * axis.stride : 0) + axis.width);
  r.is_exact = r.is_exact && (axis.stride == axis.width || s.to - s.from == axis.width);
  return axis;
}

}  // namespace palladium::lowered::hand
