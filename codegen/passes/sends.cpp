#include "codegen/passes/sends.hpp"

#include <algorithm>

#include "codegen/base/format.hpp"

namespace palladium::passes {
namespace {

using graph::MemoryView;

constexpr std::int64_t most_bytes = 64 << 10;  // of shared memory

// Whether nobody reads the array to which the program stores.
bool is_only_written(const graph::Graph& g, const Analysis& a, const Window& w) {
  const int output = w.mapping - g.mapping.num_inputs;
  const auto aliased = [&](const graph::Alias& alias) { return alias.output == output; };
  const auto reads = [&](ValueId v) { return g.reads(g[v], w.root); };
  return std::ranges::none_of(g.aliases, aliased) && std::ranges::none_of(a.order, reads);
}

// Whether a product's registers give the value, element by element.
bool is_of_product(const Program& l, ValueId value) {
  const DimMap all = identity_map(2);
  bool held = false;
  for_each_leaf(l, value, all, false, [&](ValueId, const DimMap& map, StorageId s) {
    if (!s || map != all) return;
    const Storage& storage = l.storages[s];
    held |= storage.in_registers() && !l.pinned[storage.variable].domain.empty();
  });
  return held;
}

bool is_sent(const Program& l, const Analysis& a, ValueId store) {
  const graph::Graph& g = l.graph;
  const MemoryView m = MemoryView::of(g[store]);
  const graph::Type& type = g[m.value].type;
  if (!l.machine.has_tma() || (type.dtype != f16 && type.dtype != bf16) ||
      g[store].op != graph::Op::Store || m.mask != graph::no_value || type.shape.size() != 2 ||
      g.bodies.size() > 1 || g.bodies[0].warpgroups > 1 || graph::has_async_ops(g))
    return false;
  const Window& w = l.windows[l.window_of[g.root(m.ref)]];
  return w.is_direct() && !w.is_synchronised() && w.mapping >= 0 && is_only_written(g, a, w) &&
         is_of_product(l, m.value);
}

}  // namespace

bool send(Program& l, const Analysis& a, Fetches& fetches, ValueId store, Statements& out) {
  if (!is_sent(l, a, store)) return false;
  const graph::Graph& g = l.graph;
  const ValueId value = MemoryView::of(g[store]).value;
  const Location at = g.location(store);
  const Extents& shape = g[value].type.shape;
  const DType t = g[value].type.dtype;
  const int swizzle = swizzle_of(shape[1] * t.bytes());
  const Storage panels{.in = Shared{.row_stride = shape[1], .swizzle = swizzle, .sent = true},
                       .dtype = t,
                       .shape = shape,
                       .of = value};
  std::string why;
  std::optional<TensorBox> found;
  if (swizzle == 0)
    why = "its rows are no multiples of 32 bytes";
  else if (!shared_bytes(panels).within(0, most_bytes))
    why = "a block would need more than 64 KiB of shared memory for it";
  else
    found = fetches.box_of_store(store, swizzle, why);
  const BoxId box = found ? number_of(l, *found, why) : BoxId();
  if (!box) {
    l.remarks.push_back({at, fmt::format("{}: stored by threads, not by TMA, because {}",
                                         description_of(g, g.root(g[store].args[0])), why)});
    return false;
  }
  const StorageId storage = l.add_storage(panels);
  out.push_back({LoopNest{.sink = Stage{storage},
                          .value = value,
                          .domain = shape,
                          .valid = shape,
                          .variable = l.add_variable()},
                 at});
  out.push_back(
      {Copy{
           .from = {.storage = storage}, .to = {.view = g[store].args[0]}, .box = box, .of = store},
       at});
  return true;
}

}  // namespace palladium::passes
