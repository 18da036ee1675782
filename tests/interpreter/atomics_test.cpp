// Atomic updates, on interpreter and emulator, against plain loops.
#include <algorithm>
#include <cstdint>

#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const BlockSpec whole{};

/// Where an output starts from an input of its own, and programs run in any order.
PallasCallOptions updating(std::int64_t programs) {
  return {.grid = {programs},
          .in_specs = {whole, whole},
          .out_specs = {whole},
          .input_output_aliases = {{1, 0}}};
}

}  // namespace

TEST_CASE("programs add rows and columns to one row [C55]") {
  for (const bool rows : {true, false})
    for (const DType d : {f32, i32, u64, f16, bf16, f64}) {
      CAPTURE(rows, d.name());
      Tensor x(d, {32, 8}, [](std::int64_t i) { return static_cast<double>(i * 7 % 5); });
      const std::int64_t n = rows ? 8 : 32;
      Tensor y = full(d, {n}, 3);
      const auto spec = rows ? BlockSpec{{squeezed, 8},
                                         [](Index i) {
                                           return Indices{i, 0};
                                         }}
                             : BlockSpec{{32, squeezed}, [](Index i) {
                                           return Indices{0, i};
                                         }};
      run([](Ref x, Ref, Ref y) { atomic_add(y, x[_]); },
          {.grid = {256 / n},
           .in_specs = {spec, whole},
           .out_specs = {whole},
           .input_output_aliases = {{1, 0}}},
          {&x, &y}, {&y});
      for (std::int64_t i = 0; i < n; ++i) {
        double sum = 3;
        for (std::int64_t k = 0; k < 256 / n; ++k) sum += x[rows ? k * 8 + i : i * 8 + k];
        CHECK(y[i] == sum);
      }
    }
}

TEST_CASE("a lock is taken by who finds it open [C56]") {
  for (const int init : {0, 1, 2})
    for (const int expected : {0, 1}) {
      Tensor lock = full(i32, {1}, init), old(i32, {1}), x(i32, {1});
      x.set(0, expected);
      run(
          [](Ref x, Ref, Ref lock, Ref old) {
            const Value was = atomic_cas(lock.at({0}), x[0], 1);
            old[0] = was;
          },
          {.in_specs = {whole, whole},
           .out_specs = {whole, whole},
           .input_output_aliases = {{1, 0}}},
          {&x, &lock}, {&lock, &old});
      CHECK(lock[0] == (init == expected ? 1 : init));
      CHECK(old[0] == init);
    }
}

TEST_CASE("every kind of update does what it says, through index arrays") {
  const struct {
    Effect (*update)(const Ref&, const Operand&, StoreOptions);
    std::uint64_t (*plain)(std::uint64_t, std::uint64_t);
  } kinds[] = {
      {atomic_add, [](std::uint64_t a, std::uint64_t b) { return a + b; }},
      {atomic_max, [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); }},
      {atomic_min, [](std::uint64_t a, std::uint64_t b) { return std::min(a, b); }},
      {atomic_and, [](std::uint64_t a, std::uint64_t b) { return a & b; }},
      {atomic_or, [](std::uint64_t a, std::uint64_t b) { return a | b; }},
      {atomic_xor, [](std::uint64_t a, std::uint64_t b) { return a ^ b; }},
  };
  for (const auto& kind : kinds)
    for (const DType d : {i32, u32, i64, u64}) {
      CAPTURE(&kind - kinds, d.name());
      Tensor x(d, {200}, [](std::int64_t i) { return static_cast<double>(i * 37 % 101); });
      Tensor y = full(d, {7}, 60);
      Tensor scratch_result(d, {7});
      run(
          [&](Ref x, Ref, Ref y, Ref r, Ref scratch) {
            const Value at = iota(i32, {200}) * 3 % 7;
            (void)kind.update(y.at({at}), x[_], {.mask = iota(i32, {200}) % 5 != 1});
            scratch[_] = full({7}, 60, x.dtype());
            (void)kind.update(scratch.at({at}), x[_], {.mask = iota(i32, {200}) % 5 != 1});
            r[_] = scratch[_];
          },
          {.in_specs = {whole, whole},
           .out_specs = {whole, whole},
           .scratch_types = {gpu::SMEM({7}, d)},
           .input_output_aliases = {{1, 0}}},
          {&x, &y}, {&y, &scratch_result});
      std::uint64_t expected[7];
      std::fill_n(expected, 7, 60);
      for (std::int64_t i = 0; i < 200; ++i)
        if (i % 5 != 1)
          expected[i * 3 % 7] = kind.plain(expected[i * 3 % 7], static_cast<std::uint64_t>(x[i]));
      for (std::int64_t i = 0; i < 7; ++i) {
        CHECK(y[i] == static_cast<double>(expected[i]));
        CHECK(scratch_result[i] == y[i]);
      }
    }
}

