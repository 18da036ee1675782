// The emitted CUDA C++ on the emulator against the interpreter.
#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "codegen/graph/builder.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/gpu.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

std::string text_of_cuda(const graph::Graph& g, int cc = 90) {
  return cuda::emit(g, {.compute_capability = cc}).text;
}

// One program over whole arrays.
graph::Graph whole(const Body& body, std::vector<trace::ArgumentType> in, OutType out) {
  return traced(body, {.name = "whole", .out_type = std::move(out)}, in);
}

}  // namespace

TEST_CASE("an array that the blocks do not divide is added to its last element") {
  CHECK(on_all_targets(add_graph(1003, 256)) == "");
  CHECK(on_all_targets(add_graph(1, 1024)) == "");
  CHECK(on_all_targets(add_graph(4096, 1024)) == "");
}

TEST_CASE("one text serves every size of a symbolic array") {
  const graph::Graph g = add_graph(dim("n"), 1024);
  for (std::int64_t n : {1, 8, 1000, 1024, 5001}) CHECK(on_all_targets(g, {n}) == "");
}

TEST_CASE("blocks that divide their array are read sixteen bytes at a time without a test") {
  const std::string text = text_of_cuda(add_graph(1 << 20, 1024));
  CHECK(text.find("pl::load_global_nc<4>(") != std::string::npos);
  CHECK(text.find("<4>(a0 + ri * 4, in0 + (start0 + i) + ri * 512);") != std::string::npos);
}

TEST_CASE("blocks that may reach over the end are read sixteen bytes at a time where they do not") {
  const std::string text = text_of_cuda(add_graph(dim("n"), 1024));
  const std::size_t whole = text.find("if (size0 == 1024)"), other = text.find("else");
  const std::size_t load = text.find("pl::load_global_nc<4>("), one = text.find("_nc<1>(");
  REQUIRE(one != std::string::npos);
  CHECK(whole < load);
  CHECK(load < other);
  CHECK(other < one);
}

