// The canonical form of branches and scopes.
#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "tests/graph/kernel.hpp"

using namespace palladium;
using namespace palladium::graph;

namespace {

const ShapeDtype row{{8}, f32};

// What a switch by `which` of x, whose branches give `yields` of x, is canonically; o = results.
std::string switched(
    const std::function<ValueId(HandMade&)>& which,
    const std::vector<std::function<std::vector<ValueId>(Builder&, ValueId)>>& give,
    const std::vector<std::int64_t>& read) {
  HandMade k({row, {{}, i32}}, {row});
  const ValueId x = k.b.load(k.refs[0]), index = which(k);
  std::vector<RegionId> regions;
  for (const auto& yields : give)
    regions.push_back(k.region([&](Builder& b) { b.yield(yields(b, x)); }));
  const ValueId v = k.b.add(Op::Switch, {index}, regions);
  for (const std::int64_t r : read) k.b.store(k.refs[2], k.op(Op::Get, {v}, {{r}, 0}));
  return k.body();
}

ValueId loaded_index(HandMade& k) { return k.b.load(k.refs[1]); }

}  // namespace

TEST_CASE("a switch keeps what is read of it, once, and what its branches do not agree on") {
  const auto neg = [](Builder& b, ValueId x) { return b.add(Op::Neg, {x}); };
  CHECK(switched(loaded_index,
                 {[&](Builder& b, ValueId x) {
                    return std::vector{x, x, b.add(Op::Exp, {x}), x};
                  },
                  [&](Builder& b, ValueId x) {
                    return std::vector{x, neg(b, x), b.add(Op::Log, {x}), neg(b, x)};
                  }},
                 {3, 0, 1}) ==
        "  %3: i32[] = load %1\n"
        "  %4: f32[8] = load %0\n"
        "  %5 = switch %3\n"
        "    {\n"
        "      yield %4\n"
        "    }\n"
        "    {\n"
        "      %6: f32[8] = neg %4\n"
        "      yield %6\n"
        "    }\n"
        "  %7: f32[8] = get %5 [0]\n"
        "  store %2, %7\n"
        "  store %2, %4\n"
        "  store %2, %7\n");
}

TEST_CASE("a switch whose index is known is the branch that it names") {
  const auto give = [](Op op) {
    return [op](Builder& b, ValueId x) { return std::vector{b.add(op, {x})}; };
  };
  const std::vector<std::pair<int, const char*>> cases = {
      {-3, "exp"}, {0, "exp"}, {1, "log"}, {2, "neg"}, {9, "neg"}};
  for (const auto& [index, name] : cases)
    CHECK(switched([&](HandMade& k) { return k.b.constant(i32, index); },
                   {give(Op::Exp), give(Op::Log), give(Op::Neg)}, {0}) ==
          std::string("  %3: f32[8] = load %0\n  %4: f32[8] = ") + name + " %3\n  store %2, %4\n");
  CHECK(switched([&](HandMade& k) { return k.b.constant(bool_, 1); },
                 {give(Op::Exp), give(Op::Log)}, {0})
            .find("log") != std::string::npos);
  CHECK(switched(loaded_index, {give(Op::Exp)}, {0}).find("switch") == std::string::npos);
}

TEST_CASE("reads stay on their side of branches that write, and move across others") {
  HandMade k({row, {{}, i32}}, {row, row});
  k.b.store(k.refs[2], k.b.load(k.refs[0]));
  const ValueId before = k.b.load(k.refs[2]), index = k.b.load(k.refs[1]);
  const RegionId writes =
      k.region([&](Builder& b) { b.store(k.refs[2], b.constant(f32, 3.0, {8})); });
  k.b.add(Op::Switch, {index}, std::vector<RegionId>{writes, k.region([](Builder&) {})});
  const RegionId reads = k.region([&](Builder& b) { b.yield({b.load(k.refs[2])}); });
  const RegionId other = k.region([&](Builder& b) { b.yield({b.load(k.refs[0])}); });
  const ValueId v = k.b.add(Op::Switch, {index}, std::vector<RegionId>{reads, other});
  k.b.store(k.refs[3], k.op(Op::Add, {k.op(Op::Get, {v}, {{0}, 0}), before}));
  const std::string text = k.body();
  const std::size_t first = text.find("switch"), second = text.find("switch", first + 1);
  CHECK(text.find("load %2") < first);
  CHECK(text.find("store %2, %") < first);
  CHECK(text.find("load %2", first) > second);
}

TEST_CASE("what a scope does to its own memory is no border for anything else") {
  HandMade k({row}, {row, row});
  const RegionId r = k.region([&](Builder& b) {
    const ValueId tmp = b.param(Type::ref(f32, {8}, Space::smem));
    b.store(tmp, b.load(k.refs[0]));
    b.yield({b.load(tmp), b.constant(f32, 1.0, {8})});
  });
  const ValueId v = k.b.add(Op::Scoped, {}, std::vector<RegionId>{r});
  k.b.store(k.refs[1], k.b.load(k.refs[0]));
  k.b.store(k.refs[2], k.op(Op::Get, {v}, {{0}, 0}));
  CHECK(k.body() ==
        "  %3: f32[8] = load %0\n"
        "  store %1, %3\n"
        "  %4 = run_scoped\n"
        "    { %5: ref smem f32[8]\n"
        "      %6: f32[8] = load %0\n"
        "      store %5, %6\n"
        "      %7: f32[8] = load %5\n"
        "      yield %7\n"
        "    }\n"
        "  %8: f32[8] = get %4 [0]\n"
        "  store %2, %8\n");
}
