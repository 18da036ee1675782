#include "codegen/passes/accumulators.hpp"
#include "codegen/passes/products.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace palladium::passes {

using graph::Graph;
using graph::Inst;
using graph::Op;

namespace {

using graph::RegionId;

// The way from a carry, or what is loaded, to its next value, or to the store that puts it back.
class Way {
 public:
  Way(const Graph& g, const Analysis& a, const std::vector<bool>& sums, ValueId old)
      : g_(g), a_(a), sums_(sums), old_(old), here_(a.region[index(old)]) {}

  /// Adds the products on it; nothing if there are other ways.
  void add(std::map<ValueId, Accumulation>& all) {
    ValueId v = old_;
    for (ValueId next = user(v); next != graph::no_value; next = user(v)) {
      if (!goes_on(v, next)) return;
      v = next;
    }
    if (!scaled_.empty() || !ends(v)) return;
    for (auto& [product, added] : found_) {
      added.sum = v;
      all[product] = std::move(added);
    }
  }

 private:
  // The only one; none at the end.
  ValueId user(ValueId v) const {
    if (a_.uses(v) != 1 || a_.users[index(v)].size() != 1) return graph::no_value;
    const ValueId u = a_.users[index(v)][0];
    return g_[u].op == Op::Store ? graph::no_value : u;
  }

  bool goes_on(ValueId v, ValueId next) {
    const Inst& i = g_[next];
    if (!graph::is_elementwise(i.op) || i.type != g_[old_].type || a_.region[index(next)] != here_)
      return false;
    std::vector<ValueId> products;
    for (const ValueId x : addends(i, v))
      if (!find_products(x, products)) return scales(v, next);
    return products.empty() ? scales(v, next) : adds(v, std::move(products), next);
  }

  // What stands beside it in the sum.
  static std::vector<ValueId> addends(const Inst& i, ValueId v) {
    if (i.op == Op::Add) return {i.args[0] == v ? i.args[1] : i.args[0]};
    if (i.op == Op::Fma && i.args[2] != v) return {i.args[2]};
    return {};
  }

  // Of what is a product, or a sum of nothing else, that nobody else reads.
  bool find_products(ValueId v, std::vector<ValueId>& products) const {
    if (!sums_[index(v)] || a_.region[index(v)] != here_ || g_[v].type != g_[old_].type)
      return false;
    for (std::vector<ValueId> stack{v}; !stack.empty();) {
      const Inst& i = g_[stack.back()];
      if (i.op == Op::Dot) products.push_back(stack.back());
      stack.pop_back();
      if (i.op == Op::Add) stack.insert(stack.end(), i.args.begin(), i.args.end());
    }
    return true;
  }

  bool scales(ValueId v, ValueId next) {
    for (const ValueId x : g_[next].args)
      if (x != v) needed_ = std::max(needed_, a_.position[index(x)]);
    scaled_.push_back(next);
    return true;
  }

  // They are made one after the other, behind those that are added before.
  bool adds(ValueId v, std::vector<ValueId> products, ValueId sum) {
    std::ranges::sort(products, {}, [&](ValueId p) { return a_.position[index(p)]; });
    if (g_[sum].op == Op::Fma)
      for (const std::size_t factor : {0, 1})
        if (const ValueId x = g_[sum].args[factor]; x != v)
          needed_ = std::max(needed_, a_.position[index(x)]);
    if (a_.position[index(products[0])] <= std::max(needed_, last_)) return false;
    for (const ValueId product : products) {
      found_.push_back({product,
                        {.old = old_,
                         .scaled = std::exchange(scaled_, {}),
                         .added_by = sum,
                         .first = found_.empty()}});
      last_ = a_.position[index(product)];
    }
    return true;
  }

  // Whether the value is what `old` becomes.
  bool ends(ValueId v) const {
    if (v == old_ || a_.uses(v) != 1) return false;
    if (g_[old_].op == Op::Load) {
      if (a_.users[index(v)].size() != 1) return false;
      const ValueId store = a_.users[index(v)][0];
      return g_[store].op == Op::Store && graph::MemoryView::of(g_[store]).value == v &&
             a_.region[index(store)] == here_ && root_of(g_, store) == root_of(g_, old_);
    }
    if (a_.yielded[index(v)].empty()) return false;
    const ValueId owner = a_.yielded[index(v)][0].owner;
    if (!graph::repeats(g_[owner].op)) return false;
    const graph::Repeated repeated = graph::Repeated::of(g_[owner]);
    const graph::Region& r = g_[repeated.region];
    for (std::size_t c = 0; c < r.yields.size(); ++c)
      if (r.yields[c] == v) return r.params[repeated.first + c] == old_;
    return false;
  }

