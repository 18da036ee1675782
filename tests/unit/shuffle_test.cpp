#include "codegen/base/shuffle.hpp"

#include <set>
#include <vector>

#include <catch2/catch_test_macros.hpp>

using palladium::Shuffle;

TEST_CASE("a shuffle of any number of things is a permutation of them") {
  for (std::uint64_t n = 1; n < 300; ++n)
    for (const std::uint64_t seed : {0u, 1u, 77u}) {
      const Shuffle shuffle(n, seed);
      std::vector<int> hits(n);
      for (std::uint64_t i = 0; i < n; ++i) ++hits[shuffle(i)];
      CAPTURE(n, seed);
      REQUIRE(hits == std::vector<int>(n, 1));
    }
}

TEST_CASE("a shuffle of more things than fit a list stays among them, and repeats none") {
  for (const std::uint64_t n : {(1ull << 40) + 1, (1ull << 62) + 12345, ~0ull >> 1}) {
    const Shuffle shuffle(n, 5);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const std::uint64_t at = shuffle(n - 1 - i * 37);
      CHECK(at < n);
      CHECK(seen.insert(at).second);
    }
  }
}

TEST_CASE("seeds give orders that differ, one seed the same") {
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<std::uint64_t> order, again;
    for (std::uint64_t i = 0; i < 16; ++i) {
      order.push_back(Shuffle(16, seed)(i));
      again.push_back(Shuffle(16, seed)(i));
    }
    CHECK(order == again);
    orders.insert(order);
  }
  CHECK(orders.size() == 20);
}
