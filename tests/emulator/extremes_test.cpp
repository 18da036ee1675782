// Numbers at the ends of their ranges, on every target: counters, literals, sizes of calls.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "palladium/ops/add.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/ops/blur.hpp"
#include "palladium/ops/cross_entropy.hpp"
#include "palladium/ops/layer_norm.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/rms_norm.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/ops/transpose.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using palladium::_;
using test::for_each_target;
using test::make_array;
using test::on;
using test::on_cpu;

namespace {

constexpr std::int64_t smallest = INT32_MIN, largest = INT32_MAX;

// Of a loop from lo to hi: the number of its iterations and its last index, -7 if there is none.
std::vector<std::int32_t> iterations(std::int64_t lo, std::int64_t hi, std::int64_t step) {
  const std::int64_t n = lo < hi ? (hi - lo + step - 1) / step : 0;
  return {static_cast<std::int32_t>(n), static_cast<std::int32_t>(n ? lo + (n - 1) * step : -7)};
}

// The array's line is named by the error: of a statement on it or up to two before it.
void refused(const std::function<void()>& call, int line, const std::string& sentence) {
  try {
    call();
  } catch (const CompileError& e) {
    CHECK_THAT(e.what(), ContainsSubstring(sentence));
    INFO(e.what());
    CHECK(e.at().line <= line);
    CHECK(e.at().line >= line - 2);
    CHECK_THAT(e.what(), ContainsSubstring("extremes_test.cpp"));
    return;
  }
  FAIL_CHECK("nothing was refused: " << sentence);
}

}  // namespace

TEST_CASE("a loop ends where its bound says, however near the largest counter") {
  const std::vector<std::int64_t> steps = {1, 3, 7, std::int64_t{1} << 30, largest};
  const std::vector<std::pair<std::int64_t, std::int64_t>> bounds = {{largest - 10, largest},
                                                                     {largest - 7, largest - 1},
                                                                     {largest, largest},
                                                                     {largest, smallest},
                                                                     {0, 20}};
  const auto body = [&](Ref from, Ref to, Ref o) {
    for (std::size_t b = 0; b < bounds.size(); ++b)
      for (std::size_t s = 0; s < steps.size(); ++s) {
        const auto i = static_cast<int>(b), j = static_cast<int>(s);
        const auto count = [&](const Value& lo, const Value& hi, int row) {
          auto [n, last] = loop(
              lo, hi, {.step = steps[s]}, [](Index k, Value n, Value) { return carry(n + 1, k); },
              i32(0), i32(-7));
          o[{row, i, j, 0}] = n;
          o[{row, i, j, 1}] = last;
        };
        count(from[i], to[i], 0);                     // known at run time
        count(bounds[b].first, bounds[b].second, 1);  // at compile time
      }
    // All of i32, in few iterations.
    for (const int j : {3, 4}) {
      auto [n, last] = loop(
          from[5], to[5], {.step = steps[static_cast<std::size_t>(j)]},
          [](Index k, Value n, Value) { return carry(n + 1, k); }, i32(0), i32(-7));
      o[{0, 5, j, 0}] = n;
      o[{0, 5, j, 1}] = last;
    }
  };
  const Kernel k = pallas_call(
      body, {.name = "iterations",
             .out_type = {{2, 6, 5, 2}, i32},
             .out_specs = {BlockSpec{{2, 6, 5, 2}, {}, {.memory_space = plgpu::GMEM}}}});
  Array from = Array::zeros({6}, i32), to = Array::zeros({6}, i32);
  for (std::size_t b = 0; b < bounds.size(); ++b) {
    from.data<std::int32_t>()[b] = static_cast<std::int32_t>(bounds[b].first);
    to.data<std::int32_t>()[b] = static_cast<std::int32_t>(bounds[b].second);
  }
  from.data<std::int32_t>()[5] = INT32_MIN;
  to.data<std::int32_t>()[5] = INT32_MAX;
  for_each_target("loops", [&](Target target) {
    const Array o = on_cpu(k.on(target)(on(target, from), on(target, to)));
    const auto at = [&](int row, int b, int s) {
      const std::int32_t* place = o.data<std::int32_t>() + ((row * 6 + b) * 5 + s) * 2;
      return std::vector<std::int32_t>{place[0], place[1]};
    };
    for (int b = 0; b < 5; ++b)
      for (int s = 0; s < 5; ++s) {
        const auto& [lo, hi] = bounds[static_cast<std::size_t>(b)];
        CAPTURE(lo, hi, steps[static_cast<std::size_t>(s)]);
        CHECK(at(0, b, s) == iterations(lo, hi, steps[static_cast<std::size_t>(s)]));
        CHECK(at(1, b, s) == iterations(lo, hi, steps[static_cast<std::size_t>(s)]));
      }
    CHECK(at(0, 5, 3) == iterations(smallest, largest, steps[3]));
    CHECK(at(0, 5, 4) == iterations(smallest, largest, steps[4]));
  });
}