  const Graph& g_;
  const Analysis& a_;
  const std::vector<bool>& sums_;
  const ValueId old_;
  const RegionId here_;
  std::vector<ValueId> scaled_;  // since the last products
  int needed_ = -1, last_ = -1;  // positions: of what scales it, of the last product
  std::vector<std::pair<ValueId, Accumulation>> found_;
};

bool is_zero(const Inst& i) { return i.op == Op::Constant && i.attr.bits == 0; }

// Whether it adds up what is, and zeros, where it stands.
bool adds_sums(const Graph& g, const Analysis& a, const std::vector<bool>& sums, ValueId v) {
  return g[v].op == Op::Add && std::ranges::all_of(g[v].args, [&](ValueId x) {
           return is_zero(g[x]) || (sums[index(x)] && a.region[index(x)] == a.region[index(v)]);
         });
}

// The product that a loop adds to what it leaves there; none of other values.
ValueId added_by_loop(const Graph& g, ValueId v) {
  if (g[v].op != Op::Get) return graph::no_value;
  for (const ValueId left : held_before(g, v))
    if (g[left].op == Op::Add)
      for (const ValueId x : g[left].args)
        if (g[x].op == Op::Dot) return x;
  return graph::no_value;
}

// Of each value whether it is a product that is read once, or a sum of such and of zeros, of one
// region; `by_loops`: or of what loops leave of theirs.
std::vector<bool> are_sums_of_products(const Graph& g, const Analysis& a, bool by_loops = false) {
  std::vector<bool> sums(g.insts.size());
  for (const ValueId v : a.order)
    sums[index(v)] = a.uses(v) == 1 && (g[v].op == Op::Dot || adds_sums(g, a, sums, v) ||
                                        (by_loops && added_by_loop(g, v) != graph::no_value));
  return sums;
}

}  // namespace

std::map<ValueId, Accumulation> accumulations(const Graph& g, const Analysis& a) {
  std::map<ValueId, Accumulation> all;
  const std::vector<bool> sums = are_sums_of_products(g, a);
  std::vector<graph::Type> types;  // of products
  for (const ValueId v : a.order)
    if (g[v].op == Op::Dot && std::ranges::find(types, g[v].type) == types.end())
      types.push_back(g[v].type);
  for (const ValueId v : a.order)
    if ((g[v].op == Op::Param || g[v].op == Op::Load) &&
        std::ranges::find(types, g[v].type) != types.end())
      Way(g, a, sums, v).add(all);
  return all;
}

namespace {

// Those of which one loop at most leaves a part.
std::vector<SumOfProducts> all_sums(const Graph& g, const Analysis& a) {
  std::vector<SumOfProducts> all;
  const std::vector<bool> sums = are_sums_of_products(g, a, true);
  if (std::ranges::count(sums, true) == 0) return all;
  for (const ValueId v : a.order) {
    if (!adds_sums(g, a, sums, v)) continue;
    const bool is_part =
        sums[index(v)] && !a.users[index(v)].empty() && adds_sums(g, a, sums, a.users[index(v)][0]);
    if (is_part) continue;
    SumOfProducts sum{.sum = v};
    int loops = 0;
    for (std::vector<ValueId> stack{v}; !stack.empty();) {
      const ValueId x = stack.back();
      stack.pop_back();
      if (g[x].op == Op::Dot) sum.products.push_back(x);
      if (g[x].op == Op::Add) stack.insert(stack.end(), g[x].args.begin(), g[x].args.end());
      const ValueId added = added_by_loop(g, x);
      if (added == graph::no_value) continue;
      ++loops;
      sum.left_by_loop = x;
      sum.added_by_loop = added;
    }
    std::ranges::sort(sum.products, {}, [&](ValueId x) { return a.position[index(x)]; });
    if (loops <= 1) all.push_back(std::move(sum));
  }
  return all;
}

}  // namespace

