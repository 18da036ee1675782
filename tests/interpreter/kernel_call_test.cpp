// Calling kernels: arguments, outputs, options as a function, specialisation.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "palladium/palladium.hpp"
#include "runtime/interpreter/interpreter.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using palladium::test::make_array;
using pl::_;

namespace {

/// `traces`, if given, counts how often the body is traced.
Kernel vector_add(int* traces = nullptr) {
  return pallas_call(
             [=](Ref x, Ref y, Ref o) {
               if (traces) ++*traces;
               o[_] = x[_] + y[_];
             },
             [](ShapeDtype x, ShapeDtype) {
               const BlockSpec piece{{256}, [](Index i) { return i; }};
               return PallasCallOptions{.name = "vector_add",
                                        .out_type = x,
                                        .grid = {cdiv(x.shape[0], 256)},
                                        .in_specs = {piece, piece},
                                        .out_specs = {piece}};
             })
      .on(Target::interpreter);
}

Array counting(std::int64_t n, float scale) {
  return make_array<float>({n}, [=](auto i) { return scale * static_cast<float>(i); });
}

}  // namespace

TEST_CASE("a vector add gives sums for lengths that blocks do not divide") {
  const Kernel add = vector_add();
  for (const std::int64_t n : {1, 8, 255, 256, 257, 1000, 5000}) {
    const Array z = add(counting(n, 1), counting(n, 2));
    REQUIRE(z.shape() == Shape{n});
    for (std::int64_t i = 0; i < n; ++i) REQUIRE(z.values<float>()[i] == 3 * static_cast<float>(i));
  }
}

TEST_CASE("an extent that is only passed on stays symbolic: one trace serves a class of lengths") {
  int traces = 0;
  const Kernel add = vector_add(&traces);
  for (const std::int64_t n : {5, 301, 1, 77}) add(counting(n, 1), counting(n, 1));
  CHECK(traces == 1);
  for (const std::int64_t n : {300, 4, 1000}) add(counting(n, 1), counting(n, 1));
  CHECK(traces == 2);
}

TEST_CASE("an extent that the options function reads becomes part of the specialisation") {
  int traces = 0;
  const Kernel twice =
      pallas_call(
          [&](Ref x, Ref o) {
            ++traces;
            o[_] = x[_] * 2.f;
          },
          [](ShapeDtype x) {
            const BlockSpec row{{1, x.shape[1]}, [](Index i) { return Indices{i, 0}; }};
            return PallasCallOptions{.name = "twice",
                                     .out_type = x,
                                     .grid = {x.shape[0]},
                                     .in_specs = {row},
                                     .out_specs = {row}};
          })
          .on(Target::interpreter);
  const auto run = [&](std::int64_t m, std::int64_t n) {
    const Array x = make_array<float>({m, n}, [](auto i) { return i; });
    const Array y = twice(x);
    for (std::int64_t i = 0; i < m * n; ++i) REQUIRE(y.data<float>()[i] == 2 * x.data<float>()[i]);
  };
  run(3, 10);
  run(5, 10);
  CHECK(traces == 1);
  run(5, 11);
  CHECK(traces == 2);
  run(2, 10);
  CHECK(traces == 2);
}

TEST_CASE("extents that are required or found to be equal stay symbolic") {
  int traces = 0;
  const auto kernel = [&](auto check) {
    return pallas_call(
               [&](Ref x, Ref y, Ref o) {
                 ++traces;
                 o[_] = x[_] + y[_];
               },
               [check](ShapeDtype x, ShapeDtype y) {
                 check(x, y);
                 const BlockSpec piece{{256}, [](Index i) { return i; }};
                 return PallasCallOptions{.out_type = y,
                                          .grid = {cdiv(x.shape[0], 256)},
                                          .in_specs = {piece, piece},
                                          .out_specs = {piece}};
               })
        .on(Target::interpreter);
  };
  const auto differ = [] { throw CompileError("they differ"); };
  const std::vector<Kernel> kernels = {
      kernel([](ShapeDtype x, ShapeDtype y) { require_equal(x, y); }),
      kernel([](ShapeDtype x, ShapeDtype y) { require_equal(x.shape[0], y.shape[0]); }),
      kernel([=](ShapeDtype x, ShapeDtype y) {
        if (x.shape[0] != y.shape[0]) differ();
      }),
      kernel([=](ShapeDtype x, ShapeDtype y) {
        if (!(x == y)) differ();
      }),
  };
  for (const Kernel& k : kernels) {
    traces = 0;
    for (const std::int64_t n : {5, 301, 1, 77}) {
      const Array z = k(counting(n, 1), counting(n, 1));
      CHECK(z.values<float>()[n - 1] == static_cast<float>(2 * n - 2));
    }
    CHECK(traces == 1);
    CHECK_THROWS_AS(k(counting(5, 1), counting(6, 1)), CompileError);
    CHECK(k.lower(ShapeDtype{{dim("n")}, f32}, ShapeDtype{{dim("n")}, f32}).graph().find("s1") ==
          std::string::npos);
  }
  // Required of symbols without sizes, they become one.
  CHECK(kernels[0].lower(ShapeDtype{{dim("n")}, f32}, ShapeDtype{{dim("m")}, f32}).key() ==
        kernels[0].lower(ShapeDtype{{dim("n")}, f32}, ShapeDtype{{dim("n")}, f32}).key());
}

