// Bodies of pallas_call as data: drawn at random, recorded as kernels, and computed by plain loops
// that know neither graph nor interpreter.
#pragma once

#include <cstdint>
#include <vector>

#include "palladium/palladium.hpp"

namespace palladium::test::plain {

using Sizes = std::vector<std::int64_t>;

enum class Kind : std::uint8_t {
  number,
  counted,     // iota along dimension n
  program,     // program_id(n)
  loaded,      // the block of input n
  loaded_row,  // a row of it, at a
  loaded_at,   // rows of it, at the numbers a
  cast,
  coerced,  // to a shape: the elements in a row, broadcast, or the sum of all
  unary,    // n of them
  binary,
  compared,
  chosen,  // where(a, b, c)
  transposed,
  leading,  // n times, along a dimension in front
  summed,   // over dimension n
  largest,
  smallest,
  place_of_largest,
  accumulated,  // sums along dimension n, from the end if m
  product,
  flipped,
  doubled,   // one behind the other along the first dimension
  part,      // of the first dimension: m from n on
  part_at,   // m of the first dimension from a on, moved inside
  taken,     // of the first dimension, at the numbers b, moved inside
  looped,    // m times, a being carried through steps[0]
  branched,  // steps[a in 0 .. 1]
};

struct Step;
/// Values are numbered as they come: those outside, parameters, then one for each step.
struct Program {
  std::vector<Step> steps;
  int result = 0;
};
struct Step {
  Kind kind = Kind::number;
  DType dtype = i32;
  Sizes shape = {};
  int a = 0, b = 0, c = 0;
  std::int64_t n = 0, m = 0;
  std::vector<Program> inside = {};
};

struct Axis {
  std::int64_t block = 1, programs = 1, extent = 1;
};

struct Plan {
  std::uint64_t seed = 0;
  std::vector<Axis> axes;
  std::vector<DType> inputs;  // each is cut along all axes, and filled beyond them
  DType output = i32;
  bool accumulates = false;  // over the last axis, by sums
  Program body;

  Sizes block() const {
    Sizes size;
    for (const Axis& a : axes) size.push_back(a.block);
    return size;
  }
  Sizes extents() const {
    Sizes size;
    for (const Axis& a : axes) size.push_back(a.extent);
    return size;
  }
  std::size_t output_axes() const { return axes.size() - (accumulates ? 1 : 0); }
};

inline constexpr double fill = 3;
inline constexpr std::int64_t most_elements = 256;

inline std::int64_t count(const Sizes& shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

inline Shape to_shape(const Sizes& sizes) {
  Shape shape;
  for (const std::int64_t n : sizes) shape.push_back(n);
  return shape;
}

Plan draw(std::uint64_t seed);
Kernel kernel_of(const Plan& plan);

/// Every number of these dtypes is a double.
struct Numbers {
  DType dtype;
  Sizes shape;
  std::vector<double> at;
};

/// What the programs of a call store, one after the other.
Numbers meant(const Plan& plan, const std::vector<Numbers>& inputs);

}  // namespace palladium::test::plain
