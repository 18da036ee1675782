// Products that a user wrote one behind the other in an iteration: their operands are fetched into
// the slots of one ring, in turn.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/device/library.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

struct Written {
  int parts = 3;  // products of an iteration
  int steps = 2;  // iterations; 0: a symbol
  DType type = bf16;
  int stages = 0;
  bool along_axis = false, persistent = false, scaled = false, trans_b = false;
  std::int64_t m = 128, n = 128, k = 64;  // of a product
  int num_warps = 0, cluster = 1;         // blocks that share b
  std::optional<bool> warp_specialize = {};
};

/// o[2 m, n] += a[2 m, k] * b[k, n], k in iterations of so many parts.
graph::Graph kernel(const Written& p) {
  const Dim steps = p.steps > 0 ? Dim(p.steps) : dim("steps", {.at_most = 64});
  const std::int64_t of_step = p.parts * p.k;
  const DType sum_type = p.type == i8 ? i32 : f32;
  PallasCallOptions options{.name = "written_out",
                            .out_type = ShapeDtype{{2 * p.m, p.n}, sum_type},
                            .compiler_params = {.num_warps = p.num_warps,
                                                .num_stages = p.stages,
                                                .warp_specialize = p.warp_specialize,
                                                .persistent = p.persistent}};
  const auto add = [=](Ref a, Ref b, Value first, Value sum) {
    for (int u = 0; u < p.parts; ++u) {
      const Slice now = ds(first + u * p.k, p.k);
      sum = sum + (p.trans_b ? dot(a[{_, now}], b[{_, now}], {.trans_b = true})
                             : dot(a[{_, now}], b[{now, _}]));
    }
    return p.scaled ? sum * 0.5f : sum;
  };
  const Dim all = steps * of_step;
  const std::vector<trace::ArgumentType> types{
      array({2 * p.m, all}, p.type), array(p.trans_b ? Shape{p.n, all} : Shape{all, p.n}, p.type)};
  if (p.along_axis) {
    options.grid = {2, steps};
    options.in_specs = {{{p.m, of_step},
                         [](Index i, Index k) {
                           return Indices{i, k};
                         }},
                        {{of_step, p.n}, [](Index, Index k) {
                           return Indices{k, 0};
                         }}};
    options.out_specs = {{{p.m, p.n}, [](Index i, Index) { return Indices{i, 0}; }}};
    options.scratch_types = {gpu::REGS({p.m, p.n}, sum_type)};
    options.compiler_params.dimension_semantics = {parallel, sequential};
    return traced(
        [=](Ref a, Ref b, Ref o, Ref s) {
          when(program_id(1) == 0, [&] { s[_] = zeros({p.m, p.n}, sum_type); });
          s[_] = add(a, b, 0, s[_]);
          when(program_id(1) == num_programs(1) - 1, [&] { o[_] = s[_]; });
        },
        options, types);
  }
  const auto row = [=](Index i) {
    return p.cluster > 1 ? Index(i * p.cluster + axis_index("row")) : i;
  };
  options.grid = {2 / p.cluster};
  if (p.cluster > 1) {
    options.cluster = {p.cluster};
    options.cluster_names = {"row"};
  }
  options.in_specs = {BlockSpec(), BlockSpec()};
  options.out_specs = {{{p.m, p.n}, [=](Index i) { return Indices{row(i), 0}; }}};
  return traced(
      [=](Ref a, Ref b, Ref o) {
        const Ref rows = a.at({ds(row(program_id(0)) * p.m, p.m), _});
        const Value end = p.steps > 0 ? Value(p.steps) : dim_as_value("steps");
        o[_] = loop(
            0, end, [&](Index l, Value sum) { return add(rows, b, l * of_step, sum); },
            zeros({p.m, p.n}, sum_type));
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
      CHECK(l.rings.front().slot_bytes == 32 << 10);
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

TEST_CASE("products that take turns agree, of any type, shape and width") {
  const auto takes_turns = [](const Written& p) {
    return steps_of(program_of(p).bodies[0].agents[0].statements) == p.parts;
  };
  for (const Written& p : {
           Written{.parts = 4, .type = f8e4m3, .trans_b = true, .k = 128},
           Written{.parts = 6, .type = i8, .trans_b = true, .n = 256, .k = 64},
           Written{.parts = 7, .type = f16, .trans_b = true, .n = 96, .k = 32},
           Written{.parts = 5, .type = f16, .m = 64, .n = 256, .k = 64, .warp_specialize = true},
           Written{.parts = 3, .type = f16, .trans_b = true, .m = 256, .n = 64, .num_warps = 8},
           Written{.parts = 3, .cluster = 2},
           Written{.parts = 4, .type = f8e4m3, .trans_b = true, .k = 128, .cluster = 2},
       }) {
    CAPTURE(p.parts, p.type.name(), p.m, p.n, p.k, p.cluster);
    CHECK(takes_turns(p));
    CHECK(problem(p) == "");
  }
}

TEST_CASE("ptxas makes no product wait that takes turns, and spills nothing") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for (const Written& p : {Written{.parts = 9}, Written{.parts = 3, .steps = 0, .persistent = true},
                           Written{.parts = 4, .type = f8e4m3, .trans_b = true, .k = 128},
                           Written{.parts = 4, .n = 256, .cluster = 2}}) {
    CAPTURE(p.parts, p.type.name(), p.n, p.persistent, p.cluster);
    const std::string text = cuda::emit(kernel(p), {.compute_capability = 90}).text;
    const nvrtc::Result result = nvrtc::compile(
        {.source = device::prelude(device::Half::cuda, text) + text, .arch = "sm_90a"});
    INFO(result.log);
    REQUIRE(result.ok);
    const Resources r = nvrtc::parse_log(result.log);
    CHECK(r.warnings.empty());
    CHECK(r.stack_bytes + r.spill_store_bytes + r.spill_load_bytes == 0);
  }
}
