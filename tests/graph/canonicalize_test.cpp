// Order by demand, borders, merging, folding, fma.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <optional>

#include "codegen/base/dim.hpp"
#include "codegen/graph/simplify.hpp"
#include "tests/graph/kernel.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::graph;
using namespace palladium::test;

namespace {

const ShapeDtype row{{8}, f32};

// Records the steps in that order; each gives a value that later steps may use by name.
std::string permuted(const std::vector<int>& order) {
  HandMade k({row, row, row}, {row});
  std::vector<ValueId> v(6, no_value);
  const std::vector<std::function<void()>> steps = {
      [&] { v[0] = k.b.load(k.refs[0]); },
      [&] { v[1] = k.b.load(k.refs[1]); },
      [&] { v[2] = k.b.load(k.refs[2]); },
      [&] { v[3] = k.b.constant(f32, 2.0, {8}); },
  };
  for (const int i : order) steps[static_cast<std::size_t>(i)]();
  const ValueId scaled = k.op(Op::Div, {v[2], v[3]});
  const ValueId e = k.op(Op::Exp, {v[0]});
  k.b.store(k.refs[3], k.op(Op::Sub, {k.op(Op::Max, {e, k.op(Op::Exp, {v[1]})}), scaled}));
  const Graph g = k.canonical();
  return to_text(g) + canonical_bytes(g);
}

}  // namespace

TEST_CASE("reads that commute may be recorded in any order") {
  std::vector<int> order{0, 1, 2, 3};
  const std::string first = permuted(order);
  while (std::next_permutation(order.begin(), order.end())) REQUIRE(permuted(order) == first);
}

TEST_CASE("the canonical order is the order of demand") {
  HandMade k({row, row}, {row});
  const ValueId unused = k.b.load(k.refs[1]);
  const ValueId y = k.b.load(k.refs[1]);
  const ValueId two = k.b.constant(f32, 2.0, {8});
  const ValueId x = k.b.load(k.refs[0]);
  k.op(Op::Exp, {unused});
  k.b.store(k.refs[2], k.op(Op::Div, {k.op(Op::Max, {x, two}), y}));
  CHECK(k.body() ==
        "  %3: f32[8] = load %0\n"
        "  %4: f32[8] = constant 2\n"
        "  %5: f32[8] = max %3, %4\n"
        "  %6: f32[8] = load %1\n"
        "  %7: f32[8] = div %5, %6\n"
        "  store %2, %7\n");
}

namespace {

// A table in which program_id synchronises, and swap exchanges what its operands hold.
const graph::Effects& made_up_effects(Op op) {
  using enum graph::Effect::Access;
  static constexpr graph::Effects syncs = {.syncs = true};
  static constexpr graph::Effects exchange = {.list = {{{0, update}, {1, update}}}, .count = 2};
  return op == Op::ProgramId ? syncs : op == Op::Swap ? exchange : effects(op);
}

std::string ordered(HandMade& k) {
  order_by_demand(k.g, made_up_effects);
  std::string text;
  const std::function<void(RegionId)> list = [&](RegionId r) {
    for (const ValueId v : k.g[r].insts) {
      const Inst& in = k.g[v];
      text += std::string(text.empty() ? "" : ", ") + info(in.op).name;
      for (const ValueId a : in.args)
        if (k.g[a].op == Op::Param) text += " %" + std::to_string(index(a));
      for (const RegionId inner : in.regions) list(inner);
    }
  };
  list(k.g.bodies[0].region);
  return text;
}

ValueId append(HandMade& k, Inst inst) {
  const ValueId v = k.g.add(std::move(inst));
  k.g[k.g.bodies[0].region].insts.push_back(v);
  return v;
}

}  // namespace

TEST_CASE("no access crosses what synchronises, which stays though nothing uses it") {
  HandMade k({row, row}, {row});
  const ValueId x = k.b.load(k.refs[0]);
  append(k, {.op = Op::ProgramId, .type = Type::value(i32)});
  const ValueId y = k.b.load(k.refs[1]);
  k.b.store(k.refs[2], k.op(Op::Sub, {y, x}));
  append(k, {.op = Op::ProgramId, .type = Type::value(i32)});
  CHECK(ordered(k) == "load %0, program_id, load %1, sub, store %2, program_id");
}

