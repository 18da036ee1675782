// Loops in which products are made of what is computed of others, of which an iteration leaves some
// for the next one: interpreter and emulator agree, races on, for any number of iterations.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/graph/builder.hpp"
#include "codegen/lowered/protocol.hpp"
#include "palladium/error.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/late_products.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/wgmma_lint.hpp"
#include "tests/support/written_chains.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

float number(const test::Call& call, const graph::Graph& g, std::size_t array, std::size_t i) {
  const DType t = g.mapping.block_mappings[array].array_aval.dtype;
  std::uint64_t bits = 0;
  const auto size = static_cast<std::size_t>(t.bytes());
  std::memcpy(&bits, &call.arrays[array][i * size], size);
  return static_cast<float>(graph::to_double(t, bits));
}

// -1, 0 and 1.
test::Call small_call(const graph::Graph& g, Random& random) {
  test::Call call = random_call(g, {}, random, true);
  for (std::size_t a = 0; a < static_cast<std::size_t>(g.mapping.num_inputs); ++a) {
    const DType t = g.mapping.block_mappings[a].array_aval.dtype;
    const auto size = static_cast<std::size_t>(t.bytes());
    for (std::size_t i = 0; i < call.arrays[a].size(); i += size) {
      const std::uint64_t bits = graph::to_bits(t, double(random.between(-1, 1)));
      std::memcpy(&call.arrays[a][i], &bits, size);
    }
  }
  return call;
}

// What differs from what plain loops give; "" if nothing does.
std::string wrong(const graph::Graph& g, const test::Call& call,
                  const std::vector<std::vector<float>>& expected) {
  const auto first = static_cast<std::size_t>(g.mapping.num_inputs);
  for (std::size_t a = 0; a < expected.size(); ++a)
    for (std::size_t i = 0; i < expected[a].size(); ++i) {
      const float is = number(call, g, first + a, i), should = expected[a][i];
      if (!std::isnan(should) && is != should)
        return "output " + std::to_string(a) + " element " + std::to_string(i) + ": " +
               std::to_string(is) + ", not " + std::to_string(should);
    }
  return "";
}

std::string problem_of(const LateProducts& p, const graph::Graph& g, std::uint64_t seed,
                       const cuda::Options& options) {
  Random random(seed);
  const test::Call call = small_call(g, random);
  std::vector<std::vector<float>> arrays;
  for (std::size_t a = 0; a < static_cast<std::size_t>(g.mapping.num_inputs); ++a) {
    const auto size =
        static_cast<std::size_t>(g.mapping.block_mappings[a].array_aval.dtype.bytes());
    arrays.emplace_back(call.arrays[a].size() / size);
    for (std::size_t i = 0; i < arrays.back().size(); ++i) arrays.back()[i] = number(call, g, a, i);
  }
  const std::vector<std::vector<float>> expected = p.expected(arrays);
  test::Call a = call, b = call;
  run_interpreter(g, a);
  if (const std::string why = wrong(g, a, expected); !why.empty()) return "interpreter: " + why;
  if (is_wanted(Target::emulator)) {
    run_emulator(g, options, b);
    if (const std::string why = wrong(g, b, expected); !why.empty()) return "emulator: " + why;
  }
  if (has_gpu() && options.most_shared_bytes == INT64_MAX) {
    test::Call c = call;
    run_gpu(g, c);
    if (const std::string why = wrong(g, c, expected); !why.empty()) return "GPU: " + why;
  }
  return "";
}

bool is_rotated(const lowered::Program& l) {
  return lowered::to_text(l).find("first iteration") != std::string::npos;
}

/// The program; nothing if none has so much room.
std::optional<lowered::Program> check(const LateProducts& p, std::uint64_t seed,
                                      const cuda::Options& options = {.compute_capability = 90}) {
  INFO(p.text());
  CAPTURE(options.most_shared_bytes);
  const graph::Graph g = p.graph();
  std::optional<lowered::Program> l;
  try {
    l = cuda::lower(g, options);
  } catch (const CompileError& e) {
    const std::string why = e.what();
    CHECK((why.find("choose") != why.npos ? "" : why) == "");
    return std::nullopt;
  }
  const lowered::Protocol protocol = lowered::protocol_of(*l);
  if (protocol.verdict == lowered::Protocol::Verdict::counterexample)
    FAIL_CHECK(lowered::to_text(protocol));
  for (const std::string& found : unpinned_registers(cuda::emit(*l).text)) FAIL_CHECK(found);
  CHECK(problem_of(p, g, seed, options) == "");
  return l;
}

std::int64_t shared_bytes(const LateProducts& p, int compute_capability) {
  try {
    return cuda::lower(p.graph(), {.compute_capability = compute_capability}).shared_bytes;
  } catch (const CompileError&) {
    return 0;
  }
}

