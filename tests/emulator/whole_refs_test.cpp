// Refs of whole arrays whose extents only a call knows: what a body may do with them, what pins a
// size, and what is refused.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

Array counted(const Shape& shape) {
  return make_array<float>(shape, [](std::int64_t i) { return i % 97; });
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

/// Of a whole array what `body` makes of it, into as many elements.
template <class B>
Kernel of_whole(B body, std::int64_t results = 1) {
  return pallas_call(body, [=](ShapeDtype x) {
    return PallasCallOptions{.name = "of_whole", .out_type = {{results}, x.dtype}};
  });
}

/// Sums an array by slices of 16, the last one masked, over a bound that is a value.
template <class N>
Kernel sum_over(N n) {
  return of_whole([=](Ref x, Ref o) {
    const Value size = n(x);
    o[0] = pl::sum(loop(
        0, (size + 15) / 16,
        [&](Index i, Value s) {
          const Value inside = iota(i32, {16}, 0) + i * 16 < size;
          return carry(s + load(x.at({ds(i * 16, 16)}), {.mask = inside, .other = 0}));
        },
        zeros({16}, f32)));
  });
}

float sum_of(const Array& x) {
  float sum = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) sum += x.data<float>()[i];
  return sum;
}

std::string key(const Kernel& k, const Array& x) { return k.lower(x).key(); }

}  // namespace

TEST_CASE("a body computes with the extents of a Ref and with those of the call's types") {
  for_each_target("of_whole", [](Target target) {
    const Kernel by_shape = sum_over([](Ref x) { return Value(x.shape()[0]); });
    for (const std::int64_t n : {0, 1, 15, 16, 100, 333}) {
      const Array x = counted({n});
      CHECK(on_cpu(by_shape.on(target)(on(target, x))).data<float>()[0] == sum_of(x));
    }
    CHECK(key(by_shape, counted({15})) == key(by_shape, counted({100})));
  });
}

TEST_CASE("dim_as_value is the size of a symbol, and of an expression of symbols") {
  for_each_target("halves", [](Target target) {
    const Kernel k = pallas_call(
        [](Ref x, Ref o) { o[_] = x[_]; },
        [](ShapeDtype x) {
          const Dim n = x.shape[0];
          return PallasCallOptions{
              .name = "rotated",
              .out_type = x,
              .grid = {cdiv(n, 8)},
              .in_specs = {{{8}, [n](Index i) { return (i + 1) % dim_as_value(cdiv(n, 8)); }}},
              .out_specs = {{{8}, [](Index i) { return i; }}}};
        });
    for (const std::int64_t n : {8, 16, 72}) {
      const Array x = counted({n}), o = on_cpu(k.on(target)(on(target, x)));
      for (std::int64_t i = 0; i < n; ++i)
        CHECK(o.data<float>()[i] == x.data<float>()[(i + 8) % n]);
    }
    CHECK(key(k, counted({16})) == key(k, counted({72})));
  });
}

TEST_CASE("a kernel that is lowered for a symbol asks for its size by name") {
  const Kernel k = pallas_call(
      [](Ref x, Ref o) {
        o[0] = loop(
            0, dim_as_value("k"), [&](Index i, Value s) { return carry(s + x[i]); }, f32(0));
      },
      {.name = "sum", .out_type = {{1}, f32}});
  const std::string graph = k.lower(ShapeDtype{{dim("k")}, f32}).graph();
  CHECK_THAT(graph, ContainsSubstring("args[0]: f32[s0] in blocks [whole]") &&
                        ContainsSubstring("dim_value [0]") && ContainsSubstring("ref gmem f32[?]"));
  CHECK_THAT(k.lower(ShapeDtype{{dim("k")}, f32}).cuda_source(), ContainsSubstring("i32(s0)"));
  CHECK_THAT(error_of([&] {
               k.lower(ShapeDtype{{dim("n")}, f32});
             }),
             ContainsSubstring("dim_as_value: 'k' is in the extent of no array"));
}

TEST_CASE("sizes take the dtype of what they meet, as literals do") {
  for_each_target("mean", [](Target target) {
    const Kernel k = of_whole([](Ref x, Ref o) {
      const Value sum = loop(
          0, x.shape()[0], [&](Index i, Value s) { return carry(s + x[i]); }, f32(0));
      o[0] = sum / x.shape()[0] + x.shape()[0] * 2;
    });
    const Array x = counted({64});
    CHECK(on_cpu(k.on(target)(on(target, x))).data<float>()[0] == sum_of(x) / 64 + 128);
  });
}

