// From a C++ lambda to CUDA C++: recording, passes, thread program and text, of graphs that are
// large or of an awkward form. CPU time, the least of several runs.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/timing.hpp"
#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/trace/trace.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"

using namespace palladium;
using pl::_;

namespace {

constexpr int compute_capability = 90;

struct Times {
  double trace, emit;
  std::size_t operations;
  std::string passes;  // that take longest
};

// All attempts of a pass together; each in wall time, and in a run of their own.
std::string longest_passes(const graph::Graph& g, const cuda::Options& options) {
  std::map<std::string, double> ms;
  const lowered::Program l = cuda::lower(
      g, options,
      [&](const passes::PassRun& run, const lowered::Program&) { ms[run.pass] += run.ms; });
  (void)cuda::thread_program(
      l, [&](const char* pass, double took, const thread::Program&) { ms[pass] += took; });
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [pass, took] : ms) order.emplace_back(took, pass);
  std::ranges::sort(order, std::greater<>());
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i)
    text += fmt::format("{}{} {:.2f}", i > 0 ? ", " : "", order[i].second, order[i].first);
  return text;
}

Times measure(int runs, const Body& body, const PallasCallOptions& options,
              const std::vector<trace::ArgumentType>& arguments) {
  Times best{1e30, 1e30, 0, ""};
  const cuda::Options target{.compute_capability = compute_capability,
                             .most_operations = std::int64_t{1} << 20};
  for (int run = 0; run < runs; ++run) {
    graph::Graph g;
    const double traced = benchmark::seconds_of(benchmark::thread_seconds, [&] {
      g = trace::trace({&body, 1}, options, arguments, here());
    });
    const double emitted =
        benchmark::seconds_of(benchmark::thread_seconds, [&] { (void)cuda::emit(g, target); });
    best = {std::min(best.trace, traced), std::min(best.emit, emitted), g.insts.size(),
            longest_passes(g, target)};
  }
  return best;
}

void report(const char* name, const Times& t, double limit_ms) {
  const double all = 1e3 * (t.trace + t.emit);
  std::printf("%-46s %9.2f ms   target <= %-6g ms (trace %.2f ms; %zu operations, %.2f us each)\n",
              name, all, limit_ms, 1e3 * t.trace, t.operations,
              1e3 * all / static_cast<double>(t.operations));
  std::printf("%-46s %s ms\n", "  passes that take longest", t.passes.c_str());
  std::fflush(stdout);
}

const ShapeDtype row{{128}, f32};

Times of_row(int runs, const Body& body) {
  return measure(runs, body, {.name = "large", .out_type = row, .grid = {2}}, {{row, false}});
}

/// Each of the operations needs the one before.
Body chain(int operations) {
  return [=](Ref x, Ref o) {
    Value v = x[_];
    for (int i = 0; i < operations; i += 4) {
      const Value next = maximum(v * 0.5f, 1 - v);
      v = next + 0.25f;
    }
    o[_] = v;
  };
}

/// Many loads, added pair by pair.
Body tree(int leaves) {
  return [=](Ref x, Ref o) {
    std::vector<Value> level;
    for (int i = 0; i < leaves; ++i) {
      Value leaf = x[_] * static_cast<float>(i);
      level.push_back(leaf);
    }
    for (; level.size() > 1; level.resize(level.size() / 2))
      for (std::size_t i = 0; i < level.size() / 2; ++i) level[i] = level[2 * i] + level[2 * i + 1];
    o[_] = level[0];
  };
}

/// Each value is used twice by the next.
Body shared(int operations) {
  return [=](Ref x, Ref o) {
    Value v = x[_];
    for (int i = 0; i < operations; i += 2) v = v * (1 - v);
    o[_] = v;
  };
}

Body stores(int count) {
  return [=](Ref x, Ref o) {
    for (int i = 0; i < count; ++i) o[_] = x[_] + static_cast<float>(i);
  };
}

Body conditions(int count) {
  return [=](Ref x, Ref o) {
    const Value p = program_id(0);
    o[_] = x[_];
    for (int i = 0; i < count; ++i) {
      when(p > i, [&] { o[_] += 1; });
      loop(0, p, [&](Index) { o[_] = o[_] * 0.5f; });
    }
  };
}

void nest(int depth, Ref& o, const Value& p) {
  if (depth == 0)
    o[_] = 1;
  else if (depth % 2 == 0)
    when(p > depth, [&] { nest(depth - 1, o, p); });
  else
    loop(0, p, [&](Index) { nest(depth - 1, o, p); });
}
Body nested(int depth) {
  return [=](Ref x, Ref o) {
    o[_] = x[_];
    nest(depth, o, program_id(0));
  };
}

}  // namespace

int main() try {
  const ShapeDtype rows{{dim("m"), 1000}, f32};
  const double softmax = 1e3 * benchmark::best_of(201, [&] {
                           (void)ops::softmax().lower(rows).cuda_source({.arch = "sm_90a"});
                         });
  std::printf("%-46s %9.2f ms   target <= 0.5    ms\n", "softmax: trace, lower and print", softmax);
  report("a chain of 2,000 operations", of_row(9, chain(2'000)), 50);
  report("a chain of 100,000 operations", of_row(1, chain(100'000)), 5'000);
  report("100,000 operations, each used twice", of_row(1, shared(100'000)), 5'000);
  report("a tree of 2,048 loads", of_row(3, tree(2'048)), 60);
  report("a tree of 32,768 loads", of_row(1, tree(32'768)), 2'000);
  report("1,000 stores", of_row(3, stores(1'000)), 60);
  report("10,000 stores", of_row(1, stores(10'000)), 600);
  report("100 conditions and loops in a row", of_row(3, conditions(100)), 10);
  report("1,000 conditions and loops in a row", of_row(1, conditions(1'000)), 150);
  report("128 conditions and loops in each other", of_row(3, nested(127)), 5);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
