// Decides where each Ref of a kernel lives: in global memory, registers or shared memory.
//
// Precondition: a canonical graph. Every decision keeps the meaning "a block is the window's
// contents, private to the program from its first read to the store at last visit".
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/graph/extents.hpp"
#include "codegen/graph/grid_order.hpp"
#include "codegen/layout/constructors.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/indices.hpp"
#include "codegen/passes/iterations.hpp"
#include "codegen/passes/panels.hpp"
#include "codegen/passes/passes.hpp"
#include "palladium/error.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;
using graph::RegionId;

constexpr std::int64_t max_window_registers = 128;

// What an index map gives, of all programs.
thread::Facts facts_of_index(const Graph& g, RegionId map, ValueId index) {
  thread::Exprs exprs;
  Indices indices(g, exprs);
  const auto& params = g[map].params;
  for (std::size_t axis = 0; axis < std::min(params.size(), g.mapping.grid.size()); ++axis) {
    const Dim& programs = g.mapping.grid[axis];
    const std::int64_t last = programs.is_static() ? programs.value() - 1 : INT32_MAX - 1;
    indices.set(params[axis], exprs.variable(exprs.declare(
                                  {.name = "", .type = i32, .facts = {.low = 0, .high = last}})));
  }
  return exprs.facts(indices.expr(index));
}

// Whether the window stays inside `extent` along dimension d for every program.
bool proved_in_bounds(const Graph& g, RegionIndex index_map, int d, const BlockDim& block,
                      const Dim& extent) {
  if (block.kind == BlockDim::Kind::whole) return true;
  if (index_map == no_region) return extent.is_static() && block.size <= extent.value();
  if (block.kind == BlockDim::Kind::element || block.kind == BlockDim::Kind::bounded_slice)
    return false;
  const RegionId map{index_map};
  const ValueId v = g[map].yields[d];
  const auto& params = g[map].params;
  const auto it = std::find(params.begin(), params.end(), v);
  if (it != params.end() && block.size == 1 &&
      g.mapping.grid[static_cast<std::size_t>(it - params.begin())].same(extent))
    return true;
  const thread::Facts number = facts_of_index(g, map, v);
  return extent.is_static() && number.low >= 0 &&
         number.high < extent.value() / std::max<std::int64_t>(1, block.size);
}

class WindowPlacement {
 public:
  explicit WindowPlacement(Program& l)
      : l_(l), g_(l.graph), analysis_(l.graph), indices_(l.graph, exprs_), panels_(l.graph) {}

  void run() {
    if (g_.persistent) l_.sequential_axes.push_back(programs_axis);
    for (int a = 0; a < static_cast<int>(g_.mapping.grid.size()); ++a)
      (g_.semantics[a] == graph::Semantics::sequential ? l_.sequential_axes : l_.parallel_axes)
          .push_back(a);
    for (const graph::Body& b : g_.bodies) l_.warpgroups += b.warpgroups;
    l_.window_of.assign(g_.insts.size(), {});
    for (const graph::Body& b : g_.bodies) add_windows(b);
    share_index_operands(l_);
    for (Window& w : l_.windows) decide(w);
    for (Window& w : l_.windows) mark(w);
    tell_of_order();
  }

 private:
  void add_windows(const graph::Body& b) {
    body_ = static_cast<int>(&b - g_.bodies.data());
    const auto& params = g_[b.region].params;
    std::size_t p = 0;
    for (const graph::Argument& a : g_.arguments) {
      if (a.kind == graph::Argument::Kind::input) add(params[p], a.index);
      ++p;
    }
    for (int o = 0; o < g_.mapping.num_outputs; ++o) add(params[p++], g_.mapping.num_inputs + o);
    while (p < params.size()) add(params[p++], -1);
    add_scoped(b.region);
  }

  void add_scoped(RegionId r) {
    for (ValueId v : g_[r].insts) {
      if (g_[v].op == Op::RefPart) {
        add(v, -1);
        l_.windows.back().scope = l_.windows[l_.window_of[g_[v].args[0]]].scope;
      }
      for (RegionId inner : g_[v].regions) {
        if (g_[v].op == Op::Scoped)
          for (ValueId p : g_[inner].params) {
            add(p, -1);
            l_.windows.back().scope = v;
          }
        add_scoped(inner);
      }
    }
  }

