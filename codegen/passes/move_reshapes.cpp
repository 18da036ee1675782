// Values that are reshaped between memory and memory have the dimensions of the finest of their
// shapes: views of memory with these are loaded and stored, and no element goes to another thread
// because its dimensions are counted otherwise.
//
// Where one of them is multiplied, scanned, carried or sliced along such a dimension, or where rows
// would be accessed by less than 16 bytes that are so now, all that belong together stay as they
// are.
//
// Precondition: a canonical graph; in front of what looks at shapes.
#include <algorithm>
#include <bit>
#include <set>
#include <utility>
#include <vector>

#include "codegen/graph/packed.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Attr;
using graph::Extents;
using graph::Graph;
using graph::Inst;
using graph::MemoryView;
using graph::Op;
using graph::Region;
using graph::Type;

constexpr std::int64_t access_bytes = 16;
constexpr std::int64_t least_of_row = 4;  // elements that threads compute together

// What rows of so many bytes are accessed by.
std::int64_t width(std::int64_t bytes) { return std::min(access_bytes, bytes & -bytes); }

// ---- dimensions, and where they are cut

using DimensionId = std::size_t;

/// Dimensions of which those that are joined are cut alike.
class Dimensions {
 public:
  DimensionId add(std::int64_t extent) {
    all_.push_back({.joined = all_.size(), .extent = extent});
    return all_.size() - 1;
  }
  void join(DimensionId a, DimensionId b) {
    a = find(a), b = find(b);
    if (a == b) return;
    if (all_[a].members < all_[b].members) std::swap(a, b);
    all_[a].members += all_[b].members;
    all_[a].stays |= all_[b].stays;
    all_[b].joined = a;
  }
  /// It is not cut, nor is what is cut with it.
  void stay(DimensionId d) { at(d).stays = true; }
  /// One is the others, from the outermost to the innermost.
  void cut(DimensionId whole, std::vector<DimensionId> parts) {
    cuts_.push_back({whole, std::move(parts)});
  }
  /// Of each element of one the other has two.
  void halve(DimensionId elements, DimensionId pairs) { halves_.emplace_back(elements, pairs); }
  /// Neither is cut where the other would have to be and stays.
  void belong_together(DimensionId a, DimensionId b) { pairs_.emplace_back(a, b); }

  /// Where each would be cut.
  void find_cuts();
  /// Takes back the cuts of what stays.
  void decide();
  /// From the outermost to the innermost; the dimension itself, if it is not cut.
  Extents parts(DimensionId d) const;
  bool is_cut(DimensionId d) const { return !all_[find(d)].behind.empty(); }

 private:
  struct Dimension {
    DimensionId joined = 0;
    std::int64_t extent = 1, members = 1;
    bool stays = false;
    bool is_shape = false;               // as written: what it is a part of stays
    std::set<std::int64_t> behind = {};  // elements behind each cut
  };
  struct Cut {
    DimensionId whole = 0;
    std::vector<DimensionId> parts = {};
  };

  DimensionId find(DimensionId d) const {
    while (all_[d].joined != d) d = all_[d].joined;
    return d;
  }
  Dimension& at(DimensionId d) { return all_[find(d)]; }
  static bool add_cut(Dimension& d, std::int64_t behind) {
    return behind > 1 && behind < d.extent && d.behind.insert(behind).second;
  }
  bool hand_on(const Cut& c);
  bool hand_on(DimensionId elements, DimensionId pairs);
  bool stays_with_parts(const Cut& c);
  bool stay_alike(DimensionId a, DimensionId b);

  std::vector<Dimension> all_;
  std::vector<Cut> cuts_;
  std::vector<std::pair<DimensionId, DimensionId>> halves_, pairs_;
};