TEST_CASE(
    "reads around what updates two Refs stay before or behind it, those of other Refs do not") {
  HandMade k({row, row, row, row}, {row});
  const ValueId x = k.b.load(k.refs[0]), barrier = k.b.load(k.refs[1]), other = k.b.load(k.refs[2]);
  append(k, {.op = Op::Swap, .args = {k.refs[0], k.refs[1]}});
  const ValueId later = k.b.load(k.refs[0]), z = k.b.load(k.refs[3]);
  const ValueId sum = k.op(Op::Sub, {k.op(Op::Max, {z, other}), k.op(Op::Min, {later, barrier})});
  k.b.store(k.refs[4], k.op(Op::Div, {sum, x}));
  CHECK(ordered(k) ==
        "load %1, load %0, swap %0 %1, load %3, load %2, max, load %0, min, sub, div, store %4");
}

TEST_CASE("a read stays between the writes of its own Ref and crosses those of others") {
  HandMade k({row}, {row, row});
  const ValueId zero = k.b.constant(f32, 0.0, {8});
  k.b.store(k.refs[1], zero);
  const ValueId old = k.b.load(k.refs[1]);  // used last, but before the next write of outputs[0]
  const ValueId x = k.b.load(k.refs[0]);    // may sink to its use
  k.b.store(k.refs[2], zero);
  k.b.store(k.refs[1], k.b.constant(f32, 1.0, {8}));
  k.b.store(k.refs[2], k.op(Op::Max, {x, old}));
  CHECK(k.body() ==
        "  %3: f32[8] = constant 0\n"
        "  store %1, %3\n"
        "  store %2, %3\n"
        "  %4: f32[8] = constant 1\n"
        "  %5: f32[8] = load %1\n"
        "  store %1, %4\n"
        "  %6: f32[8] = load %0\n"
        "  %7: f32[8] = max %6, %5\n"
        "  store %2, %7\n");
}

TEST_CASE("a read of an input may be recorded before or after a swap of another Ref") {
  const auto record = [](bool read_first) {
    HandMade k({row, row}, {row});
    ValueId y = no_value;
    if (read_first) y = k.b.load(k.refs[1]);
    const ValueId old = k.b.swap(k.refs[2], k.b.load(k.refs[0]));
    if (!read_first) y = k.b.load(k.refs[1]);
    k.b.store(k.refs[2], k.op(Op::Max, {y, old}));
    return to_text(k.canonical());
  };
  CHECK(record(true) == record(false));
}

TEST_CASE("a write of an aliased Ref is a border [C49]") {
  const auto record = [](bool aliased) {
    HandMade k({row}, {row});
    if (aliased) k.g.aliases.push_back({0, 0});
    const ValueId x = k.b.load(k.refs[0]);
    k.b.store(k.refs[1], k.b.constant(f32, 0.0, {8}));
    k.b.store(k.refs[1], k.op(Op::Exp, {x}));
    return k.body();
  };
  CHECK(record(false) ==
        "  %2: f32[8] = constant 0\n"
        "  store %1, %2\n"
        "  %3: f32[8] = load %0\n"
        "  %4: f32[8] = exp %3\n"
        "  store %1, %4\n");
  CHECK(record(true) ==
        "  %2: f32[8] = constant 0\n"
        "  %3: f32[8] = load %0\n"
        "  store %1, %2\n"
        "  %4: f32[8] = exp %3\n"
        "  store %1, %4\n");
}

TEST_CASE("regions without writes commute like reads") {
  const auto record = [](bool first) {
    HandMade k({row, row}, {row});
    const auto sum = [&](ValueId ref) {
      const ValueId lo = k.b.constant(i32, 0), hi = k.b.constant(i32, 4);
      const ValueId init = k.b.constant(f32, 0.0, {8});
      const RegionId body = k.region([&](Builder& b) {
        b.param(Type::value(i32));
        const ValueId acc = b.param(Type::value(f32, {8}));
        b.yield({b.add(Op::Add, {acc, b.load(ref)})});
      });
      const ValueId loop =
          k.b.add(Op::Loop, {lo, hi, init}, std::vector<RegionId>{body}, {{1, 1}, 0});
      return k.op(Op::Get, {loop}, {{0}, 0});
    };
    ValueId a = no_value, b = no_value;
    if (first) a = sum(k.refs[0]);
    b = sum(k.refs[1]);
    if (!first) a = sum(k.refs[0]);
    k.b.store(k.refs[2], k.op(Op::Div, {a, b}));
    const Graph g = k.canonical();
    return to_text(g) + canonical_bytes(g);
  };
  CHECK(record(true) == record(false));
}

