// Random kernels: what canonicalize does to a graph changes nothing that it computes.
#include "codegen/base/dim.hpp"
#include "codegen/graph/transform.hpp"
#include "tests/interpreter/tensors.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

std::vector<Tensor> arrays_of(const RandomKernel& kernel, std::uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> arrays;
  const GridMapping& mapping = kernel.graph.mapping;
  for (std::size_t i = 0; i < mapping.block_mappings.size(); ++i) {
    const DType dtype = mapping.block_mappings[i].array_aval.dtype;
    Tensor t(dtype, kernel.array_shape(static_cast<int>(i)));
    if (i < static_cast<std::size_t>(mapping.num_inputs))
      for (std::int64_t e = 0; e < t.size(); ++e) t.set_bits(e, random_number(random, dtype));
    for (std::size_t axis = 0; axis < mapping.bounds.size(); ++axis)
      if (mapping.bounds[axis] == static_cast<int>(i)) {
        const auto most = static_cast<int>(evaluate(mapping.grid[axis], kernel.symbols));
        t.set_bits(0, graph::to_bits(dtype, std::int64_t{random.between(0, most)}));
      }
    arrays.push_back(std::move(t));
  }
  return arrays;
}

// The arrays after a run; of an aliased pair both are the output.
std::vector<Tensor> after(const graph::Graph& g, const RandomKernel& kernel,
                          std::vector<Tensor> arrays, std::uint64_t seed) {
  interpreter::Invocation call;
  for (Tensor& t : arrays) call.arrays.push_back(t.buffer());
  for (const graph::Alias& a : g.aliases)
    call.arrays[static_cast<std::size_t>(g.mapping.num_inputs + a.output)] =
        call.arrays[static_cast<std::size_t>(a.input)];
  Random random(seed + 1);
  for (const graph::Argument& a : g.arguments)
    if (a.kind == graph::Argument::Kind::scalar)
      call.scalars.push_back(random_number(random, a.dtype));
  call.symbols = kernel.symbols;
  interpreter::run(g, call);
  return arrays;
}

// Whether both agree; the first difference is a failure with both graphs.
bool agree(std::uint64_t seed, const test::RandomOptions& options) {
  const RandomKernel kernel = random_kernel(seed, options);
  const std::vector<Tensor> arrays = arrays_of(kernel, seed);
  // Not contracted: an fma of 16-bit floats rounds once less than the product and the sum.
  graph::Graph as_recorded = kernel.recorded;
  as_recorded.fma = false;
  const std::vector<Tensor> canonical =
      after(graph::canonicalize(as_recorded), kernel, arrays, seed);
  // The recorded graph numbers its symbols in its own way.
  as_recorded.mapping.grid = kernel.graph.mapping.grid;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    as_recorded.mapping.block_mappings[i].array_aval =
        kernel.graph.mapping.block_mappings[i].array_aval;
  const std::vector<Tensor> recorded = after(as_recorded, kernel, arrays, seed);
  CAPTURE(seed);
  for (std::size_t i = 0; i < arrays.size(); ++i)
    for (std::int64_t e = 0; e < arrays[i].size(); ++e) {
      if (canonical[i].bits(e) == recorded[i].bits(e)) continue;
      const double x = canonical[i][e], y = recorded[i][e];
      if (std::isnan(x) && std::isnan(y)) continue;
      CAPTURE(i, e, x, y, graph::to_text(kernel.graph), graph::to_text(kernel.recorded));
      FAIL_CHECK("differs");
      return false;
    }
  return true;
}

}  // namespace

TEST_CASE("canonical order does not change what random kernels compute") {
  for_seeds(1, 300, [](std::uint64_t seed) { CHECK(agree(seed, {})); });
}

TEST_CASE("canonical order does not change what random kernels with aliases compute") {
  for_seeds(1, 100, [](std::uint64_t seed) { CHECK(agree(seed, {.aliases = true})); });
}
