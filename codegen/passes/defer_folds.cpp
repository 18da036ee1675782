// sum + fold(x), carried through a loop, is a sum in parts that no thread shares: threads add up by
// themselves in the loop, and meet once behind it. So are largest and smallest numbers.
//
// Of x, of which the result has fewer elements than there are threads, only so many are folded in
// an iteration that the parts are of one thread each. Where others keep x in registers the parts
// would be of other threads than have it: what is loaded for it is for products beside it, or for
// folds, alone.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Extents;
using graph::Graph;
using graph::Inst;
using graph::Op;
using graph::RegionId;
using graph::Type;

constexpr std::int64_t most_registers = 8;     // of parts, of a thread
constexpr std::int64_t elements_together = 4;  // that a thread reads at once
constexpr std::int64_t least_row = 32;         // elements of memory that neighbours read

/// carry + fold(x), the fold with other dimensions of one element.
struct Sum {
  ValueId add = graph::no_value, fold = graph::no_value;
  std::size_t addend = 0;           // of the operands of `add`, which may be a Max or a Min
  std::vector<ValueId> moves = {};  // from the fold to the addend
};

/// Of x, of rank 1 or 2, along the dimension that vanishes.
struct Parts {
  Extents cut = {}, kept = {};  // x in parts; what is left of it
  std::int64_t dimension = 0;   // of `cut`, that vanishes in the loop
  std::int64_t part = 0;        // of `kept`, that vanishes behind it
};

class Deferral {
 public:
  explicit Deferral(Program& l) : l_(l), g_(l.graph) {}

  void run() {
    for (const graph::Body& b : g_.bodies) visit(b.region);
    if (changed_) l_.uses = uses_of(g_);
  }

 private:
  // Inner loops first: what is left behind them outer ones carry.
  void visit(RegionId r) {
    for (const ValueId v : std::vector(g_[r].insts)) {
      for (const RegionId inner : g_[v].regions) visit(inner);
      if (g_[v].op != Op::Loop) continue;
      multiplies_ = multiplies(g_[v].regions[0]);
      defer_carries(v);
    }
  }

  bool multiplies(RegionId r) const {
    return std::ranges::any_of(g_[r].insts, [&](ValueId v) { return g_[v].op == Op::Dot; });
  }

  // All are chosen of the loop as it was: a carry that has become parts reads what another folds.
  void defer_carries(ValueId loop) {
    struct Chosen {
      std::size_t carry;
      Sum sum;
      Parts parts;
    };
    std::vector<Chosen> chosen;
    if (graph::LoopView::of(g_[loop]).carries.empty()) return;
    if (!analysis_) analysis_.emplace(g_);
    const Analysis& a = *analysis_;
    for (std::size_t c = 0; c < graph::LoopView::of(g_[loop]).carries.size(); ++c) {
      std::optional<Sum> sum = sum_of(a, loop, c);
      std::optional<Parts> parts = sum ? parts_of(g_[sum->fold]) : std::nullopt;
      if (parts && is_read_alone(a, sum->fold)) chosen.push_back({c, *sum, *parts});
    }
    for (const Chosen& c : chosen) add_parts(loop, c.carry, c.sum, c.parts);
    if (chosen.empty()) return;
    changed_ = true;
    analysis_.reset();
  }

  std::optional<Sum> sum_of(const Analysis& a, ValueId loop, std::size_t carry) const {
    const graph::Repeated repeated = graph::Repeated::of(g_[loop]);
    const graph::Region& body = g_[repeated.region];
    const ValueId before = body.params[repeated.first + carry];
    Sum sum{.add = body.yields[carry]};
    const Inst& add = g_[sum.add];
    if (add.args.size() != 2 || a.uses(sum.add) != 1 || a.uses(before) != 1) return {};
    sum.addend = add.args[0] == before ? 1 : 0;
    if (add.args[1 - sum.addend] != before) return {};
    ValueId v = add.args[sum.addend];
    for (; is_move(v) && a.uses(v) == 1; v = g_[v].args[0]) sum.moves.push_back(v);
    if (!folds_by(add.op, g_[v]) || a.uses(v) != 1) return {};
    if (a.region[index(v)] != repeated.region) return {};
    sum.fold = v;
    return sum;
  }

