#include "runtime/launch/run_emulator.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "codegen/base/architecture.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "codegen/base/packed.hpp"
#include "codegen/base/profile.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/graph/inline.hpp"
#include "codegen/thread/occupancy.hpp"
#include "runtime/build/key.hpp"
#include "runtime/device/target.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/debug_buffer.hpp"
#include "runtime/launch/packer.hpp"
#include "runtime/launch/run_interpreter.hpp"
#include "runtime/launch/scope_trace.hpp"

namespace palladium::runtime {

struct Emulated {
  std::string text;
  LaunchPlan plan;
  Packer packer;
  std::vector<Location> lines;
  std::vector<int> placements;
  std::string arch;
  std::int64_t resident_blocks;  // that a GPU of the architecture holds at once
};

namespace {

constexpr int threads_of_warpgroup = 128;

std::vector<Location> line_table(const std::vector<cuda::TextLine>& lines) {
  std::vector<Location> table;
  for (const cuda::TextLine& l : lines) {
    if (l.line < 1) continue;
    const auto i = static_cast<std::size_t>(l.line - 1);
    if (table.size() <= i) table.resize(i + 1);
    table[i] = l.at;
  }
  return table;
}

emulator::Buffer buffer(const Array& elements, std::string name, bool written) {
  const Array array = in_bytes(elements);
  const Array::Bytes bytes = array.bytes();
  emulator::Buffer b{.base = const_cast<std::byte*>(bytes.begin),
                     .bytes = static_cast<std::size_t>(bytes.end - bytes.begin),
                     .name = std::move(name),
                     .written = written,
                     .element_bytes = array.dtype().bytes(),
                     .initialised = !written};
  for (int d = 0; d < array.rank(); ++d) {
    b.shape.push_back(array.shape()[d].value());
    b.strides.push_back(array.stride(d));
  }
  return b;
}

/// What the kernel tells, where it does.
class Told {
 public:
  Told(const graph::Graph& g, const LaunchPlan& plan) : graph_(g) {
    using Kind = cuda::Parameter::Kind;
    if (std::ranges::count(plan.parameters, Kind::debug, &cuda::Parameter::kind) == 0) return;
    numbers_.resize(debug_buffer_bytes / sizeof(std::uint64_t));
    begin_debug_buffer(numbers_);
  }
  std::uint64_t* data() { return numbers_.empty() ? nullptr : numbers_.data(); }
  emulator::Buffer buffer() {
    return {.base = numbers_.data(),
            .bytes = debug_buffer_bytes,
            .name = "what the kernel tells",
            .written = true,
            .element_bytes = sizeof(std::uint64_t),
            .one_writer = false};
  }
  /// Throws what a check that failed has to say: it comes before what followed from that.
  void drain() {
    if (numbers_.empty()) return;
    if (const std::exception_ptr failure = drain_debug_buffer(numbers_, graph_))
      std::rethrow_exception(failure);
  }

 private:
  const graph::Graph& graph_;
  std::vector<std::uint64_t> numbers_;
};

/// What it tells of its scopes, where it does.
class ToldOfScopes {
 public:
  ToldOfScopes(const graph::Graph& g, const LaunchPlan& plan, std::int64_t blocks)
      : trace_{g, plan.threads, blocks} {
    if (has_scopes(plan)) numbers_.resize(trace_.numbers());
  }
  bool is_some() const { return !numbers_.empty(); }
  std::uint64_t* data() { return numbers_.empty() ? nullptr : numbers_.data(); }
  emulator::Buffer buffer() {
    return {.base = numbers_.data(),
            .bytes = numbers_.size() * sizeof(std::uint64_t),
            .name = "the profile",
            .written = true,
            .element_bytes = sizeof(std::uint64_t)};
  }
  void write(const std::string& arch) const {
    if (is_some()) trace_.write(numbers_, "emulator of " + arch, "instructions");
  }

