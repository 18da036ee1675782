#include "tests/conformance/whole_kernels.hpp"

#include <algorithm>
#include <utility>

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

using Kernel = WholeKernels::Kernel;

constexpr std::string_view prefix = "json-";
constexpr std::size_t most_bytes_of_graph = 1 << 24;
constexpr std::int64_t most_elements = 1 << 19;  // of all arrays: the interpreter is slow

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

/// Whether rows of a dense array begin where the kernel relies on it.
bool is_aligned(const BlockMapping& m, const std::vector<std::int64_t>& symbols) {
  if (m.dense) return true;
  const std::vector<Dim> shape(m.array_aval.shape.begin(), m.array_aval.shape.end());
  std::int64_t bytes = m.array_aval.dtype.bytes();
  for (std::size_t d = shape.size(); d-- > 1;)
    if ((bytes *= evaluate(shape[d], symbols)) % m.alignment != 0) return false;
  return true;
}

/// Whether a Ref's elements are named by an array, which may name one of them twice.
bool names_elements(const graph::Graph& g, graph::ValueId ref) {
  for (graph::ValueId v = ref; g[v].op == graph::Op::At; v = g[v].args[0])
    for (std::size_t i = 1; i < g[v].args.size(); ++i)
      if (!g[g[v].args[i]].type.shape.empty()) return true;
  return false;
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
    if (!is_aligned(m, k.symbols)) return "rows that lie apart";
  }
  const auto has = [&](const auto& kind) { return std::ranges::any_of(k.graph.insts, kind); };
  using graph::Inst;
  if (has([](const Inst& i) { return graph::effects(i.op).tells; }))
    return "tells the host something";
  if (k.graph.no_auto_barriers) return "nobody waits but where its body says so";
  if (has([&](const Inst& i) {
        return (i.op == graph::Op::Atomic || i.op == graph::Op::Store || i.op == graph::Op::Swap) &&
               names_elements(k.graph, graph::MemoryView::of(i).ref);
      }))
    return "which of those that write an element is the last";
  // How far sums of products by hand may lie apart is not known where numbers are not whole.
  if (has([](const Inst& i) { return i.op == graph::Op::Wgmma; }) &&
      has([](const Inst& i) { return graph::info(i.op).ulp > 0; }))
    return "products by hand of what functions give";
  return "";
}

/// The kernel's own random arrays, and memory of the launch as it starts.
test::Call call_of(const Kernel& k) {
  test::Random random(11);
  test::Call call = test::random_call(k.graph, k.symbols, random, true);
  for (std::size_t i = 0; i < static_cast<std::size_t>(k.graph.num_globals); ++i)
    std::ranges::fill(call.arrays[call.arrays.size() - 1 - i], std::byte{0});
  return call;
}

/// A GPU has zeros out of bounds.
test::Call interpreted(const graph::Graph& g, test::Call call, interpreter::Options options) {
  options.poison = false;
  options.detect_races = true;
  test::run_interpreter(g, call, options);
  return call;
}

/// Why a GPU may give something else: elements that nobody writes, or an order of programs that
/// shows. "" if neither.
std::string undetermined(const graph::Graph& g, const test::Call& call,
                         const test::Call& expected) {
  test::Call zeros = call;
  for (std::size_t i = static_cast<std::size_t>(g.mapping.num_inputs); i < zeros.arrays.size(); ++i)
    std::ranges::fill(zeros.arrays[i], std::byte{0});
  if (!test::difference(g, interpreted(g, zeros, {}), expected).empty())
    return "some elements are not written";
  for (const std::uint64_t seed : {5, 6, 7})
    if (!test::difference(g, interpreted(g, call, {.seed = seed}), expected).empty())
      return "it depends on the order of programs";
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

Kernel WholeKernels::kernel(int number) const {
  const int recorded = static_cast<int>(recorded_.size());
  if (number < recorded) {
    graph::Graph g =
        read(folder_ + "/" + std::string(prefix) + recorded_[static_cast<std::size_t>(number)]);
    std::vector<std::int64_t> symbols = sizes_for(g);
    return {std::move(g), std::move(symbols)};
  }
  const auto seed = static_cast<std::uint64_t>(number - recorded);
  test::RandomKernel r = test::random_kernel(seed, {.elementary = seed % 4 == 0});
  return {std::move(r.graph), std::move(r.symbols)};
}

json WholeKernels::run(int number, On on) const {
  const Kernel k = kernel(number);
  const graph::Graph& g = k.graph;
  const auto told = [&](const char* state, const std::string& why) {
    return json{{"state", state}, {"detail", why}};
  };
  if (const std::string why = unfit(k); !why.empty()) return told("skipped", why);
  test::Call call = call_of(k);
  test::Call expected;
  test::Tolerance tolerance;
  try {
    expected = interpreted(g, call, {});
    if (const std::string why = undetermined(g, call, expected); !why.empty())
      return told("skipped", why);
    tolerance = test::tolerance_of(g, call, false);
  } catch (const Error& error) {
    return told("skipped", error.what());
  }
  if (on == On::nothing) {
    (void)cuda::emit(g, {.compute_capability = 90});
    return {{"state", "passed"}};
  }
  if (on == On::emulator) {
    test::run_emulator(g, {.compute_capability = 90}, call, false);
  } else {
    try {
      test::run_gpu(g, call);
    } catch (const CudaError& error) {
      const std::string why = error.what();
      if (why.find("COOPERATIVE_LAUNCH_TOO_LARGE") == why.npos) throw;
      return told("skipped", why);
    }
  }
  const std::string problem = test::difference(g, expected, call, tolerance);
  if (problem.empty()) return {{"state", "passed"}};
  json record = told("failed", problem);
  record["graph"] = graph::to_text(g);
  return record;
}

}  // namespace palladium::conformance
