// when, loop, while_loop, cond, switch_ and run_scoped.
#include <algorithm>
#include <memory>
#include <string_view>

#include "codegen/graph/limits.hpp"
#include "codegen/graph/warps.hpp"
#include "codegen/trace/accumulators.hpp"
#include "codegen/trace/body.hpp"
#include "codegen/trace/clusters.hpp"
#include "codegen/trace/inline.hpp"
#include "codegen/trace/recorder.hpp"
#include "codegen/trace/unions.hpp"
#include "palladium/control.hpp"
#include "palladium/error.hpp"
#include "palladium/scoped.hpp"

namespace palladium::detail {

using graph::ValueId;
using trace::Attr;
using trace::Op;
using trace::Recorder;
using trace::RegionId;
using trace::Type;

struct Building::State {
  State(Op op, const char* what, Mark& mark, Location at)
      : recorder(Recorder::current(what, at)),
        op(op),
        what(what),
        mark(mark),
        at(at),
        depth(recorder.depth()) {
    graph::check_nesting(depth - 1, op, at);
  }

  void take_carries(const Value* init, int count);
  void start(int count);
  void open();
  void name_refs();
  ValueId carry_param(std::size_t i) const;
  std::vector<ValueId> next_carries(const Value* yielded);
  std::vector<ValueId> meant(const Value* yielded, int count) const;
  std::vector<trace::Lengths> lengths_of_results() const;
  void close(const Value* yielded, int count);
  void check_warps() const;
  void join_branches();
  void finish();

  std::string branch_name(std::size_t n) const;
  Type type_of_result(std::size_t i, std::size_t branch, DType of_literals) const;
  void check_branches(std::size_t i, std::size_t branch, DType of_literals) const;
  DType dtype_of_literals(std::size_t i) const;

