// Kernel functions and the canonical graphs that they are traced to.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <thread>
#include <vector>

#include "codegen/base/dim.hpp"
#include "tests/support/tracing.hpp"

using pl::_;
using pl::ds;
using pl::test::array;
using pl::test::number;
using pl::test::text_of;
using pl::test::traced;

namespace {

pl::PallasCallOptions outputs(pl::OutType types) { return {.name = "k", .out_type = types}; }

// The body's part of the text: what follows the grid and the block mappings.
std::string body_of(const std::string& text) { return text.substr(text.find("\n{") + 1); }

// The body of a kernel from x to o, both of one type.
std::string recorded(const pl::Body& body, pl::Shape shape = {8}, pl::DType dtype = pl::f32) {
  return body_of(text_of(body, outputs(pl::ShapeDtype{shape, dtype}), {array(shape, dtype)}));
}

pl::Value scaled_sum(const pl::Value& a, const pl::Value& b) { return a * 2 + b; }

}  // namespace

TEST_CASE("vector add is two loads, an add and a store") {
  const pl::BlockSpec block{{1024}, [](pl::Index i) { return i; }};
  const std::string text = text_of([](pl::Ref x, pl::Ref y, pl::Ref o) { o[_] = x[_] + y[_]; },
                                   {.name = "vector_add",
                                    .out_type = {{1'000'003}, pl::f32},
                                    .grid = {pl::cdiv(1'000'003, 1024)},
                                    .in_specs = {block, block},
                                    .out_specs = {block}},
                                   {array({1'000'003}), array({1'000'003})});
  CHECK(text == R"(kernel vector_add
  grid 977
  args[0]: f32[1000003] in blocks [1024]
    { %0: i32[]
      yield %0
    }
  args[1]: f32[1000003] in blocks [1024]
    { %0: i32[]
      yield %0
    }
  outputs[0]: f32[1000003] in blocks [1024]
    { %0: i32[]
      yield %0
    }
{ %0: ref block f32[1024] %1: ref block f32[1024] %2: ref block f32[1024]
  %3: f32[1024] = load %0
  %4: f32[1024] = load %1
  %5: f32[1024] = add %3, %4
  store %2, %5
}
)");
}

TEST_CASE("a symbolic dimension is a symbol in array types and grid, named by position") {
  const auto softmax = [](const char* rows) {
    const pl::BlockSpec row{{1, 1000}, [](pl::Index i) { return pl::Indices{i, 0}; }};
    return traced(
        [](pl::Ref x, pl::Ref o) {
          const pl::Value v = x[_];
          const pl::Value e = pl::exp(v - pl::max(v, {.axis = {1}, .keepdims = true}));
          o[_] = e / pl::sum(e, {.axis = {1}, .keepdims = true});
        },
        {.name = "softmax",
         .out_type = {{pl::dim(rows), 1000}, pl::f32},
         .grid = {pl::dim(rows)},
         .in_specs = {row},
         .out_specs = {row}},
        {array({pl::dim(rows), 1000})});
  };
  const pl::graph::Graph g = softmax("rows");
  CHECK(g.num_symbols == 1);
  CHECK(pl::graph::to_text(g) == R"(kernel softmax
  grid s0
  args[0]: f32[s0,1000] in blocks [1,1000]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
  outputs[0]: f32[s0,1000] in blocks [1,1000]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
{ %0: ref block f32[1,1000] %1: ref block f32[1,1000]
  %2: f32[1,1000] = load %0
  %3: f32[1] = reduce_max %2 [1]
  %4: f32[1,1000] = broadcast %3 [0]
  %5: f32[1,1000] = sub %2, %4
  %6: f32[1,1000] = exp %5
  %7: f32[1] = reduce_sum %6 [1]
  %8: f32[1,1000] = broadcast %7 [0]
  %9: f32[1,1000] = div %6, %8
  store %1, %9
}
)");
  CHECK(pl::graph::canonical_bytes(g) == pl::graph::canonical_bytes(softmax("m")));
}

