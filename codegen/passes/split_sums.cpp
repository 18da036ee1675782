// A loop that adds up, whose iterations blocks of a cluster share (.split_k): each goes through a
// part of them and leaves its sums in its shared memory. The first block adds up those of all, in
// order, and does what stands behind the loop. What is added is what a body over a mesh would say
// itself: scratch, a barrier of the cluster, views of other blocks' memory.
//
// The loop is the one with products that stands in the body, no condition around it; or, where no
// loop has any, the first. Each of its carries is a sum, carry + x, of which nothing else asks
// before its end. All blocks do what stands in front of it: nothing that anybody would see twice.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/checked.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/builder.hpp"
#include "codegen/graph/cost.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/graph/uses.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/thread/occupancy.hpp"

namespace palladium::passes {
namespace {

using graph::Attr;
using graph::Builder;
using graph::Graph;
using graph::Inst;
using graph::LoopView;
using graph::Op;
using graph::RegionId;
using graph::Type;

// That a block should have of a sum that it shares.
constexpr std::int64_t least_iterations = 8;

class SplitSums {
 public:
  explicit SplitSums(Program& l)
      : l_(l), g_(l.graph), parts_(l.graph.split_k), body_(g_.bodies[0].region) {}

  void run() {
    if (parts_ < 2) return advise();
    if (const std::string why = obstacle(); !why.empty())
      return tell(fmt::format("split_k: one block goes through all iterations, because {}", why));
    split();
    l_.uses = uses_of(g_);
  }

 private:
  Location at() const { return loop_ == graph::no_value ? g_.at : g_.location(loop_); }
  void tell(std::string remark) { l_.remarks.push_back({at(), std::move(remark)}); }

  // Where half of the multiprocessors and more have no block, and a sum of products is long.
  void advise() {
    const std::int64_t all = thread::multiprocessor(l_.machine.compute_capability).count,
                       programs = static_programs();
    if (programs == 0 || programs * 2 > all || !obstacle().empty()) return;
    if (!multiplies(g_[loop_].regions[0])) return;
    const std::int64_t iterations = graph::trips(g_, loop_).value_or(0),
                       most = std::min({all / programs, iterations / least_iterations,
                                        std::int64_t{graph::most_split}});
    if (most < 2) return;
    tell(fmt::format(
        "{} programs keep as many of {} multiprocessors busy: with .split_k = {} so many blocks "
        "would share the iterations of the sum",
        programs, all, std::bit_floor(static_cast<std::uint64_t>(most))));
  }

  // 0 where calls decide.
  std::int64_t static_programs() const {
    Checked all = 1;
    for (const Dim& axis : g_.mapping.grid) {
      if (!axis.is_static()) return 0;
      all = all * axis.value();
    }
    return all.value_or(INT64_MAX / 2);
  }

  // ---- whether

  std::string obstacle() {
    if (!l_.machine.has_clusters())
      return fmt::format("sm_{} has no clusters", l_.machine.compute_capability);
    if (g_.bodies.size() > 1 || g_.bodies[0].warpgroups > 1 || g_.whole_arrays)
      return "the kernel is over a mesh";
    if (!g_.cluster.empty()) return "its blocks are a cluster already";
    if (g_.persistent) return "a block goes through several programs";
    if (std::ranges::count(g_.semantics, graph::Semantics::sequential) > 0)
      return "the programs of an axis run one after the other";
    if (std::string why = find_loop(); !why.empty()) return why;
    for (const ValueId v : std::span(g_[body_].insts).first(at_))
      if (acts(v)) return "something is done in front of the loop that blocks would do twice";
    for (const ValueId v : g_[LoopView::of(g_[loop_]).body].insts)
      if (acts(v)) return "more than sums is done in the loop";
    for (const ValueId v : std::span(g_[body_].insts).subspan(at_ + 1))
      if (leaves_at_end(v)) return "what it stores lies in shared memory until the end";
    return why_no_sums();
  }

  std::string find_loop() {
    std::size_t loops = 0;
    const auto& all = g_[body_].insts;
    for (const bool with_products : {true, false}) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (g_[all[i]].op != Op::Loop) continue;
        if (with_products && !multiplies(g_[all[i]].regions[0])) continue;
        if (++loops > 1 && with_products) return "two loops have products";
        if (loops == 1) loop_ = all[i], at_ = i;
      }
      if (loops > 0) return "";
    }
    return "no loop stands in the body outside of conditions and other loops";
  }

  bool multiplies(RegionId r) const {
    return std::ranges::any_of(g_[r].insts, [&](ValueId v) {
      return g_[v].op == Op::Dot ||
             std::ranges::any_of(g_[v].regions, [&](RegionId inner) { return multiplies(inner); });
    });
  }

  // Whether anybody would see how often it is done.
  bool acts(ValueId v) const {
    const Inst& i = g_[v];
    if (i.regions.empty()) return graph::acts(i.op);
    return std::ranges::any_of(i.regions, [&](RegionId r) {
      return std::ranges::any_of(g_[r].insts, [&](ValueId inner) { return acts(inner); });
    });
  }