  // Whether an operation on two elements makes of many what the fold does, which has a number for
  // none.
  bool folds_by(Op op, const Inst& fold) const {
    const Type& t = fold.type;
    if (!graph::is_fold(fold.op) || t.shape.size() >= g_[fold.args[0]].type.shape.size())
      return false;
    const bool has_least = t.dtype == f32 || t.dtype == f16 || t.dtype == bf16 || t.dtype == i32;
    switch (lowered::fold_of(fold.op)) {
    case thread::Fold::sum: return op == Op::Add;
    case thread::Fold::max: return op == Op::Max && has_least;
    case thread::Fold::min: return op == Op::Min && has_least;
    default: return false;
    }
  }

  bool is_move(ValueId v) const {
    const Inst& i = g_[v];
    return i.op == Op::Reshape ||
           (i.op == Op::Broadcast &&
            graph::element_count(i.type.shape) == graph::element_count(g_[i.args[0]].type.shape));
  }

  // So few that the threads have one each, or of columns neighbours, of what they read together.
  std::optional<Parts> parts_of(const Inst& fold) const {
    const Type& x = g_[fold.args[0]].type;
    const auto dimensions = graph::dimensions(fold);
    if (dimensions.size() != 1 || x.shape.size() > 2) return {};
    const auto d = static_cast<std::size_t>(dimensions[0]);
    const bool is_last = d + 1 == x.shape.size();
    if (is_last && !multiplies_) {
      const std::int64_t rows = graph::element_count(fold.type.shape);
      return rows < l_.num_warps ? parts_of_rows(fold, x.shape) : parts_of_vectors(fold, x.shape);
    }
    const std::int64_t along = x.shape[d], results = graph::element_count(fold.type.shape);
    const std::int64_t least = is_last ? elements_together : 1;
    const std::int64_t of_columns = multiplies_ ? elements_together : most_registers;
    const std::int64_t enough = l_.threads() * (is_last ? 1 : of_columns);
    std::int64_t parts = 1;
    while (results * parts < enough && along % (2 * parts) == 0 && along / parts > least)
      parts *= 2;
    if (parts == 1 || results * parts > most_registers * l_.threads()) return {};
    Parts p{.cut = x.shape, .kept = x.shape, .dimension = dimensions[0], .part = dimensions[0]};
    p.kept[d] = parts;
    p.cut[d] = is_last ? parts : along / parts;
    p.cut.insert(p.cut.begin() + dimensions[0] + 1, is_last ? along / parts : parts);
    p.dimension += is_last;
    return p;
  }

  // Of rows of memory neighbours stay neighbours: threads have vectors of them. Where there is a
  // row for each warp none waits for another, and a fold costs less than what its parts hold.
  std::optional<Parts> parts_of_rows(const Inst& fold, const Extents& x) const {
    const std::int64_t along = x.back(), results = graph::element_count(fold.type.shape);
    const std::int64_t most = most_registers * l_.threads();
    std::int64_t width = 1;
    while (results * width < most && along % (2 * width) == 0) width *= 2;
    if (results * along <= most) width = along;
    if (results * width < l_.threads() || results * width > most ||
        width < std::min(least_row, along))
      return {};
    const auto d = static_cast<std::int64_t>(x.size()) - 1;
    Parts p{.cut = x, .kept = x, .dimension = d, .part = d};
    p.kept.back() = width;
    p.cut.back() = along / width;
    p.cut.push_back(width);
    return p;
  }