TEST_CASE("a block that is left out reads the array's dims, and pins them") {
  pl::DimBinding binding;
  const std::uint32_t n = 1000001, m = 1000002;
  binding.bind(n, 16);
  binding.bind(m, 5);
  const pl::Dim rows = pl::dim_symbol(m), cols = pl::dim_symbol(n);
  const pl::Body body([](pl::Ref x, pl::Ref o) { o[_] = x[0]; });
  const std::vector<pl::trace::ArgumentType> arguments{array({rows, cols})};
  const pl::PallasCallOptions options{.name = "k",
                                      .out_type = {{cols}, pl::f32},
                                      .grid = {rows},
                                      .in_specs = {{{1, 16}, [](pl::Index i) {
                                                      return pl::Indices{i, 0};
                                                    }}}};
  const pl::graph::Graph g = pl::trace::trace({&body, 1}, options, arguments, pl::here(), &binding);
  CHECK(binding.resolve(cols).same(16));
  CHECK(binding.resolve(rows).same(rows));
  CHECK(g.num_symbols == 1);
  CHECK(to_string(g.mapping.block_mappings[0].array_aval) == "f32[s0,16]");
  CHECK(to_string(g.mapping.block_mappings[1].array_aval) == "f32[16]");
  CHECK(to_string(g.mapping.grid[0]) == "s0");
}

TEST_CASE("an axis that revisits an output is sequential, the others are parallel") {
  const pl::graph::Graph g = traced(
      [](pl::Ref a, pl::Ref b, pl::Ref o) {
        pl::when(pl::program_id(2) == 0, [&] { o[_] = 0; });
        o[_] += pl::dot(a[_], b[_]);
      },
      {.name = "matmul",
       .out_type = {{64, 48}, pl::f32},
       .grid = {2, 3, 4},
       .in_specs = {{{32, 8},
                     [](pl::Index i, pl::Index, pl::Index k) {
                       return pl::Indices{i, k};
                     }},
                    {{8, 16},
                     [](pl::Index, pl::Index j, pl::Index k) {
                       return pl::Indices{k, j};
                     }}},
       .out_specs = {{{32, 16},
                      [](pl::Index i, pl::Index j, pl::Index) {
                        return pl::Indices{i, j};
                      }}}},
      {array({64, 32}, pl::f16), array({32, 48}, pl::f16)});
  using pl::graph::Semantics;
  CHECK(g.semantics ==
        std::vector{Semantics::parallel, Semantics::parallel, Semantics::sequential});
  CHECK(body_of(pl::graph::to_text(g)) ==
        R"({ %0: ref block f16[32,8] %1: ref block f16[8,16] %2: ref block f32[32,16]
  %3: i32[] = program_id [2]
  %4: i32[] = constant 0
  %5: bool[] = eq %3, %4
  when %5
    {
      %6: f32[32,16] = constant 0
      store %2, %6
    }
  %7: f32[32,16] = load %2
  %8: f16[32,8] = load %0
  %9: f16[8,16] = load %1
  %10: f32[32,16] = dot %8, %9
  %11: f32[32,16] = add %7, %10
  store %2, %11
}
)");
}

TEST_CASE("Element dims are windows into the padded array") {
  const std::string text =
      text_of([](pl::Ref x, pl::Ref o) { o[_] = x[ds(0, 256)] + x[ds(2, 256)]; },
              {.name = "stencil",
               .out_type = {{1000}, pl::f32},
               .grid = {4},
               .in_specs = {{{pl::Element(258, {1, 1})}, [](pl::Index i) { return i * 256; }}},
               .out_specs = {{{256}, [](pl::Index i) { return i; }}}},
              {array({1000})});
  CHECK(text == R"(kernel stencil
  grid 4
  args[0]: f32[1000] in blocks [element(258,1,1)]
    { %0: i32[]
      %1: i32[] = constant 256
      %2: i32[] = mul %0, %1
      yield %2
    }
  outputs[0]: f32[1000] in blocks [256]
    { %0: i32[]
      yield %0
    }
{ %0: ref block f32[258] %1: ref block f32[256]
  %2: ref block f32[256] = at %0 [ds(0,256)]
  %3: f32[256] = load %2
  %4: ref block f32[256] = at %0 [ds(2,256)]
  %5: f32[256] = load %4
  %6: f32[256] = add %3, %5
  store %1, %6
}
)");
}

