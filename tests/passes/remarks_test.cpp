// What is said of loops with products, with its line, and that what it says to write helps.
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/base/format.hpp"
#include "palladium/gpu.hpp"
#include "tests/passes/lowering.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t steps = 8;

lowered::Program lowered_for(const graph::Graph& g) {
  return cuda::lower(g, {.compute_capability = 90});
}

std::string remarks(const graph::Graph& g) {
  std::string all;
  for (const Remark& r : lowered_for(g).remarks)
    if (r.at.line > 0 && r.text.find(" at a time, not 16") == std::string::npos)
      all += fmt::format("{}: {}\n", r.at.line, r.text);
  return all;
}

// Of arrays, each one block, and one with what the kernel computes.
graph::Graph kernel(const Body& body, const std::vector<trace::ArgumentType>& arrays,
                    const Shape& out, const ScratchTypes& scratch = {}, int num_stages = 0) {
  return traced(body,
                {.name = "k",
                 .out_type = {out, f32},
                 .scratch_shapes = scratch,
                 .compiler_params = {.num_warps = 4, .num_stages = num_stages}},
                arrays);
}

}  // namespace

TEST_CASE("what is read where it is used is said with its line, unless it is there by then") {
  const int line = __LINE__ + 7;  // of the scale
  // The first columns of a row of a multiple of 4 bytes, which TMA does not take.
  const auto scaled = [](std::int64_t columns, bool in_scratch) {
    const auto body = [=](Ref a, Ref b, Ref scale, Ref o, Ref s) {
      if (in_scratch) s[_] = scale[{_, ds(0, columns)}];
      const auto step = [&](const Value& i, const Value& sum) {
        const Value product = dot(a[{_, ds(i * 64, 64)}], b[{ds(i * 64, 64), _}]);
        return sum + product * (in_scratch ? s : scale)[{ds(i * 64, 64), ds(0, columns)}];
      };
      o[_] = loop(0, steps, step, zeros({64, 64}, f32));
    };
    return kernel(body, {array({64, 512}, f16), array({512, 64}, f16), array({64 * steps, 65})},
                  {64, 64}, {plgpu::SMEM({64 * steps, columns}, f32)});
  };
  CHECK_THAT(
      remarks(scaled(64, false)),
      ContainsSubstring(fmt::format(
          "{}: args[2]: read of global memory where the iteration needs it: 16,384 bytes are "
          "awaited in each iteration, some 1,000 clocks in which nothing is multiplied",
          line)));
  CHECK_THAT(remarks(scaled(64, true)), !ContainsSubstring("read of global memory"));
  CHECK_THAT(remarks(scaled(1, false)), !ContainsSubstring("read of global memory"));
}

TEST_CASE("a product that is multiplied by one number of its row after another is told of") {
  enum class Way { twice, once, by_elements, used_between, before };
  const auto scaled = [](Way way, bool approx_math = false, DType from = f16, DType to = f32) {
    const auto body = [=](Ref a, Ref b, Ref rows, Ref column, Ref o) {
      const auto part = [&](const Value& i) {
        return dot(a[{_, ds(i * 64, 64)}], b[{ds(i * 64, 64), _}], {.preferred_element_type = to});
      };
      Value first;
      if (way == Way::before) first = part(0) * rows[{_, ds(0, 1)}];
      const auto step = [&](const Value& i, const Value& sum) {
        if (way == Way::before) return sum + first * column[{0, i}];
        const Value product = part(i);
        const Value of_rows = rows[{_, ds(i, 1)}], of_all = column[{0, i}];
        switch (way) {
        case Way::twice: return sum + product * of_rows * of_all;
        case Way::once: return sum + product * (of_rows * of_all);
        case Way::by_elements: return sum + product * of_rows * column[{0, ds(0, 64)}];
        case Way::used_between:
        case Way::before: break;
        }
        const Value half = product * of_rows;
        return sum + half * of_all + half;
      };
      o[_] = loop(0, steps, step, zeros({64, 64}, to));
    };
    graph::Graph g = traced(body,
                            {.name = "k",
                             .out_type = {{64, 64}, to},
                             .compiler_params = {.num_warps = 4, .approx_math = approx_math}},
                            {array({64, 512}, from), array({512, 64}, from), array({64, steps}, to),
                             array({1, 64 * steps}, to)});
    return remarks(g);
  };
  const auto told = ContainsSubstring("x * (a * b) multiplies it once");
  CHECK_THAT(scaled(Way::twice), told);
  CHECK_THAT(scaled(Way::twice, true), !told);
  CHECK_THAT(scaled(Way::once), !told);
  CHECK_THAT(scaled(Way::by_elements), !told);  // both together are as many numbers as elements
  CHECK_THAT(scaled(Way::used_between), !told);
  CHECK_THAT(scaled(Way::before), !told);                 // once by what is computed in the loop
  CHECK_THAT(scaled(Way::twice, false, i8, i32), !told);  // approximate maths leaves integers alone
}

