// How much a test that tries many of a kind tries.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace palladium::test {

/// Whether all is tried that a release is tested with, as `scripts/test --full` does. Elsewhere a
/// test may try a part that has some of every kind.
inline bool is_full() { return std::getenv("PALLADIUM_TEST_FULL") != nullptr; }

/// Of calls drawn at random those that are emulated, too: of the first, which every run tries, one
/// in ten, of others one in twenty.
inline bool is_emulated(std::uint64_t seed) { return seed % (seed <= 200 ? 10 : 20) == 0; }

}  // namespace palladium::test