TEST_CASE("a region that writes a Ref is a border for its reads") {
  HandMade k({row}, {row, row});
  k.b.store(k.refs[1], k.b.load(k.refs[0]));
  const ValueId before = k.b.load(k.refs[1]);
  const ValueId c =
      k.op(Op::Eq, {k.op(Op::ReduceMax, {k.b.load(k.refs[0])}, {{0}, 0}), k.b.constant(f32, 1.0)});
  const RegionId body =
      k.region([&](Builder& b) { b.store(k.refs[1], b.constant(f32, 3.0, {8})); });
  k.b.add(Op::When, {c}, std::vector<RegionId>{body});
  k.b.store(k.refs[2], before);
  const std::string text = k.body();
  CHECK(text.find("load %1") < text.find("when"));
}

TEST_CASE("dead reads, dead loops and dead conditions vanish") {
  HandMade k({row}, {row});
  const ValueId x = k.b.load(k.refs[0]);
  const RegionId loop = k.region([&](Builder& b) {
    b.param(Type::value(i32));
    b.param(Type::value(f32, {8}));
    b.yield({b.load(k.refs[0])});
  });
  k.b.add(Op::Loop, {k.b.constant(i32, 0), k.b.constant(i32, 9), x}, std::vector<RegionId>{loop},
          {{1, 1}, 0});
  const ValueId c = k.op(Op::Eq, {k.op(Op::ReduceMax, {x}, {{0}, 0}), k.b.constant(f32, 1.0)});
  k.b.add(Op::When, {c}, std::vector<RegionId>{k.region([&](Builder& b) { b.load(k.refs[0]); })});
  k.b.store(k.refs[1], k.b.constant(f32, 5.0, {8}));
  CHECK(k.body() == "  %2: f32[8] = constant 5\n  store %1, %2\n");
}

TEST_CASE("equal constants and pure duplicates are one, also those of enclosing regions") {
  HandMade k({row}, {row});
  const ValueId x = k.b.load(k.refs[0]);
  k.b.store(k.refs[1], k.op(Op::Exp, {x}));
  const ValueId i = k.b.constant(i32, 3), j = k.b.constant(i32, 3);
  const RegionId body = k.region([&](Builder& b) {
    b.param(Type::value(i32));
    b.store(k.refs[1], b.add(Op::Max, {b.add(Op::Exp, {x}), b.add(Op::Exp, {x})}));
  });
  k.b.add(Op::Loop, {i, j}, std::vector<RegionId>{body}, {{1, 1}, 0});
  CHECK(k.body() ==
        "  %2: f32[8] = load %0\n"
        "  %3: f32[8] = exp %2\n"
        "  store %1, %3\n"
        "  %4: i32[] = constant 3\n"
        "  %5 = loop %4, %4\n"
        "    { %6: i32[]\n"
        "      %7: f32[8] = max %3, %3\n"
        "      store %1, %7\n"
        "    }\n");
}

TEST_CASE("a one-use product under an add or a subtraction becomes fma") {
  const auto record = [](Op op, bool product_first, bool fma, int uses = 1) {
    HandMade k({row, row, row}, {row});
    k.g.fma = fma;
    const ValueId x = k.b.load(k.refs[0]), y = k.b.load(k.refs[1]), z = k.b.load(k.refs[2]);
    const ValueId p = k.op(Op::Mul, {x, y});
    if (uses == 2) k.b.store(k.refs[3], p);
    k.b.store(k.refs[3], k.op(op, {product_first ? p : z, product_first ? z : p}));
    return k.body();
  };
  const std::string xyz =
      "  %4: f32[8] = load %0\n  %5: f32[8] = load %1\n  %6: f32[8] = load %2\n";
  CHECK(record(Op::Add, true, true) == xyz + "  %7: f32[8] = fma %4, %5, %6\n  store %3, %7\n");
  CHECK(record(Op::Add, false, true) == xyz + "  %7: f32[8] = fma %4, %5, %6\n  store %3, %7\n");
  CHECK(record(Op::Sub, true, true) ==
        xyz + "  %7: f32[8] = neg %6\n  %8: f32[8] = fma %4, %5, %7\n  store %3, %8\n");
  CHECK(record(Op::Sub, false, true) ==
        "  %4: f32[8] = load %0\n  %5: f32[8] = neg %4\n  %6: f32[8] = load %1\n"
        "  %7: f32[8] = load %2\n  %8: f32[8] = fma %5, %6, %7\n  store %3, %8\n");
  CHECK(record(Op::Add, true, false).find("fma") == std::string::npos);
  CHECK(record(Op::Add, true, true, 2).find("fma") == std::string::npos);
}

