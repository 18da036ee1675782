// Waits of tests for what another process or thread does.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <thread>

namespace palladium::test {

/// Returns once `condition` holds; the test fails if that takes longer than a busy machine needs.
void wait_until(const char* what, const auto& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) FAIL("waited in vain for " << what);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace palladium::test