  Recorder& recorder;
  Op op;
  const char* what;
  Mark& mark;  // of the expression
  Location at;
  std::size_t depth;
  std::vector<RegionId> regions = {};  // in the order in which they are recorded
  std::size_t closed = 0;              // of these
  std::vector<ValueId> args = {};
  Attr attr = {};
  std::vector<Type> carried = {};
  std::vector<trace::Lengths> lengths = {};       // of these, if they are values
  std::vector<MaybeValue> inits = {};             // of a scope's own memory, by those
  std::vector<std::vector<Value>> returned = {};  // of each branch
  std::vector<trace::BodyOperand> refs = {};      // of a scope ...
  std::vector<std::string> names = {};            // ... and what the user calls them
  struct Member {
    std::size_t number = 0;  // of these
    Scoped scratch = {};
    Type type = {};
  };
  std::vector<Member> members = {};  // of unions
  std::unique_ptr<Operands> operands = {};
  bool gives = false;  // there are results
  trace::Touched touched = {};
  ValueId done = graph::no_value;
};

// ---- what decides while tracing

bool Building::is_literal(const char* what, const Bound& condition) {
  trace::expect_given(Access::value(condition), what, Access::at(condition));
  return trace::is_literal(Access::value(condition));
}

bool Building::truth(const Bound& condition) {
  return trace::literal(Access::value(condition)).number() != 0;
}

int Building::branch(const Bound& index, int branches) {
  if (!is_literal("switch_", index)) return -1;
  const trace::Literal given = trace::literal(Access::value(index));
  if (!given.is_integer())
    throw CompileError(
        Access::at(index),
        std::string("switch_: the index must be an integer, given ") + given.dtype().name());
  if (given.kind == trace::Literal::Kind::natural) return branches - 1;
  return static_cast<int>(std::clamp<std::int64_t>(given.integer, 0, branches - 1));
}

void Building::no_branches(const Bound& index) {
  throw CompileError(Access::at(index), "switch_: expected at least one branch, given none");
}

namespace {

// A scalar as a bool[].
ValueId predicate(Recorder& recorder, Value c, const char* what, const char* role, Location at) {
  const Type type = recorder.graph[recorder.typed(c, what, at)].type;
  if (!type.is_scalar())
    throw CompileError(at, std::string(what) + ": the " + role + " must be a scalar, given " +
                               graph::to_string(type) +
                               "; reduce it (pl::max(c)), or choose per element by pl::where or a "
                               "mask");
  if (trace::is_literal(c)) c = Value(trace::literal(c).number() != 0);
  if (!type.dtype.is_bool() && !trace::is_literal(c))
    c = trace::elementwise(Op::Ne, {c, Value(0)}, at);
  return recorder.typed(c, bool_, what, at);
}

Attr loop_attributes(const LoopOptions& options, const Value& lo, const Value& hi, const char* what,
                     Location at) {
  const std::string name = what;
  if (options.step < 1)
    throw CompileError(at,
                       name + ": the step must be positive, given " + std::to_string(options.step));
  if (options.step > INT32_MAX)
    throw CompileError(at, name + ": the counter is an i32, which has no room for a step of " +
                               std::to_string(options.step));
  if (options.unroll < 0)
    throw CompileError(
        at, name + ": unroll must not be negative, given " + std::to_string(options.unroll));
  std::int64_t unroll = options.unroll;
  if (unroll != 1) {
    const Recorder& recorder = Recorder::current(what, at);
    const Value first = recorder.as_number(lo), end = recorder.as_number(hi);
    if (!trace::is_literal(first) || !trace::is_literal(end))
      throw CompileError(at, name + ": unroll needs bounds that are C++ numbers");
    const std::int64_t span = trace::literal(end).integer - trace::literal(first).integer;
    const std::int64_t trips =
        std::max<std::int64_t>(1, cdiv(std::max<std::int64_t>(span, 0), options.step));
    unroll = unroll == 0 ? trips : std::min(unroll, trips);
    if (unroll > graph::max_compiled)
      throw CompileError(at, name + ": unrolled " + std::to_string(unroll) + " times, at most " +
                                 std::to_string(graph::max_compiled) +
                                 " operations are compiled for a kernel");
  }
  return {{options.step, unroll}, 0};
}

}  // namespace

// ---- the operations

Building::Building(const Bound& condition) {
  const Location at = Access::at(condition);
  auto state = std::make_unique<State>(Op::When, "when", Access::mark(condition), at);
  state->args = {predicate(state->recorder, Access::value(condition), "when", "condition", at)};
  state->start(1);
  state_ = state.release();
}

Building::Building(const Bound& lo, const Bound& hi, const LoopOptions& options, const Value* init,
                   int count) {
  const Location at = Access::at(lo);
  auto state = std::make_unique<State>(Op::Loop, "loop", Access::mark(lo), at);
  Recorder& recorder = state->recorder;
  state->args = {recorder.i32_scalar(Access::value(lo), "loop", "the lower bound", at),
                 recorder.i32_scalar(Access::value(hi), "loop", "the upper bound", Access::at(hi))};
  state->attr = loop_attributes(options, Access::value(lo), Access::value(hi), "loop", at);
  state->take_carries(init, count);
  state->start(1);
  state_ = state.release();
}

Building::Building(const ScanOptions& options, const Value* init, int count,
                   const Expression& expression) {
  const Location at = Access::at(expression);
  auto state = std::make_unique<State>(Op::Loop, "scan", Access::mark(expression), at);
  if (options.length < 0 || options.length > INT32_MAX)
    throw CompileError(at, "scan: the length must be in 0 to " + std::to_string(INT32_MAX) +
                               ", given " + std::to_string(options.length));
  Recorder& recorder = state->recorder;
  state->args = {recorder.i32_scalar(0, "scan", "the first index", at),
                 recorder.i32_scalar(options.length, "scan", "the length", at)};
  state->attr =
      loop_attributes({.step = 1, .unroll = options.unroll}, 0, options.length, "scan", at);
  state->take_carries(init, count);
  state->start(1);
  state_ = state.release();
}

Building::Building(const Value* init, int count, const Expression& expression) {
  auto state = std::make_unique<State>(Op::While, "while_loop", Access::mark(expression),
                                       Access::at(expression));
  state->take_carries(init, count);
  state->start(2);
  state_ = state.release();
}

Building::Building(const Bound& first, const Value* others, int count) {
  auto state =
      std::make_unique<State>(Op::While, "while_loop", Access::mark(first), Access::at(first));
  const Value value = Access::value(first);
  state->take_carries(&value, 1);
  state->take_carries(others, count);
  state->start(2);
  state_ = state.release();
}

Building::Building(const char* what, const Bound& which, int branches) {
  const Location at = Access::at(which);
  auto state = std::make_unique<State>(Op::Switch, what, Access::mark(which), at);
  const Value& value = Access::value(which);
  const bool chooses = std::string_view(what) == "cond";
  state->args = {chooses ? predicate(state->recorder, value, what, "predicate", at)
                         : state->recorder.i32_scalar(value, what, "the index", at)};
  state->start(branches);
  state_ = state.release();
}

namespace {

/// Who has a scope's memory in common.
struct Sharers {
  bool threads = false;                // all of its body
  std::vector<int> cluster_axes = {};  // blocks that differ along them
  std::string cluster_axis = {};       // one of their names
};

Sharers sharers_of(const Recorder& recorder, const ScopedOptions& options, Location at) {
  Sharers all;
  for (const std::string& name : options.collective_axes) {
    const trace::NamedAxis axis = trace::axis_named(recorder, name.c_str(), "run_scoped", at);
    if (axis.kind == graph::AxisKind::grid)
      throw CompileError(at, "run_scoped: programs that differ along the grid axis '" + name +
                                 "' have no memory in common; only threads of a block have, and "
                                 "for semaphores blocks of a cluster");
    if (axis.kind == graph::AxisKind::cluster) {
      all.cluster_axes.push_back(axis.number);
      all.cluster_axis = name;
      continue;
    }
    if (axis.number != static_cast<int>(recorder.body))
      throw CompileError(at, "run_scoped: '" + name +
                                 "' is the thread axis of another body, whose threads do not run "
                                 "this scope");
    all.threads = true;
  }
  return all;
}

// Counters of the block, or of those of its cluster that share them, from the kernel's start to its
// end.
ValueId scoped_semaphores(Recorder& recorder, const ShapeDtype& type, const Sharers& sharers,
                          Location at) {
  std::vector<std::size_t> apart;
  for (std::size_t axis = 0; axis < recorder.graph.cluster.size(); ++axis)
    if (std::ranges::find(sharers.cluster_axes, static_cast<int>(axis)) ==
        sharers.cluster_axes.end())
      apart.push_back(axis);
  const std::size_t number = recorder.globals.size();
  recorder.globals.push_back({type, Space::semaphore, true, std::move(apart),
                              "scoped[" + std::to_string(number) + "]", at});
  return recorder.global(number);
}

// Barriers are those of the block, from the kernel's start to its end.
void expect_all_threads(const Recorder& recorder, const Sharers& sharers, const std::string& who,
                        Location at) {
  if (!recorder.may_capture)
    throw CompileError(
        at, "run_scoped: " + who + " is a barrier, which only bodies of a pl::kernel can have");
  const trace::Threads& threads = recorder.threads[recorder.body];
  if (threads.count > 1 && !sharers.threads)
    throw CompileError(at, "run_scoped: " + who + " is a barrier, which is of all " +
                               std::to_string(threads.count) + " threads: .collective_axes = {\"" +
                               threads.name + "\"}");
}

// Where blocks of a cluster may see each other's memory, that of one thread is the block's, and its
// own from the kernel's start to its end: others stand elsewhere in the kernel.
bool is_seen_by_blocks(const Recorder& recorder, const Scoped& scratch) {
  return scratch.space == Space::smem && recorder.may_capture &&
         graph::cluster_blocks(recorder.graph) > 1 && recorder.threads.size() == 1 &&
         recorder.threads[0].count == 1;
}

}  // namespace

Building::Building(const ScratchTypes& types, const ScopedOptions& options,
                   const Expression& expression) {
  const Location at = Access::at(expression);
  auto state = std::make_unique<State>(Op::Scoped, "run_scoped", Access::mark(expression), at);
  Recorder& recorder = state->recorder;
  const Sharers sharers = sharers_of(recorder, options, at);
  for (const NamedScoped& s : types.list) {
    const std::string who = s.name.empty() ? "scratch[" + std::to_string(state->refs.size()) + "]"
                                           : "scratch '" + s.name + "'";
    const bool counts = s.type.space == Space::semaphore && recorder.may_capture;
    Scoped memory = s.type;
    if (counts) memory.space = Space::smem;
    ShapeDtype type;
    if (const std::string problem = trace::scratch_problem(memory, who, type); !problem.empty())
      throw CompileError(s.type.at.line ? s.type.at : at, "run_scoped: " + problem);
    state->refs.push_back({who, false, graph::no_value});
    state->names.push_back(s.name);
    if (counts) {
      state->refs.back().param = scoped_semaphores(recorder, type, sharers, at);
      continue;
    }
    if (!sharers.cluster_axes.empty())
      throw CompileError(at,
                         "run_scoped: collective allocations along cluster axes are not supported, "
                         "given '" +
                             sharers.cluster_axis + "' for " + who +
                             "; only semaphores are those of several blocks");
    Type ref = Type::ref(type.dtype, trace::extents(type.shape), s.type.space,
                         trace::arrivals_of(recorder, s.type, at), trace::swizzle_given(s.type));
    if (trace::is_member(s.type)) {
      state->members.push_back({state->refs.size() - 1, s.type, ref});
      if (!trace::begins_union(s.type)) continue;
      ref = trace::type_of_union(s.type);
    }
    const bool is_barrier = s.type.space == Space::barrier;
    if (is_barrier) expect_all_threads(recorder, sharers, who, at);
    if (!sharers.threads && !is_barrier && !is_seen_by_blocks(recorder, s.type)) {
      state->carried.push_back(ref);
      state->inits.push_back(s.type.init);
      continue;
    }
    if (graph::is_own(s.type.space))
      throw CompileError(at, "run_scoped: " + who +
                                 " is in registers, which are a thread's own; with collective_axes "
                                 "it must be in SMEM");
    state->refs.back().param = recorder.share(ref, at);
    if (!s.type.collective_axes.empty())
      recorder.cluster_barriers.emplace_back(state->refs.back().param,
                                             trace::cluster_groups(recorder, s.type, at));
  }
  state->start(1);
  state_ = state.release();
}

Building::Building(const gpu::WarpMesh& mesh, const Expression& expression) {
  const Location at = Access::at(expression);
  Recorder& recorder = Recorder::current("core_map over a WarpMesh", at);
  const auto fail = [&](const std::string& what) {
    throw CompileError(at, "core_map over a WarpMesh: " + what);
  };
  if (recorder.warp_axis) fail("a WarpMesh is not inside of another");
  if (!recorder.may_capture)
    fail("kernel '" + recorder.graph.name +
         "' is no pl::kernel, whose Pallas threads alone have four warps");
  for (const trace::Threads& threads : recorder.threads)
    if (!mesh.axis_name.empty() && threads.name == mesh.axis_name)
      fail("axis '" + mesh.axis_name + "' is that of the threads already");
  for (const std::vector<std::string>* names :
       {&recorder.graph.mapping.grid_names, &recorder.graph.cluster_names})
    if (!mesh.axis_name.empty() && std::ranges::find(*names, mesh.axis_name) != names->end())
      fail("axis '" + mesh.axis_name + "' is that of grid or cluster already");
  auto state = std::make_unique<State>(Op::Warps, "core_map", Access::mark(expression), at);
  recorder.warp_axis = mesh.axis_name;
  state->start(1);
  state_ = state.release();
}

Building::Building(const InlineText& text, const Expression& expression) {
  const Location at = Access::at(expression);
  auto state = std::make_unique<State>(Op::InlineCuda, "inline_cuda", Access::mark(expression), at);
  trace::InlineParts parts = trace::parts_of(state->recorder, text);
  state->args = std::move(parts.args);
  state->attr = std::move(parts.attr);
  state->carried = std::move(parts.results);
  state->touched = std::move(parts.touched);
  state->gives = text.count > 0;
  if (!text.options.interpret) {
    state->finish();
    state_ = state.release();
    return;
  }
  state->regions.push_back(state->recorder.graph.add_region());
  state->recorder.enter(state->regions[0]);
  state_ = state.release();
}

Value Building::warp() const {
  const State& s = *state_;
  const auto kind = static_cast<std::int64_t>(graph::AxisKind::warp);
  return s.recorder.value(
      s.recorder.builder().add(Op::AxisIndex, {}, Attr{{kind, 0}, 0}, {}, s.at));
}

Operands& Building::operands() const { return *state_->operands; }

Building::~Building() {
  if (state_->op == Op::Warps) state_->recorder.warp_axis.reset();
  if (state_->done == graph::no_value) state_->recorder.unwind(state_->depth);
  delete state_;
}

void Building::State::take_carries(const Value* init, int count) {
  for (int i = 0; i < count; ++i) {
    args.push_back(recorder.typed(init[i], what, at));
    carried.push_back(recorder.graph[args.back()].type);
    lengths.push_back(recorder.lengths.of(args.back()));
  }
}

void Building::State::start(int count) {
  for (int i = 0; i < count; ++i) regions.push_back(recorder.graph.add_region());
  open();
}

void Building::State::open() {
  recorder.enter(regions[closed], graph::repeats(op));
  graph::Builder builder = recorder.builder();
  if (op == Op::Loop) builder.param(Type::value(i32), at);
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const ValueId param = builder.param(carried[i], at);
    if (i < lengths.size()) recorder.lengths.set(param, lengths[i]);
  }
  if (op == Op::Scoped) name_refs();
}