// ---- kernels as users write them

// Programs of none to one more iteration than there are slots, of clusters two alike each.
BlockLoop any_trips(BlockLoop l) {
  l.iterations = l.num_stages + 1;
  l.programs = (l.iterations + 2) / 2 * 2 * l.cluster;
  return l;
}

std::vector<BlockLoop> variants() {
  using enum BlockLoop::Spelling;
  return {
      any_trips({.num_warps = 4, .num_stages = 2}),
      any_trips({.num_warps = 4, .num_stages = 3, .persistent = true}),
      any_trips({.dtype = bf16, .rows = 128, .num_warps = 8, .num_stages = 4}),
      any_trips({.masked = 9, .num_warps = 4, .num_stages = 3}),
      any_trips({.spelling = held, .num_warps = 4, .num_stages = 3, .cluster = 2}),
      any_trips({.rows = 128, .num_warps = 8, .num_stages = 2, .persistent = true}),
      {.spelling = axis_registers, .iterations = 1, .num_warps = 4, .num_stages = 3},
      {.spelling = axis_registers, .iterations = 2, .num_stages = 2, .persistent = true},
      {.spelling = axis_registers, .dtype = bf16, .iterations = 4, .masked = 5, .num_stages = 3},
      {.spelling = axis_shared,
       .iterations = 4,
       .num_warps = 4,
       .num_stages = 4,
       .persistent = true},
      {.spelling = axis_registers, .iterations = 3, .num_stages = 3, .cluster = 2},
      any_trips({.dtype = f8e4m3, .num_warps = 4, .num_stages = 3}),
  };
}

// Whether an iteration of it leaves products for the next one.
bool is_to_rotate(const WrittenChain& w, const BlockLoop& l) {
  return l.dtype.bytes() > 1 && l.num_stages > (w.shares ? 2 : 1) && l.iterations > 1;
}

// With its remarks where it is not as it is to be.
void check(const WrittenChain& w, const BlockLoop& l) {
  CAPTURE(w.name, static_cast<int>(l.spelling), l.dtype.name(), l.num_warps, l.num_stages,
          l.iterations, l.persistent, l.cluster, l.masked);
  const graph::Graph g = l.graph();
  const lowered::Program p = cuda::lower(g, {.compute_capability = 90});
  std::string remarks;
  for (const Remark& r : p.remarks) remarks += r.text + "\n";
  INFO(remarks);
  if (l.masked == 0) CHECK(is_rotated(p) == is_to_rotate(w, l));
  for (const std::string& found : unpinned_registers(cuda::emit(p).text)) FAIL_CHECK(found);
  CHECK(on_all_targets(g, {}, 90) == "");
}

}  // namespace

TEST_CASE("products of products agree in any spelling, for any number of iterations and slots") {
  const std::vector<BlockLoop> all = variants();
  for (std::size_t v = 0; v < all.size(); ++v) {
    const std::vector<WrittenChain> chains = written_chains(all[v].dtype);
    for (std::size_t c = 0; c < chains.size(); ++c)
      if (is_full() || (v + c) % 4 == 0) check(chains[c], chains[c].in(all[v]));
  }
}

TEST_CASE("drawn loops of products that are made of others give what plain loops do") {
  int rotated = 0, refused = 0, all = 0;
  for_seeds(1, is_full() ? 500 : 40, [&](std::uint64_t seed) {
    Random random(seed);
    const std::optional<lowered::Program> l = check(LateProducts::drawn(random), seed);
    ++all;
    rotated += l && is_rotated(*l);
    refused += !l;
  });
  CAPTURE(rotated, refused, all);
  CHECK(refused * 4 <= all);
  CHECK(rotated * 4 >= all);
}

TEST_CASE("drawn loops of products agree in shared memory of any size, with slots for few") {
  int one_slot = 0, both = 0, all = 0;
  for_seeds(3001, is_full() ? 400 : 40, [&](std::uint64_t seed) {
    Random random(seed);
    const LateProducts p = LateProducts::drawn(random);
    const int compute_capability = seed % 4 == 0 ? 120 : 90;
    const std::int64_t whole = shared_bytes(p, compute_capability);
    if (whole == 0) return;
    const std::optional<lowered::Program> l =
        check(p, seed,
              {.compute_capability = compute_capability,
               .most_shared_bytes = random.between(whole * 3 / 10, whole) / 16 * 16});
    const auto has = [&](bool of_one) {
      return l && std::ranges::any_of(l->rings, [&](const lowered::Ring& r) {
               return r.fetched && (r.slots == 1) == of_one;
             });
    };
    ++all;
    one_slot += has(true);
    both += has(true) && has(false);
  });
  CAPTURE(one_slot, both, all);
  CHECK(one_slot * 5 >= all);
  CHECK(both > 0);
}
