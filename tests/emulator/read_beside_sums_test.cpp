// Arrays of which elements meet those of a product's sum: added, multiplied, chosen, in every
// spelling of the sum.
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

enum class Sum { carry, scratch, tiles, alone };

struct Beside {
  std::int64_t m = 256, n = 256, k = 256, bm = 128, bn = 128, bk = 64;
  DType dtype = bf16, read = bf16, out = bf16;
  Sum sum = Sum::carry;
  int arrays = 1;
  bool persistent = false, symbolic = false, multiplies = false, reads_again = false;

  static Beside drawn(Random& random) {
    const std::int64_t bm = random.pick({64, 128}), bn = random.pick({32, 64, 128, 256}),
                       bk = random.pick({16, 64});
    const Sum sums[] = {Sum::carry, Sum::scratch, Sum::tiles, Sum::alone};
    const DType types[] = {bf16, f16, f32, i8, f8e4m3};
    return {.m = bm * random.between(1, 3) - random.pick({0, 0, 8, 24}),
            .n = bn * random.between(1, 3) - random.pick({0, 0, 8, 16}),
            .k = bk * random.between(1, 6),
            .bm = bm,
            .bn = bn,
            .bk = bk,
            .dtype = random.chance(50) ? bf16 : f16,
            .read = types[random.below(5)],
            .out = random.chance(60) ? bf16 : f32,
            .sum = sums[random.below(4)],
            .arrays = random.between(1, 2),
            .persistent = random.chance(25),
            .symbolic = random.chance(25),
            .multiplies = random.chance(40),
            .reads_again = random.chance(25)};
  }
  std::string text() const {
    static constexpr const char* sums[] = {"a carry", "scratch", "tiles by loop", "one product"};
    const auto size = [](std::int64_t x, std::int64_t y, std::int64_t z) {
      return std::to_string(x) + "x" + std::to_string(y) + "x" + std::to_string(z);
    };
    return size(m, n, k) + " in " + size(bm, bn, bk) + " of " + std::string(dtype.name()) + ", " +
           sums[static_cast<int>(sum)] + ", " + std::to_string(arrays) + " of " +
           std::string(read.name()) + " to " + std::string(out.name()) +
           (persistent ? ", persistent" : "") + (symbolic ? ", symbolic" : "") +
           (multiplies ? ", multiplied" : "") + (reads_again ? ", read again" : "");
  }

  bool is_by_loop() const { return sum == Sum::tiles; }
  /// By loop tiles are whole.
  Beside whole() const {
    Beside b = *this;
    if (!is_by_loop()) return b;
    b.m = round_up(m, bm), b.n = round_up(n, bn);
    b.persistent = b.symbolic = false;
    return b;
  }

  Value joined(Value s, const std::vector<Value>& read) const {
    for (const Value& r : read) s = multiplies ? s * r.astype(f32) : s + r.astype(f32);
    return s;
  }

  /// Of a, b, and two arrays of which it reads so many.
  Kernel kernel() const {
    return is_by_loop() ? by_loop() : sum == Sum::scratch ? by_axis() : by_grid();
  }

 private:
  static std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

  void store(Ref o, const Value& s, const std::vector<Value>& read) const {
    const Value all = joined(s, read);
    o[_] = (reads_again ? all + read[0].astype(f32) : all).astype(out);
  }

  Kernel by_grid() const {
    const Beside c = *this;
    const auto body = [c](Ref a, Ref b, Ref x, Ref y, Ref o) {
      const Value s = c.sum == Sum::alone
                          ? dot(a[_], b[_])
                          : loop(
                                0, static_cast<int>(c.k / c.bk),
                                [&](Value i, Value sum) {
                                  const Slice now = ds(i * static_cast<int>(c.bk), c.bk);
                                  return sum + dot(a[{_, now}], b[{now, _}]);
                                },
                                zeros({c.bm, c.bn}, f32));
      std::vector<Value> read{x[_]};
      if (c.arrays > 1) read.push_back(y[_]);
      c.store(o, s, read);
    };
    const BlockSpec tile{{bm, bn}, [](Index i, Index j) { return Indices{i, j}; }};
    return options(body,
                   {{{bm, k},
                     [](Index i, Index) {
                       return Indices{i, 0};
                     }},
                    {{k, bn},
                     [](Index, Index j) {
                       return Indices{0, j};
                     }},
                    tile,
                    tile},
                   tile);
  }

  Kernel by_axis() const {
    const Beside c = *this;
    const auto body = [c](Ref a, Ref b, Ref x, Ref y, Ref o, Ref sum) {
      const Value step = program_id(2);
      when(step == 0, [&] { sum[_] = zeros({c.bm, c.bn}, f32); });
      sum[_] += dot(a[_], b[_]);
      when(step == num_programs(2) - 1, [&] {
        std::vector<Value> read{x[_]};
        if (c.arrays > 1) read.push_back(y[_]);
        c.store(o, sum[_], read);
      });
    };
    const BlockSpec tile{{bm, bn}, [](Index i, Index j, Index) { return Indices{i, j}; }};
    return options(body,
                   {{{bm, bk},
                     [](Index i, Index, Index l) {
                       return Indices{i, l};
                     }},
                    {{bk, bn},
                     [](Index, Index j, Index l) {
                       return Indices{l, j};
                     }},
                    tile,
                    tile},
                   tile);
  }