  // Whether it writes an array that all blocks would store when they end: inputs have copies, and
  // so have outputs that are said to lie in shared memory.
  bool leaves_at_end(ValueId v) const {
    const auto& params = g_[body_].params;
    const auto inputs = static_cast<std::ptrdiff_t>(g_.arguments.size());
    for (const ValueId root : roots_written(g_, v)) {
      const std::ptrdiff_t position = std::ranges::find(params, root) - params.begin();
      if (position < inputs) return true;
      const bool is_output = position < inputs + g_.mapping.num_outputs;
      if (is_output && g_[root].type.space == Space::smem) return true;
    }
    return std::ranges::any_of(g_[v].regions, [&](RegionId r) {
      return std::ranges::any_of(g_[r].insts, [&](ValueId inner) { return leaves_at_end(inner); });
    });
  }

  std::string why_no_sums() const {
    const LoopView view = LoopView::of(g_[loop_]);
    const Analysis a(g_);
    const graph::Region& body = g_[view.body];
    if (view.carries.empty()) return "the loop carries nothing";
    if (view.step != 1) return "the loop's step is not 1";
    for (std::size_t c = 0; c < view.carries.size(); ++c) {
      const ValueId before = body.params[c + 1];
      const std::size_t ends = g_[before].type.is_scalar() ? 0 : sums(a, body.yields[c], before);
      if (ends == 0 || ends != a.uses(before)) return "a carry of the loop is no sum of arrays";
    }
    return "";
  }

  // How many operands and yields are the carry itself, if `v` is it and what is added to it, under
  // conditions or not, and nothing else asks for what is made of it; else 0.
  std::size_t sums(const Analysis& a, ValueId v, ValueId carry) const {
    if (v == carry) return 1;
    const Inst& i = g_[v];
    if (a.uses(v) != 1) return 0;
    switch (i.op) {
    case Op::Add: return std::max(sums(a, i.args[0], carry), sums(a, i.args[1], carry));
    case Op::Sub: return sums(a, i.args[0], carry);
    case Op::Fma: return sums(a, i.args[2], carry);
    case Op::Get: return sums_of_switch(a, v, carry);
    default: return 0;
    }
  }

  std::size_t sums_of_switch(const Analysis& a, ValueId v, ValueId carry) const {
    const Inst& i = g_[v];
    if (g_[i.args[0]].op != Op::Switch) return 0;
    for (const ValueId get : a.users[graph::index(i.args[0])])
      if (get != v && graph::result_of(g_[get]) == graph::result_of(i)) return 0;
    std::size_t ends = 0;
    for (const RegionId r : g_[i.args[0]].regions) {
      const std::size_t of_region = sums(a, g_[r].yields[graph::result_of(i)], carry);
      if (of_region == 0) return 0;
      ends += of_region;
    }
    return ends;
  }

  // ---- how

