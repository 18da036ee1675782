// Loops of products, of which some are made of what is computed of others: drawn at random, of
// whole numbers, so that plain loops tell what they give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/block_loop.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::test {

struct LateProducts {
  /// What is computed of an element s of a product, and of `t`, that of another.
  enum class Tree { bare, clamped, stepped, gated, divided, seen, of_row, of_carry };
  /// What a sum is multiplied by.
  enum class Scale { none, negated, halved, by_row, by_carry, by_iteration };
  /// q, and more of it, by a block of keys, transposed.
  struct First {
    int key = 0;      // which block
    int second = -1;  // another one, by which the same is multiplied and added
  };
  /// sum = sum * scale + A * block, A a tree of the first products, or of one by W of these.
  struct Late {
    Tree tree = Tree::clamped;
    int of = 0, beside = 0;  // first products
    bool by_middle = false;  // A is made of a product by W of what is made of those
    bool by_key = false;     // the block is one of keys, else of values
    int block = 0;
    Scale scale = Scale::none;
    bool behind = false;  // what is added is multiplied, too
  };
  enum class Extra { none, stores_first, stores_product, reads_sum, sums_own };

  BlockLoop loop;  // its body is made of what follows
  int queries = 1, keys = 1, values = 1;
  std::int64_t d = 32, d_values = 32;
  std::vector<First> firsts = {{}};
  std::vector<Late> lates = {{}};
  Extra extra = Extra::none;
  bool carries_top = false, loads_again = false;
  std::uint64_t order = 0;  // of the statements of an iteration

  static LateProducts drawn(Random& random);
  /// Its arrays, as what it is made of asks for; drawn() has called it.
  void set_arrays();
  std::string text() const;
  graph::Graph graph() const;

  /// Of the arrays in order, by plain loops: sums, then what is kept, where it is.
  std::vector<std::vector<float>> expected(const std::vector<std::vector<float>>& arrays) const;
  bool has_middle() const;
};

}  // namespace palladium::test
