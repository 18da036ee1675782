// Iterations of sums of products of whose operands shared memory does not hold three go through K
// in parts: a part is copied while the ones before it are multiplied. Of a pl::loop that does
// nothing but add up, iterations become more, of a part each; of a sequential axis, whose number
// others may ask for, each has a loop over the parts of its product.
//
// Precondition: legalize_dot_operands, behind which products say what they transpose. Where the
// user says how many stages there are, they are of what he wrote.
#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

#include "codegen/base/checked.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/builder.hpp"
#include "codegen/graph/cost.hpp"
#include "codegen/graph/grid_order.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/passes/accumulators.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/divide_products.hpp"
#include "codegen/passes/iterations.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Builder;
using graph::DotView;
using graph::Graph;
using graph::Inst;
using graph::LoopView;
using graph::Op;
using graph::RegionId;

// Iterations of which shared memory is to hold what is copied; of what is computed for products.
constexpr std::int64_t least_copied = 3, least_computed = 2;
constexpr std::int64_t least_part_bytes = 128;  // of K: a row of a panel
constexpr std::int64_t most_parts = 8;

/// What products of an iteration take.
struct Operands {
  std::set<ValueId> loads = {};
  Checked copied = 0, computed = 0;  // bytes
};

class DividedIterations {
 public:
  explicit DividedIterations(Program& l) : l_(l), g_(l.graph), a_(l.graph) {}

  void run() {
    const std::map<ValueId, Accumulation> added = accumulations(g_, a_);
    bool divided = false;
    for (const ValueId v : a_.order)
      if (g_[v].op == Op::Loop) divided |= divide(v, added);
    if (divided)
      l_.uses = uses_of(g_);
    else
      divide_axis(added);
  }

 private:
  // ---- loops

  bool divide(ValueId loop, const std::map<ValueId, Accumulation>& added) {
    const LoopView view = LoopView::of(g_[loop]);
    if (view.step != 1 || !adds_up(view.body, added)) return false;
    find_changing(view.body);
    const std::int64_t parts = parts_of(view.body);
    if (parts < 2 || graph::trips(g_, loop).value_or(0) > INT32_MAX / parts) return false;
    const Location at = g_.location(loop);
    tell(at, parts, view.body);
    part_ = {.parts = parts, .number = renumber(loop, parts, at)};
    known_.clear();
    for (const ValueId v : std::vector(g_[view.body].insts)) {
      if (g_[v].op != Op::Dot) continue;
      before_ = v;
      for (const std::size_t operand : {0, 1}) {
        const ValueId part =
            part_of(g_[v].args[operand], DotView::of(g_[v]).contracting_dimension(operand));
        g_[v].args[operand] = part;
      }
    }
    drop_left_over(view.body);
    return true;
  }

  // What is another in each iteration, whatever it adds up.
  void find_changing(RegionId body) {
    changing_ = {g_[body].params[0]};
    for (const ValueId v : g_[body].insts)
      if (std::ranges::any_of(g_[v].args, [&](ValueId x) { return changing_.contains(x); }))
        changing_.insert(v);
  }

  // Operands of which parts are taken now.
  void drop_left_over(RegionId body) {
    std::set<ValueId> used(g_[body].yields.begin(), g_[body].yields.end());
    std::vector<ValueId> kept;
    for (const ValueId v : std::views::reverse(g_[body].insts)) {
      if (!used.contains(v)) continue;
      kept.push_back(v);
      used.insert(g_[v].args.begin(), g_[v].args.end());
    }
    std::ranges::reverse(kept);
    g_[body].insts = std::move(kept);
  }

  // Whether an iteration adds products to each of its carries, and nobody can tell how often it
  // does anything else.
  bool adds_up(RegionId body, const std::map<ValueId, Accumulation>& added) const {
    const graph::Region& r = g_[body];
    std::set<ValueId> sums;
    for (const ValueId v : r.insts) {
      if (!g_[v].regions.empty() || graph::acts(g_[v].op)) return false;
      if (g_[v].op != Op::Dot) continue;
      const auto found = added.find(v);
      if (found == added.end() || !found->second.scaled.empty() ||
          g_[found->second.added_by].op != Op::Add)
        return false;
      sums.insert(found->second.sum);
    }
    return !sums.empty() &&
           std::ranges::all_of(r.yields, [&](ValueId y) { return sums.contains(y); });
  }