TEST_CASE("views of whole Refs keep what a call knows: rows, transposed ones, and all of them") {
  for_each_target("views", [](Target target) {
    const Kernel k = pallas_call(
        [](Ref x, Ref o) {
          const Ref last = x.at({x.shape()[0] - 1}).transpose({1, 0});
          o[0] = loop(
              0, last.shape()[1],
              [&](Index j, Value s) {
                return carry(s + last[{1, j}]);
              },
              f32(0));
        },
        [](ShapeDtype x) {
          return PallasCallOptions{.name = "views", .out_type = {{1}, x.dtype}};
        });
    for (const std::int64_t n : {1, 3, 10}) {
      const Array x = counted({n, n + 2, 4});
      float sum = 0;
      for (std::int64_t j = 0; j < n + 2; ++j)
        sum += x.data<float>()[((n - 1) * (n + 2) + j) * 4 + 1];
      CHECK(on_cpu(k.on(target)(on(target, x))).data<float>()[0] == sum);
    }
    CHECK(key(k, counted({3, 5, 4})) == key(k, counted({11, 13, 4})));
  });
}

TEST_CASE("what needs a size pins it: loads of a whole Ref, host numbers, unrolled loops") {
  const auto pins = [](const Kernel& k) { return key(k, counted({8})) != key(k, counted({16})); };
  CHECK(pins(of_whole([](Ref x, Ref o) { o[0] = pl::sum(x[_]); })));
  CHECK(pins(of_whole([](Ref x, Ref o) {
    const std::int64_t n = x.shape()[0];
    o[0] = x[n - 1];
  })));
  CHECK(pins(of_whole([](Ref x, Ref o) {
    const Value sum = loop(
        0, x.shape()[0], {.unroll = 0}, [&](Index i, Value s) { return carry(s + x[i]); }, f32(0));
    o[0] = sum;
  })));
  CHECK_FALSE(pins(of_whole([](Ref x, Ref o) { o[0] = x[x.shape()[0] - 1]; })));
}

TEST_CASE("an output of known size pins the whole argument that it shares memory with") {
  const auto body = [](Ref x, Ref o) {
    const std::int64_t n = x.shape()[0].value();
    o[_] = x[_] + iota(f32, {n}, 0) + o.reshape({-1})[n - 1];
  };
  const Kernel k = pallas_call(body, [](ShapeDtype) {
    return PallasCallOptions{
        .name = "shared", .out_type = {{5}, f32}, .input_output_aliases = {{0, 0}}};
  });
  for_each_target("shared", [&](Target target) {
    const Array made = on_cpu(k.on(target)(on(target, counted({5}))));
    CHECK(std::vector(made.data<float>(), made.data<float>() + made.size()) ==
          std::vector<float>{4, 6, 8, 10, 12});
  });
}

TEST_CASE("what is seen in other bits of a whole Ref has its size, or as many times as many") {
  const auto one = [](Ref x, Ref o) { o[0] = x.bitcast(i32)[x.shape()[0] - 1].bitcast(f32); };
  CHECK(key(of_whole(one), counted({8})) == key(of_whole(one), counted({16})));
  const Kernel kernels[] = {
      of_whole(one), of_whole([](Ref x, Ref o) { o[0] = pl::max(x.bitcast(i32)[_]).bitcast(f32); }),
      of_whole([](Ref x, Ref o) { o[0] = pl::max(x.bitcast(i16)[_]).astype(f32) / 128 - 127; })};
  for (const Kernel& k : kernels)
    for_each_target("bits", [&](Target target) {
      for (const std::int64_t n : {2, 5, 64}) {
        const Array x = counted({n});
        const float last = x.data<float>()[n - 1],
                    found = on_cpu(k.on(target)(on(target, x))).data<float>()[0];
        // Of the upper bits of a float its exponent, and a fraction below 1.
        CHECK(
            (&k == &kernels[2] ? std::floor(found) == std::floor(std::log2(last)) : found == last));
      }
    });
  CHECK_THAT(error_of([] {
               pallas_call([](Ref x, Ref o) { o[0] = pl::sum(x.bitcast(i16)[{ds(0, 2)}]); },
                           {.name = "refused", .out_type = {{1}, i16}})
                   .lower(ShapeDtype{{dim("m")}, f32});
             }),
             ContainsSubstring("bitcast: dimension 0 of args[0], ref block f32[?], has 'm'"));
}

