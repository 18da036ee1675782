// What somebody writes who has read one page of the documentation, in other words than the page's.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "palladium/palladium.hpp"
#include "tests/cli/tool.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/targets.hpp"

namespace newcomers {

namespace pl = palladium;
namespace plgpu = palladium::gpu;
using palladium::test::ContainsSubstring;
using palladium::test::Environment;
using palladium::test::Folder;
using pl::_;

std::vector<float> floats(const pl::Array& array) {
  const pl::Array here = array.to(pl::Device::cpu());
  const auto values = here.values<float>();
  return {values.begin(), values.end()};
}

/// Nothing of a page needs to name the target of a call.
void on_each_target(const std::string& name, const std::function<void()>& body) {
  const pl::Target before = pl::default_target();
  palladium::test::for_each_target(name, [&](pl::Target target) {
    pl::set_default_target(target);
    body();
  });
  pl::set_default_target(before);
}

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const pl::Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace newcomers

using namespace newcomers;

TEST_CASE("quickstart: the logarithm of a sum of exponentials, and a distance") {
  on_each_target("two reductions", [] {
    auto lse = pl::pallas_call(
        [](pl::Ref x, pl::Ref o) {
          pl::Value v = x[_];
          pl::Value most = pl::max(v, {.axis = 1, .keepdims = true});
          o[_] = most + pl::log(pl::sum(pl::exp(v - most), {.axis = 1, .keepdims = true}));
        },
        [](pl::ShapeDtype x) {
          auto in = pl::BlockSpec{{1, x.shape[1]}, [](pl::Index i) { return pl::Indices{i, 0}; }};
          auto out = pl::BlockSpec{{1, 1}, [](pl::Index i) { return pl::Indices{i, 0}; }};
          return pl::PallasCallOptions{.name = "lse",
                                       .out_type = {{x.shape[0], 1}, pl::f32},
                                       .grid = {x.shape[0]},
                                       .in_specs = {in},
                                       .out_specs = {out}};
        });
    for (const float each : floats(lse(pl::Array::zeros({3, 5}, pl::f32))))
      CHECK(std::abs(each - std::log(5.0f)) < 1e-5f);

    auto distance = pl::pallas_call(
        [](pl::Ref a, pl::Ref b, pl::Ref o) {
          pl::Value d = a[_] - b[_];
          o[0] = pl::sqrt(pl::sum(d * d));
        },
        {.name = "distance", .out_type = {{1}, pl::f32}});
    CHECK(floats(distance(pl::Array::of({1.0f, 2.0f}), pl::Array::of({4.0f, 6.0f})))[0] == 5);
  });
}

TEST_CASE("from Pallas: a matrix times a vector, a divisor, a polynomial over a batch") {
  on_each_target("three kernels", [] {
    auto matvec = pl::pallas_call(
        [](pl::Ref a, pl::Ref x, pl::Ref o) {
          pl::when(pl::program_id(1) == 0, [&] { o[_] = pl::zeros({8}); });
          o[_] += pl::sum(a[_] * x[_], {.axis = 1});
        },
        [](pl::ShapeDtype a, pl::ShapeDtype) {
          auto tile = pl::BlockSpec{{8, 16},
                                    [](pl::Index i, pl::Index k) {
                                      return pl::Indices{i, k};
                                    },
                                    {.fill = 0}};
          auto piece = pl::BlockSpec{{16}, [](pl::Index, pl::Index k) { return k; }, {.fill = 0}};
          auto rows = pl::BlockSpec{{8}, [](pl::Index i, pl::Index) { return i; }};
          return pl::PallasCallOptions{.name = "matvec",
                                       .out_type = {{a.shape[0]}, pl::f32},
                                       .grid = {pl::cdiv(a.shape[0], 8), pl::cdiv(a.shape[1], 16)},
                                       .in_specs = {tile, piece},
                                       .out_specs = {rows}};
        });
    pl::Array a = pl::Array::from_function({10, 20}, pl::f32, [](auto i) { return 1.0 * i[0]; });
    const std::vector<float> product = floats(matvec(a, pl::Array::full({20}, pl::f32, 1)));
    for (std::size_t i = 0; i < 10; ++i) CHECK(product[i] == 20.0f * static_cast<float>(i));

    auto gcd = pl::pallas_call(
        [](pl::Ref x, pl::Ref y, pl::Ref o) {
          auto [divisor, zero] =
              pl::while_loop([](pl::Value, pl::Value b) { return b != 0; },
                             [](pl::Value a, pl::Value b) { return pl::carry(b, a % b); },
                             pl::Value(x[0]), pl::Value(y[0]));
          o[0] = divisor + zero;
        },
        {.name = "gcd", .out_type = {{1}, pl::i32}});
    pl::Array divisor = gcd(pl::Array::of({84}), pl::Array::of({36}));
    CHECK(divisor.values<int>()[0] == 12);

    auto horner = pl::pallas_call(
        [](pl::Ref x, pl::Ref c, pl::Ref o) {
          pl::Value v = x[_];
          pl::Value all = pl::loop(
              0, 3, [&](pl::Index i, pl::Value sum) { return sum * v + pl::Value(c[i]); },
              pl::zeros({4}));
          o[_] = all;
        },
        {.name = "horner", .out_type = {{4}, pl::f32}});
    pl::Array x = pl::Array::of({0.0f, 1.0f, 2.0f, 3.0f}), c = pl::Array::of({1.0f, 2.0f, 3.0f});
    CHECK(floats(horner(x, c)) == std::vector<float>{3, 6, 11, 18});
    CHECK(floats(pl::vmap(horner, {0, pl::unbatched})(pl::Array::full({2, 4}, pl::f32, 1), c)) ==
          std::vector<float>(8, 6));
  });
}

TEST_CASE("from Triton: a scalar argument, a loop over K, a masked load, a sort") {
  on_each_target("four kernels", [] {
    auto leaky = pl::pallas_call(
        [](pl::Value alpha, pl::Ref x, pl::Ref o) {
          pl::Value v = x[_];
          o[_] = pl::where(v > 0.0f, v, alpha * v);
        },
        [](pl::ShapeDtype, pl::ShapeDtype x) {
          auto block = pl::BlockSpec{{256}, [](pl::Index i) { return i; }};
          return pl::PallasCallOptions{.name = "leaky",
                                       .out_type = x,
                                       .grid = {pl::cdiv(x.shape[0], 256)},
                                       .in_specs = {block},
                                       .out_specs = {block}};
        });
    CHECK(floats(leaky(pl::scalar(0.5f), pl::Array::of({-1.0f, 2.0f, -3.0f}))) ==
          std::vector<float>{-0.5f, 2, -1.5f});

    auto gemm = pl::pallas_call(
        [](pl::Ref a, pl::Ref b, pl::Ref o) {
          pl::Value acc = pl::loop(
              0, 64, {.step = 32},
              [&](pl::Index k, pl::Value acc) {
                return acc + pl::dot(a[{_, pl::ds(k, 32)}], b[{pl::ds(k, 32), _}]);
              },
              pl::zeros({32, 32}));
          o[_] = acc.astype(pl::f16);
        },
        {.name = "gemm", .out_type = {{32, 32}, pl::f16}, .compiler_params = {.num_warps = 4}});
    pl::Array product =
        gemm(pl::Array::full({32, 64}, pl::f16, 1), pl::Array::full({64, 32}, pl::f16, 0.5));
    CHECK(floats(product.to(pl::Device::cpu()).astype(pl::f32)) == std::vector<float>(1024, 32));

    auto head = pl::pallas_call(
        [](pl::Ref x, pl::Ref total, pl::Ref sorted, pl::Ref at) {
          pl::Value offsets = pl::arange(8);
          total[0] = pl::sum(pl::load(x.at({pl::ds(0, 8)}), {.mask = offsets < 5, .other = 0}));
          pl::Value v = x[{pl::ds(0, 4)}];
          sorted[_] = pl::sort(v);
          at[0] = pl::argmax(v);
        },
        {.name = "head", .out_type = {{{1}, pl::f32}, {{4}, pl::f32}, {{1}, pl::i32}}});
    auto [total, sorted, at] = head(pl::Array::of({3.0f, 9.0f, 1.0f, 2.0f, 5.0f})).unpack<3>();
    CHECK(floats(total)[0] == 20);
    CHECK(floats(sorted) == std::vector<float>{1, 2, 3, 9});
    CHECK(at.values<int>()[0] == 1);
  });
}

TEST_CASE("debugging: differences that reach too far, a sum that nobody began, a bad logarithm") {
  const pl::Array squares = pl::Array::of({1.0f, 4.0f, 9.0f, 16.0f});
  auto differences = pl::pallas_call(
      [](pl::Ref x, pl::Ref o) {
        pl::Value i = pl::program_id(0);
        pl::debug_print("program {} reads {}", i, pl::Value(x[i]));
        o[0] = x[i + 1] - x[i];
      },
      {.name = "differences",
       .out_type = {{4}, pl::f32},
       .grid = {4},
       .in_specs = {pl::BlockSpec{}},
       .out_specs = {pl::BlockSpec{{1}, [](pl::Index i) { return i; }}}});
  const int line = __LINE__ - 7;
  std::string printed, message;
  {
    const palladium::test::CapturedStdout out;
    message = message_of([&] { differences.on(pl::Target::interpreter)(squares); });
    printed = out.text();
  }
  CHECK_THAT(printed, ContainsSubstring("program 0 reads 1\nprogram 1 reads 4\n"));
  CHECK_THAT(message, ContainsSubstring("index 4 is out of bounds") &&
                          ContainsSubstring("newcomers_test.cpp:" + std::to_string(line)));

  auto sum = pl::pallas_call([](pl::Ref x, pl::Ref o) { o[0] += pl::sum(x[_]); },
                             {.name = "sum",
                              .out_type = {{1}, pl::f32},
                              .grid = {2},
                              .in_specs = {pl::BlockSpec{{2}, [](pl::Index i) { return i; }}},
                              .out_specs = {pl::BlockSpec{}}});
  CHECK_THAT(message_of([&] { sum.on(pl::Target::interpreter)(squares); }),
             ContainsSubstring("read before anything was stored there"));

  auto logarithm = pl::pallas_call(
      [](pl::Ref x, pl::Ref o) {
        pl::Value v = x[_];
        pl::debug_check(pl::all(v > 0.0f), "the logarithm of what is not positive");
        o[_] = pl::log(v);
      },
      {.name = "logarithm", .out_type = {{2}, pl::f32}});
  pl::enable_debug_checks();
  for (const pl::Target target : {pl::Target::interpreter, pl::Target::emulator})
    CHECK_THAT(message_of([&] {
                 logarithm.on(target)(pl::Array::of({1.0f, -1.0f}));
               }),
               ContainsSubstring("debug_check: the logarithm of what is not positive"));
  pl::enable_debug_checks(false);
}

namespace newcomers {

struct Both {
  pl::Array twice, more;
};
struct Sides {
  pl::Ref left, right;
};
struct Running {
  pl::Value most, sum;
};

}  // namespace newcomers

TEST_CASE("reference: one's own memory, numbers by value, results by name, futures") {
  const Folder cache;
  const Environment in_cache("PALLADIUM_CACHE_DIR", cache.path());
  pl::set_default_target(pl::Target::interpreter);
  auto axpy = pl::pallas_call(
      [](pl::Value alpha, pl::Ref x, pl::Ref y, pl::Ref o) { o[_] = alpha * x[_] + y[_]; },
      [](pl::ShapeDtype, pl::ShapeDtype x, pl::ShapeDtype) {
        return pl::PallasCallOptions{.name = "axpy", .out_type = x};
      });
  std::vector<float> mine = {1, 2, 3, 4, 5, 6};
  float result[6] = {};
  pl::Array x = pl::Array::view(std::span(mine), {2, 3}), y = pl::Array::full({2, 3}, pl::f32, 1);
  axpy.into({pl::Array::view(result, {2, 3}, pl::f32)}, {pl::scalar(3.0f), x, y});
  CHECK(result[5] == 19);
  CHECK(floats(pl::Array::from_dlpack(x.to_dlpack())) == mine);
  axpy.prepare({pl::scalar(1.0f), x, y});

  auto lowered = axpy.lower(pl::scalar(2.0f), x, y);
  CHECK_THAT(lowered.graph(), ContainsSubstring("kernel axpy"));
  CHECK_THAT(lowered.cuda_source({.arch = "sm_80"}), ContainsSubstring("axpy_kernel"));
  const pl::ShapeDtype rows{{64, 128}, pl::f32};
  CHECK(axpy.lower(pl::scalar(2.0f), rows, rows).report({.arch = "sm_90a"}).bytes_per_element() ==
        12);

  auto pair = pl::pallas_call(
      [](pl::Ref x, pl::Ref twice, pl::Ref more) {
        pl::Value v = x[_];
        twice[_] = v * 2;
        more[_] = v + 1;
      },
      {.name = "pair", .out_type = {{"twice", {{4}, pl::f32}}, {"more", {{4}, pl::f32}}}});
  const pl::Array ones = pl::Array::full({4}, pl::f32, 1);
  Both both = pair(ones).as<Both>();
  CHECK(floats(both.twice) == floats(pair(ones)["more"]));

  auto eighths = pl::pallas_call([](pl::Ref x, pl::Ref o) { o[_] = x[_] + 1; },
                                 [](pl::ShapeDtype x) {
                                   pl::require_multiple(x.shape[0], 8);
                                   auto block = pl::BlockSpec{{8}, [](pl::Index i) { return i; }};
                                   return pl::PallasCallOptions{.name = "eighths",
                                                                .out_type = x,
                                                                .grid = {x.shape[0] / 8},
                                                                .in_specs = {block},
                                                                .out_specs = {block}};
                                 });
  CHECK(floats(eighths(pl::Array::zeros({16}, pl::f32))) == std::vector<float>(16, 1));
  CHECK_THAT(message_of([&] { eighths(pl::Array::zeros({12}, pl::f32)); }),
             ContainsSubstring("expected a multiple of 8, given args[0].shape[0] = 12"));
}

TEST_CASE("reference: rows of the table from Pallas, in one body each") {
  on_each_target("rows", [] {
    auto control = pl::pallas_call(
        [](pl::Ref x, pl::Ref o) {
          pl::Value a = pl::scan([](pl::Value v) { return v * 2; }, pl::Value(x[0]), {.length = 3});
          pl::Value b = pl::cond(
              a > 4, [&] { return a + 1; }, [&] { return a - 1; });
          pl::Value c = pl::switch_(
              1, [&] { return b; }, [&] { return b * 10; });
          pl::Value d = pl::run_scoped(
              [&](pl::Ref tmp) {
                tmp[_] = pl::full({8}, c);
                return pl::sum(tmp[_]);
              },
              {plgpu::SMEM({8}, pl::i32)});
          Running r = pl::loop(
              0, 4,
              [&](pl::Index i, Running r) {
                return Running{pl::maximum(r.most, i), r.sum + i};
              },
              Running{pl::Value(0).astype(pl::i32), d});
          o[0] = r.most;
          o[1] = r.sum;
        },
        {.name = "control", .out_type = {{2}, pl::i32}});
    pl::Array numbers = control(pl::Array::of({1}));
    CHECK(numbers.values<int>()[0] == 3);
    CHECK(numbers.values<int>()[1] == 726);

    auto diagonal = pl::pallas_call(
        [](Sides in, pl::Ref o) {
          pl::Value v = in.left[_] + in.right[_], at = pl::arange(3);
          pl::Value z = pl::scatter(pl::zeros_like(v), {at, at}, pl::gather(v, {at, at}),
                                    {.mode = pl::ScatterMode::add});
          o[_] = pl::pad(z, {{1, 0, 0}, {0, 1, 0}});
        },
        {.name = "diagonal", .out_type = {{4, 4}, pl::f32}});
    pl::Array m = pl::Array::from_function({3, 3}, pl::f32, [](auto i) { return 1.0 * i[0]; });
    CHECK(floats(diagonal(m, m)) ==
          std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 4, 0});

    auto pick = pl::pallas_call([](pl::Ref, pl::Ref x, pl::Ref o) { o[_] = x[_]; },
                                {.name = "pick",
                                 .out_type = {{2, 4}, pl::f32},
                                 .num_scalar_prefetch = 1,
                                 .grid = {2},
                                 .in_specs = {pl::BlockSpec{{1, 4},
                                                            [](pl::Index i, pl::Ref rows) {
                                                              return pl::Indices{rows[i], 0};
                                                            }}},
                                 .out_specs = {pl::BlockSpec{{1, 4}, [](pl::Index i, pl::Ref) {
                                                               return pl::Indices{i, 0};
                                                             }}}});
    pl::Array table = pl::Array::from_function({3, 4}, pl::f32, [](auto i) { return 1.0 * i[0]; });
    CHECK(floats(pick(pl::Array::of({2, 0}), table)) == std::vector<float>{2, 2, 2, 2, 0, 0, 0, 0});

    auto blur =
        pl::pallas_call([](pl::Value, pl::Ref x, pl::Ref o) { o[0] = pl::sum(x[_]) / 3.0f; },
                        {.name = "blur3",
                         .out_type = {{4}, pl::f32},
                         .grid = {pl::argument(0) * 2},
                         .in_specs = {pl::BlockSpec{
                             {pl::Element(3, {1, 1})}, [](pl::Index i) { return i; }, {.fill = 0}}},
                         .out_specs = {pl::BlockSpec{{1}, [](pl::Index i) { return i; }}}});
    CHECK(floats(blur(pl::scalar(2), pl::Array::full({4}, pl::f32, 3))) ==
          std::vector<float>{2, 3, 3, 2});
  });
}