TEST_CASE("a value of 2^20 elements is streamed by a loop") {
  const graph::Graph g = add_graph(1 << 20, 1 << 20);
  CHECK(text_of_cuda(g).find("_Pragma(\"unroll 8\") for (i32 ri = 0; ri < 2048; ++ri)") !=
        std::string::npos);
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("softmax agrees for rows of any length") {
  for (std::int64_t columns : {1, 7, 128, 1000}) {
    INFO(columns);
    CHECK(on_all_targets(softmax_graph(columns), {5}) == "");
  }
}

TEST_CASE("softmax agrees for several rows per block, the last block ragged") {
  CHECK(on_all_targets(softmax_graph(1000, 8), {19}) == "");
  CHECK(on_all_targets(softmax_graph(4096, 64), {70}) == "");
}

TEST_CASE("softmax of 16-bit floats rounds every operation alike") {
  CHECK(on_all_targets(softmax_graph(200, 2, bf16), {3}) == "");
  CHECK(on_all_targets(softmax_graph(200, 2, f16), {3}) == "");
}

TEST_CASE("matrix products agree for every operand type, on every architecture") {
  for (int cc : {75, 80, 90, 100})
    for (DType t : {f16, bf16, f32, f64, i32, i8}) {
      INFO(t.name() << " on sm_" << cc);
      CHECK(on_all_targets(matmul_graph(t, {.m = 70, .n = 40, .k = 50}), {}, cc) == "");
    }
}

TEST_CASE("matrix products take either operand transposed") {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (int cc : {75, 80}) {
        INFO(ta << tb << cc);
        const MatmulShape s{
            .m = 100, .n = 36, .k = 40, .block_n = 32, .trans_a = ta, .trans_b = tb};
        CHECK(on_all_targets(matmul_graph(f16, s), {}, cc) == "");
        CHECK(on_all_targets(matmul_graph(f32, s), {}, cc) == "");
      }
}

TEST_CASE("small products are split over the warps along columns") {
  const MatmulShape s{.m = 16, .n = 128, .k = 16, .block_m = 16, .block_n = 128, .block_k = 16};
  CHECK(text_of_cuda(matmul_graph(bf16, s)).find("dot_mma_16816<1, 4, 1, ") != std::string::npos);
  CHECK(on_all_targets(matmul_graph(bf16, s)) == "");
}

TEST_CASE("tf32 products of whole numbers are exact") {
  const MatmulShape s{.m = 40, .n = 24, .k = 24};
  const graph::Graph g = matmul_graph(f32, s, Precision::tf32);
  CHECK(text_of_cuda(g, 80).find("dot_mma_tf32") != std::string::npos);
  CHECK(text_of_cuda(g, 90).find("k8_f32_tf32_tf32_x") != std::string::npos);
  for (const int cc : {80, 90}) CHECK(on_all_targets(g, {}, cc) == "");
}

TEST_CASE("an accumulator on a sequential axis stays in registers and is stored once") {
  const graph::Graph g = matmul_graph(bf16, {.m = 64, .n = 64, .k = 128});
  const std::string text = text_of_cuda(g);
  const std::size_t loop = text.find("PL_NOUNROLL for (i32 p2");
  REQUIRE(loop != std::string::npos);
  const std::size_t product = text.find("wgmma_m64n64k16");
  REQUIRE(product != std::string::npos);
  CHECK(text.find("pl::store_global") > product);
  CHECK(text.find("pl::store_global", text.find("pl::store_global") + 1) == std::string::npos);
}

TEST_CASE("a product that is only added to an accumulator is accumulated in place") {
  const graph::Graph g = matmul_graph(bf16, {.m = 64, .n = 64, .k = 128});
  CHECK(text_of_cuda(g).find("wgmma_m64n64k16_f32_bf16_bf16_x2<false, true>(v0, ") !=
        std::string::npos);
  const std::string text = text_of_cuda(g, 80);
  CHECK(text.find("dot_mma_16816<2, 4, 2, false, false, bf16, ") != std::string::npos);
  const graph::Graph carried = whole(
      [](Ref a, Ref b, Ref o) {
        o[_] = loop(
            0, 3,
            [&](Index i, Value acc) {
              return acc + dot(a[{_, ds(i * 16, 16)}], b[{ds(i * 16, 16), _}]);
            },
            zeros({32, 24}, f32));
      },
      {array({32, 48}, f16), array({48, 24}, f16)}, {{{32, 24}, f32}});
  const std::string in_loop = text_of_cuda(carried);
  const std::size_t product = in_loop.find("pl::dot_mma_16816<");
  REQUIRE(product != std::string::npos);
  CHECK(in_loop.find("= {};") == std::string::npos);
  CHECK(on_all_targets(carried) == "");
}

TEST_CASE("reductions over any axes agree") {
  for (const Axes& axes : {Axes{0}, Axes{1}, Axes{2}, Axes{0, 2}, Axes{1, 2}, Axes{0, 1, 2}}) {
    const graph::Graph g = whole(
        [=](Ref x, Ref s, Ref m) {
          s[_] = broadcast_to(sum(x[_], {.axis = axes, .keepdims = true}), {5, 12, 33});
          m[_] = broadcast_to(max(x[_], {.axis = axes, .keepdims = true}), {5, 12, 33});
        },
        {array({5, 12, 33})}, {{{5, 12, 33}, f32}, {{5, 12, 33}, f32}});
    CHECK(on_all_targets(g) == "");
  }
}

TEST_CASE("a transpose, a reshape and a broadcast reach memory in one pass") {
  const graph::Graph g = whole(
      [](Ref x, Ref y, Ref o) {
        o[_] = transpose(x[_], {1, 0}) + broadcast_to(reshape(y[_], {6, 1}), {6, 35});
      },
      {array({35, 6}), array({2, 3})}, {{{6, 35}, f32}});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("a reduced value is reshaped across its layout through shared memory") {
  const graph::Graph g = whole(
      [](Ref x, Ref o) {
        o[_] = reshape(sum(x[_], {.axis = 1}), {4, 6});
      },
      {array({24, 50})}, {{{4, 6}, f32}});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("loop carries are arrays of registers that keep their layout") {
  const graph::Graph g = whole(
      [](Ref x, Ref o) {
        auto [a, b] = loop(
            0, 8,
            [&](Index i, Value a, Value b) {
              Value row = x[{ds(i, 1), _}];
              return carry(a + row, maximum(b, a * 2.f));
            },
            zeros({1, 300}, f32), zeros({1, 300}, f32));
        o[_] = a + b;
      },
      {array({8, 300})}, {{{1, 300}, f32}});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("loops are unrolled as they say") {
  const auto unrolled = [](int factor) {
    return whole(
        [=](Ref x, Ref o) {
          o[_] = loop(
              0, 4, {.unroll = factor}, [&](Index i, Value a) { return a + x[{ds(i, 1)}]; },
              zeros({1}, f32));
        },
        {array({4})}, {{{1}, f32}});
  };
  CHECK(text_of_cuda(unrolled(0)).find("_Pragma(\"unroll 4\") for (i32") != std::string::npos);
  CHECK(text_of_cuda(unrolled(1)).find("PL_NOUNROLL for (i32") != std::string::npos);
  CHECK(text_of_cuda(unrolled(2)).find("_Pragma(\"unroll 2\") for (i32") != std::string::npos);
  for (int factor : {0, 1, 2}) CHECK(on_all_targets(unrolled(factor)) == "");
}

TEST_CASE("carries that exchange their values take them at once") {
  const graph::Graph g = whole(
      [](Ref x, Ref y, Ref o, Ref p) {
        auto [a, b] = loop(
            0, 3, [&](Index, Value a, Value b) { return carry(b, a + 1.f); }, Value(x[_]),
            Value(y[_]));
        o[_] = a;
        p[_] = b;
      },
      {array({200}), array({200})}, {{{200}, f32}, {{200}, f32}});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("an output aliased to its input is computed in place") {
  const BlockSpec row{{1, 300}, [](Index i) { return Indices{i, 0}; }};
  const graph::Graph g = traced(
      [](Ref x, Ref o) {
        Value v = x[_];
        o[_] = v - max(v, {.axis = 1, .keepdims = true});
      },
      {.out_type = ShapeDtype{{4, 300}, f32},
       .grid = {4},
       .in_specs = {row},
       .out_specs = {row},
       .input_output_aliases = {{0, 0}}},
      {array({4, 300})});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("a value that is overwritten before its use is read first") {
  const graph::Graph g = whole(
      [](Ref x, Ref o) {
        o[_] = x[_];
        Value old = o[_];
        o[_] = old * 2.f;
        o[{ds(0, 50)}] = reshape(transpose(reshape(Value(o[{ds(0, 50)}]), {5, 10}), {1, 0}), {50});
      },
      {array({100})}, {{{100}, f32}});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("masked loads, stores and swaps touch what the mask names") {
  const graph::Graph g = whole(
      [](Ref x, Ref y, Ref o, Ref p) {
        Value m = iota(i32, {97}, 0) % 3 == 0;
        o[_] = load(x, {.mask = m, .other = -1.f});
        p[_] = zeros({97}, f32);
        store(p, Value(y[_]) + 1.f, {.mask = m});
        Value old = swap(o, Value(y[_]), {.mask = m});
        p[_] += old;
      },
      {array({97}), array({97})}, {{{97}, f32}, {{97}, f32}});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("conditions and scalar arguments agree") {
  const BlockSpec b{{64}, [](Index i) { return i; }};
  const graph::Graph g = traced(
      [](Value alpha, Ref x, Ref o) {
        o[_] = alpha * x[_];
        when(program_id(0) % 2 == 1, [&] { o[_] = -Value(x[_]); });
      },
      {.out_type = ShapeDtype{{200}, f32}, .grid = {4}, .in_specs = {b}, .out_specs = {b}},
      {number(), array({200})});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("scratch in shared memory and in registers keeps what a program wrote") {
  const BlockSpec b{{32, 16}, [](Index i) { return Indices{i, 0}; }};
  const graph::Graph g = traced(
      [](Ref x, Ref o, Ref s, Ref r) {
        s[_] = x[_];
        r[_] = transpose(Value(s[_]), {1, 0});
        o[_] = transpose(r[_], {1, 0}) + s[{ds(0, 32, 1), _}];
      },
      {.out_type = ShapeDtype{{100, 16}, f32},
       .grid = {4},
       .in_specs = {b},
       .out_specs = {b},
       .scratch_types = {gpu::SMEM({32, 16}, f32), gpu::REGS({16, 32}, f32)}},
      {array({100, 16})});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("windows with a halo mask what lies outside of the array") {
  const graph::Graph g = traced(
      [](Ref x, Ref o) {
        Value at = program_id(0) * 64 + iota(i32, {64}, 0);
        Value left = where(at > 0, x[{ds(0, 64)}], 0.f);
        Value right = where(at < 199, x[{ds(2, 64)}], 0.f);
        o[_] = left + x[{ds(1, 64)}] + right;
      },
      {.out_type = ShapeDtype{{200}, f32},
       .grid = {4},
       .in_specs = {BlockSpec{{Element(66, {1, 1})}, [](Index i) { return i * 64; }}},
       .out_specs = {BlockSpec{{64}, [](Index i) { return i; }}}},
      {array({200})});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("unsigned and bitcast elements out of bounds are the interpreter's") {
  const graph::Graph g = traced(
      [](Ref x, Ref y, Ref o) {
        const Value bits = u32(x.bitcast(i32)[_]);
        o[_] = transpose(broadcast_to(bits + u32(y[_]), {4, 8}));
      },
      {.out_type = ShapeDtype{{8, 4}, u32},
       .grid = 1,
       .in_specs = {BlockSpec{{8}, [](Index) { return 0; }},
                    BlockSpec{{8}, [](Index) { return 0; }}}},
      {array({5}, f32), array({6}, u16)});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("blocks of a cluster know their rank") {
  const graph::Graph g = traced(
      [](Ref o) {
        o[_] = broadcast_to(axis_index("c") + 2 * program_id(0), {1, 8});
      },
      {.out_type = ShapeDtype{{6, 8}, i32},
       .grid = {3},
       .cluster = {2},
       .cluster_names = {"c"},
       .out_specs = {BlockSpec{{1, 8},
                               [](Index i) {
                                 return Indices{i * 2 + axis_index("c"), 0};
                               }}}},
      {});
  CHECK(cuda::emit(g, {.compute_capability = 90}).cluster_blocks == 2);
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("every warpgroup of a body writes its own rows") {
  // pallas_call has one warpgroup: give its body another one and instructions that use it.
  graph::Graph g = whole([](Ref x, Ref o) { o[_] = x[_]; }, {array({16, 40})}, {{{16, 40}, f32}});
  const graph::RegionId body = g.bodies[0].region;
  g[body].insts.clear();
  g.bodies[0].warpgroups = 2;
  g.thread_name = "wg";
  graph::Builder b(g, body);
  const graph::ValueId x = g[body].params[0], o = g[body].params[1];
  const auto thread_axis = static_cast<std::int64_t>(graph::AxisKind::thread);
  const graph::ValueId wg = b.add(graph::Op::AxisIndex, {}, graph::Attr{.ints = {thread_axis, 0}});
  const graph::ValueId start = b.add(graph::Op::Mul, {wg, b.constant(i32, std::int64_t{8})});
  const graph::Subscript rows{{{.dynamic = true, .size = 8}, {.size = 40}}};
  const graph::ValueId own = b.add(graph::Op::At, {x, start}, graph::Attr{.ints = rows.encode()});
  const graph::ValueId mine = b.add(graph::Op::At, {o, start}, graph::Attr{.ints = rows.encode()});
  const graph::ValueId value = b.add(graph::Op::Load, {own}, graph::Attr{.ints = {0, 0}});
  const graph::ValueId sum = b.add(graph::Op::ReduceSum, {value}, graph::Attr{.ints = {1}});
  const graph::ValueId wide = b.add(graph::Op::Broadcast, {sum}, graph::Attr{.ints = {0}},
                                    graph::Type::value(f32, {8, 40}));
  const graph::ValueId above =
      b.add(graph::Op::CumSum, {value}, graph::Attr{.ints = {0, 1}});  // through shared memory
  b.add(graph::Op::Store, {mine, b.add(graph::Op::Add, {above, wide})},
        graph::Attr{.ints = {0, 0}});
  const graph::Graph two = graph::canonicalize(g);
  graph::verify(two, "two warpgroups");
  CHECK(cuda::emit(two, {.compute_capability = 90}).threads == 256);
  CHECK(on_all_targets(two) == "");
  // It is a shuffle: asked for once, where all warps are whole.
  const std::string text = text_of_cuda(two), ask = "pl::warpgroup()";
  const std::size_t asked = text.find("\n  const u32 warpgroup = " + ask + ";\n");
  CHECK(asked < text.find("if ("));
  CHECK(asked < text.find("for ("));
  CHECK(text.find(ask) == text.rfind(ask));
}

TEST_CASE("a view of other bits is read in groups of its own elements") {
  const graph::Graph g = whole(
      [](Ref x, Ref o) {
        const Value v = x.bitcast(i32)[_];
        o[_] = v - min(v, {.axis = 0});
      },
      {array({4}, u64)}, {{{8}, i32}});
  CHECK(on_all_targets(g) == "");
  const std::string text = text_of_cuda(g);
  CHECK(text.find("reinterpret_cast<const i32*>(in0)") != std::string::npos);
  CHECK(text.find("const i32 n0 = ") == std::string::npos);
}

TEST_CASE("a reduction to one element folds the padding of the dimensions that stay") {
  const graph::Graph g = whole(
      [](Ref a, Ref b, Ref o, Ref p) {
        const Value d = dot(a[_], b[_]);
        o[_] = min(floor(transpose(d, {1, 0})), {.axis = 0});
        p[_] = max(d, {.axis = 1});
      },
      {array({1, 4}, f32), array({4, 2}, f32)}, {{{1}, f32}, {{1}, f32}});
  for (int cc : {75, 80, 90}) CHECK(on_all_targets(g, {}, cc) == "");
}

TEST_CASE("what is the same for a group of elements is computed once") {
  const graph::Graph g = whole(
      [](Ref x, Ref y, Ref o) {
        const Value rows = broadcast_to(max(x[_], {.axis = 0}), {16, 64});
        o[_] = dot(rows.astype(f16), y[_], {.trans_b = true});
      },
      {array({32}, f32), array({16, 64}, f16)}, {{{16, 16}, f32}});
  CHECK(text_of_cuda(g).find("] = x0;") != std::string::npos);
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("what is read for one element of a group is computed with there") {
  const graph::Graph g = whole(
      [](Ref x, Ref y, Ref o, Ref p) {
        const Value i = iota(i32, {64, 8}, 1);
        o[_] = load(x, {.mask = i % 3 == 0, .other = 1}) * 2 + 1;
        p[_] = load(y, {.mask = x[_] > 0, .other = 0}).astype(f32) * 2;
      },
      {array({64, 8}, f32), array({64, 8}, i16)}, {{{64, 8}, f32}, {{64, 8}, f32}});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("random kernels agree on interpreter and emulator") {
  const int architectures[] = {75, 80, 90, 100};
  for_seeds(0, 60, [&](std::uint64_t seed) {
    const RandomKernel k = random_kernel(seed, {.aliases = seed % 5 == 0});
    Random random(seed);
    test::Call a = random_call(k.graph, k.symbols, random, true), b = a, c = a;
    run_interpreter(k.graph, a, false);
    run_emulator(k.graph, {.compute_capability = architectures[seed % 4]}, b, false);
    CHECK(difference(k.graph, a, b) == "");
    if (!has_gpu()) return;
    run_gpu(k.graph, c);
    CHECK(difference(k.graph, a, c) == "");
  });
}

TEST_CASE("random kernels without sums agree in every bit, on any numbers, poison included") {
  for_seeds(100, 30, [&](std::uint64_t seed) {
    const RandomKernel k = random_kernel(seed, {.contractions = false});
    Random random(seed);
    test::Call a = random_call(k.graph, k.symbols, random, false), b = a;
    run_interpreter(k.graph, a);
    run_emulator(k.graph, {.compute_capability = 90}, b);
    CHECK(difference(k.graph, a, b) == "");
  });
}

TEST_CASE("elementary functions of random kernels agree within the op table's bounds") {
  for_seeds(200, 20, [&](std::uint64_t seed) {
    const RandomKernel k = random_kernel(seed, {.elementary = true});
    Random random(seed);
    test::Call a = random_call(k.graph, k.symbols, random, true), b = a;
    const Tolerance tolerance = tolerance_of(k.graph, a, false);
    run_interpreter(k.graph, a, false);
    run_emulator(k.graph, {.compute_capability = 90}, b, false);
    CHECK(difference(k.graph, a, b, tolerance) == "");
  });
}

TEST_CASE("the GPU runs the kernels of these tests too") {
  if (!has_gpu()) SKIP("there is no GPU: they ran on interpreter and emulator only");
  CHECK(on_all_targets(add_graph(1003, 256)) == "");
}

TEST_CASE("a value too large to be whole is named with a block that fits") {
  int line = 0;
  const graph::Graph g = whole(
      [&](Ref x, Ref o) {
        const auto add = [&](Index, Value acc) { return acc + x[_]; };
        line = __LINE__ + 1;
        const Value acc = loop(0, 2, add, zeros({2048, 64}, f32)).named("acc");
        o[_] = acc;
      },
      {array({2048, 64})}, {{{2048, 64}, f32}});
  try {
    cuda::emit(g, {.compute_capability = 90});
    FAIL("emitted");
  } catch (const CompileError& e) {
    const std::string what = e.what();
    CHECK(what.find("524288 bytes take 256 registers per thread, at most 192") !=
          std::string::npos);
    CHECK(what.find("f32[512,64] fits") != std::string::npos);
    CHECK(what.find("acc") != std::string::npos);
    CHECK(what.ends_with("lowering_test.cpp:" + std::to_string(line)));
  }
}

TEST_CASE("scratch beyond the architecture's shared memory is refused with its size") {
  const graph::Graph g = traced(
      [](Ref x, Ref o, Ref scratch) {
        scratch[_] = x[_];
        o[_] = transpose(scratch[_]);
      },
      {.name = "kept",
       .out_type = {{128, 160}, f32},
       .scratch_shapes = {gpu::SMEM({160, 128}, f32)}},
      {array({160, 128}, f32)});
  try {
    cuda::emit(g, {.compute_capability = 75});
    FAIL("emitted");
  } catch (const CompileError& e) {
    CHECK(std::string(e.what()).find("sm_75 has 65536 per block") != std::string::npos);
  }
}