  void split() {
    const Location at = this->at();
    const std::vector<ValueId> all = g_[body_].insts;
    g_[body_].insts.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at_));
    Builder b(g_, body_);
    add_cluster(b, at);
    take_part(b, at);
    g_[body_].insts.push_back(loop_);

    std::vector<ValueId> sums, rooms;
    for (std::size_t c = 0; c < LoopView::of(g_[loop_]).carries.size(); ++c) {
      const ValueId own = b.add(Op::Get, {loop_}, Attr{{static_cast<std::int64_t>(c)}, 0}, {}, at);
      const Type type = g_[own].type;
      rooms.push_back(add_scratch(b, Type::ref(type.dtype, type.shape, Space::smem), at));
      b.store(rooms.back(), own, graph::no_value, at);
    }
    const ValueId barrier =
        add_scratch(b, Type::ref(u64, {1}, Space::barrier, static_cast<int>(parts_)), at);
    const ValueId number = b.constant(i32, 0, {}, at);
    b.add(Op::BarrierArrive, {barrier, number, number}, Attr{}, {}, at);

    const RegionId rest = g_.add_region();
    Builder first(g_, rest);
    first.add(Op::BarrierWait, {barrier, number}, Attr{}, {}, at);
    for (const ValueId room : rooms) sums.push_back(total(first, room, at));
    const auto of_all = [&](ValueId v) { return is_get(v) ? sums[graph::result_of(g_[v])] : v; };
    for (std::size_t i = at_ + 1; i < all.size(); ++i) {
      replace(all[i], of_all);
      if (!is_get(all[i])) g_[rest].insts.push_back(all[i]);
    }
    b.add(Op::When, {is_first_}, {rest}, Attr{}, at);
  }

  void add_cluster(Builder& b, Location at) {
    g_.cluster = {l_.graph.split_k};
    g_.cluster_names = {"split_k"};
    rank_ = b.add(Op::AxisIndex, {},
                  Attr{{static_cast<std::int64_t>(graph::AxisKind::cluster), 0}, 0}, {}, at);
    is_first_ = b.add(Op::Eq, {rank_, b.constant(i32, 0, {}, at)}, Attr{}, {}, at);
  }

  // Iterations of the block, of which those with the first ranks have one more; all others' sums
  // begin with 0. How many there are may take more bits than their numbers do.
  void take_part(Builder& b, Location at) {
    const LoopView view = LoopView::of(g_[loop_]);
    const std::vector<ValueId> inits(view.carries.begin(), view.carries.end());
    const bool fits = is_constant(view.low) && number_of(view.low) >= 0;
    const DType t = fits ? i32 : i64;
    const auto number = [&](std::int64_t n) { return b.constant(t, n, {}, at); };
    const auto op = [&](Op what, ValueId x, ValueId y) {
      return b.add(what, {x, y}, Attr{}, {}, at);
    };
    const auto as = [&](ValueId x, DType to) {
      return g_[x].type.dtype == to ? x : b.cast(x, to, at);
    };
    const ValueId low = as(view.low, t), high = as(view.high, t), rank = as(rank_, t);
    ValueId each, more;
    if (is_constant(view.low) && is_constant(view.high)) {
      const std::int64_t all =
          std::max<std::int64_t>(number_of(view.high) - number_of(view.low), 0);
      each = number(all / parts_), more = number(all % parts_);
    } else {
      const ValueId all = op(Op::Sub, op(Op::Max, high, low), low);
      each = op(Op::Div, all, number(parts_)), more = op(Op::Rem, all, number(parts_));
    }
    ValueId from = op(Op::Mul, rank, each), count = each;
    if (!is_zero(low)) from = op(Op::Add, low, from);
    if (!is_zero(more)) {
      from = op(Op::Add, from, op(Op::Min, rank, more));
      count = op(Op::Add, each, b.cast(op(Op::Lt, rank, more), t, at));
    }
    from = as(from, i32);
    begin_at(from, view.body, at);
    g_[loop_].args[0] = b.constant(i32, 0, {}, at);
    g_[loop_].args[1] = as(count, i32);
    for (std::size_t c = 0; c < inits.size(); ++c) {
      const Type type = g_[inits[c]].type;
      if (is_zero(inits[c])) continue;
      const ValueId none = b.constant(type.dtype, 0, type.shape, at);
      const ValueId first = b.broadcast_to(is_first_, type.shape, at);
      g_[loop_].args[2 + c] = b.add(Op::Select, {first, inits[c], none}, Attr{}, {}, at);
    }
  }

  // The loop's indices, which count from 0, become numbers from `from` on.
  void begin_at(ValueId from, RegionId body, Location at) {
    const ValueId index = g_[body].params[0];
    const std::vector<ValueId> all = std::exchange(g_[body].insts, {});
    Builder b(g_, body);
    const ValueId shifted = b.add(Op::Add, {from, index}, Attr{}, {}, at);
    g_[body].insts.insert(g_[body].insts.end(), all.begin(), all.end());
    const auto shift = [&](ValueId v) { return v == index ? shifted : v; };
    for (const ValueId v : all) replace(v, shift);
    for (ValueId& yielded : g_[body].yields) yielded = shift(yielded);
  }

  bool is_constant(ValueId v) const { return g_[v].op == Op::Constant; }
  bool is_zero(ValueId v) const { return is_constant(v) && g_[v].attr.bits == 0; }
  std::int64_t number_of(ValueId v) const { return graph::to_int(i32, g_[v].attr.bits); }

  ValueId add_scratch(Builder& b, const Type& type, Location at) {
    Shape shape;
    for (const std::int64_t extent : type.shape) shape.push_back(extent);
    g_.mapping.scratch_avals.push_back({.type = {shape, type.dtype},
                                        .is_ref = true,
                                        .memory_space = type.space,
                                        .arrivals = type.arrivals});
    return b.param(type, at);
  }

  // The block's own part is loaded like the others': in the layout in which the sum is wanted.
  ValueId total(Builder& b, ValueId room, Location at) const {
    const auto load = [&](ValueId ref) {
      return b.load(ref, graph::no_value, graph::no_value, at);
    };
    ValueId sum = load(room);
    for (std::int64_t n = 1; n < parts_; ++n) {
      const ValueId other = b.add(Op::RefPeer, {room, b.constant(i32, n, {}, at)}, Attr{}, {}, at);
      sum = b.add(Op::Add, {sum, load(other)}, Attr{}, {}, at);
    }
    return sum;
  }

  bool is_get(ValueId v) const { return g_[v].op == Op::Get && g_[v].args[0] == loop_; }

  // In what `user` and its regions ask for.
  template <class By>
  void replace(ValueId user, const By& by) {
    for (ValueId& arg : g_[user].args) arg = by(arg);
    for (const RegionId r : g_[user].regions) {
      for (const ValueId inner : g_[r].insts) replace(inner, by);
      for (ValueId& yielded : g_[r].yields) yielded = by(yielded);
    }
  }

  Program& l_;
  Graph& g_;
  const std::int64_t parts_;
  const RegionId body_;
  ValueId loop_ = graph::no_value, rank_ = graph::no_value, is_first_ = graph::no_value;
  std::size_t at_ = 0;  // of the loop, among what the body does
};

}  // namespace

void split_sums(Program& l) { SplitSums(l).run(); }

}  // namespace palladium::passes