void Building::State::name_refs() {
  const std::vector<ValueId>& params = recorder.graph[regions[0]].params;
  std::size_t next = 0;
  ValueId all = graph::no_value;  // of a union
  for (std::size_t i = 0, member = 0; i < refs.size(); ++i) {
    const bool is_member = member < members.size() && members[member].number == i;
    const bool is_known = refs[i].param != graph::no_value;  // others know it too
    if (is_known && !is_member) continue;
    if (!is_known && (!is_member || trace::begins_union(members[member].scratch)))
      refs[i].param = params[next++];
    if (is_member) {
      const Member& m = members[member++];
      if (trace::begins_union(m.scratch)) all = refs[i].param;
      refs[i].param = trace::part_of_union(recorder, all, m.scratch, m.type, at);
    }
    if (names[i].empty()) continue;
    recorder.graph.names.resize(graph::index(refs[i].param) + 1);
    recorder.graph.names[graph::index(refs[i].param)] = names[i];
  }
  operands = trace::operands_of(recorder, refs, names, "run_scoped: ", "", at);
  for (std::size_t i = 0; i < inits.size(); ++i)
    if (carried[i].space == Space::accumulator)
      trace::begin_accumulator(recorder, recorder.graph[regions[0]].params[i], inits[i], at);
}

