// NVRTC and ptxas on emitted text.
#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "codegen/nvrtc/toolchain.hpp"
#include "palladium/gpu.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

const char* const architectures[] = {"sm_75", "sm_80", "sm_90a", "sm_100a"};

}  // namespace

TEST_CASE("every shipped kernel compiles for every architecture without spills") {
  for (const ops::Entry& e : ops::registry())
    for (const char* arch : architectures) {
      INFO(e.name << " for " << arch);
      const Kernel kernel = e.factory();
      const std::vector<ArgType> types(e.inputs.begin(), e.inputs.end());
      const Compiled compiled = kernel.lower(types).compile({.arch = arch});
      CHECK(compiled.cubin().size() > 0);
      CHECK(compiled.resources().spill_load_bytes == 0);
      CHECK(compiled.resources().spill_store_bytes == 0);
      CHECK(compiled.resources().stack_bytes == 0);
      CHECK(compiled.resources().warnings.empty());
    }
}

TEST_CASE("products compile for every operand type and architecture without spills") {
  for (DType t : {f16, bf16, f32, f64, i8}) {
    INFO(t.name());
    CHECK(compile_problem(matmul_graph(t, {.m = 1000, .n = 700, .k = 300})) == "");
  }
}

TEST_CASE("blocks of 2^20 elements compile as loops, without spills") {
  CHECK(compile_problem(add_graph(1 << 20, 1 << 20), "sm_90a") == "");
  CHECK(compile_problem(softmax_graph(1 << 20), "sm_90a") == "");
}

TEST_CASE("views of other bits compile, cut, joined in one piece and joined of parts") {
  const graph::Graph g = traced(
      [](Ref x, Ref o, Ref p, Ref q) {
        o[_] = x.bitcast(f32)[_];
        p[_] = x.transpose({1, 0}).bitcast(f16)[_];
        q.bitcast(u8)[_] = x.at({_, ds(3, 32)})[_];
        q.transpose({1, 0}).bitcast(f64).at(0)[_] = zeros({4}, f64);
      },
      {.name = "bits", .out_type = {{{8, 16}, f32}, {{64, 4}, f16}, {{8, 8}, i32}}},
      {array({8, 64}, u8)});
  CHECK(compile_problem(g) == "");
}

TEST_CASE("filled blocks, index operands and grids of a size that an array holds compile") {
  for (const DType t : {u8, f16, f32, i64}) {
    const BlockSpec chosen{{8, 24},
                           [](Index i, Ref s, Ref) {
                             return Indices{s[i], 0};
                           },
                           {.fill = 3}};
    const graph::Graph g = traced(
        [&](Ref s, Ref, Ref x, Ref o) {
          o[_] = x[_];
          pl::when(s[0] > 0, [&] { o[{ds(0, 1)}] = broadcast_to(pl::max(x[_]), {1, 24}); });
        },
        {.name = "chosen",
         .out_type = {{dim("m"), 20}, t},
         .num_scalar_prefetch = 2,
         .grid = {at_most(argument(1), cdiv(dim("m"), 8))},
         .in_specs = {chosen},
         .out_specs = {BlockSpec{{8, 24},
                                 [](Index i, Ref, Ref) {
                                   return Indices{i, 0};
                                 }}}},
        {array({5}, i32), array({1}, i64), array({dim("m"), 20}, t)});
    INFO(t.name());
    CHECK(compile_problem(g) == "");
  }
}

TEST_CASE("blocks of a length, or of elements, that data says compile") {
  const BlockSpec part{{BoundedSlice(48), 64}, [](Index i, Ref s, Ref) {
                         return Indices{ds(Value(s[i]), s[i + 1] - s[i]), 0};
                       }};
  const BlockSpec rows{{Indirect(16), 64}, [](Index i, Ref, Ref rows) {
                         return Indices{Value(rows[ds(16 * i, 16)]), 0};
                       }};
  const graph::Graph g = traced(
      [](Ref, Ref, Ref x, Ref y, Ref o, Ref p) {
        o[_] = x[_] * 2.f;
        p[_] = y[_] + 1.f;
      },
      {.name = "said",
       .out_type = {{{500, 64}, f32}, {{160, 64}, f32}},
       .num_scalar_prefetch = 2,
       .grid = 10,
       .in_specs = {part, rows},
       .out_specs = {part, rows}},
      {array({11}, i32), array({160}, i32), array({500, 64}, f32), array({160, 64}, f32)});
  CHECK(compile_problem(g) == "");
}

TEST_CASE("branches and loops of unknown length compile without spills") {
  CHECK(compile_problem(vm_graph()) == "");
}

TEST_CASE("scopes in loops and branches compile without spills") {
  const graph::Graph g = traced(
      [](Ref x, Ref o) {
        o[_] = loop(
            0, 4,
            [&](Index i, Value sum) {
              const auto turned = [&](Ref tmp, Ref kept) {
                tmp[_] = x[{ds(i * 32, 32), _}];
                kept[_] = pl::sum(tmp[_], {.axis = 0});
                return pl::transpose(tmp[_]) * kept[_];
              };
              return cond(
                  pl::max(sum) < 9,
                  [&] {
                    return sum +
                           run_scoped(turned, {gpu::SMEM({32, 32}, f32), gpu::REGS({32}, f32)});
                  },
                  [&] { return sum; });
            },
            zeros({32, 32}));
      },
      {.name = "scopes", .out_type = ShapeDtype{{32, 32}, f32}}, {array({128, 32})});
  CHECK(compile_problem(g) == "");
}

TEST_CASE("random kernels compile for the architecture that they are emitted for") {
  for_seeds(0, 12, [&](std::uint64_t seed) {
    const RandomKernel k = random_kernel(seed);
    const std::string problem = compile_problem(k.graph, architectures[seed % 4]);
    CHECK(problem == "");
  });
}
