// How much a test that tries many of a kind tries.
#pragma once

#include <cstdlib>

namespace palladium::test {

/// Whether all is tried that a release is tested with, as `scripts/test --full` does. Elsewhere a
/// test may try a part that has some of every kind.
inline bool is_full() { return std::getenv("PALLADIUM_TEST_FULL") != nullptr; }

}  // namespace palladium::test