Value Building::index() const {
  return state_->recorder.value(state_->recorder.graph[state_->regions[0]].params[0]);
}

ValueId Building::State::carry_param(std::size_t i) const {
  return recorder.graph[regions[closed]].params[(op == Op::Loop ? 1 : 0) + i];
}

Value Building::carry(int i) const {
  return state_->recorder.value(state_->carry_param(static_cast<std::size_t>(i)));
}

void Building::close(const Value* yielded, int count) { state_->close(yielded, count); }

void Building::State::close(const Value* yielded, int count) {
  std::vector<ValueId> yields;
  if (op == Op::While && closed == 0)
    yields = {predicate(recorder, yielded[0], what, "condition", at)};
  else if (op == Op::Switch)
    for (Value& v : returned.emplace_back(yielded, yielded + count)) {
      trace::expect_given(v, what, at);
      if (!trace::is_literal(v))
        v = recorder.value(recorder.given_out(recorder.id(v, what, at), at));
    }
  else if (op == Op::InlineCuda)
    yields = meant(yielded, count);
  else if (op == Op::Scoped)
    for (int i = 0; i < count; ++i)
      yields.push_back(recorder.given_out(recorder.typed(yielded[i], what, at), at));
  else
    yields = next_carries(yielded);
  gives = count > 0;
  recorder.builder().yield(std::move(yields));
  trace::Touched here = recorder.leave();
  if (op == Op::Warps) check_warps();
  for (const trace::BodyOperand& own : refs)  // nobody else knows them
    for (std::vector<int>* memory : {&here.reads, &here.writes})
      std::erase(*memory, recorder.memory_of(own.param));
  touched.add(here);
  if (++closed < regions.size()) return open();
  if (op == Op::Switch) join_branches();
  finish();
}

