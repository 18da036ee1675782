// The canonical form of a graph: order by demand, merged duplicates, folded constants, fma.
//
// `Canonicalizer` alternates two steps on an arena that only grows until neither changes anything:
// order() makes the order of instructions a function of the data flow and of the order of writes
// alone, and drops the dead; simplify() and contract() rewrite instructions in that order, so that
// what they do cannot depend on the order of recording either. compact() then numbers densely.
#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>
#include <utility>

#include "codegen/base/dim.hpp"
#include "codegen/graph/fold.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/graph/uses.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

using Values = std::vector<ValueId>;

// Alias classes that something reads and writes; each ascending, without repeats.
struct Effects {
  std::vector<int> reads, writes;
};

void insert(std::vector<int>& set, int element) {
  const auto it = std::lower_bound(set.begin(), set.end(), element);
  if (it == set.end() || *it != element) set.insert(it, element);
}

bool is_identity(std::span<const std::int64_t> permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

class Canonicalizer {
 public:
  explicit Canonicalizer(Graph& g) : g_(g) {}

  void run() {
    check_nesting();
    number_symbols();
    cast_index_maps();
    number_classes();
    for (;;) {
      order();
      if (simplify()) continue;
      if (!g_.fma || !contract()) break;
    }
    compact();
  }

 private:
  const Inst& inst(ValueId v) const { return g_[v]; }

  // Regions are visited by recursion, instructions never: their chains are deep.
  void check_nesting() {
    constexpr int deepest = 512;
    Values owners;
    std::vector<std::pair<RegionId, int>> stack;
    for (const RegionId r : root_regions(g_)) stack.push_back({r, 1});
    while (!stack.empty()) {
      const auto [r, depth] = stack.back();
      stack.pop_back();
      for (const ValueId v : g_[r].insts)
        for (const RegionId inner : inst(v).regions) {
          if (depth == deepest)
            throw CompileError(g_.location(v), std::string(info(inst(v).op).name) + ": more than " +
                                                   std::to_string(deepest) +
                                                   " bodies inside each other");
          stack.push_back({inner, depth + 1});
        }
    }
  }

  // ---- what the whole graph says

  void number_symbols() {
    std::vector<std::uint32_t> symbols;
    const auto collect = [&](const Shape& shape) {
      for (const Dim& d : shape) collect_symbols(d, symbols);
    };
    GridMapping& m = g_.mapping;
    for (const Argument& a : g_.arguments)
      if (a.kind == Argument::Kind::input) collect(m.block_mappings[a.index].array_aval.shape);
    for (const BlockMapping& b : m.block_mappings) collect(b.array_aval.shape);
    for (const Dim& d : m.grid) collect_symbols(d, symbols);
    std::vector<Dim> numbered;
    for (std::size_t i = 0; i < symbols.size(); ++i)
      numbered.push_back(dim_symbol(static_cast<std::uint32_t>(i)));
    const auto renumber = [&](Dim& d) { d = substitute(d, symbols, numbered); };
    for (BlockMapping& b : m.block_mappings)
      for (int i = 0; i < b.array_aval.shape.rank(); ++i) renumber(b.array_aval.shape[i]);
    for (Dim& d : m.grid) renumber(d);
    g_.num_symbols = static_cast<int>(symbols.size());
  }

  void cast_index_maps() {
    for (const RegionId r : root_regions(g_)) {
      if (is_body(r)) continue;
      for (std::size_t i = 0; i < g_[r].yields.size(); ++i) {
        const ValueId v = g_[r].yields[i];
        if (!inst(v).type.is_scalar() || !inst(v).type.dtype.is_integer() ||
            inst(v).type.dtype == i32)
          continue;
        const ValueId cast = g_.add({Op::Cast, Type::value(i32), {}, {v}, {}}, g_.location(v));
        g_[r].insts.push_back(cast);
        g_[r].yields[i] = cast;
      }
    }
  }

  bool is_body(RegionId r) const {
    return std::any_of(g_.bodies.begin(), g_.bodies.end(),
                       [&](const Body& b) { return b.region == r; });
  }

  void number_classes() {
    for (const RegionId r : root_regions(g_)) {
      const Values& params = g_[r].params;
      for (std::size_t i = 0; i < params.size(); ++i)
        if (inst(params[i]).type.is_ref())
          classes_[params[i]] = is_body(r) ? g_.alias_class(params[i]) : static_cast<int>(i);
    }
  }

  int alias_class(ValueId ref) const {
    const auto it = classes_.find(g_.root(ref));
    if (it == classes_.end()) throw InternalError("canonicalize: a Ref without a root parameter");
    return it->second;
  }

  // ---- order

  void order() {
    region_.assign(g_.insts.size(), Uses::no_region_id);
    param_of_.assign(g_.insts.size(), Uses::no_region_id);
    free_.assign(g_.regions.size(), {});
    effects_.assign(g_.regions.size(), {});
    demand_.assign(g_.insts.size(), 0);
    placed_.assign(g_.insts.size(), false);
    stamp_.assign(g_.insts.size(), 0);
    for (const RegionId r : root_regions(g_)) order(r);
  }

  // Operands in the order in which they are demanded: arguments, then what the bodies use.
  ValueId operand(ValueId v, std::size_t i) const {
    const Inst& in = inst(v);
    if (i < in.args.size()) return in.args[i];
    i -= in.args.size();
    for (const RegionId r : in.regions) {
      if (i < free_[index(r)].size()) return free_[index(r)][i];
      i -= free_[index(r)].size();
    }
    return no_value;
  }

  Effects effects(ValueId v) const {
    const Inst& in = inst(v);
    Effects result;
    switch (info(in.op).effect) {
    case Effect::None: break;
    case Effect::Reads: result.reads = {alias_class(in.args[0])}; break;
    case Effect::Writes: result.writes = {alias_class(in.args[0])}; break;
    case Effect::Region:
      for (const RegionId r : in.regions) {
        for (const int c : effects_[index(r)].reads) insert(result.reads, c);
        for (const int c : effects_[index(r)].writes) insert(result.writes, c);
      }
    }
    return result;
  }

  // Depth-first over the operands of `v` that stand in region r; `leave` sees each once, operands
  // first, unless `skip` holds for it.
  template <class Skip, class Leave>
  void visit(ValueId v, RegionId r, const Skip& skip, const Leave& leave) {
    if (region_[index(v)] != r || skip(v)) return;
    std::vector<std::pair<ValueId, std::size_t>> stack{{v, 0}};
    while (!stack.empty()) {
      auto& [top, next] = stack.back();
      const ValueId below = operand(top, next++);
      if (below == no_value) {
        const ValueId done = top;
        stack.pop_back();
        if (!skip(done)) leave(done);
      } else if (region_[index(below)] == r && !skip(below)) {
        stack.push_back({below, 0});
      }
    }
  }

  // A read that must stand before some write.
  struct Pending {
    ValueId read;
    std::uint32_t demand;
  };

  void order(RegionId r) {
    for (const ValueId v : g_[r].params) param_of_[index(v)] = r;
    const Values recorded = std::move(g_[r].insts);
    const Values yields = g_[r].yields;
    Values writes;
    std::vector<Effects> write_effects;
    struct Read {
      ValueId value;
      std::vector<std::pair<int, int>> epochs;  // (class, writes of it so far)
    };
    std::vector<Read> reads;
    std::unordered_map<int, int> epoch;
    for (const ValueId v : recorded) {
      for (const RegionId inner : inst(v).regions) order(inner);
      region_[index(v)] = r;
      if (info(inst(v).op).effect == Effect::None) continue;
      Effects e = effects(v);
      if (!e.writes.empty()) {
        for (const int c : e.writes) ++epoch[c];
        writes.push_back(v);
        write_effects.push_back(std::move(e));
      } else if (!e.reads.empty()) {
        Read read{v, {}};
        for (const int c : e.reads) read.epochs.push_back({c, epoch[c]});
        reads.push_back(std::move(read));
      }
    }

    std::uint32_t position = 0;
    const auto demanded = [&](ValueId v) { return demand_[index(v)] != 0; };
    const auto number = [&](ValueId v) { demand_[index(v)] = ++position; };
    for (const ValueId w : writes) visit(w, r, demanded, number);
    for (const ValueId y : yields) visit(y, r, demanded, number);

    // Reads that must stand before the n-th write of a class, for each (class, n).
    std::unordered_map<std::uint64_t, std::vector<Pending>> pending;
    const auto key = [](int c, int n) {
      return static_cast<std::uint64_t>(c) << 32 | static_cast<std::uint32_t>(n);
    };
    for (const Read& read : reads)
      if (demanded(read.value))
        for (const auto& [c, n] : read.epochs)
          pending[key(c, n)].push_back({read.value, demand_[index(read.value)]});

    Values ordered;
    ordered.reserve(position);
    const auto is_placed = [&](ValueId v) { return static_cast<bool>(placed_[index(v)]); };
    const auto place = [&](ValueId v) {
      placed_[index(v)] = true;
      ordered.push_back(v);
    };
    epoch.clear();
    for (std::size_t i = 0; i < writes.size(); ++i) {
      for (std::size_t n = 0; operand(writes[i], n) != no_value; ++n)
        visit(operand(writes[i], n), r, is_placed, place);
      std::vector<Pending> before;
      for (const int c : write_effects[i].writes) {
        const auto it = pending.find(key(c, epoch[c]++));
        if (it != pending.end()) before.insert(before.end(), it->second.begin(), it->second.end());
      }
      std::sort(before.begin(), before.end(),
                [](const Pending& a, const Pending& b) { return a.demand < b.demand; });
      for (const Pending& p : before) visit(p.read, r, is_placed, place);
      visit(writes[i], r, is_placed, place);
    }
    for (const ValueId y : yields) visit(y, r, is_placed, place);

    Effects& all = effects_[index(r)];
    Values& free = free_[index(r)];
    ++stamps_;
    const auto use = [&](ValueId v) {
      const bool inside = region_[index(v)] == r || param_of_[index(v)] == r;
      if (inside || std::exchange(stamp_[index(v)], stamps_) == stamps_) return;
      free.push_back(v);
    };
    for (const ValueId v : ordered) {
      for (std::size_t n = 0; operand(v, n) != no_value; ++n) use(operand(v, n));
      if (info(inst(v).op).effect == Effect::None) continue;
      const Effects e = effects(v);
      for (const int c : e.reads) insert(all.reads, c);
      for (const int c : e.writes) insert(all.writes, c);
    }
    for (const ValueId y : yields) use(y);
    g_[r].insts = std::move(ordered);
  }

  // ---- simplify

  bool simplify() {
    changed_ = false;
    replaced_.clear();
    for (const RegionId r : root_regions(g_)) simplify(r);
    return changed_;
  }

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
      const ValueId same = rewrite(v);
      if (same != v) {
        replace(v, same);
        continue;
      }
      if (info(inst(v).op).effect == Effect::None) {
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
      if (extent(g_.mapping.grid, in.attr.ints[0]) == 1) return become_constant(v, 0);
      return v;
    case Op::NumPrograms: return static_size(v, extent(g_.mapping.grid, in.attr.ints[0]));
    case Op::AxisIndex:
      if (axis_size(in) == 1) return become_constant(v, 0);
      return v;
    case Op::AxisSize: return static_size(v, axis_size(in));
    case Op::Iota:
      if (in.type.shape[in.attr.ints[0]] == 1) return become_constant(v, 0);
      return v;
    case Op::Broadcast:
    case Op::Reshape:
    case Op::Transpose: return rewrite_shape(v);
    case Op::RefReshape:
    case Op::RefBitcast: return inst(in.args[0]).type == in.type ? in.args[0] : v;
    case Op::RefTranspose: return is_identity(in.attr.ints) ? in.args[0] : v;
    case Op::ReduceMax:
    case Op::ReduceMin:
      return is_constant(in.args[0]) ? become_constant(v, inst(in.args[0]).attr.bits) : v;
    case Op::Load:
    case Op::Store:
    case Op::Swap: return drop_true_mask(v);
    default: break;
    }
    if (in.op == Op::Cast && inst(in.args[0]).type == in.type) return in.args[0];
    if (in.op == Op::Select) {
      if (in.args[1] == in.args[2]) return in.args[1];
      if (is_constant(in.args[0])) return in.args[inst(in.args[0]).attr.bits ? 1 : 2];
    }
    if (in.type.is_value() && in.type.dtype.is_integer())
      if (const ValueId same = integer_identity(in); same != no_value) return same;
    return fold_constants(v);
  }

  static std::int64_t extent(const std::vector<Dim>& dims, std::int64_t i) {
    return dims[i].is_static() ? dims[i].value() : -1;
  }

  // -1 if not known.
  std::int64_t axis_size(const Inst& in) const {
    switch (static_cast<AxisKind>(in.attr.ints[0])) {
    case AxisKind::grid: return extent(g_.mapping.grid, in.attr.ints[1]);
    case AxisKind::cluster: return g_.cluster[in.attr.ints[1]];
    case AxisKind::thread: break;
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
    return v;
  }

  ValueId drop_true_mask(ValueId v) {
    const MemoryView m = MemoryView::of(inst(v));
    if (m.mask == no_value || !is_constant(m.mask) || !inst(m.mask).attr.bits) return v;
    Inst& in = g_[v];
    in.attr.ints = {0, 0};
    in.args.resize(in.op == Op::Load ? 1 : 2);
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

  ValueId fold_constants(ValueId v) {
    const Inst& in = inst(v);
    if (!in.type.is_value() || in.args.empty() || in.args.size() > 3 ||
        info(in.op).effect != Effect::None || !is_elementwise(in.op))
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

  static bool is_elementwise(Op op) { return op >= Op::Neg && op <= Op::Select; }

  // ---- contract

  bool contract() {
    std::vector<int> uses(g_.insts.size());
    std::vector<RegionId> stack = root_regions(g_), all;
    while (!stack.empty()) {
      const RegionId r = stack.back();
      stack.pop_back();
      all.push_back(r);
      for (const ValueId y : g_[r].yields) ++uses[index(y)];
      for (const ValueId v : g_[r].insts) {
        for (const ValueId arg : inst(v).args) ++uses[index(arg)];
        stack.insert(stack.end(), inst(v).regions.begin(), inst(v).regions.end());
      }
    }
    bool any = false;
    for (const RegionId r : all) {
      const auto is_product = [&](ValueId v) {
        return inst(v).op == Op::Mul && uses[index(v)] == 1 && region_[index(v)] == r;
      };
      Values insts;
      insts.reserve(g_[r].insts.size());
      const auto negated = [&](ValueId x, ValueId user) {
        const Type type = inst(x).type;
        insts.push_back(g_.add({Op::Neg, type, {}, {x}, {}}, g_.location(user)));
        return insts.back();
      };
      const Values recorded = g_[r].insts;
      for (const ValueId v : recorded) {
        const Op op = inst(v).op;
        if ((op == Op::Add || op == Op::Sub) && inst(v).type.dtype.is_float()) {
          const ValueId a = inst(v).args[0], b = inst(v).args[1];
          Values operands;
          if (is_product(a)) {
            operands = {inst(a).args[0], inst(a).args[1], op == Op::Sub ? negated(b, v) : b};
          } else if (is_product(b)) {
            const ValueId x = inst(b).args[0], y = inst(b).args[1];
            operands = {op == Op::Sub ? negated(x, v) : x, y, a};
          }
          if (!operands.empty()) {
            g_[v].op = Op::Fma;
            g_[v].args = std::move(operands);
            any = true;
          }
        }
        insts.push_back(v);
      }
      g_[r].insts = std::move(insts);
    }
    return any;
  }

  // ---- compact

  void compact() {
    Graph& g = g_;
    std::vector<Inst> insts;
    std::vector<Region> regions;
    std::vector<Location> where;
    std::vector<std::string> names;
    std::vector<ValueId> value(g.insts.size(), no_value);
    std::vector<RegionId> region(g.regions.size(), Uses::no_region_id);
    const auto take = [&](ValueId v) {
      value[index(v)] = ValueId{static_cast<std::uint32_t>(insts.size())};
      where.push_back(g.location(v));
      if (index(v) < g.names.size() && !g.names[index(v)].empty()) {
        names.resize(insts.size() + 1);
        names[insts.size()] = std::move(g.names[index(v)]);
      }
      insts.push_back(std::move(g[v]));
      return value[index(v)];
    };
    const auto renumber = [&](Values& list) {
      for (ValueId& v : list) v = value[index(v)];
    };
    const std::function<RegionId(RegionId)> copy = [&](RegionId from) {
      const RegionId to{static_cast<std::uint32_t>(regions.size())};
      region[index(from)] = to;
      regions.push_back(std::move(g[from]));
      Values params = std::move(regions[index(to)].params);
      Values list = std::move(regions[index(to)].insts);
      for (ValueId& v : params) v = take(v);
      for (ValueId& v : list) {
        v = take(v);
        renumber(insts[index(v)].args);
        const std::vector<RegionId> inner = insts[index(v)].regions;
        for (std::size_t i = 0; i < inner.size(); ++i) {
          const RegionId copied = copy(inner[i]);
          insts[index(v)].regions[i] = copied;
        }
      }
      Region& result = regions[index(to)];
      result.params = std::move(params);
      result.insts = std::move(list);
      renumber(result.yields);
      return to;
    };
    for (const RegionId r : root_regions(g)) copy(r);

    for (Body& body : g.bodies) body.region = region[index(body.region)];
    const auto move_to = [&](RegionIndex& r) {
      if (r != no_region) r = index(region[r]);
    };
    for (BlockMapping& m : g.mapping.block_mappings) move_to(m.index_map);
    move_to(g.mapping.get_grid_indices);
    move_to(g.mapping.local_grid_env);
    if (!names.empty()) names.resize(insts.size());
    g.insts = std::move(insts);
    g.regions = std::move(regions);
    g.where = std::move(where);
    g.names = std::move(names);
  }

  Graph& g_;
  std::unordered_map<ValueId, int> classes_;  // of root Refs

  // order()
  std::vector<RegionId> region_;       // per instruction: where it is listed
  std::vector<RegionId> param_of_;     // per parameter: of which region
  std::vector<Values> free_;           // per region: what it uses of enclosing ones, in order
  std::vector<Effects> effects_;       // per region
  std::vector<std::uint32_t> demand_;  // per value: its place in the demand order, from 1; 0: dead
  std::vector<bool> placed_;
  std::vector<std::uint32_t> stamp_;
  std::uint32_t stamps_ = 0;

  // simplify()
  bool changed_ = false;
  std::unordered_map<ValueId, ValueId> replaced_;
  std::unordered_map<std::size_t, Values> known_;  // by hash: values that may be used here
  std::vector<std::pair<std::size_t, ValueId>> known_log_;
};

}  // namespace

Graph canonicalize(const Graph& g) {
  Graph result = g;
  Canonicalizer(result).run();
  return result;
}

}  // namespace palladium::graph
