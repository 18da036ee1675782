// Bodies: scratch, what they get of arguments, outputs and scratch, and what they captured.
#include <algorithm>
#include <numeric>

#include "codegen/graph/extents.hpp"
#include "codegen/trace/accumulators.hpp"
#include "codegen/trace/captures.hpp"
#include "codegen/trace/clusters.hpp"
#include "codegen/trace/over_meshes.hpp"
#include "codegen/trace/tracer.hpp"
#include "codegen/trace/unions.hpp"

namespace palladium::trace {

void Tracer::set_scratch() {
  GridMapping& m = recorder_.graph.mapping;
  for (std::size_t i = 0; i < call_.scratch.list.size(); ++i) {
    const NamedScoped& s = call_.scratch.list[i];
    const std::string who =
        s.name.empty() ? "scratch[" + std::to_string(i) + "]" : "scratch '" + s.name + "'";
    scratch_names_.push_back(s.name);
    if (s.type.space == Space::semaphore && is_meshed()) {
      set_semaphores(s.type, who);
      continue;
    }
    global_of_scratch_.push_back(-1);
    ShapeDtype type;
    if (s.type.space == Space::barrier && !is_meshed())
      fail(s.type.at, who + " is a barrier, which only bodies of a pl::kernel can have");
    if (const std::string problem = scratch_problem(s.type, who, type); !problem.empty())
      fail(s.type.at, problem);
    const std::size_t meshes = is_meshed() ? over_.meshes->list.size() : 0;
    if (const std::string problem = mesh_problem(s.type, who, meshes); !problem.empty())
      fail(s.type.at, problem);
    if (is_member(s.type)) {
      const Scoped::Member& member = s.type.member;
      if (begins_union(s.type))
        m.scratch_avals.push_back({{{member.bytes}, u8}, true, Space::smem, {}, 0, 0});
      continue;
    }
    m.scratch_avals.push_back({type,
                               true,
                               s.type.space,
                               {},
                               arrivals_of(recorder_, s.type, s.type.at),
                               swizzle_given(s.type)});
  }
}

void Tracer::set_semaphores(const Scoped& scratch, const std::string& who) {
  Scoped as_scratch = scratch;
  as_scratch.space = Space::smem;
  ShapeDtype type;
  if (const std::string problem = scratch_problem(as_scratch, who, type); !problem.empty())
    fail(scratch.at, problem);
  global_of_scratch_.push_back(static_cast<int>(recorder_.globals.size()));
  std::vector<std::size_t> apart(recorder_.graph.cluster.size());
  std::iota(apart.begin(), apart.end(), std::size_t{0});
  recorder_.globals.push_back({type, Space::semaphore, true, std::move(apart), who, scratch.at});
}

void Tracer::trace_body(std::size_t number, const Body& body) {
  graph::Graph& g = recorder_.graph;
  const RegionId region = g.add_region();
  const Threads& threads = recorder_.threads[number];
  g.bodies.push_back({.region = region,
                      .warpgroups = threads.count,
                      .num_warps = is_meshed() ? 0 : options_.compiler_params.num_warps,
                      .num_stages = std::max(options_.compiler_params.num_stages,
                                             options_.compiler_params.max_concurrent_steps),
                      .warp_specialize = options_.compiler_params.warp_specialize});
  for (BlockMapping& m : g.mapping.block_mappings) bind_pinned(m);
  recorder_.body = number;
  recorder_.may_capture = is_meshed();
  recorder_.captures_symbols = over_.captures_symbols;
  recorder_.enter(region);
  graph::Builder builder = recorder_.builder();
  std::vector<BodyOperand> operands;
  const auto block = [&](const BlockMapping& m) {
    const Type type = Type::ref(m.array_aval.dtype, m.ref_shape(), m.memory_space);
    const ValueId ref = builder.param(type, at_);
    if (graph::has_unknown_extent(m)) recorder_.note_unknown(ref, m.array_aval.shape, m.origin);
    if (!m.fill) recorder_.lengths.bound(ref, m);
    if (m.fill) recorder_.filled.emplace_back(ref, &m);
    const auto number = static_cast<std::size_t>(&m - g.mapping.block_mappings.data());
    recorder_.shown.push_back(
        {.mapping = &m,
         .is_output = number >= static_cast<std::size_t>(g.mapping.num_inputs),
         .has_spec = is_meshed() || specs_[number] != &whole_array()});
    if (&m - g.mapping.block_mappings.data() < g.mapping.num_index_operands)
      recorder_.read_only.push_back(ref);
    note_unaliased(m, ref);
    return BodyOperand{m.origin, false, ref};
  };
  std::vector<std::size_t> refs;  // operands
  for (std::size_t i = 0; i < g.arguments.size(); ++i) {
    const graph::Argument& a = g.arguments[i];
    if (arguments_[i].is_ref) refs.push_back(operands.size());
    if (a.kind == graph::Argument::Kind::input)
      operands.push_back(block(mapping(a.index)));
    else
      operands.push_back(
          {"args[" + std::to_string(i) + "]", true, builder.param(Type::value(a.dtype), at_)});
  }
  for (int i = 0; i < g.mapping.num_outputs; ++i) {
    const BodyOperand output = block(mapping(g.mapping.num_inputs + i));
    if (i < num_visible_)
      operands.push_back(output);
    else
      operands[refs[static_cast<std::size_t>(i - num_visible_)]] = output;
  }
  std::size_t next = 0;
  std::vector<ValueId> scratch(global_of_scratch_.size());
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    if (global_of_scratch_[i] >= 0 || is_member(call_.scratch.list[i].type)) {
      if (begins_union(call_.scratch.list[i].type)) {
        ++next;
        scratch[i] = builder.param(type_of_union(call_.scratch.list[i].type), at_);
      }
      continue;
    }
    const AbstractValue& s = g.mapping.scratch_avals[next++];
    scratch[i] = builder.param(
        Type::ref(s.type.dtype, extents(s.type.shape), s.memory_space, s.arrivals, s.swizzle), at_);
  }
  note_cluster_barriers(scratch);
  add_members(scratch);
  for (std::size_t i = 0; i < scratch.size(); ++i)
    if (const int global = global_of_scratch_[i]; global >= 0)
      scratch[i] = recorder_.global(static_cast<std::size_t>(global));
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    const ValueId v = scratch[i];
    operands.push_back({scratch_names_[i].empty() ? "scratch[" + std::to_string(i) + "]"
                                                  : "scratch '" + scratch_names_[i] + "'",
                        false, v});
    if (scratch_names_[i].empty()) continue;
    g.names.resize(graph::index(v) + 1);
    g.names[graph::index(v)] = scratch_names_[i];
  }
  for (const ValueId v : scratch)
    if (g[v].type.space == Space::accumulator) begin_accumulator(recorder_, v, {}, at_);
  choose(operands);
  if (Access::function(body)->on_stack && !over_.must_write)  // what runs at once may refer to it
    warn_of_captures(g.name, "the kernel function", body.at());
  blaming(body.at(), [&] { call_body(body, recorder_, operands, scratch_names_); });
  recorder_.leave();
  recorder_.may_capture = false;
}

