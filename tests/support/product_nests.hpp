// Programs that multiply matrices in loops inside of each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::test {

/// A whole number that is not negative, of the numbers of loops and the program.
struct NestNumber {
  int constant = 0, by_program = 0, by_turn = 0;
  std::vector<int> by_loop = {};  // from the outermost on
  int below = 1;                  // it is taken modulo this
  bool is_loaded = false;         // an element of an array has its place
};

/// A step of a program that adds up a [bm, bn] sum.
struct NestStep {
  enum class Kind {
    product,  // sum += a block of a, or what is held, by a block of b
    scaled,   // sum += sum, as far as sums are exact
    loop,     // the body for each number
    fresh,    // sum += what the body makes of zeros
    chosen,   // the body where a number is odd
    held,     // the body, in which a block of a is held
    stored,   // slot of the output = sum
  } kind = Kind::product;
  NestNumber row = {}, depth = {}, column = {};  // of blocks; `row` is the number of a condition
  NestNumber low = {}, high = {};
  bool is_of_held = false;
  std::vector<NestStep> body = {};
};

/// Programs, one behind the other or beside each other, of such steps.
struct ProductNests {
  DType dtype = f16;
  std::int64_t bm = 64, bn = 64, bk = 64;
  int programs = 2, num_warps = 0, num_stages = 0;
  bool trans_b = false, persistent = false, counts_turns = false;
  bool is_sequential = false;  // the programs are those of a sequential axis
  std::optional<bool> specialize = {};
  std::vector<NestStep> body = {};

  static constexpr int rows = 3, columns = 2, depths = 4, slots = 3, loaded = 8;  // blocks

  static ProductNests drawn(Random& random);
  std::string text() const;

  /// Of a [rows bm, depths bk], b [depths bk, columns bn], `loaded` i32 numbers and o, the output
  /// that it returns, f32 [programs, slots, bm, bn].
  Kernel kernel() const;
  Shape shape_of_a() const { return {rows * bm, depths * bk}; }
  Shape shape_of_b() const {
    return trans_b ? Shape{columns * bn, depths * bk} : Shape{depths * bk, columns * bn};
  }
  Shape shape_of_o() const { return {programs, slots, bm, bn}; }
  /// Of f32 matrices of small whole numbers, by plain loops.
  Array expected(const Array& a, const Array& b, const Array& numbers, const Array& o) const;
};

}  // namespace palladium::test
