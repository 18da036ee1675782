// Products that a user wrote one behind the other in an iteration: their operands are fetched into
// the slots of one ring, in turn.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

constexpr std::int64_t side = 128, depth = 64;

struct Written {
  int parts = 3;  // products of an iteration
  int steps = 2;  // iterations; 0: a symbol
  DType type = bf16;
  int stages = 0;
  bool along_axis = false, persistent = false, scaled = false;
};

/// o[rows, 128] += a[rows, k] * b[k, 128], k in iterations of so many parts.
graph::Graph kernel(const Written& p) {
  const Dim steps = p.steps > 0 ? Dim(p.steps) : dim("steps", {.at_most = 64});
  const std::int64_t of_step = p.parts * depth;
  PallasCallOptions options{
      .name = "written_out",
      .out_type = ShapeDtype{{2 * side, side}, f32},
      .compiler_params = {.num_stages = p.stages, .persistent = p.persistent}};
  const auto add = [=](Ref a, Ref b, Value first, Value sum) {
    for (int u = 0; u < p.parts; ++u) {
      const Slice now = ds(first + u * depth, depth);
      sum = sum + dot(a[{_, now}], b[{now, _}]);
    }
    return p.scaled ? sum * 0.5f : sum;
  };
  const std::vector<trace::ArgumentType> types{array({2 * side, steps * of_step}, p.type),
                                               array({steps * of_step, side}, p.type)};
  if (p.along_axis) {
    options.grid = {2, steps};
    options.in_specs = {{{side, of_step},
                         [](Index i, Index k) {
                           return Indices{i, k};
                         }},
                        {{of_step, side}, [](Index, Index k) {
                           return Indices{k, 0};
                         }}};
    options.out_specs = {{{side, side}, [](Index i, Index) { return Indices{i, 0}; }}};
    options.scratch_types = {gpu::REGS({side, side}, f32)};
    options.compiler_params.dimension_semantics = {parallel, sequential};
    return traced(
        [=](Ref a, Ref b, Ref o, Ref s) {
          when(program_id(1) == 0, [&] { s[_] = zeros({side, side}, f32); });
          s[_] = add(a, b, 0, s[_]);
          when(program_id(1) == num_programs(1) - 1, [&] { o[_] = s[_]; });
        },
        options, types);
  }
  options.grid = {2};
  options.in_specs = {BlockSpec(), BlockSpec()};
  options.out_specs = {{{side, side}, [](Index i) { return Indices{i, 0}; }}};
  return traced(
      [=](Ref a, Ref b, Ref o) {
        const Ref rows = a.at({ds(program_id(0) * side, side), _});
        const Value end = p.steps > 0 ? Value(p.steps) : dim_as_value("steps");
        o[_] = loop(
            0, end, [&](Index l, Value sum) { return add(rows, b, l * of_step, sum); },
            zeros({side, side}, f32));
      },
      options, types);
}

lowered::Program program_of(const Written& p) {
  return cuda::lower(kernel(p), {.compute_capability = 90});
}

std::ptrdiff_t steps_of(const lowered::Statements& list) {
  std::ptrdiff_t found = std::ranges::count_if(list, [](const lowered::Statement& s) {
    return std::holds_alternative<lowered::Advance>(s.what);
  });
  for (const lowered::Statement& s : list)
    lowered::for_each_body(s, [&](const lowered::Statements& body) { found += steps_of(body); });
  return found;
}

std::string problem(const Written& p, std::vector<std::int64_t> symbols = {}) {
  return problem_of(kernel(p), symbols, 90);
}

}  // namespace

TEST_CASE("products that are written one behind the other take turns in the slots of one ring") {
  for (const int parts : {3, 4, 9})
    for (const bool along_axis : {false, true}) {
      CAPTURE(parts, along_axis);
      const lowered::Program l = program_of({.parts = parts, .steps = 4, .along_axis = along_axis});
      REQUIRE(l.rings.size() == 1);
      CHECK(l.rings.front().slots >= 3);
      CHECK(l.rings.front().slot_bytes == 2 * side * depth * 2);
      CHECK(l.barriers.size() == 2);
      for (const lowered::Agent& a : l.bodies[0].agents) CHECK(steps_of(a.statements) == parts);
    }
}

TEST_CASE(
    "where all products of an iteration have slots at once, or one is scaled, none takes turns") {
  CHECK(steps_of(program_of({.parts = 2, .steps = 4}).bodies[0].agents[0].statements) <= 1);
  const lowered::Program scaled = program_of({.steps = 4, .scaled = true});
  CHECK(steps_of(scaled.bodies[0].agents[0].statements) == std::ssize(scaled.rings));
}

TEST_CASE("products that take turns agree, for any number of parts and of iterations") {
  CHECK(problem({.parts = 3, .steps = 2}) == "");
  CHECK(problem({.parts = 4, .steps = 3, .type = f16}) == "");
  CHECK(problem({.parts = 9, .steps = 1, .along_axis = true}) == "");
  CHECK(problem({.parts = 5, .steps = 2, .type = f16, .along_axis = true}) == "");
  for (const std::int64_t steps : {0, 1, 3}) {
    CAPTURE(steps);
    CHECK(problem({.parts = 3, .steps = 0}, {steps}) == "");
  }
}

TEST_CASE("products that take turns agree in persistent blocks, and with any number of slots") {
  CHECK(problem({.parts = 3, .steps = 2, .persistent = true}) == "");
  for (const int stages : {2, 3, 5}) {
    CAPTURE(stages);
    CHECK(problem({.parts = 3, .steps = 2, .stages = stages}) == "");
  }
}
