// What kernels tell while they run: the same on interpreter and emulator, by each program on a GPU.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <sstream>
#include <string>

#include "tests/support/captured_stderr.hpp"
#include "tests/support/hidden.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;
using pl::_;

namespace {

template <class F>
std::string printed_by(F f) {
  const CapturedStdout captured;
  f();
  return captured.text();
}

template <class F>
void refused(F f, int line, const std::string& message) {
  try {
    f();
    FAIL("nothing was refused");
  } catch (const CompileError& e) {
    CHECK_THAT(e.what(), ContainsSubstring(message));
    CHECK(e.at().line == line);
  }
}

/// The lines of `text` that are among those of `lines`, in their order: programs on a GPU tell at
/// once.
std::string only(const std::string& text, const std::string& lines) {
  std::istringstream in(text);
  std::string kept;
  for (std::string line; std::getline(in, line);)
    if (("\n" + lines).find("\n" + line + "\n") != std::string::npos) kept += line + "\n";
  return kept;
}

struct Checks {
  Checks() { pl::enable_debug_checks(); }
  ~Checks() { pl::enable_debug_checks(false); }
};

Array counted(const Shape& shape) {
  return make_array<float>(shape, [](std::int64_t i) { return static_cast<float>(i) / 2; });
}

}  // namespace

TEST_CASE("a kernel prints text, scalars and arrays [C110]") {
  for_each_target("prints", [](Target target) {
    const Kernel k = pl::pallas_call(
                         [](Ref x, Ref o) {
                           pl::debug_print("It works!");
                           pl::debug_print("x.sum() = {}", pl::sum(x[_]));
                           pl::debug_print("x: {}, all of it", x[_]);
                           pl::debug_print("{{{}}} of {}: {}, {}", program_id(0), num_programs(0),
                                           x[{0, 1}] > 0.0f, pl::Value(x[{1, 2}]).astype(u64) - 2);
                           o[_] = x[_];
                         },
                         {.name = "prints", .out_type = {{2, 3}, f32}, .grid = {1}})
                         .on(target);
    const Array x = on(target, counted({2, 3}));
    const std::string text = printed_by([&] { (void)on_cpu(k(x)); });
    CHECK_THAT(text, Equals("It works!\nx.sum() = 7.5\n"
                            "x: [0, 0]: 0, all of it\nx: [0, 1]: 0.5, all of it\n"
                            "x: [0, 2]: 1, all of it\nx: [1, 0]: 1.5, all of it\n"
                            "x: [1, 1]: 2, all of it\nx: [1, 2]: 2.5, all of it\n"
                            "{0} of 1: true, 0\n"));
  });
}

TEST_CASE("lines of a thread keep their order through loops, conditions and programs") {
  for_each_target("ordered", [](Target target) {
    const Kernel k = pl::pallas_call(
                         [](Ref x, Ref o) {
                           const Value p = program_id(0);
                           const Value before = x[_];
                           o[_] = before + 1.0f;
                           pl::loop(0, 2, [&](Index i) {
                             pl::debug_print("{} {}", p, i);
                             pl::when((p + i) % 2 == 0, [&] {
                               pl::debug_print("even {}", o[ds(0, 2)] + i.astype(f32));
                             });
                           });
                           pl::debug_print("before {}", before[{ds(298, 2)}].astype(bf16));
                         },
                         {.name = "ordered",
                          .out_type = {{600}, f32},
                          .grid = {2},
                          .in_specs = {BlockSpec{{300}, [](Index i) { return Indices{i}; }}},
                          .out_specs = {BlockSpec{{300}, [](Index i) { return Indices{i}; }}},
                          .compiler_params = {.num_warps = 8}})
                         .on(target);
    const Array x = on(target, counted({600}));
    const std::string text = printed_by([&] { (void)on_cpu(k(x)); });
    const std::string
        first = "0 0\neven [0]: 1\neven [1]: 1.5\n0 1\nbefore [0]: 149\nbefore [1]: 150\n",
        second =
            "1 0\n1 1\neven [0]: 152\neven [1]: 152.5\nbefore [0]: 300\n"
            "before [1]: 300\n";
    CHECK(text.size() == (first + second).size());
    CHECK(only(text, first) == first);
    CHECK(only(text, second) == second);
    if (target != Target::cuda) CHECK(text == first + second);
  });
}

