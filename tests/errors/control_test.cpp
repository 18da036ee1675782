// Mistakes in recorded control flow, on their words and their line.
#include <functional>

#include "palladium/gpu.hpp"
#include "tests/errors/refused.hpp"

using namespace palladium;
using namespace palladium::test;

TEST_CASE("branches that give different types are refused, with both and their lines") {
  int first = 0, second = 0;
  const Body body = [&](Ref x, Ref o) {
    const Value c = x[0] > 0;
    const auto on_true = [&] {
      first = __LINE__ + 1;
      return x[_] + 1;
    };
    const auto on_false = [&] {
      second = __LINE__ + 1;
      return pl::sum(x[_]) + 1;
    };
    line = __LINE__ + 1;
    o[_] = cond(c, on_true, on_false);
  };
  try {
    traced(body, one_output(), {array({8})});
    FAIL_CHECK("nothing was refused");
  } catch (const CompileError& e) {
    const auto at = [](int line) { return to_string(Location{here().file, line}); };
    CHECK_THAT(e.what(), Catch::Matchers::ContainsSubstring(
                             "cond: result 0 is f32[8] in the true branch (" + at(first) +
                             ") but f32[] in the false branch (" + at(second) + ")"));
    CHECK(e.at().line == line);
  }
}

TEST_CASE("branches of switch_ that give different dtypes are refused") {
  refused(
      [](Ref x, Ref o) {
        const Value index = i32(x[0]);
        const auto f = [] { return carry(i32(1), i32(2)); };
        const auto g = [] { return carry(i32(3), 4); };
        const auto h = [] { return carry(i32(5), f32(6)); };
        line = __LINE__ + 1;
        const Value v = switch_(index, f, g, h)[1];
        o[_] = v.astype(f32) + zeros({8});
      },
      "switch_: result 1 is i32[] in branch 0");
  refused(
      [](Ref x, Ref o) {
        const auto f = [] { return true; };
        const auto g = [] { return 2; };
        line = __LINE__ + 1;
        o[0] = cond(x[0] > 0, f, g);
      },
      "cond: result 0 is bool[] in the true branch but i32[] in the false branch");
  refused(
      [](Ref x, Ref o) {
        const auto f = [] { return u8(1); };
        const auto g = [] { return 300; };
        line = __LINE__ + 1;
        o[0] = cond(x[0] > 0, f, g).astype(f32);
      },
      "cond: the literal 300 is no u8, which holds 0 to 255");
}

TEST_CASE("a predicate that is no scalar, and an index that is no integer, are refused") {
  refused(
      [](Ref x, Ref o) {
        const auto copies = [&] { o[_] = x[_]; };
        line = __LINE__ + 1;
        cond(x[_] > 0, copies, [] {});
      },
      "cond: the predicate must be a scalar, given bool[8]");
  refused(
      [](Ref x, Ref o) {
        const auto copies = [&] { o[_] = x[_]; };
        line = __LINE__ + 1;
        switch_(x[0], copies, [] {});
      },
      "switch_: the index must be an integer scalar, given f32[]");
  refused(
      [](Ref x, Ref o) {
        const auto copies = [&] { o[_] = x[_]; };
        line = __LINE__ + 1;
        switch_(1.5, copies, [] {});
      },
      "switch_: the index must be an integer, given f32");
  refused(
      [](Ref x, Ref o) {
        const std::vector<std::function<void()>> none;
        line = __LINE__ + 1;
        switch_(i32(x[0]), none);
        o[_] = x[_];
      },
      "switch_: expected at least one branch, given none");
  refused(
      [](Ref x, Ref o) {
        Value empty;
        const auto f = [&] { return x[0] + 0; };
        const auto g = [] { return 1; };
        line = __LINE__ + 1;
        o[0] = cond(empty, f, g);
      },
      "cond uses a pl::Value that was given no value");
}

TEST_CASE("a condition of while_loop that is no scalar, and carries that change, are refused") {
  refused(
      [](Ref x, Ref o) {
        const Value v = x[_];
        line = __LINE__ + 1;
        o[_] = while_loop([](Value v) { return v < 9; }, [](Value v) { return v + 1; }, v);
      },
      "while_loop: the condition must be a scalar, given bool[8]");
  refused(
      [](Ref x, Ref o) {
        const auto below = [](Value a, Value) { return a < 9; };
        const auto next = [&](Value a, Value) { return carry(a + 1, x[_] + 0); };
        line = __LINE__ + 1;
        const auto [a, b] = while_loop(below, next, 0, f32(1));
        o[_] = b + a;
      },
      "while_loop: carry 1 starts as f32[] but the body returns f32[8]");
  refused(
      [](Ref x, Ref o) {
        line = __LINE__ + 1;
        o[0] = while_loop([](Value a) { return a < 9; }, [](Value a) { return a + 0.5f; }, i32(1));
        o[_] = x[_];
      },
      "the literal 0.5 is no i32");
}

TEST_CASE("a scan of less than no iterations is refused") {
  refused(
      [](Ref x, Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::scan([](Value v) { return v; }, x[_], {.length = -1});
      },
      "scan: the length must be in 0 to 2147483647, given -1");
  refused(
      [](Ref x, Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::scan([](Value v) { return v; }, x[_], {.length = 4, .unroll = -2});
      },
      "scan: unroll must not be negative, given -2");
}