  // Parts are numbered from 0; who asks for the number of the iteration gets that of the one that
  // is divided. Gives the number of the part in that.
  ValueId renumber(ValueId loop, std::int64_t parts, Location at) {
    const LoopView view = LoopView::of(g_[loop]);
    const std::optional<std::int64_t> trips = graph::trips(g_, loop);
    const ValueId low = view.low, high = view.high;
    before_ = loop;
    g_[loop].args[0] = number(0, at);
    g_[loop].args[1] = trips ? number(*trips * parts, at) : parts_between(low, high, parts, at);

    const ValueId counter = g_[view.body].params[0];
    const std::vector<ValueId> insts = g_[view.body].insts;
    before_ = insts[0];
    const ValueId by = number(parts, at), whole = integer(Op::Div, counter, by, at),
                  part = integer(Op::Sub, counter, integer(Op::Mul, whole, by, at), at),
                  iteration = integer(Op::Add, low, whole, at);
    for (const ValueId v : insts) std::ranges::replace(g_[v].args, counter, iteration);
    return part;
  }

  // In the order in which they are computed, whatever the host compiler evaluates first.
  ValueId parts_between(ValueId low, ValueId high, std::int64_t parts, Location at) {
    const ValueId count = integer(Op::Sub, high, low, at), none = number(0, at);
    const ValueId some = integer(Op::Max, count, none, at), by = number(parts, at);
    return integer(Op::Mul, some, by, at);
  }

  // ---- the sequential axis

  // Of one product, which is all that there is, and of operands that change along the axis: where
  // several share one, loops of their own would copy it again.
  void divide_axis(const std::map<ValueId, Accumulation>& added) {
    const int axis = innermost_sequential_axis(g_);
    if (axis < 0) return;
    ValueId dot = graph::no_value;
    for (const ValueId v : a_.order) {
      if (g_[v].op != Op::Dot) continue;
      if (dot != graph::no_value || a_.loop[index(v)] >= 0) return;
      dot = v;
    }
    if (dot == graph::no_value || !added.contains(dot)) return;
    for (const ValueId x : g_[dot].args) {
      if (g_[x].op != Op::Load || !changes_along(root_of(g_, x), axis)) return;
      changing_.insert(x);
    }
    const std::int64_t parts = parts_of(a_.region[index(dot)]);
    if (parts < 2) return;
    if (std::optional<Graph> divided = divide_products(g_, {.parts = static_cast<int>(parts)})) {
      tell(g_.location(dot), parts, a_.region[index(dot)]);
      g_ = std::move(*divided);
      l_.uses = uses_of(g_);
    }
  }

  bool changes_along(ValueId root, int axis) const {
    const int mapping = g_.mapping_of(root);
    return mapping >= 0 && graph::depends_on_axis(g_, mapping, axis);
  }

  // ---- parts

  // The least number of parts with which shared memory holds what is to be copied; 1: the whole,
  // or operands have no parts.
  std::int64_t parts_of(RegionId region) const {
    const std::optional<Operands> all = operands_of(region);
    if (!all) return 1;
    const auto fits = [&](std::int64_t parts) {
      const Checked bytes = all->copied * least_copied + all->computed * least_computed;
      return bytes.within(0, l_.machine.max_shared_bytes * parts);
    };
    if (fits(1)) return 1;
    std::int64_t best = 1;
    for (std::int64_t n = 2; n <= most_parts; ++n) {
      if (!have_parts(region, n)) continue;
      best = n;
      if (fits(n)) break;
    }
    return best;
  }

  // Whether K of all products of the region has so many equal parts, that are long enough.
  bool have_parts(RegionId region, std::int64_t parts) const {
    return std::ranges::all_of(g_[region].insts, [&](ValueId v) {
      if (g_[v].op != Op::Dot) return true;
      const graph::Type& a = g_[g_[v].args[0]].type;
      const std::int64_t k = a.shape[DotView::of(g_[v]).contracting_dimension(0)];
      return k % parts == 0 && k / parts * a.dtype.bytes() % least_part_bytes == 0;
    });
  }

  // Of products of which all is read, or computed of what is read of a part of K; none where there
  // are others.
  std::optional<Operands> operands_of(RegionId region) const {
    Operands all;
    std::set<ValueId> computed;
    for (const ValueId v : g_[region].insts) {
      if (g_[v].op != Op::Dot) continue;
      for (const std::size_t operand : {0, 1}) {
        const ValueId x = g_[v].args[operand];
        if (!find_loads(x, DotView::of(g_[v]).contracting_dimension(operand), all.loads)) return {};
        if (g_[x].op != Op::Load) computed.insert(x);
      }
    }
    for (const ValueId x : all.loads) all.copied = all.copied + bytes_of(x);
    for (const ValueId x : computed) all.computed = all.computed + bytes_of(x);
    return all;
  }
  Checked bytes_of(ValueId v) const {
    return graph::element_count(g_[v].type.shape) * std::int64_t{g_[v].type.dtype.bytes()};
  }

