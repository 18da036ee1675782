#include "codegen/lowered/program.hpp"

#include <algorithm>
#include <bit>

#include "codegen/base/format.hpp"
#include "codegen/graph/limits.hpp"

namespace palladium::lowered {

using graph::Graph;
using graph::Inst;
using graph::Op;

BarrierId Program::add_barriers(RingId ring, int slots) {
  const StorageId storage = add_storage(
      {.in = Shared{.row_stride = slots, .fetched = true}, .dtype = u64, .shape = {slots}});
  return barriers.add({.storage = storage, .ring = ring});
}

StorageId Program::room_of(StorageId s) const {
  const Storage& x = storages[s];
  if (!x.in_shared()) return s;
  if (x.shared().ring) return rings[x.shared().ring].storage;
  return x.shared().within.storage ? x.shared().within.storage : s;
}

int Body::warpgroups() const {
  int all = 0;
  for (const Agent& a : agents) all += a.warpgroups;
  return all;
}

namespace {

void number(Statements& list, int& next) {
  for (Statement& s : list) {
    s.id = StatementId(next++);
    for_each_body(s, [&](Statements& body) { number(body, next); });
  }
}

}  // namespace

std::uint64_t blocks_beside(const graph::Graph& g, std::int64_t rank,
                            std::span<const std::int64_t> sets) {
  const Extents own = graph::place_in_cluster(g, rank);
  std::uint64_t found = std::uint64_t{1} << rank;
  for (std::int64_t other = 0; other < graph::cluster_blocks(g); ++other) {
    const Extents place = graph::place_in_cluster(g, other);
    const bool is_beside = std::ranges::any_of(sets, [&](std::int64_t axes) {
      for (std::size_t c = 0; c < place.size(); ++c)
        if ((axes >> c & 1) == 0 && place[c] != own[c]) return false;
      return true;
    });
    if (is_beside) found |= std::uint64_t{1} << other;
  }
  return found;
}

bool sends_by_warpgroups(const Program& l) {
  return std::ranges::any_of(l.storages, [](const Storage& s) { return s.is_by_warpgroups(); });
}

int blocks_told(const Program& l, BarrierId barrier) {
  return std::popcount(blocks_beside(l.graph, 0, l.barriers[barrier].along));
}

void number_statements(Program& l) {
  int next = 0;
  for_each_list(l, [&](Statements& list) { number(list, next); });
}

Table<ValueId, int> uses_of(const graph::Graph& g) {
  Table<ValueId, int> uses(g.insts.size());
  std::vector<bool> yielded(g.insts.size());
  for (const Inst& i : g.insts)
    for (const ValueId a : i.args) ++uses[a];
  for (const graph::Region& r : g.regions)
    for (const ValueId y : r.yields) yielded[index(y)] = true;
  const auto is_left_over = [&](ValueId v) {
    return uses[v] == 0 && !yielded[index(v)] && g[v].type.is_value() && !graph::acts(g[v].op);
  };
  std::vector<ValueId> left_over;
  for (std::size_t i = 0; i < g.insts.size(); ++i)
    if (const ValueId v{static_cast<std::uint32_t>(i)}; is_left_over(v)) left_over.push_back(v);
  while (!left_over.empty()) {
    const ValueId v = left_over.back();
    left_over.pop_back();
    for (const ValueId a : g[v].args) {
      --uses[a];
      if (is_left_over(a)) left_over.push_back(a);
    }
  }
  return uses;
}

bool enters(const Program& l, const LoopNest& p, StorageId storage) {
  if (p.value == graph::no_value) return false;
  const Op op = l.graph[p.value].op;
  return l.storage_of[p.value] == storage && op != Op::Param && op != Op::Get;
}

bool reads_staged(const Program& l, ValueId leaf) {
  return l.graph[leaf].op == Op::Load && !l.storage_of[leaf] && l.window_loaded(leaf).is_staged();
}

DimMap identity_map(int rank) {
  DimMap m(rank);
  for (int d = 0; d < rank; ++d) m[d] = d;
  return m;
}

DimMap without_slices(DimMap map) {
  for (DimIndex& d : map) d = d.dim;
  return map;
}

bool is_of_slices(const DimMap& map) {
  return std::ranges::any_of(map, &DimIndex::sliced) &&
         std::ranges::none_of(map, [](const DimIndex& d) { return d.dim == opaque_dim; });
}

namespace {

// A reshape that only adds or removes dimensions of extent 1 maps dimensions; any other mixes them.
DimMap map_through_reshape(const Extents& operand, const Extents& result, const DimMap& map) {
  DimMap out(operand.size(), zero_dim);
  std::size_t r = 0;
  for (std::size_t d = 0; d < operand.size(); ++d) {
    if (operand[d] == 1) continue;
    while (r < result.size() && result[r] == 1) ++r;
    if (r == result.size() || result[r] != operand[d]) {
      for (std::size_t k = 0; k < operand.size(); ++k)
        out[k] = operand[k] == 1 ? zero_dim : opaque_dim;
      return out;
    }
    out[d] = map[r++];
  }
  return out;
}

DimMap map_through_slice(const Inst& slice, const Extents& operand, const DimMap& map) {
  const graph::SliceView at = graph::SliceView::of(slice);
  DimMap out = map;
  for (std::size_t d = 0; d < operand.size(); ++d) {
    const bool whole = operand[d] == slice.type.shape[d] && at.strides[d] > 0;
    if (whole) continue;
    if (operand[d] == 1)
      out[d] = zero_dim;
    else if (map[d].dim < 0 || at.strides[d] < 0)
      out[d] = opaque_dim;
    else
      out[d].sliced = true, out[d].start = at.starts[d] + at.strides[d] * map[d].start,
      out[d].stride = at.strides[d] * map[d].stride;
  }
  return out;
}

// Where an operand has all that its user has, in that order, the coordinate is the user's.
DimMap map_elsewhere(const Inst& inst, std::size_t arg, const Extents& operand, const DimMap& map) {
  const bool is_whole = inst.op == Op::DynamicUpdateSlice && arg == 0;
  const bool chooses = inst.op == Op::TakeAlong && arg == 1;
  const bool is_start = operand.size() != map.size();
  if (is_whole || chooses || is_start) return is_start ? DimMap() : map;
  if (inst.op == Op::Slice) return map_through_slice(inst, operand, map);
  DimMap out = map;
  for (std::size_t d = 0; d < operand.size(); ++d) {
    bool same = operand[d] == inst.type.shape[d];
    if (inst.op == Op::TakeAlong) same = static_cast<int>(d) != graph::taken(inst);
    if (!same) out[d] = operand[d] == 1 ? zero_dim : opaque_dim;
  }
  return out;
}

}  // namespace

namespace {

// In what a subscript is of, a whole dimension has the view's coordinate.
DimMap map_through_subscript(const Inst& at, std::size_t arg, const Extents& operand,
                             const DimMap& map) {
  const graph::Subscript s = graph::Subscript::of(at);
  const graph::Subscript::Chosen chosen = s.chosen(map.size());
  if (arg > 0) return operand.empty() ? DimMap() : chosen.of(map);
  DimMap out;
  std::size_t next = chosen.first_of_slices();
  for (std::size_t d = 0; d < s.dims.size(); ++d) {
    const graph::SubscriptDim& dim = s.dims[d];
    const bool whole =
        dim.is_slice && !dim.dynamic && dim.start == 0 && dim.stride == 1 && dim.size == operand[d];
    out.push_back(operand[d] == 1 ? DimIndex(zero_dim) : whole ? map[next] : DimIndex(opaque_dim));
    if (dim.is_slice) next = chosen.next(next);
  }
  return out;
}

DimMap map_through_bitcast(const graph::Type& from, const graph::Type& to, DimMap map) {
  if (from.dtype.bytes() != to.dtype.bytes())
    map.back() = from.shape.back() == 1 ? zero_dim : opaque_dim;
  return map;
}

}  // namespace

DimMap map_of_operand(const Graph& g, ValueId v, std::size_t arg, const DimMap& map) {
  const Inst& inst = g[v];
  const Extents& operand = g[inst.args[arg]].type.shape;
  switch (inst.op) {
  case Op::At: return map_through_subscript(inst, arg, operand, map);
  case Op::RefBitcast: return map_through_bitcast(g[inst.args[arg]].type, inst.type, map);
  case Op::Broadcast: {
    DimMap out(operand.size(), zero_dim);
    for (std::size_t d = 0; d < operand.size(); ++d)
      if (operand[d] != 1) out[d] = map[graph::dimensions(inst)[d]];
    return out;
  }
  case Op::Transpose:
  case Op::RefTranspose: {
    DimMap out(operand.size());
    for (std::size_t d = 0; d < operand.size(); ++d) out[graph::dimensions(inst)[d]] = map[d];
    return out;
  }
  case Op::Reshape:
  case Op::RefReshape: return map_through_reshape(operand, inst.type.shape, map);
  case Op::Slice:
  case Op::Concatenate:
  case Op::DynamicSlice:
  case Op::DynamicUpdateSlice:
  case Op::TakeAlong: return map_elsewhere(inst, arg, operand, map);
  default: break;
  }
  if (operand.size() == map.size()) return map;
  return DimMap(operand.size(), zero_dim);  // a scalar operand (mask, other)
}

std::string name_of(const Graph& g, ValueId v) {
  return index(v) < g.names.size() ? g.names[index(v)] : "";
}

namespace {

// What a result is called that Get reads.
std::string result_name(Op op, std::size_t n) {
  return fmt::format("{} {} of {}", graph::repeats(op) ? "carry" : "result", n,
                     op == Op::Loop ? "the loop" : graph::info(op).name);
}

// A parameter of a body, of a loop, or of neither.
std::string parameter_name(const Graph& g, ValueId v) {
  const auto place = [&](const graph::Region& r) {
    return std::find(r.params.begin(), r.params.end(), v) - r.params.begin();
  };
  const auto arguments = static_cast<std::ptrdiff_t>(g.arguments.size());
  for (const graph::Body& b : g.bodies) {
    const std::ptrdiff_t p = place(g[b.region]);
    if (p == std::ssize(g[b.region].params)) continue;
    if (p < arguments) return fmt::format("args[{}]", p);
    const std::ptrdiff_t o = p - arguments;
    return o < g.mapping.num_outputs ? fmt::format("outputs[{}]", o)
                                     : fmt::format("scratch[{}]", o - g.mapping.num_outputs);
  }
  for (const Inst& i : g.insts) {
    for (const graph::RegionId r : i.regions) {
      const std::ptrdiff_t p = place(g[r]);
      if (p == std::ssize(g[r].params)) continue;
      if (i.op == Op::Scoped) return fmt::format("scratch[{}] of run_scoped", p);
      const auto first = static_cast<std::ptrdiff_t>(graph::Repeated::of(i).first);
      return p < first ? "the index of the loop"
                       : result_name(i.op, static_cast<std::size_t>(p - first));
    }
  }
  return "a parameter";
}

}  // namespace

std::string description_of(const Graph& g, ValueId v) {
  if (const std::string name = name_of(g, v); !name.empty()) return "'" + name + "'";
  switch (g[v].op) {
  case Op::Param: return parameter_name(g, v);
  case Op::Get: return result_name(g[g[v].args[0]].op, graph::result_of(g[v]));
  default: return fmt::format("the result of {}", graph::info(g[v].op).name);
  }
}

}  // namespace palladium::lowered
