// Products of wgmma beside what is computed of them: A in registers, sums scaled in place, loops of
// two products whose second one runs while the next iteration computes.
#include <functional>
#include <optional>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "tests/passes/lowering.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

struct Iteration {
  Value i, shrink, top, acc;
};
using Sum = std::function<Value(const Iteration&, const Value& p, const Value& v)>;

// A loop over blocks of keys, with its sum as an iteration makes it.
graph::Graph attention(const Sum& sum, std::optional<bool> specialize = true,
                       bool persistent = false) {
  const auto body = [=](Ref q, Ref k, Ref v, Ref o, Ref totals) {
    const auto iteration = [&](Value i, Value top, Value total, Value acc) {
      const Value s = dot(q[_], k[{ds(i * 32, 32), _}], {.trans_b = true});
      const Value next = maximum(top, max(s, {.axis = {1}, .keepdims = true}));
      const Value p = exp2(s - next), shrink = exp2(top - next);
      return carry(next, total * shrink + pl::sum(p, {.axis = {1}, .keepdims = true}),
                   sum({i, shrink, top, acc}, p.astype(f16), v[{ds(i * 32, 32), _}]));
    };
    auto [top, total, acc] = loop(0, 8, iteration, full({64, 1}, -1e30f, f32), zeros({64, 1}, f32),
                                  zeros({64, 64}, f32));
    (void)top;
    o[_] = acc;
    totals[_] = total;
  };
  return traced(body,
                {.name = "attention",
                 .out_type = {{{64, 64}, f32}, {{64, 1}, f32}},
                 .grid = {1},
                 .compiler_params = {.num_stages = 2,
                                     .warp_specialize = specialize,
                                     .persistent = persistent}},
                {array({64, 64}, f16), array({256, 64}, f16), array({256, 64}, f16)});
}

Value scaled(const Iteration& t, const Value& p, const Value& v) {
  return t.acc * t.shrink + dot(p, v);
}

lowered::Program lowered_for(const graph::Graph& g) {
  return cuda::lower(g, {.compute_capability = 90});
}

std::string text(const graph::Graph& g) { return lowered::to_text(lowered_for(g)); }

bool is_rotated(const graph::Graph& g) {
  return text(g).find("behind the last iteration") != std::string::npos;
}

// What is said of the second product.
std::string remarks(const graph::Graph& g) {
  std::string all;
  for (const Remark& r : lowered_for(g).remarks)
    if (r.at.line > 0 && r.text.find(" at a time, not 16") == std::string::npos)
      all += r.text + "\n";
  return all;
}

}  // namespace

TEST_CASE("A of wgmma that is computed of registers stays in them, an A that is loaded does not") {
  const auto chain = [](const std::string& a) {
    return emitted(whole({"f16[64,64]", "f16[64,64]"}, {"f32[64,64]"}, R"(
  %3: f16[64,64] = load %0
  %4: f16[64,64] = load %1
  %5: f32[64,64] = dot %3, %4
  %6: f16[64,64] = cast %5
  %7: f32[64,64] = dot )" + a + R"(, %4
  %8: f32[64,64] = add %5, %7
  store %2, %8)"));
  };
  CHECK(occurrences(chain("%6"), "_rs_x4<true") == 1);
  CHECK(occurrences(chain("%3"), "_rs") == 0);
}

TEST_CASE("a loop of two products begins the second one in the iteration behind its own") {
  const graph::Graph g = attention(scaled);
  CHECK_THAT(text(g), Shows({"first iteration of loop",
                             "advance ring 0",
                             "loop",
                             "wait wgmma_group",
                             "1 back",
                             "by wgmma",
                             "by wgmma",
                             "advance ring 1",
                             "all but 1",
                             "arrive",
                             "advance ring 0",
                             "behind the last iteration",
                             "wait wgmma_group",
                             "arrive",
                             "advance ring 1",
                             "producer",
                             "wait",
                             "advance ring 0",
                             "wait",
                             "advance ring 1"}));
  CHECK(remarks(g).empty());
  CHECK_FALSE(is_rotated(attention(scaled, false)));
}

TEST_CASE(
    "a second product that nobody fetches for is said to wait, unless somebody wants no fetching") {
  CHECK(remarks(attention(scaled, std::nullopt)) ==
        "not begun before the next iteration computes: no warpgroup fetches for its loop\n");
  CHECK(remarks(attention(scaled, false)).empty());
}

TEST_CASE("a persistent block begins such products, too, and frees the last slot but one behind") {
  const graph::Graph g = attention(scaled, true, true);
  CHECK_THAT(text(g),
             Shows({"grid loop programs", "first iteration of loop", "1 back", "advance ring 1",
                    "behind the last iteration", "wait wgmma_group", "1 back", "advance ring 1",
                    "producer", "grid loop programs", "wait", "advance ring 0"}));
  CHECK(remarks(g).empty());
}

TEST_CASE("a product that the next iteration cannot begin is said to be none, with its line") {
  const auto why = [](const Sum& sum) {
    const graph::Graph g = attention(sum);
    CHECK_FALSE(is_rotated(g));
    return remarks(g);
  };
  CHECK(why([](const Iteration& t, const Value& p, const Value& v) {
          return t.acc * f32(t.i) + dot(p, v);
        })
            .find("not begun before the next iteration computes: what it is made of changes behind "
                  "it") != std::string::npos);
  CHECK(why([](const Iteration& t, const Value& p, const Value& v) {
          return t.acc * t.top + dot(p, v);
        }).find("what it is made of changes behind it") != std::string::npos);
}
