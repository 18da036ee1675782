// What a call's sizes let its kernel know.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/palladium.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

/// Copies blocks of 8 x 64 of a matrix of any size.
Kernel copy(int* traces = nullptr) {
  return pallas_call(
      [=](Ref x, Ref o) {
        if (traces) ++*traces;
        o[_] = x[_];
      },
      [](ShapeDtype x) {
        const auto [m, n] = x.shape.unpack<2>();
        const BlockSpec tile{{8, 64}, [](Index i, Index j) { return Indices{i, j}; }};
        return PallasCallOptions{.name = "copy",
                                 .out_type = x,
                                 .grid = {cdiv(m, 8), cdiv(n, 64)},
                                 .in_specs = {tile},
                                 .out_specs = {tile}};
      });
}

/// An array that is looked at only.
Array somewhere(std::int64_t m, std::int64_t n, std::int64_t stride = 0, std::uintptr_t at = 4096) {
  const Device cpu = Device::cpu();
  const std::int64_t strides[] = {stride, 1};
  ViewOptions options{.device = &cpu};
  if (stride != 0) options.strides = strides;
  return Array::view(reinterpret_cast<void*>(at), {m, n}, f16, options);
}

std::string text(const Array& x) { return copy().lower(x).graph(); }

/// o = x of a vector whose length is asked to be a multiple of n.
Kernel of_multiples(std::int64_t n, int* traces = nullptr) {
  return pallas_call(
             [=](Ref x, Ref o) {
               if (traces) ++*traces;
               o[_] = x[_];
             },
             [=](ShapeDtype x) {
               require_multiple(x.shape[0], n);
               const BlockSpec piece{{64}, [](Index i) { return i; }};
               return PallasCallOptions{.out_type = x,
                                        .grid = {cdiv(x.shape[0], 64)},
                                        .in_specs = {piece},
                                        .out_specs = {piece}};
             })
      .on(Target::interpreter);
}

constexpr int line_of_call = __LINE__ + 3;
void run(const Kernel& k, std::int64_t n) {
  const Array x = Array::zeros({n}, f32);
  Array y = k(x);
}

}  // namespace

TEST_CASE("a call's kernel knows whether rows are multiples of 16 bytes") {
  CHECK_THAT(text(somewhere(3, 72)), ContainsSubstring("symbol 1: multiple of 8\n"));
  CHECK_THAT(text(somewhere(8, 36)), !ContainsSubstring("symbol 1"));
  CHECK_THAT(text(somewhere(8, 0)), ContainsSubstring("symbol 1: multiple of 8\n"));
  // Both must be: where rows are, and how long they are.
  CHECK_THAT(text(somewhere(3, 72)), !ContainsSubstring("aligned"));
  CHECK_THAT(text(somewhere(3, 36)), ContainsSubstring("args[0]: f16[s0,s1] in blocks [8,64] "
                                                       "aligned 2"));
  CHECK_THAT(text(somewhere(3, 72, 0, 4098)),
             ContainsSubstring("symbol 1: multiple of 8") && ContainsSubstring("[8,64] aligned 2"));
}

TEST_CASE("a call's kernel knows whether its offsets are short") {
  const auto is_short = [](const Array& x) {
    return text(x).find("offsets below 2^31") != std::string::npos;
  };
  CHECK(is_short(somewhere(1, 1)));
  CHECK(is_short(somewhere((1 << 15) - 8, 1 << 16)));
  CHECK_FALSE(is_short(somewhere((1 << 15) - 7, 1 << 16)));  // blocks may reach beyond the end
  CHECK_FALSE(is_short(somewhere(1, 1 << 29)));              // blocks have 8 rows
  CHECK(is_short(somewhere(64, 64, 1 << 24)));
  CHECK_FALSE(is_short(somewhere(64, 64, 1 << 26)));
  CHECK(is_short(somewhere(64, 64, -(1 << 24), 1ull << 40)));
  CHECK_FALSE(is_short(somewhere(64, 64, -(1 << 26), 1ull << 40)));
}

TEST_CASE("a call's kernel knows whether the offsets of a vector are short") {
  const Kernel k = of_multiples(1);
  const auto is_short = [&](std::int64_t n) {
    const Array x = somewhere(1, n).reshape({n});
    return k.lower(x).graph().find("offsets below 2^31") != std::string::npos;
  };
  const std::int64_t most = (std::int64_t{1} << 31) - 63;  // in blocks of 64
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, most})
    CHECK(is_short(n));
  for (const std::int64_t n : {most + 1, std::int64_t{1} << 31, std::int64_t{1} << 40})
    CHECK_FALSE(is_short(n));
  const auto lowered = [&](DimOptions n) {
    return k.lower(ShapeDtype{{dim("n", n)}, f16}).graph();
  };
  CHECK(lowered({.at_most = most}).find("offsets below 2^31") != std::string::npos);
  CHECK(lowered({.at_most = most + 1}).find("offsets below 2^31") == std::string::npos);
}