  void add(ValueId root, int mapping) {
    l_.window_of[root] = l_.windows.add({.root = root, .mapping = mapping, .body = body_});
  }

  bool depends_on(int mapping, int axis) const {
    if (axis != programs_axis) return graph::depends_on_axis(g_, mapping, axis);
    return std::ranges::any_of(l_.parallel_axes,
                               [&](int a) { return graph::depends_on_axis(g_, mapping, a); });
  }

  bool is_output(const Window& w) const { return w.mapping >= g_.mapping.num_inputs; }

  std::vector<ValueId> accesses(const Window& w, bool writes) const {
    std::vector<ValueId> found;
    for (ValueId v : analysis_.order) {
      const graph::Inst& inst = g_[v];
      // An atomic update is one access: nothing has to come between what it reads and writes.
      const bool reads = inst.op != Op::Atomic && g_.reads(inst, w.root);
      if (writes ? g_.writes(inst, w.root) : reads) found.push_back(v);
    }
    return found;
  }

  bool is_updated(const Window& w) const {
    return std::ranges::any_of(accesses(w, true),
                               [&](ValueId v) { return g_[v].op == Op::Atomic; });
  }

  bool all_whole(const Window& w) const {
    for (bool writes : {false, true})
      for (ValueId v : accesses(w, writes))
        if (!is_whole_access(g_, v)) return false;
    return true;
  }

  void decide(Window& w) {
    if (w.mapping < 0) {
      if (g_[w.root].op == Op::RefPart) return make_part(w);
      if (const StorageId s = storage_of_first_body(w)) {
        w.in = InShared{{.storage = s}};
        return;
      }
      if (g_[w.root].type.space == Space::barrier) return make_barriers(w);
      if (g_[w.root].type.space == Space::accumulator) return make_accumulator(w);
      const bool shared = g_[w.root].type.space == Space::smem && !is_carried_in_registers(w);
      make_resident(w, shared ? Residency::shared : Residency::registers);
      return;
    }
    const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
    bool suffix = true;  // the axes it ignores are the innermost sequential ones
    for (int i = 0; i < static_cast<int>(l_.sequential_axes.size()); ++i)
      if (depends_on(w.mapping, l_.sequential_axes[i])) {
        suffix = suffix && w.depth == i;
        w.depth = i + 1;
      }
    const bool revisited = w.depth < static_cast<int>(l_.sequential_axes.size());
    for (std::size_t d = 0; d < m.block_shape.size(); ++d)
      w.in_bounds.push_back(proved_in_bounds(g_, m.index_map, static_cast<int>(d), m.block_shape[d],
                                             m.array_aval.shape[static_cast<int>(d)]));

    const bool aliased = is_aliased(w), written = !accesses(w, true).empty();
    w.stored = is_output(w) || (aliased && written);
    if (g_.whole_arrays) {  // what one writes others see
      const int globals = static_cast<int>(g_.mapping.block_mappings.size()) - g_.num_globals;
      if (w.mapping >= globals) w.in_bounds.assign(w.in_bounds.size(), true);
      return;
    }
    // What other programs update meanwhile is in global memory.
    if (is_updated(w)) return;
    if (m.memory_space == Space::smem || m.memory_space == Space::regs) {
      make_resident(w, m.memory_space == Space::smem ? Residency::shared : Residency::registers);
    } else if (is_output(w)
                   ? revisited && suffix && l_.warpgroups == 1 && m.memory_space != Space::gmem &&
                         !is_stored_last(w) && is_no_larger_than_shared_memory(w)
                   : written || reads_after_alias_is_written(w)) {
      // An input keeps what its memory held, whatever becomes of it there, wherever it is pinned.
      make_resident(w, fits_registers(w) ? Residency::registers : Residency::shared);
    }
    if (w.is_direct()) return;
    w.resident()->fill = !is_output(w) || aliased;
    w.resident()->flush = w.stored && written;
  }

