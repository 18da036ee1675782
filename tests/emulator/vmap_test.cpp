// Kernels over batches (pl::vmap): one more axis of the grid, of which bodies know nothing.
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

template <class T>
std::vector<T> values_of(const Array& a) {
  const Array here = on_cpu(a);
  return {here.values<T>().begin(), here.values<T>().end()};
}

Array counted(const Shape& shape) {
  return make_array<float>(shape, [](std::int64_t i) { return i; });
}

/// o = x + y, in blocks of 2 of a vector.
Kernel add() {
  const BlockSpec pairs{{2}, [](Index i) { return i; }};
  return pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                     [=](ShapeDtype x, ShapeDtype) {
                       return PallasCallOptions{.name = "add",
                                                .out_type = x,
                                                .grid = {cdiv(x.shape[0], 2)},
                                                .in_specs = {pairs, pairs},
                                                .out_specs = {pairs}};
                     });
}

}  // namespace

TEST_CASE("a kernel over a batch along either axis, with an argument that has none [C99]") {
  for_each_target("add", [](Target target) {
    const Array x = counted({3, 5}), y = counted({5, 3}), one = counted({5});
    const auto check = [&](const Array& sum, auto expected) {
      REQUIRE(sum.shape() == Shape{3, 5});
      const std::vector<float> v = values_of<float>(sum);
      for (std::int64_t b = 0; b < 3; ++b)
        for (std::int64_t i = 0; i < 5; ++i)
          CHECK(v[static_cast<std::size_t>(5 * b + i)] == static_cast<float>(expected(b, i)));
    };
    check(vmap(add()).on(target)(on(target, x), on(target, x)),
          [](auto b, auto i) { return 2 * (5 * b + i); });
    check(vmap(add(), {0, 1}).on(target)(on(target, x), on(target, y)),
          [](auto b, auto i) { return 5 * b + i + 3 * i + b; });
    check(vmap(add(), {-2, unbatched}).on(target)(on(target, x), on(target, one)),
          [](auto b, auto i) { return 5 * b + i + i; });
    check(vmap(add(), {unbatched, -1}).on(target)(on(target, one), on(target, y)),
          [](auto b, auto i) { return i + 3 * i + b; });
  });
}

TEST_CASE("a kernel mapped over four batch axes [C111]") {
  for_each_target("four", [](Target target) {
    const BlockSpec one{{1}, [](Index i) { return i; }};
    const Kernel k = pallas_call(
        [](Ref x, Ref o) { o[_] = x[_] + 1.f; },
        {.name = "four", .out_type = {{7}, f32}, .grid = 7, .in_specs = {one}, .out_specs = {one}});
    const Array x = counted({5, 3, 4, 2, 7});
    const Array y = vmap(vmap(vmap(vmap(k)))).on(target)(on(target, x));
    REQUIRE(y.shape() == x.shape());
    const std::vector<float> v = values_of<float>(y);
    for (std::size_t i = 0; i < v.size(); ++i) REQUIRE(v[i] == static_cast<float>(i) + 1);
  });
}

TEST_CASE("batches inside each other lie along different axes") {
  for_each_target("mixed", [](Target target) {
    // x: [inner, n, outer], y: [outer, n]; result: [outer, inner, n].
    const Kernel k = vmap(vmap(add(), {0, unbatched}), {2, 0}).on(target);
    const Array x = counted({2, 5, 3}), y = counted({3, 5});
    const Array sum = k(on(target, x), on(target, y));
    REQUIRE(sum.shape() == Shape{3, 2, 5});
    const std::vector<float> v = values_of<float>(sum);
    for (std::int64_t outer = 0; outer < 3; ++outer)
      for (std::int64_t inner = 0; inner < 2; ++inner)
        for (std::int64_t i = 0; i < 5; ++i)
          CHECK(v[static_cast<std::size_t>((outer * 2 + inner) * 5 + i)] ==
                static_cast<float>((inner * 5 + i) * 3 + outer + outer * 5 + i));
  });
}