  // Where each warp has rows of its own a lane folds the vectors that it reads.
  std::optional<Parts> parts_of_vectors(const Inst& fold, const Extents& x) const {
    constexpr std::int64_t bytes_together = 16;
    std::int64_t narrowest = bytes_together;
    for (const ValueId v : made_of(fold.args[0]))
      if (g_[v].op == Op::Load)
        narrowest = std::min<std::int64_t>(narrowest, g_[v].type.dtype.bytes());
    const std::int64_t along = x.back(), each = bytes_together / narrowest,
                       parts = along / each * graph::element_count(fold.type.shape);
    if (along % each != 0 || parts < l_.threads() || parts > most_registers * l_.threads())
      return {};
    const auto d = static_cast<std::int64_t>(x.size()) - 1;
    Parts p{.cut = x, .kept = x, .dimension = d + 1, .part = d};
    p.kept.back() = along / each;
    p.cut.back() = along / each;
    p.cut.push_back(each);
    return p;
  }

  // Whether what it is computed of element by element is loaded, and for products, if there are
  // any, or else for folds, alone.
  bool is_read_alone(const Analysis& a, ValueId fold) const {
    if (multiplies_ && lowered::fold_of(g_[fold].op) != thread::Fold::sum) return false;
    const ValueId x = g_[fold].args[0];
    const std::set<ValueId> parts = made_of(x);
    return std::ranges::any_of(parts, [&](ValueId v) { return g_[v].op == Op::Load; }) &&
           std::ranges::all_of(parts, [&](ValueId v) {
             return multiplies_ ? is_for_products(a, v, x, parts) : is_folded(a, v);
           });
  }

  // What x is computed of, element by element, constants and values of other shapes left out;
  // nothing: of what is neither that nor loaded.
  std::set<ValueId> made_of(ValueId x) const {
    std::set<ValueId> found;
    std::vector<ValueId> stack{x};
    while (!stack.empty()) {
      const ValueId v = stack.back();
      const Inst& i = g_[v];
      stack.pop_back();
      if (i.op == Op::Constant || i.type.shape != g_[x].type.shape || !found.insert(v).second)
        continue;
      if (i.op == Op::Load) continue;
      const bool moves = !multiplies_ && (i.op == Op::Broadcast || i.op == Op::Reshape);
      if (!graph::is_elementwise(i.op) && !moves) return {};
      stack.insert(stack.end(), i.args.begin(), i.args.end());
    }
    return found;
  }

  // Whether nothing but folds becomes of it, element by element.
  bool is_folded(const Analysis& a, ValueId v) const {
    std::set<ValueId> seen;
    std::vector<ValueId> stack{v};
    while (!stack.empty()) {
      const ValueId next = stack.back();
      stack.pop_back();
      if (!seen.insert(next).second) continue;
      if (!a.yielded[index(next)].empty()) return false;
      for (const ValueId u : a.users[index(next)]) {
        if (graph::is_fold(g_[u].op) || g_[u].op == Op::Reshape) continue;
        if (!graph::is_elementwise(g_[u].op)) return false;
        stack.push_back(u);
      }
    }
    return true;
  }

  // Whether a part of x is for products, and for x.
  bool is_for_products(const Analysis& a, ValueId v, ValueId x,
                       const std::set<ValueId>& parts) const {
    return a.yielded[index(v)].empty() && std::ranges::all_of(a.users[index(v)], [&](ValueId u) {
             return g_[u].op == Op::Dot || parts.contains(u) || g_[u].args[0] == x;
           });
  }

