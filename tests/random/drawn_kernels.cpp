#include "tests/random/drawn_kernels.hpp"

#include "codegen/base/dim.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/classes.hpp"
#include "codegen/graph/transform.hpp"

namespace palladium::test {
namespace {

CompilerParams draw_params(Random& random) {
  CompilerParams params{.num_warps = random.pick({0, 0, 0, 4, 8}),
                        .fma = random.chance(80),
                        .num_stages = random.pick({0, 0, 2, 3, 5}),
                        .persistent = random.chance(40)};
  if (random.chance(75)) params.warp_specialize = random.chance(80);
  return params;
}

std::string words_of(const CompilerParams& p) {
  return fmt::format("{} warps, {} stages{}{}{}", p.num_warps, p.num_stages,
                     p.persistent ? ", persistent" : "",
                     !p.warp_specialize   ? ""
                     : *p.warp_specialize ? ", specialised"
                                          : ", not specialised",
                     p.fma ? "" : ", no fma");
}

/// What the symbols of `g` are where its arrays have the extents of `numbers`.
std::vector<std::int64_t> symbols_of(const graph::Graph& g, const graph::Graph& numbers) {
  std::vector<std::int64_t> symbols(static_cast<std::size_t>(g.num_symbols), -1);
  for (std::size_t i = 0; i < g.mapping.block_mappings.size(); ++i) {
    const Shape &shape = g.mapping.block_mappings[i].array_aval.shape,
                &sizes = numbers.mapping.block_mappings[i].array_aval.shape;
    for (int d = 0; d < shape.rank(); ++d) {
      std::vector<std::uint32_t> in;
      collect_symbols(shape[d], in);
      if (in.size() == 1 && shape[d].same(dim_symbol(in[0]))) symbols[in[0]] = sizes[d].value();
    }
  }
  return symbols;
}

/// As a call would specialise it: on the class of its sizes.
void know_sizes(Sized& kernel) {
  graph::set_multiples(kernel.graph, kernel.symbols);
  kernel.graph.short_offsets = graph::has_runtime_reach(kernel.graph);
}

DrawnKernel sized(Random& random, const OfFamily& family) {
  Sized numbers{family.record({.symbolic = false})};
  Sized symbolic{family.record({.symbolic = true})};
  symbolic.symbols = symbols_of(symbolic.graph, numbers.graph);
  if (random.chance(50)) know_sizes(symbolic);
  if (random.chance(50)) std::swap(numbers, symbolic);
  return {family.name, family.words, std::move(numbers), std::move(symbolic)};
}

/// The graph with the numbers that its symbols have.
Sized with_numbers(const Sized& kernel) {
  graph::Graph g = kernel.graph;
  for (Dim& d : g.mapping.grid) d = evaluate(d, kernel.symbols);
  for (BlockMapping& m : g.mapping.block_mappings) {
    Shape& shape = m.array_aval.shape;
    for (int d = 0; d < shape.rank(); ++d) shape[d] = evaluate(shape[d], kernel.symbols);
  }
  g.num_symbols = 0;
  g.facts = {};
  g.short_offsets = graph::has_runtime_reach(g);
  return {graph::canonicalize(g)};
}

DrawnKernel any_graph(std::uint64_t seed, Random& random, const CompilerParams& params) {
  RandomOptions of;
  of.max_elements = random.pick({512, 512, 2048});
  of.aliases = random.chance(30);
  of.elementary = random.chance(25);
  RandomKernel r = random_kernel(seed, of);
  DrawnKernel drawn{
      "graph", "a graph of any operations", {std::move(r.graph), std::move(r.symbols)}};
  graph::Graph& g = drawn.kernel.graph;
  g.names.clear();  // of which the text of a graph, other than what is emitted, has none
  g.persistent = params.persistent;
  for (graph::Body& b : g.bodies) {
    b.num_warps = params.num_warps;
    b.num_stages = params.num_stages;
    b.warp_specialize = params.warp_specialize;
  }
  if (g.num_symbols > 0) drawn.resized = with_numbers(drawn.kernel);
  return drawn;
}

}  // namespace

DrawnKernel drawn_kernel(std::uint64_t seed) {
  Random random(seed);
  const CompilerParams params = draw_params(random);
  const std::uint64_t family = seed * 7 % 20;  // so that a few seeds have all of them
  DrawnKernel drawn;
  if (family < 7)
    drawn = sized(random, draw_products(random, params));
  else if (family < 11)
    drawn = sized(random, draw_chain(random, params));
  else if (family < 14)
    drawn = sized(random, draw_stream(random, params));
  else if (family < 16)
    drawn = sized(random, draw_parts(random, params));
  else
    drawn = any_graph(seed, random, params);
  drawn.words += ", " + words_of(params);
  return drawn;
}

}  // namespace palladium::test