TEST_CASE("numbers that no instruction updates are exchanged until nobody came between") {
  for (const DType d : {i8, u8, i16, u16, f16, bf16, f32, f64}) {
    CAPTURE(d.name());
    Tensor x(d, {200}, [](std::int64_t i) { return static_cast<double>(i * 37 % 101); });
    Tensor sum = full(d, {7}, 60), most = full(d, {7}, 60), least = full(d, {7}, 60);
    Tensor shared_least(d, {7});
    run(
        [&](Ref x, Ref, Ref, Ref, Ref sum, Ref most, Ref least, Ref r, Ref scratch) {
          const Value lane = iota(i32, {200}), at = lane * 3 % 7;
          if (d.is_integer()) atomic_add(sum.at({at}), x[_], {.mask = lane % 5 != 1});
          atomic_max(most.at({at}), x[_], {.mask = lane % 5 != 1});
          atomic_min(least.at({at}), x[_], {.mask = lane % 5 != 1});
          scratch[_] = full({7}, 60, d);
          atomic_min(scratch.at({at}), x[_], {.mask = lane % 5 != 1});
          r[_] = scratch[_];
        },
        {.in_specs = {whole, whole, whole, whole},
         .out_specs = {whole, whole, whole, whole},
         .scratch_types = {gpu::SMEM({7}, d)},
         .input_output_aliases = {{1, 0}, {2, 1}, {3, 2}}},
        {&x, &sum, &most, &least}, {&sum, &most, &least, &shared_least});
    std::int64_t sums[7];
    double greatest[7], smallest[7];
    std::fill_n(sums, 7, 60);
    std::fill_n(greatest, 7, 60);
    std::fill_n(smallest, 7, 60);
    for (std::int64_t i = 0; i < 200; ++i)
      if (i % 5 != 1) {
        const std::int64_t to = i * 3 % 7;
        if (d.is_integer()) sums[to] += static_cast<std::int64_t>(x[i]);
        greatest[to] = std::max(greatest[to], x[i]);
        smallest[to] = std::min(smallest[to], x[i]);
      }
    for (std::int64_t i = 0; i < 7; ++i) {
      CHECK(sum.bits(i) == graph::to_bits(d, sums[i]));
      CHECK(most[i] == greatest[i]);
      CHECK(least[i] == smallest[i]);
      CHECK(shared_least[i] == smallest[i]);
    }
  }
}

TEST_CASE("sums of floats that nobody waits for are added a vector at a time") {
  struct {
    DType dtype;
    std::int64_t columns;
    int at_once;
  } const cases[] = {{f32, 64, 4}, {f32, 62, 2},  {f32, 63, 1}, {f16, 64, 8},
                     {f16, 36, 1}, {bf16, 64, 8}, {f64, 64, 1}, {i32, 64, 1}};
  // Rows 8 to 32 are added to twice, but for those that a mask leaves out.
  for (const auto& [d, n, at_once] : cases)
    for (const bool masked : {false, true}) {
      CAPTURE(d.name(), n, masked);
      const auto body = [masked, n = n](Ref x, Ref, Ref y) {
        const Value rows = iota(i32, {32, n}, 0);
        for (const int half : {0, 1})
          atomic_add(y.at({ds(half * 8, 32), _}), x[{ds(half * 32, 32), _}],
                     masked ? StoreOptions{.mask = rows % 5 != 1} : StoreOptions{});
      };
      Tensor x(d, {64, n}, [](std::int64_t i) { return static_cast<double>(i * 37 % 11); });
      Tensor y = full(d, {40, n}, 3);
      PallasCallOptions options{
          .in_specs = {whole, whole}, .out_specs = {whole}, .input_output_aliases = {{1, 0}}};
      run(body, options, {&x, &y}, {&y});
      std::vector<double> expected(static_cast<std::size_t>(40 * n), 3);
      for (std::int64_t i = 0; i < 64; ++i)
        for (std::int64_t j = 0; j < n && !(masked && i % 32 % 5 == 1); ++j)
          expected[static_cast<std::size_t>((i % 32 + i / 32 * 8) * n + j)] += x[i * n + j];
      for (std::int64_t i = 0; i < 40 * n; ++i)
        CHECK(y[i] == expected[static_cast<std::size_t>(i)]);
      options.out_type = ShapeDtype{{40, n}, d};
      const std::vector<ArgType> types{ShapeDtype{{64, n}, d}, ShapeDtype{{40, n}, d}};
      const std::string text =
          pallas_call(body, options).lower(types).cuda_source({.arch = "sm_90a"});
      const std::string added = "red_add_vector<" + std::to_string(at_once) + ">";
      CHECK((text.find(at_once > 1 ? added : "pl::atomic_add(") != std::string::npos));
    }
}

