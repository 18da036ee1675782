// Lowered, Compiled and CompileFuture: a kernel's artefacts, without a launch.
#include "runtime/lowered.hpp"

#include "codegen/base/architecture.hpp"
#include "codegen/base/format.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/graph/cost.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/nvrtc/disassemble.hpp"
#include "codegen/nvrtc/sass.hpp"
#include "codegen/thread/occupancy.hpp"
#include "runtime/build/compile.hpp"
#include "runtime/build/compiler.hpp"
#include "runtime/build/components.hpp"
#include "runtime/build/key.hpp"
#include "runtime/call/class_words.hpp"
#include "runtime/device/target.hpp"
#include "runtime/launch/classes.hpp"

namespace palladium {

using detail::Counted;
using detail::Shared;
using runtime::LoweredState;
using runtime::state_of;

namespace {

struct CompiledState final : Counted {
  explicit CompiledState(std::shared_ptr<const runtime::Program> p)
      : program(std::move(p)), key(program->entry.key.hex()), entry(runtime::complete(*program)) {}
  const std::shared_ptr<const runtime::Program> program;
  const std::string key;
  const cache::Entry entry;
};

struct FutureState final : Counted {
  explicit FutureState(runtime::Claim c) : claim(std::move(c)) {}
  const runtime::Claim claim;
};

const graph::Graph& graph_of(const Shared<Counted>& state) {
  return state_of<LoweredState>(state).specialization->graph;
}

std::string arch_of(const CompileOptions& options) {
  return options.arch.empty() ? runtime::default_arch() : options.arch;
}

cuda::Options text_options(const CompileOptions& options) {
  return runtime::text_options(arch_of(options));
}

}  // namespace

std::string Lowered::graph() const { return graph::to_text(graph_of(state_)); }
std::string Lowered::json() const { return graph::to_json(graph_of(state_)); }

std::string Lowered::cuda_source(const CompileOptions& options) const {
  const graph::Graph& g = graph_of(state_);
  return cuda::compiled_text(g, cuda::emit(g, text_options(options)));
}

std::string Lowered::decisions(const CompileOptions& options) const {
  const graph::Graph& g = graph_of(state_);
  return cuda::describe(g, text_options(options));
}

std::vector<PassDump> Lowered::passes(const CompileOptions& options) const {
  const graph::Graph& g = graph_of(state_);
  return cuda::pass_dumps(g, text_options(options));
}

std::string Lowered::schedule(const CompileOptions& options) const {
  const graph::Graph& g = graph_of(state_);
  return cuda::schedule(g, text_options(options));
}

Report Lowered::report(const CompileOptions& options) const {
  const graph::Graph& g = graph_of(state_);
  Resources resources;
  Occupancy occupancy;
  std::string not_compiled;
  try {
    const Compiled compiled = compile(options);
    resources = compiled.resources();
    occupancy = compiled.occupancy();
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    not_compiled = error.what();
  }
  Report report = cuda::report(g, text_options(options), occupancy.blocks);
  report.cost_estimate = g.cost;
  report.not_compiled = std::move(not_compiled);
  report.resources = std::move(resources);
  report.occupancy = occupancy;
  if (const std::string open = runtime::open_classes(g); !open.empty())
    report.remarks.push_back(
        {g.at, fmt::format("classes of calls: {}: each that is called has a kernel of its own, and "
                           "at most {} are kept",
                           open, runtime::most_classes)});
  return report;
}

std::string Lowered::key(const CompileOptions& options) const {
  return runtime::key_of(graph_of(state_), arch_of(options)).hex();
}

std::vector<std::pair<std::string, std::string>> Lowered::key_components(
    const CompileOptions& options) const {
  const auto parts = runtime::components_of(graph_of(state_), arch_of(options));
  return {parts.begin(), parts.end()};
}

CostEstimate Lowered::estimate_cost() const { return graph::estimate_cost(graph_of(state_)); }
std::vector<ShapeDtype> Lowered::out_types() const { return graph_of(state_).mapping.out_shapes(); }
const std::string& Lowered::name() const { return graph_of(state_).name; }
double Lowered::trace_ms() const { return state_of<LoweredState>(state_).specialization->trace_ms; }

Compiled Lowered::compile(const CompileOptions& options) const {
  if (options.deadline != 0) return compile_async(options).get();
  return Compiled(Shared<Counted>(new CompiledState(
      runtime::compile(*state_of<LoweredState>(state_).specialization, arch_of(options)))));
}

CompileFuture Lowered::compile_async(const CompileOptions& options) const {
  const auto& specialization = state_of<LoweredState>(state_).specialization;
  if (!(options.deadline >= 0))
    throw CompileError(specialization->graph.at,
                       "'" + name() + "': a deadline is a number of seconds, 0 or more, not " +
                           std::to_string(options.deadline));
  return CompileFuture(Shared<Counted>(new FutureState(
      runtime::compile_in_background(specialization, arch_of(options), options.deadline))));
}

void set_compile_jobs(int jobs) { runtime::choose_compile_jobs(jobs); }

Compiled CompileFuture::get() const {
  return Compiled(Shared<Counted>(new CompiledState(state_of<FutureState>(state_).claim.wait())));
}
bool CompileFuture::wait_for(double seconds) const {
  return state_of<FutureState>(state_).claim.wait_for(seconds);
}
void CompileFuture::cancel() const { state_of<FutureState>(state_).claim.cancel(); }

std::span<const std::byte> Compiled::cubin() const {
  return state_of<CompiledState>(state_).entry.cubin;
}
const std::string& Compiled::ptx() const { return state_of<CompiledState>(state_).entry.ptx; }
const std::string& Compiled::cuda_source() const {
  return state_of<CompiledState>(state_).entry.source;
}
const Resources& Compiled::resources() const {
  return state_of<CompiledState>(state_).entry.metadata.resources;
}
Occupancy Compiled::occupancy() const {
  const runtime::Program& program = *state_of<CompiledState>(state_).program;
  return thread::occupancy(parse_architecture(arch()).compute_capability, program.plan.threads,
                           resources());
}
Sass Compiled::sass() const {
  const std::string program = nvrtc::find_nvdisasm();
  if (program.empty()) throw CudaError(nvrtc::missing_nvdisasm_message());
  const std::string& function = state_of<CompiledState>(state_).entry.metadata.function;
  Sass sass = nvrtc::read_sass(nvrtc::disassemble(program, cubin()), function);
  if (sass.all.instructions == 0)
    throw CudaError("nvdisasm: " + program + " prints no instructions of '" + function +
                    "': " + sass.text.substr(0, 200) + "\n  PALLADIUM_NVDISASM names another");
  return sass;
}
const std::string& Compiled::arch() const {
  return state_of<CompiledState>(state_).entry.metadata.arch;
}
const std::string& Compiled::key() const { return state_of<CompiledState>(state_).key; }
bool Compiled::from_cache() const { return state_of<CompiledState>(state_).program->from_cache; }
const Compiled::Times& Compiled::times() const {
  return state_of<CompiledState>(state_).program->times;
}

}  // namespace palladium
