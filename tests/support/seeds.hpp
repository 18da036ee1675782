// Tests of random programs: the same seeds each time, or many more of them.
#pragma once

#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdlib>
#include <exception>

#include "tests/support/full.hpp"

namespace palladium::test {

/// Calls `check` with `count` seeds from `first` on if the run is a full one, else with half of
/// them, or with as many as PALLADIUM_TEST_SEEDS says. What is thrown is a failure that names its
/// seed, and the next seeds are still tried.
void for_seeds(std::uint64_t first, std::uint64_t count, const auto& check) {
  if (const char* asked = std::getenv("PALLADIUM_TEST_SEEDS"))
    count = std::strtoull(asked, nullptr, 10);
  else if (!is_full())
    count = (count + 1) / 2;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    INFO("seed " << seed);
    try {
      check(seed);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
}

}  // namespace palladium::test