std::vector<SumOfProducts> sums_of_products(const Graph& g, const Analysis& a) {
  std::vector<SumOfProducts> all = all_sums(g, a);
  std::erase_if(all, [&](const SumOfProducts& s) {
    if (s.left_by_loop == graph::no_value) return s.products.size() < 2;
    return s.products.empty() ||
           a.position[index(s.left_by_loop)] > a.position[index(s.products.front())];
  });
  return all;
}

namespace {

// Whether what is read there is wanted in front of so far a position alone: where it is inlined,
// by all that is computed of it.
bool is_wanted_before(const Program& l, const Analysis& a, ValueId read, int position) {
  std::vector<ValueId> stack{read};
  std::set<ValueId> seen;
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (a.position[index(v)] >= position) return false;
    if (l.storage_of[v] || !seen.insert(v).second) continue;
    for (const End& e : a.yielded[index(v)])
      if (e.position >= position) return false;
    stack.insert(stack.end(), a.users[index(v)].begin(), a.users[index(v)].end());
  }
  return true;
}

// Of the load of a window that the store puts back. Others may read it before, or what it is then.
StorageId accumulating_window(const Program& l, const Analysis& a, ValueId load, ValueId store) {
  const ValueId root = root_of(l.graph, load);
  const Window& w = l.windows[l.window_of[root]];
  if (w.residency() != Residency::registers || !l.storages[w.storage()].in_registers() ||
      l.storage_of[load])
    return {};
  const int first = a.position[index(load)], last = a.position[index(store)];
  for (const ValueId v : a.order) {
    const graph::Inst& inst = l.graph[v];
    const bool writes = l.graph.writes(inst, root), reads = l.graph.reads(inst, root);
    if ((!reads && !writes) || v == load || v == store || a.position[index(v)] > last) continue;
    if (a.position[index(v)] > first || (reads && !is_wanted_before(l, a, v, first))) return {};
  }
  return w.storage();
}

}  // namespace

StorageId accumulator(const Program& l, const Analysis& a, const Accumulation& added) {
  const auto is_kept = [&](ValueId v) { return bool(l.storage_of[v]); };
  if (is_kept(added.sum) || is_kept(added.added_by) || std::ranges::any_of(added.scaled, is_kept))
    return {};
  if (l.graph[added.old].op == Op::Param) return l.storage_of[added.old];
  return accumulating_window(l, a, added.old, a.users[index(added.sum)][0]);
}

namespace {

// acc * f + product was made one operation: the product is added by what computes it, so that only
// the factor is left.
bool split_scaled(Graph& g) {
  std::set<ValueId> sums;
  for (const auto& [product, added] : accumulations(g, Analysis(g)))
    if (g[added.added_by].op == Op::Fma) sums.insert(added.added_by);
  for (const ValueId sum : sums) {
    const std::vector<ValueId> args = g[sum].args;
    const ValueId scaled =
        g.add({Op::Mul, g[sum].type, {}, {args[0], args[1]}, {}}, g.location(sum));
    insert_before(g, scaled, sum);
    g[sum].op = Op::Add;
    g[sum].args = {scaled, args[2]};
  }
  return !sums.empty();
}

// A product that is added to what a loop behind it leaves: made in front of the loop it would take
// registers beside the loop's sum.
bool sink_products(Graph& g) {
  const Analysis a(g);
  bool moved = false;
  for (const SumOfProducts& s : all_sums(g, a)) {
    if (s.left_by_loop == graph::no_value) continue;
    const int left = a.position[index(s.left_by_loop)];
    for (const ValueId product : s.products) {
      const ValueId sum = a.users[index(product)][0];
      if (a.position[index(product)] > left || a.position[index(sum)] < left) continue;
      std::erase(g[a.region[index(product)]].insts, product);
      insert_before(g, product, sum);
      moved = true;
    }
  }
  return moved;
}

}  // namespace

void arrange_sums(Program& l) {
  const bool splits = split_scaled(l.graph), sinks = sink_products(l.graph);
  if (splits || sinks) l.uses = uses_of(l.graph);
}

}  // namespace palladium::passes