void Building::State::check_warps() const {
  ValueId where = graph::no_value;
  const std::string problem = graph::warps_problem(recorder.graph, regions[0], where);
  if (problem.empty()) return;
  const Location line = recorder.graph.location(where);
  throw CompileError(line.line ? line : at,
                     std::string(graph::info(recorder.graph[where].op).name) + ": " + problem);
}

// What the text gives, by what it means.
std::vector<ValueId> Building::State::meant(const Value* yielded, int count) const {
  if (count != std::ssize(carried))
    throw CompileError(at, "inline_cuda: the text has " + std::to_string(carried.size()) +
                               " results, but .interpret returns " + std::to_string(count));
  std::vector<ValueId> yields;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    yields.push_back(recorder.typed(yielded[i], carried[i].dtype, what, at, carried[i].shape));
    const Type& type = recorder.graph[yields.back()].type;
    if (!(type == carried[i]))
      throw CompileError(at, "inline_cuda: result " + std::to_string(i) + " is " +
                                 graph::to_string(carried[i]) + ", but .interpret returns " +
                                 graph::to_string(type));
  }
  return yields;
}

std::vector<ValueId> Building::State::next_carries(const Value* yielded) {
  std::vector<ValueId> yields;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const ValueId v = recorder.typed(yielded[i], carried[i].dtype, what, at);
    const Type& type = recorder.graph[v].type;
    if (!(type == carried[i]))
      throw CompileError(at, std::string(what) + ": carry " + std::to_string(i) + " starts as " +
                                 graph::to_string(carried[i]) + " but the body returns " +
                                 graph::to_string(type));
    yields.push_back(recorder.carried_on(v, carry_param(i), at));
  }
  return yields;
}

