#include "tests/random/eight_ways.hpp"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "codegen/cuda/lower.hpp"
#include "codegen/cuda/printer.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/error.hpp"
#include "runtime/build/components.hpp"
#include "runtime/build/key.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/lowered_text.hpp"

namespace palladium::test {
namespace {

constexpr const char* toolchain = "0123456789abcdef";  // of no compiler

/// Most with TMA, some without.
std::string drawn_arch(std::uint64_t seed) {
  return Random(seed + 2).chance(80) ? "sm_90a" : "sm_80";
}

Verdict differs(std::string why) { return {Verdict::Kind::differs, std::move(why)}; }
Verdict does_not_apply(std::string why) { return {Verdict::Kind::does_not_apply, std::move(why)}; }

/// Why an architecture may have no room for a kernel.
bool is_of_room(const std::string& message) {
  for (const char* words : {"registers per thread, at most", "bytes of shared memory, sm_"})
    if (message.find(words) != message.npos) return true;
  return false;
}

/// The first lines in which two texts differ; "" if they do not.
std::string first_difference(const std::string& a, const std::string& b) {
  if (a == b) return "";
  const auto [x, y] = std::ranges::mismatch(a, b);
  const auto line = [](const std::string& text, std::string::const_iterator at) {
    const auto from = static_cast<std::size_t>(at - text.begin());
    const std::size_t before = from == 0 ? text.npos : text.rfind('\n', from - 1);
    const std::size_t begin = before == text.npos ? 0 : before + 1;
    return text.substr(begin, text.find('\n', from) - begin);
  };
  return "\n  " + line(a, x) + "\n  " + line(b, y);
}

}  // namespace

const char* name_of(Way way) {
  switch (way) {
  case Way::interpreter: return "interpreter";
  case Way::emulator: return "emulator";
  case Way::graph_text: return "graph as text";
  case Way::lowered_text: return "lowered program as text";
  case Way::sizes: return "symbols and numbers";
  case Way::stages: return "one stage";
  case Way::order: return "other orders";
  case Way::cache: return "cache";
  }
  return "";
}

EightWays::EightWays(std::uint64_t seed)
    : seed_(seed), arch_(drawn_arch(seed)), drawn_(drawn_kernel(seed)) {
  try {
    emitted_ = cuda::emit(drawn_.kernel.graph, options());
  } catch (const CompileError& error) {
    if (!is_of_room(error.what())) throw;
    refusal_ = error.what();
  }
}

cuda::Options EightWays::options() const { return runtime::text_options(arch_); }

std::string EightWays::graph_text() const { return graph::to_text(drawn_.kernel.graph); }

Made EightWays::made() const {
  const lowered::Program l = cuda::lower(drawn_.kernel.graph, options());
  return {.producer = std::ranges::any_of(
              l.bodies, [](const lowered::Body& b) { return b.agents.size() > 1; }),
          .sends = std::ranges::any_of(l.storages, &lowered::Storage::is_sent),
          .stages = std::ranges::any_of(l.rings, [](const auto& r) { return r.slots > 1; }),
          .persists = emitted_.persistent,
          .several_blocks = evaluate(emitted_.blocks, drawn_.kernel.symbols) > 1};
}

cache::Entry EightWays::entry() const {
  const graph::Graph& g = drawn_.kernel.graph;
  const auto text = std::as_bytes(std::span(emitted_.text));
  return {.key = runtime::key_of(g, arch_),
          .toolchain = toolchain,
          .metadata = {.kernel = g.name,
                       .function = emitted_.entry,
                       .arch = arch_,
                       .launch = runtime::to_json(runtime::plan_of(emitted_)),
                       .components = runtime::components_of(g, arch_)},
          .cubin = {text.begin(), text.end()},
          .ptx = graph_text(),
          .source = cuda::compiled_text(g, emitted_)};
}

std::array<Verdict, num_ways> EightWays::run(const cache::Store& entries) {
  Random random(seed_ + 1);
  start_ = random_call(drawn_.kernel.graph, drawn_.kernel.symbols, random, true);
  std::array<Verdict, num_ways> verdicts;
  for (int i = 0; i < num_ways; ++i) {
    try {
      verdicts[static_cast<std::size_t>(i)] = run(Way(i), entries);
    } catch (const std::exception& error) {
      verdicts[static_cast<std::size_t>(i)] = differs(error.what());
    }
  }
  return verdicts;
}

Verdict EightWays::run(Way way, const cache::Store& entries) {
  switch (way) {
  case Way::interpreter: return interpreted();
  case Way::emulator: return emulated();
  case Way::graph_text: return by_graph_text();
  case Way::lowered_text: return by_lowered_text();
  case Way::sizes: return resized();
  case Way::stages: return without_stages();
  case Way::order: return reordered();
  case Way::cache: return stored(entries);
  }
  return differs("no such way");
}

Verdict EightWays::interpreted() {
  expected_ = start_;
  run_interpreter(drawn_.kernel.graph, expected_);
  Call shuffled = start_;
  run_interpreter(drawn_.kernel.graph, shuffled, {.poison = true, .seed = seed_});
  return same_as(expected_, shuffled);
}

Verdict EightWays::emulated() {
  emulated_ = start_;
  run_text(drawn_.kernel.graph, emitted_.text, runtime::plan_of(emitted_), emulated_);
  return judged(emulated_);
}

Verdict EightWays::by_graph_text() const {
  const std::string text = graph_text();
  const graph::Graph read = graph_of(text);
  if (const std::string d = first_difference(text, graph::to_text(read)); !d.empty())
    return differs("its text" + d);
  if (const std::string d = first_difference(emitted_.text, cuda::emit(read, options()).text);
      !d.empty())
    return differs("the emitted text" + d);
  Call result = start_;
  run_interpreter(read, result, {.poison = true});
  return same_as(expected_, result);
}

Verdict EightWays::by_lowered_text() const {
  const std::string text = lowered::to_full_text(cuda::lower(drawn_.kernel.graph, options()));
  const lowered::Program read = lowered_of(text);
  if (const std::string d = first_difference(text, lowered::to_full_text(read)); !d.empty())
    return differs("its text" + d);
  const std::string printed = cuda::print(cuda::thread_program(read)).text;
  if (const std::string d = first_difference(emitted_.text, printed); !d.empty())
    return differs("the emitted text" + d);
  return {};
}

Verdict EightWays::resized() const {
  if (!drawn_.resized) return does_not_apply("all extents decide blocks");
  return other(*drawn_.resized, true);
}

Verdict EightWays::without_stages() const {
  Sized kernel = drawn_.kernel;
  for (graph::Body& b : kernel.graph.bodies) b.num_stages = 1;
  return other(kernel, false);
}

Verdict EightWays::other(const Sized& kernel, bool must_differ) const {
  cuda::Emitted emitted;
  try {
    emitted = cuda::emit(kernel.graph, options());
  } catch (const CompileError& error) {
    if (!is_of_room(error.what())) throw;
    return does_not_apply(error.what());
  }
  if (emitted.text == emitted_.text)
    return must_differ ? differs("the text is the same") : does_not_apply("the text is the same");
  Call result = start_;
  result.symbols = kernel.symbols;
  run_text(kernel.graph, emitted.text, runtime::plan_of(emitted), result);
  return judged(result);
}

Verdict EightWays::reordered() const {
  Call result = start_;
  run_text(drawn_.kernel.graph, emitted_.text, runtime::plan_of(emitted_), result,
           {.detect_races = false,
            .asynchrony = emulator::Asynchrony::random,
            .schedule = emulator::Schedule::random,
            .seed = seed_});
  return same_as(emulated_, result);
}

Verdict EightWays::stored(const cache::Store& entries) const {
  const cache::Entry own = entry();
  const auto found = entries.find(own.key, own.toolchain, cache::Parts::all);
  if (!found) return differs("there is no entry " + own.key.hex());
  if (const std::string d = first_difference(own.source, found->source); !d.empty())
    return differs("the emitted text" + d);
  if (cache::encode(own) != cache::encode(*found)) return differs("the entry's bytes");
  runtime::LaunchPlan plan;
  if (!runtime::from_json(found->metadata.launch, plan)) return differs("there is no plan");
  Call result = start_;
  run_text(drawn_.kernel.graph, found->source, plan, result, {.detect_races = false});
  return same_as(emulated_, result);
}

Verdict EightWays::judged(const Call& result) const {
  const graph::Graph& g = drawn_.kernel.graph;
  if (difference(g, expected_, result).empty()) return {};
  const std::string d = difference(g, expected_, result, tolerance_of(g, start_));
  return d.empty() ? Verdict{} : differs(d);
}

Verdict EightWays::same_as(const Call& expected, const Call& result) const {
  const std::string d = difference(drawn_.kernel.graph, expected, result);
  return d.empty() ? Verdict{} : differs(d);
}

}  // namespace palladium::test
