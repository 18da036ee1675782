// Has blocks of a cluster fetch together what they all read: of blocks that differ along axes of
// the cluster on which nothing of a fetch depends each brings a part of it, to all of them
// (multicast).
//
// Precondition: build_pipelines. All blocks that share a fetch come to it as often, and read the
// same: neither the place of what is fetched nor who comes there depends on these axes. A slot of a
// ring is filled again when all blocks that bring a part of it have read theirs: they tell each
// other at the empty barriers. What no ring holds is fetched once.
//
// Others may fill as soon as a block's barriers are made, and until it has waited for all: nothing
// lies there before (Lives), and no block ends before those of its cluster do.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "codegen/base/format.hpp"
#include "codegen/graph/cost.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/passes/fetches.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/slots.hpp"

namespace palladium::passes {
namespace {

using graph::Op;

// On which axes of the cluster values depend: a bit for each.
class Differences {
 public:
  explicit Differences(const Program& l)
      : l_(l), g_(l.graph), all_((std::int64_t{1} << g_.cluster.size()) - 1) {
    for (const ValueId v : ids(g_))
      if (g_[v].op == Op::Loop) {
        const graph::LoopView loop = graph::LoopView::of(g_[v]);
        index_of_[g_[loop.body].params[0]] = loop.low;
      }
    for (const graph::Body& b : g_.bodies) note(b.region);
    for (const BlockMapping& m : g_.mapping.block_mappings)
      if (m.index_map != no_region) note(graph::RegionId{m.index_map});
  }

  std::int64_t all() const { return all_; }

  std::int64_t of(ValueId v) {
    if (v == graph::no_value) return 0;
    if (const auto found = known_.find(v); found != known_.end()) return found->second;
    known_[v] = all_;  // of what it is made of itself
    return known_[v] = made_of(v);
  }

  std::int64_t of_block(int mapping) {
    const RegionIndex map = g_.mapping.block_mappings[static_cast<std::size_t>(mapping)].index_map;
    std::int64_t axes = 0;
    if (map != no_region)
      for (const ValueId y : g_[graph::RegionId{map}].yields) axes |= of(y);
    return axes;
  }

 private:
  static std::vector<ValueId> ids(const graph::Graph& g) {
    std::vector<ValueId> all;
    for (const graph::Region& r : g.regions) all.insert(all.end(), r.insts.begin(), r.insts.end());
    return all;
  }

  // Arguments, and the places of programs, are the same for the whole cluster.
  void note(graph::RegionId region) {
    for (const ValueId v : g_[region].params) known_[v] = 0;
  }

  std::int64_t made_of(ValueId v) {
    const graph::Inst& i = g_[v];
    if (const auto index = index_of_.find(v); index != index_of_.end()) return of(index->second);
    if (i.op == Op::AxisIndex) {
      const graph::AxisView asked = graph::AxisView::of(i);
      return asked.kind == graph::AxisKind::cluster ? std::int64_t{1} << asked.axis
             : asked.kind == graph::AxisKind::grid  ? 0
                                                    : all_;
    }
    std::int64_t axes = 0;
    if (i.op == Op::Load) {
      const Window& w = l_.window_loaded(v);
      if (!w.read_only || w.mapping < 0) return all_;
      axes = of_block(w.mapping);
    } else if (!graph::is_pure(i.op) || !i.regions.empty() || i.op == Op::Param ||
               i.op == Op::Get) {
      return all_;
    }
    for (const ValueId a : i.args) axes |= of(a);
    return axes;
  }

  const Program& l_;
  const graph::Graph& g_;
  const std::int64_t all_;
  std::map<ValueId, ValueId> index_of_ = {};  // of the parameter that is a loop's, where it begins
  std::map<ValueId, std::int64_t> known_ = {};
};

class SharedFetches {
 public:
  explicit SharedFetches(Program& l) : l_(l), g_(l.graph), differences_(l) {}

  void run() {
    for_each_list(l_, [&](Statements& list) { find(list, {}); });
    for (auto& [storage, fetch] : fetches_) share(storage, fetch);
  }