TEST_CASE("a kernel that pins a size is the one of the array of that size") {
  const auto body = [](Ref x, Ref o) {
    const Value first = x[{ds(0, 4)}];
    o[0] = pl::sum(x[_]) + pl::sum(first);
  };
  const std::string bound = of_whole(body).lower(counted({8})).graph();
  const Kernel fixed = pallas_call(body, {.name = "of_whole", .out_type = {{1}, f32}});
  CHECK(bound == fixed.lower(counted({8})).graph());
  // What selects all of it, and what is outside, as if the size had been known.
  CHECK(of_whole(body).lower(counted({4})).graph() == fixed.lower(counted({4})).graph());
  CHECK_THAT(error_of([&] { of_whole(body).lower(counted({3})); }),
             ContainsSubstring("size 4 is out of bounds for dimension 0"));
  CHECK_THAT(error_of([&] {
               of_whole([](Ref x, Ref o) { o[0] = x[5] + pl::sum(x[_]); }).lower(counted({3}));
             }),
             ContainsSubstring("index 5 is out of bounds for dimension 0"));
  CHECK_THAT(
      error_of([&] { of_whole([](Ref x, Ref o) { o[0] = pl::sum(x[_]); }).lower(counted({0})); }),
      ContainsSubstring("must have at least one element"));
}

TEST_CASE("where no call gives a size what needs one is refused, with what to write") {
  const ShapeDtype type{{dim("m"), 8}, f32};
  const auto lower = [&](auto body) {
    return error_of([&] {
      pallas_call(body, {.name = "refused", .out_type = {{1}, f32}}).lower(type);
    });
  };
  CHECK_THAT(
      lower([](Ref x, Ref o) { o[0] = pl::sum(x[_]); }),
      ContainsSubstring("load: dimension 0 of args[0], ref block f32[?,8], has 'm' elements") &&
          ContainsSubstring("pl::ds(start, 64)") && ContainsSubstring("whole_refs_test.cpp"));
  CHECK_THAT(lower([](Ref x, Ref o) { o[0] = x.reshape({-1})[0]; }),
             ContainsSubstring("reshape: dimension 0"));
  CHECK_THAT(lower([](Ref x, Ref o) {
               const Value first = x[{0, 0}];
               o[0] = x.shape()[0] > 1 ? first : first * 2;
             }),
             ContainsSubstring("dimension 'm' is symbolic"));
  CHECK_THAT(error_of([&] {
               pallas_call([](Ref, Ref o) { o[0] = 1; },
                           {.name = "staged",
                            .out_type = {{1}, f32},
                            .in_specs = {BlockSpec({.memory_space = gpu::SMEM})}})
                   .lower(type);
             }),
             ContainsSubstring("is copied to SMEM as a whole") &&
                 ContainsSubstring("a static extent, given 'm'"));
}

TEST_CASE("an index outside of a whole Ref is an error where the sizes of a call say so") {
  const Kernel k = of_whole([](Ref x, Ref o) {
    when(x.shape()[0] > 5, [&] { o[0] = x[5]; });
    when(x.shape()[0] <= 5, [&] { o[0] = x[x.shape()[0]]; });
  });
  const Array x = counted({6});
  CHECK(on_cpu(k.on(Target::interpreter)(x)).data<float>()[0] == 5);
  CHECK_THAT(error_of([&] { k.on(Target::interpreter)(counted({5})); }),
             ContainsSubstring("out of bounds"));
}

TEST_CASE("captured Refs and memory of the launch have extents of a call") {
  for_each_target("captured", [](Target target) {
    std::vector<std::string> keys;
    for (const std::int64_t n : {4, 7}) {
      const Array table = on(target, counted({n, 8}));
      const ArrayRef ref = new_ref(table);
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref o) {
            const Ref rows = ref.ref();
            const Ref sums = get_global(gpu::GMEM({x.shape()[0]}, f32));
            loop(0, x.shape()[0], [&](Index i) {
              sums[i] = x[i] + rows[{rows.shape()[0] - 1, 3}];
            });
            loop(0, x.shape()[0], [&](Index i) { o[i] = sums[i] * 2.0f; });
          },
          [](ShapeDtype x) { return gpu::KernelOptions{.name = "captured", .out_type = x}; });
      const Array x = counted({n + 1}), o = on_cpu(k.on(target)(on(target, x)));
      const float last = on_cpu(table).data<float>()[(n - 1) * 8 + 3];
      for (std::int64_t i = 0; i <= n; ++i)
        CHECK(o.data<float>()[i] == 2 * (x.data<float>()[i] + last));
      keys.push_back(k.lower(x).key());
    }
    CHECK(keys[0] == keys[1]);
  });
}