// ---- branches

std::string Building::State::branch_name(std::size_t n) const {
  if (op == Op::Switch && std::string_view(what) == "cond")
    return n == 0 ? "the true branch" : "the false branch";
  return "branch " + std::to_string(n);
}

// A literal is of the dtype that another branch gives, or else of that of all literals.
DType Building::State::dtype_of_literals(std::size_t i) const {
  DType dtype;
  for (const std::vector<Value>& values : returned) {
    const Value& v = values[i];
    if (!trace::is_literal(v)) return recorder.graph[ValueId{Access::id(v)}].type.dtype;
    const DType own = trace::literal(v).dtype();
    if (dtype == DType() || (own.is_float() && !dtype.is_bool())) dtype = own;
  }
  return dtype;
}

Type Building::State::type_of_result(std::size_t i, std::size_t branch, DType of_literals) const {
  const Value& v = returned[branch][i];
  if (!trace::is_literal(v)) return recorder.graph[ValueId{Access::id(v)}].type;
  const DType own = trace::literal(v).dtype();
  return Type::value(own.is_bool() || of_literals.is_bool() ? own : of_literals);
}

void Building::State::check_branches(std::size_t i, std::size_t branch, DType of_literals) const {
  const auto said = [&](std::size_t n) {
    const Value& v = returned[n][i];
    const Location line =
        trace::is_literal(v) ? Location{} : recorder.graph.location(ValueId{Access::id(v)});
    return graph::to_string(type_of_result(i, n, of_literals)) + " in " + branch_name(n) +
           (line.line == 0 ? "" : " (" + to_string(line) + ")");
  };
  if (type_of_result(i, 0, of_literals) == type_of_result(i, branch, of_literals)) return;
  throw CompileError(at, std::string(what) + ": result " + std::to_string(i) + " is " + said(0) +
                             " but " + said(branch));
}

void Building::State::join_branches() {
  for (std::size_t i = 0; i < returned[0].size(); ++i) {
    const DType of_literals = dtype_of_literals(i);
    for (std::size_t n = 0; n < returned.size(); ++n) {
      check_branches(i, n, of_literals);
      const Value& v = returned[n][i];
      ValueId id{Access::id(v)};
      if (trace::is_literal(v))
        id = graph::Builder(recorder.graph, regions[n])
                 .add(Op::Constant, {},
                      {{}, trace::to_bits(trace::literal(v), of_literals, what, at)},
                      Type::value(of_literals), at);
      recorder.graph[regions[n]].yields.push_back(id);
    }
  }
  // Of a bool, the region that is taken where it holds is the second.
  if (recorder.graph[args[0]].type.dtype.is_bool()) std::ranges::reverse(regions);
}

void Building::State::finish() {
  const bool is_effect = gives && !touched.writes.empty();
  if (is_effect) {
    std::vector<ValueId> operands = args;
    for (const RegionId r : regions) {
      const std::vector<ValueId>& insts = recorder.graph[r].insts;
      operands.insert(operands.end(), insts.begin(), insts.end());
    }
    recorder.check_effect(what, touched, operands, at);
  }
  done = recorder.builder().add(op, args, regions, attr, at);
  if (recorder.lengths.any()) recorder.lengths.set_results(done, lengths_of_results());
  recorder.note(touched);
  if (is_effect) recorder.mark_effect(what, touched, mark, at);
}

// Of carries those that they begin with, of branches those of any.
std::vector<trace::Lengths> Building::State::lengths_of_results() const {
  if (op != Op::Switch && op != Op::Scoped) return lengths;
  std::vector<trace::Lengths> all;
  for (const RegionId r : regions) {
    const std::vector<ValueId>& yields = recorder.graph[r].yields;
    all.resize(yields.size());
    for (std::size_t i = 0; i < yields.size(); ++i)
      trace::narrow(all[i], recorder.lengths.of(yields[i]));
  }
  return all;
}

Value Building::result(int i) const {
  Recorder& recorder = state_->recorder;
  return recorder.value(
      recorder.builder().add(Op::Get, {state_->done}, Attr{{i}, 0}, {}, state_->at));
}

}  // namespace palladium::detail
