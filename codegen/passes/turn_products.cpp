// Products of which everything that is made of them is a transposed left operand of other products
// are made transposed: dot(P, x, {.trans_a}) of P computed of dot(q, k) becomes dot(P', x) of P'
// computed of dot(k, q). A of the other products is then what threads hold of the first ones'
// accumulators, and need not go through shared memory.
//
// What is computed between is elementwise; what it takes beside products, numbers of rows and
// columns, constants, is transposed with it. Both kinds of products are wgmma's then, of operands
// that are loaded.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"

namespace palladium::passes {
namespace {

using graph::DotView;
using graph::Inst;
using graph::Op;

class Turning {
 public:
  explicit Turning(Program& l) : l_(l), g_(l.graph), a_(l.graph), facts_(l.graph.insts.size()) {
    for (const ValueId v : a_.order) facts_[graph::index(v)] = facts_of(g_[v]);
  }

  void run() {
    for (const ValueId v : a_.order)
      if (is_turned_left(v) && !turned_.contains(v)) turn(v);
    if (!turned_.empty()) l_.uses = uses_of(g_);
  }

 private:
  // Of what a value is computed element by element: whether a product is among it; if none is, by
  // how many steps of numbers of rows and columns, so that it can be made transposed; 0: by none.
  struct Facts {
    bool of_product = false;
    int steps = 0;
  };
  // Of operands of which that is known.
  Facts facts_of(const Inst& i) const {
    if (i.op == Op::Dot) return {.of_product = true};
    if (i.type.is_ref() || i.type.shape.size() != 2) return {};
    if (i.op == Op::Constant || i.op == Op::Iota) return {.steps = 1};
    if (i.op == Op::Broadcast) {
      const graph::Extents& from = g_[i.args[0]].type.shape;
      return {.steps = from.size() < 2 || from[0] == 1 || from[1] == 1 ? 1 : 0};
    }
    if (!graph::is_elementwise(i.op)) return {};
    Facts all{.steps = 1};
    for (const ValueId x : i.args) {
      const Facts& of = facts(x);
      all.of_product = all.of_product || of.of_product;
      const bool can = all.steps > 0 && of.steps > 0 && of.steps < most_steps;
      all.steps = can ? std::max(all.steps, of.steps + 1) : 0;
    }
    return all;
  }
  const Facts& facts(ValueId v) const { return facts_[graph::index(v)]; }

  bool is_turned_left(ValueId v) const {
    if (g_[v].op != Op::Dot || !DotView::of(g_[v]).trans_a) return false;
    const ValueId left = DotView::of(g_[v]).a;
    return g_[left].op != Op::Dot && facts(left).of_product;
  }

  // All that is made of the products that the operand is made of, and these.
  void turn(ValueId consumer) {
    values_.clear();
    consumers_.clear();
    left_over_.clear();
    if (!add(DotView::of(g_[consumer]).a) || !are_taken()) return;
    std::vector<ValueId> in_order(values_.begin(), values_.end());
    std::ranges::sort(in_order, {}, [&](ValueId v) { return a_.position[graph::index(v)]; });
    for (const ValueId v : in_order) turn_value(v);
    for (const ValueId v : consumers_) {
      set_transposed(g_[v], false, DotView::of(g_[v]).trans_b);
      turned_.insert(v);
    }
    for (const ValueId v : left_over_) std::erase(g_[a_.region[graph::index(v)]].insts, v);
  }

  // Whether the value, what it is made of and all that is made of it can be transposed.
  bool add(ValueId first) {
    std::vector<ValueId> left{first};
    while (!left.empty()) {
      const ValueId v = left.back();
      left.pop_back();
      if (!facts(v).of_product) {
        if (facts(v).steps == 0) return false;
        continue;
      }
      if (!values_.insert(v).second) continue;
      const Inst& i = g_[v];
      if (i.type.shape.size() != 2 || !a_.yielded[graph::index(v)].empty()) return false;
      if (i.op != Op::Dot) left.insert(left.end(), i.args.begin(), i.args.end());
      for (const ValueId user : a_.users[graph::index(v)]) {
        if (is_left_over(user)) {
          left_over_.push_back(user);
          continue;
        }
        if (graph::is_elementwise(g_[user].op))
          left.push_back(user);
        else if (!add_consumer(v, user))
          return false;
      }
    }
    return true;
  }

  // A transpose that products have taken in.
  bool is_left_over(ValueId v) const { return g_[v].op == Op::Transpose && a_.uses(v) == 0; }