TEST_CASE("of two products under an add the first is contracted") {
  HandMade k({row, row, row, row}, {row});
  std::vector<ValueId> v;
  for (int i = 0; i < 4; ++i) v.push_back(k.b.load(k.refs[static_cast<std::size_t>(i)]));
  const ValueId a = k.op(Op::Mul, {v[0], v[1]}), b = k.op(Op::Mul, {v[2], v[3]});
  k.b.store(k.refs[4], k.op(Op::Add, {a, b}));
  const std::string text = k.body();
  CHECK(text.find("%9: f32[8] = mul %7, %8\n  %10: f32[8] = fma %5, %6, %9") != std::string::npos);
}

TEST_CASE("integer products are not contracted") {
  HandMade k({{{8}, i32}}, {{{8}, i32}});
  const ValueId x = k.b.load(k.refs[0]);
  k.b.store(k.refs[1], k.op(Op::Add, {k.op(Op::Mul, {x, x}), x}));
  CHECK(k.body().find("fma") == std::string::npos);
}

TEST_CASE("constants fold through elementwise ops and shapes [C59] [C60]") {
  const auto folded = [](Op op, DType d, std::int64_t x, std::optional<std::int64_t> y = {}) {
    HandMade k({}, {{{4}, d}});
    std::vector<ValueId> operands = {k.b.constant(d, x)};
    if (y) operands.push_back(k.b.constant(d, *y));
    const ValueId v = k.b.elementwise(op, operands);
    k.b.store(k.refs[0], k.b.broadcast_to(v, {4}));
    const std::string text = k.body();
    const std::size_t at = text.find("constant ") + 9;
    REQUIRE(text.find("store %0, %1") != std::string::npos);  // nothing but the constant is left
    return text.substr(at, text.find('\n') - at);
  };
  CHECK(folded(Op::Add, i8, 100, 100) == "-56");
  CHECK(folded(Op::Div, i32, -7, 2) == "-3");
  CHECK(folded(Op::Div, i32, 7, 0) == "-1");
  CHECK(folded(Op::Div, u8, 7, 0) == "255");
  CHECK(folded(Op::Div, i32, INT32_MIN, -1) == "-2147483648");
  CHECK(folded(Op::Rem, i32, -7, 2) == "-1");
  CHECK(folded(Op::Rem, i64, 7, 0) == "7");
  CHECK(folded(Op::ShiftLeft, i32, 3, 40) == "0");
  CHECK(folded(Op::PopulationCount, i8, -1) == "8");
  CHECK(folded(Op::PopulationCount, i64, -2) == "63");
  CHECK(folded(Op::ShiftLeft, i32, -64, 2) == "-256");
  CHECK(folded(Op::ShiftRight, i32, -7, 4) == "-1");
  CHECK(folded(Op::ShiftRight, i32, -7, 99) == "-1");
  CHECK(folded(Op::ShiftRight, u8, 200, 3) == "25");
  CHECK(folded(Op::Max, u8, 200, 3) == "200");
  CHECK(folded(Op::Mul, f32, 3, 5) == "15");
  CHECK(folded(Op::Add, f16, 2048, 1) == "2048");  // ties to even
  CHECK(folded(Op::Add, bf16, 256, 3) == "260");
}

TEST_CASE("what targets may round or sign differently does not fold") {
  const auto left = [](Op op, double x, double y) {
    HandMade k({}, {{{}, f32}});
    k.b.store(k.refs[0], k.b.elementwise(op, {k.b.constant(f32, x), k.b.constant(f32, y)}));
    return k.body().find(info(op).name) != std::string::npos;
  };
  CHECK(left(Op::Div, 0.0, 0.0));
  CHECK(left(Op::Max, 0.0, -0.0));
  CHECK(left(Op::Pow, 2.0, 3.0));
  CHECK_FALSE(left(Op::Div, 1.0, 0.0));
}

