#include "codegen/timeline/timeline.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/thread/occupancy.hpp"
#include "codegen/timeline/call.hpp"
#include "codegen/timeline/window.hpp"

namespace palladium::timeline {

using lowered::protocol::Answers;
using lowered::protocol::Detail;
using lowered::protocol::Step;
using lowered::protocol::Steps;

namespace {

constexpr std::int64_t most_events = 1 << 16;
constexpr int blocks_of_kernel = 9;

bool is_loop(const Step& s) {
  return s.kind == Step::Kind::loop && s.counts.front() >= least_iterations;
}

// The innermost loops that go on for long enough, in order, as all agents know them.
bool add_loops(const Steps& steps, std::vector<Repeated>& all) {
  bool any = false;
  for (const Step& s : steps) {
    bool inner = false;
    for (const Steps* part : {&s.prologue, &s.epilogue}) inner |= add_loops(*part, all);
    for (const Steps& body : s.bodies) inner |= add_loops(body, all);
    const bool is_known =
        std::ranges::any_of(all, [&](Repeated r) { return r->question == s.question; });
    if (is_loop(s) && !inner && !is_known) all.push_back(&s);
    any |= inner || is_loop(s);
  }
  return any;
}

class Maker {
 public:
  Maker(Model m, const Costs& costs, int blocks, std::int64_t of_each)
      : m_(std::move(m)), costs_(costs), blocks_(blocks), of_each_(of_each) {
    out_.device = costs.speeds().device;
  }

  Timeline run() {
    Answers most(true);
    if (!walk(m_, most, most_events, events_)) return unknown("its loops are too long to follow");
    std::vector<Repeated> loops;
    for (const Steps& steps : m_.steps) add_loops(steps, loops);
    const bool is_kernel = loops.empty();
    if (is_kernel) loops.push_back(nullptr);
    Trace trace = traced(1, is_kernel, 0);
    if (trace.is_stuck) return unknown("who waits for whom depends on other programs");
    if (blocks_ > 1) {
      const auto alone = Window(m_, events_, trace, loops.back(), 1).loop();
      trace = traced(blocks_, is_kernel, alone ? alone->cycles / blocks_ : 0);
    }
    std::vector<Steady> steady;
    for (const Repeated r : loops)
      if (auto loop = Window(m_, events_, trace, r, blocks_).loop()) {
        steady.push_back({r, loop->cycles});
        out_.loops.push_back(*std::move(loop));
      }
    constexpr double cycles_of_microsecond = 1e3;  // of a GHz
    if (of_each_ > 0)
      if (const auto cycles = cycles_of_call(m_, steady, trace, blocks_, of_each_))
        out_.microseconds = *cycles / (costs_.speeds().ghz * cycles_of_microsecond);
    return out_.loops.empty() ? unknown("nothing in it comes often enough") : std::move(out_);
  }

 private:
  // Blocks that begin together would do the same at the same time, which they do not for long.
  Trace traced(int blocks, bool is_kernel, double apart) const {
    return Run(m_, costs_, events_)(blocks, is_kernel ? blocks_of_kernel : 1, apart);
  }
  Timeline unknown(std::string why) {
    out_.unknown = std::move(why);
    return std::move(out_);
  }

  const Model m_;
  const Costs& costs_;
  const int blocks_;
  const std::int64_t of_each_;  // programs that come to a multiprocessor; 0: a call says it
  Events events_;
  Timeline out_;
};

}  // namespace

// Who sets registers takes all of them.
int blocks_of(const lowered::Program& l, int threads, std::int64_t shared_bytes) {
  constexpr std::int64_t besides = 40, most = 255;
  bool sets = false;
  lowered::for_each_list(l, [&](const lowered::Statements& list) {
    for (const lowered::Statement& s : list)
      sets |= std::holds_alternative<lowered::SetRegisters>(s.what);
  });
  if (sets) return 1;
  const Resources resources{.registers = static_cast<int>(std::min(most, l.most_held + besides)),
                            .shared_bytes = static_cast<int>(shared_bytes)};
  return thread::occupancy(l.machine.compute_capability, threads, resources).blocks;
}

Timeline timeline_of(Model m, const Costs& costs, int blocks, std::int64_t of_each) {
  return Maker(std::move(m), costs, std::max(1, blocks), of_each).run();
}

Timeline timeline_of(const lowered::Program& l, const thread::Program& p, int blocks) {
  const int cc = l.machine.compute_capability;
  const Speeds* const speeds = speeds_of(cc);
  if (speeds == nullptr)
    return {.unknown = fmt::format("how fast the parts of sm_{} are is not known", cc)};
  const int at_once = blocks > 0 ? blocks : blocks_of(l, p.threads, p.shared_bytes);
  const int of_each = thread::blocks_of_call(l.graph, cc);
  return timeline_of(lowered::protocol::model_of(l, Detail::statements), Costs(l, p, *speeds),
                     std::min(at_once, of_each), thread::programs_of_call(l.graph) ? of_each : 0);
}

}  // namespace palladium::timeline