 private:
  const ScopeTrace trace_;
  std::vector<std::uint64_t> numbers_;
};

/// What the driver says of a launch whose blocks must all be resident and are not.
[[noreturn]] void refuse_too_large(const graph::Graph& g, const Emulated& e, std::int64_t blocks) {
  const auto dim = [](std::int64_t n) { return fmt::format("{}x1x1", n); };
  std::string launch = "grid " + dim(blocks) + ", block " + dim(e.plan.threads);
  if (e.plan.cluster_blocks > 1) launch += ", cluster " + dim(e.plan.cluster_blocks);
  if (e.plan.shared_bytes > 0)
    launch += fmt::format(", {} bytes of dynamic shared memory", e.plan.shared_bytes);
  const char* gpu = thread::multiprocessor(parse_architecture(e.arch).compute_capability).device;
  throw CudaError(
      fmt::format("emulator: launch of kernel '{}' ({}, cooperative, of whose blocks {} fit at "
                  "once on the GPU that stands for {}, {}): too many blocks in cooperative launch "
                  "(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)",
                  g.name, launch, e.resident_blocks, e.arch, gpu));
}

void refuse_ptx(const graph::Graph& g) {
  const graph::ValueId v = graph::bare_ptx(g);
  if (v == graph::no_value) return;
  throw CompileError(g.location(v),
                     fmt::format("inline_cuda '{}': the emulator runs CUDA C++ and no PTX; write "
                                 "it by functions of pl:: (codegen/device/waist.def), or say what "
                                 "it means, .interpret = [&] {{ return ...; }}, and run the kernel "
                                 "on the interpreter",
                                 graph::InlineView::of(g[v]).name));
}

// What the host compiler refuses in text of the user's is the user's to mend: the log begins with
// the number of a line of the kernel's text.
[[noreturn]] void blame_text(const graph::Graph& g, const Emulated& e, const InternalError& error) {
  const std::string log = error.what();
  const std::string_view where = "kernel.cu:";
  for (std::size_t at = log.find(where); at != log.npos; at = log.find(where, at + 1)) {
    const std::size_t line = std::strtoul(log.c_str() + at + where.size(), nullptr, 10);
    if (line == 0 || line > e.lines.size()) continue;
    for (std::uint32_t v = 0; v < g.insts.size(); ++v) {
      const Location own = g.where[v], told = e.lines[line - 1];
      if (g.insts[v].op != graph::Op::InlineCuda || own.line != told.line) continue;
      throw CompileError(
          own, fmt::format("inline_cuda '{}': the host compiler refuses the text; on "
                           "the emulator it has the names of the device library, "
                           "pl::, and no others of CUDA\n{}",
                           graph::InlineView::of(g.insts[v]).name, log.substr(log.find('\n') + 1)));
    }
  }
  throw error;
}

bool is_aliased(const graph::Graph& g, std::size_t output) {
  for (const graph::Alias& a : g.aliases)
    if (a.output == static_cast<int>(output)) return true;
  return false;
}

}  // namespace

std::shared_ptr<const Emulated> emulate(const Specialization& s) {
  const profile::Range range("lower", s.graph.name);
  refuse_ptx(s.graph);
  std::string arch = default_arch();
  const cuda::Emitted emitted = cuda::emit(s.graph, text_options(arch));
  if (s.graph.mapping.debug) log::show(emitted.text);
  LaunchPlan plan = plan_of(emitted);
  Packer packer(s.graph, plan, emulator::encode);
  const std::int64_t resident = thread::resident_blocks(
      parse_architecture(arch).compute_capability, plan.threads, plan.cluster_blocks,
      {.registers = emulator::known_registers(plan.threads, emitted.text),
       .shared_bytes = static_cast<int>(plan.shared_bytes)});
  return std::make_shared<const Emulated>(Emulated{emitted.text, std::move(plan), std::move(packer),
                                                   line_table(emitted.lines), emitted.placements,
                                                   std::move(arch), resident});
}

void run_emulator(const Specialization& s, const Emulated& emulated, std::span<const Arg> arguments,
                  std::span<const Arg> outputs, const Signature::Symbols& symbols) {
  const profile::Range range("launch", s.graph.name);
  const bool is_persistent = emulated.plan.persistent;
  const std::int64_t blocks = std::min<std::int64_t>(
      emulated.packer.blocks(symbols), is_persistent ? emulator::persistent_blocks : INT64_MAX);
  const graph::Graph& g = s.graph;
  if (blocks > emulated.resident_blocks && graph::blocks_may_wait(g, graph::Counting::launch))
    refuse_too_large(g, emulated, blocks);
  Told told(g, emulated.plan);
  ToldOfScopes scopes(g, emulated.plan, blocks);
  ArgumentBlock block;
  if (blocks > 0)
    emulated.packer.pack(arguments, outputs, symbols, block, told.data(), scopes.data());

  std::vector<emulator::Buffer> buffers;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].array())
      buffers.push_back(buffer(*arguments[i].array(), "args[" + std::to_string(i) + "]", false));
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const std::size_t mapping = static_cast<std::size_t>(g.mapping.num_inputs) + o;
    emulator::Buffer output =
        buffer(*outputs[o].array(), g.mapping.block_mappings[mapping].origin, true);
    if (o + static_cast<std::size_t>(g.num_globals) >= outputs.size()) output.initialised = true;
    if (is_aliased(g, o)) {  // one memory, one buffer
      output.initialised = true;
      std::erase_if(buffers, [&](const emulator::Buffer& b) { return b.base == output.base; });
    }
    buffers.push_back(std::move(output));
  }
  // Whose writes are ordered by semaphores, or are not, is for the detector of races to tell.
  const bool one_writer = !g.allow_revisit && !graph::has_semaphores(g);
  for (emulator::Buffer& b : buffers) b.one_writer = one_writer;
  if (told.data() != nullptr) buffers.push_back(told.buffer());
  if (scopes.is_some()) buffers.push_back(scopes.buffer());

  const InterpretParams& params = s.interpret.params;
  const bool poison = params.out_of_bounds == InterpretParams::poison;
  try {
    emulator::run(
        {.kernel = g.name,
         .text = emulated.text,
         .grid = {blocks, 1, 1},
         .cluster = {emulated.plan.cluster_blocks, 1, 1},
         .warpgroups = emulated.plan.threads / threads_of_warpgroup,
         .shared_bytes = static_cast<std::uint32_t>(emulated.plan.shared_bytes),
         .parameters = block.pointers,
         .buffers = buffers,
         .lines = emulated.lines,
         .placements = emulated.placements,
         .is_emitted = true,
         .options = {
             .out_of_bounds = poison ? emulator::OutOfBounds::poison : emulator::OutOfBounds::zero,
             .unwritten_is_error = params.uninitialised == InterpretParams::error,
             .schedule =
                 params.random_seed >= 0 ? emulator::Schedule::random : emulator::Schedule::fifo,
             .seed = static_cast<std::uint64_t>(std::max<std::int64_t>(0, params.random_seed)),
             // On one core what is printed has one order.
             .workers =
                 told.data() != nullptr || scopes.is_some() ? 1 : params.num_cores_per_device,
             .resident_clusters = emulated.resident_blocks / emulated.plan.cluster_blocks}});
  } catch (const CompileError& e) {
    told.drain();
    // In the interpreter's words, which have the numbers and the index map's line.
    if (dynamic_cast<const emulator::Misplaced*>(&e) != nullptr)
      interpreter::place_blocks(g, invocation(s, arguments, outputs, symbols));
    if (e.at().line != 0) throw;
    throw CompileError(g.at, e.what());  // about the host compiler
  } catch (const InternalError& e) {
    blame_text(g, emulated, e);
  } catch (const Error&) {
    told.drain();
    throw;
  }
  told.drain();
  scopes.write(emulated.arch);
}

}  // namespace palladium::runtime