bool Dimensions::hand_on(const Cut& c) {
  bool changed = false;
  std::int64_t begin = 1;
  for (std::size_t k = c.parts.size(); k-- > 0;) {
    Dimension &whole = at(c.whole), &part = at(c.parts[k]);
    const std::int64_t end = begin * part.extent;
    changed |= add_cut(whole, begin);
    for (const std::int64_t n : std::set(part.behind)) changed |= add_cut(whole, n * begin);
    for (const std::int64_t n : std::set(whole.behind)) {
      if (n <= begin || n >= end) continue;
      if (n % begin == 0)
        changed |= add_cut(part, n / begin);
      else
        whole.stays = true;
    }
    begin = end;
  }
  return changed;
}

bool Dimensions::hand_on(DimensionId elements, DimensionId pairs) {
  Dimension &of_elements = at(elements), &of_pairs = at(pairs);
  bool changed = false;
  for (const std::int64_t n : std::set(of_pairs.behind)) changed |= add_cut(of_elements, 2 * n);
  for (const std::int64_t n : std::set(of_elements.behind))
    if (n % 2 == 0)
      changed |= add_cut(of_pairs, n / 2);
    else
      of_elements.stays = true;
  return changed;
}

void Dimensions::find_cuts() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Cut& c : cuts_) changed |= hand_on(c);
    for (const auto& [elements, pairs] : halves_) changed |= hand_on(elements, pairs);
  }
  for (Dimension& d : all_) {
    std::int64_t inner = 1;
    for (const std::int64_t n : d.behind) d.stays |= n % std::exchange(inner, n) != 0;
    d.stays |= d.extent % inner != 0;
  }
}

// Where the whole stays, so does the shape that has its parts, and with that all of which it is a
// cut.
bool Dimensions::stays_with_parts(const Cut& c) {
  Dimension& whole = at(c.whole);
  const bool before = whole.stays;
  for (const DimensionId part : c.parts)
    whole.stays |= at(part).is_shape || (at(part).stays && is_cut(part));
  bool changed = whole.stays != before;
  for (const DimensionId part : c.parts)
    if (whole.stays) changed |= !std::exchange(at(part).is_shape, true);
  return changed;
}

bool Dimensions::stay_alike(DimensionId a, DimensionId b) {
  if (!is_cut(a) || !is_cut(b) || at(a).stays == at(b).stays) return false;
  return at(a).stays = at(b).stays = true;
}

void Dimensions::decide() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Cut& c : cuts_) changed |= stays_with_parts(c);
    for (const auto& alike : {halves_, pairs_})
      for (const auto& [a, b] : alike) changed |= stay_alike(a, b);
  }
  for (Dimension& d : all_)
    if (d.stays || d.is_shape) d.behind.clear();
}

Extents Dimensions::parts(DimensionId d) const {
  const Dimension& x = all_[find(d)];
  Extents parts;
  std::int64_t outer = x.extent;
  for (auto n = x.behind.rbegin(); n != x.behind.rend(); ++n)
    parts.push_back(std::exchange(outer, *n) / *n);
  parts.push_back(outer);
  return parts;
}

// ---- values

class Moving {
 public:
  explicit Moving(Program& l) : l_(l), g_(l.graph), analysis_(l.graph) {}

  void run() {
    const auto is_reshape = [&](ValueId v) { return g_[v].op == Op::Reshape; };
    if (std::ranges::none_of(analysis_.order, is_reshape)) return;
    for (const Inst& i : g_.insts) {
      first_.push_back(i.type.shape.empty() ? 0 : dims_.add(i.type.shape[0]));
      for (std::size_t d = 1; d < i.type.shape.size(); ++d) (void)dims_.add(i.type.shape[d]);
    }
    find_written();
    for (const ValueId v : analysis_.order) relate(v);
    for (const Region& r : g_.regions)
      for (const auto* given : {&r.params, &r.yields})
        for (const ValueId v : *given) stay(v);
    dims_.find_cuts();
    for (const ValueId v : analysis_.order) weigh(v);
    dims_.decide();
    for (std::uint32_t i = 0; i < g_.insts.size(); ++i) is_cut_.push_back(is_cut(ValueId{i}));
    if (std::ranges::count(is_cut_, true) == 0) return;
    rewrite_all();
    drop_reshapes();
    l_.uses = uses_of(g_);
  }

