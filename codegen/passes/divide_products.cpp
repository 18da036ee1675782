#include "codegen/passes/divide_products.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "codegen/graph/builder.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/passes/analysis.hpp"

namespace palladium::passes {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Inst;
using graph::Op;
using graph::ValueId;

constexpr std::int64_t least_part_bytes = 32;  // of a row: a step of tensor cores

class DividedProducts {
 public:
  DividedProducts(const Graph& g, const Division& division) : g_(g), a_(g), division_(division) {}

  std::optional<Graph> run() {
    for (const ValueId v : a_.order)
      if (g_[v].op == Op::Dot) divide(v);
    if (most_ <= division_.parts / 2) return {};
    return graph::canonicalize(g_);
  }

 private:
  void divide(ValueId dot) {
    const graph::DotView view = graph::DotView::of(g_[dot]);
    const int loaded = is_loaded(view.a) + is_loaded(view.b);
    if (loaded == 0 || (loaded == 1 && !division_.computed)) return;
    const graph::Type operand = g_[view.a].type;
    const std::int64_t k = operand.shape[view.contracting_dimension(0)];
    const Cut cut = cut_of(k, operand.dtype);
    if (cut.parts() < 2) return;
    most_ = std::max(most_, cut.parts());
    loaded == 2 ? repeat(dot, cut) : unroll(dot, cut);
  }

  /// Parts of so many elements of K, and what is left behind them.
  struct Cut {
    std::int64_t whole = 1, size = 0, rest = 0;
    std::int64_t parts() const { return whole + (rest > 0 ? 1 : 0); }
  };

  // Into equal parts, or else into some of whole steps and a shorter one.
  Cut cut_of(std::int64_t k, DType t) const {
    const std::int64_t step = std::max<std::int64_t>(1, least_part_bytes / t.bytes());
    std::int64_t parts = division_.parts;
    while (parts > 1 && (k % parts != 0 || k / parts % step != 0)) --parts;
    const std::int64_t size = round_up(cdiv(k, std::int64_t{division_.parts}), step);
    const Cut equal{.whole = parts, .size = k / parts},
        unequal{.whole = k / size, .size = size, .rest = k % size};
    return 2 * equal.parts() > division_.parts || unequal.parts() < 2 ? equal : unequal;
  }

  bool is_loaded(ValueId v) const { return g_[v].op == Op::Load && reads_unwritten(g_, a_, v); }

  // The sum of a product and something else, where nobody else reads the product; else no_value.
  ValueId sum_with(ValueId dot) const {
    const std::vector<ValueId>& users = a_.users[index(dot)];
    if (a_.uses(dot) != 1 || users.size() != 1) return graph::no_value;
    const Inst& user = g_[users[0]];
    const bool adds = user.op == Op::Add || (user.op == Op::Fma && user.args[2] == dot);
    return adds && a_.region[index(users[0])] == a_.region[index(dot)] ? users[0] : graph::no_value;
  }

  // A loop over the parts, and the rest behind it. What is added to the product is where its sum
  // begins.
  void repeat(ValueId dot, const Cut& cut) {
    const Location at = g_.location(dot);
    const ValueId sum = sum_with(dot);
    const bool added = sum != graph::no_value && g_[sum].op == Op::Add;
    const graph::RegionId body = part(dot, cut.size);
    instead_of(added ? sum : dot, dot, [&](Builder& b) {
      const ValueId begin = added ? g_[sum].args[g_[sum].args[0] == dot ? 1 : 0]
                                  : b.constant(g_[dot].type.dtype, 0, g_[dot].type.shape, at);
      const ValueId low = b.constant(i32, 0, {}, at), high = b.constant(i32, cut.whole, {}, at);
      const ValueId loop = b.add(Op::Loop, {low, high, begin}, {body}, {{1, 1}, 0}, at);
      const ValueId all = b.add(Op::Get, {loop}, {{0}, 0}, {}, at);
      return cut.rest > 0 ? b.elementwise(Op::Add, {all, rest(b, dot, cut)}, at) : all;
    });
  }

  ValueId rest(Builder& b, ValueId dot, const Cut& cut) {
    return product(b, dot, {.start = cut.whole * cut.size, .size = cut.rest});
  }

  graph::RegionId part(ValueId dot, std::int64_t k) {
    const Location at = g_.location(dot);
    const graph::RegionId body = g_.add_region();
    Builder b(g_, body);
    const ValueId number = b.param(graph::Type::value(i32), at);
    const ValueId sum = b.param(graph::Type(g_[dot].type), at);
    const ValueId start = b.elementwise(Op::Mul, {number, b.constant(i32, k, {}, at)}, at);
    const ValueId more = product(b, dot, {.dynamic = true, .size = k}, start);
    b.yield({b.elementwise(Op::Add, {sum, more}, at)});
    return body;
  }