TEST_CASE("a loop carries values out of its body") {
  CHECK(recorded([](pl::Ref x, pl::Ref o) {
          auto [sum, last] = pl::loop(
              0, 8, {.step = 2, .unroll = 2},
              [&](pl::Index i, pl::Value s, pl::Value) { return pl::carry(s + x[i], x[i + 1]); },
              0.f, x[0]);
          o[_] = pl::full({8}, sum - last);
        }) == R"({ %0: ref block f32[8] %1: ref block f32[8]
  %2: i32[] = constant 0
  %3: i32[] = constant 8
  %4: f32[] = constant 0
  %5: ref block f32[] = at %0 [0]
  %6: f32[] = load %5
  %7 = loop %2, %3 carry %4, %6 step 2 unroll 2
    { %8: i32[] %9: f32[] %10: f32[]
      %11: ref block f32[] = at %0 [%8]
      %12: f32[] = load %11
      %13: f32[] = add %9, %12
      %14: i32[] = constant 1
      %15: i32[] = add %8, %14
      %16: ref block f32[] = at %0 [%15]
      %17: f32[] = load %16
      yield %13, %17
    }
  %18: f32[] = get %7 [0]
  %19: f32[] = get %7 [1]
  %20: f32[] = sub %18, %19
  %21: f32[8] = broadcast %20
  store %1, %21
}
)");
}

TEST_CASE("masks guard loads, stores and swaps") {
  CHECK(recorded([](pl::Ref x, pl::Ref o) {
          const pl::Value inside = pl::iota(pl::i32, {8}) < 5;
          const pl::Value v = pl::load(x, {.mask = inside, .other = -1});
          const pl::Value old = pl::swap(o, v, {.mask = inside});
          pl::store(o.at(ds(0, 4)), pl::zeros({4}), {.mask = old.reshape({2, 4}).shape()[0] == 2});
          pl::store(o, old, {.mask = !inside});
        }) == R"({ %0: ref block f32[8] %1: ref block f32[8]
  %2: i32[8] = iota [0]
  %3: i32[8] = constant 5
  %4: bool[8] = lt %2, %3
  %5: f32[8] = constant -1
  %6: f32[8] = load %0 mask %4 other %5
  %7: f32[8] = swap %1, %6 mask %4
  %8: ref block f32[4] = at %1 [ds(0,4)]
  %9: f32[4] = constant 0
  store %8, %9
  %10: bool[8] = not %4
  store %1, %7 mask %10
}
)");
}

TEST_CASE("scalar arguments are values of the body, matched by position") {
  const pl::graph::Graph g =
      traced([](pl::Value a, pl::Ref x, pl::Value n, pl::Ref o) { o[_] = a * x[_] + pl::f32(n); },
             outputs({{8}, pl::f32}), {number(), array({8}), number(pl::i32)});
  CHECK(g.num_scalars() == 2);
  CHECK(g.mapping.num_inputs == 1);
  CHECK(g.mapping.block_mappings[0].origin == "args[1]");
  CHECK(body_of(pl::graph::to_text(g)) ==
        R"({ %0: f32[] %1: ref block f32[8] %2: i32[] %3: ref block f32[8]
  %4: f32[8] = broadcast %0
  %5: f32[8] = load %1
  %6: f32[] = cast %2
  %7: f32[8] = broadcast %6
  %8: f32[8] = fma %4, %5, %7
  store %3, %8
}
)");
}