 private:
  std::size_t rank(ValueId v) const { return g_[v].type.shape.size(); }
  DimensionId dim(ValueId v, std::size_t d) const { return first_[index(v)] + d; }

  // ---- what is cut alike

  void stay(ValueId v) {
    if (!g_[v].type.is_value()) return;
    for (std::size_t d = 0; d < rank(v); ++d) dims_.stay(dim(v, d));
  }
  void join(ValueId a, ValueId b) {
    if (g_[a].type.shape != g_[b].type.shape) return stay(a), stay(b);
    for (std::size_t d = 0; d < rank(a); ++d) dims_.join(dim(a, d), dim(b, d));
  }

  void relate(ValueId v) {
    const Inst& i = g_[v];
    for (std::size_t d = 1; i.type.is_value() && d < rank(v); ++d)
      for (std::size_t k = 0; k < d; ++k) dims_.belong_together(dim(v, k), dim(v, d));
    switch (i.op) {
    case Op::Constant: return;
    case Op::Iota:
      if (i.type.dtype != i32)
        dims_.stay(dim(v, static_cast<std::size_t>(graph::iota_dimension(i))));
      return;
    case Op::Reshape: return relate_reshape(v);
    case Op::Broadcast:
      for (std::size_t d = 0; d < rank(i.args[0]); ++d)
        if (g_[i.args[0]].type.shape[d] != 1)
          dims_.join(dim(i.args[0], d), dim(v, static_cast<std::size_t>(graph::dimensions(i)[d])));
      return;
    case Op::Transpose:
      for (std::size_t d = 0; d < rank(v); ++d)
        dims_.join(dim(v, d), dim(i.args[0], static_cast<std::size_t>(graph::dimensions(i)[d])));
      return;
    case Op::Slice: return relate_slice(v);
    case Op::Concatenate:
      for (const ValueId a : i.args)
        for (std::size_t d = 0; d < rank(v); ++d)
          if (static_cast<int>(d) != graph::concatenated(i))
            dims_.join(dim(v, d), dim(a, d));
          else
            dims_.stay(dim(v, d)), dims_.stay(dim(a, d));
      return;
    case Op::Load:
    case Op::Store: return relate_access(v);
    default: break;
    }
    if (graph::is_elementwise(i.op) && !graph::is_hint(i.op)) {
      for (const ValueId a : i.args) join(v, a);
    } else if (is_reduce(i)) {
      for (std::size_t d = 0, kept = 0; d < rank(i.args[0]); ++d)
        if (!is_reduced(i, d)) dims_.join(dim(i.args[0], d), dim(v, kept++));
    } else {
      stay(v);
      for (const ValueId a : i.args) stay(a);
    }
  }

  // A fold whose dimensions vanish.
  bool is_reduce(const Inst& i) const {
    return graph::is_fold(i.op) && i.type.shape.size() < rank(i.args[0]);
  }
  static bool is_reduced(const Inst& i, std::size_t d) {
    return std::ranges::count(graph::dimensions(i), static_cast<std::int64_t>(d)) > 0;
  }

