// NVRTC and ptxas on what array operations become, without spills.
#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

using Operation = std::function<Value(Value)>;

// One input of 4 rows by 250, an output for each operation.
graph::Graph of_rows(DType t, const std::vector<std::pair<ShapeDtype, Operation>>& operations) {
  std::vector<ShapeDtype> types;
  for (const auto& [type, operation] : operations) types.push_back(type);
  return traced(
      [&](Refs r) {
        for (std::size_t i = 0; i < operations.size(); ++i)
          r[static_cast<int>(1 + i)][_] = operations[i].second(r[0][_]);
      },
      {.name = "arrays", .out_type = OutType(types)}, {array({4, 250}, t)});
}

void check(const graph::Graph& g) { CHECK(compile_problem(g) == ""); }

}  // namespace

TEST_CASE("elementwise functions compile for every float dtype") {
  for (const DType t : {f16, bf16, f32, f64}) {
    const ShapeDtype same{{4, 250}, t};
    check(of_rows(t, {{same, [](Value x) { return asin(x) + acos(x) + atan(x); }},
                      {same, [](Value x) { return sinh(x) + cosh(x); }},
                      {same, [](Value x) { return asinh(x) + acosh(x) + atanh(x); }},
                      {same, [](Value x) { return cbrt(x) + trunc(x); }},
                      {same, [](Value x) { return nextafter(x, 1) + copysign(x, -x); }},
                      {same, [](Value x) { return gelu(x) + silu(x) + relu(x); }},
                      {same, [](Value x) { return floor_divide(x, 3) + remainder(x, 7); }}}));
  }
}

TEST_CASE("index arrays and atomic updates compile, in global and in shared memory") {
  const auto kernel = [](DType t, auto update) {
    return traced(
        [=](Ref x, Ref at, Ref, Ref y, Ref o, Ref own) {
          const Value where = at[_], inside = where >= 0;
          own[_] = zeros({64}, t);
          update(own.at({where}), Value(x[_]), inside);
          update(y.at({2, where}), Value(own.at({where})[_]), inside);
          const Value old = atomic_add(y.at({1, where}), x[_], {.mask = inside});
          o[_] = old + pl::load(x.at({ds(program_id(0) * 7, 250)}),
                                {.mask = iota(i32, {250}) < 9, .other = 1});
        },
        {.name = "update",
         .out_type = OutType{{{3, 64}, t}, {{250}, t}},
         .grid = {1},
         .in_specs = {BlockSpec(), BlockSpec(), BlockSpec()},
         .out_specs = {BlockSpec(), BlockSpec()},
         .scratch_types = {gpu::SMEM({64}, t)},
         .input_output_aliases = {{2, 0}}},
        {array({250}, t), array({250}, i32), array({3, 64}, t)});
  };
  for (const DType t : {i32, u32, i64, u64, f16, bf16, f32, f64})
    check(kernel(t, [](Ref to, Value v, Value m) { atomic_add(to, v, {.mask = m}); }));
  for (const DType t : {bf16, f64})
    check(kernel(t, [](Ref to, Value v, Value m) {
      atomic_max(to, v, {.mask = m});
      atomic_min(to, v, {.mask = m});
      atomic_xchg(to, v, {.mask = m});
    }));
  for (const DType t : {i32, u32, i64, u64, u8, i16})
    check(kernel(t, [](Ref to, Value v, Value m) {
      atomic_max(to, v, {.mask = m});
      atomic_min(to, v, {.mask = m});
      atomic_and(to, v, {.mask = m});
      atomic_or(to, v, {.mask = m});
      atomic_xor(to, v, {.mask = m});
      atomic_xchg(to, v, {.mask = m});
      atomic_cas(to, v, v + 1, {.mask = m});
    }));
}