TEST_CASE("cluster axes have their names in bodies and index maps") {
  const pl::BlockSpec half{{pl::squeezed, 4}, [](pl::Index i) {
                             return pl::Indices{i, pl::axis_index("half")};
                           }};
  const std::string text = text_of(
      [](pl::Ref x, pl::Ref o) {
        o[_] = x[_] * pl::f32(pl::axis_index("half") + pl::axis_size("half"));
      },
      {.name = "k",
       .out_type = {{3, 8}, pl::f32},
       .grid = {{"row", 3}},
       .cluster = {2},
       .cluster_names = {"half"},
       .in_specs = {half},
       .out_specs = {half}},
      {array({3, 8})});
  CHECK(text == R"(kernel k
  grid row=3
  cluster half=2
  args[0]: f32[3,8] in blocks [squeezed,4]
    { %0: i32[]
      %1: i32[] = axis_index cluster 0
      yield %0, %1
    }
  outputs[0]: f32[3,8] in blocks [squeezed,4]
    { %0: i32[]
      %1: i32[] = axis_index cluster 0
      yield %0, %1
    }
{ %0: ref block f32[4] %1: ref block f32[4]
  %2: f32[4] = load %0
  %3: i32[] = axis_index cluster 0
  %4: i32[] = constant 2
  %5: i32[] = add %3, %4
  %6: f32[] = cast %5
  %7: f32[4] = broadcast %6
  %8: f32[4] = mul %2, %7
  store %1, %8
}
)");
}

TEST_CASE("literals take the dtype of what they meet, and fold among themselves") {
  const std::string expected = R"({ %0: ref block bf16[8] %1: ref block bf16[8]
  %2: bf16[8] = load %0
  %3: bf16[8] = constant 2.5
  %4: bf16[8] = mul %2, %3
  store %1, %4
}
)";
  CHECK(recorded([](pl::Ref x, pl::Ref o) { o[_] = x[_] * 2.5; }, {8}, pl::bf16) == expected);
  CHECK(recorded(
            [](pl::Ref x, pl::Ref o) {
              pl::Value scale = 1;
              scale = (scale + 4) * 0.5f;
              o[_] = x[_] * scale;
            },
            {8}, pl::bf16) == expected);
  CHECK(recorded([](pl::Ref x, pl::Ref o) { o[_] = x[_] * pl::bf16(2.5); }, {8}, pl::bf16) ==
        expected);
}

TEST_CASE("integers convert to the integers of the Ref, and literals to any dtype") {
  CHECK(recorded(
            [](pl::Ref, pl::Ref o) {
              o[_] = pl::iota(pl::i32, {8});
              o[0] = 7;
              o[ds(0, 2)] = true;
            },
            {8}, pl::u8) == R"({ %0: ref block u8[8] %1: ref block u8[8]
  %2: i32[8] = iota [0]
  %3: u8[8] = cast %2
  store %1, %3
  %4: ref block u8[] = at %1 [0]
  %5: u8[] = constant 7
  store %4, %5
  %6: ref block u8[2] = at %1 [ds(0,2)]
  %7: u8[2] = constant 1
  store %6, %7
}
)");
}

TEST_CASE("the graph does not depend on the order in which arguments are evaluated") {
  const auto three = [](const pl::Body& body) {
    return body_of(text_of(body, outputs({{8}, pl::f32}), {array({8}), array({8}), array({8})}));
  };
  const std::string at_once = three([](pl::Ref x, pl::Ref y, pl::Ref z, pl::Ref o) {
    o[_] = scaled_sum(pl::exp(x[_]), scaled_sum(pl::log(y[_]), z[_]));
  });
  const std::string left_first = three([](pl::Ref x, pl::Ref y, pl::Ref z, pl::Ref o) {
    const pl::Value a = pl::exp(x[_]), b = pl::log(y[_]), c = z[_];
    o[_] = scaled_sum(a, scaled_sum(b, c));
  });
  const std::string right_first = three([](pl::Ref x, pl::Ref y, pl::Ref z, pl::Ref o) {
    const pl::Value c = z[_], b = pl::log(y[_]), a = pl::exp(x[_]);
    o[_] = scaled_sum(a, scaled_sum(b, c));
  });
  CHECK(at_once == left_first);
  CHECK(at_once == right_first);
}

TEST_CASE("a condition or a bound that is a C++ number decides while tracing") {
  const std::string text = recorded([](pl::Ref x, pl::Ref o) {
    pl::when(x.shape()[0] == 8, [&] { o[_] = x[_]; });
    pl::when(false, [&] { o[_] = 0; });
    pl::when(pl::Value(3) > 4, [&] { o[_] = 0; });
  });
  CHECK(text == recorded([](pl::Ref x, pl::Ref o) { o[_] = x[_]; }));
}

