// Layouts of registers that a user names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

struct RegisterLayout {
  enum class Kind : std::int64_t {
    splat,
    strided,
    wgmma,
    wgmma_8bit,
    wgmma_upcast_2x,
    wgmma_upcast_4x,
    wgmma_transposed,
    mma_lhs,
    mma_rhs,
    mma_acc,
    tiled
  };
  Kind kind = Kind::splat;
  std::vector<std::int64_t> numbers = {};  // what its name takes
  std::vector<std::int64_t> reduced = {};  // dimensions that are no more, ascending

  /// A TILED one by its parts.
  struct Tiles {
    std::vector<std::vector<int>> tiles;
    std::vector<int> warp_dims, lane_dims;
    int vector_dim = -1;
  };
  Tiles tiles() const;
  static std::vector<std::int64_t> encode(const Tiles& tiles);

  std::vector<std::int64_t> encode() const;
  static RegisterLayout of(const Inst& layout_cast);
  /// Whether the numbers are those of one.
  static bool is_well_formed(const std::vector<std::int64_t>& ints);
};
/// "WGMMA.reduce({1})"
std::string to_string(const RegisterLayout& layout);

}  // namespace palladium::graph