  // Scratch in shared memory is that of the block, whose bodies have it at one place among their
  // parameters; none: none has it yet.
  StorageId storage_of_first_body(const Window& w) const {
    const Space space = g_[w.root].type.space;
    if (w.body == 0 || w.scope != graph::no_value ||
        (space != Space::smem && space != Space::barrier))
      return {};
    const auto params = [&](int body) -> const std::vector<ValueId>& {
      return g_[g_.bodies[static_cast<std::size_t>(body)].region].params;
    };
    const auto at = std::ranges::find(params(w.body), w.root) - params(w.body).begin();
    const ValueId first = params(0)[static_cast<std::size_t>(at)];
    return l_.windows[l_.window_of[first]].storage();
  }

  // A larger one, or one that has an unknown size, such as a whole array of which programs store
  // the rows that data chooses, stays where it is.
  bool is_no_larger_than_shared_memory(const Window& w) const {
    const graph::Type& t = g_[w.root].type;
    if (graph::has_unknown_extent(g_.mapping.block_mappings[w.mapping])) return false;
    return (Checked(graph::element_count(t.shape)) * t.dtype.bytes()).value_or(INT64_MAX) <=
           l_.machine.max_shared_bytes;
  }

  // Whether nobody reads the block, and nothing but the last program of its innermost axis, which
  // the block does not depend on, stores to it: it need not be kept until then.
  bool is_stored_last(const Window& w) const {
    if (w.depth + 1 != static_cast<int>(l_.sequential_axes.size()) || is_aliased(w) ||
        !accesses(w, false).empty())
      return false;
    const int axis = l_.sequential_axes.back();
    return axis != programs_axis && std::ranges::all_of(accesses(w, true), [&](ValueId v) {
             return g_[v].op == Op::Store && runs_last(g_, analysis_.region[index(v)], axis);
           });
  }

  // Scratch in shared memory that is updated as a whole by what the program computes of it, as sums
  // over iterations are: each thread has its elements in registers, as far as all of these fit.
  bool is_carried_in_registers(const Window& w) {
    if (w.scope != graph::no_value || g_.bodies.size() > 1 || g_.whole_arrays ||
        g_[w.root].type.shape.empty() || !is_updated_as_a_whole(w) || !fits_registers(w))
      return false;
    const std::int64_t all = carried_ + registers_estimate(g_[w.root].type, l_.threads());
    if (all > max_window_registers) return false;
    carried_ = all;
    return true;
  }

  bool is_updated_as_a_whole(const Window& w) const {
    const std::vector<ValueId> stores = accesses(w, true);
    return std::ranges::any_of(stores, [&](ValueId v) {
      return g_[v].op == Op::Store && is_made_of(graph::MemoryView::of(g_[v]).value, w.root);
    });
  }