TEST_CASE("a transpose without a permutation reverses the dimensions") {
  const auto turned = [](auto turn) {
    return pl::test::text_of([=](pl::Ref x, pl::Ref o) { o[_] = turn(x[_]); },
                             {.name = "k", .out_type = {{4, 3, 2}, pl::f32}}, {array({2, 3, 4})});
  };
  const std::string expected = turned([](pl::Value x) { return pl::transpose(x, {2, 1, 0}); });
  CHECK(turned([](pl::Value x) { return pl::transpose(x); }) == expected);
  CHECK(turned([](pl::Value x) { return x.transpose(); }) == expected);
}

TEST_CASE("views compose, and a view of everything is none") {
  CHECK(recorded(
            [](pl::Ref x, pl::Ref o) {
              o[{_, _}] = x.at({pl::ellipsis})[{ds(0, 4), ds(0, 6)}];
              o.at({1}).reshape({2, -1}).transpose({1, 0})[{0, _}] = x[{3, ds(0, 2, 5)}];
            },
            {4, 6}) == R"({ %0: ref block f32[4,6] %1: ref block f32[4,6]
  %2: f32[4,6] = load %0
  store %1, %2
  %3: ref block f32[6] = at %1 [1, :]
  %4: ref block f32[2,3] = ref_reshape %3
  %5: ref block f32[3,2] = ref_transpose %4 [1,0]
  %6: ref block f32[2] = at %5 [0, :]
  %7: ref block f32[2] = at %0 [3, ds(0,2,5)]
  %8: f32[2] = load %7
  store %6, %8
}
)");
}

TEST_CASE("structs of Refs group operands, pl::Refs takes the rest, scratch has names") {
  struct In {
    pl::Ref a, b;
  };
  struct Pair {
    In in;
    pl::Ref o;
  };
  const std::vector<pl::trace::ArgumentType> two{array({8}), array({8})};
  const std::string flat = body_of(text_of(
      [](pl::Ref a, pl::Ref b, pl::Ref o) { o[_] = a[_] + b[_]; }, outputs({{8}, pl::f32}), two));
  CHECK(body_of(text_of([](In in, pl::Ref o) { o[_] = in.a[_] + in.b[_]; }, outputs({{8}, pl::f32}),
                        two)) == flat);
  CHECK(body_of(text_of([](Pair p) { p.o[_] = p.in.a[_] + p.in.b[_]; }, outputs({{8}, pl::f32}),
                        two)) == flat);
  CHECK(body_of(text_of([](auto a, auto b, auto o) { o[_] = a[_] + b[_]; }, outputs({{8}, pl::f32}),
                        two)) == flat);
  CHECK(body_of(text_of([](pl::Ref a, pl::Refs rest) { rest[1][_] = a[_] + rest[0][_]; },
                        outputs({{8}, pl::f32}), two)) == flat);

  pl::PallasCallOptions options = outputs({{8}, pl::f32});
  options.scratch_types = {{"sum", plgpu::SMEM({8}, pl::f32)}, {"n", plgpu::REGS({1}, pl::i32)}};
  const pl::graph::Graph by_name = traced(
      [](pl::Ref x, pl::Ref o, pl::Scratch s) {
        s["sum"][_] = x[_];
        s["n"][0] = 1;
        o[_] = s["sum"][_];
      },
      options, {array({8})});
  const pl::graph::Graph by_position = traced(
      [](pl::Ref x, pl::Ref o, pl::Ref sum, pl::Ref n) {
        sum[_] = x[_];
        n[0] = 1;
        o[_] = sum[_];
      },
      options, {array({8})});
  CHECK(pl::graph::to_text(by_name) == pl::graph::to_text(by_position));
  CHECK(by_name.mapping.num_scratch_operands() == 2);
}