TEST_CASE("each thread of a mesh prints for itself, numbers of every kind") {
  for_each_target("kinds", [](Target target) {
    const Kernel k =
        gpu::kernel(
            [](Ref o) {
              const Value t = axis_index("t");
              pl::when(t == 1, [&] {
                pl::debug_print("{} {} {} {}", t.astype(i8) - 3, (-t).astype(u16),
                                t.astype(i64) << 40, t.astype(f64) / 3.0);
                pl::debug_print("{}", pl::iota(i32, {3}).astype(f16) / 0.0f);
                pl::debug_print("{}", pl::full({1, 1}, 2, u8));
              });
              o[t] = t;
            },
            {.name = "kinds", .out_type = {{2}, i32}, .num_threads = 2, .thread_name = "t"})
            .on(target);
    const std::string text = printed_by([&] { (void)on_cpu(k()); });
    CHECK_THAT(text, Equals("-2 65535 1099511627776 0.3333333333333333\n"
                            "[0]: nan\n[1]: inf\n[2]: inf\n[0, 0]: 2\n"));
  });
}

TEST_CASE("what is printed is what a value was there, wherever it lives") {
  for_each_target("lives", [](Target target) {
    const Kernel k =
        pl::pallas_call(
            [](Ref x, Ref o) {
              o[_] = x[_];
              const Value before = o[_];
              const Value product = pl::dot(before.astype(f16), pl::full({16, 16}, 0.5f, f16));
              o[_] = product;
              pl::debug_print("before {}", before[{3, ds(2, 2)}]);
              pl::debug_print("transposed {}", before.transpose()[{ds(4, 2), 0}].astype(f8e4m3));
              pl::debug_print("product {}", product[{ds(0, 2), ds(14, 2)}]);
              const Value n = pl::while_loop(
                  [](Value i) {
                    pl::debug_print("asks {}", i);
                    return i < 2;
                  },
                  [](Value i) { return i + 1; }, Value(0).astype(i32));
              pl::switch_(
                  n, [&] { pl::debug_print("no"); }, [&] { pl::debug_print("no"); },
                  [&] {
                    pl::debug_print("o {}", o[{15, ds(0, 1)}]);
                  });
            },
            {.name = "lives", .out_type = {{16, 16}, f32}})
            .on(target);
    const Array x =
        on(target, make_array<float>({16, 16}, [](std::int64_t i) { return i / 16 + i % 2; }));
    const std::string text = printed_by([&] { (void)on_cpu(k(x)); });
    CHECK_THAT(text, Equals("before [0]: 3\nbefore [1]: 4\n"
                            "transposed [0]: 0\ntransposed [1]: 1\n"
                            "product [0, 0]: 4\nproduct [0, 1]: 4\n"
                            "product [1, 0]: 12\nproduct [1, 1]: 12\n"
                            "asks 0\nasks 1\nasks 2\no [0]: 124\n"));
  });
}

TEST_CASE("a condition that does not hold fails the call with the user's line and the program") {
  const Checks on;
  for_each_target("checked", [](Target target) {
    const int line = __LINE__ + 6;
    const Kernel k = pl::pallas_call(
                         [](Ref x, Ref o) {
                           const Value row = program_id(1);
                           pl::debug_check(x[_] >= 0.0f, "never");
                           pl::debug_print("row {}", row);
                           pl::debug_check(row * 2 < 3, "there is no such row");
                           pl::debug_print("row {} is there", row);
                           o[_] = x[_];
                         },
                         {.name = "checked",
                          .out_type = {{6, 8}, f32},
                          .grid = {2, 3},
                          .in_specs = {BlockSpec{{1, 8},
                                                 [](Index i, Index j) {
                                                   return Indices{3 * i + j, 0};
                                                 }}},
                          .out_specs = {BlockSpec{{1, 8},
                                                  [](Index i, Index j) {
                                                    return Indices{3 * i + j, 0};
                                                  }}}})
                         .on(target);
    // On a GPU all programs have run, and either of two is the first to find its condition broken.
    const bool at_once = target == Target::cuda;
    const std::string text = printed_by([&] {
      refused(
          [&] {
            (void)on_cpu(k(test::on(target, counted({6, 8}))));
          },
          line,
          at_once ? "debug_check: there is no such row (program ("
                  : "debug_check: there is no such row (program (0, 2))");
    });
    if (!at_once)
      CHECK_THAT(text, Equals("row 0\nrow 0 is there\nrow 1\nrow 1 is there\nrow 2\n"));
    else
      CHECK_THAT(text, ContainsSubstring("row 2\n"));
  });
}