TEST_CASE("extents that are compared and differ become part of the specialisation") {
  int traces = 0;
  const Kernel k = pallas_call(
                       [&](Ref, Ref, Ref o) {
                         ++traces;
                         o[_] = zeros(o.shape(), f32);
                       },
                       [](ShapeDtype x, ShapeDtype y) {
                         const bool twice = x.shape[0] == 2 * y.shape[0];
                         return PallasCallOptions{.out_type = {{twice ? 2 : 1}, f32},
                                                  .in_specs = {{{1}}, {{1}}}};
                       })
                       .on(Target::interpreter);
  const auto size = [&](std::int64_t m, std::int64_t n) {
    return Array(k(counting(m, 1), counting(n, 1))).size();
  };
  CHECK(size(10, 5) == 2);
  CHECK(size(6, 3) == 2);
  CHECK(traces == 1);
  CHECK(size(10, 4) == 1);
  CHECK(size(4, 10) == 1);
  CHECK(size(10, 4) == 1);
  CHECK(traces == 3);
}

TEST_CASE("options as a value take the extents of the call as integers") {
  const Kernel copy =
      pallas_call([](Ref x, Ref o) { o[_] = x[_]; }, {.name = "copy", .out_type = {{4, 3}, i32}})
          .on(Target::interpreter);
  const Array x = make_array<std::int32_t>({4, 3}, [](auto i) { return 7 * i; });
  const Array y = copy(x);
  for (int i = 0; i < 12; ++i) CHECK(y.data<std::int32_t>()[i] == 7 * i);
}

TEST_CASE("into writes the caller's array and views serve as both") {
  const Kernel add = vector_add();
  std::vector<float> x(100, 1.5f), y(100, 2.f), z(100, -1.f);
  add.into({Array::view(std::span(z))},
           {Array::view(std::span<const float>(x)), Array::view(std::span<const float>(y))});
  for (const float v : z) CHECK(v == 3.5f);
}

TEST_CASE("rows with gaps are read and written through their strides") {
  const Kernel twice =
      pallas_call([](Ref x, Ref o) { o[_] = x[_] + x[_]; },
                  [](ShapeDtype x) {
                    const BlockSpec row{{1, 4}, [](Index i) { return Indices{i, 0}; }};
                    return PallasCallOptions{.name = "twice",
                                             .out_type = x,
                                             .grid = {x.shape[0]},
                                             .in_specs = {row},
                                             .out_specs = {row}};
                  })
          .on(Target::interpreter);
  std::vector<float> in(30), out(30, -1.f);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  const std::int64_t wide[] = {10, 1}, narrow[] = {5, 1};
  const Array x = Array::view(in.data(), {3, 4}, f32, {.strides = wide});
  const Array o = Array::view(out.data(), {3, 4}, f32, {.strides = narrow});
  twice.into({o}, {x});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 5; ++j)
      CHECK(out[5 * i + j] == (j < 4 ? 2 * in[10 * i + j] : -1.f));
  const Array dense = twice(x);
  CHECK(dense.is_dense());
  CHECK(dense.data<float>()[5] == 22);
}

TEST_CASE("scalars are passed by value in any place") {
  const Kernel axpy = pallas_call([](Value a, Ref x, Value b, Ref o) { o[_] = a * x[_] + b; },
                                  [](ShapeDtype, ShapeDtype x, ShapeDtype b) {
                                    CHECK(b.shape.rank() == 0);
                                    CHECK(b.dtype == f32);
                                    const BlockSpec piece{{8}, [](Index i) { return i; }};
                                    return PallasCallOptions{.name = "axpy",
                                                             .out_type = x,
                                                             .grid = {cdiv(x.shape[0], 8)},
                                                             .in_specs = {piece},
                                                             .out_specs = {piece}};
                                  })
                          .on(Target::interpreter);
  const Array y = axpy(scalar(2.f), counting(20, 1), scalar(0.5f));
  for (int i = 0; i < 20; ++i) CHECK(y.data<float>()[i] == 2.f * static_cast<float>(i) + 0.5f);
  const Array z = axpy(scalar(-1.f), counting(20, 1), scalar(0.f));
  CHECK(z.data<float>()[19] == -19.f);
}

