#include "tests/support/differential.hpp"

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "codegen/base/dim.hpp"
#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/device/library.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "runtime/build/launch_plan.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/kernel.hpp"
#include "runtime/driver/memory.hpp"
#include "runtime/driver/tensor_map.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/interpreter/interpreter.hpp"
#include "tests/support/observed.hpp"

namespace palladium::test {
namespace {

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  return graph::element_count(shape);
}

void put(std::vector<std::byte>& to, std::int64_t i, DType t, std::uint64_t bits) {
  std::memcpy(to.data() + i * t.bytes(), &bits, static_cast<std::size_t>(t.bytes()));
}

// What kernelParams point to, for arrays that stand at `addresses`.
struct Arguments {
  std::vector<std::uint64_t> words;
  std::vector<TensorMap> tensor_maps;
  std::vector<void*> pointers;
};

Arguments arguments_of(const graph::Graph& g, const runtime::LaunchPlan& plan, const Call& call,
                       const std::vector<void*>& addresses,
                       TensorMap (*encode)(const TensorMapSpec&)) {
  Arguments a;
  std::vector<std::uint64_t>& words = a.words;
  const auto tensor_map = [&](const cuda::Parameter& p) {
    const std::vector<std::int64_t>& shape = call.shapes[p.index];
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t d = shape.size(); --d > 0;) strides[d - 1] = strides[d] * shape[d];
    const DType t = g.mapping.block_mappings[p.index].array_aval.dtype;
    const bool is_empty = std::ranges::find(shape, 0) != shape.end();
    a.tensor_maps.push_back(
        is_empty ? TensorMap{}
                 : encode(runtime::tensor_map_of(p, t, addresses[p.index], shape, strides)));
  };
  for (const cuda::Parameter& p : plan.parameters) {
    switch (p.kind) {
    case cuda::Parameter::Kind::array:
      words.push_back(reinterpret_cast<std::uint64_t>(addresses[p.index]));
      break;
    case cuda::Parameter::Kind::stride: {
      std::int64_t stride = 1;
      for (std::size_t d = call.shapes[p.index].size();
           --d > static_cast<std::size_t>(p.dimension);)
        stride *= call.shapes[p.index][d];
      words.push_back(static_cast<std::uint64_t>(stride));
      break;
    }
    case cuda::Parameter::Kind::scalar: words.push_back(call.scalars[p.index]); break;
    case cuda::Parameter::Kind::symbol:
      words.push_back(static_cast<std::uint64_t>(call.symbols[p.index]));
      break;
    case cuda::Parameter::Kind::reciprocal:
      words.push_back(runtime::reciprocal_of(call.symbols[p.index]));
      break;
    case cuda::Parameter::Kind::tensor_map: tensor_map(p); break;
    case cuda::Parameter::Kind::debug:
    case cuda::Parameter::Kind::profile:
      throw std::invalid_argument("a kernel that tells the host something");
    }
  }
  std::size_t word = 0, map = 0;
  for (const cuda::Parameter& p : plan.parameters)
    a.pointers.push_back(p.kind == cuda::Parameter::Kind::tensor_map
                             ? static_cast<void*>(&a.tensor_maps[map++])
                             : &words[word++]);
  return a;
}

}  // namespace

std::size_t storage_of(const graph::Graph& g, std::size_t i) {
  for (const graph::Alias& a : g.aliases)
    if (static_cast<int>(i) == g.mapping.num_inputs + a.output)
      return static_cast<std::size_t>(a.input);
  return i;
}

Call random_call(const graph::Graph& g, const std::vector<std::int64_t>& symbols, Random& random,
                 bool small_integers) {
  Call c;
  c.symbols = symbols;
  const auto number = [&](DType t) {
    if (!small_integers || t.is_bool()) return random_number(random, t);
    return t.is_float() ? graph::to_bits(t, double(random.between(-4, 4)))
                        : graph::to_bits(t, std::int64_t{random.between(0, 7)});
  };
  for (const BlockMapping& m : g.mapping.block_mappings) {
    std::vector<std::int64_t> shape;
    for (const Dim& d : m.array_aval.shape) shape.push_back(evaluate(d, symbols));
    const DType t = m.array_aval.dtype;
    std::vector<std::byte> data(static_cast<std::size_t>(elements(shape) * t.bytes()));
    const bool input = static_cast<int>(c.arrays.size()) < g.mapping.num_inputs;
    for (std::int64_t i = 0; i < elements(shape); ++i)
      put(data, i, t, input ? number(t) : interpreter::poison_bits(t));
    for (std::size_t axis = 0; axis < g.mapping.bounds.size(); ++axis)
      if (g.mapping.bounds[axis] == static_cast<int>(c.arrays.size())) {
        const auto most = static_cast<int>(evaluate(g.mapping.grid[axis], symbols));
        put(data, 0, t, graph::to_bits(t, std::int64_t{random.between(0, most)}));
      }
    c.shapes.push_back(std::move(shape));
    c.arrays.push_back(std::move(data));
  }
  for (const graph::Argument& a : g.arguments)
    if (a.kind == graph::Argument::Kind::scalar) c.scalars.push_back(number(a.dtype));
  return c;
}