// Where the first member of a union stands is the union.
void Tracer::add_members(std::vector<ValueId>& scratch) {
  ValueId all = graph::no_value;
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    const Scoped& s = call_.scratch.list[i].type;
    if (!is_member(s)) continue;
    if (begins_union(s)) all = scratch[i];
    const Type type =
        Type::ref(s.type.dtype, extents(s.type.shape), Space::smem, 0, swizzle_given(s));
    scratch[i] = part_of_union(recorder_, all, s, type, at_);
  }
}

void Tracer::note_cluster_barriers(const std::vector<ValueId>& scratch) {
  for (std::size_t i = 0; i < scratch.size(); ++i)
    if (const Scoped& s = call_.scratch.list[i].type; !s.collective_axes.empty())
      recorder_.cluster_barriers.emplace_back(scratch[i], cluster_groups(recorder_, s, s.at));
}

// Over meshes check_accesses() looks at what bodies write.
void Tracer::note_unaliased(const BlockMapping& m, ValueId ref) {
  const graph::Graph& g = recorder_.graph;
  const auto number = static_cast<int>(&m - g.mapping.block_mappings.data());
  if (is_meshed() || number >= g.mapping.num_inputs) return;
  const bool is_aliased =
      std::ranges::any_of(g.aliases, [&](const graph::Alias& a) { return a.input == number; });
  if (!is_aliased) recorder_.unaliased.emplace_back(ref, number);
}

void Tracer::choose(std::vector<BodyOperand>& operands) {
  const graph::Graph& g = recorder_.graph;
  if (is_meshed()) return;
  std::vector<Ref> index_operands;
  for (std::size_t i = 0; i < g.arguments.size(); ++i)
    if (!operands[i].is_scalar && g.arguments[i].index < g.mapping.num_index_operands)
      index_operands.push_back(recorder_.ref(operands[i].param));
  const auto choose = [&](BodyOperand& operand, int number) {
    operand.param = chosen(operand.param, mapping(number),
                           *specs_[static_cast<std::size_t>(number)], index_operands);
  };
  for (std::size_t i = 0; i < g.arguments.size(); ++i)
    if (!operands[i].is_scalar) choose(operands[i], g.arguments[i].index);
  for (int o = 0; o < num_visible_; ++o)
    choose(operands[g.arguments.size() + static_cast<std::size_t>(o)], g.mapping.num_inputs + o);
}

void Tracer::add_captured() {
  graph::Graph& g = recorder_.graph;
  for (std::size_t c = 0; c < recorder_.captured.size(); ++c) {
    const Captured& captured = recorder_.captured[c];
    const std::string origin = "captured[" + std::to_string(c) + "]";
    std::vector<BlockMapping>& mappings = g.mapping.block_mappings;
    for (const bool is_output : {true, false}) {
      BlockMapping m =
          mapping_of({{captured.shape, captured.array.dtype()}, origin}, whole_array());
      m.index_map = trace_index_map(m, *specs_.back());
      const auto at = static_cast<std::ptrdiff_t>(
          is_output ? mappings.size() : static_cast<std::size_t>(g.mapping.num_inputs));
      mappings.insert(mappings.begin() + at, std::move(m));
      std::rotate(specs_.begin() + at, specs_.end() - 1, specs_.end());
    }
    insert_captured(recorder_, c, known_extents(captured.shape));
    g.arguments.push_back(
        {graph::Argument::Kind::input, g.mapping.num_inputs++, captured.array.dtype()});
    g.aliases.push_back({g.mapping.num_inputs - 1, g.mapping.num_outputs++});
  }
}

}  // namespace palladium::trace