  // The parts one behind the other, each added to those before.
  void unroll(ValueId dot, const Cut& cut) {
    const ValueId sum = sum_with(dot);
    instead_of(sum == graph::no_value ? dot : sum, dot, [&](Builder& b) {
      ValueId all = product(b, dot, {.size = cut.size});
      if (sum != graph::no_value) {
        std::vector<ValueId> args = g_[sum].args;
        std::ranges::replace(args, dot, all);
        all = b.elementwise(g_[sum].op, std::move(args), g_.location(sum));
      }
      const auto add = [&](ValueId part) {
        all = b.elementwise(Op::Add, {all, part}, g_.location(dot));
      };
      for (std::int64_t i = 1; i < cut.whole; ++i)
        add(product(b, dot, {.start = i * cut.size, .size = cut.size}));
      if (cut.rest > 0) add(rest(b, dot, cut));
      return all;
    });
  }

  // Of the elements of K that `part` says, from `start` on where that is not a constant.
  ValueId product(Builder& b, ValueId dot, graph::SubscriptDim part,
                  ValueId start = graph::no_value) {
    const Inst whole = g_[dot];
    std::array<ValueId, 2> operands = {};
    for (const std::size_t i : {0, 1}) {
      const std::size_t k = graph::DotView::of(whole).contracting_dimension(i);
      operands[i] = part.dynamic ? loaded_part(b, whole.args[i], k, part, start).load
                                 : computed_part(b, whole.args[i], k, part);
    }
    return b.add(Op::Dot, {operands[0], operands[1]}, whole.attr, {}, g_.location(dot));
  }

  // Whether it is computed, for nobody else, of loads alone.
  bool is_of_loads(ValueId v) const {
    if (is_loaded(v) || g_[v].op == Op::Constant) return true;
    return graph::is_elementwise(g_[v].op) && a_.uses(v) == 1 &&
           std::ranges::all_of(g_[v].args, [&](ValueId x) { return is_of_loads(x); });
  }

  // What is computed of loads is so of a part of them; of anything else a part is chosen.
  ValueId computed_part(Builder& b, ValueId v, std::size_t k, graph::SubscriptDim part) {
    if (is_loaded(v)) return loaded_part(b, v, k, part, graph::no_value).load;
    const Inst whole = g_[v];
    const Location at = g_.location(v);
    graph::Type type = whole.type;
    type.shape[k] = part.size;
    if (is_of_loads(v)) {
      std::vector<ValueId> args;
      for (const ValueId x : whole.args) args.push_back(computed_part(b, x, k, part));
      return b.add(whole.op, std::move(args), whole.attr, type, at);
    }
    graph::SliceView s{.starts = {0, 0}, .strides = {1, 1}};
    s.starts[k] = part.start;
    return b.add(Op::Slice, {v}, {s.encode(), 0}, type, at);
  }

  // What `make` gives, in front of `v` and for those who read it.
  template <class Make>
  void instead_of(ValueId v, ValueId dot, Make&& make) {
    const graph::RegionId around = a_.region[index(dot)];
    const auto before = static_cast<std::ptrdiff_t>(g_[around].insts.size());
    Builder b(g_, around);
    const ValueId made = make(b);
    std::vector<ValueId>& insts = g_[around].insts;
    std::rotate(std::ranges::find(insts, v), insts.begin() + before, insts.end());
    for (Inst& i : g_.insts) std::ranges::replace(i.args, v, made);
    for (graph::Region& r : g_.regions) std::ranges::replace(r.yields, v, made);
  }

  Graph g_;
  const Analysis a_;
  const Division division_;
  std::int64_t most_ = 0;
};

}  // namespace

LoadedPart loaded_part(graph::Builder& b, ValueId load, std::size_t dimension,
                       graph::SubscriptDim part, ValueId start) {
  const Graph& g = b.graph();
  graph::Subscript s;
  for (const std::int64_t extent : g[load].type.shape) s.dims.push_back({.size = extent});
  s.dims[dimension] = part;
  const Location at = g.location(load);
  std::vector<ValueId> starts;
  if (part.dynamic) starts.push_back(start);
  const ValueId view = b.at(g[load].args[0], s, std::move(starts), at);
  return {view, b.load(view, graph::no_value, graph::no_value, at)};
}

std::optional<Graph> divide_products(const Graph& g, const Division& division) {
  return DividedProducts(g, division).run();
}

}  // namespace palladium::passes
