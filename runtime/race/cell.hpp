// A program's access as one word, for the maps of who wrote and who read.
#pragma once

#include <cstdint>

#include "runtime/race/writer_map.hpp"

namespace palladium::race {

inline constexpr std::uint64_t nobody = 0;

inline std::uint64_t cell_of(Write w) { return (std::uint64_t{w.program} + 1) << 32 | w.tag; }
/// Precondition: it is not nobody.
inline Write write_of(std::uint64_t cell) {
  return {static_cast<std::uint32_t>((cell >> 32) - 1), static_cast<std::uint32_t>(cell)};
}
inline bool is_by(std::uint64_t cell, std::uint32_t program) {
  return cell >> 32 == std::uint64_t{program} + 1;
}

}  // namespace palladium::race
