// Extents that are equal in a call, along which its arrays are cut alike, are one symbol.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/graph/classes.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/ops/registry.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

/// x + y of matrices, as far as x goes, whose options ask for nothing.
Kernel add(int* traces = nullptr) {
  return pallas_call(
      [=](Ref x, Ref y, Ref o) {
        if (traces) ++*traces;
        o[_] = x[_] + y[_];
      },
      [](ShapeDtype x, ShapeDtype) {
        const auto [m, n] = x.shape.unpack<2>();
        const BlockSpec tile{{8, 64}, [](Index i, Index j) { return Indices{i, j}; }};
        return PallasCallOptions{.name = "add",
                                 .out_type = x,
                                 .grid = {cdiv(m, 8), cdiv(n, 64)},
                                 .in_specs = {tile, tile},
                                 .out_specs = {tile}};
      });
}

Array numbers(const Shape& shape) {
  return test::make_array<float>(shape, [](auto i) { return i % 100; });
}

std::string text(const Shape& x, const Shape& y) {
  return add().lower(numbers(x), numbers(y)).graph();
}

std::string key(const ArgType& x, const ArgType& y) {
  return add().lower(x, y).key({.arch = "sm_90a"});
}

ShapeDtype type(const Dim& m, const Dim& n) { return {{m, n}, f32}; }

}  // namespace

TEST_CASE("extents that are equal in a call are one symbol") {
  CHECK_THAT(text({8, 36}, {8, 36}), ContainsSubstring("args[0]: f32[s0,s1] in") &&
                                         ContainsSubstring("args[1]: f32[s0,s1] in"));
  CHECK_THAT(text({8, 36}, {16, 36}), ContainsSubstring("args[1]: f32[s2,s1] in"));
  CHECK_THAT(text({8, 36}, {8, 100}), ContainsSubstring("args[1]: f32[s0,s2] in"));
  CHECK_THAT(text({8, 36}, {16, 100}), ContainsSubstring("args[1]: f32[s2,s3] in"));
  // Rows are not cut as columns are.
  CHECK_THAT(text({36, 36}, {36, 36}), ContainsSubstring("args[0]: f32[s0,s1] in"));
}

TEST_CASE("one symbol has one stride, one size and one test") {
  const auto source = [](const Shape& y) {
    return add().lower(numbers({16, 68}), numbers(y)).cuda_source({.arch = "sm_90a"});
  };
  const std::string one = source({16, 68}), several = source({24, 132});
  CHECK_THAT(one, ContainsSubstring("i64 s1)") && !ContainsSubstring("s2"));
  CHECK_THAT(several, ContainsSubstring("i64 s3)"));
  CHECK(one.size() < several.size());
}

TEST_CASE("calls of equal extents have the key of a kernel that was lowered for one symbol") {
  const Dim m = dim("m"), n = dim("n");
  const Dim rows = dim("rows"), columns = dim("columns", {.multiple_of = 4, .at_most = 1000});
  const auto sizes = [](std::int64_t a, std::int64_t b) {
    return type(dim("m", {.at_most = a}), dim("n", {.multiple_of = 4, .at_most = b}));
  };
  const ArgType x = numbers({3, 36});
  CHECK(key(x, numbers({3, 36})) == key(sizes(10, 100), sizes(10, 100)));
  CHECK(key(x, numbers({5, 36})) ==
        key(sizes(10, 100), type(dim("rows", {.at_most = 10}), dim("n"))));
  CHECK(key(x, numbers({3, 36})) != key(x, numbers({5, 36})));
  CHECK(key(numbers({4, 40}), numbers({4, 40})) == key(x, numbers({3, 36})));  // no values
  CHECK(key(type(m, n), type(m, n)) != key(type(m, n), type(rows, columns)));
}

TEST_CASE("a call whose extents differ has another trace, and gives what is right") {
  for (const Target target : {Target::interpreter, Target::emulator}) {
    int traces = 0;
    const Kernel k = add(&traces).on(target);
    const auto call = [&](std::int64_t m, std::int64_t n) {
      const Array x = numbers({7, 100}), y = numbers({m, n}), o = k(x, y);
      bool right = true;
      for (int i = 0; i < 7; ++i)
        for (int j = 0; j < 100; ++j)
          right &= o.data<float>()[i * 100 + j] ==
                   x.data<float>()[i * 100 + j] + y.data<float>()[i * n + j];
      CHECK(right);
    };
    call(7, 100);
    CHECK(traces == 1);
    call(9, 100);
    CHECK(traces == 2);
    call(7, 100);
    call(11, 100);
    CHECK(traces == 2);
    call(9, 132);
    CHECK(traces == 3);
    call(7, 100);
    CHECK(traces == 3);
  }
}

