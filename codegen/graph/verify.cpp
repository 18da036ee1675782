// The contract at the top of graph.hpp, as code.
#include <algorithm>
#include <string>

#include "codegen/base/dim.hpp"
#include "codegen/graph/builder.hpp"
#include "codegen/graph/classes.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/graph/uses.hpp"
#include "codegen/graph/warps.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

struct Defect {
  std::string what;
};

void require(bool holds, const char* what) {
  if (!holds) throw Defect{what};
}

std::string name(ValueId v) { return "instruction " + std::to_string(index(v)); }

class Verifier {
 public:
  Verifier(const Graph& g, Form form) : g_(g), form_(form) {}

  void run() {
    require(g_.insts.size() <= max_recorded, "too many instructions");
    require(g_.where.size() <= g_.insts.size(), "more locations than instructions");
    require(g_.names.size() <= g_.insts.size(), "more names than instructions");
    check_mapping();
    check_arguments();
    visible_.assign(g_.insts.size(), false);
    listed_.assign(g_.insts.size(), false);
    visited_.assign(g_.regions.size(), false);
    is_index_map_.assign(g_.regions.size(), false);
    require(!g_.bodies.empty(), "a kernel without a body");
    require(g_.grid_rows >= 0 && g_.grid_rows <= most_grid_rows, "grid_rows is not 0 to 65536");
    require(g_.split_k >= 0 && g_.split_k <= most_split, "split_k is not 0 to 8");
    require(!g_.persistent || (!g_.whole_arrays && !has_semaphores(g_) && g_.cluster.empty()),
            "persistent programs that see or wait for each other");
    require(g_.grid_rows <= 1 || std::ranges::count(g_.semantics, Semantics::parallel) > 1,
            "grid_rows without two parallel axes");
    for (const Body& body : g_.bodies) {
      require(body.warpgroups >= 1 && body.warpgroups <= 16,
              "a body has less than 1 or more than 16 warpgroups");
      require(body.num_warps == 0 || is_width(body.num_warps), "num_warps is not 4, 8 or 16");
      require(body.num_stages >= 0 && body.num_stages <= most_stages, "num_stages is not 0 to 16");
      require(body.num_warps <= warpgroup_threads / warp_threads ||
                  (g_.bodies.size() == 1 && body.warpgroups == 1),
              "one of several Pallas threads is wider than a warpgroup");
      check_body(body.region);
    }
    for (const BlockMapping& m : g_.mapping.block_mappings) {
      if (m.index_map == no_region) continue;
      const RegionId r = in_range(m.index_map);
      if (!is_index_map_[index(r)]) check_region(r, no_value, 0);
      is_index_map_[index(r)] = true;
      check_index_map(r, m);
    }
    const std::size_t rank = g_.mapping.grid.size();
    check_grid_region(
        g_.mapping.get_grid_indices, [&](std::size_t n) { return n == rank; },
        "get_grid_indices does not yield an index per grid axis");
    check_grid_region(
        g_.mapping.local_grid_env, [](std::size_t n) { return n % 2 == 0; },
        "local_grid_env does not yield pairs of index and size");
  }

 private:
  RegionId in_range(RegionIndex r) const {
    require(r < g_.regions.size(), "a region id out of range");
    return RegionId{r};
  }

  void check_symbols(const Dim& d) const {
    std::vector<std::uint32_t> symbols;
    collect_symbols(d, symbols);
    for (const std::uint32_t s : symbols)
      require(static_cast<std::int64_t>(s) < g_.num_symbols,
              "a symbolic dim that is none of the graph's");
  }

