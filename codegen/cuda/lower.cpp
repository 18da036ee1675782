// The one place where the order of passes stands.
#include "codegen/cuda/lower.hpp"

#include <algorithm>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/printer.hpp"
#include "codegen/expand/expand.hpp"
#include "codegen/graph/cost.hpp"
#include "codegen/graph/grid_env.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/graph/packed.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/thread/occupancy.hpp"
#include "codegen/thread/report.hpp"
#include "palladium/error.hpp"

namespace palladium::cuda {
namespace {

struct Step {
  const char* name;
  void (*run)(passes::Lowered&);
};

constexpr Step steps[] = {
    {"split_scaled_sums", passes::split_scaled_sums},  // first: changes the graph
    {"legalize_dot_operands",
     passes::legalize_dot_operands},           // so does this: what do tensor cores take?
    {"place_windows", passes::place_windows},  // says which loads read memory
    {"swizzle_grid", passes::swizzle_grid},    // of windows: which programs read the same?
    {"hoist_invariants",
     passes::hoist_invariants},                // what nobody writes is the same in every iteration
    {"stage_windows", passes::stage_windows},  // before values: what is staged is cheap to read
    {"place_values", passes::place_values},    // whole or inlined: needs to know what is in memory
    {"build_statements", passes::build_statements},  // one loop nest per sink
    {"peel_first_iteration",
     passes::peel_first_iteration},              // as long as loops are what was written
    {"assign_layouts", passes::assign_layouts},  // all nests are known: costs can be weighed
    {"coalesce_accumulators", passes::coalesce_accumulators},  // of layouts: what can stand where?
    {"measure_registers", passes::measure_registers},  // of layouts: is the program wide enough?
};

// Of a program that is as wide as it will be.
constexpr Step last_steps[] = {
    {"check_registers", passes::check_registers},      // before memory: of two, the plainer error
    {"pad_staged_rows", passes::pad_staged_rows},      // of layouts: which banks do lanes read?
    {"choose_copies", passes::choose_copies},          // of layouts: what does a thread copy?
    {"fetch_windows", passes::fetch_windows},          // of rows: what does TMA copy instead?
    {"build_pipelines", passes::build_pipelines},      // how large is what is copied ahead?
    {"software_pipeline", passes::software_pipeline},  // of rings: what frees a slot when?
    {"place_shared_memory", passes::place_shared_memory},  // last: layouts add staging and scratch
};

// What no block, or no GPU of the architecture, can be. Shared memory is counted by its pass.
void check_limits(const graph::Graph& g, int cc) {
  constexpr int first_with_clusters = 90;
  if (graph::cluster_blocks(g) > 1 && cc < first_with_clusters)
    throw CompileError(g.at,
                       fmt::format("kernel '{}': a cluster of {} blocks needs sm_{} or "
                                   "newer, given sm_{}",
                                   g.name, graph::cluster_blocks(g), first_with_clusters, cc));
  std::int64_t threads = 0;
  for (const graph::Body& b : g.bodies)
    threads += std::int64_t{b.warpgroups} * graph::warpgroup_threads;
  if (threads > graph::most_threads)
    throw CompileError(g.at, fmt::format("kernel '{}': a block of {} warpgroups has {} threads; it "
                                         "can have {}",
                                         g.name, threads / graph::warpgroup_threads, threads,
                                         graph::most_threads));
}

// Counts the operations of a kernel, those of an unrolled loop as often as it is unrolled.
class Size {
 public:
  Size(const graph::Graph& g, std::int64_t most) : g_(g), most_(most) {}
  void require_possible() {
    for (const graph::Body& body : g_.bodies) add(body.region, 1);
  }

 private:
  void add(graph::RegionId r, std::int64_t times) {
    for (const graph::ValueId v : g_[r].insts) {
      const graph::Inst& i = g_[v];
      count_ += times;
      if (count_ > most_) refuse(v, times);
      const std::int64_t unrolled = i.op == graph::Op::Loop ? graph::LoopView::of(i).unroll : 1;
      for (const graph::RegionId inner : i.regions)
        add(inner, times * std::clamp<std::int64_t>(unrolled, 1, most_));
    }
  }

  [[noreturn]] void refuse(graph::ValueId v, std::int64_t times) const {
    const Location at = g_.location(v);
    throw CompileError(
        at.line ? at : g_.at,
        fmt::format("kernel '{}' has more than {} operations{}, which is the most "
                    "that is compiled for a kernel; repeat them by pl::loop{}",
                    g_.name, most_, times > 1 ? ", those of unrolled loops counted each time" : "",
                    times > 1 ? " without unroll" : ""));
  }