TEST_CASE("the offsets of what a call makes count too") {
  // An outer product of two small vectors is large.
  const Kernel outer = pallas_call(
      [](Ref x, Ref y, Ref o) {
        o[_] = broadcast_to(reshape(x[_], {8, 1}), {8, 64}) *
               broadcast_to(reshape(y[_], {1, 64}), {8, 64});
      },
      [](ShapeDtype x, ShapeDtype y) {
        const Dim m = x.shape[0], n = y.shape[0];
        return PallasCallOptions{.out_type = {{m, n}, f16},
                                 .grid = {cdiv(m, 8), cdiv(n, 64)},
                                 .in_specs = {{{8}, [](Index i, Index) { return i; }},
                                              {{64}, [](Index, Index j) { return j; }}},
                                 .out_specs = {{{8, 64}, [](Index i, Index j) {
                                                  return Indices{i, j};
                                                }}}};
      });
  const auto vector = [](std::int64_t n) { return somewhere(1, n).reshape({n}); };
  const auto text = [&](std::int64_t m, std::int64_t n) {
    return outer.lower(vector(m), vector(n)).graph();
  };
  CHECK_THAT(text((1 << 15) - 8, 1 << 16), ContainsSubstring("offsets below 2^31"));
  CHECK_THAT(text(1 << 16, 1 << 16), !ContainsSubstring("offsets below 2^31"));
}

TEST_CASE("sizes of one class share a trace, others have their own") {
  int traces = 0;
  const Kernel k = copy(&traces).on(Target::interpreter);
  const auto call = [&](std::int64_t m, std::int64_t n) {
    const Array x = Array::zeros({m, n}, f32);
    Array y = k(x);
    CHECK(y.shape() == x.shape());
  };
  for (const std::int64_t n : {1, 9, 1001, 66}) call(3, n);
  CHECK(traces == 1);
  for (const std::int64_t n : {8, 1000, 64}) call(1000 / n, n);
  CHECK(traces == 2);
  for (const std::int64_t m : {2, 4, 7, 16}) call(m, 8);  // no address depends on how many rows
  CHECK(traces == 2);
  call(3, 17);
  CHECK(traces == 2);
}

TEST_CASE("the same class is the same key, whatever the sizes") {
  const auto key = [](const Array& x) { return copy().lower(x).key({.arch = "sm_90a"}); };
  CHECK(key(somewhere(3, 72)) == key(somewhere(100, 4096)));
  CHECK(key(somewhere(3, 71)) == key(somewhere(100, 4097)));
  CHECK(key(somewhere(3, 71)) != key(somewhere(3, 72)));
  CHECK(key(somewhere(3, 72)) != key(somewhere(3 << 20, 4096)));
}

TEST_CASE("what dims promise to lower is what a call of such sizes has") {
  const auto lowered = [](DimOptions m, DimOptions n) {
    return copy().lower(ShapeDtype{{dim("m", m), dim("n", n)}, f16}).graph();
  };
  CHECK(lowered({.at_most = 8192}, {.multiple_of = 8, .at_most = 8192}) == text(somewhere(9, 64)));
  CHECK(lowered({.at_most = 8192}, {.at_most = 8192}) == text(somewhere(9, 65)));
  constexpr std::int64_t most = INT32_MAX;
  CHECK(lowered({.at_most = most}, {.multiple_of = 64, .at_most = most}) ==
        text(somewhere(3 << 20, 4096)));
  CHECK(lowered({.at_most = most}, {.at_most = most}) == text(somewhere(3 << 20, 4097)));
  CHECK(lowered({}, {.multiple_of = 64}) == text(somewhere(most + 1, 4096)));
  CHECK(lowered({}, {}) == text(somewhere(most + 1, 4097)));
}

TEST_CASE("a size that is asked to be a multiple and is not is refused, with the call's line") {
  const Kernel k = of_multiples(64);
  const auto refused = [&](std::int64_t n) {
    try {
      run(k, n);
      FAIL("not refused");
    } catch (const CompileError& e) {
      CHECK_THAT(e.what(), ContainsSubstring("require_multiple: expected a multiple of 64, given "
                                             "args[0].shape[0] = " +
                                             std::to_string(n)));
      CHECK(e.at().line == line_of_call);
    }
  };
  refused(100);
  run(k, 128);
  refused(132);  // a multiple of 16 bytes as the call before, but not of 64
  run(k, 0);
  refused(1);
}

