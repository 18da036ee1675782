// Slices of what products leave in registers, and what is put together of them: of all targets they
// are the elements that plain loops take.
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

// Of parts of a row each becomes itself times x, and another one times y. Of `every` a part is
// every so manyth element, and lies by itself in the result.
enum class Spelling { concatenated, stored, turned, rolled, split, every };

struct Sliced {
  std::int64_t m = 128, k = 64, width = 64, parts = 2;
  int turn = 1, steps = 2;
  DType dtype = bf16, factors = f32, out = bf16;
  Spelling spelling = Spelling::concatenated;
  bool persistent = false, keeps_sum = false;

  std::int64_t n() const { return width * parts; }

  static Sliced drawn(Random& random) {
    const Spelling all[] = {Spelling::concatenated, Spelling::stored, Spelling::turned,
                            Spelling::rolled,       Spelling::split,  Spelling::every};
    const std::int64_t parts = random.pick({2, 3, 4});
    return {.m = random.pick({16, 64, 128}),
            .k = random.pick({16, 64}),
            .width = random.pick({8, 16, 24, 32, 64, 12}),
            .parts = parts,
            .turn = random.between(1, static_cast<int>(parts) - 1),
            .steps = random.between(1, 4),
            .dtype = random.chance(50) ? bf16 : f16,
            .factors = random.chance(50) ? f32 : bf16,
            .out = random.chance(60) ? bf16 : f32,
            .spelling = all[random.below(6)],
            .persistent = random.chance(20),
            .keeps_sum = random.chance(30)};
  }
  std::string text() const {
    static constexpr const char* spellings[] = {"concatenated", "stored", "turned",
                                                "rolled",       "split",  "every"};
    return std::to_string(m) + " rows of " + std::to_string(parts) + " parts of " +
           std::to_string(width) + ", " + std::to_string(steps) + " times " + std::to_string(k) +
           " of " + std::string(dtype.name()) + ", by " + std::string(factors.name()) + " to " +
           std::string(out.name()) + ", " + spellings[static_cast<int>(spelling)] + " by " +
           std::to_string(turn) + (persistent ? ", persistent" : "") +
           (keeps_sum ? ", sum kept" : "");
  }

  Kernel kernel() const {
    const Sliced c = *this;
    const auto body = [c](Ref a, Ref b, Ref x, Ref y, Ref o, Ref sums) {
      const Value sum = loop(
          0, c.steps,
          [&](Value i, Value s) {
            const Slice now = ds(i * static_cast<int>(c.k), c.k);
            return s + dot(a[{_, now}], b[{now, _}]);
          },
          zeros({c.m, c.n()}, f32));
      c.combine(sum, x[_].astype(f32), y[_].astype(f32), o);
      if (c.keeps_sum)
        sums[_] = sum;
      else
        sums[_] = zeros({c.m, c.n()}, f32);
    };
    const BlockSpec rows{{m, k * steps},
                         [](Index i) {
                           return Indices{i, 0};
                         }},
        all{{k * steps, n()},
            [](Index) {
              return Indices{0, 0};
            }},
        factor{{m, width},
               [](Index i) {
                 return Indices{i, 0};
               }},
        block{{m, n()}, [](Index i) {
                return Indices{i, 0};
              }};
    return pallas_call(body, {.name = "sliced",
                              .out_type = {{{2 * m, n()}, out}, {{2 * m, n()}, f32}},
                              .grid = {2},
                              .in_specs = {rows, all, factor, factor},
                              .out_specs = {block, block},
                              .compiler_params = {.persistent = persistent}});
  }

 private:
  std::size_t other(std::size_t p) const {
    return (p + static_cast<std::size_t>(turn)) % static_cast<std::size_t>(parts);
  }

  void combine(const Value& sum, const Value& x, const Value& y, Ref o) const {
    std::vector<Value> part;
    for (std::int64_t p = 0; p < parts; ++p)
      part.push_back(spelling == Spelling::every
                         ? sum[{_, ds(static_cast<int>(p), width, parts)}]
                         : sum[{_, ds(static_cast<int>(p * width), width)}]);
    if (spelling == Spelling::split) part = pl::split(sum, static_cast<int>(parts), 1);
    if (spelling == Spelling::turned || spelling == Spelling::rolled)
      return combine_whole(sum, part, x, y, o);
    std::vector<Value> made;
    for (std::size_t p = 0; p < part.size(); ++p)
      made.push_back((part[p] * x + part[other(p)] * y).astype(out));
    if (spelling != Spelling::stored) return void(o[_] = concatenate(made, 1));
    for (std::size_t p = 0; p < part.size(); ++p)
      o[{_, ds(static_cast<int>(p) * static_cast<int>(width), width)}] = made[p];
  }

