// Programs that several OS threads share, and the order that a seed gives them.
#include <algorithm>
#include <climits>
#include <filesystem>
#include <set>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/palladium.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

std::string error_of(const graph::Graph& g, test::Call call, const interpreter::Options& options) {
  try {
    run_interpreter(g, call, options);
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

// Every program writes its number to the place that `at` gives it, of an array of 64.
graph::Graph numbers(const BlockSpec& at, bool revisit = false) {
  return traced([](Ref o) { o[_] = full({1}, program_id(0), i32); },
                {.name = "numbers",
                 .out_type = ShapeDtype{{64}, i32},
                 .grid = {64},
                 .out_specs = {at},
                 .compiler_params = {.dimension_semantics = {parallel}, .allow_revisit = revisit}},
                {});
}

const BlockSpec its_own{{1}, [](Index i) { return i; }};
const BlockSpec the_first{{1}, [](Index i) { return i / 64; }};

std::int32_t first_of(const test::Call& call) {
  return reinterpret_cast<const std::int32_t*>(call.arrays[0].data())[0];
}

}  // namespace

TEST_CASE("random kernels give the same on one core and on several, in any order") {
  for_seeds(400, 100, [&](std::uint64_t seed) {
    const RandomKernel k = random_kernel(seed, {.aliases = seed % 5 == 0});
    Random random(seed);
    const test::Call call = random_call(k.graph, k.symbols, random, false);
    test::Call one = call, several = call, shuffled = call;
    run_interpreter(k.graph, one, {.cores = 1});
    run_interpreter(k.graph, several, {.cores = 3});
    run_interpreter(k.graph, shuffled, {.cores = 1 + static_cast<int>(seed % 3), .seed = seed});
    CHECK(difference(k.graph, one, several) == "");
    CHECK(difference(k.graph, one, shuffled) == "");
  });
}

TEST_CASE("several cores tell of an error what one tells") {
  Random random(1);
  const BlockSpec outside{{1}, [](Index i) { return i * 2; }};
  const BlockSpec pairs{{1}, [](Index i) { return i / 2; }};
  for (const BlockSpec& at : {the_first, outside, pairs}) {
    const graph::Graph g = numbers(at);
    const test::Call call = random_call(g, {}, random, true);
    const std::string one = error_of(g, call, {.cores = 1});
    CHECK(one != "");
    for (int again = 0; again < 20; ++again) CHECK(error_of(g, call, {.cores = 4}) == one);
  }
}

TEST_CASE("a kernel whose programs may write one element ends as its order says") {
  Random random(1);
  const graph::Graph g = numbers(the_first, true);
  const test::Call call = random_call(g, {}, random, true);
  const auto last = [&](const interpreter::Options& options) {
    test::Call c = call;
    run_interpreter(g, c, options);
    return first_of(c);
  };
  for (const int cores : {1, 4}) CHECK(last({.cores = cores}) == 63);
  std::set<std::int32_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CHECK(last({.seed = seed}) == last({.cores = 3, .seed = seed}));
    seen.insert(last({.seed = seed}));
  }
  CHECK(seen.size() > 3);
}

TEST_CASE("a block's threads take turns in the order that a seed gives") {
  graph::Graph g = traced([](Ref o) { o[_] = full({1}, axis_index("wg"), i32); },
                          {.name = "threads",
                           .out_type = ShapeDtype{{1}, i32},
                           .cluster = {4},
                           .cluster_names = {"wg"}},
                          {});
  // A call has one thread so far: the axis was traced as one of a cluster.
  g.bodies[0].warpgroups = 4;
  g.cluster.clear();
  g.cluster_names.clear();
  g.thread_name = "wg";
  for (graph::Inst& inst : g.insts)
    if (inst.op == graph::Op::AxisIndex)
      inst.attr.ints = {static_cast<int>(graph::AxisKind::thread), 0};
  Random random(1);
  const test::Call call = random_call(g, {}, random, true);
  std::set<std::int32_t> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    test::Call c = call;
    run_interpreter(g, c, {.seed = seed});
    seen.insert(first_of(c));
  }
  CHECK(seen.size() > 1);
}

TEST_CASE("however many cores are asked for, a few threads share the programs") {
  Random random(1);
  const graph::Graph g = numbers(its_own);
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  for (const int cores : {2, 1'000'000, INT_MAX}) {
    test::Call call = random_call(g, {}, random, true);
    run_interpreter(g, call, {.cores = cores});
    for (int i = 0; i < 64; ++i)
      CHECK(reinterpret_cast<const std::int32_t*>(call.arrays[0].data())[i] == i);
    CHECK(threads() > 1);
    CHECK(threads() <= std::max(16, 4 * static_cast<int>(std::thread::hardware_concurrency())));
  }
}

TEST_CASE("the parameters of interpretation reach both targets, and are checked") {
  const auto kernel = [](int cores) {
    return pallas_call([](Ref x, Ref o) { o[_] = x[_] + 1; },
                       PallasCallOptions{.name = "next",
                                         .out_type = ShapeDtype{{64}, i32},
                                         .grid = {8},
                                         .in_specs = {BlockSpec{{8}, [](Index i) { return i; }}},
                                         .out_specs = {BlockSpec{{8}, [](Index i) { return i; }}},
                                         .interpret = InterpretParams{
                                             .random_seed = 3, .num_cores_per_device = cores}});
  };
  std::vector<std::int32_t> numbers(64, 41);
  const Array x = Array::view(std::span(numbers)), y = kernel(2)(x);
  for (int i = 0; i < 64; ++i) CHECK(static_cast<const std::int32_t*>(y.data())[i] == 42);
  CHECK_THROWS_WITH(kernel(-1)(x), Catch::Matchers::ContainsSubstring(
                                       "num_cores_per_device is a number of OS threads, or 0 for "
                                       "one on each core, given -1"));
}
