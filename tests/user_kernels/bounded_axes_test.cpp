// Sums along axes of which an array says how long they are.
#include "tests/support/targets.hpp"

#include "codegen/base/format.hpp"
#include "palladium/gpu.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

// 64 x 64 sums of `steps` products of 32, of ones, of at most 8.
Kernel sums(const std::function<Value(const Value& k, const Value& n)>& last) {
  const auto body = [=](Ref, Ref a, Ref b, Ref, Ref o, Ref s) {
    const Value k = program_id(1);
    when(k == 0, [&] { s[_] = zeros({64, 64}, f32); });
    s[_] += dot(a[_], b[_]);
    when(last(k, num_programs(1)), [&] { o[_] = s[_]; });
  };
  const BlockSpec a{{64, 32},
                    [](Index, Index k, Ref) {
                      return Indices{0, k};
                    }},
      b{{32, 64},
        [](Index, Index k, Ref) {
          return Indices{k, 0};
        }},
      o{{64, 64}, [](Index i, Index, Ref) {
          return Indices{i, 0};
        }};
  return pallas_call(body, {.name = "sums",
                            .out_type = {{128, 64}, f32},
                            .num_scalar_prefetch = 1,
                            .grid = {2, at_most(argument(0), 8)},
                            .in_specs = {a, b, o},
                            .out_specs = {o},
                            .scratch_types = {gpu::REGS({64, 64}, f32)},
                            .input_output_aliases = {{3, 0}},
                            .compiler_params = {.dimension_semantics = {parallel, sequential}}});
}

float result(const Kernel& k, Target target, int steps) {
  const auto ones = [](const Shape& shape) {
    return make_array<float16_t>(shape, [](std::int64_t) { return 1.0f; });
  };
  const Array n = make_array<std::int32_t>({1}, [&](std::int64_t) { return steps; }),
              c = make_array<float>({128, 64}, [](std::int64_t) { return 7.0f; });
  const auto y = k.on(target)(on(target, n), on(target, ones({64, 256})),
                              on(target, ones({256, 64})), on(target, c));
  return on_cpu(y).values<float>()[4097];
}

}  // namespace

TEST_CASE("the last iteration of an axis that an array bounds is the last one of those") {
  for_each_target("by its count", [](Target target) {
    const Kernel k = sums([](const Value& i, const Value& n) { return i == n - 1; });
    for (const int steps : {8, 3, 1, 0}) {
      CAPTURE(steps);
      CHECK(result(k, target, steps) == (steps == 0 ? 7.0f : 32.0f * static_cast<float>(steps)));
    }
  });
  for_each_target("by a number", [](Target target) {
    const Kernel k = sums([](const Value& i, const Value&) { return i == 7; });
    for (const int steps : {8, 3, 1, 0}) {
      CAPTURE(steps);
      CHECK(result(k, target, steps) == (steps == 8 ? 256.0f : 7.0f));
    }
  });
}