TEST_CASE("bounds in 64 bits do not wrap into the counter") {
  const Kernel k = pallas_call(
      [](Value hi, Ref o) {
        // It would be 5 iterations if the low bits counted.
        o[0] = loop(
            i32(largest - 6), hi, {}, [](Index, Value n) { return n + 1; }, i32(0));
      },
      {.name = "wide", .out_type = {{1}, i32}});
  for_each_target("wide bounds", [&](Target target) {
    const auto count = [&](Scalar hi) { return on_cpu(k.on(target)(hi)).data<std::int32_t>()[0]; };
    CHECK(count(scalar((std::int64_t{1} << 32) + largest - 1)) == 6);
    CHECK(count(scalar(-(std::int64_t{1} << 32) + largest)) == 0);
    CHECK(count(scalar(std::uint32_t{0x80000003})) == 6);
    CHECK(count(scalar(UINT64_MAX)) == 6);
    CHECK(count(scalar(std::int16_t{3})) == 0);
  });
}

TEST_CASE("integer literals of 2^31 and more count in full where the other operand holds them") {
  const Kernel k = pallas_call(
      [](Ref a, Ref b, Ref c, Ref f, Ref oa, Ref ob, Ref oc, Ref of, Ref og) {
        oa[_] = a[_] + 3000000000;
        ob[_] = b[_] - 4294967295u;
        oc[_] = c[_] ^ UINT64_MAX;
        of[_] = f[_] * 16777217;  // halfway: rounds to even
        og[_] = f[_] + UINT64_MAX;
      },
      {.name = "literals",
       .out_type = {{{4}, i64}, {{4}, u32}, {{4}, u64}, {{4}, f32}, {{4}, f32}}});
  const Array a = make_array<std::int64_t>({4}, [](auto i) { return i << 40; });
  const Array b = make_array<std::uint32_t>({4}, [](auto i) { return i; });
  const Array c = make_array<std::uint64_t>({4}, [](auto i) { return i; });
  const Array f = make_array<float>({4}, [](auto i) { return i; });
  for_each_target("literals", [&](Target target) {
    const auto [oa, ob, oc, of, og] =
        k.on(target)(on(target, a), on(target, b), on(target, c), on(target, f)).unpack<5>();
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(on_cpu(oa).data<std::int64_t>()[i] == (i << 40) + 3000000000);
      CHECK(on_cpu(ob).data<std::uint32_t>()[i] == static_cast<std::uint32_t>(i + 1));
      CHECK(on_cpu(oc).data<std::uint64_t>()[i] == ~static_cast<std::uint64_t>(i));
      CHECK(on_cpu(of).data<float>()[i] == static_cast<float>(i) * 16777216.f);
      CHECK(on_cpu(og).data<float>()[i] == 18446744073709551616.f);
    }
  });
}