  bool add_consumer(ValueId v, ValueId user) {
    if (g_[user].op != Op::Dot) return false;
    const DotView d = DotView::of(g_[user]);
    consumers_.insert(user);
    return d.a == v && d.b != v && d.trans_a;
  }

  // By wgmma, in the program's width, and A of the others in registers.
  bool are_taken() const {
    const auto is_taken = [&](const Inst& dot) {
      const int warps = warps_that_take_wgmma(l_, dot);
      return warps > 0 && warps <= l_.num_warps;
    };
    const auto is_loaded = [&](ValueId x) { return g_[x].op == Op::Load; };
    for (const ValueId v : values_)
      if (g_[v].op == Op::Dot &&
          !(std::ranges::all_of(g_[v].args, is_loaded) && is_taken(of_product(v))))
        return false;
    const std::int64_t rows = wgmma_rows * l_.num_warps / graph::num_warps;
    return std::ranges::all_of(consumers_, [&](ValueId v) {
      Inst plain = g_[v];
      set_transposed(plain, false, DotView::of(plain).trans_b);
      return g_[plain.args[0]].type.dtype.bytes() == 2 && plain.type.shape[0] % rows == 0 &&
             is_loaded(plain.args[1]) && is_taken(plain);
    });
  }

  // ---- what is transposed

  void turn_value(ValueId v) {
    region_ = a_.region[graph::index(v)];
    if (g_[v].op == Op::Dot) {
      g_[v] = of_product(v);
      return;
    }
    std::swap(g_[v].type.shape[0], g_[v].type.shape[1]);
    for (std::size_t k = 0; k < g_[v].args.size(); ++k) {
      const ValueId x = g_[v].args[k];
      if (!values_.contains(x)) g_[v].args[k] = anew(x, v);
    }
  }

  // b^T a^T.
  Inst of_product(ValueId v) const {
    Inst i = g_[v];
    const DotView d = DotView::of(i);
    std::swap(i.args[0], i.args[1]);
    std::swap(i.type.shape[0], i.type.shape[1]);
    set_transposed(i, !d.trans_b, !d.trans_a);
    return i;
  }

  static void set_transposed(Inst& dot, bool a, bool b) {
    dot.attr = {{a, b, static_cast<std::int64_t>(DotView::of(dot).precision)}, 0};
  }

  // Once for all of a region, in front of the first of them.
  ValueId anew(ValueId v, ValueId before) {
    const auto [made, is_new] = anew_.try_emplace({region_, v});
    return is_new ? made->second = make_anew(v, before) : made->second;
  }

  ValueId make_anew(ValueId v, ValueId before) {
    Inst i = g_[v];
    std::swap(i.type.shape[0], i.type.shape[1]);
    if (i.op == Op::Broadcast) {
      graph::Type from = g_[i.args[0]].type;
      if (from.shape.size() == 2) {
        std::swap(from.shape[0], from.shape[1]);
        i.args[0] = put({Op::Reshape, std::move(from), {}, {i.args[0]}, {}}, v, before);
      } else {
        std::vector<std::int64_t> turned;
        for (const std::int64_t d : graph::dimensions(i)) turned.push_back(1 - d);
        i.attr = {std::move(turned), 0};
      }
    } else if (i.op == Op::Iota) {
      i.attr = {{1 - graph::iota_dimension(i)}, 0};
    } else {
      for (ValueId& x : i.args) x = anew(x, before);
    }
    return put(std::move(i), v, before);
  }

  ValueId put(Inst i, ValueId like, ValueId before) {
    const ValueId v = g_.add(std::move(i), g_.location(like));
    insert_before(g_, v, before);
    return v;
  }

  static constexpr std::int64_t wgmma_rows = 64;
  static constexpr int most_steps = 64;  // of what is made anew

  Program& l_;
  graph::Graph& g_;
  Analysis a_;
  std::vector<Facts> facts_;
  graph::RegionId region_ = {};  // of who has something made anew
  std::map<std::pair<graph::RegionId, ValueId>, ValueId> anew_ = {};
  std::set<ValueId> values_ = {}, consumers_ = {};  // of one turn
  std::vector<ValueId> left_over_ = {};             // of the values
  std::set<ValueId> turned_ = {};                   // products that were consumers
};

}  // namespace

void turn_products(Program& l) {
  const auto is_turned = [](const Inst& i) { return i.op == Op::Dot && DotView::of(i).trans_a; };
  if (l.machine.has_wgmma() && std::ranges::any_of(l.graph.insts, is_turned)) Turning(l).run();
}

}  // namespace palladium::passes
