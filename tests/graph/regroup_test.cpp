// Products by constants under approximate maths.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>

#include "tests/graph/kernel.hpp"

using namespace palladium;
using namespace palladium::graph;

namespace {

const ShapeDtype row{{8}, f32};

/// The body of a kernel of x, which stores what `made` makes of it.
std::string stored(const std::function<ValueId(HandMade& k, ValueId x)>& made, bool approx = true) {
  HandMade k({row}, {row});
  k.g.approx_math = approx;
  k.b.store(k.refs[1], made(k, k.b.load(k.refs[0])));
  const std::string text = k.body();
  const Graph once = canonicalize(k.g);
  CHECK(to_text(canonicalize(once)) == to_text(once));
  return text;
}

ValueId constant(HandMade& k, double x) { return k.b.constant(f32, x, {8}); }
ValueId times(HandMade& k, ValueId x, double by) { return k.op(Op::Mul, {x, constant(k, by)}); }
ValueId seen(HandMade& k) {
  return k.op(Op::Lt,
              {k.b.add(Op::Iota, {}, {{0}, 0}, Type::value(i32, {8})), k.b.constant(i32, 5, {8})});
}
ValueId folded(HandMade& k, Op op, ValueId x) {
  return k.b.broadcast_to(k.b.add(op, {x}, {{0}, 0}), {8});
}

}  // namespace

TEST_CASE("approximate maths multiplies by one constant for several") {
  const auto twice = [](HandMade& k, ValueId x) { return times(k, times(k, x, 2), 3); };
  CHECK(stored(twice) ==
        "  %2: f32[8] = load %0\n  %3: f32[8] = constant 6\n  %4: f32[8] = mul %2, %3\n"
        "  store %1, %4\n");
  CHECK(stored(twice, false).find("constant 6") == std::string::npos);
  CHECK(stored([](HandMade& k, ValueId x) {
          return k.op(Op::Div, {x, constant(k, 4)});
        }) ==
        "  %2: f32[8] = load %0\n  %3: f32[8] = constant 0.25\n  %4: f32[8] = mul %2, %3\n"
        "  store %1, %4\n");
}

TEST_CASE("a product by a constant leaves what chooses between it and another constant") {
  const std::string text = stored([](HandMade& k, ValueId x) {
    const ValueId masked = k.op(Op::Select, {seen(k), times(k, x, 4), constant(k, -8)});
    return times(k, masked, 2);
  });
  CHECK(text.find("constant -2\n") != std::string::npos);
  CHECK(text.find("constant 8\n") != std::string::npos);
  CHECK(text.find("constant 4\n") == std::string::npos);
  CHECK(stored([](HandMade& k, ValueId x) {
          return times(k, k.op(Op::Select, {seen(k), constant(k, -INFINITY), times(k, x, 4)}), 2);
        }).find("constant -inf") != std::string::npos);
}

TEST_CASE("the largest of products by a positive constant is the product of the largest") {
  const auto largest_below = [](double by, Op op, bool small = true) {
    return stored([=](HandMade& k, ValueId x) {
      const ValueId p = times(k, small ? k.op(Op::Tanh, {x}) : x, by);
      return k.op(Op::Sub, {p, folded(k, op, p)});
    });
  };
  for (const Op op : {Op::ReduceMax, Op::ReduceMin}) {
    CHECK(largest_below(0.5, op).find(std::string(info(op).name) + " %3 [0]") != std::string::npos);
    CHECK(largest_below(0.5, op).find("fma %3") != std::string::npos);
    CHECK(largest_below(-0.5, op).find("fma") == std::string::npos);
    CHECK(largest_below(0, op).find("fma") == std::string::npos);
    // Of what may be a mask's number a contraction leaves the rest of a rounding.
    CHECK(largest_below(0.5, op, false).find("fma") == std::string::npos);
  }
}

TEST_CASE("what is chosen instead of a product is subtracted from by itself") {
  const auto less = [](double other) {
    return stored([=](HandMade& k, ValueId x) {
      const ValueId p = times(k, k.op(Op::Tanh, {x}), 3);
      const ValueId masked = k.op(Op::Select, {seen(k), p, constant(k, other)});
      return k.op(Op::Sub, {times(k, masked, 2), folded(k, Op::ReduceMax, x)});
    });
  };
  const auto is_asked_behind = [&](double other) {
    const std::string text = less(other);
    CHECK(text.find("constant 6\n") != std::string::npos);
    CHECK(text.find("select") != std::string::npos);
    return text.find("fma") < text.find("select");
  };
  CHECK(is_asked_behind(-6e9));
  // What is small, or infinite, a contraction takes as it is.
  CHECK(!is_asked_behind(-6.0));
  CHECK(!is_asked_behind(-INFINITY));
}

TEST_CASE("exp of what is small less a number of its row is exp2 of a contraction") {
  const auto power = [](bool small) {
    return stored([=](HandMade& k, ValueId x) {
      const ValueId y = small ? k.op(Op::Tanh, {x}) : x;
      return k.op(Op::Exp, {k.op(Op::Sub, {y, folded(k, Op::ReduceMax, x)})});
    });
  };
  CHECK(power(true).find("fma") != std::string::npos);
  CHECK(power(true).find("exp2") != std::string::npos);
  CHECK(power(false).find("fma") == std::string::npos);
  CHECK(power(false).find("exp2") == std::string::npos);
}

TEST_CASE("approximate maths multiplies numbers of a row before elements") {
  const auto products = [](const std::string& text) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find("f32[8] = mul", at)) != text.npos; ++at) ++n;
    return n;
  };
  const auto scaled = [](HandMade& k, ValueId x) {
    const ValueId by_sum = k.op(Op::Mul, {x, folded(k, Op::ReduceSum, x)});
    return k.op(Op::Mul, {folded(k, Op::ReduceMax, x), by_sum});
  };
  CHECK(products(stored(scaled)) == 1);
  CHECK(stored(scaled).find("f32[] = mul") != std::string::npos);
  CHECK(products(stored(scaled, false)) == 2);
  // What others use stays.
  CHECK(stored([](HandMade& k, ValueId x) {
          const ValueId by_sum = k.op(Op::Mul, {x, folded(k, Op::ReduceSum, x)});
          return k.op(Op::Sub, {k.op(Op::Mul, {by_sum, folded(k, Op::ReduceMax, x)}), by_sum});
        }).find("f32[] = mul") == std::string::npos);
}

TEST_CASE("products that others use, and constants that would overflow, stay") {
  CHECK(stored([](HandMade& k, ValueId x) {
          const ValueId p = times(k, x, 2);
          return k.op(Op::Max, {times(k, p, 3), p});
        }).find("constant 6") == std::string::npos);
  for (const double by : {1e30, 1e-30})
    CHECK(stored([=](HandMade& k, ValueId x) {
            return times(k, times(k, x, by), by);
          }).find("inf") == std::string::npos);
  CHECK(stored([](HandMade& k, ValueId x) {
          return k.op(Op::Div, {x, constant(k, 0)});
        }).find("div") != std::string::npos);
}
