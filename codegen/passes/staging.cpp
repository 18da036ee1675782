// Decides which windows are staged: brought to shared memory as a whole, in wide accesses, where a
// kernel reads their elements again and again, at several offsets, or stores them where other
// elements are neighbours.
//
// Precondition: place_windows. Only what nobody writes while the kernel runs is staged; what lies
// out of bounds is there what it is when it is read from global memory. Where all reads put 0 in
// its place, it is 0, and they need not ask.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "codegen/graph/cost.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/access_model.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/guards.hpp"
#include "codegen/passes/operands.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;

constexpr std::int64_t widest = 16;  // bytes of an access
// Instructions of a warp that an access of global memory is worth, with its address and its test;
// one of shared memory; a barrier. An element must be read twice, on average, to be staged, if what
// are neighbours in memory are so where they are wanted.
constexpr double global_access = 6, shared_access = 2, barrier = 20, least_reads = 2;
constexpr std::int64_t unknown_trips = 8;
constexpr int most_swizzle = 3;
constexpr double sector = 32;  // bytes of global memory that are moved together
// So many blocks can be on a multiprocessor at once, as far as staged windows are concerned.
constexpr std::int64_t blocks_together = 4;

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return cdiv(n, to) * to; }

// Whether the chunks of rows of a window whose columns are read may change places: nothing reads
// across them, and each row has all places.
bool can_swizzle(const Storage& s, const Staged& w) {
  const std::int64_t bytes = s.dtype.bytes();
  return w.turned && s.shape.size() > 1 && w.vector * bytes == widest &&
         s.shared().row_stride * bytes % (widest << most_swizzle) == 0;
}

// Elements by which the room between rows may grow.
std::int64_t step_between_rows(const Storage& s, const Staged& w) {
  constexpr std::int64_t word = 4;
  const std::int64_t bytes = s.dtype.bytes();
  return w.turned ? std::max(w.vector, word / bytes) : widest / bytes;
}

// Where columns are read lanes find different banks: a guess, as long as layouts are not known.
void spread_rows(Storage& s, const Staged& w) {
  if (can_swizzle(s, w)) {
    s.shared().row_swizzle = most_swizzle;
    s.shared().rows_alike = static_cast<int>(w.vector);
  } else {
    s.shared().row_stride += step_between_rows(s, w);
  }
}

/// A load of a window.
struct Reading {
  ValueId load = graph::no_value;
  double times = 1;     // that it is executed
  double offsets = 1;   // at which it reads meanwhile
  bool turned = false;  // where the elements are stored, others are neighbours
};

class Staging {
 public:
  explicit Staging(Program& l)
      : l_(l), g_(l.graph), a_(l.graph), model_(l), indices_(l.graph, exprs_), guards_(l) {
    for (int s = 0; s < g_.num_symbols; ++s)
      symbols_.push_back(exprs_.variable(
          exprs_.declare({.name = "", .type = i64, .facts = facts_of_symbol(g_, s)})));
    for (const graph::Body& b : g_.bodies) find_conditional(b.region, false);
  }

  void run() {
    for (const WindowId w : l_.windows.ids()) consider(w);
  }

 private:
  void consider(WindowId number) {
    Window& w = l_.windows[number];
    if (!possible(w)) return;
    const std::vector<Reading> readings = readings_of(w);
    const auto is_operand = [&](const Reading& r) { return is_turned_operand(r.load); };
    if (std::ranges::any_of(readings, is_operand)) return;
    // What is read out of bounds as another type would be the bits of this one.
    if (std::ranges::any_of(a_.order, [&](ValueId v) {
          return g_[v].op == Op::RefBitcast && g_.root(v) == w.root;
        }))
      return;
    const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
    const Extents& shape = g_[w.root].type.shape;
    const std::int64_t vector = aligned_elements(m);
    const std::int64_t before = -m.block_shape[m.block_shape.size() - 1].pad_lo % vector;
    const std::int64_t lead = before < 0 ? before + vector : before;
    Extents rows = shape;
    rows.back() = rounded_up(lead + shape.back(), vector);
    if (!pays(w, readings, rows, vector)) return;

    const int bytes = m.array_aval.dtype.bytes();
    const std::int64_t row_stride = rounded_up(rows.back(), widest / bytes);
    Storage s{.in = Shared{.row_stride = row_stride, .per_warpgroup = false},
              .dtype = m.array_aval.dtype,
              .shape = std::move(rows),
              .of = w.root};
    const std::int64_t room = l_.machine.max_shared_bytes / blocks_together;
    const Checked all = shared_bytes(s) + staged_bytes_;
    if (!all.within(0, room)) return;
    staged_bytes_ = all;
    Staged staged{.lead = lead, .vector = vector};
    staged.turned = std::ranges::all_of(readings, &Reading::turned);
    if (staged.turned) spread_rows(s, staged);
    staged.storage = l_.add_storage(std::move(s));
    w.in = staged;
    const bool filled = m.fill && *m.fill != 0;
    std::get<Staged>(w.in).zeros = !filled && (drop_guards(w, readings) || m.fill);
  }

