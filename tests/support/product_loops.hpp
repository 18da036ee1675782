// Programs that multiply matrices in one or several loops over K, one behind the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::test {

/// Sum of a product in parts of K: each loop adds to twice what the one before it left. Where they
/// end a program's place in the grid may say, so that some programs have no iteration of one.
struct ProductLoops {
  DType dtype = f16;
  std::int64_t bm = 64, bn = 64, bk = 64;
  int num_warps = 0, num_stages = 0;
  bool persistent = false, trans_b = false, is_static = false;
  bool adds_to_output = false;  // the first loop begins with what the output holds
  bool converts = false;        // a goes through f32
  bool in_smem = false;         // the output's block
  bool skips = false;           // every third step adds nothing
  int split_k = 0;
  std::optional<bool> specialize = {};
  /// Behind which steps loops end but the last, each not in front of the one before; with
  /// `by_program` so many more as a program's row of blocks.
  std::vector<int> cuts = {};
  bool by_program = false;
  std::int64_t most_k = 512;

  static ProductLoops drawn(Random& random);
  std::string text() const;

  /// Of a [m, k], b and, with adds_to_output, o [m, n] of f32. Where `is_static` it is for the
  /// sizes of a call alone.
  Kernel kernel() const;
  /// Types of its arguments for any size, or, where `is_static`, for these.
  std::vector<ArgType> types(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Of f32 matrices of small whole numbers, by plain loops.
  Array expected(const Array& a, const Array& b, const Array& o) const;

 private:
  PallasCallOptions options(const ShapeDtype& a, const ShapeDtype& b) const;
};

}  // namespace palladium::test