TEST_CASE("several outputs are unpacked by number and one converts by itself") {
  const Kernel both = pallas_call(
                          [](Ref x, Ref s, Ref d) {
                            s[_] = x[_] + 1;
                            d[_] = x[_] * 2;
                          },
                          {.name = "both", .out_type = {{{4}, i32}, {{4}, i32}}})
                          .on(Target::interpreter);
  const Array x = Array::of<std::int32_t>({1, 2, 3, 4});
  auto [s, d] = both(x).unpack<2>();
  CHECK(s.data<std::int32_t>()[3] == 5);
  CHECK(d.data<std::int32_t>()[3] == 8);
  CHECK_THROWS_AS(both(x).unpack<3>(), CompileError);
  CHECK_THROWS_WITH(Array(both(x)), Catch::Matchers::ContainsSubstring("unpack<2>"));
}

TEST_CASE("the result of a call has an array's members and is passed on as it is") {
  const auto plus = [](const char* name, int n) {
    return pallas_call(
        [=](Ref x, Ref o) { o[_] = x[_] + n; },
        [=](ShapeDtype x) { return PallasCallOptions{.name = name, .out_type = x}; });
  };
  for (const Target target : {Target::interpreter, Target::emulator}) {
    const Kernel k = plus("first", 1).on(target), k2 = plus("second", 10).on(target);
    const Array x = Array::of<std::int32_t>({1, 2, 3, 4});
    const auto y = k(x);
    const auto z = k2(y);
    CHECK(z.values<std::int32_t>()[3] == 15);
    CHECK(k2(k(k(x))).values<std::int32_t>()[0] == 13);
    CHECK(y.shape() == Shape{4});
    CHECK(y.type() == ShapeDtype{{4}, i32});
    CHECK((y.rank() == 1 && y.size() == 4 && y.dtype() == i32 && y.device().is_cpu()));
    CHECK((y.is_dense() && !y.is_read_only() && y.stride(-1) == 1 && static_cast<bool>(y)));
    CHECK((y.data() == y.data<std::int32_t>() && y.data() == y.bytes().begin));
    CHECK(y.reshape({2, 2}).shape() == Shape{2, 2});
    CHECK(y.astype(f32).values<float>()[1] == 3);
    CHECK(y.to(Device::cpu()).data() == y.data());
    CHECK(y.copy().data() != y.data());
    CHECK(to_string(y) == "[2 3 4 5]");
    CHECK((y[0].data() == y.data() && y[-1].data() == y.data()));
    // The elements of a result without a name live as long as the loop.
    std::int32_t total = 0;
    for (const std::int32_t e : k(x).values<std::int32_t>()) total += e;
    for (const std::int32_t e : k(x).astype(i64).astype(i32).values<std::int32_t>()) total += e;
    CHECK(total == 28);
    const auto memory = k(x);
    k2.into({memory}, {y});
    CHECK(memory.values<std::int32_t>()[0] == 12);
    k2.prepare({y});
    CHECK(k2.lower(y).out_types().size() == 1);
    memory.fill(7);
    CHECK(new_ref(memory).array().data() == memory.data());
    CHECK(k2(memory).values<std::int32_t>()[2] == 17);
    const auto batch = vmap(k2)(y.reshape({4, 1}));
    CHECK(batch.values<std::int32_t>()[3] == 15);
  }
}

TEST_CASE("two results come apart, and several have numbers and names") {
  const Kernel three =
      pallas_call(
          [](Ref x, Ref a, Ref b, Ref c) {
            a[_] = x[_];
            b[_] = x[_] * 2;
            c[_] = x[_] * 3;
          },
          {.name = "three", .out_type = {{"a", {{4}, i32}}, {"b", {{4}, i32}}, {"c", {{4}, i32}}}})
          .on(Target::interpreter);
  const Kernel two = pallas_call(
                         [](Ref x, Ref s, Ref d) {
                           s[_] = x[_] + 1;
                           d[_] = x[_] * 2;
                         },
                         {.name = "two", .out_type = {{{4}, i32}, {{4}, i32}}})
                         .on(Target::interpreter);
  const Array x = Array::of<std::int32_t>({1, 2, 3, 4});
  const auto [s, d] = two(x);
  CHECK((s.values<std::int32_t>()[3] == 5 && d.values<std::int32_t>()[3] == 8));
  const auto y = three(x);
  const std::size_t last = 2;
  CHECK(y[1].values<std::int32_t>()[3] == 8);
  CHECK(y[last].data() == y["c"].data());
  CHECK(y[-3].data() == y["a"].data());
  CHECK(three(x)["b"].values<std::int32_t>()[0] == 2);
  CHECK(three(y[2])[0].values<std::int32_t>()[0] == 3);
  const auto [a, b, c] = y.unpack<3>();
  CHECK((a.data() == y[0].data() && b.data() == y[1].data() && c.data() == y[2].data()));
  const auto apart = [&] {
    const auto [e, f] = three(x);
    return e.size() + f.size();
  };
  CHECK_THROWS_WITH(apart(), Catch::Matchers::ContainsSubstring(
                                 "the kernel gives 3 arrays, not 2; one of them is y[\"a\"] or "
                                 "y[0], all of them auto [a, b, c] = y.unpack<3>()"));
}