  // Whether the load, with a mask or without, is what a product's operand transposes.
  bool is_turned_operand(ValueId load) const {
    const auto is_operand = [&](ValueId v) { return turned_operand(l_, a_, v).has_value(); };
    return is_operand(load) || std::ranges::any_of(a_.users[index(load)], [&](ValueId u) {
             return g_[u].op == Op::Select && is_operand(u);
           });
  }

  bool possible(const Window& w) const {
    if (!w.is_direct() || !w.read_only || w.mapping < 0) return false;
    const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
    const Extents& shape = g_[w.root].type.shape;
    const auto is_of_text = [&](const graph::Inst& i) {
      return i.op == Op::InlineCuda && g_.reads(i, w.root);
    };
    if (std::ranges::any_of(g_.insts, is_of_text)) return false;
    return m.memory_space == Space::automatic && m.num_indices() == m.block_shape.size() &&
           !shape.empty() && graph::element_count(shape) > 0;
  }

  // ---- reads

  void find_conditional(graph::RegionId r, bool inside) {
    for (const ValueId v : g_[r].insts) {
      if (inside && g_[v].op == Op::Load) conditional_.insert(v);
      for (const graph::RegionId inner : g_[v].regions)
        find_conditional(inner, inside || g_[v].op != Op::Loop);
    }
  }

  std::vector<Reading> readings_of(const Window& w) const {
    std::vector<Reading> found;
    for (const ValueId v : a_.order) {
      if (g_[v].op != Op::Load || root_of(g_, v) != w.root || conditional_.contains(v)) continue;
      Reading r{.load = v};
      for (int loop = a_.loop[index(v)]; loop >= 0; loop = a_.loop[static_cast<std::size_t>(loop)])
        r.times *= static_cast<double>(graph::trips(g_, ValueId(loop)).value_or(unknown_trips));
      if (moves(g_[v].args[0])) r.offsets = r.times;
      r.turned = is_turned(v);
      found.push_back(r);
    }
    return found;
  }

  // Whether where a view begins may change from iteration to iteration of a loop.
  bool moves(ValueId view) const {
    for (; !g_.is_base(view); view = g_[view].args[0])
      if (g_[view].args.size() > 1) return true;
    return false;
  }

  // ---- neighbours

  // The dimension of a view along which its elements are neighbours in memory; -1: none is known.
  int neighbours(ValueId view) const {
    std::vector<ValueId> views;  // the last one is the first that is made
    for (; !g_.is_base(view); view = g_[view].args[0]) views.push_back(view);
    int along = static_cast<int>(g_[view].type.shape.size()) - 1;
    for (; along >= 0 && !views.empty(); views.pop_back()) along = kept(views.back(), along);
    return along;
  }

  // The dimension of a view that is that one of what it is a view of; -1 where neighbours are not.
  int kept(ValueId view, int along) const {
    const Inst& i = g_[view];
    if (i.op == Op::RefTranspose) return place_of(graph::dimensions(i), along);
    if (i.op == Op::RefBitcast) return along;
    if (i.op != Op::At || g_.chooses(view)) return -1;
    const auto dims = graph::Subscript::of(i).dims;
    const auto end = dims.begin() + along;
    return end->is_slice && end->stride == 1
               ? static_cast<int>(
                     std::count_if(dims.begin(), end, [](auto d) { return d.is_slice; }))
               : -1;
  }

  static int place_of(std::span<const std::int64_t> dimensions, int d) {
    return static_cast<int>(std::ranges::find(dimensions, d) - dimensions.begin());
  }

  // Whether what is loaded, element by element, is stored somewhere along another dimension.
  bool is_turned(ValueId load) const {
    std::vector<std::pair<ValueId, int>> stack{{load, neighbours(g_[load].args[0])}};
    std::set<std::pair<ValueId, int>> seen;
    while (!stack.empty()) {
      const auto [v, along] = stack.back();
      stack.pop_back();
      if (along < 0 || !seen.insert({v, along}).second) continue;
      for (const ValueId user : a_.users[index(v)]) {
        const Inst& i = g_[user];
        if (i.op == Op::Transpose)
          stack.emplace_back(user, place_of(graph::dimensions(i), along));
        else if (i.op == Op::Broadcast)
          stack.emplace_back(user, static_cast<int>(graph::dimensions(i)[along]));
        else if (graph::is_elementwise(i.op))
          stack.emplace_back(user, along);
        else if (i.op == Op::Store && stores_across(user, v, along))
          return true;
      }
    }
    return false;
  }

