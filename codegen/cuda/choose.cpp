#include "codegen/cuda/choose.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/passes/run.hpp"
#include "codegen/thread/occupancy.hpp"
#include "codegen/timeline/speeds.hpp"
#include "codegen/timeline/timeline.hpp"
#include "palladium/error.hpp"

namespace palladium::cuda {
namespace {

constexpr std::size_t most_insts = 1000;  // of a graph that is lowered again
constexpr double gain = 0.85;             // of the clocks: predictions may be wrong by as much
constexpr double same = 1.02;
constexpr int iterations = 16;                // of each loop, beside what stands around it
constexpr std::int64_t fewest_registers = 8;  // of a value, that more threads share

// What a multiprocessor takes for a block.
struct Prediction {
  std::vector<double> loops = {};  // clocks for an iteration of each
  double around = 0;
  double fraction = 1;  // of the time that memory or tensor cores are busy, in the worst loop

  double clocks() const {
    double sum = around / iterations;
    for (const double of_loop : loops) sum += of_loop;
    return sum;
  }
  bool is_better(const Prediction& than) const {
    return loops.size() == than.loops.size() && clocks() <= gain * than.clocks() &&
           std::ranges::equal(loops, than.loops,
                              [](double now, double then) { return now <= same * then; });
  }
};

std::optional<Prediction> predict(const lowered::Program& l) {
  const Timeline t = timeline::timeline_of(l, thread_program(l));
  if (t.loops.empty()) return {};
  Prediction all;
  for (const Timeline::Loop& loop : t.loops) {
    all.loops.push_back(loop.cycles / loop.blocks);
    all.around += loop.around / loop.blocks;
    all.fraction = std::min(all.fraction, loop.fraction);
  }
  return all;
}

int slots(const lowered::Program& l) {
  int most = 0;
  for (const lowered::Ring& r : l.rings) most = std::max(most, r.slots);
  return most;
}

class Choice {
 public:
  Choice(const graph::Graph& g, const lowered::Machine& machine)
      : g_(g), machine_(machine), best_{.program = passes::run_passes(g, machine)} {}

  Chosen run() {
    const bool is_known = timeline::speeds_of(machine_.compute_capability) != nullptr;
    if (!is_known || g_.insts.size() > most_insts || g_.bodies.size() > 1 ||
        g_.bodies[0].warpgroups > 1)
      return std::move(best_);
    const std::vector<int> warps = wider(), stages = fewer_stages();
    if (warps.empty() && stages.empty()) return std::move(best_);
    by_rules_ = least_ = predict(best_.program);
    // What is at its limit for as much of the time leaves no such gain.
    if (!by_rules_ || by_rules_->fraction >= gain) return std::move(best_);
    const int warps_then = best_.program.num_warps, stages_then = slots(best_.program);
    for (const int n : warps)
      if (!try_with(&graph::Body::num_warps, n, "warps", warps_then)) break;
    for (const int n : stages) try_with(&graph::Body::num_stages, n, "stages", stages_then);
    return std::move(best_);
  }

 private:
  // Products of wgmma have the width that their rows ask for.
  std::vector<int> wider() const {
    const lowered::Program& l = best_.program;
    std::vector<int> all;
    if (g_.bodies[0].num_warps > 0 || l.wgmma_products > 0 || passes::is_of_a_warpgroup(g_))
      return all;
    std::int64_t held = l.largest_held;
    for (int n = 2 * l.num_warps; n <= layout::most_warps && held >= fewest_registers; n *= 2) {
      all.push_back(n);
      held /= 2;
    }
    return all;
  }

  // With which another block has room beside those that there are.
  std::vector<int> fewer_stages() const {
    const lowered::Program& l = best_.program;
    std::vector<int> all;
    if (g_.bodies[0].num_stages > 0) return all;
    const auto blocks = [&](int stages) {
      std::int64_t bytes = l.shared_bytes;
      for (const lowered::Ring& r : l.rings) bytes -= std::max(0, r.slots - stages) * r.slot_bytes;
      return std::min(timeline::blocks_of(l, l.threads() * l.warpgroups, bytes),
                      thread::blocks_of_call(g_, machine_.compute_capability));
    };
    for (int n = slots(l) - 1; n >= 2; --n)
      if (blocks(n) > blocks(n + 1)) all.push_back(n);
    return all;
  }

  // Whether it is the best so far.
  bool try_with(int graph::Body::*option, int n, const char* of, int then) {
    graph::Graph other = g_;
    other.bodies[0].*option = n;
    try {
      lowered::Program l = passes::run_passes(other, machine_);
      const std::optional<Prediction> p = predict(l);
      if (!p || !p->is_better(*by_rules_) || p->clocks() >= least_->clocks()) return false;
      least_ = p;
      best_ = {std::move(l), std::move(other),
               fmt::format("{} {}: a multiprocessor takes {:.0f} clocks for an iteration of a "
                           "block by the timeline, {:.0f} with {}",
                           n, of, p->clocks(), by_rules_->clocks(), then)};
      return true;
    } catch (const CompileError&) {
      return false;  // it has no room
    }
  }

  const graph::Graph& g_;
  const lowered::Machine& machine_;
  Chosen best_;
  std::optional<Prediction> by_rules_, least_;
};

}  // namespace

Chosen choose(const graph::Graph& g, const lowered::Machine& machine) {
  return Choice(g, machine).run();
}

}  // namespace palladium::cuda
