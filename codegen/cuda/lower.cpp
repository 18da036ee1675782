// From a canonical graph through the passes of the lowered and of the thread program to the text.
#include "codegen/cuda/lower.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/environment.hpp"
#include "codegen/base/format.hpp"
#include "codegen/cuda/choose.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/printer.hpp"
#include "codegen/expand/expand.hpp"
#include "codegen/graph/cost.hpp"
#include "codegen/graph/grid_env.hpp"
#include "codegen/graph/inline.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/graph/packed.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/protocol.hpp"
#include "codegen/lowered/protocol_table.hpp"
#include "codegen/passes/shared_memory.hpp"
#include "codegen/thread/occupancy.hpp"
#include "codegen/thread/report.hpp"
#include "codegen/timeline/timeline.hpp"
#include "palladium/error.hpp"

namespace palladium::cuda {
namespace {

// What no block, or no GPU of the architecture, can be. Shared memory is counted by its pass.
void check_limits(const graph::Graph& g, const lowered::Machine& machine) {
  if (graph::cluster_blocks(g) > 1 && !machine.has_clusters())
    throw CompileError(
        g.at, fmt::format("kernel '{}': a cluster of {} blocks needs sm_{} or "
                          "newer, given sm_{}",
                          g.name, graph::cluster_blocks(g), lowered::Machine::first_with_clusters,
                          machine.compute_capability));
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

using Verdict = lowered::Protocol::Verdict;

// What is to be said of barriers and copies that the user says.
void remark_by_hand(lowered::Program& l) {
  if (!l.written) return;
  lowered::Protocol p = lowered::protocol_of(l);
  if (p.at.line == 0) p.at = l.graph.at;
  if (p.verdict == Verdict::counterexample)
    l.remarks.push_back({p.at, "its barriers and copies by hand do not go together: " + p.why});
  if (p.verdict == Verdict::not_explored)
    l.remarks.push_back(
        {p.at, "whether its barriers and copies by hand go together is not explored: " + p.why});
}

// Where all is checked a counterexample is an error: of who wants the text.
void refuse_by_hand(const lowered::Program& l) {
  if (!l.written || environment::checked(environment::Variable::verify) != "1") return;
  const lowered::Protocol p = lowered::protocol_of(l);
  if (p.verdict == Verdict::counterexample)
    throw CompileError(p.at, fmt::format("kernel '{}': {}\n{}", l.graph.name, p.why,
                                         lowered::protocol::table_of(p.steps)));
}

struct ThreadPass {
  const char* name;
  void (*run)(thread::Program&);
};

constexpr ThreadPass thread_passes[] = {
    {"drop_unused", thread::drop_unused},  // coordinates that no access needed
    {"join_loops", thread::join_loops},
    {"begin_folds", thread::begin_folds},  // of which joined loops are more
    {"load_first", thread::load_first},    // innermost loops first: behind what joins them
    {"guard_last", thread::guard_last},
    {"part_products", thread::part_products},
    {"number_temporaries", thread::number_temporaries},  // last: in the order of the text
};

}  // namespace

lowered::Program lower(const graph::Graph& g, const Options& options,
                       const passes::Observer& observer) {
  if (graph::has_grid_env(g.mapping)) {
    graph::Graph bound = g;
    graph::bind_grid(bound);
    return lower(graph::canonicalize(bound), options, observer);
  }
  if (graph::Graph spelled = g; graph::forget_meanings(spelled))
    return lower(graph::canonicalize(spelled), options, observer);
  if (graph::has_packed(g)) return lower(graph::in_bytes(g), options, observer);
  const int cc = options.compute_capability;
  const lowered::Machine machine{
      cc, options.is_specific,
      std::min(thread::multiprocessor(cc).block_shared_bytes, options.most_shared_bytes)};
  check_limits(g, machine);
  Size(g, options.most_operations).require_possible();
  Chosen chosen = choose(g, machine);
  lowered::Program l = observer
                           ? passes::run_passes(chosen.graph ? *chosen.graph : g, machine, observer)
                           : std::move(chosen.program);
  if (!options.bounds_launch) l.min_blocks = 1;
  if (!chosen.why.empty()) l.remarks.push_back({{}, std::move(chosen.why)});
  remark_by_hand(l);
  return l;
}

thread::Program thread_program(const lowered::Program& l, const ThreadObserver& observer) {
  const auto run = [&](const char* name, auto&& pass) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      pass();
    } catch (const InternalError& error) {
      throw InternalError(fmt::format("{}\n  in the pass {} of kernel '{}'\n{}", error.what(), name,
                                      l.graph.name, lowered::to_text(l)));
    }
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  };
  thread::Program p;
  const double expanded = run("expand", [&] { p = expand::expand(l); });
  if (observer) observer("expand", expanded, p);
  for (const ThreadPass& pass : thread_passes) {
    const double ms = run(pass.name, [&] { pass.run(p); });
    if (observer) observer(pass.name, ms, p);
  }
#ifndef NDEBUG
  run("verify", [&] { thread::verify(p); });
#endif
  return p;
}

Emitted emit(const graph::Graph& g, const Options& options) {
  const lowered::Program l = lower(g, options);
  refuse_by_hand(l);
  return emit(l);
}

Emitted emit(const lowered::Program& l) {
  const thread::Program p = thread_program(l);
  Printed printed = print(p);
  return {.text = std::move(printed.text),
          .entry = p.entry,
          .parameters = p.parameters,
          .threads = p.threads,
          .num_warps = l.num_warps,
          .min_blocks = l.min_blocks,
          .blocks = p.blocks,
          .persistent = p.persistent,
          .cluster_blocks = p.cluster_blocks,
          .shared_bytes = p.shared_bytes,
          .lines = std::move(printed.lines),
          .statements = std::move(printed.statements),
          .placements = std::move(printed.placements),
          .remarks = l.remarks};
}

Report report(const graph::Graph& g, const Options& options, int blocks) {
  const lowered::Program l = lower(g, options);
  const std::int64_t bytes = g.num_symbols == 0 ? graph::estimate_cost(g).bytes_accessed : 0;
  const thread::Program p = thread_program(l);
  Report report = thread::report(p, options.compute_capability, bytes);
  report.remarks = l.remarks;
  report.timeline = timeline::timeline_of(l, p, blocks);
  return report;
}

std::string shared_memory_problem(const graph::Graph& g, const Options& options) {
  try {
    (void)lower(g, options);
  } catch (const passes::SharedMemoryError& error) {
    return error.what();
  } catch (const Error&) {
    return "";
  }
  return "";
}

std::string describe(const graph::Graph& g, const Options& options) {
  return lowered::to_text(lower(g, options));
}

std::string schedule(const graph::Graph& g, const Options& options) {
  return lowered::schedule(lower(g, options));
}

std::vector<PassDump> pass_dumps(const graph::Graph& g, const Options& options) {
  std::vector<PassDump> dumps;
  const lowered::Program l =
      lower(g, options, [&](const passes::PassRun& run, const lowered::Program& behind) {
        dumps.push_back({run.attempt, run.pass, run.ms, false, lowered::to_text(behind)});
      });
  const std::string chosen = dumps.back().attempt;
  for (PassDump& d : dumps) d.chosen = d.attempt == chosen;
  (void)thread_program(l, [&](const char* pass, double ms, const thread::Program& behind) {
    dumps.push_back({chosen, pass, ms, true, print(behind).text});
  });
  return dumps;
}

}  // namespace palladium::cuda
