// What the timeline decides where nobody has said it: how many warps a program has, how many stages
// its loops. What is chosen is faster by the timeline, computes the same, and is nothing that a
// user has said otherwise.
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/lower.hpp"
#include "codegen/timeline/timeline.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

constexpr std::int64_t many = 4096;  // programs, of which each multiprocessor has dozens

// Sixteen queries of a head beside keys and values of eight bits: each program has little to
// compute, and keeps what it fetches in shared memory three times, of which once in 16 bits.
graph::Graph decoding(std::int64_t programs, std::int64_t steps, const CompilerParams& params) {
  const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
    const Value x = q[_];
    const auto step = [&](Index i, Value most, Value sum, Value out) {
      const Slice now = ds(i * 64, 64);
      const Value s = dot(x, k[{now, _}].astype(bf16), {.trans_b = true}) * 0.088f;
      const Value next = maximum(most, max(s, {.axis = 1, .keepdims = true}));
      const Value p = exp(s - next), scale = exp(most - next);
      return carry(next, sum * scale + palladium::sum(p, {.axis = 1, .keepdims = true}),
                   out * scale + dot(p.astype(bf16), v[{now, _}].astype(bf16)));
    };
    const auto [most, sum, out] = loop(0, steps, step, full({16, 1}, -1e30f, f32),
                                       zeros({16, 1}, f32), zeros({16, 128}, f32));
    o[_] = out / sum;
  };
  const auto rows = [](std::int64_t n) {
    return BlockSpec{{squeezed, n, 128}, [](Index i) { return Indices{i, 0, 0}; }};
  };
  const std::int64_t keys = std::max<std::int64_t>(steps, 1) * 64;
  return traced(body,
                {.name = "decoding",
                 .out_type = {{programs, 16, 128}, f32},
                 .grid = {programs},
                 .in_specs = {rows(16), rows(keys), rows(keys)},
                 .out_specs = {rows(16)},
                 .compiler_params = params},
                {array({programs, 16, 128}, bf16), array({programs, keys, 128}, f8e4m3),
                 array({programs, keys, 128}, f8e4m3)});
}

// Groups of ten columns of a block of many rows are normalised, sixteen rows at a time.
graph::Graph normalising(std::int64_t programs, std::int64_t steps, const CompilerParams& params) {
  constexpr std::int64_t some = 16, groups = 8, columns = 80;
  const auto body = [=](Ref x, Ref o) {
    const auto rows = [&](const Value& i) {
      return x[{ds(i * some, some), _}].astype(f32).reshape({some, groups, columns / groups});
    };
    const auto add = [&](Index i, Value sum, Value squares) {
      const Value v = rows(i);
      return carry(sum + palladium::sum(v, {.axis = {0, 2}}),
                   squares + palladium::sum(v * v, {.axis = {0, 2}}));
    };
    const auto [sum, squares] = loop(0, steps, add, zeros({groups}, f32), zeros({groups}, f32));
    const float n = static_cast<float>(steps * some * columns / groups);
    const Value mean = (sum / n).reshape({1, groups, 1});
    const Value scale = rsqrt(squares / n + 1e-5f).reshape({1, groups, 1});
    loop(0, steps, [&](Index i) {
      const Value v = (rows(i) - mean) * scale;
      o[{ds(i * some, some), _}] = (v * logistic(v)).reshape({some, columns}).astype(bf16);
    });
  };
  const std::int64_t rows = steps * some;
  const BlockSpec block{{squeezed, rows, columns}, [](Index i) { return Indices{i, 0, 0}; }};
  return traced(body,
                {.name = "normalising",
                 .out_type = {{programs, rows, columns}, bf16},
                 .grid = {programs},
                 .in_specs = {block},
                 .out_specs = {block},
                 .compiler_params = params},
                {array({programs, rows, columns}, bf16)});
}

lowered::Program lowered_for(const graph::Graph& g, int cc = 90) {
  return cuda::lower(g, {.compute_capability = cc});
}

