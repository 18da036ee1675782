#include "codegen/trace/over_meshes.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "palladium/error.hpp"

namespace palladium::trace {
namespace {

/// Looks at each access of each body.
class Accesses {
 public:
  Accesses(const Recorder& recorder, const ScratchTypes& scratch)
      : g_(recorder.graph),
        first_scratch_(g_.arguments.size() + static_cast<std::size_t>(g_.mapping.num_outputs)),
        first_captured_(first_scratch_ + g_.mapping.scratch_avals.size()) {
    for (const Recorder::Shared& s : recorder.shared) shared_.push_back(s.ref);
    for (const NamedScoped& s : scratch.list)
      if (s.type.space != Space::semaphore && s.type.member.number <= 0)
        in_block_.push_back(&s.type);
  }

  void check(bool must_write, Location at) {
    for (std::size_t b = 0; b < g_.bodies.size(); ++b) check_region(b, g_.bodies[b].region);
    if (must_write && !writes_)
      fail(
          at,
          "the body writes no Ref, so that nothing would come of it; it writes what it captured of "
          "pl::new_ref(array)");
  }

 private:
  [[noreturn]] void fail(Location at, const std::string& what) const {
    throw CompileError(at, "kernel '" + g_.name + "': " + what);
  }

  void check_region(std::size_t body, RegionId region) {
    for (const ValueId v : g_[region].insts) {
      {
        const graph::Effects all = graph::effects(g_[v]);
        for (const graph::Effect& e : all.on_memory()) check_access(body, v, e);
      }
      for (const RegionId inner : g_[v].regions) check_region(body, inner);
    }
  }

  void check_access(std::size_t body, ValueId v, const graph::Effect& effect) {
    const std::vector<ValueId>& params = g_[g_.bodies[body].region].params;
    const auto found = std::ranges::find(params, g_.root(g_[v].args[effect.operand]));
    if (found == params.end() || std::ranges::find(shared_, *found) != shared_.end())
      return;  // of a run_scoped
    const auto position = static_cast<std::size_t>(found - params.begin());
    const std::string what = std::string(graph::info(g_[v].op).name) + ": ";
    if (effect.writes() && position < g_.arguments.size())
      fail(g_.location(v), what + "args[" + std::to_string(position) +
                               "] is an array, which a kernel over a mesh only reads; to change it "
                               "pass pl::new_ref(array)");
    writes_ |= effect.writes() && position >= first_captured_;
    if (position < first_scratch_ || position >= first_captured_) return;
    const std::size_t number = position - first_scratch_;
    const int mesh = in_block_[number]->mesh;
    if (mesh >= 0 && mesh != static_cast<int>(body))
      fail(g_.location(v), what + "scratch[" + std::to_string(number) + "] is of mesh " +
                               std::to_string(mesh) + ", and the body of mesh " +
                               std::to_string(body) + " cannot access it");
  }