 private:
  // Who comes to a statement: on which axes that depends, as far as is known, and whether once.
  struct Around {
    std::int64_t axes = 0;
    bool repeats = false, is_known = true;
  };
  struct Fetch {
    std::vector<Copy*> copies = {};
    Location at = {};
    std::int64_t axes = 0;
    bool repeats = false, is_known = true;
  };

  void find(Statements& list, Around around) {
    for (Statement& s : list) {
      Copy* const c = std::get_if<Copy>(&s.what);
      if (c != nullptr && c->completes && !c->by_hand && c->box) note(*c, s.at, around);
      const Around inside = within(s, around);
      for_each_body(s, [&](Statements& body) { find(body, inside); });
    }
  }

  void note(Copy& c, Location at, Around around) {
    Fetch& fetch = fetches_[c.to.storage];
    fetch.copies.push_back(&c);
    fetch.at = at;
    fetch.repeats |= around.repeats;
    fetch.is_known &= around.is_known;
    fetch.axes |=
        around.axes | (c.from.window ? differences_.of_block(l_.windows[c.from.window].mapping)
                                     : differences_.of(c.of));
  }

  Around within(const Statement& s, Around around) {
    if (const When* const w = std::get_if<When>(&s.what)) {
      around.axes |= differences_.of(w->condition);
    } else if (const Loop* const loop = std::get_if<Loop>(&s.what)) {
      around = in_loop(loop->inst, around);
    } else if (const GridLoop* const grid = std::get_if<GridLoop>(&s.what)) {
      around = in_axis(grid->axis, around);
    } else if (const Lead* const lead = std::get_if<Lead>(&s.what)) {
      around = of_ring(*lead, around);
    } else if (const Ahead* const ahead = std::get_if<Ahead>(&s.what)) {
      around = of_ring(*ahead, around);
    } else if (!std::holds_alternative<Scope>(s.what) && !std::holds_alternative<Elected>(s.what)) {
      around.is_known = false;
    }
    return around;
  }
  template <class T>
  Around of_ring(const T& ahead, Around around) {
    return ahead.loop != graph::no_value ? in_loop(ahead.loop, around)
                                         : in_axis(ahead.axis, around);
  }
  Around in_loop(ValueId loop, Around around) {
    const graph::LoopView view = graph::LoopView::of(g_[loop]);
    around.axes |= differences_.of(view.low) | differences_.of(view.high);
    around.repeats |= graph::trips(g_, loop).value_or(INT64_MAX) > 1;
    return around;
  }
  Around in_axis(int axis, Around around) {
    if (axis == programs_axis) return {.repeats = true, .is_known = false};
    around.axes |= differences_.of(l_.end_of(axis));
    const Dim& d = g_.mapping.grid[static_cast<std::size_t>(axis)];
    around.repeats |= !d.is_static() || d.value() > 1;
    return around;
  }

  void share(StorageId storage, Fetch& fetch) {
    std::int64_t axes = differences_.all() & ~fetch.axes;
    for (std::size_t c = 0; c < g_.cluster.size(); ++c)
      if (g_.cluster[c] == 1) axes &= ~(std::int64_t{1} << c);
    const std::int64_t blocks = graph::blocks_along(g_, axes);
    const std::string what = description_of(g_, of_what(*fetch.copies[0]));
    if (blocks == 1) {
      tell(fetch, fmt::format("{}: each block fetches its own, since that depends on where in the "
                              "cluster it stands",
                              what));
      return;
    }
    const RingId ring = l_.storages[storage].ring();
    const BarrierId empty = ring ? l_.rings[ring].empty_barriers : BarrierId();
    const int dimension = divided(*fetch.copies[0], storage, blocks);
    const char* const why =
        !fetch.is_known             ? "whether all of them come to it is not known"
        : graph::has_semaphores(g_) ? "one may wait at a semaphore for what the other does then"
        : !ring && fetch.repeats    ? "each iteration fetches it anew, and nothing is fetched ahead"
        : ring && !empty            ? "no warpgroup fetches for the others"
        : dimension < 0             ? "its parts are none that TMA brings"
                                    : nullptr;
    if (why != nullptr || !divide(fetch, storage, {axes, dimension}, blocks)) {
      tell(fetch, fmt::format("{}: {} blocks of a cluster read the same, and each fetches it, "
                              "because {}",
                              what, blocks,
                              why != nullptr ? why : "a kernel has no room for more tensor maps"));
      return;
    }
    if (empty) {
      std::vector<std::int64_t>& along = l_.barriers[empty].along;
      if (std::ranges::count(along, axes) == 0) along.push_back(axes);
    }
    tell(fetch, fmt::format("{}: {} blocks of a cluster fetch a part each, for all of them", what,
                            blocks));
  }