TEST_CASE("integer functions compile for every integer dtype") {
  for (const DType t : {i8, i16, i32, i64, u8, u16, u32, u64}) {
    const ShapeDtype same{{4, 250}, t};
    check(of_rows(t, {{same, [](Value x) { return clz(x) + shift_right_logical(x, 2); }},
                      {same, [](Value x) { return floor_divide(x, 3) + remainder(x, 7); }},
                      {same, [](Value x) { return clip(integer_pow(x, 3), 1, 9); }}}));
  }
}

TEST_CASE("folds and scans compile") {
  for (const DType t : {i32, f16, f32, f64}) {
    const ShapeDtype same{{4, 250}, t}, rows{{4}, t}, truths{{4}, bool_}, places{{4}, i32};
    check(of_rows(t, {{rows, [](Value x) { return prod(x, {.axis = 1}); }},
                      {truths, [](Value x) { return any(x, {.axis = 1}); }},
                      {truths, [](Value x) { return all(x, {.axis = 1}); }},
                      {places, [](Value x) { return argmax(x, {.axis = 1}); }},
                      {places, [](Value x) { return argmin(x, {.axis = 1}); }}}));
    check(of_rows(t, {{same, [](Value x) { return cumprod(x, {.axis = 1}); }},
                      {same, [](Value x) { return cummax(x, {.axis = 0}); }},
                      {same, [](Value x) { return cummin(x, {.axis = 1, .reverse = true}); }}}));
  }
}

TEST_CASE("elements elsewhere compile, of memory and of registers") {
  for (const DType t : {bool_, i8, f16, f32, u64})
    for (const bool in_registers : {false, true}) {
      const auto of = [=](Value x) {
        return in_registers && !t.is_bool() ? cummax(x, {.axis = 1}) : x;
      };
      check(of_rows(t, {{{{4, 128}, t},
                         [=](Value x) {
                           return of(x)[{_, ds(100, 128)}];
                         }},
                        {{{4, 250}, t}, [=](Value x) { return flip(of(x), 1); }},
                        {{{4, 500}, t}, [=](Value x) {
                           return concatenate({of(x), x}, 1);
                         }}}));
      check(
          of_rows(t, {{{{6, 253}, t},
                       [=](Value x) {
                         return pad(of(x), {{1, 1}, {0, 3}});
                       }},
                      {{{4, 250}, t}, [=](Value x) { return roll(of(x), 7, 1); }},
                      {{{4, 80}, t}, [=](Value x) { return take(of(x), iota(i32, {80}) * 3, 1); }},
                      {{{4, 250}, t}, [=](Value x) {
                         return dynamic_update_slice(of(x), x[{ds(0, 2), ds(0, 9)}],
                                                     {x[{0, 0}].astype(i32), 5});
                       }}}));
    }
}

TEST_CASE("floats of 8 bits, gathers, scatters and products by letters compile") {
  for (const DType t : {f8e4m3, f8e5m2}) {
    const ShapeDtype same{{4, 250}, t};
    check(of_rows(t, {{same, [](Value x) { return x * x + gelu(x); }},
                      {same, [](Value x) { return maximum(x, -x).astype(i32).astype(x.dtype()); }},
                      {{{4, 4}, f32}, [](Value x) { return einsum("ik,jk->ij", x, x); }}}));
  }
  check(of_rows(f16, {{{{7}, f16},
                       [](Value x) {
                         return gather(x, {iota(i32, {7}) % 4, iota(i32, {7}) * 9});
                       }},
                      {{{4, 250}, f16},
                       [](Value x) {
                         return scatter(x, {iota(i32, {250}) % 3}, x[0],
                                        {.axes = 1, .mode = ScatterMode::max});
                       }},
                      {{{4, 748}, f16}, [](Value x) {
                         return pad(x, {{0, 0}, {-1, 1, 2}});
                       }}}));
}

TEST_CASE("sorting compiles") {
  for (const DType t : {i8, f16, f32, i64})
    check(of_rows(t, {{{{4, 250}, t}, [](Value x) { return sort(x); }},
                      {{{4, 250}, i32}, [](Value x) { return argsort(x, {.axis = 0}); }}}));
}