  // Whether the value is computed, element by element, of what is loaded there.
  bool is_made_of(ValueId value, ValueId root) const {
    std::vector<ValueId> stack{value};
    std::set<ValueId> seen;
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (!seen.insert(v).second) continue;
      if (g_[v].op == Op::Load && root_of(g_, v) == root) return true;
      if (graph::is_elementwise(g_[v].op))
        stack.insert(stack.end(), g_[v].args.begin(), g_[v].args.end());
    }
    return false;
  }

  bool fits_registers(const Window& w) {
    return l_.warpgroups == 1 && all_whole(w) &&
           passes::fits_registers(l_, g_[w.root].type, max_window_registers);
  }

  void make_resident(Window& w, Residency r) {
    const graph::Type& t = g_[w.root].type;
    if (w.mapping >= 0) expect_known(g_.mapping.block_mappings[w.mapping]);
    const bool scoped = w.scope != graph::no_value;
    const bool own = scoped || r == Residency::registers;  // one for every warpgroup
    if (r == Residency::registers && !all_whole(w)) r = Residency::shared;
    Storage s{.dtype = t.dtype, .shape = t.shape, .of = w.root};
    if (r == Residency::shared)
      s.in = Shared{.row_stride = t.shape.empty() ? 1 : t.shape.back(),
                    .swizzle = panels_.swizzle(w.root),
                    .per_warpgroup = own};
    else if (graph::element_count(t.shape) == 1)
      s.in = OneElement{};
    if (s.in_registers()) s.variable = l_.add_variable();
    const Resident resident{.storage = l_.add_storage(std::move(s))};
    if (r == Residency::shared)
      w.in = InShared{resident};
    else
      w.in = InRegisters{resident};
  }

  // A member of a union, which bodies that share that have in common.
  void make_part(Window& w) {
    const graph::Type& t = g_[w.root].type;
    const StorageId all = l_.windows[l_.window_of[g_[w.root].args[0]]].storage();
    const std::int64_t offset = graph::offset_of_part(g_[w.root]);
    Shared& room = l_.storages[all].shared();
    room.alignment = graph::union_alignment;
    const Shared part{.row_stride = t.shape.empty() ? 1 : t.shape.back(),
                      .swizzle = panels_.swizzle(w.root),
                      .per_warpgroup = room.per_warpgroup,
                      .within = {all, offset}};
    const auto is_known = [&](StorageId s) {
      const Storage& x = l_.storages[s];
      return x.in_shared() && x.shared().within.storage == all &&
             x.shared().within.offset == offset && x.dtype == t.dtype && x.shape == t.shape;
    };
    for (const StorageId s : l_.storages.ids())
      if (is_known(s)) {
        w.in = InShared{{.storage = s}};
        return;
      }
    w.in = InShared{{.storage = l_.add_storage(
                         {.in = part, .dtype = t.dtype, .shape = t.shape, .of = w.root})}};
  }

  // As tensor cores have it, and each Pallas thread for itself.
  void make_accumulator(Window& w) {
    const graph::Type& t = g_[w.root].type;
    w.in = InRegisters{{.storage = l_.add_storage({.in = Registers{},
                                                   .dtype = t.dtype,
                                                   .shape = t.shape,
                                                   .of = w.root,
                                                   .variable = l_.add_variable(layout::accumulator(
                                                       t.shape, {l_.num_warps, 1}))})}};
  }

  // Those of a user, who says who arrives and waits.
  void make_barriers(Window& w) {
    const graph::Type& t = g_[w.root].type;
    const BarrierId all = l_.add_barriers({}, static_cast<int>(graph::element_count(t.shape)));
    l_.barriers[all].arrivals = t.arrivals;
    l_.barriers[all].by_hand = true;
    Storage& s = l_.storages[l_.barriers[all].storage];
    s.of = w.root;
    s.shared().per_warpgroup = false;
    w.in = InShared{{.storage = l_.barriers[all].storage}};
  }

  void expect_known(const BlockMapping& m) const {
    if (!graph::has_unknown_extent(m)) return;
    throw CompileError(g_.at, "kernel '" + g_.name + "': " + m.origin + " is " +
                                  to_string(m.array_aval) +
                                  " as a whole, of which a program has a copy, since what it sees "
                                  "of it changes: give a pl::BlockSpec, or take the array as a Ref "
                                  "of pl::kernel");
  }

  bool is_aliased(const Window& w) const {
    for (const graph::Alias& a : g_.aliases)
      if (w.mapping == a.input || w.mapping == g_.mapping.num_inputs + a.output) return true;
    return false;
  }

  // A direct read must see what the memory held when the program began.
  bool reads_after_alias_is_written(const Window& w) const {
    if (accesses(w, false).empty()) return false;
    for (const graph::Alias& a : g_.aliases) {
      if (a.input != w.mapping) continue;
      for (ValueId s : analysis_.writes) {
        const auto is_output = [&](ValueId root) {
          const WindowId written = l_.window_of[root];
          return written && l_.windows[written].mapping == g_.mapping.num_inputs + a.output;
        };
        if (std::ranges::none_of(roots_written(g_, s), is_output)) continue;
        if (!l_.sequential_axes.empty()) return true;
        for (ValueId r : accesses(w, false))
          if (may_follow(r, s)) return true;
      }
    }
    return false;
  }

  bool may_follow(ValueId read, ValueId write) const {
    if (analysis_.position[index(read)] > analysis_.position[index(write)]) return true;
    for (int loop = analysis_.loop[index(write)]; loop >= 0; loop = analysis_.loop[loop])
      if (analysis_.inside(read, ValueId(loop))) return true;
    return false;
  }

  void mark(Window& w) {
    if (!w.is_direct()) return;
    w.read_only = !is_output(w) && !is_aliased(w) && !overlaps_;
    // Different threads may access an element through this Ref or its alias, in an order that
    // matters.
    const int alias = g_.alias_class(w.root);
    std::size_t reads = 0, writes = 0;
    for (const Window& o : l_.windows) {
      if (o.mapping < 0 || g_.alias_class(o.root) != alias) continue;
      reads += accesses(o, false).size() + (o.fills() ? 1 : 0);
      writes += accesses(o, true).size();
    }
    const bool again =
        (w.depth < static_cast<int>(l_.sequential_axes.size()) && !is_stored_last(w)) || shifts(w);
    const bool meet = writes > 1 && !stores_apart(w, writes);
    std::get<Direct>(w.in).synchronised = writes > 0 && (reads > 0 || meet || again);
  }

  // Whether all that writes are stores, of this window alone, to parts of which none meets another.
  bool stores_apart(const Window& w, std::size_t writes) const {
    constexpr std::size_t most_compared = 16;
    const std::vector<ValueId> stores = accesses(w, true);
    if (stores.size() != writes || writes > most_compared) return false;
    const auto view_of = [&](ValueId v) { return g_[v].args[0]; };
    const auto is_part = [&](ValueId v) {
      return g_[v].op == Op::Store && g_[view_of(v)].op == Op::At &&
             g_.is_base(g_[view_of(v)].args[0]);
    };
    if (!std::ranges::all_of(stores, is_part)) return false;
    for (std::size_t i = 0; i < stores.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (!are_apart(graph::Subscript::of(g_[view_of(stores[i])]).dims,
                       graph::Subscript::of(g_[view_of(stores[j])]).dims))
          return false;
    return true;
  }

  // Whether along some dimension one ends before the other begins.
  static bool are_apart(const std::vector<graph::SubscriptDim>& a,
                        const std::vector<graph::SubscriptDim>& b) {
    const auto ends_before = [](const graph::SubscriptDim& x, const graph::SubscriptDim& y) {
      const std::int64_t last = x.start + (x.is_slice ? (x.size - 1) * x.stride : 0);
      return x.stride > 0 && y.stride > 0 && last < y.start;
    };
    for (std::size_t d = 0; d < a.size(); ++d) {
      const bool are_known = !a[d].dynamic && !a[d].array && !b[d].dynamic && !b[d].array;
      if (are_known && (ends_before(a[d], b[d]) || ends_before(b[d], a[d]))) return true;
    }
    return false;
  }

  // Whether a store that is repeated may come to an element by another thread than before: a
  // thread has the same ones of each view, and views of which one begins in another are others.
  bool shifts(const Window& w) {
    return shifts_by_blocks(w) || std::ranges::any_of(accesses(w, true), [&](ValueId access) {
             const int loop = analysis_.loop[index(access)];
             bool found = false;
             if (loop < 0) return found;
             for (ValueId view = g_[access].args[0]; !g_.is_base(view); view = g_[view].args[0])
               found = found || shifts(view, access);
             return found;
           });
  }

  // Blocks that begin at elements, one after the other by an axis that a program goes through.
  bool shifts_by_blocks(const Window& w) {
    const BlockMapping& m = g_.mapping.block_mappings[static_cast<std::size_t>(w.mapping)];
    if (m.index_map == no_region || std::ranges::none_of(l_.sequential_axes, [&](int axis) {
          return axis != programs_axis && depends_on(w.mapping, axis);
        }))
      return false;
    const std::vector<ValueId>& starts = g_[RegionId{m.index_map}].yields;
    for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
      const BlockDim& block = m.block_shape[d];
      const bool by_elements =
          block.kind == BlockDim::Kind::element || block.kind == BlockDim::Kind::bounded_slice;
      if (by_elements && block.size > 1 &&
          exprs_.facts(indices_.expr(starts[d])).multiple % block.size != 0)
        return true;
    }
    return false;
  }

  bool shifts(ValueId view, ValueId access) {
    if (g_[view].op != Op::At) return false;
    std::size_t operand = 1;
    for (const graph::SubscriptDim& d : graph::Subscript::of(g_[view]).dims) {
      if (!d.dynamic) continue;
      const ValueId start = g_[view].args[operand++];
      if (d.array || (d.is_slice && d.size > 1 && !keeps(start, d.size * d.stride, access)))
        return true;
    }
    return false;
  }

  // Whether a start is the same in all iterations, but for a multiple of what the view takes: so
  // is each of its addends.
  bool keeps(ValueId start, std::int64_t taken, ValueId access) {
    std::vector<ValueId> stack{start};
    std::set<ValueId> seen;
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (!seen.insert(v).second || is_made_outside(v, access)) continue;
      if (exprs_.facts(indices_.expr(v)).multiple % taken == 0) continue;
      if (g_[v].op != Op::Add) return false;
      stack.insert(stack.end(), g_[v].args.begin(), g_[v].args.end());
    }
    return true;
  }

  // Of all loops that repeat the access.
  bool is_made_outside(ValueId v, ValueId access) const {
    for (int loop = analysis_.loop[index(access)]; loop >= 0; loop = analysis_.loop[loop])
      if (analysis_.inside(v, ValueId(loop))) return false;
    return true;
  }

  // Where nothing but revisited blocks keeps a grid from being shared out.
  void tell_of_order() {
    if (g_.whole_arrays || g_.persistent || l_.sequential_axes.empty()) return;
    const auto extent = [&](int axis) { return g_.mapping.grid[static_cast<std::size_t>(axis)]; };
    const auto is_one = [&](int axis) {
      return extent(axis).is_static() && extent(axis).value() <= 1;
    };
    if (!std::ranges::all_of(l_.parallel_axes, is_one)) return;
    for (const int axis : l_.sequential_axes)
      for (int i = g_.mapping.num_inputs;
           !is_one(axis) && i < g_.mapping.num_inputs + g_.mapping.num_outputs; ++i) {
        if (depends_on(i, axis)) continue;
        l_.remarks.push_back(
            {g_.at,
             fmt::format(
                 "the {} programs of grid axis {} run one behind the other, on one multiprocessor, "
                 "because all of them have the block of {}: what they add to it by pl::atomic_add, "
                 "or store in any order with .allow_revisit, many do at once",
                 to_string(extent(axis)), axis,
                 g_.mapping.block_mappings[static_cast<std::size_t>(i)].origin)});
        return;
      }
  }

  Program& l_;
  const Graph& g_;
  Analysis analysis_;
  bool overlaps_ = graph::overlaps_previous(l_.graph);  // then what is read is written before that
  thread::Exprs exprs_;
  Indices indices_;
  const Panels panels_;
  int body_ = 0;              // whose windows are added
  std::int64_t carried_ = 0;  // registers of a thread for scratch that is in shared memory else
};

}  // namespace

namespace {

WindowId first_window(const Program& l, int mapping) {
  for (const WindowId w : l.windows.ids())
    if (l.windows[w].mapping == mapping) return w;
  return {};
}

}  // namespace

void share_index_operands(Program& l) {
  const GridMapping& mapping = l.graph.mapping;
  for (const BlockMapping& m : mapping.block_mappings) {
    if (m.index_map == no_region) continue;
    const auto& params = l.graph[RegionId{m.index_map}].params;
    for (int i = 0; i < mapping.num_index_operands; ++i)
      l.window_of[params[mapping.grid.size() + static_cast<std::size_t>(i)]] = first_window(l, i);
  }
}

void place_windows(Program& l) {
  l.warpgroups = 0;
  WindowPlacement(l).run();
}

}  // namespace palladium::passes
