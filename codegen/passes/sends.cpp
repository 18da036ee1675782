#include "codegen/passes/sends.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/passes/products.hpp"

namespace palladium::passes {
namespace {

using graph::MemoryView;

constexpr std::int64_t most_bytes = 64 << 10;  // of shared memory
// Bytes of an element: of wider ones the two that a thread has of a row are stored as they are.
constexpr int most_element = 2;

// Whether nobody reads the array to which the program stores.
bool is_only_written(const graph::Graph& g, const Analysis& a, const Window& w) {
  const int output = w.mapping - g.mapping.num_inputs;
  const auto aliased = [&](const graph::Alias& alias) { return alias.output == output; };
  const auto reads = [&](ValueId v) { return g.reads(g[v], w.root); };
  return std::ranges::none_of(g.aliases, aliased) && std::ranges::none_of(a.order, reads);
}

// Whether registers in the layout of a product give the value, element by element, its matrix
// transposed or not. Bytes leave a thread in pairs of neighbours, which it has of no transposed
// one.
bool is_of_product(const Program& l, ValueId value) {
  const DimMap all = identity_map(2);
  const bool may_turn = l.graph[value].type.dtype.bytes() > 1;
  const DimMap turned = may_turn ? DimMap(all.rbegin(), all.rend()) : all;
  std::vector<ValueId> left{value};
  std::set<ValueId> seen{value};
  const auto is_pinned = [&](StorageId s) {
    return s && l.storages[s].in_registers() && !l.pinned[l.storages[s].variable].domain.empty();
  };
  bool held = false;
  for (bool first = true; !left.empty() && !held; first = false) {
    const ValueId next = left.back();
    left.pop_back();
    held = !first && is_pinned(l.storage_of[next]);
    for_each_leaf(l, next, all, !first, [&](ValueId v, const DimMap& map, StorageId s) {
      const DimMap whole = lowered::without_slices(map);
      if (!s || !l.storages[s].in_registers() || (whole != all && whole != turned)) return;
      held |= is_pinned(s);
      const auto look_at = [&](ValueId source) {
        if (seen.insert(source).second) left.push_back(source);
      };
      if (graph::is_elementwise(l.graph[v].op) || l.graph[v].op == graph::Op::Transpose) look_at(v);
      for (const ValueId source : held_before(l.graph, v)) look_at(source);
    });
  }
  return held;
}

// Whether a product's registers give what is stored, so that neighbours in a row are few in a
// thread.
bool is_result(const Program& l, ValueId store) {
  const graph::Graph& g = l.graph;
  const MemoryView m = MemoryView::of(g[store]);
  const graph::Type& type = g[m.value].type;
  if (!l.machine.has_tma() || type.dtype.is_packed() || type.dtype.bytes() > most_element ||
      g[store].op != graph::Op::Store || type.shape.size() != 2 || g.bodies.size() > 1 ||
      g.bodies[0].warpgroups > 1 || graph::has_async_ops(g))
    return false;
  const Window& w = l.windows[l.window_of[g.base(m.ref)]];
  return w.is_direct() && w.mapping >= 0 && is_of_product(l, m.value);
}

// Whether TMA may store it, as far as the program is concerned.
bool is_sent(const Program& l, const Analysis& a, ValueId store) {
  const MemoryView m = MemoryView::of(l.graph[store]);
  const Window& w = l.windows[l.window_of[l.graph.base(m.ref)]];
  return m.mask == graph::no_value && !w.is_synchronised() && is_only_written(l.graph, a, w);
}

std::optional<Storage> panels_for(const graph::Graph& g, ValueId value, std::string& why) {
  const Extents& shape = g[value].type.shape;
  const DType t = g[value].type.dtype;
  Storage panels{.in = Shared{.row_stride = shape[1], .swizzle = swizzle_of(shape[1] * t.bytes())},
                 .dtype = t,
                 .shape = shape,
                 .of = value};
  if (panels.shared().swizzle == 0)
    why = "its rows are no multiples of 32 bytes";
  else if (!shared_bytes(panels).within(0, most_bytes))
    why = "a block would need more than 64 KiB of shared memory for it";
  else
    return panels;
  return {};
}

// storage = value, in panels.
void put_in_panels(Program& l, StorageId storage, ValueId value, Location at, Statements& out) {
  const Extents& shape = l.graph[value].type.shape;
  out.push_back({LoopNest{.sink = Stage{storage},
                          .value = value,
                          .domain = shape,
                          .valid = shape,
                          .variable = l.add_variable()},
                 at});
}

}  // namespace

bool send(Program& l, const Analysis& a, Fetches& fetches, ValueId store, Statements& out) {
  if (!is_result(l, store)) return false;
  const graph::Graph& g = l.graph;
  const ValueId value = MemoryView::of(g[store]).value;
  const Location at = g.location(store);
  std::string why;
  std::optional<Storage> panels = panels_for(g, value, why);
  BoxId box;
  if (panels && is_sent(l, a, store)) {
    const std::optional<TensorBox> found =
        fetches.box_of_store(store, panels->shared().swizzle, why);
    if (found) box = number_of(l, *found, why);
  }
  if (!why.empty())
    l.remarks.push_back({at, fmt::format("{}: stored by threads, not by TMA, because {}",
                                         description_of(g, g.root(g[store].args[0])), why)});
  // What others ask for, too, they find elsewhere; and bytes that threads store, as these want
  // them.
  const bool by_threads = panels && panels->dtype.bytes() > 1 && !l.storage_of[value] &&
                          a.users[index(value)].size() == 1;
  if (!panels || (!box && !by_threads)) return false;
  panels->shared().sent = bool(box);
  const StorageId storage = l.add_storage(std::move(*panels));
  put_in_panels(l, storage, value, at, out);
  if (!box) {
    l.storage_of[value] = storage;
    return false;
  }
  out.push_back(
      {Copy{
           .from = {.storage = storage}, .to = {.view = g[store].args[0]}, .box = box, .of = store},
       at});
  return true;
}

}  // namespace palladium::passes