TEST_CASE("which trace a call gets does not depend on the calls before") {
  const auto graphs = [](std::initializer_list<std::int64_t> rows) {
    const Kernel k = add();
    std::vector<std::string> texts;
    for (const std::int64_t m : rows) {
      k.on(Target::interpreter)(numbers({7, 64}), numbers({m, 64}));
      texts.push_back(k.lower(numbers({7, 64}), numbers({m, 64})).graph());
    }
    return texts;
  };
  const auto a = graphs({7, 9}), b = graphs({9, 7});
  CHECK(a[0] == b[1]);
  CHECK(a[1] == b[0]);
}

TEST_CASE("an extent of an output alone stays what only the output determines") {
  const auto kernel = [] {
    return pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                       [](ShapeDtype x) {
                         const BlockSpec piece{{64}, [](Index i) { return i; }};
                         return PallasCallOptions{.name = "into",
                                                  .out_type = {{dim("given")}, f32},
                                                  .grid = {cdiv(x.shape[0], 64)},
                                                  .in_specs = {piece},
                                                  .out_specs = {piece}};
                       })
        .on(Target::interpreter);
  };
  const Kernel k = kernel();
  const Array x = numbers({64}), o = Array::zeros({64}, f32);
  k.into({o}, {x});
  CHECK_THROWS_WITH(k(x), ContainsSubstring("the arguments do not determine every extent"));
}

TEST_CASE("what is asked of one of two equal extents is known of both") {
  const auto kernel = [](bool asks) {
    return pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                       [=](ShapeDtype x, ShapeDtype y) {
                         if (asks) require_multiple(y.shape[0], 4);
                         const BlockSpec piece{{64}, [](Index i) { return i; }};
                         return PallasCallOptions{.name = "asks",
                                                  .out_type = x,
                                                  .grid = {cdiv(x.shape[0], 64)},
                                                  .in_specs = {piece, piece},
                                                  .out_specs = {piece}};
                       })
        .on(Target::interpreter);
  };
  const Kernel k = kernel(true);
  CHECK_THAT(k.lower(numbers({8}), numbers({8})).graph(),
             ContainsSubstring("symbol 0: multiple of 4"));
  k(numbers({8}), numbers({8}));
  CHECK_THROWS_WITH(k(numbers({6}), numbers({6})), ContainsSubstring("expected a multiple of 4"));
  CHECK_THROWS_WITH(k(numbers({8}), numbers({6})), ContainsSubstring("expected a multiple of 4"));
  k(numbers({6}), numbers({8}));
}

TEST_CASE("square matrices have the product of all others") {
  const Kernel product = pallas_call(
      [](Ref a, Ref b, Ref o) {
        when(program_id(2) == 0, [&] { o[_] = zeros({64, 64}, f32); });
        o[_] += dot(a[_], b[_]);
      },
      [](ShapeDtype a, ShapeDtype b) {
        const auto [m, k] = a.shape.unpack<2>();
        const auto [rows, n] = b.shape.unpack<2>();
        const auto tile = [](auto map) { return BlockSpec{{64, 64}, map}; };
        return PallasCallOptions{.name = "product",
                                 .out_type = {{m, n}, f32},
                                 .grid = {cdiv(m, 64), cdiv(n, 64), cdiv(k, 64)},
                                 .in_specs = {tile([](Index i, Index, Index l) {
                                                return Indices{i, l};
                                              }),
                                              tile([](Index, Index j, Index l) {
                                                return Indices{l, j};
                                              })},
                                 .out_specs = {tile([](Index i, Index j, Index) {
                                   return Indices{i, j};
                                 })}};
      });
  const auto of = [&](std::int64_t m, std::int64_t k, std::int64_t n) {
    const auto f16s = [](std::int64_t a, std::int64_t b) { return Array::zeros({a, b}, f16); };
    return product.lower(f16s(m, k), f16s(k, n));
  };
  const CompileOptions options{.arch = "sm_90a"};
  const std::string square = of(64, 64, 64).key(options);
  for (const auto& [m, k, n] : {std::tuple{128, 64, 192}, {8, 64, 64}, {64, 64, 72}, {8, 8, 64}})
    CHECK(of(m, k, n).key(options) == square);
  // Nobody wrote that b has as many rows as a has columns.
  CHECK_THAT(of(64, 64, 64).graph(), ContainsSubstring("args[0]: f16[s0,s1] in") &&
                                         ContainsSubstring("args[1]: f16[s1,s2] in"));
}

TEST_CASE("shipped kernels leave no extents apart that a call may find equal") {
  // So what `palladium warm` makes of them serves every call.
  for (const ops::Entry& e : ops::registry()) {
    INFO(e.name);
    std::vector<ArgType> types;
    for (const ShapeDtype& t : e.inputs) types.emplace_back(t, Location{});
    const graph::Graph g = graph::from_json(e.factory().lower(types, {}).json());
    CHECK(graph::alike_symbols(g).empty());
  }
}
