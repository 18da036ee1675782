// Products that are added up along a sequential axis, of which a test writes the body.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/cuda/lower.hpp"
#include "codegen/lowered/protocol.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu.hpp"
#include "tests/support/full.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/tracing.hpp"

namespace palladium::test {

enum class Held { registers, shared, output };

/// Two rows of blocks, and steps along k.
struct AlongK {
  Held held = Held::registers;
  int steps = 0;       ///< 0: a symbol
  bool each = false;   ///< there is an output with a block for each step
  bool alias = false;  ///< an input that the output is aliased to
  int num_warps = 0, num_stages = 0;
  std::optional<bool> warp_specialize = {};
  bool persistent = false;
};

struct Step {
  Ref a, b, o, s, each, c;
  Value i, k, n;
  bool into_output = false;

  Value product() const { return dot(a[pl::_], b[pl::_]); }
  Value second() const { return dot(a[pl::_] * 2, b[pl::_]); }
  Value first() const { return k == 0; }
  Value last() const { return k == n - 1; }
  void start(float with = 0) const {
    when(first(), [&] { s[pl::_] = full({64, 64}, with, f32); });
  }
  void finish() const {
    if (!into_output) when(last(), [&] { o[pl::_] = s[pl::_]; });
  }
};
using StepBody = std::function<void(const Step&)>;

inline graph::Graph along_k(const AlongK& p, const StepBody& body) {
  const Dim steps = p.steps > 0 ? Dim(p.steps) : dim("steps", {.at_most = 64});
  const auto fixed = [](Index i, Index) { return Indices{i, 0}; };
  const BlockSpec a{{64, 32},
                    [](Index i, Index k) {
                      return Indices{i, k};
                    }},
      b{{32, 64},
        [](Index, Index k) {
          return Indices{k, 0};
        }},
      o{{64, 64}, fixed}, each{{64, 64}, [](Index i, Index k) {
                                 return Indices{i, k};
                               }};
  PallasCallOptions options{.name = "along_k", .out_type = {ShapeDtype{{128, 64}, f32}}};
  std::vector<trace::ArgumentType> types{array({128, steps * 32}, f16),
                                         array({steps * 32, 64}, f16)};
  options.grid = {2, steps};
  options.in_specs = {a, b};
  options.out_specs = {o};
  if (p.alias) {
    types.push_back(array({128, 64}, f32));
    options.in_specs.push_back(o);
    options.input_output_aliases = {{2, 0}};
  }
  if (p.each) {
    options.out_type = {ShapeDtype{{128, 64}, f32}, ShapeDtype{{128, steps * 64}, f32}};
    options.out_specs.push_back(each);
  }
  const bool output = p.held == Held::output;
  const MemorySpace where = p.held == Held::shared ? gpu::SMEM : gpu::REGS;
  if (!output) options.scratch_types = {where({64, 64}, f32)};
  options.compiler_params = {.dimension_semantics = {parallel, sequential},
                             .num_warps = p.num_warps,
                             .num_stages = p.num_stages,
                             .warp_specialize = p.warp_specialize,
                             .persistent = p.persistent};
  const auto with_refs = [=](Refs refs) {
    std::size_t at = 2;
    const Ref c = refs[p.alias ? at++ : 0], out = refs[at++];
    const Ref every = p.each ? refs[at++] : out, held = output ? out : refs[at++];
    body({refs[0], refs[1], out, held, every, c, program_id(0), program_id(1), num_programs(1),
          output});
  };
  return traced(with_refs, options, types);
}

/// What is wrong with how those who work on a program wait for each other; "" if nothing is. All
/// ways are looked at.
inline std::string protocol_problem(const lowered::Program& l) {
  const lowered::Protocol p = lowered::protocol_of(l, 1 << 22);
  return p.verdict == lowered::Protocol::Verdict::good ? "" : lowered::to_text(p);
}

/// What is wrong with the kernel on an architecture: that, or interpreter and emulator, races on,
/// do not agree; "" if nothing is.
inline std::string problem_of(const graph::Graph& g, const std::vector<std::int64_t>& symbols,
                              int compute_capability) {
  std::string found = protocol_problem(cuda::lower(g, {.compute_capability = compute_capability}));
  return found.empty() ? on_all_targets(g, symbols, compute_capability) : found;
}

}  // namespace palladium::test