TEST_CASE("the greatest and the least of floats are NaN if one is, and -0 is less than 0") {
  Tensor x(f32, {4}, {std::nan(""), 1, -0.0, 0.0}), most(f32, {4}, {1, std::nan(""), 0.0, -0.0});
  Tensor least(f32, {4}, {1, std::nan(""), 0.0, -0.0});
  run(
      [](Ref x, Ref, Ref, Ref most, Ref least) {
        atomic_max(most, x[_]);
        atomic_min(least, x[_]);
      },
      {.in_specs = {whole, whole, whole},
       .out_specs = {whole, whole},
       .input_output_aliases = {{1, 0}, {2, 1}}},
      {&x, &most, &least}, {&most, &least});
  for (const Tensor* t : {&most, &least}) {
    CHECK(std::isnan((*t)[0]));
    CHECK(std::isnan((*t)[1]));
    for (const std::int64_t i : {2, 3}) CHECK(std::signbit((*t)[i]) == (t == &least));
  }
}

TEST_CASE("what was there before an update is its result, and the value in masked lanes") {
  for (const DType d : {i32, u64, f32, f64, bf16, i16}) {
    CAPTURE(d.name());
    Tensor x(d, {40}, [](std::int64_t i) { return static_cast<double>(128 + i); });
    Tensor y = arange(d, {64}), old(d, {40}), count = full(d, {1}, 5), first(d, {1});
    run(
        [](Ref x, Ref, Ref, Ref y, Ref old, Ref count, Ref first) {
          const Value lane = iota(i32, {40});
          old[_] = atomic_xchg(y.at({63 - lane}), x[_], {.mask = lane % 4 != 0});
          first[0] = atomic_add(count.at({0}), 2);
        },
        {.in_specs = {whole, whole, whole},
         .out_specs = {whole, whole, whole, whole},
         .input_output_aliases = {{1, 0}, {2, 2}}},
        {&x, &y, &count}, {&y, &old, &count, &first});
    for (std::int64_t i = 0; i < 40; ++i) {
      const bool on = i % 4 != 0;
      CHECK(old[i] == (on ? 63 - i : 128 + i));
      CHECK(y[63 - i] == (on ? 128 + i : 63 - i));
    }
    CHECK(first[0] == 5);
    CHECK(count[0] == 7);
  }
}

TEST_CASE("the results of updates are used in loops and conditions") {
  Tensor x = full(i32, {1}, 0), y = full(i32, {2}, 0), o(i32, {8});
  run(
      [](Ref, Ref, Ref y, Ref o) {
        o[_] = zeros({8}, i32);
        pl::loop(0, 6, {}, [&](Index) {
          const Value n = atomic_add(y.at({0}), 1);
          pl::when(n % 2 == 1, [&] { o[n] = n * 10; });
          pl::loop(0, n, {}, [&](Index) { atomic_add(y.at({1}), 1); });
        });
      },
      {.in_specs = {whole, whole}, .out_specs = {whole, whole}, .input_output_aliases = {{1, 0}}},
      {&x, &y}, {&y, &o});
  CHECK(y.numbers() == std::vector<double>{6, 15});
  CHECK(o.numbers() == std::vector<double>{0, 10, 0, 30, 0, 50, 0, 0});
}

TEST_CASE("programs of parallel axes count what they meet, ragged blocks too") {
  Tensor x(i32, {1000}, [](std::int64_t i) { return static_cast<double>(i * i % 61); });
  Tensor bins = full(i32, {64}, 0);
  run(
      [](Ref x, Ref, Ref bins) {
        const Value at = program_id(0) * 128 + iota(i32, {128});
        atomic_add(bins.at({x[_]}), full({128}, 1, i32), {.mask = at < 1000});
      },
      {.grid = {cdiv(1000, 128)},
       .in_specs = {BlockSpec{{128}, [](Index i) { return i; }}, whole},
       .out_specs = {whole},
       .input_output_aliases = {{1, 0}}},
      {&x, &bins}, {&bins});
  std::vector<double> expected(64);
  for (std::int64_t i = 0; i < 1000; ++i) ++expected[static_cast<std::size_t>(x[i])];
  CHECK(bins.numbers() == expected);
}