  void check_mapping() const {
    const GridMapping& m = g_.mapping;
    m.check_invariants();
    for (const Dim& d : m.grid) check_symbols(d);
    for (const BlockMapping& b : m.block_mappings) {
      for (const Dim& d : b.array_aval.shape) check_symbols(d);
      const std::string large = too_large(b.array_aval, b.block_shape);
      if (!large.empty()) throw Defect{b.origin + ": " + large};
    }
    require(g_.num_symbols >= 0, "a negative number of symbols");
    for (const Inst& in : g_.insts)
      require(in.op != Op::DimValue || in.attr.ints.empty() || in.attr.ints[0] < g_.num_symbols,
              "the size of a symbol that is none of the graph's");
    for (const BlockMapping& b : m.block_mappings)
      for (const BlockDim& d : b.block_shape)
        require(d.kind != BlockDim::Kind::whole || d == BlockDim(d.kind, unknown_extent),
                "a block that is all of its array has a size");
    check_facts();
    require(g_.semantics.size() == m.grid.size(), "not one order per grid axis");
    require(g_.cluster.size() <= 3, "a cluster of more than 3 axes");
    for (const int n : g_.cluster) require(n >= 1, "a cluster axis below 1");
    require(cluster_blocks(g_) <= most_cluster_blocks, "a cluster of more than 16 blocks");
    check_static_grid(g_, {});
    require(g_.cluster_names.empty() || g_.cluster_names.size() == g_.cluster.size(),
            "not one name per cluster axis");
  }

  // What says nothing is left out: equal graphs have equal bytes.
  void check_facts() const {
    const std::vector<std::int64_t>& multiples = g_.facts.multiples;
    require(multiples.empty() || multiples.size() == static_cast<std::size_t>(g_.num_symbols),
            "not one multiple per symbol");
    bool any = multiples.empty();
    for (const std::int64_t n : multiples) {
      require(n >= 1 && n <= wide_alignment && (n & (n - 1)) == 0,
              "a symbol's multiple is no power of two from 1 to 16");
      any |= n != 1;
    }
    require(any, "multiples of 1 for all symbols");
    require(!g_.short_offsets || has_runtime_reach(g_), "short offsets where all arrays are known");
    require(!g_.box_extents ||
                (std::ranges::any_of(g_.mapping.block_mappings, may_be_box) && !g_.short_offsets),
            "extents of boxes where all arrays, or short offsets, are known");
  }

  void check_arguments() const {
    const GridMapping& m = g_.mapping;
    int inputs = 0, scalars = 0;
    for (const Argument& a : g_.arguments) {
      require(a.dtype != DType(), "an argument without a dtype");
      if (a.kind == Argument::Kind::scalar) {
        require(a.index == scalars++, "scalar arguments are not numbered in call order");
        require(a.symbol >= -1 && a.symbol < g_.num_symbols,
                "a scalar is a symbol that is none of the graph's");
        require(a.symbol < 0 || a.dtype.is_integer(), "a scalar that is a symbol is no integer");
        continue;
      }
      require(a.symbol < 0, "an array argument is a symbol");
      require(a.index == inputs++, "array arguments are not numbered in call order");
      require(a.index < m.num_inputs, "an array argument without a block mapping");
      require(a.dtype == m.block_mappings[a.index].array_aval.dtype,
              "an array argument's dtype is not its block mapping's");
    }
    require(inputs == m.num_inputs, "a block mapping without an argument");
    require(g_.num_globals >= 0 && g_.num_globals <= m.num_outputs, "more globals than outputs");
    require(g_.num_globals == 0 || g_.whole_arrays, "globals without whole arrays");
    for (std::size_t i = 0; i < g_.aliases.size(); ++i) {
      const Alias& a = g_.aliases[i];
      require(a.input >= 0 && a.input < m.num_inputs, "an alias of no input");
      require(a.output >= 0 && a.output < m.num_outputs, "an alias of no output");
      require(a.input >= m.num_index_operands, "an alias of an index operand");
      require(std::ranges::find(m.bounds, a.input) == m.bounds.end(), "an alias of a grid bound");
      require(m.block_mappings[a.input].array_aval ==
                  m.block_mappings[m.num_inputs + a.output].array_aval,
              "an alias of arrays of two types");
      for (std::size_t k = 0; k < i; ++k)
        require(g_.aliases[k].input != a.input && g_.aliases[k].output != a.output,
                "an input or output is aliased twice");
    }
  }