TEST_CASE("sizes of a call that no grid can have are refused at the call") {
  // Blocks of one element, numbered over all axes.
  const auto kernel = [](auto grid) {
    return pallas_call(
        [](Ref, Ref o) { o[_] = zeros({1}, f32); },
        [=](ShapeDtype x) {
          const std::vector<Dim> axes = grid(x.shape[0]);
          PallasCallOptions options{.name = "sized", .out_type = {{64}, f32}};
          options.grid.sizes = axes;
          options.in_specs = {BlockSpec{{1}, [](auto...) { return 0; }}};
          options.out_specs = {BlockSpec{{1}, [](auto... i) { return (Value(0) + ... + i); }}};
          return options;
        });
  };
  const Kernel less = kernel([](Dim m) { return std::vector<Dim>{m - 8}; });
  const Kernel twice = kernel([](Dim m) { return std::vector<Dim>{m - 8, m - 8}; });
  const Kernel large = kernel([](Dim m) { return std::vector<Dim>{m * (1 << 29)}; });
  const Kernel wide = kernel([](Dim m) { return std::vector<Dim>{m * 10000, m * 10000}; });
  const Kernel lost = kernel([](Dim m) { return std::vector<Dim>{m * (INT64_MAX / 4)}; });
  const Kernel none = kernel([](Dim m) {
    return std::vector<Dim>{largest, largest, m - 8, largest};
  });
  for_each_target("sizes of a call", [&](Target target) {
    const Array five = on(target, Array::zeros({5}, f32));
    const Array eight = on(target, Array::zeros({8}, f32));
    const Array out = on(target, Array::zeros({64}, f32));
    for (const bool into : {false, true}) {
      const auto call = [&](const Kernel& k, const Array& x, Location at = here()) {
        if (into)
          k.on(target).into({out}, {x}, at);
        else
          k.on(target).call({x}, at);
      };
      refused([&] { call(less, five); }, __LINE__,
              "kernel 'sized': grid axis 0 has (s0 - 8) = -3 programs; an axis can have 0 to");
      // Their product would be 9.
      refused([&] { call(twice, five); }, __LINE__, "grid axis 0 has (s0 - 8) = -3 programs");
      refused([&] { call(large, five); }, __LINE__, "= 2684354560 programs");
      refused([&] { call(wide, five); }, __LINE__, "50000 * 50000 programs, 2500000000 blocks");
      refused([&] { call(lost, five); }, __LINE__, "is not held by 64 bits");
      CHECK_NOTHROW(call(less, eight));  // no program, nothing runs
      CHECK_NOTHROW(call(twice, eight));
      CHECK_NOTHROW(call(none, eight));
    }
  });
}

TEST_CASE("outputs whose extents come out negative or beyond memory are refused at the call") {
  const auto kernel = [](auto extent) {
    return pallas_call([](Ref, Ref o) { o[_] = zeros({1}, f32); },
                       [=](ShapeDtype x) {
                         return PallasCallOptions{
                             .name = "sized",
                             .out_type = {{extent(x.shape[0])}, f32},
                             .grid = {x.shape[0]},
                             .in_specs = {BlockSpec{{1}, [](Index) { return 0; }}},
                             .out_specs = {BlockSpec{{1}, [](Index i) { return i; }}}};
                       });
  };
  const Kernel less = kernel([](Dim m) { return m - 8; });
  const Kernel large = kernel([](Dim m) { return m * (std::int64_t{1} << 60); });
  const Kernel lost = kernel([](Dim m) { return m * INT64_MAX; });
  for_each_target("extents of outputs", [&](Target target) {
    const Array five = on(target, Array::zeros({5}, f32));
    refused([&] { less.on(target)(five); }, __LINE__,
            "'sized': outputs[0] would be f32[-3]: an extent is negative");
    refused([&] { large.on(target)(five); }, __LINE__, "of more bytes than can be counted");
    refused([&] { lost.on(target)(five); }, __LINE__, "is not held by 64 bits");
  });
}

TEST_CASE("arrays without elements give outputs without elements, and nothing runs") {
  const Kernel softmax = ops::softmax();
  for_each_target("no rows", [&](Target target) {
    const Array none = on(target, Array::zeros({0, 1000}, f32));
    const Array y = softmax.on(target)(none);
    CHECK(y.shape() == Shape{0, 1000});
    CHECK(on_cpu(y).size() == 0);
    CHECK_NOTHROW(softmax.on(target).into({y}, {none}));
  });
}