TEST_CASE("what is off is neither in the graph nor in the text, and comes back when asked for") {
  const auto body = [](Ref x, Ref o) {
    pl::debug_check(pl::sum(x[_]) < 100.0f, "too much");
    o[_] = x[_];
  };
  const Kernel k =
      pl::pallas_call(body, {.name = "quiet", .out_type = {{8}, f32}}).on(Target::interpreter);
  const Kernel plain =
      pl::pallas_call([](Ref x, Ref o) { o[_] = x[_]; }, {.name = "quiet", .out_type = {{8}, f32}});
  const ShapeDtype type{{8}, f32};
  CHECK(k.lower(type).graph() == plain.lower(type).graph());
  CHECK(k.lower(type).cuda_source({.arch = "sm_90a"}) ==
        plain.lower(type).cuda_source({.arch = "sm_90a"}));
  const Array x = Array::full({8}, f32, 20.0f);
  CHECK_NOTHROW(k(x));
  {
    const Checks on;
    CHECK(pl::debug_checks_enabled());
    CHECK_THROWS_WITH(k(x), ContainsSubstring("too much"));
  }
  CHECK_NOTHROW(k(x));
}

TEST_CASE("HIDDEN debug", "[.]") {
  const Kernel k = pl::pallas_call(
                       [](Ref o) {
                         pl::debug_print("printed");
                         pl::debug_check(program_id(0) > 0, "checked");
                         o[_] = pl::full({1}, 0, i32);
                       },
                       {.name = "k", .out_type = {{1}, i32}, .grid = {1}})
                       .on(Target::interpreter);
  try {
    k();
  } catch (const CompileError& e) {
    std::puts(e.what());
  }
}

TEST_CASE("PALLADIUM_DEBUG says what bodies record") {
  const auto told = [](const std::string& value) {
    const std::string out = run_hidden("HIDDEN debug", {{"PALLADIUM_DEBUG", value}}).out;
    const bool prints = out.find("printed\n") != out.npos;
    return std::string(prints ? "print" : "") + (out.find("checked") != out.npos ? "check" : "");
  };
  CHECK(told("") == "print");
  CHECK(told("off") == "");
  CHECK(told("check") == "check");
  CHECK(told("print,check") == "printcheck");
}

TEST_CASE("a launch tells how many prints it had no room for") {
  const Kernel k = pl::pallas_call(
                       [](Ref o) {
                         pl::debug_print("first {}", program_id(0));
                         pl::debug_print("{}", pl::iota(i32, {512, 256}));
                         pl::debug_print("last");
                         o[_] = pl::full({1}, 0, i32);
                       },
                       {.name = "long", .out_type = {{1}, i32}, .grid = {1}})
                       .on(Target::emulator);
  const CapturedStderr log;
  CHECK(printed_by([&] { (void)k(); }) == "first 0\n");
  CHECK_THAT(log.text(), ContainsSubstring("2 of the calls of debug_print had no room"));
  CHECK(printed_by([&] { (void)k(); }) == "first 0\n");
}

// ---- what is refused

TEST_CASE("a format has one {} for each value, and nothing else in braces") {
  const auto format = [](const char* text, int count) {
    return [=] {
      pallas_call(
          [=](Ref o) {
            const Value v = program_id(0);
            if (count == 0) pl::debug_print(text);
            if (count == 1) pl::debug_print(text, v);
            if (count == 2) pl::debug_print(text, v, o[_]);
          },
          {.name = "f", .out_type = {{2}, f32}, .grid = {1}})
          .lower();
    };
  };
  const int line = __LINE__ - 8;
  refused(format("{}", 0), line, "debug_print: the format string expects 1 values, given 0");
  const char* const specs = "should not contain any format specs or conversions, given {";
  refused(format("{:.2f}", 1), line + 1, std::string(specs) + ":.2f}");
  refused(format("{!r}", 1), line + 1, specs);
  const char* const names = "should not reference arguments by position or name, given {";
  refused(format("{0}", 1), line + 1, std::string(names) + "0}");
  refused(format("{x}", 1), line + 1, std::string(names) + "x}");
  refused(format("} {}", 1), line + 1, "there is a } without a { before it");
  refused(format("{} {", 1), line + 1, "there is a { without a } behind it");
  refused(format("{} {}", 2), line + 2,
          "expected any number of scalars, or one array; given i32[], f32[2]");
}

TEST_CASE("a check takes a condition, inside of a kernel") {
  const int line = __LINE__ + 1;
  const auto body = [](Ref) { pl::debug_check(program_id(0), "x"); };
  refused(
      [&] {
        pallas_call(body, {.name = "c", .out_type = {{2}, f32}, .grid = {1}}).lower();
      },
      line, "debug_check: expected a bool as the condition, given i32[]");
  CHECK_THROWS_WITH(pl::debug_print("x"), ContainsSubstring("debug_print: used outside a kernel"));
  const int map = __LINE__ + 1;
  const BlockSpec block{{2}, [](Index i) { return pl::debug_print("{}", i), i; }};
  const PallasCallOptions options{
      .name = "m", .out_type = {{2}, f32}, .grid = {1}, .out_specs = {block}};
  refused([&] { pallas_call([](Ref) {}, options).lower(); }, map,
          "debug_print: used in an index map");
}