TEST_CASE("a batch of kernels with index operands is one kernel for every size of both") {
  for_each_target("gathers", [](Target target) {
    const Kernel gather =
        pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_]; },
                    [](ShapeDtype ids, ShapeDtype) {
                      return PallasCallOptions{.name = "gather",
                                               .out_type = {{ids.shape[0], 8}, f32},
                                               .num_scalar_prefetch = 1,
                                               .grid = {ids.shape[0]},
                                               .in_specs = {{{squeezed, 8},
                                                             [](Index i, Ref ids) {
                                                               return Indices{ids[i], 0};
                                                             }}},
                                               .out_specs = {{{squeezed, 8}, [](Index i, Ref) {
                                                                return Indices{i, 0};
                                                              }}}};
                    });
    std::vector<std::string> keys;
    for (const std::int64_t n : {2, 5}) {
      const Array ids = make_array<std::int32_t>({n, n + 1}, [&](std::int64_t i) { return i % 3; });
      const Array x = counted({n, 3, 8});
      const Kernel k = vmap(gather);
      const Array o = on_cpu(k.on(target)(on(target, ids), on(target, x)));
      for (std::int64_t e = 0; e < o.size(); ++e) {
        const std::int64_t batch = e / (8 * (n + 1)), row = e / 8;
        CHECK(o.data<float>()[e] ==
              x.data<float>()[(batch * 3 + ids.data<std::int32_t>()[row]) * 8 + e % 8]);
      }
      keys.push_back(k.lower(ids, x).key());
    }
    CHECK(keys[0] == keys[1]);
  });
}

TEST_CASE("a slice that leaves a whole Ref is told where the call says how long it is") {
  const Kernel k = pallas_call(
      [](Ref x, Ref o) {
        o[_] = x[{ds(program_id(0), 2), ds(0, 8)}];
      },
      [](ShapeDtype x) {
        return PallasCallOptions{.name = "leaves",
                                 .out_type = {{x.shape[0], 2, 8}, f32},
                                 .grid = {x.shape[0]},
                                 .out_specs = {{{squeezed, 2, 8}, [](Index i) {
                                                  return Indices{i, 0, 0};
                                                }}}};
      });
  for (const Target target : {Target::interpreter, Target::emulator}) {
    CHECK_THAT(error_of([&] {
                 k.on(target)(counted({4, 9}));
               }),
               ContainsSubstring("dimension 0 of ref") && ContainsSubstring("out of bounds"));
    CHECK_THAT(error_of([&] {
                 k.on(target)(counted({4, 7}));
               }),
               ContainsSubstring("out of bounds"));
  }
}

TEST_CASE(
    "programs store the rows that data chooses of an array of any size, one after the other") {
  constexpr std::int64_t in_block = 4, columns = 8, tokens = 12;
  const Kernel append = pallas_call(
      [=](Ref slots, Ref x, Ref, Ref cache) {
        store(cache.at({slots[_], _}), Value(x[_]));
      },
      [=](ShapeDtype slots, ShapeDtype, ShapeDtype cache) {
        const BlockSpec rows{{in_block, columns}, [](Index i) { return Indices{i, 0}; }};
        return PallasCallOptions{.name = "append",
                                 .out_type = cache,
                                 .grid = cdiv(slots.shape[0], in_block),
                                 .in_specs = {{{in_block}, [](Index i) { return i; }}, rows, {}},
                                 .out_specs = {{}},
                                 .input_output_aliases = {{2, 0}}};
      });
  for_each_target("append", [&](Target target) {
    for (const std::int64_t size : {16, 5000, 40000}) {
      CAPTURE(size);
      const auto slot = [&](std::int64_t i) { return (i * 7 + 3) % 13 * (size - 1) / 12; };
      const Array slots = make_array<std::int32_t>(
          {tokens}, [&](std::int64_t i) { return static_cast<std::int32_t>(slot(i)); });
      const Array x = counted({tokens, columns});
      const Array empty = make_array<float>({size, columns}, [](std::int64_t) { return -1; });
      const Array o =
          on_cpu(append.on(target)(on(target, slots), on(target, x), on(target, empty)));
      std::vector<float> expected(static_cast<std::size_t>(size * columns), -1);
      for (std::int64_t i = 0; i < tokens * columns; ++i)
        expected[static_cast<std::size_t>(slot(i / columns) * columns + i % columns)] =
            x.data<float>()[i];
      CHECK(std::equal(expected.begin(), expected.end(), o.data<float>()));
    }
  });
}
