// The graph of a kernel of benchmarks/user_kernels.
#pragma once

#include <vector>

#include "benchmarks/user_kernels/kernels.hpp"
#include "codegen/graph/transform.hpp"

namespace palladium::test {

inline graph::Graph graph_of(const user_kernels::UserKernel& k) {
  const std::vector<ArgType> types(k.inputs.begin(), k.inputs.end());
  return graph::from_json(k.kernel.lower(types).json());
}

}  // namespace palladium::test
