#include "runtime/build/key.hpp"

#include <charconv>
#include <string_view>

#include "cache/text_digest.hpp"
#include "codegen/graph/transform.hpp"

namespace palladium::runtime {
namespace {

constexpr int oldest_capability = 75;
constexpr int newest_capability = 121;

}  // namespace

int compute_capability(const std::string& arch, Location at) {
  const std::string_view prefix = "sm_";
  int number = 0;
  const char* end = arch.data() + arch.size();
  if (arch.starts_with(prefix)) {
    const auto [rest, bad] = std::from_chars(arch.data() + prefix.size(), end, number);
    const std::string_view variant(rest, static_cast<std::size_t>(end - rest));
    if (bad == std::errc() && number >= oldest_capability && number <= newest_capability &&
        (variant.empty() || (number >= 90 && (variant == "a" || variant == "f"))))
      return number;
  }
  throw CompileError(at, "unknown architecture '" + arch +
                             "'; kernels are compiled for sm_75, sm_80, sm_86, sm_89, sm_90a, "
                             "sm_100a, sm_103a, sm_120a");
}

cuda::Options text_options(const std::string& arch, Location at) {
  return {.compute_capability = compute_capability(arch, at), .is_specific = arch.ends_with('a')};
}

cache::Key key_of(const graph::Graph& g, const std::string& arch) {
  const std::string bytes = graph::canonical_bytes(g);
  compute_capability(arch, g.at);
  return cache::key_of(
      {{"arch", arch}, {"graph", bytes}, {"name", g.name}, {"text", cache::text_digest}});
}

}  // namespace palladium::runtime
