// Products in loops inside of each other, for which a producer goes through all of these.
#include "tests/support/product_nests.hpp"

#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

void check(const ProductNests& p, std::uint64_t seed) {
  CAPTURE(p.text());
  for_each_target("product_nests", [&](Target target) {
    Random random(seed);
    const auto small = [&](auto) { return random.between(-1, 1); };
    const Array a = make_array<float>(p.shape_of_a(), small),
                b = make_array<float>(p.shape_of_b(), small),
                o = make_array<float>(p.shape_of_o(), small),
                numbers = make_array<std::int32_t>({ProductNests::loaded},
                                                   [&](auto) { return random.between(0, 9); }),
                expected = p.expected(a, b, numbers, o);
    const Array c =
        on_cpu(p.kernel().on(target)(on(target, a.astype(p.dtype)), on(target, b.astype(p.dtype)),
                                     on(target, numbers), on(target, o)));
    for (std::int64_t e = 0; e < c.size(); ++e) {
      INFO("element " << e);
      REQUIRE(c.data<float>()[e] == expected.data<float>()[e]);
    }
  });
}

}  // namespace

TEST_CASE("sums of products in drawn loops inside of each other are those of plain loops") {
  for_seeds(1, 24, [](std::uint64_t seed) {
    Random random(seed);
    check(ProductNests::drawn(random), seed);
  });
}