TEST_CASE("reductions take any axes and can keep them") {
  CHECK(recorded(
            [](pl::Ref x, pl::Ref o) {
              const pl::Value v = x[_];
              o[_] = v - pl::sum(v, {.axis = {-1, 0}, .keepdims = true}) * pl::max(v) +
                     pl::min(v, {.axis = 1, .keepdims = true});
            },
            {2, 3}) == R"({ %0: ref block f32[2,3] %1: ref block f32[2,3]
  %2: f32[2,3] = load %0
  %3: f32[] = reduce_sum %2 [0,1]
  %4: f32[1,1] = broadcast %3
  %5: f32[] = reduce_max %2 [0,1]
  %6: f32[1,1] = broadcast %5
  %7: f32[1,1] = mul %4, %6
  %8: f32[2,3] = broadcast %7 [0,1]
  %9: f32[2,3] = sub %2, %8
  %10: f32[2] = reduce_min %2 [1]
  %11: f32[2,3] = broadcast %10 [0]
  %12: f32[2,3] = add %9, %11
  store %1, %12
}
)");
}

TEST_CASE("options reach the graph") {
  pl::PallasCallOptions options{
      .out_shape = {{8}, pl::f32},
      .grid_spec = {.grid = {2}, .scratch_shapes = {plgpu::SMEM({4}, pl::i8)}},
      .input_output_aliases = {{0, 0}},
      .compiler_params = {.dimension_semantics = {pl::sequential},
                          .num_warps = 8,
                          .approx_math = true,
                          .fma = false,
                          .num_stages = 4,
                          .warp_specialize = true,
                          .grid_order = pl::row_major,
                          .persistent = true}};
  const pl::graph::Graph g =
      traced([](pl::Ref x, pl::Ref o, pl::Ref) { o[_] = x[_] * 2 + 1; }, options, {array({8})});
  CHECK(g.name == "kernel");
  CHECK(g.approx_math);
  CHECK(g.bodies[0].num_warps == 8);
  CHECK(g.bodies[0].num_stages == 4);
  CHECK(g.bodies[0].warp_specialize == true);
  CHECK(g.grid_rows == 1);
  CHECK(g.persistent);
  CHECK_FALSE(g.fma);
  CHECK(g.semantics == std::vector{pl::graph::Semantics::sequential});
  CHECK(g.aliases == std::vector{pl::graph::Alias{0, 0}});
  CHECK(g.mapping.scratch_avals[0].memory_space == pl::Space::smem);
  CHECK(g.at.line == __LINE__ - 12);
}

TEST_CASE("every operation knows the user's line") {
  const int line = __LINE__ + 3;
  const pl::graph::Graph g = traced(
      [](pl::Ref x, pl::Ref o) {
        const pl::Value v = x[_];
        const pl::Value w = pl::exp(v);
        o[_] = w;
      },
      outputs({{8}, pl::f32}), {array({8})});
  const auto& insts = g[g.bodies[0].region].insts;
  REQUIRE(insts.size() == 3);
  for (int i = 0; i < 3; ++i)
    CHECK(g.location(insts[static_cast<std::size_t>(i)]).line == line + i);
}

TEST_CASE("names are kept beside the graph, outside of its bytes") {
  const auto graph_with = [](const char* name) {
    return traced([=](pl::Ref x, pl::Ref o) { o[_] = pl::exp(x[_]).named(name); },
                  outputs({{8}, pl::f32}), {array({8})});
  };
  const pl::graph::Graph a = graph_with("e"), b = graph_with("f");
  CHECK(pl::graph::canonical_bytes(a) == pl::graph::canonical_bytes(b));
  CHECK(std::find(a.names.begin(), a.names.end(), "e") != a.names.end());
}

TEST_CASE("threads trace at the same time") {
  const auto text = [] {
    return recorded([](pl::Ref x, pl::Ref o) {
      o[_] = pl::loop(
          0, 4, [&](pl::Index i, pl::Value c) { return c + pl::f32(i) * x[_]; }, pl::zeros({8}));
    });
  };
  const std::string expected = text();
  std::vector<int> wrong(8);
  std::vector<std::thread> threads;
  for (int& count : wrong)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) count += text() != expected;
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::vector<int>(8));
}