TEST_CASE("program ids of axes of one program and sizes of static axes are constants [C20] [C21]") {
  HandMade k({}, {{{}, i32}}, {1, dim_symbol(0), 7});
  ValueId sum = k.op(Op::ProgramId, {}, {{0}, 0});
  for (const std::int64_t axis : {0, 2})
    sum = k.op(Op::Add, {sum, k.op(Op::NumPrograms, {}, {{axis}, 0})});
  k.b.store(k.refs[0], sum);
  k.b.store(k.refs[0], k.op(Op::NumPrograms, {}, {{1}, 0}));
  CHECK(k.body() ==
        "  %1: i32[] = constant 8\n  store %0, %1\n"
        "  %2: i32[] = num_programs [1]\n  store %0, %2\n");
}

TEST_CASE("a condition that is known is gone") {
  HandMade k({}, {row}, {1});
  const ValueId zero = k.op(Op::Eq, {k.op(Op::ProgramId, {}, {{0}, 0}), k.b.constant(i32, 0)});
  k.b.add(Op::When, {zero}, std::vector<RegionId>{k.region([&](Builder& b) {
            b.store(k.refs[0], b.constant(f32, 1.0, {8}));
          })});
  k.b.add(Op::When, {k.op(Op::Not, {zero})}, std::vector<RegionId>{k.region([&](Builder& b) {
            b.store(k.refs[0], b.constant(f32, 2.0, {8}));
          })});
  CHECK(k.body() == "  %1: f32[8] = constant 1\n  store %0, %1\n");
}

TEST_CASE("a mask that always holds is gone") {
  HandMade k({row}, {row});
  const ValueId all = k.b.constant(bool_, 1, {8});
  k.b.store(k.refs[1], k.b.load(k.refs[0], all, k.b.constant(f32, 9.0, {8})), all);
  k.b.swap(k.refs[1], k.b.constant(f32, 1.0, {8}), all);
  CHECK(k.body() ==
        "  %2: f32[8] = load %0\n  store %1, %2\n"
        "  %3: f32[8] = constant 1\n  %4: f32[8] = swap %1, %3\n");
}

TEST_CASE("views and shapes that change nothing are gone, and two in a row are one") {
  HandMade k({{{2, 3}, f32}}, {{{2, 3}, f32}});
  ValueId v = k.b.load(k.op(Op::RefReshape, {k.refs[0]}, {}, Type::ref({}, {2, 3}, {})));
  v = k.op(Op::Transpose, {k.op(Op::Transpose, {v}, {{1, 0}, 0})}, {{1, 0}, 0});
  v = k.op(Op::Reshape, {k.op(Op::Reshape, {v}, {}, Type::value({}, {6}))}, {},
           Type::value({}, {2, 3}));
  k.b.store(k.refs[1], v);
  CHECK(k.body() == "  %2: f32[2,3] = load %0\n  store %1, %2\n");
}

TEST_CASE("results of index maps become i32") {
  HandMade k({row}, {row}, {1});
  k.map(0, [](auto& ids, Builder& b) { return std::vector{b.cast(ids[0], i64)}; });
  const Graph g = k.canonical();
  CHECK(to_text(g).find("%2: i32[] = cast %1\n      yield %2") != std::string::npos);
}

TEST_CASE("symbols are numbered by position, whatever the user called them") {
  const auto record = [](const char* m, const char* n) {
    HandMade k({row, row}, {row});
    k.g.mapping.block_mappings[0].array_aval.shape[0] = dim(m);
    k.g.mapping.block_mappings[1].array_aval.shape[0] = dim(n);
    k.g.mapping.block_mappings[2].array_aval.shape[0] = dim(n) + dim(m);
    k.b.store(k.refs[2], k.b.load(k.refs[0]));
    const Graph g = k.canonical();
    CHECK(g.num_symbols == 2);
    CHECK(to_string(g.mapping.block_mappings[1].array_aval.shape) == "[s1]");
    return canonical_bytes(g);
  };
  CHECK(record("rows", "cols") == record("cols", "rows"));
}