  // Runs of dimensions on either side that have the same elements.
  void relate_reshape(ValueId v) {
    const ValueId from = g_[v].args[0];
    Extents a = g_[from].type.shape;
    const Extents& b = g_[v].type.shape;
    std::vector<DimensionId> of_operand;
    for (std::size_t d = 0; d < a.size(); ++d) of_operand.push_back(dim(from, d));
    if (graph::halves_in_order(g_, v).bytes != graph::no_value) join_halves(a, of_operand);
    for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
      std::vector<DimensionId> left, right;
      std::int64_t of_left = 1, of_right = 1;
      const auto take_left = [&] { of_left *= a[i], left.push_back(of_operand[i++]); };
      const auto take_right = [&] { of_right *= b[j], right.push_back(dim(v, j++)); };
      if (i < a.size()) take_left();
      if (j < b.size()) take_right();
      while (of_left != of_right && (i < a.size() || j < b.size()))
        if (of_left < of_right ? i < a.size() : j == b.size())
          take_left();
        else
          take_right();
      relate_runs(std::move(left), std::move(right), of_left);
    }
  }

  // Bytes, and the two halves of each, as elements: these are what others see of them.
  void join_halves(Extents& shape, std::vector<DimensionId>& dimensions) {
    shape.pop_back();
    dimensions.pop_back();
    shape.back() *= 2;
    const DimensionId elements = dims_.add(shape.back());
    dims_.halve(elements, dimensions.back());
    dimensions.back() = elements;
  }

  void relate_runs(std::vector<DimensionId> left, std::vector<DimensionId> right,
                   std::int64_t extent) {
    if (left.size() == 1 && right.size() == 1) return dims_.join(left[0], right[0]);
    if (left.empty() || right.empty()) return;
    const DimensionId whole = left.size() == 1    ? left[0]
                              : right.size() == 1 ? right[0]
                                                  : dims_.add(extent);
    if (left.size() > 1) dims_.cut(whole, std::move(left));
    if (right.size() > 1) dims_.cut(whole, std::move(right));
  }

  void relate_slice(ValueId v) {
    const ValueId from = g_[v].args[0];
    const graph::SliceView s = graph::SliceView::of(g_[v]);
    for (std::size_t d = 0; d < rank(v); ++d)
      if (g_[v].type.shape[d] == g_[from].type.shape[d] && s.strides[d] == 1)
        dims_.join(dim(v, d), dim(from, d));
      else if (s.strides[d] == 2 && g_[from].type.shape[d] == 2 * g_[v].type.shape[d])
        dims_.halve(dim(from, d), dim(v, d));
      else
        dims_.stay(dim(v, d)), dims_.stay(dim(from, d));
  }

  void relate_access(ValueId v) {
    const MemoryView m = MemoryView::of(g_[v]);
    const ValueId value = g_[v].op == Op::Load ? v : m.value;
    for (const ValueId other : {m.mask, m.other})
      if (other != graph::no_value) join(value, other);
    if (!may_be_cut(v, m.ref)) stay(value);
  }

  // Whether any view of the memory may be accessed as well: of arrays, by whoever does not keep
  // their blocks from one program to the next.
  bool may_be_cut(ValueId access, ValueId ref) const {
    const int mapping = g_.mapping_of(g_.root(ref));
    if (mapping < 0 || g_.whole_arrays || g_.chooses(ref) || g_.base(ref) != g_.root(ref))
      return false;
    for (ValueId view = ref; !g_.is_base(view); view = g_[view].args[0])
      if (g_[view].op != Op::At && g_[view].op != Op::RefReshape) return false;
    if (g_.mapping.block_mappings[static_cast<std::size_t>(mapping)].memory_space !=
        Space::automatic)
      return false;
    if (g_[access].op == Op::Load) return mapping < g_.mapping.num_inputs && !is_written(ref);
    return std::ranges::count(g_.semantics, graph::Semantics::sequential) == 0;
  }

  bool is_written(ValueId ref) const { return written_.contains(g_.alias_class(g_.root(ref))); }
  void find_written() {
    for (const ValueId v : analysis_.writes)
      for (const ValueId root : roots_written(g_, v)) written_.insert(g_.alias_class(root));
  }

  // ---- whether it is worth it

  // Threads have powers of two of each dimension, and neighbours in the last one together.
  void weigh(ValueId v) {
    const Type& t = g_[g_[v].op == Op::Store ? MemoryView::of(g_[v]).value : v].type;
    const ValueId value = g_[v].op == Op::Store ? MemoryView::of(g_[v]).value : v;
    if (!t.is_value() || !is_cut(value)) return;
    bool keeps = true;
    for (std::size_t d = 0; d < t.shape.size(); ++d) {
      std::uint64_t padded = 1;
      for (const std::int64_t n : dims_.parts(dim(value, d)))
        padded *= std::bit_ceil(static_cast<std::uint64_t>(n));
      keeps = keeps && padded <= std::bit_ceil(static_cast<std::uint64_t>(t.shape[d]));
    }
    const bool accesses = g_[v].op == Op::Load || g_[v].op == Op::Store;
    const std::int64_t row = t.shape.back(),
                       part = dims_.parts(dim(value, t.shape.size() - 1)).back();
    keeps = keeps && (part == row || part >= least_of_row) &&
            (!accesses || width(part * t.dtype.bytes()) >= width(row * t.dtype.bytes()));
    for (std::size_t d = 0; !keeps && d < t.shape.size(); ++d)
      if (dims_.is_cut(dim(value, d))) dims_.stay(dim(value, d));
  }

  // ---- what becomes of them

  bool is_cut(ValueId v) const {
    bool found = false;
    for (std::size_t d = 0; g_[v].type.is_value() && d < rank(v); ++d)
      found = found || dims_.is_cut(dim(v, d));
    return found;
  }

  /// The shape of a value, cut, and where its dimensions begin in it.
  struct Shape {
    Extents extents = {};
    std::vector<std::int64_t> begin = {};
  };
  Shape shape_of(ValueId v, const Extents& written) const {
    Shape s;
    for (std::size_t d = 0; d < written.size(); ++d) {
      s.begin.push_back(std::ssize(s.extents));
      const Extents parts = dims_.parts(dim(v, d));
      s.extents.insert(s.extents.end(), parts.begin(), parts.end());
    }
    s.begin.push_back(std::ssize(s.extents));
    return s;
  }

  void rewrite_all() {
    std::vector<Extents> written;
    for (const Inst& i : g_.insts) written.push_back(i.type.shape);
    for (const ValueId v : analysis_.order) {
      const Inst i = g_[v];
      if (i.op == Op::Store) {
        if (is_cut_[index(MemoryView::of(i).value)]) view(v, MemoryView::of(i).value, written);
        continue;
      }
      const bool of_cut = std::ranges::any_of(i.args, [&](ValueId a) { return is_cut_[index(a)]; });
      if (!i.type.is_value() || (!is_cut_[index(v)] && !of_cut)) continue;
      const Shape to = shape_of(v, written[index(v)]);
      g_[v].type.shape = to.extents;
      if (i.op == Op::Load) view(v, v, written);
      if (i.op == Op::Iota) count(v, to, written);
      if (!i.args.empty() && i.op != Op::Load)
        number_dimensions(v, to, shape_of(i.args[0], written[index(i.args[0])]));
    }
  }

  // What is stored, or loaded, in the shape of the value.
  void view(ValueId access, ValueId value, const std::vector<Extents>& written) {
    const ValueId ref = g_[access].args[0];
    Type t = g_[ref].type;
    t.shape = shape_of(value, written[index(value)]).extents;
    const ValueId seen = g_.add({Op::RefReshape, t, {}, {ref}, {}}, g_.location(access));
    insert_before(g_, seen, access);
    g_[access].args[0] = seen;
  }

  // The attributes of an operation by dimensions.
  void number_dimensions(ValueId v, const Shape& to, const Shape& from) {
    Inst& i = g_[v];
    std::vector<std::int64_t> numbers;
    if (i.op == Op::Broadcast) {
      for (std::size_t d = 0; d + 1 < from.begin.size(); ++d)
        for (std::int64_t k = from.begin[d]; k < from.begin[d + 1]; ++k)
          numbers.push_back(to.begin[static_cast<std::size_t>(graph::dimensions(i)[d])] + k -
                            from.begin[d]);
    } else if (i.op == Op::Transpose || is_reduce(i)) {
      for (const std::int64_t d : graph::dimensions(i))
        for (std::int64_t k = from.begin[static_cast<std::size_t>(d)];
             k < from.begin[static_cast<std::size_t>(d) + 1]; ++k)
          numbers.push_back(k);
    } else if (i.op == Op::Concatenate) {
      numbers = {to.begin[static_cast<std::size_t>(graph::concatenated(i))]};
    } else if (i.op == Op::Slice) {
      const graph::SliceView s = graph::SliceView::of(i);
      graph::SliceView cut;
      for (std::size_t d = 0; d + 1 < from.begin.size(); ++d)
        for (std::int64_t k = from.begin[d]; k < from.begin[d + 1]; ++k) {
          const bool is_last = k + 1 == from.begin[d + 1];  // where neighbours are apart
          cut.starts.push_back(is_last ? s.starts[d] : 0);
          cut.strides.push_back(is_last ? s.strides[d] : 1);
        }
      numbers = cut.encode();
    } else {
      return;
    }
    i.attr = {std::move(numbers), 0};
  }

  // The number of an element along a dimension, of those of its parts.
  void count(ValueId v, const Shape& to, const std::vector<Extents>& written) {
    const auto d = static_cast<std::size_t>(graph::iota_dimension(g_[v]));
    const Location at = g_.location(v);
    std::int64_t behind = written[index(v)][d];
    ValueId sum = graph::no_value;
    const auto add = [&](Op op, Attr attr, std::vector<ValueId> args) {
      const ValueId x =
          g_.add({op, Type::value(i32, to.extents), std::move(attr), std::move(args), {}}, at);
      insert_before(g_, x, v);
      return x;
    };
    if (to.begin[d + 1] - to.begin[d] == 1) {
      g_[v].attr = {{to.begin[d]}, 0};
      return;
    }
    for (std::int64_t k = to.begin[d]; k < to.begin[d + 1]; ++k) {
      behind /= to.extents[static_cast<std::size_t>(k)];
      ValueId part = add(Op::Iota, {{k}, 0}, {});
      if (behind > 1)
        part = add(Op::Mul, {}, {part, add(Op::Constant, {{}, graph::to_bits(i32, behind)}, {})});
      if (k + 1 == to.begin[d + 1])
        g_[v] = {Op::Add, Type::value(i32, to.extents), {}, {sum, part}, {}};
      else
        sum = sum == graph::no_value ? part : add(Op::Add, {}, {sum, part});
    }
  }

  // Reshapes that are none any more.
  void drop_reshapes() {
    std::vector<ValueId> instead;
    for (std::size_t i = 0; i < g_.insts.size(); ++i)
      instead.push_back(ValueId{static_cast<std::uint32_t>(i)});
    const auto is_none = [&](ValueId v) {
      return g_[v].op == Op::Reshape && g_[v].type.shape == g_[g_[v].args[0]].type.shape;
    };
    for (const ValueId v : analysis_.order)
      if (is_none(v)) instead[index(v)] = instead[index(g_[v].args[0])];
    for (Inst& i : g_.insts)
      for (ValueId& a : i.args) a = instead[index(a)];
    for (Region& r : g_.regions) {
      for (ValueId& y : r.yields) y = instead[index(y)];
      std::erase_if(r.insts, [&](ValueId v) { return instead[index(v)] != v; });
    }
  }

  Program& l_;
  Graph& g_;
  const Analysis analysis_;
  Dimensions dims_;
  std::set<int> written_;           // memory, by alias class
  std::vector<DimensionId> first_;  // of each value
  std::vector<bool> is_cut_;        // by value
};

}  // namespace

void move_reshapes(Program& l) { Moving(l).run(); }

}  // namespace palladium::passes
