// Products that stand one behind the other, outside of loops, and are added to each other, and to
// what a loop in front of them leaves: of all targets the sums are those of plain loops, whatever
// else reads a part of them.
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

struct Chain {
  std::int64_t m = 64, n = 64, k = 32, products = 3;
  DType dtype = bf16;
  bool from_zeros = true, keeps_a_part = false, computes_between = false;
  std::int64_t looped = 0;  // of the products, the first ones by a loop ...
  bool loop_last = false;   // ... which the body has behind the others
  std::uint64_t seed = 1;   // of the order in which they are added

  static Chain drawn(Random& random) {
    return {.m = random.pick({16, 64, 128}),
            .n = random.pick({16, 64, 96}),
            .k = random.pick({16, 32, 64}),
            .products = random.between(2, 7),
            .dtype = random.chance(50) ? f16 : bf16,
            .from_zeros = random.chance(50),
            .keeps_a_part = random.chance(30),
            .computes_between = random.chance(20),
            .looped = random.pick({0, 0, 1, 2}),
            .loop_last = random.chance(50),
            .seed = random.bits()};
  }
  std::string text() const {
    return std::to_string(products) + " of " + std::to_string(m) + "x" + std::to_string(n) + "x" +
           std::to_string(k) + " of " + std::string(dtype.name()) +
           (from_zeros ? ", from zeros" : "") + (keeps_a_part ? ", a part kept" : "") +
           (computes_between ? ", computed between" : "") +
           (looped ? ", by a loop " + std::to_string(looped) : "") + (loop_last ? " at last" : "");
  }

  Kernel kernel() const {
    const Chain c = *this;
    const auto body = [c](Ref a, Ref b, Ref o, Ref part) {
      Random random(c.seed);
      std::vector<Value> terms;
      if (c.from_zeros) terms.push_back(zeros({c.m, c.n}, f32));
      const auto add_loop = [&] {
        const auto add = [&](const Value& i, const Value& sum) {
          return sum + dot(a[{i, _, _}], b[{i, _, _}]);
        };
        terms.push_back(loop(0, c.looped, add, zeros({c.m, c.n}, f32)));
      };
      if (c.looped > 0 && !c.loop_last) add_loop();
      for (std::int64_t i = c.looped; i < c.products; ++i) {
        terms.push_back(dot(a[{i, _, _}], b[{i, _, _}]));
        if (c.computes_between && i == c.looped) terms[0] = terms[0] * 1.0f;
        if (terms.size() > 1 && random.chance(60)) join(terms, random);
      }
      if (c.looped > 0 && c.loop_last) add_loop();
      if (c.keeps_a_part) part[_] = terms[0];
      while (terms.size() > 1) join(terms, random);
      o[_] = terms[0];
      if (!c.keeps_a_part) part[_] = terms[0] * 2.0f;
    };
    const ShapeDtype sums{{m, n}, f32};
    return pallas_call(body, {.name = "chain", .out_type = {sums, sums}});
  }

 private:
  // Two terms become their sum.
  static void join(std::vector<Value>& terms, Random& random) {
    const std::size_t i =
        static_cast<std::size_t>(random.below(static_cast<int>(terms.size()) - 1));
    terms[i] = random.chance(50) ? terms[i] + terms[i + 1] : terms[i + 1] + terms[i];
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
};

void check(const Chain& c) {
  CAPTURE(c.text());
  Random random(c.seed);
  const auto small = [&](auto) { return random.between(-2, 2); };
  const Array a = make_array<float>({c.products, c.m, c.k}, small),
              b = make_array<float>({c.products, c.k, c.n}, small);
  std::vector<float> expected(static_cast<std::size_t>(c.m * c.n));
  for (std::int64_t p = 0; p < c.products; ++p)
    for (std::int64_t i = 0; i < c.m; ++i)
      for (std::int64_t k = 0; k < c.k; ++k)
        for (std::int64_t j = 0; j < c.n; ++j)
          expected[static_cast<std::size_t>(i * c.n + j)] +=
              a.data<float>()[(p * c.m + i) * c.k + k] * b.data<float>()[(p * c.k + k) * c.n + j];
  for_each_target("chain", [&](Target target) {
    const auto [o, part] =
        c.kernel()
            .on(target)(on(target, a.astype(c.dtype)), on(target, b.astype(c.dtype)))
            .unpack<2>();
    const Array sums = on_cpu(o), others = on_cpu(part);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("element " << i);
      REQUIRE(sums.data<float>()[i] == expected[i]);
      if (!c.keeps_a_part) REQUIRE(others.data<float>()[i] == 2 * expected[i]);
    }
  });
}

}  // namespace

TEST_CASE("products one behind the other are added up, from zeros or from the first one") {
  for (const bool from_zeros : {true, false})
    for (const std::int64_t products : {2, 5})
      check({.products = products, .from_zeros = from_zeros});
  check({.keeps_a_part = true});
  check({.computes_between = true});
}

TEST_CASE("products behind a loop are added to what it leaves, in the same registers") {
  for (const std::int64_t looped : {1, 2, 4})
    for (const bool last : {false, true})
      check({.products = 5, .looped = looped, .loop_last = last});
  check({.products = 3, .keeps_a_part = true, .looped = 2});
  check({.products = 3, .computes_between = true, .looped = 2});
}

TEST_CASE("a product that is added to what a loop leaves has no registers of its own") {
  // Adapters of low rank: of what the loop leaves beside its sum, or of what is there before.
  const auto adapted = [](bool before) {
    return pallas_call(
        [=](Ref x, Ref w, Ref down, Ref up, Ref o) {
          if (before) {
            const Value part = dot(down[{ds(0, 128), _}], up[_]);
            const auto add = [&](const Value& i, const Value& sum) {
              const Slice now = ds(i * 64, 64);
              return sum + dot(x[{_, now}], w[{now, _}]);
            };
            o[_] = (part + loop(0, 4, add, zeros({128, 256}, f32))).astype(bf16);
            return;
          }
          const auto add = [&](const Value& i, const Value& sum, const Value& low) {
            const Slice now = ds(i * 64, 64);
            const Value a = x[{_, now}];
            return carry(sum + dot(a, w[{now, _}]), low + dot(a, down[{now, _}]));
          };
          const auto [sum, low] = loop(0, 4, add, zeros({128, 256}, f32), zeros({128, 16}, f32));
          o[_] = (sum + dot(low.astype(bf16), up[_])).astype(bf16);
        },
        {.name = "adapted", .out_type = {{128, 256}, bf16}});
  };
  for (const bool before : {false, true}) {
    const std::string text = adapted(before)
                                 .lower(ShapeDtype{{128, 256}, bf16}, ShapeDtype{{256, 256}, bf16},
                                        ShapeDtype{{256, 16}, bf16}, ShapeDtype{{16, 256}, bf16})
                                 .decisions({.arch = "sm_90a"});
    INFO(text);
    std::size_t products = 0;
    for (std::size_t at = 0; (at = text.find("by wgmma", at + 1)) != text.npos; ++products) {
      const std::size_t line = text.rfind('\n', at) + 1;
      CHECK(text.substr(line, at - line).find("+=") != text.npos);
    }
    CHECK(products == (before ? 2 : 3));
  }
}

TEST_CASE("of products one behind the other no more begin than shared memory has room for") {
  check({.m = 128, .n = 128, .k = 128, .products = 5});
}

TEST_CASE("drawn sums of products one behind the other are those of plain loops") {
  for_seeds(1, 40, [](std::uint64_t seed) {
    Random random(seed);
    check(Chain::drawn(random));
  });
}