  void combine_whole(const Value& sum, const std::vector<Value>& part, const Value& x,
                     const Value& y, Ref o) const {
    const auto factors = [&](const Value& v) {
      return concatenate(std::vector<Value>(part.size(), v), 1);
    };
    std::vector<Value> others;
    for (std::size_t p = 0; p < part.size(); ++p) others.push_back(part[other(p)]);
    const Value turned = spelling == Spelling::rolled
                             ? roll(sum, static_cast<int>((parts - turn) * width), 1)
                             : concatenate(others, 1);
    o[_] = (sum * factors(x) + turned * factors(y)).astype(out);
  }
};

void check(const Sliced& c) {
  CAPTURE(c.text());
  Random random(static_cast<std::uint64_t>(c.m * 31 + c.n() * 7 + c.k));
  const auto small = [&](auto) { return random.between(-1, 1); };
  const std::int64_t rows = 2 * c.m, depth = c.k * c.steps, n = c.n();
  const Array a = make_array<float>({rows, depth}, small), b = make_array<float>({depth, n}, small),
              x = make_array<float>({rows, c.width}, small),
              y = make_array<float>({rows, c.width}, small);
  std::vector<float> sums(static_cast<std::size_t>(rows * n)), expected(sums);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t l = 0; l < depth; ++l)
      for (std::int64_t j = 0; j < n; ++j)
        sums[static_cast<std::size_t>(i * n + j)] +=
            a.data<float>()[i * depth + l] * b.data<float>()[l * n + j];
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t in_part = j % c.width, part = j / c.width;
      const auto element = [&](std::int64_t p) {
        const std::int64_t of = p % c.parts;
        return sums[static_cast<std::size_t>(i * n + (c.spelling == Spelling::every
                                                          ? in_part * c.parts + of
                                                          : of * c.width + in_part))];
      };
      expected[static_cast<std::size_t>(i * n + j)] =
          element(part) * x.data<float>()[i * c.width + in_part] +
          element(part + c.turn) * y.data<float>()[i * c.width + in_part];
    }
  }
  for_each_target("sliced", [&](Target target) {
    const auto [o, s] =
        c.kernel()
            .on(target)(on(target, a.astype(c.dtype)), on(target, b.astype(c.dtype)),
                        on(target, x.astype(c.factors)), on(target, y.astype(c.factors)))
            .unpack<2>();
    const Array made = on_cpu(o).astype(f32), kept = on_cpu(s);
    for (std::size_t e = 0; e < expected.size(); ++e) {
      INFO("element " << e);
      REQUIRE(made.data<float>()[e] == expected[e]);
      REQUIRE(kept.data<float>()[e] == (c.keeps_sum ? sums[e] : 0));
    }
  });
}

}  // namespace

TEST_CASE("parts of a product's rows are combined in every spelling") {
  for (const Spelling s : {Spelling::concatenated, Spelling::stored, Spelling::turned,
                           Spelling::rolled, Spelling::split, Spelling::every})
    for (const std::int64_t parts : {2, 3}) check({.width = 32, .parts = parts, .spelling = s});
  // Where others have every fourth element, and shared memory has no room for factors, too.
  check({.parts = 4, .turn = 3, .spelling = Spelling::every, .keeps_sum = true});
}

TEST_CASE("halves of a product's rows that meet stay in their threads' registers") {
  for (const Spelling s : {Spelling::concatenated, Spelling::stored, Spelling::turned,
                           Spelling::rolled, Spelling::split, Spelling::every}) {
    const Sliced c{.spelling = s};
    const Lowered lowered =
        c.kernel().lower(ShapeDtype{{256, 128}, c.dtype}, ShapeDtype{{128, 128}, c.dtype},
                         ShapeDtype{{256, 64}, f32}, ShapeDtype{{256, 64}, f32});
    const std::string text = lowered.cuda_source({.arch = "sm_90a"});
    CAPTURE(c.text(), text);
    CHECK(text.find("registers renamed") != std::string::npos);
    // Of every second element a thread has no neighbours to store as matrices.
    if (s != Spelling::every) CHECK(text.find("store_shared<") == std::string::npos);
  }
}

TEST_CASE("drawn parts of what drawn products leave are combined as plain loops do") {
  for_seeds(1, 30, [](std::uint64_t seed) {
    Random random(seed);
    check(Sliced::drawn(random));
  });
}