  const graph::Graph& g_;
  std::vector<const Scoped*> in_block_;  // scratch that is no semaphore
  std::vector<ValueId> shared_;          // Recorder::shared
  const std::size_t first_scratch_, first_captured_;
  bool writes_ = false;
};

}  // namespace

void check_accesses(const Recorder& recorder, const ScratchTypes& scratch, bool must_write,
                    Location at) {
  Accesses(recorder, scratch).check(must_write, at);
}

std::string mesh_problem(const Scoped& scratch, const std::string& who, std::size_t meshes) {
  if (scratch.mesh >= static_cast<int>(meshes) || scratch.mesh < -1)
    return who + " is said to be of mesh " + std::to_string(scratch.mesh) + ", of " +
           std::to_string(meshes);
  if (meshes > 1 && graph::is_own(scratch.space) && scratch.mesh < 0)
    return who +
           " is in registers, which only the threads of one mesh have: with more than one mesh say "
           "whose, plgpu::REGS(shape, dtype).on(mesh_number)";
  return "";
}

// Bodies that did not capture it have it, too.
void insert_captured(Recorder& recorder, std::size_t c, const Extents& extents) {
  graph::Graph& g = recorder.graph;
  const Captured& captured = recorder.captured[c];
  for (std::size_t b = 0; b < g.bodies.size(); ++b) {
    const auto fresh = [&] {
      return g.add(
          {.op = Op::Param, .type = Type::ref(captured.array.dtype(), extents, Space::gmem)},
          captured.at);
    };
    const ValueId own = b < captured.refs.size() ? captured.refs[b] : graph::no_value;
    const ValueId output = own == graph::no_value ? fresh() : own, input = fresh();
    std::vector<ValueId>& params = g[g.bodies[b].region].params;
    std::erase(params, own);
    const auto at = static_cast<std::ptrdiff_t>(g.arguments.size());
    params.insert(params.begin() + at + g.mapping.num_outputs, output);
    params.insert(params.begin() + at, input);
  }
}

namespace {

// Of memory of the launch the whole; of memory of clusters and blocks the part that is the block's:
// it has a dimension for each axis along which there are parts before its own.
BlockMapping mapping_of(const Global& global, const graph::Graph& g) {
  BlockMapping m;
  m.origin = global.origin;
  m.memory_space = global.space;
  m.array_aval.dtype = global.type.dtype;
  m.alignment = global.type.dtype.bytes();
  const auto add = [&](const BlockDim& block, const Dim& extent) {
    m.block_shape.push_back(block);
    m.array_aval.shape.push_back(extent);
  };
  if (global.of_cluster)
    for (const Dim& programs : g.mapping.grid) add({BlockDim::Kind::squeezed, 1}, programs);
  for (const std::size_t axis : global.apart) add({BlockDim::Kind::squeezed, 1}, g.cluster[axis]);
  for (const Dim& extent : global.type.shape) add(BlockDim::all_of(extent), extent);
  return m;
}

RegionIndex index_map_of(const Global& global, Recorder& recorder) {
  graph::Graph& g = recorder.graph;
  const RegionId region = g.add_region();
  recorder.enter(region);
  graph::Builder builder = recorder.builder();
  std::vector<ValueId> ids, yields;
  for (std::size_t i = 0; i < g.mapping.grid.size(); ++i)
    ids.push_back(builder.param(Type::value(i32), global.at));
  if (global.of_cluster) yields = ids;
  for (const std::size_t axis : global.apart)
    yields.push_back(builder.add(
        Op::AxisIndex, {},
        Attr{{static_cast<std::int64_t>(graph::AxisKind::cluster), static_cast<std::int64_t>(axis)},
             0},
        {}, global.at));
  for (int d = 0; d < global.type.shape.rank(); ++d)
    yields.push_back(builder.constant(i32, 0, {}, global.at));
  builder.yield(std::move(yields));
  recorder.leave();
  return graph::index(region);
}

}  // namespace

void add_globals(Recorder& recorder) {
  graph::Graph& g = recorder.graph;
  for (const Global& global : recorder.globals) {
    BlockMapping m = mapping_of(global, g);
    m.index_map = index_map_of(global, recorder);
    g.mapping.block_mappings.push_back(std::move(m));
    for (std::size_t b = 0; b < g.bodies.size(); ++b) {
      const bool knows = b < global.refs.size() && global.refs[b] != graph::no_value;
      const ValueId ref =
          knows ? global.refs[b]
                : g.add({.op = Op::Param,
                         .type = Type::ref(global.type.dtype, known_extents(global.type.shape),
                                           global.space)},
                        global.at);
      std::vector<ValueId>& params = g[g.bodies[b].region].params;
      std::erase(params, ref);
      params.insert(
          params.begin() + static_cast<std::ptrdiff_t>(g.arguments.size()) + g.mapping.num_outputs,
          ref);
    }
    ++g.mapping.num_outputs;
    ++g.num_globals;
  }
}

void settle_turns(graph::Graph& g) {
  std::set<ValueId> in_any_order;
  const auto array = [&](const graph::Inst& wait) { return g.root(wait.args[0]); };
  for (const graph::Inst& i : g.insts)
    if ((i.op == Op::BarrierWait && !graph::waits_in_turn(i)) || i.op == Op::BarrierTest)
      in_any_order.insert(array(i));
  for (graph::Inst& i : g.insts)
    if (i.op == Op::BarrierWait && in_any_order.contains(array(i))) i.attr = {};
}

namespace {

// In front of all else that the body does.
void begin_with_zero(graph::Graph& g, RegionId body, ValueId ref, Location at) {
  std::vector<ValueId> rest = std::exchange(g[body].insts, {});
  graph::Builder builder{g, body};
  builder.store(ref, builder.constant(i32, 0, {}, at), graph::no_value, at);
  g[body].insts.insert(g[body].insts.end(), rest.begin(), rest.end());
}

}  // namespace

void add_shared(Recorder& recorder) {
  graph::Graph& g = recorder.graph;
  for (const Recorder::Shared& shared : recorder.shared) {
    const std::size_t at = g.arguments.size() + static_cast<std::size_t>(g.mapping.num_outputs) +
                           g.mapping.scratch_avals.size();
    for (std::size_t b = 0; b < g.bodies.size(); ++b) {
      const ValueId ref =
          b == shared.body ? shared.ref : g.add({.op = Op::Param, .type = shared.type}, shared.at);
      std::vector<ValueId>& params = g[g.bodies[b].region].params;
      std::erase(params, ref);
      params.insert(params.begin() + static_cast<std::ptrdiff_t>(at), ref);
    }
    if (shared.zero) begin_with_zero(g, g.bodies[shared.body].region, shared.ref, shared.at);
    g.mapping.scratch_avals.push_back({{to_shape(shared.type.shape), shared.type.dtype},
                                       true,
                                       shared.type.space,
                                       {},
                                       shared.type.arrivals,
                                       shared.type.swizzle});
  }
}

}  // namespace palladium::trace