void run_interpreter(const graph::Graph& g, Call& call, bool poison) {
  run_interpreter(g, call, {.poison = poison, .detect_races = true});
}

void run_interpreter(const graph::Graph& g, Call& call, const interpreter::Options& options) {
  interpreter::Invocation in;
  for (std::size_t i = 0; i < call.arrays.size(); ++i)
    in.arrays.push_back({call.arrays[storage_of(g, i)].data(), call.shapes[i], {}});
  in.scalars = call.scalars;
  in.symbols = call.symbols;
  interpreter::run(g, in, options);
}

namespace {

// Fewer than the programs of a persistent kernel, so that blocks go through several.
std::int64_t blocks_of(const runtime::LaunchPlan& plan, const Call& call) {
  return std::min(evaluate(plan.blocks, call.symbols),
                  plan.persistent ? emulator::persistent_blocks : INT64_MAX);
}

std::vector<emulator::Buffer> buffers_of(const graph::Graph& g, Call& call) {
  std::vector<emulator::Buffer> buffers;
  for (std::size_t i = 0; i < call.arrays.size(); ++i) {
    if (storage_of(g, i) != i) {
      buffers[storage_of(g, i)].written = true;
      continue;
    }
    const bool output = static_cast<int>(i) >= g.mapping.num_inputs;
    const BlockMapping& m = g.mapping.block_mappings[i];
    buffers.push_back({call.arrays[i].data(), call.arrays[i].size(), m.origin, output,
                       m.array_aval.dtype.bytes(), !g.allow_revisit, !output});
  }
  return buffers;
}

std::vector<void*> addresses_of(const graph::Graph& g, Call& call) {
  std::vector<void*> addresses;
  for (std::size_t i = 0; i < call.arrays.size(); ++i)
    addresses.push_back(call.arrays[storage_of(g, i)].data());
  return addresses;
}

void emulate(const graph::Graph& g, const runtime::LaunchPlan& plan, Call& call,
             emulator::Launch launch) {
  const std::int64_t blocks = blocks_of(plan, call);
  if (blocks == 0) return;
  const std::vector<emulator::Buffer> buffers = buffers_of(g, call);
  Arguments arguments = arguments_of(g, plan, call, addresses_of(g, call), emulator::encode);
  launch.kernel = plan.entry;
  launch.grid = {blocks, 1, 1};
  launch.cluster = {plan.cluster_blocks, 1, 1};
  launch.warpgroups = plan.threads / 128;
  launch.shared_bytes = static_cast<std::uint32_t>(plan.shared_bytes);
  launch.parameters = arguments.pointers.data();
  launch.buffers = buffers;
  emulator::run(launch);
}

std::vector<Location> lines_of(const cuda::Emitted& e) {
  std::vector<Location> lines;
  for (const cuda::TextLine& l : e.lines) {
    if (static_cast<int>(lines.size()) < l.line) lines.resize(static_cast<std::size_t>(l.line));
    lines[static_cast<std::size_t>(l.line) - 1] = l.at;
  }
  return lines;
}

}  // namespace

void run_text(const graph::Graph& g, std::string_view text, const runtime::LaunchPlan& plan,
              Call& call, const emulator::Options& options) {
  emulate(g, plan, call, {.text = text, .options = options});
}

namespace {

void run_observed(const graph::Graph& g, const lowered::Program& l, Call& call, bool poison,
                  const Hearing& hearing) {
  const cuda::Emitted e = cuda::emit(l);
  const std::vector<Location> lines = lines_of(e);
  const std::vector<void*> addresses = addresses_of(g, call);
  std::vector<Observed::Array> arrays;
  for (std::size_t i = 0; i < call.arrays.size(); ++i)
    arrays.push_back({reinterpret_cast<std::uint64_t>(addresses[i]), call.arrays[i].size()});
  Observed observed(l, e.statements, arrays, hearing);
  emulate(g, runtime::plan_of(e), call,
          {.text = e.text,
           .lines = lines,
           .options = {.out_of_bounds =
                           poison ? emulator::OutOfBounds::poison : emulator::OutOfBounds::zero},
           .watch = [&](int line, const device::Access& access, std::uint64_t at,
                        std::uint64_t bytes) { observed.see(line, access, at, bytes); }});
  if (!observed.problem().empty()) throw std::runtime_error(observed.problem());
}

}  // namespace

