#include "tests/conformance/whole_kernels.hpp"

#include <algorithm>

#include "codegen/base/files.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/error.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/tolerance.hpp"

namespace palladium::conformance {
namespace {

using nlohmann::json;

constexpr std::string_view prefix = "json-";
constexpr std::size_t most_bytes_of_graph = 1 << 24;
constexpr std::int64_t most_elements = 1 << 19;  // of all arrays: the interpreter is slow

struct Kernel {
  graph::Graph graph;
  std::vector<std::int64_t> symbols;
};

graph::Graph read(const std::string& file) {
  std::string text;
  if (const files::Outcome done = files::read(file, most_bytes_of_graph, text); !done)
    throw InternalError(fmt::format("{}: {}", file, done.message()));
  return graph::from_json(text);
}

/// Sizes of several blocks, the last of them ragged where facts allow it.
std::vector<std::int64_t> sizes_for(const graph::Graph& g) {
  std::vector<std::int64_t> sizes;
  for (std::uint32_t s = 0; static_cast<int>(s) < g.num_symbols; ++s) {
    const std::int64_t multiple = g.facts.multiple(s);
    sizes.push_back((150 + 20 * s) / multiple * multiple + multiple);
  }
  return sizes;
}

/// Why one call of its own says nothing of the kernel; "" if it does.
std::string unfit(const Kernel& k) {
  std::int64_t all = 0;
  for (const BlockMapping& m : k.graph.mapping.block_mappings) {
    std::int64_t n = 1;
    for (const Dim& d : m.array_aval.shape) {
      n *= evaluate(d, k.symbols);
      if (n > most_elements) break;
    }
    if ((all += n) > most_elements) return "arrays of many elements";
  }
  for (const graph::Inst& i : k.graph.insts)
    if (graph::effects(i.op).tells) return "tells the host something";
  return "";
}

}  // namespace

WholeKernels::WholeKernels(const std::string& folder, int random)
    : folder_(folder), random_(random) {
  if (folder.empty()) return;
  std::vector<std::string> names;
  if (const files::Outcome done = files::list(folder, names); !done)
    throw InternalError(fmt::format("{}: {}", folder, done.message()));
  for (const std::string& name : names)
    if (name.starts_with(prefix)) recorded_.push_back(name.substr(prefix.size()));
  std::ranges::sort(recorded_);
}

std::string WholeKernels::name(int number) const {
  const int recorded = static_cast<int>(recorded_.size());
  return number < recorded ? "recorded/" + recorded_[static_cast<std::size_t>(number)]
                           : fmt::format("random/{}", number - recorded);
}

json WholeKernels::run(int number, bool on_gpu) const {
  const int recorded = static_cast<int>(recorded_.size());
  Kernel k;
  if (number < recorded) {
    k.graph = read(folder_ + "/" + std::string(prefix) + recorded_[static_cast<std::size_t>(number)]);
    k.symbols = sizes_for(k.graph);
  } else {
    const auto seed = static_cast<std::uint64_t>(number - recorded);
    test::RandomKernel r = test::random_kernel(seed, {.elementary = seed % 4 == 0});
    k = {std::move(r.graph), std::move(r.symbols)};
  }
  const auto skipped = [](const std::string& why) { return json{{"state", "skipped"}, {"detail", why}}; };
  if (const std::string why = unfit(k); !why.empty()) return skipped(why);
  test::Random random(11);
  test::Call call = test::random_call(k.graph, k.symbols, random, true);
  for (std::size_t i = 0; i < static_cast<std::size_t>(k.graph.num_globals); ++i)
    std::ranges::fill(call.arrays[call.arrays.size() - 1 - i], std::byte{0});
  // A GPU has zeros out of bounds.
  test::Call expected = call;
  test::Tolerance tolerance;
  try {
    test::run_interpreter(k.graph, expected, false);
    tolerance = test::tolerance_of(k.graph, call, false);
  } catch (const Error& error) {
    return skipped(error.what());
  }
  if (!on_gpu) {
    (void)cuda::emit(k.graph, {.compute_capability = 90});
    return {{"state", "passed"}};
  }
  test::run_gpu(k.graph, call);
  const std::string problem = test::difference(k.graph, expected, call, tolerance);
  if (problem.empty()) return {{"state", "passed"}};
  return {{"state", "failed"}, {"detail", problem}, {"graph", graph::to_text(k.graph)}};
}

}  // namespace palladium::conformance