TEST_CASE("loops go forward: steps of 0 and below are refused") {
  for (const int step : {0, -1, -3})
    refused(
        [=](Ref x, Ref o) {
          line = __LINE__ + 1;
          pl::loop(10, 0, {.step = step}, [&](Index i) { o[i] = x[i]; });
        },
        "loop: the step must be positive, given " + std::to_string(step));
}

TEST_CASE("a value of one branch is good in that branch alone") {
  refused(
      [](Ref x, Ref o) {
        Value kept;
        cond(
            x[0] > 0, [&] { kept = x[1] + 1; }, [&] { o[_] = x[_]; });
        line = __LINE__ + 1;
        o[0] = kept;
      },
      "inside a body that has ended");
  refused(
      [](Ref x, Ref o) {
        Value kept;
        const auto store = [&] {
          line = __LINE__ + 1;
          o[0] = kept;
        };
        cond(
            x[0] > 0, [&] { kept = x[1] + 1; }, store);
      },
      "inside a body that has ended");
}

TEST_CASE("two branches that write do not stand in one expression") {
  refused(
      [](Ref x, Ref o) {
        const auto store = [&](int k) {
          return [&o, k] {
            o[k] = 1.0f;
            return f32(k);
          };
        };
        const Value c = x[0];
        line = __LINE__ + 1;
        o[_] = zeros({8}) + cond(c, store(1), store(2)) * cond(c, store(3), store(4));
      },
      "C++ leaves their order to the compiler");
}

TEST_CASE("an exception in a branch leaves nothing behind") {
  const graph::Graph g = traced(
      [](Ref x, Ref o) {
        try {
          o[_] = cond(
              x[0] > 0, [&] { return x[_] * 2; }, [&]() -> Value { throw 1; });
        } catch (int) {
        }
        try {
          while_loop([](Value) -> Value { throw 2; }, [](Value v) { return v; }, i32(0));
        } catch (int) {
        }
        o[_] = x[_];
      },
      one_output(), {array({8})});
  CHECK(graph::to_text(g).find("switch") == std::string::npos);
  CHECK(graph::to_text(g).find("while") == std::string::npos);
}

TEST_CASE("scopes take Refs of memory that there is, by a function that takes them") {
  refused(
      [](Ref x, Ref o) {
        line = __LINE__ + 1;
        run_scoped([&](Ref, Ref) { o[_] = x[_]; }, {gpu::SMEM({8}, f32)});
      },
      "run_scoped: the function takes 2 operands but 1 is given: scratch[0]");
  refused(
      [](Ref x, Ref o) {
        line = __LINE__ + 1;
        run_scoped([&](Ref) { o[_] = x[_]; }, {gpu::GMEM({8}, f32)});
      },
      "run_scoped: scratch[0] must be in SMEM or REGS");
  refused(
      [](Ref x, Ref o) {
        line = __LINE__ + 1;
        run_scoped([&](Ref) { o[_] = x[_]; }, {{"acc", gpu::SMEM({8, 0}, f32)}});
      },
      "run_scoped: scratch 'acc' must have at least one element in each dimension, given f32[8,0]");
  refused(
      [](Ref x, Ref o) {
        Value kept;
        run_scoped([&](Ref tmp) { kept = tmp[_] + 0; }, {gpu::SMEM({8}, f32)});
        line = __LINE__ + 1;
        o[_] = kept + x[_];
      },
      "inside a body that has ended");
}

TEST_CASE("memory is not shared along axes of programs [E21]") {
  const PallasCallOptions options{.name = "k",
                                  .out_type = {{8}, f32},
                                  .grid = {{"i", 1}},
                                  .cluster = {1},
                                  .cluster_names = {"c"},
                                  .in_specs = {BlockSpec()},
                                  .out_specs = {BlockSpec()}};
  const auto along = [&](const char* axis, const std::string& sentence) {
    refused(
        [=](Ref x, Ref o) {
          const ScopedOptions shared{.collective_axes = {axis}};
          line = __LINE__ + 1;
          run_scoped([&](Ref) { o[_] = x[_]; }, {gpu::SMEM({8}, f32)}, shared);
        },
        options, {array({8})}, sentence);
  };
  along("c", "run_scoped: collective allocations along cluster axes are not supported, given 'c'");
  along("i", "run_scoped: programs that differ along the grid axis 'i' have no memory in common");
  const auto shared = [](const char* axis, const Scoped& memory) {
    return [=] {
      (void)gpu::kernel(
          [=](Ref o) {
            run_scoped([&](Ref t) { o[_] = t[_]; }, {memory}, {.collective_axes = {axis}});
          },
          {.out_type = {{8}, f32}, .num_threads = 2, .thread_name = "wg"})
          .lower();
    };
  };
  CHECK_THROWS_WITH(
      shared("wg", gpu::REGS({8}, f32))(),
      Catch::Matchers::ContainsSubstring("run_scoped: scratch[0] is in registers, which are a "
                                         "thread's own; with collective_axes it must be in SMEM"));
  along("j", "run_scoped: no axis is named 'j'; there are: 'i', 'c'");
}
