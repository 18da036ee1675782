// The text form: goldens of small kernels.
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/dim.hpp"
#include "codegen/graph/grid_order.hpp"
#include "tests/graph/kernel.hpp"

using namespace palladium;
using namespace palladium::graph;

TEST_CASE("the text of a blocked matmul [C28]") {
  HandMade k({{{128, 64}, f16}, {{64, 128}, f16}}, {{{128, 128}, f16}}, {4, dim_symbol(0), 8},
             {{{128, 128}, f32}});
  k.g.name = "matmul";
  k.g.mapping.grid_names = {"m", "n", "k"};
  k.g.mapping.block_mappings[0].array_aval.shape = {512, 500};
  k.g.mapping.block_mappings[1].array_aval.shape = {500, dim_symbol(0) * 128};
  k.g.mapping.block_mappings[2].array_aval.shape = {512, dim_symbol(0) * 128};
  k.map(0, [](auto& ids, Builder&) { return std::vector{ids[0], ids[2]}; });
  k.map(1, [](auto& ids, Builder&) { return std::vector{ids[2], ids[1]}; });
  k.map(2, [](auto& ids, Builder&) { return std::vector{ids[0], ids[1]}; });
  const auto program = [&](Builder& b) { return b.add(Op::ProgramId, {}, Attr{{2}, 0}); };
  const ValueId acc = k.refs[3];
  k.b.add(Op::When, {k.op(Op::Eq, {program(k.b), k.b.constant(i32, 0)})},
          std::vector<RegionId>{k.region([&](Builder& b) {
            b.store(acc, b.constant(f32, 0, {128, 128}));
          })});
  const ValueId product = k.op(Op::Dot, {k.b.load(k.refs[0]), k.b.load(k.refs[1])}, {{0, 0, 0}, 0});
  k.b.store(acc, k.op(Op::Add, {k.b.load(acc), product}));
  const ValueId last = k.op(Op::Sub, {k.op(Op::NumPrograms, {}, {{2}, 0}), k.b.constant(i32, 1)});
  k.b.add(Op::When, {k.op(Op::Eq, {program(k.b), last})},
          std::vector<RegionId>{
              k.region([&](Builder& b) { b.store(k.refs[2], b.cast(b.load(acc), f16)); })});
  Graph g = k.canonical();
  g.semantics = grid_order(g, {});
  CHECK(to_text(g) == R"(kernel matmul
  grid m=4, n=s0, k=8 sequential
  args[0]: f16[512,500] in blocks [128,64]
    { %0: i32[] %1: i32[] %2: i32[]
      yield %0, %2
    }
  args[1]: f16[500,(s0 * 128)] in blocks [64,128]
    { %0: i32[] %1: i32[] %2: i32[]
      yield %2, %1
    }
  outputs[0]: f16[512,(s0 * 128)] in blocks [128,128]
    { %0: i32[] %1: i32[] %2: i32[]
      yield %0, %1
    }
{ %0: ref block f16[128,64] %1: ref block f16[64,128] %2: ref block f16[128,128] %3: ref smem f32[128,128]
  %4: i32[] = program_id [2]
  %5: i32[] = constant 0
  %6: bool[] = eq %4, %5
  when %6
    {
      %7: f32[128,128] = constant 0
      store %3, %7
    }
  %8: f32[128,128] = load %3
  %9: f16[128,64] = load %0
  %10: f16[64,128] = load %1
  %11: f32[128,128] = dot %9, %10
  %12: f32[128,128] = add %8, %11
  store %3, %12
  %13: i32[] = constant 7
  %14: bool[] = eq %4, %13
  when %14
    {
      %15: f32[128,128] = load %3
      %16: f16[128,128] = cast %15
      store %2, %16
    }
}
)");
}