TEST_CASE(
    "an operand that is converted or computed is said to be awaited, one of a product is not") {
  // Rows of 68 elements begin where TMA cannot.
  const auto operand = [](const auto& made, DType t, std::int64_t columns) {
    const auto body = [=](Ref a, Ref b, Ref o) {
      const auto step = [&](const Value& i, const Value& sum) {
        return sum + dot(a[_], made(b[{ds(i * 64, 64), ds(0, 64)}]));
      };
      o[_] = loop(0, steps, step, zeros({64, 64}, f32));
    };
    return remarks(kernel(body, {array({64, 64}, f16), array({512, columns}, t)}, {64, 64}));
  };
  const auto same = [](const Value& v) { return v; };
  const auto widened = [](const Value& v) { return v.astype(f16); };
  CHECK(operand(same, f16, 64) == "");
  CHECK(operand(widened, i8, 64) == "");
  CHECK_THAT(operand(widened, i8, 68),
             ContainsSubstring("args[1]: converted from i8 to f16 by threads into the one buffer"));
  CHECK_THAT(operand(widened, i8, 68), ContainsSubstring("; an array of f16 is copied ahead"));
  CHECK_THAT(operand([](const Value& v) { return tanh(v); }, f16, 68),
             ContainsSubstring("args[1]: read, and what is computed of it stored by threads"));
}

TEST_CASE("few rows are said to be no rows of wgmma, which multiplies them as columns") {
  const auto rows = [](bool turned) {
    const auto body = [=](Ref a, Ref b, Ref o) {
      const auto step = [&](const Value& i, const Value& sum) {
        const Slice now = ds(i * 64, 64);
        if (turned) return sum + dot(b[{now, _}], a[{_, now}], {.trans_a = true, .trans_b = true});
        return sum + dot(a[{_, now}], b[{now, _}]);
      };
      const Shape shape = turned ? Shape{64, 16} : Shape{16, 64};
      o[_] = loop(0, steps, step, zeros(shape, f32));
    };
    return kernel(body, {array({16, 512}, f16), array({512, 64}, f16)},
                  turned ? Shape{64, 16} : Shape{16, 64});
  };
  CHECK_THAT(remarks(rows(false)),
             ContainsSubstring("by mma.sync, not by wgmma, which takes 64 rows at once, and it has "
                               "16; turned, as dot(B^T, A^T) of 64 rows, it is by wgmma"));
  CHECK(remarks(rows(true)) == "");
  CHECK_THAT(lowered::to_text(lowered_for(rows(true))), ContainsSubstring("by wgmma"));
}

TEST_CASE("products of f32 are said to take no tensor core, of tf32 they take one") {
  const auto by = [](Precision precision) {
    const auto body = [=](Ref a, Ref b, Ref o) {
      const auto step = [&](const Value& i, const Value& sum) {
        return sum + dot(a[{_, ds(i * 64, 64)}], b[{_, ds(i * 64, 64)}],
                         {.trans_b = true, .precision = precision});
      };
      o[_] = loop(0, steps, step, zeros({64, 64}, f32));
    };
    return remarks(kernel(body, {array({64, 512}), array({64, 512})}, {64, 64}));
  };
  CHECK_THAT(by(Precision::ieee), ContainsSubstring("multiplied in f32 by no tensor core"));
  CHECK(by(Precision::tf32) == "");
}

TEST_CASE("who says that nothing is to be copied ahead hears nothing of it") {
  const auto body = [](Ref a, Ref b, Ref o) {
    const auto step = [&](const Value& i, const Value& sum) {
      return sum + dot(a[_], b[{ds(i * 64, 64), _}].astype(f16));
    };
    o[_] = loop(0, steps, step, zeros({64, 64}, f32));
  };
  CHECK(remarks(kernel(body, {array({64, 64}, f16), array({512, 64}, i8)}, {64, 64}, {}, 1)) == "");
}

TEST_CASE("what is said alike of several lines is said once, with all of them") {
  const int line = __LINE__ + 4;  // of the first product
  const auto body = [](Ref a, Ref b, Ref c, Ref o) {
    loop(0, steps, [&](Value i) {
      when(c[{i, 0}] > 0, [&] {
        o[_] = o[_] + dot(a[_], b[{ds(i * 64, 64), _}]);
        o[_] = o[_] + dot(a[_], b[{ds(i * 64 + 512, 64), _}]);
      });
    });
  };
  CHECK_THAT(
      remarks(kernel(body, {array({64, 64}, f16), array({1024, 64}, f16), array({8, 1}, i32)},
                     {64, 64})),
      ContainsSubstring(fmt::format("not pipelined: it is copied under a condition (lines {}, {})",
                                    line, line + 1)));
}