  const graph::Graph& g_;
  const std::int64_t most_;
  std::int64_t count_ = 0;
};

struct ThreadStep {
  const char* name;
  void (*run)(thread::Program&);
};

constexpr ThreadStep thread_steps[] = {
    {"place_barriers", thread::place_barriers},  // before names go: calls may be all that is left
    {"drop_unused", thread::drop_unused},        // coordinates that no access needed
    {"join_loops", thread::join_loops},
    {"begin_folds", thread::begin_folds},  // of which joined loops are more
    {"load_first", thread::load_first},    // innermost loops first: behind what joins them
    {"number_temporaries", thread::number_temporaries},  // last: in the order of the text
};

std::vector<int> uses_of(const graph::Graph& g) {
  std::vector<int> uses(g.insts.size());
  for (const graph::Inst& i : g.insts)
    for (const graph::ValueId a : i.args) ++uses[graph::index(a)];
  return uses;
}

passes::Lowered laid_out(const graph::Graph& g, const Options& options, int num_warps,
                         bool may_stage) {
  const int cc = options.compute_capability;
  passes::Lowered l{.graph = g,
                    .machine = {cc, options.is_specific,
                                std::min(thread::multiprocessor(cc).block_shared_bytes,
                                         options.most_shared_bytes)},
                    .uses = uses_of(g)};
  l.num_warps = num_warps;
  l.may_stage = may_stage;
  for (const Step& s : steps) s.run(l);
  return l;
}

// The narrowest program whose values fit its registers, as far as more threads help.
passes::Lowered chosen(const graph::Graph& g, const Options& options, bool may_stage) {
  passes::Lowered l = laid_out(g, options, 4, may_stage);
  if (g.bodies.size() > 1 || g.bodies[0].warpgroups > 1) return l;
  std::string why;
  while (2 * l.num_warps <= layout::most_warps) {
    std::string reason = passes::reason_to_widen(l);
    if (reason.empty()) break;
    passes::Lowered wider = laid_out(g, options, 2 * l.num_warps, may_stage);
    if (!passes::gains(l, wider)) break;
    l = std::move(wider);
    why = std::move(reason);
  }
  if (!why.empty()) l.remarks.push_back({{}, fmt::format("{} warps: {}", l.num_warps, why)});
  return l;
}

}  // namespace

passes::Lowered lower(const graph::Graph& g, const Options& options) {
  if (graph::has_grid_env(g.mapping)) {
    graph::Graph bound = g;
    graph::bind_grid(bound);
    return lower(graph::canonicalize(bound), options);
  }
  if (graph::has_packed(g)) return lower(graph::in_bytes(g), options);
  check_limits(g, options.compute_capability);
  Size(g, options.most_operations).require_possible();
  const int given = g.bodies[0].num_warps;
  const auto laid = [&](bool may_stage) {
    return given == 0 ? chosen(g, options, may_stage) : laid_out(g, options, given, may_stage);
  };
  passes::Lowered l = laid(true);
  if (passes::stages_too_much(l)) l = laid(false);
  for (const Step& s : last_steps) s.run(l);
  return l;
}

thread::Program thread_program(const passes::Lowered& l) {
  thread::Program p = expand::expand(l);
  for (const ThreadStep& s : thread_steps) s.run(p);
#ifndef NDEBUG
  thread::verify(p);
#endif
  return p;
}

Emitted emit(const graph::Graph& g, const Options& options) {
  const passes::Lowered l = lower(g, options);
  const thread::Program p = thread_program(l);
  Printed printed = print(p);
  return {.text = std::move(printed.text),
          .entry = p.entry,
          .parameters = p.parameters,
          .threads = p.threads,
          .num_warps = l.num_warps,
          .blocks = p.blocks,
          .persistent = p.persistent,
          .cluster_blocks = p.cluster_blocks,
          .shared_bytes = p.shared_bytes,
          .lines = std::move(printed.lines),
          .remarks = l.remarks};
}

Report report(const graph::Graph& g, const Options& options) {
  const passes::Lowered l = lower(g, options);
  const std::int64_t bytes = g.num_symbols == 0 ? graph::estimate_cost(g).bytes_accessed : 0;
  Report report = thread::report(thread_program(l), options.compute_capability, bytes);
  report.remarks = l.remarks;
  return report;
}

std::string describe(const graph::Graph& g, const Options& options) {
  return passes::to_text(lower(g, options));
}

}  // namespace palladium::cuda
