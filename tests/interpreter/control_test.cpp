// Control flow, and several Pallas threads in a block.
#include "codegen/graph/builder.hpp"
#include "codegen/graph/limits.hpp"
#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;

TEST_CASE("loop runs from lo below hi in steps [C80]") {
  for (int lo = 0; lo < 3; ++lo)
    for (int hi = 6; hi < 9; ++hi)
      for (const int step : {1, 3}) {
        Tensor bounds(i32, {2}, {double(lo), double(hi)}), fixed(i32, {1}), dynamic(i32, {1});
        run(
            [=](Ref bounds, Ref fixed, Ref dynamic) {
              fixed[_] = zeros({1}, i32);
              dynamic[_] = zeros({1}, i32);
              loop(lo, hi, {.step = step}, [&](Index i) { fixed[_] += i; });
              loop(bounds[0], bounds[1], {.step = step}, [&](Index i) { dynamic[_] += i; });
            },
            {}, {&bounds}, {&fixed, &dynamic});
        double expected = 0;
        for (int i = lo; i < hi; i += step) expected += i;
        CHECK(fixed[0] == expected);
        CHECK(dynamic[0] == expected);
      }
}

TEST_CASE("loop carries a value [C81] [C82]") {
  Tensor o(i32, {1}), y(i32, {8});
  run(
      [](Ref o, Ref y) {
        o[0] = loop(
            0, 5, {}, [](Index i, Value acc) { return acc + i; }, i32(32));
        loop(0, 8, {}, [&](Index i) { y[i] = i; });
      },
      {}, {}, {&o, &y});
  CHECK(o[0] == 42);
  CHECK(y.numbers() == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("loop carries several values of several shapes [C93]") {
  Tensor o(f32, {4}), n(i32, {1});
  run(
      [](Ref o, Ref n) {
        auto [v, count] = loop(
            0, 10, {},
            [](Index i, Value v, Value count) {
              return carry(v + i.astype(f32), count + where(i % 2 == 0, 1, 0));
            },
            zeros({4}), i32(0));
        o[_] = v;
        n[0] = count;
      },
      {}, {}, {&o, &n});
  CHECK(o.numbers() == std::vector<double>{45, 45, 45, 45});
  CHECK(n[0] == 5);
}

TEST_CASE("carries may change places, and one value may become two carries") {
  Tensor o(i32, {4});
  run(
      [](Ref o) {
        // Fibonacci: (a, b) becomes (b, a + b); c takes the old a, d stays.
        auto [a, b, c, d] = loop(
            0, 10, {},
            [](Index, Value a, Value b, Value, Value d) { return carry(b, a + b, a, d); }, i32(0),
            i32(1), i32(-1), i32(77));
        o[0] = a;
        o[1] = b;
        o[2] = c;
        o[3] = d;
      },
      {}, {}, {&o});
  CHECK(o.numbers() == std::vector<double>{55, 89, 34, 77});

  Tensor p(f32, {2, 3}), q(f32, {2, 3});
  run(
      [](Ref p, Ref q) {
        auto [a, b] = loop(
            0, 5, {}, [](Index, Value a, Value b) { return carry(b, a); }, zeros({2, 3}),
            ones({2, 3}));
        p[_] = a;
        q[_] = b;
      },
      {}, {}, {&p, &q});
  CHECK(p.numbers() == std::vector<double>(6, 1));
  CHECK(q.numbers() == std::vector<double>(6, 0));
}

TEST_CASE("a loop without iterations gives its initial values") {
  Tensor bounds(i32, {2}, {3, 3}), o(f32, {2});
  run(
      [](Ref bounds, Ref o) {
        const auto next = [](Index, Value v) { return v + 1; };
        o[_] = loop(bounds[0], bounds[1], {}, next, full({2}, 7.0f));
      },
      {}, {&bounds}, {&o});
  CHECK(o.numbers() == std::vector<double>{7, 7});
}

TEST_CASE("loops nest, and inner ones see outer values") {
  Tensor o(i32, {3, 4});
  run(
      [](Ref o) {
        loop(0, 3, {}, [&](Index i) {
          const Value base = i * 100;
          loop(0, 4, {}, [&](Index j) {
            const Value inner = loop(
                0, j + 1, {}, [&](Index k, Value s) { return s + k + base; }, i32(0));
            o[{i, j}] = inner;
          });
        });
      },
      {}, {}, {&o});
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) CHECK(o[i * 4 + j] == 100 * i * (j + 1) + j * (j + 1) / 2);
}

TEST_CASE("the unroll factor changes nothing but speed [C90]") {
  for (const int unroll : {0, 1, 2}) {
    Tensor o(i32, {2});
    run(
        [=](Ref o) {
          o[program_id(0)] = loop(
              0, 4, {.unroll = unroll}, [](Index i, Value y) { return y + program_id(0) + i; },
              i32(0));
        },
        {.grid = 2, .out_specs = {BlockSpec()}}, {}, {&o});
    CHECK(o.numbers() == std::vector<double>{6, 10});
  }
}

TEST_CASE("when runs its body if the condition holds, and conditions nest [C84]") {
  Tensor x = arange(i32, {8}), o(i32, {8});
  const BlockSpec one{{1}, [](Index i) { return i; }};
  run(
      [](Ref x, Ref o) {
        const Value v = x[0];
        o[0] = i32(-1);
        when(v > 2, [&] {
          when(v < 6, [&] { o[0] = v * 10; });
          when(v >= 6, [&] { when(v == 7, [&] { o[0] = v; }); });
        });
      },
      {.grid = 8, .in_specs = {one}, .out_specs = {one}}, {&x}, {&o});
  CHECK(o.numbers() == std::vector<double>{-1, -1, -1, 30, 40, 50, -1, 7});
}

TEST_CASE("conditions and loops nest as deep as they may") {
  Tensor o(i32, {1});
  run(
      [](Ref o) {
        o[0] = i32(0);
        const Value one = o[0] + 1;
        const auto nest = [&](auto& self, int depth) -> void {
          if (depth == 0) {
            o[0] += one;
          } else if (depth % 2) {
            when(one > 0, [&] { self(self, depth - 1); });
          } else {
            loop(0, one, {}, [&](Index) { self(self, depth - 1); });
          }
        };
        nest(nest, graph::max_nesting);
      },
      {}, {}, {&o});
  CHECK(o[0] == 1);
}

TEST_CASE("a value outlives the memory of its neighbours") {
  // Many values alive at once and many short-lived ones: places are used again, but not too early.
  Tensor x = arange(i64, {64}), o(i64, {64});
  run(
      [](Ref x, Ref o) {
        const Value v = x[_];
        std::vector<Value> kept;
        Value t = v;
        for (int i = 0; i < 40; ++i) {
          t = (t * 3 + i) ^ (v + i);
          if (i % 4 == 0) kept.push_back(t);
        }
        Value s = t;
        for (const Value& k : kept) s = s + k * k;
        o[_] = s;
      },
      {}, {&x}, {&o});
  for (std::int64_t i = 0; i < 64; ++i) {
    std::uint64_t t = static_cast<std::uint64_t>(i), s;
    std::vector<std::uint64_t> kept;
    for (std::uint64_t k = 0; k < 40; ++k) {
      t = (t * 3 + k) ^ (static_cast<std::uint64_t>(i) + k);
      if (k % 4 == 0) kept.push_back(t);
    }
    s = t;
    for (const std::uint64_t k : kept) s += k * k;
    REQUIRE(o.bits(i) == s);
  }
}

namespace {

// o[program, thread over all bodies, lane] = 100 * program + 10 * thread + threads
graph::Graph threads(std::vector<int> warpgroups, std::int64_t programs) {
  using namespace graph;
  Graph g;
  g.name = "threads";
  int total = 0;
  for (const int n : warpgroups) total += n;
  g.mapping.grid = {programs};
  g.semantics = {graph::Semantics::parallel};
  g.mapping.index_map_avals = {{.type = {{}, i32}}};
  g.mapping.index_map_tree = {1, 0};
  g.mapping.num_outputs = 1;
  const RegionId map = g.add_region();
  {
    Builder b(g, map);
    const ValueId i = b.param(Type::value(i32));
    b.yield({i, b.constant(i32, 0), b.constant(i32, 0)});
  }
  g.mapping.block_mappings = {{.block_shape = {BlockDim(BlockDim::Kind::squeezed, 1), total, 8},
                               .index_map = index(map),
                               .array_aval = {{programs, total, 8}, i32},
                               .origin = "outputs[0]"}};
  g.thread_name = "wg";
  for (const int n : warpgroups) {
    const RegionId region = g.add_region();
    g.bodies.push_back({region, n});
    Builder b(g, region);
    const ValueId o = b.param(Type::ref(i32, {total, 8}, Space::automatic));
    const ValueId thread = b.add(Op::AxisIndex, {}, {{int(AxisKind::thread), 0}, 0});
    const ValueId size = b.add(Op::AxisSize, {}, {{int(AxisKind::thread), 0}, 0});
    const ValueId id = b.add(Op::ProgramId, {}, {{0}, 0});
    ValueId v = b.elementwise(Op::Mul, {id, b.constant(i32, 100)});
    v = b.elementwise(Op::Add, {v, b.elementwise(Op::Mul, {thread, b.constant(i32, 10)})});
    v = b.elementwise(Op::Add, {v, size});
    const graph::Subscript row{
        {{.is_slice = false, .dynamic = true}, {.is_slice = true, .size = 8}}};
    b.store(b.at(o, row, {thread}), b.broadcast_to(v, {8}));
  }
  verify(g, "test");
  return g;
}

}  // namespace

TEST_CASE("each warpgroup is a thread of the block, with windows in common [C94]") {
  for (const std::vector<int>& warpgroups :
       {std::vector<int>{1}, std::vector<int>{2}, std::vector<int>{4}, std::vector<int>{1, 2}}) {
    int total = 0;
    for (const int n : warpgroups) total += n;
    Tensor o(i32, {3, total, 8});
    interpreter::run(threads(warpgroups, 3), {{o.buffer()}, {}, {}});
    for (int p = 0; p < 3; ++p)
      for (int t = 0; t < total; ++t)
        for (int k = 0; k < 8; ++k) CHECK(o[(p * total + t) * 8 + k] == 100 * p + 10 * t + total);
  }
}

TEST_CASE("grid indices do not depend on the cluster, whose blocks have ranks [C96]") {
  Tensor o(i32, {2, 3, 6});
  const BlockSpec spec{{squeezed, squeezed, 1}, [](Index i, Index j) {
                         return Indices{i, j, axis_index("a") * 3 + axis_index("b")};
                       }};
  run(
      [](Ref o) {
        o[0] = program_id(0) * 3 + program_id(1) + 10 * axis_index("a") + 100 * axis_index("b") +
               1000 * axis_size("b");
      },
      {.grid = {2, 3}, .cluster = {2, 3}, .cluster_names = {"a", "b"}, .out_specs = {spec}}, {},
      {&o});
  for (int p = 0; p < 6; ++p)
    for (int r = 0; r < 6; ++r) CHECK(o[p * 6 + r] == p + 10 * (r / 3) + 100 * (r % 3) + 3000);
}