TEST_CASE("names and lines stay with their values") {
  HandMade k({row}, {row});
  k.b.load(k.refs[0], no_value, no_value, {"dead.cpp", 1});
  const ValueId x = k.b.load(k.refs[0], no_value, no_value, {"dir/alive.cpp", 7});
  k.g.names.resize(k.g.insts.size());
  k.g.names[index(x)] = "acc";
  k.b.store(k.refs[1], x);
  CHECK(to_text(k.canonical(), true).find("load %0  ; acc alive.cpp:7\n") != std::string::npos);
}

TEST_CASE("canonicalize is idempotent on random kernels") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    test::RandomOptions options;
    options.aliases = seed % 2 == 0;
    const RandomKernel k = random_kernel(seed, options);
    const Graph again = canonicalize(k.graph);
    INFO("seed " << seed);
    REQUIRE(canonical_bytes(again) == canonical_bytes(k.graph));
    REQUIRE(to_text(again, true) == to_text(k.graph, true));
  }
}

namespace {

// Exchanges neighbours in every region wherever the contract says that they commute.
void shuffle(Graph& g, Random& random, RegionId r) {
  const auto uses = [&](ValueId user, ValueId v, const auto& self) -> bool {
    for (const ValueId a : g[user].args)
      if (a == v) return true;
    for (const RegionId inner : g[user].regions) {
      for (const ValueId y : g[inner].yields)
        if (y == v) return true;
      for (const ValueId i : g[inner].insts)
        if (self(i, v, self)) return true;
    }
    return false;
  };
  const auto effects = [&](ValueId v, std::vector<int>& reads, std::vector<int>& writes,
                           const auto& self) -> void {
    const Inst& in = g[v];
    for (const graph::Effect& e : graph::effects(in.op).on_memory())
      (e.writes() ? writes : reads).push_back(g.alias_class(g.root(in.args[e.operand])));
    for (const RegionId inner : in.regions)
      for (const ValueId i : g[inner].insts) self(i, reads, writes, self);
  };
  for (const ValueId v : std::vector<ValueId>(g[r].insts))
    for (const RegionId inner : g[v].regions) shuffle(g, random, inner);
  std::vector<ValueId>& list = g[r].insts;
  for (std::size_t round = 0; round < 3 * list.size(); ++round) {
    if (list.size() < 2) return;
    const auto i = static_cast<std::size_t>(random.below(static_cast<int>(list.size()) - 1));
    std::vector<int> ra, wa, rb, wb;
    effects(list[i], ra, wa, effects);
    effects(list[i + 1], rb, wb, effects);
    const auto meet = [](const std::vector<int>& a, const std::vector<int>& b) {
      return std::any_of(a.begin(), a.end(),
                         [&](int c) { return std::find(b.begin(), b.end(), c) != b.end(); });
    };
    const bool commute = (wa.empty() || wb.empty()) && !meet(wa, rb) && !meet(ra, wb);
    if (commute && !uses(list[i + 1], list[i], uses)) std::swap(list[i], list[i + 1]);
  }
}

}  // namespace

TEST_CASE("random kernels recorded in another order of commuting instructions are the same") {
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    test::RandomOptions options;
    options.aliases = seed % 3 == 0;
    const RandomKernel k = random_kernel(seed, options);
    Graph other = k.recorded;
    Random random(seed);
    shuffle(other, random, other.bodies[0].region);
    moved += other.regions != k.recorded.regions;
    INFO("seed " << seed);
    REQUIRE(to_text(canonicalize(other)) == to_text(k.graph));
    REQUIRE(canonical_bytes(canonicalize(other)) == canonical_bytes(k.graph));
  }
  CHECK(moved > 150);
}

namespace {

Graph chain(int length) {
  HandMade k({row}, {row});
  ValueId v = k.b.load(k.refs[0]);
  for (int i = 0; i < length; ++i) v = k.op(i % 2 ? Op::Exp : Op::Sin, {v});
  k.b.store(k.refs[1], v);
  return k.canonical();
}

}  // namespace

TEST_CASE("a chain of 600,000 operations overflows no stack") {
  const Graph g = chain(600'000);
  CHECK(g.insts.size() == 600'004);
  CHECK(to_text(g).size() > 10'000'000);
  CHECK(canonical_bytes(g).size() > 5'000'000);
}

TEST_CASE("a chain of 60,000 operations comes back from JSON") {
  const Graph g = chain(60'000);
  CHECK(canonical_bytes(from_json(to_json(g))) == canonical_bytes(g));
}
