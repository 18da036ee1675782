// Sums of products in several loops, one behind the other, of which any may have no iteration.
#include "tests/support/product_loops.hpp"

#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

void check(const ProductLoops& p, std::uint64_t seed) {
  CAPTURE(p.text());
  for_each_target("product_loops", [&](Target target) {
    Random random(seed);
    for (int i = 0; i < 2; ++i) {
      const std::int64_t m = random.between(1, 200), n = 16 * random.between(1, 9),
                         k = i == 0 ? 16 * random.between(1, 32) : random.between(1, 512);
      CAPTURE(m, n, k);
      const auto small = [&](auto) { return random.between(-2, 2); };
      const Array a = make_array<float>({m, k}, small),
                  b = make_array<float>(p.trans_b ? Shape{n, k} : Shape{k, n}, small),
                  o = make_array<float>({m, n}, small), expected = p.expected(a, b, o);
      const Kernel kernel = p.kernel().on(target);
      const Array left = on(target, a.astype(p.dtype)), right = on(target, b.astype(p.dtype));
      const Array c =
          on_cpu(p.adds_to_output ? kernel(left, right, on(target, o)) : kernel(left, right));
      for (std::int64_t e = 0; e < m * n; ++e) {
        INFO("element " << e / n << ", " << e % n);
        REQUIRE(c.data<float>()[e] == expected.data<float>()[e]);
      }
    }
  });
}

// Whether blocks read what others have added up.
bool shares(const ProductLoops& p) {
  const std::string text = p.kernel().lower(p.types(128, 128, 512)).cuda_source({.arch = "sm_90a"});
  return text.find("pl::load_cluster") != text.npos;
}

}  // namespace

TEST_CASE("sums go through loops one behind the other, with and without iterations") {
  for (const bool is_static : {false, true})
    for (const bool persistent : {false, true})
      check({.persistent = persistent, .is_static = is_static, .cuts = {0, 3, 3}}, 1);
  check({.dtype = f8e4m3, .bm = 128, .trans_b = true, .cuts = {2}, .by_program = true}, 2);
  // What products of 8-bit floats leave is added where threads wait to copy, once.
  for (const bool trans_b : {false, true})
    check({.dtype = f8e4m3,
           .persistent = true,
           .trans_b = trans_b,
           .specialize = false,
           .cuts = {1, 4}},
          3);
}

TEST_CASE("blocks of a cluster share the iterations of a sum") {
  const ProductLoops shared[] = {
      {.adds_to_output = true, .split_k = 3},
      {.is_static = true, .adds_to_output = true, .split_k = 3},
      // With conditions in the loop, more blocks than iterations, and sums that threads add up.
      {.bk = 32, .converts = true, .skips = true, .split_k = 8},
      {.dtype = f8e4m3, .bm = 128, .split_k = 2}};
  for (const ProductLoops& p : shared) {
    CHECK(shares(p));
    check(p, 4);
  }
  // All blocks would store what lies in shared memory until they end.
  const ProductLoops in_smem{.adds_to_output = true, .in_smem = true, .split_k = 2};
  CHECK_FALSE(shares(in_smem));
  check(in_smem, 5);
}

TEST_CASE("blocks share a sum that ends where an array says, or before it begins") {
  // From what an array says, and from a number.
  const auto shared_sum = [](bool from_3) {
    return pallas_call(
        [=](Ref from, Ref to, Ref x, Ref o) {
          const auto add = [&](Index l, Value sum) { return sum + x[_] * (l % 7); };
          const Value init = full({64}, 5, i32);
          o[_] = from_3 ? loop(3, to[0], add, init) : loop(from[0], to[0], add, init);
        },
        {.name = "shared_sum", .out_type = {{64}, i32}, .compiler_params = {.split_k = 3}});
  };
  const auto number = [](std::int32_t n) { return Array::full({1}, i32, n); };
  const Array x = make_array<std::int32_t>({64}, [](std::int64_t i) { return i - 20; });
  for_each_target("shared_sum", [&](Target target) {
    for (const std::int32_t from : {INT32_MIN, -9, 0, 3, INT32_MAX})
      for (const std::int64_t count : {-10, 0, 1, 2, 3, 20}) {
        const std::int64_t end =
            count < 0 ? INT32_MIN : std::min<std::int64_t>(from + count, INT32_MAX);
        CAPTURE(from, end);
        std::int64_t factor = 0;
        for (std::int64_t l = from; l < end; ++l) factor += l % 7;
        const Array o = on_cpu(shared_sum(from == 3).on(target)(
            on(target, number(from)), on(target, number(static_cast<std::int32_t>(end))),
            on(target, x)));
        for (std::int64_t i = 0; i < 64; ++i)
          REQUIRE(o.data<std::int32_t>()[i] == 5 + (i - 20) * factor);
      }
  });
}

TEST_CASE("sums of products in loops that are drawn are those of plain loops") {
  for_seeds(1, 24, [](std::uint64_t seed) {
    Random random(seed);
    check(ProductLoops::drawn(random), seed);
  });
}