TEST_CASE("the number of programs does not count batch axes [C113]") {
  for_each_target("programs", [](Target target) {
    const Kernel k = pallas_call(
        [](Ref x, Ref o) {
          o[_] =
              full({1}, num_programs(0) * 100 + program_id(-1) * 10 + axis_size("i"), i32) + x[_];
        },
        {.name = "programs",
         .out_type = {{8}, i32},
         .grid = {{"i", 8}},
         .in_specs = {BlockSpec{{1}, [](Index i) { return i; }}},
         .out_specs = {BlockSpec{{1}, [](Index i) { return i; }}}});
    Kernel mapped = k;
    Shape shape{8};
    for (int n = 1; n <= 3; ++n) {
      mapped = vmap(mapped);
      Shape longer{2};
      for (const Dim& d : shape) longer.push_back(d);
      shape = longer;
      const Array x = make_array<std::int32_t>(shape, [](std::int64_t) { return 0; });
      const std::vector<std::int32_t> v = values_of<std::int32_t>(mapped.on(target)(on(target, x)));
      for (std::size_t i = 0; i < v.size(); ++i)
        REQUIRE(v[i] == 808 + 10 * static_cast<std::int32_t>(i % 8));
    }
  });
}

TEST_CASE("each element of a batch has prefetched arrays, or shares them") {
  for_each_target("prefetch", [](Target target) {
    const Kernel k =
        pallas_call([](Ref s, Ref x, Ref o) { o[_] = x[_] * 10 + s[program_id(0)]; },
                    {.name = "prefetch",
                     .out_type = {{6}, i32},
                     .num_scalar_prefetch = 1,
                     .grid = 3,
                     .in_specs = {BlockSpec{{2}, [](Index i, Ref s) { return Indices{s[i]}; }}},
                     .out_specs = {BlockSpec{{2}, [](Index i, Ref) { return i; }}}});
    const std::int32_t lists[2][3] = {{2, 0, 1}, {1, 1, 2}};
    const Array s = make_array<std::int32_t>({2, 3}, [&](auto i) { return lists[i / 3][i % 3]; });
    const Array across =
        make_array<std::int32_t>({3, 2}, [&](auto i) { return lists[i % 2][i / 2]; });
    const Array x = make_array<std::int32_t>({2, 6}, [](auto i) { return i; });
    const auto check = [&](const Array& y, auto list) {
      const std::vector<std::int32_t> v = values_of<std::int32_t>(y);
      for (int b = 0; b < 2; ++b)
        for (int i = 0; i < 6; ++i) {
          const std::int32_t block = lists[list(b)][i / 2];
          CHECK(v[static_cast<std::size_t>(6 * b + i)] == (6 * b + 2 * block + i % 2) * 10 + block);
        }
    };
    const Array there = on(target, x);
    check(vmap(k).on(target)(on(target, s), there), [](int b) { return b; });
    check(vmap(k, {1, 0}).on(target)(on(target, across), there), [](int b) { return b; });
    const Array first = make_array<std::int32_t>({3}, [&](auto i) { return lists[0][i]; });
    check(vmap(k, {unbatched, 0}).on(target)(on(target, first), there), [](int) { return 0; });
  });
}

TEST_CASE("a batch of accumulations, each along a sequential axis, in place") {
  for_each_target("sums", [](Target target) {
    const Kernel k =
        pallas_call([](Ref x, Ref, Ref o) { o[_] += x[_]; },
                    {.name = "sums",
                     .out_type = {{4}, f32},
                     .grid = 3,
                     .in_specs = {BlockSpec{{4}, [](Index i) { return i; }}, BlockSpec{{4}}},
                     .out_specs = {BlockSpec{{4}}},
                     .input_output_aliases = {{1, 0}},
                     .compiler_params = {.dimension_semantics = {pl::sequential}}});
    const Array x = counted({2, 12});
    const Array start = on(target, counted({2, 4}));
    const Array y = vmap(k).on(target)(on(target, x), start);
    CHECK(y.data() == start.data());
    const std::vector<float> v = values_of<float>(y);
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t i = 0; i < 4; ++i)
        CHECK(v[4 * b + i] == static_cast<float>(4 * b + i + 3 * (12 * b + i) + 12));
  });
}