  template <class Body>
  Kernel options(const Body& body, const std::vector<BlockSpec>& in, const BlockSpec& tile) const {
    const Beside c = *this;
    return pallas_call(body, [=](ShapeDtype a, ShapeDtype b, ShapeDtype, ShapeDtype) {
      const auto size = [&](const Dim& d) { return c.symbolic ? d : Dim(d.value()); };
      const Dim rows = size(a.shape[0]), columns = size(b.shape[1]), down = cdiv(rows, c.bm),
                across = cdiv(columns, c.bn);
      PallasCallOptions o{.name = "beside",
                          .out_type = ShapeDtype{{rows, columns}, c.out},
                          .grid = {down, across},
                          .in_specs = in,
                          .out_specs = {tile},
                          .compiler_params = {.persistent = c.persistent}};
      if (c.sum != Sum::scratch) return o;
      o.grid = {down, across, c.k / c.bk};
      o.scratch_shapes = {plgpu::SMEM({c.bm, c.bn}, f32)};
      return o;
    });
  }

  Kernel by_loop() const {
    const Beside c = *this;
    const auto body = [c](Ref a, Ref b, Ref x, Ref y, Ref o) {
      const auto tiles = static_cast<int>(c.n / c.bn);
      loop(0, static_cast<int>(c.m / c.bm) * tiles, [&](Value tile) {
        const Slice rows = ds(tile / tiles * static_cast<int>(c.bm), c.bm),
                    columns = ds(tile % tiles * static_cast<int>(c.bn), c.bn);
        const Value s = loop(
            0, static_cast<int>(c.k / c.bk),
            [&](Value i, Value sum) {
              const Slice now = ds(i * static_cast<int>(c.bk), c.bk);
              return sum + dot(a[{rows, now}], b[{now, columns}]);
            },
            zeros({c.bm, c.bn}, f32));
        std::vector<Value> read{x[{rows, columns}]};
        if (c.arrays > 1) read.push_back(y[{rows, columns}]);
        c.store(o.at({rows, columns}), s, read);
      });
    };
    return pallas_call(body, {.name = "beside", .out_type = ShapeDtype{{m, n}, out}, .grid = {1}});
  }
};

void check(const Beside& drawn) {
  const Beside c = drawn.whole();
  CAPTURE(c.text());
  Random random(static_cast<std::uint64_t>(c.m * 31 + c.n * 7 + c.k));
  const auto small = [&](auto) { return random.between(-1, 1); };
  const Array a = make_array<float>({c.m, c.k}, small), b = make_array<float>({c.k, c.n}, small),
              x = make_array<float>({c.m, c.n}, small), y = make_array<float>({c.m, c.n}, small);
  std::vector<float> expected(static_cast<std::size_t>(c.m * c.n));
  for (std::int64_t i = 0; i < c.m; ++i)
    for (std::int64_t l = 0; l < c.k; ++l)
      for (std::int64_t j = 0; j < c.n; ++j)
        expected[static_cast<std::size_t>(i * c.n + j)] +=
            a.data<float>()[i * c.k + l] * b.data<float>()[l * c.n + j];
  for (std::size_t e = 0; e < expected.size(); ++e) {
    const float first = x.data<float>()[e], second = c.arrays > 1 ? y.data<float>()[e] : 0;
    float& s = expected[e];
    s = c.multiplies ? s * first : s + first;
    if (c.arrays > 1) s = c.multiplies ? s * second : s + second;
    if (c.reads_again) s += first;
  }
  for_each_target("beside", [&](Target target) {
    const Array o =
        on_cpu(c.kernel().on(target)(on(target, a.astype(c.dtype)), on(target, b.astype(c.dtype)),
                                     on(target, x.astype(c.read)), on(target, y.astype(c.read))))
            .astype(f32);
    for (std::size_t e = 0; e < expected.size(); ++e) {
      INFO("element " << e);
      REQUIRE(o.data<float>()[e] == expected[e]);
    }
  });
}

}  // namespace

TEST_CASE("an array is added to a product's sum in every spelling of that") {
  for (const Sum sum : {Sum::carry, Sum::scratch, Sum::tiles, Sum::alone})
    for (const bool persistent : {false, true}) check({.sum = sum, .persistent = persistent});
  check({.read = f32, .out = f32});
  check({.bn = 256, .arrays = 2, .reads_again = true});
}

TEST_CASE("drawn arrays that meet drawn sums of products give what plain loops do") {
  for_seeds(1, 30, [](std::uint64_t seed) {
    Random random(seed);
    check(Beside::drawn(random));
  });
}
