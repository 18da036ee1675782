#include "codegen/passes/products.hpp"

#include <algorithm>
#include <set>

#include "codegen/base/format.hpp"
#include "codegen/layout/constructors.hpp"
#include "codegen/passes/registers.hpp"

namespace palladium::passes {
namespace {

// Per multiprocessor and clock (reference/performance.md): multiply-adds of tensor cores, what of
// them mma.sync reaches on sm_90, bytes of shared memory that are read.
constexpr double multiply_adds = 2048, of_mma_sync = 0.62, shared_bytes_per_clock = 128;
// Registers of an A beside its accumulators; of 8 bits half, for what is rounded to them takes
// some.
constexpr std::int64_t most_fragments = 64;
constexpr std::int64_t step_bytes = 32;  // of a row of A, or a column of B, in one step of K

double clocks_of_shared(std::int64_t rows_and_columns) {
  return static_cast<double>(rows_and_columns * step_bytes) / shared_bytes_per_clock;
}

// Clocks of a step of K: what the tensor cores take, or to read the operands; and to stage them.
double clocks(std::int64_t m, std::int64_t n, std::int64_t rows_read, std::int64_t columns_read,
              double rate) {
  constexpr double k = 16;
  const double products = static_cast<double>(m * n) * k / (multiply_adds * rate);
  return std::max(products, clocks_of_shared(rows_read + columns_read)) + clocks_of_shared(m + n);
}

// Of warpgroups side by side each reads all rows.
double clocks_of_wgmma(std::int64_t m, std::int64_t n, int side_by_side) {
  return clocks(m, n, m * side_by_side, n * (m / 64), 1);
}

double clocks_of_mma(std::int64_t m, std::int64_t n, int num_warps) {
  const auto [rows, columns] = choose_warps(num_warps, m, n);
  const std::int64_t padded_m = round_up(m, 16 * rows), padded_n = round_up(n, 8 * columns);
  return clocks(padded_m, padded_n, padded_m * columns, padded_n * rows, of_mma_sync);
}

}  // namespace

std::vector<ValueId> held_before(const graph::Graph& g, ValueId v) {
  const graph::Inst& i = g[v];
  if (i.op == graph::Op::Get && g[i.args[0]].op == graph::Op::Loop) {
    const graph::Repeated loop = graph::Repeated::of(g[i.args[0]]);
    return {g[loop.region].yields[graph::result_of(i)]};
  }
  if (i.op == graph::Op::Slice) return {i.args[0]};
  if (i.op != graph::Op::Load) return {};
  std::vector<ValueId> stored;
  for (const graph::Inst& store : g.insts)
    if (store.op == graph::Op::Store && g.root(store.args[0]) == g.root(i.args[0]))
      stored.push_back(graph::MemoryView::of(store).value);
  return stored;
}

bool is_of_products(const graph::Graph& g, ValueId value) {
  constexpr std::size_t most_looked_at = 128;
  std::vector<ValueId> left{value};
  std::set<ValueId> seen{value};
  const auto look_at = [&](ValueId v, bool alike) {
    if (alike && seen.insert(v).second) left.push_back(v);
  };
  while (!left.empty() && seen.size() <= most_looked_at) {
    const ValueId v = left.back();
    left.pop_back();
    if (g[v].op == graph::Op::Dot) return true;
    if (graph::is_elementwise(g[v].op))
      for (const ValueId a : g[v].args) look_at(a, g[a].type.shape == g[v].type.shape);
    for (const ValueId before : held_before(g, v)) look_at(before, true);
  }
  return false;
}

WarpGrid choose_warps(int num_warps, std::int64_t m, std::int64_t n) {
  WarpGrid best;
  std::int64_t least = -1, least_loads = 0;
  for (const int wm : {4, 2, 8, 1, 16}) {
    if (wm > num_warps) continue;
    const int wn = num_warps / wm;
    const std::int64_t rows = cdiv(m, 16 * wm), columns = cdiv(n, 8 * wn);
    const std::int64_t loads = 2 * rows + columns;
    const bool better =
        least < 0 || rows * columns < least || (rows * columns == least && loads < least_loads);
    if (!better) continue;
    least = rows * columns;
    least_loads = loads;
    best = {wm, wn};
  }
  return best;
}

bool is_k_major(const graph::DotView& dot) { return !dot.trans_a && dot.trans_b; }

namespace {

bool is_tf32(const graph::DotView& dot) { return dot.precision == graph::Precision::tf32; }

// Of a product whose operands legalize_dot_operands has seen, whether wgmma multiplies such
// elements that are stored so.
bool has_wgmma(const Program& l, const graph::DotView& dot) {
  const DType a = l.graph[dot.a].type.dtype, b = l.graph[dot.b].type.dtype;
  return l.machine.has_wgmma(a, b, is_tf32(dot)) && (a.bytes() == 2 || is_k_major(dot));
}

// Rows and columns that all warps of an arrangement have together.
std::int64_t padded_rows(const graph::Inst& dot, WarpGrid warps) {
  return round_up(dot.type.shape[0], std::int64_t{16} * warps.rows);
}
std::int64_t padded_columns(const graph::Inst& dot, WarpGrid warps) {
  return round_up(dot.type.shape[1], std::int64_t{8} * warps.columns);
}

// Whether every warpgroup of an arrangement has rows, and columns that wgmma takes: of a B that
// lies along its columns, whole panels. Those side by side have more rows than zeros: few rows are
// what mma.sync is for.
bool can_share(const Program& l, const graph::Inst& dot, WarpGrid warps) {
  const graph::DotView view = graph::DotView::of(dot);
  const std::int64_t m = padded_rows(dot, warps), n = padded_columns(dot, warps);
  const std::int64_t rows = dot.type.shape[0], columns = dot.type.shape[1];
  if (m > 64 && m - rows >= 64) return false;
  if (warps.columns > 1 && 2 * rows < m) return false;
  if (columns <= std::int64_t{8} * (warps.columns - 1)) return false;
  const int bytes = l.graph[view.a].type.dtype.bytes();
  return view.trans_b || swizzle_of(n * bytes / warps.columns) != 0;
}

// At how many columns warpgroups side by side take turns: those that one stride of B's descriptor
// steps over, a panel where it lies along its columns, else 8.
std::int64_t columns_at_once(const Program& l, const graph::Inst& dot, WarpGrid warps) {
  const graph::DotView view = graph::DotView::of(dot);
  if (view.trans_b || warps.columns == 1) return 8;
  const int bytes = l.graph[view.a].type.dtype.bytes();
  return swizzle_of(padded_columns(dot, warps) * bytes / warps.columns) / bytes;
}

// Products of the iteration whose elements, each computed to one, are those of the left operand.
std::set<ValueId> handed_to(const graph::Graph& g, const graph::Inst& dot) {
  constexpr std::size_t most_looked_at = 128;
  const graph::DotView view = graph::DotView::of(dot);
  std::set<ValueId> products;
  if (view.trans_a || g[view.a].type.dtype.bytes() != 2) return products;
  std::vector<ValueId> left{view.a};
  std::set<ValueId> seen{view.a};
  while (!left.empty() && seen.size() <= most_looked_at) {
    const ValueId v = left.back();
    left.pop_back();
    if (g[v].op == graph::Op::Dot) products.insert(v);
    if (!graph::is_elementwise(g[v].op)) continue;
    for (const ValueId a : g[v].args)
      if (g[a].type.shape == g[v].type.shape && seen.insert(a).second) left.push_back(a);
  }
  return products;
}

// Calls f for each product that takes the elements of this one, and for itself, if it takes those
// of another; whether f holds of any.
template <class F>
bool hands_on(const graph::Graph& g, const graph::Inst& dot, const F& f) {
  const auto is_it = [&](ValueId v) { return &g[v] == &dot; };
  return std::ranges::any_of(g.insts, [&](const graph::Inst& i) {
    if (i.op != graph::Op::Dot || !f(i)) return false;
    const std::set<ValueId> products = handed_to(g, i);
    return std::ranges::any_of(products, is_it) || (&i == &dot && !products.empty());
  });
}

// How so many warps share a product by wgmma, but for registers: rows first, for who stands side by
// side reads the same A. Nothing where they cannot, or take longer than by mma.sync, or side by
// side as long.
std::optional<WarpGrid> shared_by_wgmma(const Program& l, const graph::Inst& dot, int num_warps) {
  if (!has_wgmma(l, graph::DotView::of(dot))) return {};
  // Half of the rows may be nobody's where what is handed on stays in registers so.
  const WarpGrid by_rows{num_warps, 1};
  if (dot.type.shape[0] < 64 && 2 * dot.type.shape[0] >= padded_rows(dot, by_rows) &&
      can_share(l, dot, by_rows) && hands_on(l.graph, dot, [](const graph::Inst&) { return true; }))
    return by_rows;
  const double by_mma = clocks_of_mma(dot.type.shape[0], dot.type.shape[1], num_warps);
  for (int columns = 1; columns <= num_warps / 4; columns *= 2) {
    const WarpGrid warps{num_warps / columns, columns};
    if (!can_share(l, dot, warps)) continue;
    const std::int64_t m = padded_rows(dot, warps), n = padded_columns(dot, warps);
    const double by_wgmma = clocks_of_wgmma(m, n, columns);
    if (columns == 1 ? by_wgmma <= by_mma : by_wgmma < by_mma) return warps;
  }
  return {};
}

bool has_registers_for_wgmma(const Program& l, const graph::Inst& dot, WarpGrid warps) {
  const int threads = warps.rows * warps.columns * graph::warp_threads;
  const std::int64_t registers = padded_rows(dot, warps) * padded_columns(dot, warps) / threads;
  return registers <= max_whole_registers && holds_wgmma(l, registers, threads);
}

// With the registers that it takes.
std::optional<WarpGrid> warps_of_wgmma(const Program& l, const graph::Inst& dot, int num_warps) {
  const std::optional<WarpGrid> warps = shared_by_wgmma(l, dot, num_warps);
  return warps && has_registers_for_wgmma(l, dot, *warps) ? warps : std::nullopt;
}

}  // namespace

bool lacks_registers_for_wgmma(const Program& l, const graph::Inst& dot) {
  const std::optional<WarpGrid> warps = shared_by_wgmma(l, dot, l.num_warps);
  return warps && !has_registers_for_wgmma(l, dot, *warps);
}

int warps_that_take_wgmma(const Program& l, const graph::Inst& dot) {
  for (int warps = 4; warps <= layout::most_warps; warps *= 2)
    if (warps_of_wgmma(l, dot, warps)) return warps;
  return 0;
}

namespace {

// Of those that are not of wgmma.
Dot::Unit unit_of(const Program& l, const graph::Inst& i) {
  const graph::DotView view = graph::DotView::of(i);
  const DType t = l.graph[view.a].type.dtype, b = l.graph[view.b].type.dtype;
  const std::optional<MmaShape> mma = l.machine.mma(t, b, is_tf32(view));
  if (!mma) return Dot::Unit::fma;
  if (t == f32) return Dot::Unit::mma_tf32;
  return mma->k == 32   ? Dot::Unit::mma_16832
         : mma->k == 16 ? Dot::Unit::mma_16816
                        : Dot::Unit::mma_1688;
}

// Vectors of columns, as many side by side as gives the fewest registers, then the fewest loads
// of operands for as many steps of K as 16 bytes hold. Of B transposed a thread has one column:
// neighbours' rows do not collide in the banks.
layout::Layout fma_layout(const graph::DotView& view, const graph::Type& type, int warps) {
  const int steps = 16 / type.dtype.bytes();
  layout::Layout best;
  std::int64_t best_loads = 0;
  for (int v = view.trans_b ? 1 : steps; v >= 1; v /= 2)
    for (std::int64_t width = v; width <= std::int64_t{v} * warps * graph::warp_threads;
         width *= 2) {
      if (v > 1 && v > type.shape[1]) continue;
      layout::Layout l = layout::strided(type.shape, v, width, warps);
      const std::int64_t loads = l.repetitions(0) * (view.trans_a ? steps : 1) +
                                 l.repetitions(1) * (view.trans_b ? 1 : steps);
      const bool better = best.domain.empty() || l.registers() < best.registers() ||
                          (l.registers() == best.registers() && loads < best_loads);
      if (!better) continue;
      best = std::move(l);
      best_loads = loads;
    }
  return best;
}

}  // namespace

std::int64_t k_step(Dot::Unit u, DType t) {
  return u == Dot::Unit::fma ? 1 : step_bytes / t.bytes();
}

namespace {

// Whether an element of A that threads compute is made of the same one of a load, which TMA brings
// to where they read pairs without collisions. What several products read is computed once.
bool is_computed_in_place(const Program& l, ValueId a, ValueId load, const DimMap& map) {
  const graph::Type& type = l.graph[load].type;
  const bool whole = type.shape == l.graph[a].type.shape;
  return load != a && l.uses[a] == 1 && l.storages[l.storage_of[load]].in_shared() &&
         (!whole || map == identity_map(2)) && type.dtype.bytes() >= 2;
}

// That each warp has rows of, as mma.sync leaves them and takes them.
bool has_rows_for_warps(const Program& l, const graph::Inst& dot) {
  const graph::Type& type = l.graph[graph::DotView::of(dot).a].type;
  return type.shape.size() == 2 && type.shape[0] % (16 * l.num_warps) == 0 &&
         type.shape[1] % 16 == 0 &&
         graph::element_count(type.shape) <= 2 * most_fragments * l.threads();
}

}  // namespace

bool takes_registers(const Program& l, const Dot& d, ValueId a, const Extents& staged) {
  const Extents& shape = l.graph[a].type.shape;
  const bool by_matrices = d.unit == Dot::Unit::mma_16816 || d.unit == Dot::Unit::mma_1688;
  const bool is_handed_on = by_matrices && has_rows_for_warps(l, l.graph[d.inst]) &&
                            !handed_to(l.graph, l.graph[d.inst]).empty();
  // Rows that there are not are nobody's.
  const bool is_whole = shape.size() == 2 && shape[1] == staged[1] &&
                        (shape[0] == staged[0] || !handed_to(l.graph, l.graph[d.inst]).empty());
  if ((d.unit != Dot::Unit::wgmma && !is_handed_on) || d.warps_n > 1 || !is_whole) return false;
  const std::int64_t bytes = l.graph[a].type.dtype.bytes(), all = graph::element_count(shape);
  if (bytes > 2 || all > 2 * most_fragments * l.threads()) return false;
  bool held = false, elsewhere = false;
  for_each_leaf(
      l, a, identity_map(2), false, [&](ValueId leaf, const DimMap& map, StorageId storage) {
        const bool loaded = l.graph[leaf].op == graph::Op::Load && l.storage_of[leaf];
        // What was loaded is better staged as it is.
        if (loaded && holds_next(l, d.inst) && is_computed_in_place(l, a, leaf, map)) {
          held = true;
          return;
        }
        const bool whole = graph::element_count(l.graph[leaf].type.shape) == all;
        const bool in_memory = !storage || (loaded && whole);
        const bool in_registers = !in_memory && l.storages[storage].in_registers();
        held |= in_registers && !loaded;
        // As accumulators do lie those of 16 bits alone.
        elsewhere |=
            in_memory || l.storages[storage].in_shared() || (in_registers && whole && bytes == 1);
      });
  return held && !elsewhere;
}

std::pair<Dot, layout::Layout> product(const Program& l, ValueId dot) {
  const graph::Inst& i = l.graph[dot];
  const graph::DotView view = graph::DotView::of(i);
  Dot d{.inst = dot, .result = l.storage_of[dot]};
  const std::optional<WarpGrid> by_wgmma = warps_of_wgmma(l, i, l.num_warps);
  d.unit = by_wgmma ? Dot::Unit::wgmma : unit_of(l, i);
  if (d.unit == Dot::Unit::fma) return {d, fma_layout(view, i.type, l.num_warps)};
  const bool by_matrices = d.unit == Dot::Unit::mma_16816 || d.unit == Dot::Unit::mma_1688;
  const WarpGrid grid =
      by_wgmma ? *by_wgmma
      : by_matrices &&
              hands_on(l.graph, i, [&](const graph::Inst& x) { return has_rows_for_warps(l, x); })
          ? WarpGrid{l.num_warps, 1}
          : choose_warps(l.num_warps, i.type.shape[0], i.type.shape[1]);
  d.warps_m = grid.rows;
  d.warps_n = grid.columns;
  const std::int64_t run = by_wgmma ? columns_at_once(l, i, grid) : 8;
  return {d, layout::accumulator(i.type.shape, {d.warps_m, d.warps_n}, run)};
}

namespace {

// There is no other product, and each iteration comes to it: what is in flight where ways meet
// ptxas keeps in other registers.
bool stands_alone(const Statements& list, ValueId product, bool conditional) {
  return std::ranges::all_of(list, [&](const Statement& s) {
    const Dot* const d = std::get_if<Dot>(&s.what);
    bool alone = d == nullptr || (d->inst == product && !conditional);
    const bool inside = !repeats(s) && (conditional || std::holds_alternative<When>(s.what) ||
                                        std::holds_alternative<Switch>(s.what));
    for_each_body(
        s, [&](const Statements& body) { alone = alone && stands_alone(body, product, inside); });
    return alone;
  });
}

}  // namespace

bool rests(const Program& l, const Dot& d) {
  if (d.unit != Dot::Unit::wgmma_promoted || !d.accumulates || d.anew != graph::no_value)
    return false;
  bool alone = true;
  for_each_list(
      l, [&](const Statements& list) { alone = alone && stands_alone(list, d.inst, false); });
  return alone;
}

void promote_sums(Program& l, Dot& d) {
  const graph::Graph& g = l.graph;
  if (d.unit != Dot::Unit::wgmma || g.fast_accumulation) return;
  const graph::DotView view = graph::DotView::of(g[d.inst]);
  const graph::Type& a = g[view.a].type;
  const std::int64_t k = a.shape[view.trans_a ? 0 : 1];
  if (!graph::is_byte_float(a.dtype) || (!d.accumulates && k <= promoted_k)) return;
  d.unit = Dot::Unit::wgmma_promoted;
  l.remarks.push_back(
      {g.location(d.inst),
       fmt::format(
           "{}: tensor cores keep 13 bits of sums of {}, so that threads add up every {} of "
           "K in f32; with .fast_accumulation = true nobody does",
           description_of(g, d.inst), a.dtype.name(), promoted_k)});
}

}  // namespace palladium::passes