  bool stores_across(ValueId store, ValueId v, int along) const {
    const graph::MemoryView m = graph::MemoryView::of(g_[store]);
    const int to = neighbours(m.ref);
    const Extents& shape = g_[v].type.shape;
    return m.value == v && to >= 0 && to != along && shape[static_cast<std::size_t>(to)] > 1 &&
           l_.windows[l_.window_of[g_.base(m.ref)]].is_direct();
  }

  // ---- what is gained

  bool pays(const Window& w, const std::vector<Reading>& readings, const Extents& rows,
            std::int64_t vector) {
    const double threads = l_.threads();
    const auto accesses = [&](double elements, double width) {
      return std::ceil(elements / threads / width);
    };
    const double held = static_cast<double>(graph::element_count(g_[w.root].type.shape));
    std::map<ValueId, double> offsets;  // by view
    double direct = 0, staged = 2 * barrier, read = 0;
    for (const Reading& r : readings) {
      const ValueId view = g_[r.load].args[0];
      const auto n = static_cast<double>(graph::element_count(g_[view].type.shape));
      const bool rows = reads_rows(view) && !r.turned;
      direct += r.times * (r.turned ? across(view) * accesses(n, 1) * global_access
                                    : accesses(n, model_.widest(view)) * global_access);
      staged += r.times * shared_access * accesses(n, rows ? row_vector(n, w) : 1);
      offsets[view] = std::max(offsets[view], r.offsets * n);
    }
    for (const auto& [_, elements] : offsets) read += elements;
    staged +=
        (global_access + shared_access) *
        accesses(static_cast<double>(graph::element_count(rows)), static_cast<double>(vector));
    const bool any_turned = std::ranges::any_of(readings, &Reading::turned);
    return (any_turned || read >= least_reads * held) && staged < direct;
  }

  // How many of its elements move with one that is read without its neighbours.
  double across(ValueId view) const {
    const graph::Type& t = g_[view].type;
    const auto row = static_cast<double>(t.shape[static_cast<std::size_t>(neighbours(view))]);
    return std::min(sector / t.dtype.bytes(), row);
  }

  // Elements that a thread reads of a staged row at once.
  double row_vector(double elements, const Window& w) const {
    const int bytes = g_[w.root].type.dtype.bytes();
    return std::clamp(elements / l_.threads(), 1.0, static_cast<double>(widest) / bytes);
  }

  // Whether what is next to each other in a view is so in its window.
  bool reads_rows(ValueId view) const {
    for (; !g_.is_base(view); view = g_[view].args[0]) {
      if (g_[view].op != Op::At) return false;
      const graph::SubscriptDim last = graph::Subscript::of(g_[view]).dims.back();
      if (!last.is_slice || last.stride != 1) return false;
    }
    return true;
  }

  // ---- what is aligned

  // Elements of which every row of every block, from some element near its first on, is aligned in
  // global memory, and inside of the array or out of it, together.
  std::int64_t aligned_elements(const BlockMapping& m) {
    const int rank = m.array_aval.shape.rank(), last = rank - 1, bytes = m.array_aval.dtype.bytes();
    const BlockDim& b = m.block_shape[static_cast<std::size_t>(last)];
    if (b.kind == BlockDim::Kind::squeezed) return 1;
    std::int64_t n = widest / bytes;
    const auto limit = [&](std::int64_t multiple) {
      while (multiple % n != 0) n /= 2;
    };
    limit(std::max(1, m.alignment / bytes));
    if (m.index_map != no_region) {
      const ValueId at = g_[graph::RegionId{m.index_map}].yields[static_cast<std::size_t>(last)];
      const std::int64_t step = b.step() % n;
      limit(exprs_.facts(indices_.expr(at)).multiple % n * step);
    }
    const thread::Facts extent =
        exprs_.facts(expr_of_dim(exprs_, m.array_aval.shape[last], symbols_));
    limit(extent.multiple);
    if (!m.dense) limit(facts_of_stride(m).multiple);
    return n;
  }

  // ---- guards

  // Whether all that becomes of the loads is 0 where they are out of bounds, and nothing else
  // elsewhere: where(inside, x, 0). Then these are left out.
  bool drop_guards(const Window& w, const std::vector<Reading>& readings) {
    std::map<ValueId, ValueId> guarded;  // by guard
    for (const Reading& r : readings)
      if (!find_guards(w, r.load, guarded)) return false;
    for (const ValueId v : conditional_)
      if (root_of(g_, v) == w.root && !find_guards(w, v, guarded)) return false;
    for (const auto& [guard, value] : guarded) leave_out(guard, value);
    l_.uses = uses_of(l_.graph);
    return !guarded.empty();
  }

