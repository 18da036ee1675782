// Constants, duplicates, identities and fma: see simplify.hpp.
#include "codegen/graph/simplify.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "codegen/graph/fold.hpp"
#include "codegen/graph/grid_env.hpp"
#include "codegen/graph/uses.hpp"

namespace palladium::graph {
namespace {

using Values = std::vector<ValueId>;

bool is_identity(std::span<const std::int64_t> permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

class Simplifier {
 public:
  explicit Simplifier(Graph& g) : g_(g) {}

  bool run() {
    for (const RegionId r : root_regions(g_)) simplify(r);
    return changed_;
  }

 private:
  const Inst& inst(ValueId v) const { return g_[v]; }

  ValueId current(ValueId v) const {
    const auto it = replaced_.find(v);
    return it == replaced_.end() ? v : it->second;
  }

  void replace(ValueId v, ValueId by) {
    if (index(v) < g_.names.size() && !g_.names[index(v)].empty()) {
      if (g_.names.size() <= index(by)) g_.names.resize(index(by) + 1);
      if (g_.names[index(by)].empty()) g_.names[index(by)] = g_.names[index(v)];
    }
    replaced_[v] = by;
    changed_ = true;
  }

  void simplify(RegionId r) {
    const std::size_t scope = known_log_.size();
    Values kept;
    const Values recorded = std::move(g_[r].insts);
    kept.reserve(recorded.size());
    simplify(recorded, kept);
    g_[r].insts = std::move(kept);
    for (ValueId& y : g_[r].yields) y = current(y);
    while (known_log_.size() > scope) {
      const auto [hash, v] = known_log_.back();
      known_log_.pop_back();
      Values& same_hash = known_[hash];
      same_hash.pop_back();  // scopes end in reverse
      if (same_hash.empty()) known_.erase(hash);
    }
  }

  void simplify(const Values& recorded, Values& kept) {
    for (const ValueId v : recorded) {
      for (ValueId& arg : g_[v].args) arg = current(arg);
      if (inst(v).op == Op::When && is_constant(inst(v).args[0])) {
        changed_ = true;
        if (!inst(inst(v).args[0]).attr.bits) continue;
        const Values body = g_[inst(v).regions[0]].insts;
        simplify(body, kept);
        continue;
      }
      if (inst(v).op == Op::Switch && known_region(inst(v)) >= 0) {
        changed_ = true;
        const RegionId taken = inst(v).regions[static_cast<std::size_t>(known_region(inst(v)))];
        const Values body = g_[taken].insts;
        simplify(body, kept);
        for (ValueId& y : g_[taken].yields) y = current(y);
        taken_[v] = taken;
        continue;
      }
      const ValueId same = rewrite(v);
      kept.insert(kept.end(), made_.begin(), made_.end());
      made_.clear();
      if (same != v) {
        replace(v, same);
        continue;
      }
      if (is_pure(inst(v).op)) {
        const std::size_t hash = hash_of(inst(v));
        const Values& candidates = known_[hash];
        const auto it = std::find_if(candidates.begin(), candidates.end(),
                                     [&](ValueId other) { return inst(other) == inst(v); });
        if (it != candidates.end()) {
          replace(v, *it);
          continue;
        }
        known_[hash].push_back(v);
        known_log_.push_back({hash, v});
      }
      kept.push_back(v);
      for (const RegionId inner : inst(v).regions) simplify(inner);
    }
  }

  static std::size_t hash_of(const Inst& in) {
    std::size_t hash = static_cast<std::size_t>(in.op);
    const auto mix = [&](std::uint64_t n) {
      hash = (hash ^ n) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    };
    mix(in.type.dtype.kind());
    for (const std::int64_t n : in.type.shape) mix(static_cast<std::uint64_t>(n));
    for (const std::int64_t n : in.attr.ints) mix(static_cast<std::uint64_t>(n));
    mix(in.attr.bits);
    for (const ValueId arg : in.args) mix(index(arg));
    return hash;
  }

  // The one that a switch runs whatever its index is; -1 if there is none.
  std::int64_t known_region(const Inst& in) const {
    const auto last = static_cast<std::int64_t>(in.regions.size()) - 1;
    const ValueId which = in.args[0];
    if (last == 0) return 0;
    if (!is_constant(which)) return -1;
    return std::clamp<std::int64_t>(to_int(inst(which).type.dtype, inst(which).attr.bits), 0, last);
  }

  // What the regions of a switch yield alike, which is known before it.
  ValueId rewrite_get(ValueId v) {
    const ValueId from = inst(v).args[0];
    const std::size_t r = result_of(inst(v));
    if (const auto it = taken_.find(from); it != taken_.end()) return g_[it->second].yields[r];
    if (inst(from).op != Op::Switch) return v;
    const std::vector<RegionId>& regions = inst(from).regions;
    const auto yields = [&](RegionId n, std::size_t i) { return g_[n].yields[i]; };
    const ValueId first = yields(regions[0], r);
    if (std::ranges::all_of(regions, [&](RegionId n) { return yields(n, r) == first; }))
      return first;
    for (std::size_t i = 0; i < r; ++i)
      if (std::ranges::all_of(regions, [&](RegionId n) { return yields(n, i) == yields(n, r); })) {
        g_[v].attr.ints[0] = static_cast<std::int64_t>(i);
        changed_ = true;
        break;
      }
    return v;
  }

  bool is_constant(ValueId v) const { return inst(v).op == Op::Constant; }
  bool is_constant(ValueId v, std::int64_t number) const {
    return is_constant(v) && inst(v).type.dtype.is_integer() &&
           inst(v).attr.bits == to_bits(inst(v).type.dtype, number);
  }

  ValueId become_constant(ValueId v, std::uint64_t bits) {
    Inst& in = g_[v];
    in.op = Op::Constant;
    in.attr = {{}, bits};
    in.args.clear();
    changed_ = true;
    return v;
  }

  // An equal value that exists already, or v itself, perhaps rewritten in place.
  ValueId rewrite(ValueId v) {
    const Inst& in = inst(v);
    switch (in.op) {
    case Op::ProgramId:
      if (asks_env(in)) return v;
      if (extent(g_.mapping.grid, AxisView::of(in).axis) == 1) return become_constant(v, 0);
      return v;
    case Op::NumPrograms:
      return asks_env(in) ? v : static_size(v, num_programs(AxisView::of(in).axis));
    case Op::AxisIndex:
      if (!asks_env(in) && axis_size(in) == 1) return become_constant(v, 0);
      return v;
    case Op::AxisSize: return asks_env(in) ? v : static_size(v, axis_size(in));
    case Op::Iota:
      if (in.type.shape[iota_dimension(in)] == 1) return become_constant(v, 0);
      return v;
    case Op::Broadcast:
    case Op::Reshape:
    case Op::Transpose: return rewrite_shape(v);
    case Op::Slice: return rewrite_slice(v);
    case Op::Concatenate: return in.args.size() == 1 ? in.args[0] : v;
    case Op::DynamicSlice: return inst(in.args[0]).type == in.type ? in.args[0] : v;
    case Op::DynamicUpdateSlice:
      return inst(in.args[0]).type == inst(in.args[1]).type ? in.args[1] : v;
    case Op::RefReshape:
    case Op::RefBitcast: return inst(in.args[0]).type == in.type ? in.args[0] : v;
    case Op::RefTranspose: return is_identity(in.attr.ints) ? in.args[0] : v;
    case Op::ReduceMax:
    case Op::ReduceMin:
      return is_constant(in.args[0]) ? become_constant(v, inst(in.args[0]).attr.bits) : v;
    case Op::MultipleOf:
    case Op::MaxContiguous: return is_plain_truth(in) ? in.args[0] : v;
    case Op::Load:
      if (const std::optional<std::uint64_t> fill = fill_of_nothing(in))
        return become_fill(v, *fill);
      return drop_true_mask(v);
    case Op::Store:
    case Op::Swap:
    case Op::Atomic: return drop_true_mask(v);
    case Op::Get: return rewrite_get(v);
    default: break;
    }
    if ((in.op == Op::Cast || in.op == Op::Bitcast) && inst(in.args[0]).type == in.type)
      return in.args[0];
    if (in.op == Op::Select) {
      if (in.args[1] == in.args[2]) return in.args[1];
      if (is_constant(in.args[0])) return in.args[inst(in.args[0]).attr.bits ? 1 : 2];
    }
    if (in.type.is_value() && in.type.dtype.is_integer())
      if (const ValueId same = integer_identity(in); same != no_value) return same;
    if (in.type.is_value() && in.type.dtype.is_bool())
      if (const ValueId same = truth_identity(in); same != no_value) return same;
    return fold_constants(v);
  }

  // What holds of all numbers, or of this one.
  bool is_plain_truth(const Inst& in) const {
    const ValueId x = in.args[0];
    return std::ranges::all_of(hint(in), [&](std::int64_t n) {
      if (n == 1) return true;
      return in.op == Op::MultipleOf && is_constant(x) &&
             to_int(in.type.dtype, inst(x).attr.bits) % n == 0;
    });
  }

  // Whether it counts other axes than those of the grid.
  bool asks_env(const Inst& in) const {
    return has_grid_env(g_.mapping) && AxisView::of(in).kind == AxisKind::grid;
  }

  static std::int64_t extent(const std::vector<Dim>& dims, std::int64_t i) {
    return dims[i].is_static() ? dims[i].value() : -1;
  }

  // -1 if not known.
  std::int64_t num_programs(int axis) const {
    return g_.mapping.has_static_size(static_cast<std::size_t>(axis))
               ? extent(g_.mapping.grid, axis)
               : -1;
  }

  std::int64_t axis_size(const Inst& in) const {
    switch (const AxisView a = AxisView::of(in); a.kind) {
    case AxisKind::grid: return num_programs(a.axis);
    case AxisKind::cluster: return g_.cluster[a.axis];
    case AxisKind::thread: break;
    case AxisKind::warp: return num_warps;
    }
    std::int64_t threads = 0;
    for (const Body& body : g_.bodies) threads += body.warpgroups;
    return threads;
  }

  ValueId static_size(ValueId v, std::int64_t size) {
    if (size < 0 || size > INT32_MAX) return v;
    return become_constant(v, static_cast<std::uint64_t>(size));
  }

  ValueId rewrite_shape(ValueId v) {
    Inst& in = g_[v];
    const ValueId from = in.args[0];
    if (is_constant(from)) return become_constant(v, inst(from).attr.bits);
    if (inst(from).type == in.type && (in.op != Op::Transpose || is_identity(in.attr.ints)))
      return from;
    if (inst(from).op == in.op) {  // two in a row are one
      std::vector<std::int64_t> ints;
      if (in.op == Op::Broadcast)
        for (const std::int64_t d : inst(from).attr.ints) ints.push_back(in.attr.ints[d]);
      if (in.op == Op::Transpose)
        for (const std::int64_t d : in.attr.ints) ints.push_back(inst(from).attr.ints[d]);
      in.attr.ints = std::move(ints);
      in.args[0] = inst(from).args[0];
      changed_ = true;
      return rewrite_shape(v);
    }
    return in.op == Op::Reshape && inst(from).op == Op::Slice ? rewrite_parts(v) : v;
  }

  // Of a value whose dimensions are cut in two, parts by the outer one of these are slices of it:
  // reshape(reshape(x, [n, 2, m])[:, k:k + 1, :], [n, m]) = x[:, k * m:k * m + m].
  ValueId rewrite_parts(ValueId v) {
    Inst& in = g_[v];
    const Inst& slice = inst(in.args[0]);
    const Inst& cut = inst(slice.args[0]);
    if (cut.op != Op::Reshape || inst(cut.args[0]).type.shape.size() != in.type.shape.size())
      return v;
    const Extents& whole = inst(cut.args[0]).type.shape;
    const SliceView of_cut = SliceView::of(slice);
    SliceView of_whole;
    std::size_t d = 0;  // of what is cut
    const auto is_all = [&](std::size_t k) { return slice.type.shape[k] == cut.type.shape[k]; };
    for (std::size_t w = 0; w < whole.size(); ++w) {
      if (d == cut.type.shape.size() || whole[w] % cut.type.shape[d] != 0) return v;
      const std::int64_t inner = whole[w] / cut.type.shape[d];
      const bool in_two = inner > 1 && d + 1 < cut.type.shape.size();
      if (of_cut.strides[d] != 1 || (inner > 1 && !in_two)) return v;
      if (in_two && (cut.type.shape[d + 1] != inner || !is_all(d + 1))) return v;
      if (in.type.shape[w] != slice.type.shape[d] * inner) return v;
      of_whole.starts.push_back(of_cut.starts[d] * inner);
      of_whole.strides.push_back(1);
      d += in_two ? 2 : 1;
    }
    if (d != cut.type.shape.size()) return v;
    in.op = Op::Slice;
    in.attr.ints = of_whole.encode();
    in.args[0] = cut.args[0];
    changed_ = true;
    return rewrite_slice(v);
  }

  // Two slices in a row are one; one of all elements in their order is none.
  ValueId rewrite_slice(ValueId v) {
    Inst& in = g_[v];
    const ValueId from = in.args[0];
    if (is_constant(from)) return become_constant(v, inst(from).attr.bits);
    SliceView slice = SliceView::of(in);
    bool everything = inst(from).type == in.type;
    for (std::size_t d = 0; d < slice.starts.size(); ++d)
      everything = everything && (slice.strides[d] > 0 || in.type.shape[d] == 1);
    if (everything) return from;
    if (inst(from).op != Op::Slice) return v;
    const SliceView inner = SliceView::of(inst(from));
    for (std::size_t d = 0; d < slice.starts.size(); ++d) {
      slice.starts[d] = inner.starts[d] + inner.strides[d] * slice.starts[d];
      slice.strides[d] = in.type.shape[d] == 1 ? 1 : slice.strides[d] * inner.strides[d];
    }
    in.attr.ints = slice.encode();
    in.args[0] = inst(from).args[0];
    changed_ = true;
    return rewrite_slice(v);
  }

  // What every element of a block is whose array has none.
  std::optional<std::uint64_t> fill_of_nothing(const Inst& load) const {
    const ValueId root = g_.root(load.args[0]);
    const int i = g_.mapping_of(root);
    if (i < 0 || i >= g_.mapping.num_inputs || g_.whole_arrays) return {};
    const BlockMapping& m = g_.mapping.block_mappings[static_cast<std::size_t>(i)];
    if (!m.fill || !is_empty(m)) return {};
    const auto writes = [&](const Inst& other) { return g_.writes(other, root); };
    if (std::ranges::any_of(g_.insts, writes)) return {};
    return fill_as(m, load.type.dtype);
  }

  // What the mask switches off is the other value, or nothing in particular.
  ValueId become_fill(ValueId v, std::uint64_t fill) {
    const MemoryView load = MemoryView::of(inst(v));
    if (load.mask == no_value || load.other == no_value) return become_constant(v, fill);
    const ValueId all = g_.add({Op::Constant, inst(v).type, {{}, fill}, {}, {}}, g_.location(v));
    made_.push_back(all);
    Inst& in = g_[v];
    in.op = Op::Select;
    in.attr = {};
    in.args = {load.mask, all, load.other};
    changed_ = true;
    return rewrite(v);
  }

  // Whether a slice leaves its Ref, which only masked accesses may: they say where.
  bool needs_mask(ValueId view) const {
    for (; inst(view).op != Op::Param; view = inst(view).args[0]) {
      if (inst(view).op != Op::At) continue;
      const Extents& from = inst(inst(view).args[0]).type.shape;
      const std::vector<SubscriptDim> dims = Subscript::of(inst(view)).dims;
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (dims[d].is_slice && Subscript::leaves(dims[d], from[d])) return true;
    }
    return false;
  }

  ValueId drop_true_mask(ValueId v) {
    const MemoryView m = MemoryView::of(inst(v));
    if (m.mask == no_value || !is_constant(m.mask) || !inst(m.mask).attr.bits) return v;
    Inst& in = g_[v];
    if (needs_mask(in.args[0])) return v;
    in.attr.ints[0] = 0;
    in.args.erase(in.args.begin() + (in.op == Op::Load ? 1 : 2));
    if (in.op == Op::Load && m.other != no_value) {
      in.attr.ints[1] = 0;
      in.args.pop_back();
    }
    changed_ = true;
    return v;
  }

  ValueId integer_identity(const Inst& in) const {
    const auto is = [&](std::size_t i, std::int64_t n) { return is_constant(in.args[i], n); };
    switch (in.op) {
    case Op::Add:
      if (is(0, 0)) return in.args[1];
      return is(1, 0) ? in.args[0] : no_value;
    case Op::Sub: return is(1, 0) ? in.args[0] : no_value;
    case Op::Mul:
      if (is(0, 1) || is(1, 0)) return in.args[1];
      return is(1, 1) || is(0, 0) ? in.args[0] : no_value;
    case Op::Div: return is(1, 1) ? in.args[0] : no_value;
    default: return no_value;
    }
  }

  ValueId truth_identity(const Inst& in) const {
    if (in.op != Op::And && in.op != Op::Or) return no_value;
    for (std::size_t i = 0; i < 2; ++i)
      if (is_constant(in.args[i]))  // decides, or leaves it to the other
        return in.args[(inst(in.args[i]).attr.bits != 0) == (in.op == Op::Or) ? i : 1 - i];
    return no_value;
  }

  ValueId fold_constants(ValueId v) {
    const Inst& in = inst(v);
    if (!in.type.is_value() || in.args.empty() || in.args.size() > 3 || !is_elementwise(in.op))
      return v;
    std::array<std::uint64_t, 3> bits{};
    for (std::size_t i = 0; i < in.args.size(); ++i) {
      if (!is_constant(in.args[i])) return v;
      bits[i] = inst(in.args[i]).attr.bits;
    }
    const auto folded = fold(in.op, inst(in.args.back()).type.dtype, in.type.dtype,
                             std::span(bits).first(in.args.size()));
    return folded ? become_constant(v, *folded) : v;
  }

  Graph& g_;
  bool changed_ = false;
  std::unordered_map<ValueId, ValueId> replaced_;
  Values made_;  // that the instruction being rewritten needs before it
  std::unordered_map<ValueId, RegionId> taken_;    // by switches that are none any more
  std::unordered_map<std::size_t, Values> known_;  // by hash: values that may be used here
  std::vector<std::pair<std::size_t, ValueId>> known_log_;
};

}  // namespace

bool simplify(Graph& g) { return Simplifier(g).run(); }

bool drop_unread(Graph& g) {
  std::unordered_map<ValueId, std::vector<bool>> read;  // results that regions yield
  std::vector<ValueId> gets;
  std::vector<RegionId> stack = root_regions(g);
  while (!stack.empty()) {
    const Values& insts = g[stack.back()].insts;
    stack.pop_back();
    for (const ValueId v : insts) {
      const Inst& in = g[v];
      stack.insert(stack.end(), in.regions.begin(), in.regions.end());
      const auto yields = [](Op op) { return has_results(op) && !repeats(op); };
      if (yields(in.op)) read[v].resize(g[in.regions[0]].yields.size());
      if (in.op == Op::Get && yields(g[in.args[0]].op)) gets.push_back(v);
    }
  }
  for (const ValueId v : gets) read[g[v].args[0]][result_of(g[v])] = true;
  bool any = false;
  for (const auto& [v, is_read] : read) {
    const auto unread = std::ranges::count(is_read, false);
    if (unread == 0) continue;
    any = true;
    for (const RegionId r : g[v].regions) {
      Values kept;
      for (std::size_t i = 0; i < is_read.size(); ++i)
        if (is_read[i]) kept.push_back(g[r].yields[i]);
      g[r].yields = std::move(kept);
    }
  }
  for (const ValueId v : gets) {
    const std::vector<bool>& is_read = read[g[v].args[0]];
    std::int64_t& result = g[v].attr.ints[0];
    result = std::count(is_read.begin(), is_read.begin() + result, true);
  }
  return any;
}

bool contract(Graph& g) {
  const Uses uses(g);
  std::vector<RegionId> stack = root_regions(g), all;
  while (!stack.empty()) {
    const RegionId r = stack.back();
    stack.pop_back();
    all.push_back(r);
    for (const ValueId v : g[r].insts)
      stack.insert(stack.end(), g[v].regions.begin(), g[v].regions.end());
  }
  bool any = false;
  for (const RegionId r : all) {
    const auto is_product = [&](ValueId v) {
      return g[v].op == Op::Mul && uses.count(v) == 1 && uses.region(v) == r;
    };
    Values insts;
    insts.reserve(g[r].insts.size());
    const auto negated = [&](ValueId x, ValueId user) {
      const Type type = g[x].type;
      insts.push_back(g.add({Op::Neg, type, {}, {x}, {}}, g.location(user)));
      return insts.back();
    };
    const Values recorded = g[r].insts;
    for (const ValueId v : recorded) {
      const Op op = g[v].op;
      if ((op == Op::Add || op == Op::Sub) && g[v].type.dtype.is_float()) {
        const ValueId a = g[v].args[0], b = g[v].args[1];
        Values operands;
        if (is_product(a)) {
          operands = {g[a].args[0], g[a].args[1], op == Op::Sub ? negated(b, v) : b};
        } else if (is_product(b)) {
          const ValueId x = g[b].args[0], y = g[b].args[1];
          operands = {op == Op::Sub ? negated(x, v) : x, y, a};
        }
        if (!operands.empty()) {
          g[v].op = Op::Fma;
          g[v].args = std::move(operands);
          any = true;
        }
      }
      insts.push_back(v);
    }
    g[r].insts = std::move(insts);
  }
  return any;
}

}  // namespace palladium::graph