  ValueId of_what(const Copy& c) const {
    return c.from.window ? l_.windows[c.from.window].root
                         : l_.windows[l_.window_of[g_.root(g_[c.of].args[0])]].root;
  }

  void tell(const Fetch& fetch, std::string text) {
    l_.remarks.push_back({fetch.at, std::move(text)});
  }

  // The dimension of the array along which parts begin where TMA can fill shared memory: of panels
  // the last one, as far as there are whole ones for all; -1: none.
  int divided(const Copy& c, StorageId storage, std::int64_t blocks) const {
    constexpr std::int64_t aligned = 128, panel_rows = 8;
    const Storage& s = l_.storages[storage];
    const std::vector<std::int32_t>& box = l_.tensor_boxes[c.box].box;
    const int last = static_cast<int>(box.size()) - 1;
    const int swizzle = s.shared().swizzle;
    if (swizzle > 0 && s.shape.back() / box.back() % blocks == 0) return last;
    int first = 0;
    while (first < last && box[static_cast<std::size_t>(first)] == 1) ++first;
    if (swizzle > 0) {
      const std::int64_t rows = s.shape[0] / blocks;
      const bool divides = first < last && s.shape[0] % blocks == 0 && rows % panel_rows == 0;
      const std::int64_t boxed = box[static_cast<std::size_t>(first)];
      return divides && (boxed % blocks == 0 || rows % boxed == 0) ? first : -1;
    }
    const std::int64_t bytes = graph::element_count(s.shape) * s.dtype.bytes();
    return box[static_cast<std::size_t>(first)] % blocks == 0 && bytes % (blocks * aligned) == 0
               ? first
               : -1;
  }

  // The boxes of parts; those of all become such where nobody else has them.
  bool divide(const Fetch& fetch, StorageId storage, Share share, std::int64_t blocks) {
    TensorBox box = l_.tensor_boxes[fetch.copies[0]->box];
    const BoxId whole = fetch.copies[0]->box;
    const bool by_panels =
        l_.storages[storage].shared().swizzle > 0 && share.dimension + 1 == std::ssize(box.box);
    std::int32_t& extent = box.box[static_cast<std::size_t>(share.dimension)];
    const std::int64_t part = l_.storages[storage].shape[0] / blocks;
    const bool follows = l_.storages[storage].shared().swizzle > 0 && part % extent == 0;
    if (!by_panels && !follows) extent /= static_cast<std::int32_t>(blocks);
    BoxId number = whole;
    if (box != l_.tensor_boxes[whole]) {
      std::string why;
      if (is_of(fetch, whole))
        l_.tensor_boxes[whole] = box;
      else
        number = number_of(l_, box, why);
    }
    if (!number) return false;
    for (Copy* const c : fetch.copies) {
      c->box = number;
      c->share = share;
    }
    return true;
  }

  bool is_of(const Fetch& fetch, BoxId box) const {
    std::size_t uses = 0;
    for_each_list(l_, [&](const Statements& list) { count(list, box, uses); });
    return uses == fetch.copies.size();
  }
  static void count(const Statements& list, BoxId box, std::size_t& uses) {
    for (const Statement& s : list) {
      const Copy* const c = std::get_if<Copy>(&s.what);
      uses += c != nullptr && c->box == box;
      for_each_body(s, [&](const Statements& body) { count(body, box, uses); });
    }
  }

  Program& l_;
  const graph::Graph& g_;
  Differences differences_;
  std::map<StorageId, Fetch> fetches_ = {};
};

}  // namespace

// Who copies by hand says what is shared.
void share_fetches(Program& l) {
  const bool by_hand = std::ranges::any_of(l.barriers, &Barriers::by_hand);
  if (l.machine.has_clusters() && graph::cluster_blocks(l.graph) > 1 && !by_hand &&
      !graph::reach_other_blocks(l.graph))
    SharedFetches(l).run();
}

}  // namespace palladium::passes