  bool find_guards(const Window& w, ValueId load, std::map<ValueId, ValueId>& guarded) {
    const graph::MemoryView m = graph::MemoryView::of(g_[load]);
    if (m.mask != graph::no_value) return false;
    std::vector<ValueId> stack{load};
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (!a_.yielded[index(v)].empty() || a_.users[index(v)].empty()) return false;
      for (const ValueId user : a_.users[index(v)]) {
        const Inst& i = g_[user];
        // What keeps 0 as it is.
        if (i.op == Op::Cast && !i.type.dtype.is_bool()) {
          stack.push_back(user);
          continue;
        }
        if (!guards_.guards(w, user, v, m.ref)) return false;
        guarded[user] = v;
      }
    }
    return true;
  }

  // Users of the guard use what it guards.
  void leave_out(ValueId guard, ValueId value) {
    for (graph::Inst& i : l_.graph.insts)
      for (ValueId& a : i.args)
        if (a == guard) a = value;
    for (graph::Region& r : l_.graph.regions)
      for (ValueId& y : r.yields)
        if (y == guard) y = value;
  }

  Program& l_;
  const Graph& g_;
  Analysis a_;
  AccessModel model_;
  thread::Exprs exprs_;
  Indices indices_;
  Guards guards_;
  std::vector<thread::ExprId> symbols_;
  std::set<ValueId> conditional_;  // loads that may not happen
  Checked staged_bytes_ = 0;
};

// ---- rows and banks

class Padding {
 public:
  explicit Padding(Program& l) : l_(l), model_(l) {}

  void run() {
    for (const Window& w : l_.windows)
      if (w.is_staged()) pad(w);
  }

 private:
  // The least room between rows with which lanes read from different banks; where lanes read along
  // columns, the rows' chunks in an order that changes from row to row instead, if that is better.
  void pad(const Window& w) {
    constexpr std::int64_t banks = 128;  // bytes
    Storage& s = l_.storages[w.storage()];
    Shared& in = s.shared();
    in.row_swizzle = 0;
    in.rows_alike = 1;
    const std::int64_t chunk = widest / s.dtype.bytes();
    const std::int64_t dense = rounded_up(s.shape.back(), chunk);
    const std::int64_t step = step_between_rows(s, w.staged());
    Shared best = in;
    double least = -1;
    const auto weigh = [&] {
      double wavefronts = 0;
      reads_ = 0;
      for_each_list(l_, [&](Statements& list) { wavefronts += wavefronts_of(list, w); });
      if (least >= 0 && wavefronts >= least) return;
      least = wavefronts;
      best = in;
    };
    const auto some_wait = [&] { return least > reads_; };  // for another bank
    for (std::int64_t more = 0; more * step * s.dtype.bytes() < banks; ++more) {
      in.row_stride = dense + more * step;
      weigh();
      if (!some_wait()) break;
    }
    in.row_stride = dense;
    if (some_wait() && can_swizzle(s, w.staged()))
      for (in.rows_alike = 1; in.rows_alike <= 8; in.rows_alike *= 2) {
        in.row_swizzle = most_swizzle;
        weigh();
      }
    in = best;
  }

  double wavefronts_of(Statements& list, const Window& w) {
    double n = 0;
    for (Statement& s : list) {
      for_each_body(s, [&](Statements& body) { n += wavefronts_of(body, w); });
      if (const LoopNest* nest = std::get_if<LoopNest>(&s.what)) n += wavefronts_of(*nest, w);
    }
    return n;
  }

  double wavefronts_of(const LoopNest& p, const Window& w) {
    double n = 0;
    model_.enter(p, p.layout);
    for (const Effect& e : element_reads(l_, p)) {
      const bool reads = reads_staged(l_, e.leaf) && root_of(l_.graph, e.leaf) == w.root;
      if (!reads || is_opaque(e.map)) continue;
      n += model_.wavefronts(l_.graph[e.leaf].args[0], e.map);
      ++reads_;
    }
    return n;
  }

  Program& l_;
  AccessModel model_;
  int reads_ = 0;  // that were looked at; each takes at least one wavefront
};

}  // namespace

void stage_windows(Program& l) {
  if (l.may_stage && l.warpgroups == 1) Staging(l).run();
}

void pad_staged_rows(Program& l) {
  const auto staged = [](const Window& w) { return w.is_staged(); };
  if (std::ranges::any_of(l.windows, staged)) Padding(l).run();
}

}  // namespace palladium::passes
