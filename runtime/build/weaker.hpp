// Kernels that rely on less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

struct Weaker {
  graph::Graph graph;
  std::vector<std::uint32_t> symbols;  // by symbol its number in the call's own graph
};

/// Graphs whose kernels serve every call that the specialisation's serves, those first that know
/// most: extents are not known to be equal, sizes are multiples of nothing, offsets long, rows
/// aligned to elements, rows apart at strides that the call gives. Of pointers and strides all
/// arrays lose it at once, of symbols each by itself where there are few.
std::vector<Weaker> weaker_graphs(const Specialization& s);

/// The specialisation that relies on nothing but what the options function asks of every call: it
/// serves all calls that are traced alike. Null for one of which there is no weaker one.
std::shared_ptr<Specialization> weakest(const Specialization& s);

/// Of calls that are traced alike a kernel keeps so many classes.
inline constexpr std::size_t most_classes = 6;

/// Classes that calls of other sizes, with arrays that lie alike, can be of: those that know most
/// first, at last the weakest; with the call's own most_classes at most. None of a kernel without
/// symbols.
std::vector<graph::Graph> reachable_classes(const Specialization& s);

/// How much a kernel relies on, to compare those of calls that are traced alike.
int strength(const graph::Graph& g);

}  // namespace palladium::runtime