  void check_body(RegionId r) {
    in_range(index(r));
    require(!visited_[index(r)], "two bodies share a region");
    const Region& region = g_[r];
    const GridMapping& m = g_.mapping;
    require(region.yields.empty(), "a body yields");
    std::vector<Type> expected;
    const auto block = [&](const BlockMapping& b) {
      expected.push_back(Type::ref(b.array_aval.dtype, b.ref_shape(), b.memory_space));
    };
    for (const Argument& a : g_.arguments)
      if (a.kind == Argument::Kind::scalar)
        expected.push_back(Type::value(a.dtype));
      else
        block(m.block_mappings[a.index]);
    for (int i = 0; i < m.num_outputs; ++i) block(m.block_mappings[m.num_inputs + i]);
    for (const AbstractValue& s : m.scratch_avals) expected.push_back(type_of(s));
    check_params(region, expected, "body");
    check_region(r, no_value, 0);
  }

  static Type type_of(const AbstractValue& v) {
    Extents shape;
    for (const Dim& d : v.type.shape) {
      require(d.is_static(), "a symbolic shape in the kernel");
      shape.push_back(d.value());
    }
    return v.is_ref
               ? Type::ref(v.type.dtype, std::move(shape), v.memory_space, v.arrivals, v.swizzle)
               : Type::value(v.type.dtype, std::move(shape));
  }

