#include "runtime/build/key.hpp"

#include "cache/text_digest.hpp"
#include "codegen/base/architecture.hpp"
#include "codegen/graph/transform.hpp"

namespace palladium::runtime {

cuda::Options text_options(const std::string& arch) {
  const Architecture known = parse_architecture(arch);
  return {.compute_capability = known.compute_capability, .is_specific = known.is_specific()};
}

cache::Key key_of(const graph::Graph& g, const std::string& arch) {
  const std::string bytes = graph::canonical_bytes(g);
  (void)parse_architecture(arch);  // what is unknown has no key
  return cache::key_of(
      {{"arch", arch}, {"graph", bytes}, {"name", g.name}, {"text", cache::text_digest}});
}

}  // namespace palladium::runtime
