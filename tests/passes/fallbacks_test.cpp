// What could have been copied asynchronously, by TMA or ahead and is not is said, with the reason.
#include <functional>
#include <optional>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/passes/lowering.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string remarks(const graph::Graph& g, int compute_capability) {
  std::string all;
  for (const Remark& r : cuda::lower(g, {.compute_capability = compute_capability}).remarks)
    if (r.text.find(" at a time, not 16") == std::string::npos) all += r.text + "\n";
  return all;
}

using Operand = std::function<Value(Ref)>;

// The product of an operand that is made of an array of f16, or of `t`, and another one.
graph::Graph product_of(const Operand& a, DType t = f16, Precision precision = Precision::ieee,
                        std::int64_t columns = 64) {
  PallasCallOptions options{.name = "product", .out_type = {{64, 64}, f32}, .grid = {1}};
  options.in_specs = {BlockSpec{{64, 64},
                                [](Index) {
                                  return Indices{0, 0};
                                }},
                      BlockSpec{{64, 64}, [](Index) {
                                  return Indices{0, 0};
                                }}};
  return traced([=](Ref x, Ref y,
                    Ref o) { o[_] = dot(a(x), y[_], {.trans_b = true, .precision = precision}); },
                options, {array({64, columns}, t), array({64, columns}, t)});
}

// A loop, in one of the ways of repeating something, of products of blocks of 64 rows.
enum class Way { loop, by_while, when, scoped, persistent };

graph::Graph repeated(Way way, std::optional<bool> specialize = {}) {
  const auto body = [=](Ref x, Ref y, Ref o) {
    const auto step = [&](const Value& i, const Value& sum) {
      return sum + dot(x[_], y[{ds(i * 64, 64), _}]);
    };
    const auto zero = [] { return zeros({64, 64}); };
    switch (way) {
    case Way::loop:
      o[_] = loop(
          0, 8, {}, [&](Value i, Value sum) { return step(i, sum); }, zero());
      break;
    case Way::by_while: {
      auto [i, sum] = while_loop([&](Value i, Value) { return i < 8; },
                                 [&](Value i, Value sum) { return carry(i + 1, step(i, sum)); },
                                 i32(0), zero());
      (void)i;
      o[_] = sum;
      break;
    }
    case Way::when:
      o[_] = zero();
      loop(0, 8, [&](Value i) { when(i != 3, [&] { o[_] = step(i, o[_]); }); });
      break;
    case Way::scoped:
      o[_] = zero();
      loop(0, 8,
           [&](Value i) { run_scoped([&](Ref) { o[_] = step(i, o[_]); }, {gpu::SMEM({8}, f32)}); });
      break;
    case Way::persistent: o[_] = dot(x[_], y[{ds(0, 64), _}]); break;
    }
  };
  PallasCallOptions options{
      .name = "repeated",
      .out_type = {{256, 64}, f32},
      .grid = {4},
      .compiler_params = {.warp_specialize = specialize, .persistent = way == Way::persistent}};
  options.in_specs = {BlockSpec{{64, 64},
                                [](Index i) {
                                  return Indices{i, 0};
                                }},
                      BlockSpec{{512, 64}, [](Index) {
                                  return Indices{0, 0};
                                }}};
  options.out_specs = {BlockSpec{{64, 64}, [](Index i) { return Indices{i, 0}; }}};
  return traced(body, options, {array({256, 64}, f16), array({512, 64}, f16)});
}

}  // namespace

TEST_CASE("an operand that threads load rather than copy has a reason") {
  CHECK_THAT(remarks(product_of([](Ref x) { return Value(x[_]); }), 80),
             !ContainsSubstring("plain loads"));
  const auto masked = [](int dimension, const LoadOptions& otherwise) {
    return remarks(product_of([=](Ref x) {
                     LoadOptions options = otherwise;
                     options.mask = iota(i32, {64, 64}, dimension) % 2 == 0;
                     return load(x, options);
                   }),
                   80);
  };
  CHECK_THAT(masked(0, {.other = 0}), !ContainsSubstring("plain loads"));
  CHECK_THAT(masked(1, {.other = 0}),
             ContainsSubstring("args[0]: plain loads, because its mask differs between elements "
                               "that would be copied together"));
  CHECK_THAT(masked(0, {.other = 1}),
             ContainsSubstring("args[0]: plain loads, because where its mask does not hold stands "
                               "another number than 0"));
  CHECK_THAT(masked(0, {}), !ContainsSubstring("plain loads"));
  CHECK_THAT(remarks(product_of([](Ref x) {
                       return where(iota(i32, {64, 64}, 0) % 2 == 0, x[_], 0);
                     }),
                     80),
             ContainsSubstring("args[0]: plain loads, because a mask asks more than where its "
                               "array ends"));
  CHECK_THAT(remarks(product_of([](Ref x) { return Value(x[_]); }, f32, Precision::tf32, 66), 90),
             ContainsSubstring("plain loads, because its elements are rounded to tf32"));
  // What is computed is no copy.
  CHECK_THAT(remarks(product_of([](Ref x) { return Value(x[_]) * 2; }), 80),
             !ContainsSubstring("args[0]: plain loads"));
  // An architecture without asynchronous copies has none to fall back from.
  CHECK(remarks(product_of([](Ref x) { return Value(x[_]); }, f32, Precision::tf32), 75) == "");
}

TEST_CASE("copies that no loop makes ahead say what keeps them") {
  for (const int cc : {80, 90}) {
    CAPTURE(cc);
    CHECK_THAT(remarks(repeated(Way::loop), cc), !ContainsSubstring("not pipelined"));
    CHECK_THAT(remarks(repeated(Way::by_while), cc),
               ContainsSubstring("not pipelined: whether a while_loop has a next "
                                 "iteration is known only then"));
    CHECK_THAT(remarks(repeated(Way::when), cc),
               ContainsSubstring("not pipelined: it is copied under a condition"));
    CHECK_THAT(remarks(repeated(Way::scoped), cc),
               ContainsSubstring("not pipelined: it is copied in a scope of its own"));
    CHECK_THAT(remarks(repeated(Way::persistent), cc),
               ContainsSubstring("not pipelined: it is copied once for each program"));
  }
}

TEST_CASE("who asks for a warpgroup that fetches, and has none, is told why") {
  CHECK_THAT(remarks(repeated(Way::loop, true), 90), !ContainsSubstring("no warpgroup fetches"));
  CHECK_THAT(remarks(repeated(Way::loop, true), 100),
             ContainsSubstring("no warpgroup fetches for the loop, because threads copy a part of "
                               "what it reads"));
  CHECK_THAT(remarks(repeated(Way::loop), 100), !ContainsSubstring("no warpgroup fetches"));
  CHECK_THAT(remarks(repeated(Way::loop, true), 80), !ContainsSubstring("no warpgroup fetches"));
}