  // The loads, another in each iteration, of which a part gives a part of the value along the
  // dimension.
  bool find_loads(ValueId v, std::size_t k, std::set<ValueId>& loads) const {
    const Inst& i = g_[v];
    if (i.op == Op::Load)
      return changing_.contains(v) && reads_unwritten(g_, a_, v) && (loads.insert(v), true);
    if (i.op == Op::Constant) return true;
    if (i.op == Op::Broadcast) {
      const std::optional<std::size_t> from = broadcast_from(i, k);
      return !from || find_loads(i.args[0], *from, loads);
    }
    if (i.op == Op::Transpose) return find_loads(i.args[0], transposed_from(i, k), loads);
    return graph::is_elementwise(i.op) && std::ranges::all_of(i.args, [&](ValueId x) {
             return g_[x].type.shape == i.type.shape && find_loads(x, k, loads);
           });
  }

  // The dimension of what is broadcast that becomes this one; none: it has one element of it.
  std::optional<std::size_t> broadcast_from(const Inst& i, std::size_t k) const {
    const graph::Extents& from = g_[i.args[0]].type.shape;
    const auto dims = graph::dimensions(i);
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d] == static_cast<std::int64_t>(k) && from[d] != 1) return d;
    return {};
  }

  static std::size_t transposed_from(const Inst& i, std::size_t k) {
    return static_cast<std::size_t>(graph::dimensions(i)[k]);
  }

  // The part of the value along the dimension, once for all that take it, in front of the first.
  ValueId part_of(ValueId v, std::size_t k) {
    const auto [made, is_new] = known_.try_emplace({v, k});
    return is_new ? made->second = make_part(v, k) : made->second;
  }

  ValueId make_part(ValueId v, std::size_t k) {
    Inst i = g_[v];
    const Location at = g_.location(v);
    i.type.shape[k] /= part_.parts;
    if (i.op == Op::Load) return part_of_load(v, k);
    if (i.op == Op::Broadcast) {
      if (const auto from = broadcast_from(i, k)) i.args[0] = part_of(i.args[0], *from);
    } else if (i.op == Op::Transpose) {
      i.args[0] = part_of(i.args[0], transposed_from(i, k));
    } else {
      for (ValueId& x : i.args) x = part_of(x, k);
    }
    return put(std::move(i), at);
  }

  ValueId part_of_load(ValueId load, std::size_t k) {
    const Location at = g_.location(load);
    const std::int64_t size = g_[load].type.shape[k] / part_.parts;
    const ValueId start =
        put({Op::Mul, graph::Type::value(i32, {}), {}, {part_.number, number(size, at)}, {}}, at);
    const RegionId around = a_.region[index(before_)];
    Builder b(g_, around);
    const std::size_t end = g_[around].insts.size();
    const LoadedPart part = loaded_part(b, load, k, {.dynamic = true, .size = size}, start);
    g_[around].insts.resize(end);
    insert_before(g_, part.view, before_);
    insert_before(g_, part.load, before_);
    return part.load;
  }

  // ---- instructions

  ValueId integer(Op op, ValueId a, ValueId b, Location at) {
    return put({op, graph::Type::value(i32, {}), {}, {a, b}, {}}, at);
  }
  ValueId number(std::int64_t n, Location at) {
    return put({Op::Constant, graph::Type::value(i32, {}), {{}, graph::to_bits(i32, n)}, {}, {}},
               at);
  }
  ValueId put(Inst i, Location at) {
    const ValueId v = g_.add(std::move(i), at);
    insert_before(g_, v, before_);
    return v;
  }

  void tell(Location at, std::int64_t parts, RegionId region) {
    const std::optional<Operands> all = operands_of(region);
    const std::int64_t bytes = all ? (all->copied + all->computed).value_or(0) : 0;
    l_.remarks.push_back(
        {at, fmt::format("iterations go through K in {} parts, one behind the other: of the {} "
                         "bytes of operands of all of it a block has no room for those of three "
                         "iterations",
                         parts, bytes)});
  }

  /// That of an iteration, in the loop that is being divided.
  struct Part {
    std::int64_t parts = 1;
    ValueId number = graph::no_value;
  };

  Program& l_;
  Graph& g_;
  const Analysis a_;
  Part part_ = {};
  std::set<ValueId> changing_ = {};
  std::map<std::pair<ValueId, std::size_t>, ValueId> known_ = {};
  ValueId before_ = graph::no_value;  // the instruction in front of which others are added
};

bool says_stages(const Graph& g) {
  return g.bodies[0].num_stages > 0 ||
         std::ranges::any_of(g.mapping.block_mappings,
                             [](const BlockMapping& m) { return m.buffers > 0; });
}

}  // namespace

void divide_iterations(Program& l) {
  const Graph& g = l.graph;
  if (!l.machine.has_async_copies() || l.written || g.bodies.size() > 1 ||
      g.bodies[0].warpgroups > 1 || says_stages(g))
    return;
  if (std::ranges::any_of(g.insts, [](const Inst& i) { return i.op == Op::Dot; }))
    DividedIterations(l).run();
}

}  // namespace palladium::passes