TEST_CASE("one kernel serves batches of every size") {
  int traces = 0;
  const Kernel k = vmap(pallas_call(
      [&traces](Ref x, Ref o) {
        ++traces;
        o[_] = x[_] + 1.f;
      },
      {.name = "any", .out_type = {{4}, f32}}));
  for (const Target target : {Target::interpreter, Target::emulator})
    for (const std::int64_t n : {1, 3, 8}) {
      const std::vector<float> v = values_of<float>(k.on(target)(counted({n, 4})));
      REQUIRE(v.size() == static_cast<std::size_t>(4 * n));
      CHECK(v.back() == static_cast<float>(4 * n));
    }
  CHECK(traces == 1);
  const Lowered lowered = k.lower(ShapeDtype{{pl::dim("batch"), 4}, f32});
  CHECK_THAT(lowered.graph(), ContainsSubstring("vmapped 0"));
}

TEST_CASE("a cost estimate is multiplied by the batch [C115]") {
  const Kernel k =
      pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                  {.name = "cost", .out_type = {{4}, f32}, .cost_estimate = {1234, 21, 12345}});
  CHECK_THAT(k.lower(ShapeDtype{{4}, f32}).graph(),
             ContainsSubstring("cost estimate: 1234 flops, 21 transcendentals, 12345 bytes"));
  CHECK_THAT(vmap(k).lower(ShapeDtype{{3, 4}, f32}).graph(),
             ContainsSubstring("cost estimate: 3702 flops, 63 transcendentals, 37035 bytes"));
}

TEST_CASE("of a batch of grid sizes each is a call of its own [C114]") {
  const auto steps = [](std::int32_t n) { return pl::scalar(n); };
  const Kernel k = pallas_call(
      [](Value, Ref o) {
        pl::when(program_id(0) == 0, [&] { o[_] = pl::zeros({8, 128}); });
        o[_] += 1.0f;
      },
      {.name = "steps",
       .out_type = {{8, 128}, f32},
       .grid = {pl::argument(0) * 2},
       .out_specs = {BlockSpec{{8, 128},
                               [](Index) {
                                 return Indices{0, 0};
                               }}},
       .compiler_params = {.dimension_semantics = {pl::sequential}}});
  for (const Target target : {Target::interpreter, Target::emulator})
    for (const std::int32_t n : {4, 8})
      CHECK(values_of<float>(k.on(target)(steps(n)))[1023] == static_cast<float>(2 * n));
  CHECK_THROWS_WITH(vmap(k, {0})(steps(4)), ContainsSubstring("args[0] is a scalar"));
}

TEST_CASE("what cannot be a batch is refused with argument and line [E19]") {
  const auto refused = [](const Kernel& k, std::initializer_list<Arg> arguments,
                          const std::string& what) {
    CHECK_THROWS_WITH(k.on(Target::interpreter).call(arguments),
                      ContainsSubstring("vmap: " + what) && ContainsSubstring("vmap_test.cpp"));
  };
  const Array x = counted({3, 4}), y = counted({2, 4}), one = counted({4});
  refused(vmap(add()), {x, y}, "args[0] has a batch of 3, args[1] one of 2");
  refused(vmap(add(), {0}), {x, x}, "in_axes has 1 entries for a call of 2 arguments");
  refused(vmap(add(), {0, 2}), {x, x}, "args[1] has 2 dimensions and no axis 2");
  refused(vmap(add(), {unbatched, unbatched}), {one, one}, "no argument has a batch");
  const Kernel scaled =
      pallas_call([](Value a, Ref x, Ref o) { o[_] = a * x[_]; }, {.out_type = {{4}, f32}});
  refused(vmap(scaled, {0, 0}), {pl::scalar(2.f), x},
          "args[0] is a scalar, which is pl::unbatched");
  CHECK(values_of<float>(vmap(scaled).on(Target::interpreter)(pl::scalar(2.f), x))[11] == 22);
  const Kernel aliased = pallas_call([](Ref, Ref o) { o[_] += 1.f; },
                                     {.out_type = {{4}, f32}, .input_output_aliases = {{0, 0}}});
  refused(vmap(aliased, {1}), {counted({4, 3})}, "");
  const Kernel bounded = pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_]; },
                                     {.out_type = {{4}, f32}, .grid = {at_most(argument(0), 2)}});
  refused(vmap(bounded), {make_array<std::int32_t>({3, 1}, [](auto) { return 1; }), x},
          "args[0] is a size of the grid, which a batch cannot have several of");
  refused(vmap(Kernel(aliased)), {}, "no argument has a batch");
}
