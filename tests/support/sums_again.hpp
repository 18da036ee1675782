// Kernels that compute the same of one sum more than once, or add parts to sums that are alike.
#pragma once

#include "tests/support/kernels.hpp"
#include "tests/support/tracing.hpp"

namespace palladium::test {

/// Two products into one sum; the same is computed of it behind each, in loops of one iteration or
/// in none.
inline graph::Graph sum_that_goes_on(bool by_loops) {
  return traced(
      [=](Ref x, Ref y, Ref o, Ref held) {
        const Value a = x[_], b = y[_];
        held[_] = zeros({64, 64}, f32);
        for (int i = 0; i < 2; ++i) {
          const auto add = [&] {
            held[_] += dot(a, b, {.trans_b = i > 0});
            o.at({i})[_] = held[_] * 3;
          };
          if (by_loops)
            loop(0, 1, [&](Index) { add(); });
          else
            add();
        }
      },
      {.name = "goes_on",
       .out_type = {{2, 64, 64}, f32},
       .scratch_shapes = {gpu::REGS({64, 64}, f32)}},
      {array({64, 64}, f16), array({64, 64}, f16)});
}

/// A sum of bytes that is made in parts, of a K that one product has.
inline graph::Graph sum_of_one_step(int m, int n) {
  return traced(
      [=](Ref x, Ref y, Ref o) {
        o[_] = loop(
            0, 1, {}, [&](Value, Value sum) { return sum + dot(x[_], y[_], {.trans_b = true}); },
            zeros({m, n}, f32));
      },
      {.name = "one_step",
       .out_type = {{m, n}, f32},
       .compiler_params = {.num_warps = n > 128 ? 8 : 4}},
      {array({m, 128}, f8e4m3), array({n, 128}, f8e4m3)});
}

}  // namespace palladium::test