TEST_CASE("an output that is aliased to an input is that array") {
  const Kernel increment =
      pallas_call([](Ref, Ref o) { o[_] = o[_] + 1; },
                  {.name = "increment", .out_type = {{4}, i32}, .input_output_aliases = {{0, 0}}})
          .on(Target::interpreter);
  const Array x = Array::of<std::int32_t>({1, 2, 3, 4});
  const Array y = increment(x);
  CHECK(y.data() == x.data());
  CHECK(x.data<std::int32_t>()[0] == 2);
  increment.into({x}, {x});
  CHECK(x.data<std::int32_t>()[3] == 6);
}

TEST_CASE("what programs on several cores leave unwritten is poison, and memory given stays") {
  const auto made = [](const InterpretParams& params, DType dtype) {
    return pallas_call(
        [](Ref o) {
          pl::when(program_id(0) % 3 != 1,
                   [&] { o[{ds(0, 70)}] = pl::ones_like(o.at({ds(0, 70)})); });
        },
        {.out_type = {{10 * 100}, dtype},
         .grid = 10,
         .out_specs = {BlockSpec{{100}, [](Index i) { return i; }}},
         .interpret = params});
  };
  for (const DType dtype : {f32, i16, bool_})
    for (const int cores : {1, 3}) {
      InterpretParams params;
      params.num_cores_per_device = cores;
      const Kernel k = made(params, dtype);
      const Array y = k(), given = Array::full({1000}, dtype, 0);
      k.into({given}, {});
      for (std::int64_t i = 0; i < 1000; ++i) {
        const bool written = i / 100 % 3 != 1 && i % 100 < 70;
        std::uint64_t bits = 0, kept = 0;
        std::memcpy(&bits, static_cast<std::byte*>(y.data()) + i * dtype.bytes(),
                    static_cast<std::size_t>(dtype.bytes()));
        std::memcpy(&kept, static_cast<std::byte*>(given.data()) + i * dtype.bytes(),
                    static_cast<std::size_t>(dtype.bytes()));
        const std::uint64_t one = graph::to_bits(dtype, std::int64_t{1});
        REQUIRE(bits == (written ? one : interpreter::poison_bits(dtype)));
        REQUIRE(kept == (written ? one : 0));
      }
    }
}

TEST_CASE("what a kernel leaves unwritten in a fresh output is poison") {
  const Kernel half = pallas_call([](Ref o) { o[pl::ds(0, 2)] = full({2}, 1.f, f32); },
                                  {.name = "half", .out_type = {{4}, f32}})
                          .on(Target::interpreter);
  const Array y = half();
  CHECK(y.data<float>()[1] == 1.f);
  CHECK(std::isnan(y.data<float>()[3]));
}

TEST_CASE("a symbol of the options is bound by the output that into is given") {
  const Kernel ones = pallas_call([](Ref o) { o[_] = full({8}, 1.f, f32); },
                                  {.name = "fill",
                                   .out_type = {{dim("fill_n")}, f32},
                                   .grid = {cdiv(dim("fill_n"), 8)},
                                   .out_specs = {BlockSpec{{8}, [](Index i) { return i; }}}})
                          .on(Target::interpreter);
  std::vector<float> out(19, 0.f);
  ones.into({Array::view(std::span(out))}, {});
  for (const float v : out) CHECK(v == 1.f);
  CHECK_THROWS_WITH(ones(), Catch::Matchers::ContainsSubstring("into"));
}

TEST_CASE("lower shows the graph for types that are only named") {
  const Kernel add = vector_add();
  const Lowered lowered = add.lower(ShapeDtype{{dim("m")}, f32}, ShapeDtype{{dim("m")}, f32});
  CHECK_THAT(lowered.graph(), Catch::Matchers::ContainsSubstring("vector_add"));
  CHECK(lowered.out_types().size() == 1);
  const Lowered of_arrays = add.lower(counting(9, 1), counting(9, 1));
  CHECK(of_arrays.out_types()[0].dtype == f32);
}

TEST_CASE("an array without elements runs no program") {
  const Kernel add = vector_add();
  const Array z = add(Array::empty({0}, f32), Array::empty({0}, f32));
  CHECK(z.size() == 0);
}