void run_emulator(const graph::Graph& g, const cuda::Options& options, Call& call, bool poison,
                  const Hearing& hearing) {
  run_observed(g, cuda::lower(g, options), call, poison, hearing);
}

void run_emulator(const lowered::Program& l, Call& call, bool poison, const Hearing& hearing) {
  run_observed(l.graph, l, call, poison, hearing);
}

bool has_gpu() { return driver::status().state == driver::State::ready; }

void run_gpu(const graph::Graph& g, Call& call) {
  const driver::Device& device = driver::device(0);
  const cuda::Emitted e =
      cuda::emit(g, {.compute_capability = compute_capability_of(device.arch())});
  const nvrtc::Result r = nvrtc::compile(
      {.source = device::prelude(device::Half::cuda, e.text) + e.text, .arch = device.arch()});
  if (!r.ok) throw CudaError(r.log);
  const driver::ContextScope context(0);
  const driver::Stream stream;
  std::string rejection;
  auto kernel = driver::Kernel::load(r.cubin, e.entry, 0, rejection);
  if (!kernel) throw CudaError("the driver rejects the cubin: " + rejection);
  if (e.shared_bytes > 48 * 1024)
    kernel->allow_shared_bytes(static_cast<std::size_t>(e.shared_bytes), 0);
  std::vector<driver::DeviceMemory> memory(call.arrays.size());
  std::vector<void*> addresses;
  for (std::size_t i = 0; i < call.arrays.size(); ++i) {
    const std::size_t s = storage_of(g, i);
    if (s == i) {
      memory[i] = driver::DeviceMemory(0, call.arrays[i].size(), stream.handle());
      driver::copy_to_device(memory[i].pointer(), call.arrays[i].data(), call.arrays[i].size(),
                             stream.handle());
    }
    addresses.push_back(memory[s].pointer());
  }
  const runtime::LaunchPlan plan = runtime::plan_of(e);
  Arguments arguments = arguments_of(g, plan, call, addresses, driver::encode);
  if (const std::int64_t blocks = blocks_of(plan, call); blocks > 0)
    driver::launch(*kernel,
                   {.grid = {static_cast<unsigned>(blocks), 1, 1},
                    .block = {static_cast<unsigned>(e.threads), 1, 1},
                    .cluster = {static_cast<unsigned>(e.cluster_blocks), 1, 1},
                    .shared_bytes = static_cast<unsigned>(e.shared_bytes),
                    .cooperative = graph::blocks_may_wait(g, graph::Counting::launch),
                    .stream = stream.handle()},
                   arguments.pointers.data());
  for (std::size_t i = 0; i < call.arrays.size(); ++i)
    if (storage_of(g, i) == i)
      driver::copy_to_host(call.arrays[i].data(), memory[i].pointer(), call.arrays[i].size(),
                           stream.handle());
  driver::synchronize(stream.handle());
}

int compute_capability_of(const std::string& arch) { return std::stoi(arch.substr(3)); }

namespace {

std::string compile_problem(const cuda::Emitted& e, const std::string& arch) {
  const nvrtc::Result r = nvrtc::compile(
      {.source = device::prelude(device::Half::cuda, e.text) + e.text, .arch = arch});
  if (!r.ok) return arch + ": " + r.log + "\n" + e.text;
  const Resources used = nvrtc::parse_log(r.log);
  if (used.spill_load_bytes || used.spill_store_bytes || used.stack_bytes || !used.warnings.empty())
    return arch + ": " + r.log + "\n" + e.text;
  return "";
}

cuda::Emitted emitted_for(const graph::Graph& g, const std::string& arch) {
  return cuda::emit(g, {.compute_capability = compute_capability_of(arch)});
}

}  // namespace

std::string compile_problem(const lowered::Program& l, const std::string& arch) {
  return compile_problem(cuda::emit(l), arch);
}

std::string compile_problem(const graph::Graph& g, const std::string& arch) {
  return compile_problem(emitted_for(g, arch), arch);
}

std::string compile_problem(const graph::Graph& g) {
  const std::string architectures[] = {"sm_75", "sm_80", "sm_90a", "sm_100a"};
  std::map<std::string, std::vector<std::string>> by_text;
  for (const std::string& arch : architectures) by_text[emitted_for(g, arch).text].push_back(arch);
  for (const auto& [text, alike] : by_text)
    for (const std::string& arch : std::set{alike.front(), alike.back()})
      if (std::string problem = compile_problem(g, arch); !problem.empty()) return problem;
  return "";
}

}  // namespace palladium::test
