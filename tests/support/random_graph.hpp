// Random kernels for differential tests: valid, defined on every target, repeatable from a seed.
//
// A kernel reads several arrays (ragged blocks, windows with padding, squeezed dimensions),
// computes with every dtype, loops, conditions, masked and strided accesses, reductions and
// products, and writes every element of its outputs. What it computes is exact: floating-point sums
// and products get small whole numbers, divisors are never zero, no result depends on the sign of a
// zero or on the bits of a NaN. So two implementations must agree in every bit, but for the bits of
// NaNs and the sign of zeros; only with Options::elementary the outputs may differ by the op
// table's ulp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::test {

/// The same numbers everywhere, unlike the distributions of <random>.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  /// 0 .. n - 1.
  int below(int n) { return static_cast<int>(bits() % static_cast<std::uint64_t>(n)); }
  /// low .. high.
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }

 private:
  std::uint64_t state_;
};

/// A number for test data, as bits of `dtype`: mostly small, with a fraction for floats; sometimes
/// an extreme of the dtype. Never a NaN.
std::uint64_t random_number(Random& random, DType dtype);

struct RandomOptions {
  int statements = 24;     // of the body, roughly
  int max_elements = 512;  // of a block, and of any value
  int depth = 2;           // of loops and conditions inside each other
  bool ragged = true;      // blocks that reach over the end of their array
  bool symbolic = true;    // symbolic array extents and grid sizes
  bool revisited = true;   // outputs that accumulate along a grid axis
  bool scratch = true;
  bool memory = true;        // masks, views, swaps
  bool contractions = true;  // reductions and dots
  bool aliases = false;      // an input aliased to an output
  bool elementary = false;   // some outputs are an elementary function of an exact value
  std::vector<DType> dtypes = {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};
};

struct RandomKernel {
  graph::Graph recorded;              // as a trace would leave it before canonicalize
  graph::Graph graph;                 // canonical and verified
  std::vector<std::int64_t> symbols;  // value of each symbolic dim of `graph`

  /// Size of the array of block mapping `i`.
  std::vector<std::int64_t> array_shape(int i) const;
};

RandomKernel random_kernel(std::uint64_t seed, const RandomOptions& options = {});

}  // namespace palladium::test