TEST_CASE("operations: every function of one operand and every operator of the page") {
  on_each_target("functions", [] {
    auto many = pl::pallas_call(
        [](pl::Ref x, pl::Ref n, pl::Ref reals, pl::Ref integers) {
          pl::Value v = x[_], m = n[_];
          pl::Value r = pl::abs(-v) + pl::sign(v) + pl::exp(v) + pl::exp2(v) + pl::expm1(v);
          r = r + pl::log(v) + pl::log2(v) + pl::log1p(v) + pl::sqrt(v) + pl::cbrt(v);
          r = r + pl::rsqrt(v) + pl::sin(v) + pl::cos(v) + pl::tan(v) + pl::asin(v);
          r = r + pl::acos(v) + pl::atan(v) + pl::sinh(v) + pl::cosh(v) + pl::tanh(v);
          r = r + pl::asinh(v) + pl::acosh(v + 1.0f) + pl::atanh(v) + pl::logistic(v) + pl::erf(v);
          r = r + pl::erf_inv(v) + pl::floor(v) + pl::ceil(v) + pl::round(v) + pl::trunc(v);
          r = r + pl::pow(v, v) + pl::atan2(v, v) + pl::maximum(v, 0.5f) + pl::fma(v, v, v);
          reals[_] = pl::where(pl::is_finite(r), r, 0.0f);
          integers[_] = pl::population_count(m) + pl::clz(m) + (m << 2) + (m >> 1) + m % 3 + ~m +
                        (m & 7) + (m | 8) + (m ^ 1) + pl::minimum(m, 2);
        },
        {.name = "many", .out_type = {{{4}, pl::f32}, {{4}, pl::i32}}});
    auto [reals, integers] =
        many(pl::Array::full({4}, pl::f32, 0.5), pl::Array::full({4}, pl::i32, 5)).unpack<2>();
    CHECK(std::abs(floats(reals)[0] - 20.2429f) < 1e-3f);  // by the functions of C
    // 2 + 29 + 20 + 2 + 2 - 6 + 5 + 13 + 4 + 2
    CHECK(integers.values<int>()[3] == 73);
  });
}

TEST_CASE("profiling: a kernel that a program recorded is shown with its report") {
  const palladium::test::Tool tool;
  const std::string manifest = tool.folder / "kernels.json";
  {
    const Environment in_cache("PALLADIUM_CACHE_DIR", tool.cache());
    const pl::Recorder recorder(manifest);
    pl::pallas_call([](pl::Ref x, pl::Ref o) { o[_] = x[_] - 1.0f; },
                    {.name = "less", .out_type = {{512}, pl::f32}})
        .on(pl::Target::interpreter)(pl::Array::zeros({512}, pl::f32));
  }
  const auto shown = tool({"show", manifest + "#1", "--report", "--arch", "sm_90a"});
  CHECK(shown.status == 0);
  CHECK_THAT(shown.out, ContainsSubstring("16 of 16 sectors") && ContainsSubstring("predicted"));
}