// The remark that says what the timeline chose.
std::string chosen(const lowered::Program& l) {
  for (const Remark& r : l.remarks)
    if (r.text.find("by the timeline") != std::string::npos) return r.text;
  return "";
}

int slots(const lowered::Program& l) {
  int most = 0;
  for (const lowered::Ring& r : l.rings) most = std::max(most, r.slots);
  return most;
}

// Clocks of a multiprocessor for an iteration of a block, in all loops.
double clocks(const lowered::Program& l) {
  double sum = 0;
  for (const Timeline::Loop& loop : timeline::timeline_of(l, cuda::thread_program(l)).loops)
    sum += loop.cycles / loop.blocks;
  return sum;
}

}  // namespace

TEST_CASE("loops have fewer stages where that brings blocks beside each other that hide more") {
  const lowered::Program l = lowered_for(decoding(many, 32, {}));
  CHECK_THAT(chosen(l),
             StartsWith(std::to_string(slots(l)) + " stages: a multiprocessor takes ") &&
                 ContainsSubstring(" clocks for an iteration of a block by the timeline"));
  for (const int stages : {2, 3, 4, 5}) {
    const lowered::Program given = lowered_for(decoding(many, 32, {.num_stages = stages}));
    CAPTURE(stages);
    CHECK(slots(given) == stages);
    CHECK(chosen(given) == "");
    CHECK(clocks(l) <= 1.001 * clocks(given));
  }
  CHECK(clocks(l) < 0.85 * clocks(lowered_for(decoding(many, 32, {.num_stages = 5}))));
}

TEST_CASE("programs of which each multiprocessor has one keep the stages that hide a copy") {
  const lowered::Program l = lowered_for(decoding(100, 32, {}));
  CHECK(chosen(l) == "");
  CHECK(slots(l) > 2);
}

TEST_CASE("programs of which each multiprocessor has one have more warps") {
  const lowered::Program l = lowered_for(normalising(32, 64, {}));
  CHECK(l.num_warps > 4);
  CHECK_THAT(chosen(l),
             StartsWith(std::to_string(l.num_warps) + " warps: ") && ContainsSubstring("with 4"));
  const lowered::Program given = lowered_for(normalising(32, 64, {.num_warps = 4}));
  CHECK(given.num_warps == 4);
  CHECK(chosen(given) == "");
  CHECK(clocks(l) < 0.85 * clocks(given));
}

TEST_CASE("what moves bytes all the time is left as it is") {
  const lowered::Program l = lowered_for(normalising(many, 64, {}));
  CHECK(chosen(l) == "");
  CHECK(l.num_warps == 4);
}

TEST_CASE("of GPUs whose speeds nobody knows rules decide alone") {
  CHECK(chosen(lowered_for(decoding(many, 32, {}), 86)) == "");
  CHECK(chosen(lowered_for(normalising(32, 64, {}), 120)) == "");
  CHECK(lowered_for(normalising(32, 64, {}), 120).num_warps == 4);
}

TEST_CASE("what is observed of passes is of the program that was chosen") {
  const graph::Graph g = decoding(many, 32, {});
  std::string last;
  const lowered::Program l = cuda::lower(
      g, {.compute_capability = 90}, [&](const passes::PassRun&, const lowered::Program& behind) {
        last = lowered::to_text(behind);
      });
  lowered::Program silent = lowered_for(g);
  CHECK(chosen(l) != "");
  CHECK(chosen(l) == chosen(silent));
  CHECK(last.substr(0, last.find("remark")) ==
        lowered::to_text(silent).substr(0, last.find("remark")));
}

TEST_CASE("what was chosen computes what the interpreter computes") {
  CHECK(chosen(lowered_for(decoding(140, 7, {}))) != "");
  for (const std::int64_t steps : {1, 2, 3, 7}) {
    CAPTURE(steps);
    for (const int cc : {80, 90}) CHECK(on_all_targets(decoding(140, steps, {}), {}, cc) == "");
  }
  for (const int cc : {80, 90}) CHECK(on_all_targets(normalising(4, 5, {}), {}, cc) == "");
}