TEST_CASE("what is asked of sizes is known of symbols, rounded down to their class") {
  const auto lowered = [](std::int64_t n) {
    return of_multiples(n).lower(ShapeDtype{{dim("n")}, f32}).graph();
  };
  CHECK_THAT(lowered(64), ContainsSubstring("symbol 0: multiple of 4\n"));
  CHECK_THAT(lowered(12), ContainsSubstring("symbol 0: multiple of 4\n"));
  CHECK_THAT(lowered(6), !ContainsSubstring("symbol 0"));
  int traces = 0;
  const Kernel six = of_multiples(6, &traces);
  for (const std::int64_t n : {6, 18, 30}) run(six, n);
  CHECK(traces == 1);
  for (const std::int64_t n : {12, 24}) run(six, n);
  CHECK(traces == 2);
  CHECK_THROWS_AS(run(six, 8), CompileError);
}

TEST_CASE("a multiple may be asked of what is computed from sizes") {
  const Kernel k =
      pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                  [](ShapeDtype x) {
                    const auto [m, n] = x.shape.unpack<2>();
                    require_multiple(m * n, 6);
                    require_multiple(m + n, 5);
                    const BlockSpec tile{{4, 4}, [](Index i, Index j) { return Indices{i, j}; }};
                    return PallasCallOptions{.out_type = x,
                                             .grid = {cdiv(m, 4), cdiv(n, 4)},
                                             .in_specs = {tile},
                                             .out_specs = {tile}};
                  })
          .on(Target::interpreter);
  const auto call = [&](std::int64_t m, std::int64_t n) {
    const Array x = Array::zeros({m, n}, f32);
    Array y = k(x);
  };
  call(2, 3);
  call(3, 2);
  call(3, 12);
  CHECK_THROWS_WITH(call(3, 4), ContainsSubstring("expected a multiple of 5, given "
                                                  "(args[0].shape[0] + args[0].shape[1]) = 7"));
  CHECK_THROWS_WITH(call(4, 1), ContainsSubstring("expected a multiple of 6"));
  call(2, 3);
}

TEST_CASE("a kernel that is lowered with nothing known names the classes that calls can be of") {
  const auto classes = [](const Lowered& l) {
    for (const Remark& r : l.report({.arch = "sm_90a"}).remarks)
      if (r.text.starts_with("classes of calls: ")) return r.text;
    return std::string();
  };
  const auto of = [&](const Dim& m, const Dim& n) {
    return classes(copy().lower(ShapeDtype{{m, n}, f16}));
  };
  CHECK(of(dim("m"), dim("n")) ==
        "classes of calls: args[0].shape[1] a multiple of 8 or not; arrays below 2^31 elements or "
        "not; extents below 2^31 and strides below 2^40 bytes or not: each that is called has a "
        "kernel of its own, and at most 6 are kept");
  CHECK_THAT(of(dim("m"), dim("n", {.multiple_of = 8})), !ContainsSubstring("a multiple of"));
  CHECK(of(dim("m", {.at_most = 1000}), dim("n", {.multiple_of = 8, .at_most = 1000})).empty());
  CHECK(of(64, 64).empty());
  const Kernel add = pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                                 [](ShapeDtype x, ShapeDtype) {
                                   const BlockSpec piece{{64}, [](Index i) { return i; }};
                                   return PallasCallOptions{.name = "add",
                                                            .out_type = x,
                                                            .grid = {cdiv(x.shape[0], 64)},
                                                            .in_specs = {piece, piece},
                                                            .out_specs = {piece}};
                                 });
  CHECK_THAT(classes(add.lower(ShapeDtype{{dim("m")}, f32}, ShapeDtype{{dim("n")}, f32})),
             ContainsSubstring("args[0].shape[0] and args[1].shape[0] equal or not"));
}

TEST_CASE("a multiple that nothing can be is refused where it is asked for") {
  CHECK_THROWS_WITH(run(of_multiples(0), 4),
                    ContainsSubstring("require_multiple: expected a number from 1, given 0"));
  CHECK_THROWS_WITH(run(of_multiples(-8), 4), ContainsSubstring("given -8"));
  CHECK_THROWS_WITH(require_multiple(dim("n"), 4),
                    ContainsSubstring("'n' is symbolic; only an options function"));
  CHECK_THROWS_WITH(require_multiple(Dim(6), 4),
                    ContainsSubstring("expected a multiple of 4, given 6"));
  require_multiple(Dim(8), 4);
}

TEST_CASE("an extent that is read is asked for its size alone") {
  const Kernel k =
      pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                  [](ShapeDtype x) {
                    require_multiple(x.shape[0], 4);
                    const std::int64_t n = x.shape[0];
                    const BlockSpec all{{n}, [](Index i) { return i; }};
                    return PallasCallOptions{
                        .out_type = x, .grid = {1}, .in_specs = {all}, .out_specs = {all}};
                  })
          .on(Target::interpreter);
  run(k, 8);
  run(k, 12);
  CHECK_THROWS_WITH(run(k, 10), ContainsSubstring("args[0].shape[0] = 10"));
}
