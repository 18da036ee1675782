// Kernels as users write them, drawn at random: products in loops, chains of two products, streams
// that are folded, parts whose lengths data says, and graphs of all operations. A seed gives the
// same kernel everywhere. Nothing that one computes depends on the order of its programs or
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::test {

/// A kernel, and the value of each of its symbols in a call.
struct Sized {
  graph::Graph graph;
  std::vector<std::int64_t> symbols = {};
};

struct DrawnKernel {
  std::string family, words;
  Sized kernel;
  /// The same with a number for each symbol of `kernel`, or with symbols for extents that are
  /// numbers there; none where all extents decide blocks.
  std::optional<Sized> resized = {};
};

DrawnKernel drawn_kernel(std::uint64_t seed);

// ---- how it is drawn

/// An extent as it is recorded: a number, or a symbol for it.
struct Sizes {
  bool symbolic = false;
  Dim operator()(const char* name, std::int64_t n) const { return symbolic ? dim(name) : Dim(n); }
};

/// A kernel of a family, to be recorded with or without symbols.
using Recording = std::function<graph::Graph(const Sizes&)>;
struct OfFamily {
  std::string name, words;
  Recording record;
};
OfFamily draw_products(Random& random, const CompilerParams& params);
OfFamily draw_chain(Random& random, const CompilerParams& params);
OfFamily draw_stream(Random& random, const CompilerParams& params);
OfFamily draw_parts(Random& random, const CompilerParams& params);

}  // namespace palladium::test