namespace {

Array some(const Shape& shape, DType dtype = f32) { return Array::full(shape, dtype, 1); }

/// The elements, and that the shape is the expected one.
std::vector<float> numbers(const Array& a, const Shape& shape) {
  CHECK(to_string(a.shape()) == to_string(shape));
  const Array on_host = on_cpu(a).astype(f32);
  const auto values = on_host.values<const float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("a product of matrices without columns is zeros, its bias and its activation") {
  for_each_target("matmul", [](Target target) {
    const auto same = [](const std::vector<float>& all, std::size_t n, float x) {
      return all.size() == n && std::ranges::count(all, x) == static_cast<std::ptrdiff_t>(n);
    };
    for (const DType dtype : {f32, f16, f64})
      for (const bool turned : {false, true}) {
        CAPTURE(dtype.name(), turned);
        const Array a = on(target, some({5, 0}, dtype)),
                    b = on(target, some(turned ? Shape{3, 0} : Shape{0, 3}, dtype));
        const Kernel plain = ops::matmul({.trans_b = turned}).on(target);
        CHECK(same(numbers(plain(a, b), {5, 3}), 15, 0));
        const Kernel with = ops::matmul({.bias = true, .trans_b = turned}).on(target);
        CHECK(same(numbers(with(a, b, on(target, Array::full({3}, f32, 2))), {5, 3}), 15, 2));
      }
    const auto relu = ops::matmul({.bias = true, .activation = ops::Activation::relu}).on(target);
    CHECK(same(numbers(relu(on(target, some({300, 0})), on(target, some({0, 200})),
                            on(target, Array::full({200}, f32, -1))),
                       {300, 200}),
               60000, 0));
    CHECK(same(numbers(vmap(ops::matmul())
                           .on(target)(on(target, some({2, 4, 0})), on(target, some({2, 0, 3}))),
                       {2, 4, 3}),
               24, 0));
    const Kernel plain = ops::matmul().on(target);
    CHECK(numbers(plain(on(target, some({0, 4})), on(target, some({4, 3}))), {0, 3}).empty());
    CHECK(numbers(plain(on(target, some({5, 4})), on(target, some({4, 0}))), {5, 0}).empty());
    CHECK(numbers(plain(on(target, some({0, 0})), on(target, some({0, 0}))), {0, 0}).empty());
  });
}

TEST_CASE("shipped kernels give empty results of arrays without elements") {
  for_each_target("empty", [](Target target) {
    const auto give = [&](const Shape& shape, DType dtype = f32) {
      return on(target, some(shape, dtype));
    };
    CHECK(numbers(ops::add().on(target)(give({0}), give({0})), {0}).empty());
    for (const Shape& s : {Shape{0, 5}, Shape{5, 0}, Shape{0, 0}}) {
      const Shape columns{s[1]};
      CHECK(numbers(ops::softmax().on(target)(give(s)), s).empty());
      CHECK(numbers(ops::rms_norm().on(target)(give(s), give(columns)), s).empty());
      CHECK(
          numbers(ops::layer_norm().on(target)(give(s), give(columns), give(columns)), s).empty());
      CHECK(numbers(ops::transpose().on(target)(give(s)), {s[1], s[0]}).empty());
      CHECK(numbers(ops::blur().on(target)(give(s, u8)), s).empty());
    }
    for (const std::int64_t classes : {0, 5})
      CHECK(numbers(ops::cross_entropy().on(target)(give({0, classes}), give({0}, i32)), {0})
                .empty());
  });
}

TEST_CASE("attention without keys gives zeros, and without anything to give nothing") {
  for_each_target("attention", [](Target target) {
    const auto attend = [&](const Shape& q, const Shape& k, bool causal = false) {
      const Array keys = on(target, some(k, f16));
      const Kernel attention = ops::attention({.causal = causal}).on(target);
      return numbers(attention(on(target, some(q, f16)), keys, keys), q);
    };
    CHECK(attend({1, 2, 8, 16}, {1, 2, 0, 16}) == std::vector<float>(256, 0));
    for (const bool causal : {false, true}) {
      CHECK(attend({0, 2, 8, 16}, {0, 2, 8, 16}, causal).empty());
      CHECK(attend({1, 0, 8, 16}, {1, 0, 8, 16}, causal).empty());
      CHECK(attend({1, 0, 8, 16}, {1, 2, 8, 16}, causal).empty());
      CHECK(attend({1, 2, 0, 16}, {1, 2, 8, 16}, causal).empty());
      CHECK(attend({1, 2, 0, 16}, {1, 2, 0, 16}, causal).empty());
      CHECK(attend({0, 0, 0, 16}, {0, 0, 0, 16}, causal).empty());
    }
    CHECK_THROWS_WITH(attend({1, 2, 8, 16}, {1, 2, 0, 16}, true),
                      ContainsSubstring("causal queries have as many keys at least"));
    CHECK_THROWS_WITH(attend({1, 2, 8, 16}, {1, 0, 8, 16}),
                      ContainsSubstring("a number of heads that k's divides"));
  });
}

TEST_CASE("an index operand without elements chooses nothing for a grid without programs") {
  for_each_target("gather", [](Target target) {
    const auto options = [](std::int64_t n, Grid grid) {
      const BlockSpec row{{1, 8}, [](Index i, Ref at) { return Indices{at[i], 0}; }};
      const BlockSpec mine{{1, 8}, [](Index i, Ref) { return Indices{i, 0}; }};
      return PallasCallOptions{.name = "gather",
                               .out_type = {{n, 8}, f32},
                               .num_scalar_prefetch = 1,
                               .grid = std::move(grid),
                               .in_specs = {row},
                               .out_specs = {mine}};
    };
    const auto body = [](Ref, Ref x, Ref o) { o[_] = x[_]; };
    const Array nothing = on(target, Array::zeros({0}, i32)), x = on(target, some({4, 8}));
    CHECK(numbers(pallas_call(body, options(0, {0})).on(target)(nothing, x), {0, 8}).empty());
    const Kernel by_size = pallas_call(body, [=](ShapeDtype at, ShapeDtype) {
                             return options(at.shape[0], {at.shape[0]});
                           }).on(target);
    CHECK(numbers(by_size(nothing, x), {0, 8}).empty());
    CHECK(numbers(by_size(on(target, Array::of({3, 0})), x), {2, 8}) == std::vector<float>(16, 1));
    CHECK(numbers(by_size(nothing, on(target, some({0, 8}))), {0, 8}).empty());
    // With programs its elements are asked for.
    CHECK_THROWS_WITH(pallas_call(body, options(2, {2})).on(target)(nothing, x),
                      ContainsSubstring("block shape for args[0] must have at least one element") &&
                          ContainsSubstring("i32[0], which has none"));
  });
}

TEST_CASE("whole arrays without elements give outputs without elements") {
  for_each_target("whole", [](Target target) {
    const auto same_type = [](ShapeDtype x) { return PallasCallOptions{.out_type = x}; };
    const Kernel more = pallas_call([](Ref x, Ref o) { o[_] = x[_] + 1; }, same_type).on(target);
    const Kernel sums =
        pallas_call([](Ref x, Ref o) { o[_] = cumsum(x[_], {.axis = 0}); }, same_type).on(target);
    for (const Shape& shape : {Shape{0}, Shape{3, 0}, Shape{0, 3}}) {
      CHECK(numbers(more(on(target, some(shape))), shape).empty());
      CHECK(numbers(sums(on(target, some(shape))), shape).empty());
      const Shape batch = shape.rank() == 1 ? Shape{0, 8} : Shape{0, 3, 4};
      CHECK(numbers(vmap(more)(on(target, some(batch))), batch).empty());
    }
    CHECK(numbers(more(on(target, some({2}))), {2}) == std::vector<float>{2, 2});
    const Kernel total = pallas_call([](Ref x, Ref o) { o[_] = sum(x[_], {.axis = 1}); },
                                     [](ShapeDtype x) {
                                       return PallasCallOptions{.out_type = {{x.shape[0]}, f32}};
                                     })
                             .on(target);
    CHECK_THROWS_WITH(total(on(target, some({3, 0}))),
                      ContainsSubstring("must have at least one element") &&
                          ContainsSubstring("the body asks for elements of f32[3,0]"));
  });
}

TEST_CASE("nothing runs for outputs that a call gives no elements, whatever the grid") {
  for_each_target("rows", [](Target target) {
    const Kernel rows =
        pallas_call(
            [](Ref x, Ref o) { o[_] = x[_] + 1; },
            [](ShapeDtype x) {
              const BlockSpec row{{1, 8}, [](Index i) { return Indices{i, 0}; }};
              return PallasCallOptions{
                  .out_type = x, .grid = {x.shape[0]}, .in_specs = {row}, .out_specs = {row}};
            })
            .on(target);
    for (const std::int64_t columns : {0, 5, 0}) {
      const Shape shape{3, columns};
      CHECK(numbers(rows(on(target, some(shape))), shape) ==
            std::vector<float>(static_cast<std::size_t>(3 * columns), 2));
    }
  });
}

TEST_CASE("of an array without elements a block with a fill is the fill") {
  for_each_target("fill", [](Target target) {
    const BlockSpec block{{4, 8}, [](Index i) { return Indices{i, 0}; }, {.fill = 3}};
    const Kernel k =
        pallas_call(
            [](Ref x, Ref o) { o[_] = x[_] * 2; },
            PallasCallOptions{
                .out_type = {{8, 8}, f32}, .grid = {2}, .in_specs = {block}, .out_specs = {block}})
            .on(target);
    CHECK(numbers(k(on(target, some({8, 0}))), {8, 8}) == std::vector<float>(64, 6));
    CHECK(numbers(k(on(target, some({8, 8}))), {8, 8}) == std::vector<float>(64, 2));
  });
}

TEST_CASE("of an array that a call gives no elements a block with a fill is the fill") {
  for_each_target("fill", [](Target target) {
    // The sum of each row, of as many columns as there are: all of them in one block, by blocks of
    // which a program sees the first, masked, and with padding.
    const auto sums = [&](const BlockSpec& in, bool masked) {
      return pallas_call(
                 [=](Ref x, Ref o) {
                   const Value v = masked ? load(x, {.mask = iota(i32, {2, 8}, 1) < 5, .other = 1})
                                          : Value(x[_]);
                   o[_] = sum(v, {.axis = 1});
                 },
                 [=](ShapeDtype x) {
                   const BlockSpec out{{2}, [](Index i) { return i; }};
                   return PallasCallOptions{.out_type = {{x.shape[0]}, f32},
                                            .grid = {cdiv(x.shape[0], 2)},
                                            .in_specs = {in},
                                            .out_specs = {out}};
                 })
          .on(target);
    };
    const auto rows = [](Index i) { return Indices{i, 0}; };
    const BlockSpec plain{{2, 8}, rows, {.fill = 3}};
    const BlockSpec padded{{2, Element(8, {2, 2})}, rows, {.fill = 3}};
    struct Case {
      BlockSpec in;
      bool masked;
      float of_nothing, of_ones;
    };
    for (const Case& c : {Case{plain, false, 24, 6 + 2 * 3}, Case{plain, true, 18, 8},
                          Case{padded, false, 24, 6 + 2 * 3}}) {
      const Kernel k = sums(c.in, c.masked);
      const auto given = [&](std::int64_t m, std::int64_t n) {
        return numbers(k(on(target, some({m, n}))), {m});
      };
      // Whichever call comes first, and again.
      for (const std::int64_t columns : {6, 0, 6, 0})
        CHECK(given(4, columns) == std::vector<float>(4, columns == 0 ? c.of_nothing : c.of_ones));
      CHECK(given(0, 6).empty());
      CHECK(given(0, 0).empty());
      CHECK(given(6, 0) == std::vector<float>(6, c.of_nothing));
    }
    const Kernel batched = vmap(sums(plain, false));
    for (const std::int64_t columns : {0, 6})
      CHECK(numbers(batched(on(target, some({3, 4, columns}))), {3, 4}) ==
            std::vector<float>(12, columns == 0 ? 24 : 12));
    CHECK(numbers(batched(on(target, some({0, 4, 0}))), {0, 4}).empty());
    // Nothing says what an array without elements holds where there is no fill.
    if (target != Target::cuda)
      CHECK_THROWS_WITH(sums({{2, 8}, rows}, false)(on(target, some({4, 0}))),
                        ContainsSubstring("wholly out of bounds"));
  });
}

TEST_CASE("a block far beyond its array is out of bounds, however far") {
  const auto kernel = [](BlockSpec spec) {
    return pallas_call([](Ref x, Ref o) { o[_] = x[_]; }, {.name = "far",
                                                           .out_type = {{8}, f32},
                                                           .grid = {1},
                                                           .in_specs = {spec},
                                                           .out_specs = {BlockSpec{{8}}}});
  };
  // 2^29 blocks of 8 elements are 2^32 elements, of which 32 bits see nothing.
  const Kernel after = kernel({{8}, [](Index i) { return i + (1 << 29); }});
  const Kernel before = kernel({{8}, [](Index i) { return i - (1 << 29); }});
  const Kernel padded = kernel({{Element(8, {largest, 0})}, [](Index i) { return i + smallest; }});
  const Array x = Array::zeros({13}, f32);
  for (const Target target : {Target::interpreter, Target::emulator})
    for (const Kernel& k : {after, before, padded})
      CHECK_THROWS_WITH(k.on(target)(x), ContainsSubstring("wholly out of bounds"));
}

// The place of the first NaN, or else of the first that is as large as any, or as small.
TEST_CASE("places of extremes among infinities, NaNs, zeros of both signs and subnormals") {
  constexpr std::int64_t rows = 64;
  for (const DType dtype : {f16, bf16, f8e4m3, f8e5m2, f32, f64}) {
    for (const std::int64_t columns : {3, 48, 300}) {
      test::Random random(static_cast<std::uint64_t>(columns));
      Array drawn = Array::empty({rows, columns}, f32);
      for (std::int64_t i = 0; i < rows; ++i) {
        // Few kinds in a row, so that none of them is always there.
        std::vector<float> kinds;
        for (int k = random.between(1, 3); k > 0; --k)
          kinds.push_back(random.pick({HUGE_VALF, -HUGE_VALF, NAN, 0.0f, -0.0f, 1.0f, -1.0f, 448.0f,
                                       -448.0f, 0x1p-24f, -0x1p-24f, 0x1p-9f, -0x1p-9f}));
        for (std::int64_t j = 0; j < columns; ++j)
          drawn.data<float>()[i * columns + j] = random.pick(kinds);
      }
      const Array x = drawn.astype(dtype), wide = x.astype(f32);
      std::vector<std::int32_t> largest, smallest;
      for (std::int64_t i = 0; i < rows; ++i) {
        const float* const row = wide.data<float>() + i * columns;
        const auto place = [&](auto before) {
          std::int64_t best = 0;
          for (std::int64_t j = 1; j < columns; ++j)
            if (!std::isnan(row[best]) && (std::isnan(row[j]) || before(row[j], row[best])))
              best = j;
          return static_cast<std::int32_t>(best);
        };
        largest.push_back(place(std::greater<float>()));
        smallest.push_back(place(std::less<float>()));
      }
      const Kernel k = pallas_call(
          [](Ref x, Ref high, Ref low) {
            high[_] = argmax(x[_], {.axis = 1, .keepdims = true});
            low[_] = argmin(x[_], {.axis = 1, .keepdims = true});
          },
          {.name = "places",
           .out_type = {{{rows, 1}, i32}, {{rows, 1}, i32}},
           .grid = {rows / 8},
           .in_specs = {{{8, columns},
                         [](Index i) {
                           return Indices{i, 0};
                         }}},
           .out_specs = {{{8, 1},
                          [](Index i) {
                            return Indices{i, 0};
                          }},
                         {{8, 1}, [](Index i) {
                            return Indices{i, 0};
                          }}}});
      CAPTURE(dtype.name(), columns);
      for_each_target("places", [&](Target target) {
        const auto [high_there, low_there] = k.on(target)(on(target, x)).unpack<2>();
        const Array high = on_cpu(high_there), low = on_cpu(low_there);
        for (std::int64_t i = 0; i < rows; ++i) {
          CAPTURE(i);
          CHECK(high.data<std::int32_t>()[i] == largest[static_cast<std::size_t>(i)]);
          CHECK(low.data<std::int32_t>()[i] == smallest[static_cast<std::size_t>(i)]);
        }
      });
    }
  }
}