  void check_params(const Region& region, const std::vector<Type>& expected, const char* of) const {
    if (region.params.size() != expected.size())
      throw Defect{std::string("a ") + of + " has " + std::to_string(region.params.size()) +
                   " parameters instead of " + std::to_string(expected.size())};
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const ValueId p = region.params[i];
      require(index(p) < g_.insts.size(), "a parameter's id out of range");
      if (!(g_[p].type == expected[i]))
        throw Defect{"parameter " + std::to_string(i) + " of a " + of + " is " +
                     to_string(g_[p].type) + " instead of " + to_string(expected[i])};
    }
  }

  void check_index_map(RegionId r, const BlockMapping& m) const {
    std::vector<Type> expected;
    for (const AbstractValue& v : g_.mapping.index_map_avals) expected.push_back(type_of(v));
    check_params(g_[r], expected, "index map");
    const std::vector<ValueId>& yields = g_[r].yields;
    if (yields.size() != m.num_indices())
      throw Defect{"the index map of " + m.origin + " yields " + std::to_string(yields.size()) +
                   " values instead of " + std::to_string(m.num_indices())};
    for (const ValueId y : yields)
      require(g_[y].type == Type::value(i32), "an index map yields something other than i32[]");
    for (std::size_t d = 0; d < m.block_shape.size(); ++d)
      require(m.block_shape[d].kind != BlockDim::Kind::whole ||
                  (g_[yields[d]].op == Op::Constant && g_[yields[d]].attr.bits == 0),
              "a block that is all of its array is not the first");
    check_pure(r);
  }

  void check_pure(RegionId r) const {
    for (const ValueId v : g_[r].insts) {
      const Op op = g_[v].op;
      require(!writes_memory(op), "an index map writes");
      require(!effects(op).syncs, "an index map synchronises");
      require(!effects(op).tells, "an index map tells the host something");
      for (const RegionId inner : g_[v].regions) check_pure(inner);
    }
  }

  template <class Fits>
  void check_grid_region(RegionIndex r, Fits fits, const char* otherwise) {
    if (r == no_region) return;
    const RegionId id = in_range(r);
    require(!visited_[index(id)], "two owners share a region");
    check_region(id, no_value, 0);
    check_params(g_[id], std::vector<Type>(g_.mapping.grid.size(), Type::value(i32)),
                 "region of the GridMapping");
    require(fits(g_[id].yields.size()), otherwise);
    for (const ValueId y : g_[id].yields)
      require(g_[y].type == Type::value(i32), "a region of the GridMapping yields no i32[]");
    check_pure(id);
  }

  // `owner` is the instruction whose region it is, `depth` the number of such around it.
  void check_region(RegionId r, ValueId owner, int depth) {
    require(depth <= max_nesting, "regions are nested too deeply");
    require(!visited_[index(r)], "two owners share a region");
    visited_[index(r)] = true;
    const Region& region = g_[r];
    for (const ValueId p : region.params) {
      list(p);
      require(g_[p].op == Op::Param, "a parameter that is no param instruction");
      check_instruction(p);
      visible_[index(p)] = true;
    }
    if (owner != no_value) check_owned_params(region, owner);
    for (const ValueId v : region.insts) {
      list(v);
      require(g_[v].op != Op::Param, "a param instruction among a region's instructions");
      check_instruction(v);
      const Inst& in = g_[v];
      check_number_of_regions(in);
      for (const RegionId inner : in.regions) check_region(in_range(index(inner)), v, depth + 1);
      if (in.op == Op::Warps) check_warps(in);
      check_results(in);
      visible_[index(v)] = true;
    }
    for (const ValueId y : region.yields) use(y);
    if (owner != no_value && repeats(g_[owner].op)) check_repeated_yields(r, owner);
    for (const ValueId p : region.params) visible_[index(p)] = false;
    for (const ValueId v : region.insts) visible_[index(v)] = false;
  }

  void check_warps(const Inst& in) const {
    ValueId at = no_value;
    const std::string problem = warps_problem(g_, in.regions[0], at);
    if (!problem.empty()) throw Defect{name(at) + ": " + problem};
  }

  void check_number_of_regions(const Inst& in) const {
    const std::size_t n = in.regions.size();
    switch (in.op) {
    case Op::Switch: {
      const bool two = g_[in.args[0]].type.dtype.is_bool();
      require(two ? n == 2 : n >= 1, "a wrong number of regions");
      return;
    }
    case Op::While: require(n == 2, "a wrong number of regions"); return;
    case Op::InlineCuda: require(n <= 1, "a wrong number of regions"); return;
    default: require(n == (effects(in.op).regions ? 1 : 0), "a wrong number of regions");
    }
  }

  void list(ValueId v) {
    require(index(v) < g_.insts.size(), "an instruction id out of range");
    if (listed_[index(v)]) throw Defect{name(v) + " is listed twice"};
    listed_[index(v)] = true;
  }

  void use(ValueId v) const {
    require(index(v) < g_.insts.size(), "an operand's id out of range");
    if (!visible_[index(v)]) throw Defect{name(v) + " is used where it is not defined"};
  }

  void check_instruction(ValueId v) const {
    const Inst& in = g_[v];
    for (const ValueId arg : in.args) use(arg);
    const Effects all = effects(in);
    for (const Effect& e : all.on_memory())
      if (e.writes() && e.operand < in.args.size()) check_writable(in.args[e.operand]);
    if (in.op == Op::RefBitcast && !in.args.empty()) check_fill(in);
    require(form_ == Form::lowered || in.op != Op::Dot || in.args.empty() ||
                !is_byte_float(g_[in.args[0]].type.dtype),
            "a product of floats of 8 bits");
    const Type type = infer(g_, in.op, in.attr, in.args, in.type, g_.location(v));
    if (!(type == in.type))
      throw Defect{name(v) + " (" + info(in.op).name + ") has type '" + to_string(in.type) +
                   "' instead of '" + to_string(type) + "'"};
    require(form_ == Form::lowered || !is_semaphore_op(in.op) || mapping_of(in.args[0]) != nullptr,
            "a semaphore that no array counts");
    require(in.op == Op::Constant || in.attr.bits == 0, "bits on something other than a constant");
    require(says_something(in.op) || in.attr.text.empty(), "a text on something that says nothing");
  }

  // The block mapping whose Ref, in a body, a view leads to.
  const BlockMapping* mapping_of(ValueId view) const {
    while (g_[view].op != Op::Param && !g_[view].args.empty()) view = g_[view].args[0];
    for (const Body& body : g_.bodies) {
      const std::vector<ValueId>& params = g_[in_range(index(body.region))].params;
      const auto at = static_cast<std::size_t>(std::ranges::find(params, view) - params.begin());
      const GridMapping& m = g_.mapping;
      if (at < g_.arguments.size() && g_.arguments[at].kind == Argument::Kind::input)
        return &m.block_mappings[static_cast<std::size_t>(g_.arguments[at].index)];
      const std::size_t output = at - g_.arguments.size();
      if (at >= g_.arguments.size() && output < static_cast<std::size_t>(m.num_outputs))
        return &m.block_mappings[static_cast<std::size_t>(m.num_inputs) + output];
    }
    return nullptr;
  }

  void check_writable(ValueId view) const {
    const BlockMapping* const m = mapping_of(view);
    require(!m || m - g_.mapping.block_mappings.data() >= g_.mapping.num_index_operands,
            "an index operand is written");
  }

  void check_fill(const Inst& bitcast) const {
    const BlockMapping* const m = mapping_of(bitcast.args[0]);
    const DType from = g_[bitcast.args[0]].type.dtype, to = bitcast.type.dtype;
    require(!m || !m->fill || from.bytes() == to.bytes() || fill_as(*m, to),
            "a block's fill is seen in elements of another size");
  }

  void check_owned_params(const Region& region, ValueId owner) const {
    const Inst& in = g_[owner];
    std::vector<Type> expected;
    if (in.op == Op::Scoped) return check_scoped_params(region);
    if (in.op == Op::Loop) expected.push_back(Type::value(i32));
    for (const ValueId c : first_carries(in)) expected.push_back(g_[c].type);
    check_params(region, expected, info(in.op).name);
  }

  void check_scoped_params(const Region& region) const {
    for (const ValueId p : region.params) {
      const Type& t = g_[p].type;
      require(t.is_ref() && (t.space == Space::smem || is_own(t.space)),
              "a parameter of a run_scoped is no Ref of shared memory or registers");
    }
  }

  static std::span<const ValueId> first_carries(const Inst& in) {
    if (in.op == Op::Loop) return std::span(in.args).subspan(2);
    return in.op == Op::While ? std::span(in.args) : std::span<const ValueId>();
  }

  void check_repeated_yields(RegionId r, ValueId owner) const {
    const Inst& in = g_[owner];
    const std::vector<ValueId>& yields = g_[r].yields;
    if (in.op == Op::While && r == in.regions[0]) {
      require(yields.size() == 1 && g_[yields[0]].type == Type::value(bool_),
              "the condition of a while does not yield one bool[]");
      return;
    }
    const std::span<const ValueId> carries = first_carries(in);
    require(yields.size() == carries.size(), "a region does not yield one value per carry");
    for (std::size_t i = 0; i < carries.size(); ++i)
      if (!(g_[yields[i]].type == g_[carries[i]].type))
        throw Defect{"carry " + std::to_string(i) + " starts as " + to_string(g_[carries[i]].type) +
                     " but the body yields " + to_string(g_[yields[i]].type)};
  }

  // Of what does not repeat: each region of a switch yields what its first does.
  void check_results(const Inst& in) const {
    if (in.op == Op::InlineCuda) return check_meaning(in);
    if (!effects(in.op).regions || repeats(in.op)) return;
    const std::vector<ValueId>& first = g_[in.regions[0]].yields;
    require(has_results(in.op) || first.empty(), "the body of a when yields");
    for (std::size_t n = 1; n < in.regions.size(); ++n) {
      const std::vector<ValueId>& yields = g_[in.regions[n]].yields;
      require(yields.size() == first.size(), "the regions of a switch yield differently many");
      for (std::size_t i = 0; i < first.size(); ++i)
        if (!(g_[yields[i]].type == g_[first[i]].type))
          throw Defect{"result " + std::to_string(i) + " of a switch is " +
                       to_string(g_[first[i]].type) + " in region 0 but " +
                       to_string(g_[yields[i]].type) + " in region " + std::to_string(n)};
    }
    for (const ValueId y : first) require(g_[y].type.is_value(), "a region yields no value");
  }

  void check_meaning(const Inst& in) const {
    if (in.regions.empty()) return;
    const std::vector<ValueId>& yields = g_[in.regions[0]].yields;
    const std::vector<Type> types = result_types(in);
    require(yields.size() == types.size(),
            "an inline_cuda means more or fewer results than it has");
    for (std::size_t i = 0; i < types.size(); ++i)
      require(g_[yields[i]].type == types[i], "an inline_cuda means a result of another type");
  }

  const Graph& g_;
  const Form form_;
  std::vector<bool> visible_, listed_;        // per instruction
  std::vector<bool> visited_, is_index_map_;  // per region; index maps may be shared
};

}  // namespace

std::string defect(const Graph& g, Form form) {
  try {
    Verifier(g, form).run();
  } catch (const Defect& d) {
    return d.what;
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void verify(const Graph& g, std::string_view stage) {
  if (const std::string what = defect(g); !what.empty())
    throw InternalError(std::string(stage) + ": " + what + "\n" + to_text(g, true));
}

}  // namespace palladium::graph