TEST_CASE("the text of subscripts, masks, loops, numbers and options") {
  HandMade k({{{4, 8}, f32}}, {{{4, 8}, bf16}}, {}, {{{4}, u64}}, {f32});
  k.g.name = "odds";
  k.g.fma = false;
  k.g.cluster = {2};
  k.g.cluster_names = {"c"};
  k.g.thread_name = "wg";
  k.g.bodies[0].warpgroups = 2;
  BlockMapping& m = k.g.mapping.block_mappings[0];
  m.dense = false;
  m.alignment = 4;
  m.array_aval.shape = {9, 3, 8};
  m.block_shape = {BlockDim(BlockDim::Kind::element, 4, 2, 1),
                   BlockDim(BlockDim::Kind::squeezed, 1), 8};
  const ValueId wg = k.op(Op::AxisIndex, {}, {{2, 0}, 0});
  const ValueId view = k.b.at(k.refs[0],
                              graph::Subscript{{{.is_slice = false, .dynamic = true},
                                                {.start = 1, .size = 3, .stride = 2}}},
                              {wg});
  const ValueId x = k.b.load(view, k.b.constant(bool_, 0, {3}), k.b.constant(f32, -0.5, {3}));
  const RegionId body = k.region([&](Builder& b) {
    b.param(Type::value(i32));
    const ValueId acc = b.param(Type::value(f32, {3}));
    b.yield({b.add(Op::Mul, {acc, x})});
  });
  const ValueId loop = k.b.add(Op::Loop, {wg, k.op(Op::AxisSize, {}, {{1, 0}, 0}), x},
                               std::vector<RegionId>{body}, {{3, 2}, 0});
  const ValueId y = k.op(Op::Get, {loop}, {{0}, 0});
  const ValueId out =
      k.b.at(k.refs[2], graph::Subscript{{{.is_slice = false, .start = 3}, {.size = 3}}});
  k.b.store(out, k.b.cast(y, bf16), k.op(Op::IsFinite, {y}));
  k.b.store(k.refs[3], k.b.constant(u64, -1, {4}));
  k.b.store(k.b.at(k.refs[3], graph::Subscript{{{.is_slice = false, .start = 0}}}),
            k.b.cast(k.refs[1], u64));
  const Graph g = k.canonical();
  CHECK(to_text(g) == R"(kernel odds
  grid
  cluster c=2
  thread axis wg
  without fma
  args[0]: f32[9,3,8] in blocks [element(4,2,1),squeezed,8] strided aligned 4
  outputs[0]: bf16[4,8] in blocks [4,8]
  scalar 0: f32
warpgroups 2
{ %0: ref block f32[4,8] %1: f32[] %2: ref block bf16[4,8] %3: ref smem u64[4]
  %4: ref block bf16[3] = at %2 [3, ds(0,3)]
  %5: i32[] = axis_index thread 0
  %6: i32[] = constant 2
  %7: ref block f32[3] = at %0 [%5, ds(1,3,2)]
  %8: bool[3] = constant false
  %9: f32[3] = constant -0.5
  %10: f32[3] = load %7 mask %8 other %9
  %11 = loop %5, %6 carry %10 step 3 unroll 2
    { %12: i32[] %13: f32[3]
      %14: f32[3] = mul %13, %10
      yield %14
    }
  %15: f32[3] = get %11 [0]
  %16: bf16[3] = cast %15
  %17: bool[3] = is_finite %15
  store %4, %16 mask %17
  %18: u64[4] = constant 18446744073709551615
  store %3, %18
  %19: ref smem u64[] = at %3 [0]
  %20: u64[] = cast %1
  store %19, %20
}
)");
}

TEST_CASE("a broken graph still prints") {
  HandMade k({{{8}, f32}}, {{{8}, f32}});
  k.b.store(k.refs[1], k.b.load(k.refs[0]));
  Graph g = k.canonical();
  g.insts[3].args[1] = ValueId{77};
  g.insts[2].args.clear();
  g.regions[0].insts.push_back(ValueId{999});
  g.regions[0].yields.push_back(no_value);
  g.bodies.push_back({RegionId{5}, 1});
  CHECK(to_text(g).find("store %1, %?") != std::string::npos);
}
