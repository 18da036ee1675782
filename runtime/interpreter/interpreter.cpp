#include "runtime/interpreter/interpreter.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "codegen/base/shuffle.hpp"
#include "codegen/graph/debug.hpp"
#include "codegen/graph/extents.hpp"
#include "codegen/graph/grid_env.hpp"
#include "codegen/graph/packed.hpp"
#include "palladium/error.hpp"
#include "runtime/fiber/workers.hpp"
#include "runtime/interpreter/launch.hpp"
#include "runtime/interpreter/machine.hpp"

namespace palladium::interpreter {
namespace {

// The programs of a call: in order on one core, or shared out to several where that cannot be seen.
class Programs {
 public:
  explicit Programs(Launch& launch)
      : launch_(launch),
        count_(launch.num_places()),
        order_(count_, launch.options.seed.value_or(0)) {}

  void run() {
    if (launch_.is_concurrent) return Machine(launch_).run(0);
    if (cores() < 2) return run_in_order();
    if (run_shared()) return;
    // What went wrong, and what is told of it, is what one core meets first.
    launch_.forget_accesses();
    next_ = 0;
    run_in_order();
  }

 private:
  // So long a call stays on one core, unless others are asked for: to wake them takes a part of it.
  static constexpr std::chrono::microseconds alone{100};

  int cores() const {
    if (count_ < 2 || !is_repeatable()) return 1;
    return static_cast<int>(std::min<std::uint64_t>(
        count_, static_cast<std::uint64_t>(fiber::worker_count(launch_.options.cores))));
  }

  // Whether it does not matter that programs ran before, and in which order.
  bool is_repeatable() const {
    return launch_.graph.aliases.empty() && !launch_.graph.allow_revisit &&
           !launch_.options.detect_races && !updates() &&
           !graph::has_debug_op(launch_.graph, graph::Op::DebugPrint);
  }

  // What a program updates it has read and will write: others wait.
  bool updates() const {
    return std::ranges::any_of(
        launch_.graph.insts, [](const graph::Inst& inst) { return inst.op == graph::Op::Atomic; });
  }

  std::uint64_t place(std::uint64_t n) const { return launch_.options.seed ? order_(n) : n; }

  void run_in_order() {
    Machine machine(launch_);
    for (std::uint64_t n = next_; n < count_; ++n) machine.run(place(n));
  }

  // False where a program failed.
  bool run_shared() {
    using Clock = std::chrono::steady_clock;
    Machine mine(launch_);
    const Clock::time_point begin = Clock::now();
    while (launch_.options.cores == 0 && next_ < count_ && Clock::now() - begin < alone)
      mine.run(place(next_++));
    if (next_ == count_) return true;
    const std::thread::id here = std::this_thread::get_id();
    fiber::run_on_workers(cores(), [&]() noexcept {
      try {
        if (std::this_thread::get_id() == here) return take_turns(mine);
        Machine own(launch_);
        take_turns(own);
      } catch (...) {
        failed_ = true;
      }
    });
    return !failed_;
  }

  // A few programs at once: fewer meetings over `next_`, and none waits long for the other's last.
  void take_turns(Machine& machine) {
    const std::uint64_t share =
        std::max<std::uint64_t>(1, count_ / (32 * static_cast<std::uint64_t>(cores())));
    while (!failed_) {
      const std::uint64_t begin = next_.fetch_add(share);
      if (begin >= count_) return;
      for (std::uint64_t n = begin; n < std::min(begin + share, count_); ++n) machine.run(place(n));
    }
  }

  Launch& launch_;
  const std::uint64_t count_;
  const Shuffle order_;
  alignas(64) std::atomic<std::uint64_t> next_ = 0;
  alignas(64) std::atomic<bool> failed_ = false;
};

}  // namespace

namespace {

void run_sized(const graph::Graph& g, const Invocation& call, const Options& options) {
  Launch launch(g, call, options);
  Programs(launch).run();
  launch.find_unwritten();
}

}  // namespace

void run(const graph::Graph& g, const Invocation& call, const Options& options) {
  if (graph::has_grid_env(g.mapping)) {
    graph::Graph bound = g;
    graph::bind_grid(bound);
    return run(bound, call, options);
  }
  if (graph::has_packed(g)) return run(graph::in_bytes(g), call, options);
  if (graph::asks_sizes(g)) return run_sized(graph::with_sizes(g, call.symbols), call, options);
  run_sized(g, call, options);
}

void place_blocks(const graph::Graph& g, const Invocation& call) {
  graph::Graph placed = g;
  graph::bind_grid(placed);
  if (graph::has_packed(placed)) placed = graph::in_bytes(placed);
  if (graph::asks_sizes(placed)) placed = graph::with_sizes(placed, call.symbols);
  for (const graph::Body& body : placed.bodies) placed[body.region].insts.clear();
  const Options options{.cores = 1};
  Launch launch(placed, call, options);
  Machine machine(launch);
  const std::uint64_t count =
      launch.is_concurrent ? std::min<std::uint64_t>(1, launch.num_places()) : launch.num_places();
  for (std::uint64_t place = 0; place < count; ++place) machine.run(place);
}

std::uint64_t poison_bits(DType dtype) {
  switch (dtype.kind()) {
  case DType::None: break;
  case DType::Bool: return 1;
  case DType::F8E4M3: return 0x7f;
  case DType::F8E5M2: return 0x7e;
  case DType::F16: return 0x7e00;
  case DType::BF16: return 0x7fc0;
  case DType::F32: return 0x7fc00000;
  case DType::F64: return 0x7ff8000000000000;
  default: return dtype.is_signed() ? std::uint64_t(1) << (dtype.bits() - 1) : 0;
  }
  throw InternalError("interpreter: a value without a dtype");
}

}  // namespace palladium::interpreter
