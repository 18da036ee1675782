// What a nest whose layout others decide, as a product does, reads of memory by narrow accesses is
// read as memory has it, by wide ones, and handed to the threads that want it, where that does not
// cost much more.
//
// Precondition: layouts are chosen, and what nests read of registers is there as they want it.
// Relayouts of what is read as memory has it are inserted behind this.
#include <algorithm>
#include <map>
#include <set>

#include "codegen/layout/constructors.hpp"
#include "codegen/layout/relayout.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/layouts.hpp"
#include "codegen/passes/nest_model.hpp"

namespace palladium::passes {
namespace {

using graph::Op;
using layout::Layout;

constexpr int spread_bytes = 16;
// What is handed on is on its way while threads compute; a narrow access waits where it stands.
constexpr double worth = 2;
constexpr std::int64_t most_handed_on = 16 << 10;  // of one value in shared memory
constexpr std::int64_t most_registers = 64;        // of a thread for one value

class Spreading {
 public:
  explicit Spreading(Program& l) : l_(l), g_(l.graph), model_(l), nests_(l) {}

  void run() {
    for_each_list(l_, [&](Statements& list) { count_readers(list); });
    for_each_list(l_, [&](Statements& list) { visit(list, false); });
  }

 private:
  void count_readers(const Statements& list) {
    for (const Statement& s : list) {
      if (const LoopNest* const p = std::get_if<LoopNest>(&s.what)) {
        std::set<ValueId> leaves;
        for (const Effect& e : element_reads(l_, *p))
          if (e.window) leaves.insert(e.leaf);
        for (const ValueId leaf : leaves) ++readers_[leaf];
      }
      for_each_body(s, [&](const Statements& body) { count_readers(body); });
    }
  }

  // Not beside products, whose threads would wait for each other in each iteration.
  void visit(Statements& list, bool repeated) {
    const bool multiplies = repeated && std::ranges::any_of(list, [](const Statement& s) {
                              return std::holds_alternative<Dot>(s.what);
                            });
    Statements out;
    for (Statement& s : list) {
      for_each_body(s, [&](Statements& body) { visit(body, repeated || repeats(s)); });
      if (LoopNest* const p = std::get_if<LoopNest>(&s.what); p != nullptr && !multiplies)
        spread_all(*p, s.at, out);
      out.push_back(std::move(s));
    }
    list = std::move(out);
  }

  void spread_all(const LoopNest& p, Location at, Statements& out) {
    const std::vector<Effect> reads = element_reads(l_, p);
    widths_.clear();
    const auto mixes = [&](bool memory) {
      return std::ranges::any_of(
          reads, [&](const Effect& e) { return bool(e.window) == memory && is_opaque(e.map); });
    };
    if (mixes(true) && !mixes(false)) widths_ = nests_.look(p).widths;
    for (const Effect& e : reads)
      if (may_spread(e)) is_opaque(e.map) ? spread_mixed(p, e, at, out) : spread(p, e, at, out);
  }

  bool may_spread(const Effect& e) const {
    if (!e.window || g_[e.leaf].op != Op::Load || readers_.at(e.leaf) != 1) return false;
    const graph::MemoryView m = graph::MemoryView::of(g_[e.leaf]);
    const Window& w = l_.windows[e.window];
    return w.is_direct() && w.read_only && w.mapping >= 0 && m.mask == graph::no_value &&
           !g_.chooses(m.ref) && !l_.storage_of[e.leaf] && !g_[e.leaf].type.shape.empty();
  }

  // What is read element by element in another order than it stands in goes through shared memory.
  void spread_mixed(const LoopNest& p, const Effect& e, Location at, Statements& out) {
    const graph::Type& type = g_[e.leaf].type;
    const std::int64_t count = graph::element_count(type.shape);
    const int vector = spread_bytes / type.dtype.bytes();
    if (count * type.dtype.bytes() > most_handed_on || count < vector * l_.threads() ||
        graph::element_count(p.domain) < count || model_.widest(g_[e.leaf].args[0]) < vector)
      return;
    const auto width = widths_.find(e.leaf);
    if (width == widths_.end() || width->second > 1) return;
    Layout wide = layout::strided(type.shape, vector, layout::full_width, l_.num_warps);
    if (!covers(wide, type.shape) || !fits(type)) return;
    put(e.leaf, std::move(wide), at, out);
  }

  void spread(const LoopNest& p, const Effect& e, Location at, Statements& out) {
    const graph::Type& type = g_[e.leaf].type;
    const ValueId ref = g_[e.leaf].args[0];
    const int vector = spread_bytes / type.dtype.bytes();
    if (p.domain != p.valid || p.domain != type.shape || p.domain.size() != 2 ||
        e.map != identity_map(p.layout.rank()))
      return;
    model_.enter(p, p.layout);
    const auto now = model_.cost(ref, e.map, p.layout);
    if (!now || model_.whole_width(ref, e.map) >= vector || model_.widest(ref) < vector) return;
    Layout wide = layout::strided(p.domain, vector, layout::full_width, l_.num_warps);
    if (wide.registers() > p.layout.registers() || !covers(wide, p.domain) ||
        !covers(p.layout, p.domain) || !fits(type))
      return;
    LoopNest load = load_of(e.leaf, wide);
    model_.enter(load, wide);
    const auto then = model_.cost(ref, e.map, wide);
    const double moved =
        layout::relayout_cost(wide, p.layout, type.dtype.bytes(), plan_options(l_));
    if (then && then->load + moved < worth * now->load) put(e.leaf, std::move(wide), at, out);
  }

  // No reason for more warps: it is there for a moment.
  bool fits(const graph::Type& type) const {
    return registers_estimate(type, l_.threads()) <= most_registers;
  }

  // Whether each of its elements is one of the value's, so that nothing is handed on that nobody
  // has.
  static bool covers(const Layout& l, const Extents& shape) {
    for (int d = 0; d < l.rank(); ++d)
      if (l.tile(d) * l.repetitions(d) != shape[static_cast<std::size_t>(d)]) return false;
    return true;
  }

  LoopNest load_of(ValueId leaf, const Layout& layout) const {
    const Extents& shape = g_[leaf].type.shape;
    LoopNest load{.value = leaf, .domain = shape, .valid = shape, .layout = layout};
    load.rolled.assign(shape.size(), 0);
    return load;
  }

  // In registers, from which others are given it.
  void put(ValueId leaf, Layout layout, Location at, Statements& out) {
    LoopNest load = load_of(leaf, layout);
    load.variable = l_.add_variable();
    const StorageId storage = l_.add_storage({.in = Registers{.layout = std::move(layout)},
                                              .dtype = g_[leaf].type.dtype,
                                              .shape = g_[leaf].type.shape,
                                              .of = leaf,
                                              .variable = load.variable});
    load.sink = Assign{storage};
    l_.storage_of[leaf] = storage;
    out.push_back({std::move(load), at});
  }

  Program& l_;
  const graph::Graph& g_;
  AccessModel model_;
  NestModel nests_;
  std::map<ValueId, int> readers_;  // nests
  std::map<ValueId, int> widths_;   // of what a nest reads, where it mixes elements
};

}  // namespace

void spread_loads(Program& l) { Spreading(l).run(); }

}  // namespace palladium::passes