  void add_parts(ValueId loop, std::size_t carry, const Sum& sum, const Parts& p) {
    const Location at = g_.location(sum.fold);
    const DType t = g_[sum.fold].type.dtype;
    const Type kept = Type::value(t, p.kept);
    const ValueId x = g_[sum.fold].args[0];
    const Type folded = g_[sum.fold].type;
    const graph::Repeated repeated = graph::Repeated::of(g_[loop]);
    const Op by = g_[sum.fold].op;
    if (p.kept == g_[x].type.shape) {
      g_[sum.add].args[sum.addend] = x;
      std::erase(g_[repeated.region].insts, sum.fold);
    } else {
      const ValueId cut = g_.add({Op::Reshape, Type::value(t, p.cut), {}, {x}, {}}, at);
      insert_before(g_, cut, sum.fold);
      g_[sum.fold] = {by, kept, {{p.dimension}, 0}, {cut}, {}};
      g_[sum.add].args[sum.addend] = sum.fold;
    }
    g_[sum.add].type = kept;
    g_[g_[repeated.region].params[repeated.first + carry]].type = kept;
    const std::span<const ValueId> carries = graph::LoopView::of(g_[loop]).carries;
    const ValueId begin = carries[carry];
    const auto place = static_cast<std::size_t>(&carries[carry] - g_[loop].args.data());
    const ValueId none = g_.add({Op::Constant, kept, {{}, none_of(sum.fold)}, {}, {}}, at);
    insert_before(g_, none, loop);
    g_[loop].args[place] = none;
    const Analysis a(g_);
    for (const ValueId get : a.users[index(loop)])
      if (g_[get].op == Op::Get && graph::result_of(g_[get]) == carry)
        add_up(get, begin, folded, sum, p, a);
    for (const ValueId move : sum.moves) std::erase(g_[repeated.region].insts, move);
  }

  // Behind the loop: the parts, moved as the fold was, and what the sum began with.
  void add_up(ValueId get, ValueId begin, const Type& folded, const Sum& sum, const Parts& p,
              const Analysis& a) {
    const Location at = g_.location(get);
    const Type whole = g_[get].type;
    ValueId last = get;
    const auto add = [&](Inst i) {
      const ValueId v = g_.add(std::move(i), at);
      insert_behind(v, last, a.region[index(get)]);
      return last = v;
    };
    g_[get].type = Type::value(folded.dtype, p.kept);
    ValueId v = add({g_[sum.fold].op, folded, {{p.part}, 0}, {get}, {}});
    for (auto move = sum.moves.rbegin(); move != sum.moves.rend(); ++move) {
      Inst i = g_[*move];
      i.args = {v};
      v = add(std::move(i));
    }
    const bool begins_with_none =
        g_[begin].op == Op::Constant && g_[begin].attr.bits == none_of(sum.fold);
    if (!begins_with_none) v = add({g_[sum.add].op, whole, {}, {begin, v}, {}});
    replace(get, v);
  }

  // The number that a fold of nothing is.
  std::uint64_t none_of(ValueId fold) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr std::uint64_t sign = std::uint64_t{1} << 31;
    const DType t = g_[fold].type.dtype;
    const thread::Fold how = lowered::fold_of(g_[fold].op);
    if (how == thread::Fold::sum) return 0;
    const bool is_max = how == thread::Fold::max;
    if (t == i32) return is_max ? sign : sign - 1;
    return graph::to_bits(t, is_max ? -infinity : infinity);
  }

  void insert_behind(ValueId v, ValueId before, RegionId r) {
    std::vector<ValueId>& insts = g_[r].insts;
    insts.insert(std::ranges::find(insts, before) + 1, v);
  }

  // Users behind the parts use what they add up to.
  void replace(ValueId get, ValueId by) {
    std::set<ValueId> own;
    for (ValueId v = by; v != get; v = g_[v].args.back()) own.insert(v);
    for (std::size_t n = 0; n < g_.insts.size(); ++n)
      if (!own.contains(ValueId(n))) std::ranges::replace(g_.insts[n].args, get, by);
    for (graph::Region& r : g_.regions) std::ranges::replace(r.yields, get, by);
  }

  Program& l_;
  Graph& g_;
  bool multiplies_ = false;                // in the loop
  std::optional<Analysis> analysis_ = {};  // of the graph as it is
  bool changed_ = false;
};

}  // namespace

void defer_folds(Program& l) { Deferral(l).run(); }

}  // namespace palladium::passes