TEST_CASE("an axis along which an output is only updated is parallel") {
  const auto semantics = [](auto update) {
    return traced([=](Ref x, Ref, Ref y) { update(y, Value(x[_])); },
                  {.out_type = {{8}, i32},
                   .grid = {4},
                   .in_specs = {whole, whole},
                   .out_specs = {whole},
                   .input_output_aliases = {{1, 0}}},
                  {array({8}, i32), array({8}, i32)})
        .semantics[0];
  };
  CHECK(semantics([](Ref y, Value v) { atomic_add(y, v); }) == graph::Semantics::parallel);
  CHECK(semantics([](Ref y, Value v) { y[_] += v; }) == graph::Semantics::sequential);
  CHECK(semantics([](Ref y, Value v) {
          atomic_add(y, v);
          y[_] = v;
        }) == graph::Semantics::sequential);
}

TEST_CASE("a program that stores what others update is reported") {
  Tensor x = full(i32, {8}, 1), y = full(i32, {8}, 0);
  PallasCallOptions options = updating(4);
  options.compiler_params = {.dimension_semantics = {parallel}};
  CHECK_THAT(failure_of(
                 [](Ref x, Ref, Ref y) {
                   pl::when(program_id(0) == 2, [&] { y[3] = 5; });
                   atomic_add(y, x[_]);
                 },
                 options, {&x, &y}, {&y}),
             ContainsSubstring("cannot be parallel"));
  // Its block depends on the axis, and yet is the same in all programs.
  PallasCallOptions blocks = updating(4);
  blocks.out_specs = {BlockSpec{{8}, [](Index i) { return Indices{i / 4}; }}};
  for (const int storing : {0, 2, 3})
    CHECK_THAT(failure_of(
                   [=](Ref x, Ref, Ref y) {
                     const Value stores = program_id(0) == storing;
                     pl::when(stores, [&] { y[2] = 5; });
                     pl::when(!stores, [&] { atomic_add(y.at({2}), x[0]); });
                   },
                   blocks, {&x, &y}, {&y}),
               ContainsSubstring("write the same element [2], and they run in any order"));
}

TEST_CASE("what cannot be updated is said") {
  Tensor x = full(f32, {8}, 1), y = full(f32, {8}, 0);
  const auto failure = [&](const Body& body) {
    return failure_of(body, updating(1), {&x, &y}, {&y});
  };
  CHECK_THAT(failure([](Ref x, Ref, Ref y) { atomic_or(y, x[_]); }),
             ContainsSubstring("atomic_or does not support f32, but i8, u8, i16, u16, i32, u32, "
                               "i64, u64"));
  CHECK_THAT(failure([](Ref x, Ref, Ref y) { atomic_add(x, y[_]); }),
             ContainsSubstring("atomic_add: args[0] is an input to which no output is aliased"));
  CHECK_THAT(failure([](Ref x, Ref, Ref y) { atomic_add(y.bitcast(f64), x.bitcast(f64)[_]); }),
             ContainsSubstring("atomic_add: expected elements of a Ref, or parts of them, given "
                               "several of f32 seen as one f64"));
  CHECK_THAT(failure([](Ref x, Ref, Ref y) { atomic_add(y, x[0]); }),
             ContainsSubstring("atomic_add: expected a value of the view's shape, f32[8]"));
}

TEST_CASE("a view keeps the indices that chose it, whatever is computed before it is used") {
  Tensor x = arange(i32, {64}), o(i32, {8, 4}), p(i32, {64}), q(i32, {8});
  run(
      [](Ref x, Ref o, Ref p, Ref q) {
        o[_] = zeros({8, 4}, i32);
        q[_] = zeros({8}, i32);
        const Ref rows = o.at({x[_] % 8, 1}), counted = q.at(x[_] / 8);
        const Ref some = counted.at({ds(8, 16)}),
                  square = counted.reshape({8, 8}).transpose({1, 0});
        Value v = x[_];
        for (int i = 0; i < 4; ++i) v = v * 3 + cumsum(v);
        p[_] = v;
        pl::loop(0, 3, [&](Index i) { atomic_add(rows, full({64}, i, i32)); });
        atomic_add(some, full({16}, 100, i32));
        atomic_max(square, pl::reshape(x[_], {8, 8}));
        atomic_add(counted, ones({64}, i32), {.mask = x[_] % 2 == 0});
      },
      {}, {&x}, {&o, &p, &q});
  for (std::int64_t i = 0; i < 32; ++i) CHECK(o[i] == (i % 4 == 1 ? 24 : 0));
  for (std::int64_t i = 0; i < 8; ++i) {
    // Element [a,b] of the transposed square is number 8 * b + a, which counts for b.
    const double most = 56 + static_cast<double>(i), before = i == 1 || i == 2 ? 800 : 0;
    CHECK(q[i] == std::max(most, before) + 4);
  }
}
