// One kernel graph on the interpreter and on the emulator, from the same arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/emit.hpp"
#include "codegen/graph/graph.hpp"
#include "runtime/build/launch_plan.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/interpreter/interpreter.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::lowered {
struct Effects;
struct Program;
namespace testing {
struct Kind;
}
}  // namespace palladium::lowered

namespace palladium::test {

/// As in codegen/lowered/effects_for_tests.hpp.
using Hearing = std::function<void(const lowered::testing::Kind&, lowered::Effects&)>;

/// The arrays of one call, as block mappings: inputs, then outputs, dense.
struct Call {
  std::vector<std::vector<std::byte>> arrays;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<std::uint64_t> scalars;  // bits
  std::vector<std::int64_t> symbols;
};

/// Random inputs; outputs, unless aliased to an input, start with `poison` or zeros.
Call random_call(const graph::Graph& g, const std::vector<std::int64_t>& symbols, Random& random,
                 bool small_integers);

void run_interpreter(const graph::Graph& g, Call& call, bool poison = true);
void run_interpreter(const graph::Graph& g, Call& call, const interpreter::Options& options);
/// Accesses that no statement says it makes are an error. `hearing`: answers of effects() that are
/// wrong, to see whether that is found.
void run_emulator(const graph::Graph& g, const cuda::Options& options, Call& call,
                  bool poison = true, const Hearing& hearing = {});

/// The emulator on a text that was emitted for the graph, by whichever way it has come here with
/// its plan.
void run_text(const graph::Graph& g, std::string_view text, const runtime::LaunchPlan& plan,
              Call& call, const emulator::Options& options = {});

/// The same of a lowered program, which is placed.
void run_emulator(const lowered::Program& l, Call& call, bool poison = true,
                  const Hearing& hearing = {});

/// Whether there is a GPU to run on.
bool has_gpu();
/// On the first GPU. Its memory holds zeros where nobody wrote.
void run_gpu(const graph::Graph& g, Call& call);

/// "" if the outputs agree in every bit: -0 is not 0, only NaNs are all alike. For what is not
/// exact see tolerance.hpp.
std::string difference(const graph::Graph& g, const Call& a, const Call& b);

/// The block mapping whose array holds block mapping i: an aliased output is its input's.
std::size_t storage_of(const graph::Graph& g, std::size_t i);

/// NVRTC's log and text if it does not take the emitted text for `arch` ("sm_90a"), or if ptxas
/// spills or serialises; "" if all is well.
std::string compile_problem(const graph::Graph& g, const std::string& arch);
std::string compile_problem(const lowered::Program& l, const std::string& arch);
/// The same for the architectures that kernels are compiled for. Of those with the same text these
/// are the oldest and the newest: what the device library has for others is compiled by itself.
std::string compile_problem(const graph::Graph& g);

/// 90 for "sm_90a".
int compute_capability_of(const std::string& arch);

}  // namespace palladium::test
