#include "runtime/interpreter/interpreter.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>

#include "codegen/base/dim.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/limits.hpp"
#include "palladium/error.hpp"
#include "runtime/fiber/fiber.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/plan.hpp"
#include "runtime/interpreter/window.hpp"
#include "runtime/race/reader_map.hpp"
#include "runtime/race/unwritten.hpp"
#include "runtime/race/writer_map.hpp"

namespace palladium::interpreter {
namespace {

using graph::Argument;
using graph::Graph;
using graph::Op;
using graph::Semantics;

// Advances a row-major index, last dimension fastest; false after the last one.
bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& extents) {
  for (std::size_t d = extents.size(); d > 0; --d) {
    if (++index[d - 1] < extents[d - 1]) return true;
    index[d - 1] = 0;
  }
  return false;
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string result;
  for (const std::string& part : parts) result += (result.empty() ? "" : separator) + part;
  return result;
}

std::string joined(std::span<const std::int64_t> numbers, const char* separator) {
  std::vector<std::string> parts;
  for (const std::int64_t n : numbers) parts.push_back(std::to_string(n));
  return joined(parts, separator);
}

// "(0, 3)"
std::string text(std::span<const std::int64_t> indices) {
  return "(" + joined(indices, ", ") + ")";
}

// Evaluation recurses into regions: 4 KiB for each, in few sizes, which the stacks' arena keeps.
std::size_t stack_bytes(const Plan& plan) { return 256 * 1024 * (1 + plan.depth() / 64); }

// One call of a kernel.
class Machine {
 public:
  Machine(const Graph& g, const Invocation& call, const Options& options)
      : graph_(g),
        call_(call),
        options_(options),
        plan_(g),
        maps_(plan_, options.poison),
        scheduler_({.stack_bytes = stack_bytes(plan_)}) {
    measure_grid();
    if (options.detect_races) races_.emplace(g);
    connect_operands();
    make_blocks();
  }

  void run() {
    if (std::find(grid_.begin(), grid_.end(), 0) == grid_.end()) {
      try {
        run_programs();
      } catch (const CompileError& e) {
        // A race may well be the cause of it.
        if (races_ && races_->found()) races_->refuse(e.what());
        throw;
      }
      if (races_ && races_->found()) races_->refuse();
    }
    tell_unwritten();
  }

 private:
  // One of the blocks of a cluster: it has windows and scratch of its own, shared by its threads.
  struct Block {
    std::vector<std::int64_t> rank;  // per cluster axis
    std::deque<Window> windows;      // as block mappings
    std::deque<Window> scratch;
    std::deque<Frame> threads;
    std::vector<RegionId> regions;  // per thread
  };

  // What an output holds where no input is aliased to it, and nobody wrote.
  void tell_unwritten() const {
    for (const Operand& output : operands_)
      if (!output.keeps_contents)
        race::tell(
            race::find_unwritten(*output.writers, output.shape, dense_strides(output.shape, 1)),
            graph_.name, output.mapping->origin, options_.unwritten_is_error, graph_.at);
  }

  void run_programs() {
    std::vector<std::int64_t> parallel(parallel_sizes_.size());
    do {
      run_program(parallel);
      ++program_;
    } while (advance(parallel, parallel_sizes_));
  }

  void measure_grid() {
    for (const Dim& d : graph_.mapping.grid) grid_.push_back(evaluate(d, call_.symbols));
    graph::check_grid(graph_, grid_, graph_.at);
    for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
      const bool sequential =
          axis < graph_.semantics.size() && graph_.semantics[axis] == Semantics::sequential;
      (sequential ? sequential_axes_ : parallel_axes_).push_back(axis);
      (sequential ? sequential_sizes_ : parallel_sizes_).push_back(grid_[axis]);
    }
    for (const int n : graph_.cluster) {
      cluster_.push_back(n);
      cluster_blocks_ *= static_cast<std::uint32_t>(n);
    }
  }

  void connect_operands() {
    const GridMapping& mapping = graph_.mapping;
    const std::size_t n = mapping.block_mappings.size();
    if (call_.arrays.size() != n ||
        call_.scalars.size() != static_cast<std::size_t>(graph_.num_scalars()))
      throw InternalError(fmt::format(
          "interpreter: kernel {} takes {} arrays and {} scalars, given {} and {}", graph_.name, n,
          graph_.num_scalars(), call_.arrays.size(), call_.scalars.size()));
    for (std::size_t i = 0; i < n; ++i) {
      const BlockMapping& m = mapping.block_mappings[i];
      const Buffer& array = call_.arrays[i];
      Operand operand;
      operand.mapping = &m;
      operand.data = static_cast<std::byte*>(array.data);
      for (const Dim& d : m.array_aval.shape) operand.shape.push_back(evaluate(d, call_.symbols));
      if (array.shape != operand.shape)
        throw InternalError(
            fmt::format("interpreter: {} of kernel {} is {}, given an array of shape [{}]",
                        m.origin, graph_.name, to_string(m.array_aval), joined(array.shape, ",")));
      operand.strides = array.strides.empty() ? dense_strides(operand.shape, 1) : array.strides;
      operand.written = stores_to(i);
      operand.keeps_contents = i < static_cast<std::size_t>(mapping.num_inputs);
      operands_.push_back(std::move(operand));
    }
    // An output and the inputs that are aliased to it are one memory.
    for (const graph::Alias& alias : graph_.aliases) {
      Operand& output = operands_[static_cast<std::size_t>(mapping.num_inputs + alias.output)];
      output.keeps_contents = output.aliased = true;
      operands_[static_cast<std::size_t>(alias.input)].aliased = true;
    }
    for (int o = 0; o < mapping.num_outputs; ++o) {
      Operand& output = operands_[static_cast<std::size_t>(mapping.num_inputs + o)];
      writers_.emplace_back(static_cast<std::size_t>(graph::element_count(output.shape)));
      output.writers = &writers_.back();
      output.many_writers = graph_.allow_revisit;
      const bool has_readers = output.aliased && !graph_.allow_revisit;
      if (has_readers) output.readers = &readers_.emplace_back(output.writers->elements());
      for (const graph::Alias& alias : graph_.aliases) {
        if (alias.output != o) continue;
        Operand& input = operands_[static_cast<std::size_t>(alias.input)];
        input.writers = output.writers;
        input.readers = output.readers;
      }
    }
  }

  // Parameter of a body's region that is block mapping i's Ref.
  std::size_t parameter_of(std::size_t i) const {
    const auto inputs = static_cast<std::size_t>(graph_.mapping.num_inputs);
    if (i >= inputs) return graph_.arguments.size() + i - inputs;
    for (std::size_t a = 0; a < graph_.arguments.size(); ++a)
      if (graph_.arguments[a].kind == Argument::Kind::input &&
          static_cast<std::size_t>(graph_.arguments[a].index) == i)
        return a;
    throw InternalError(fmt::format("interpreter: no argument of kernel {} is {}", graph_.name,
                                    graph_.mapping.block_mappings[i].origin));
  }

  bool stores_to(std::size_t mapping) const {
    const std::size_t parameter = parameter_of(mapping);
    for (const Inst& inst : graph_.insts)
      if (graph::may_write(graph::info(inst.op).effect))
        for (const graph::Body& body : graph_.bodies)
          if (graph_.root(inst.args[0]) == graph_[body.region].params[parameter]) return true;
    return false;
  }

  std::uint64_t poison(DType dtype) const { return options_.poison ? poison_bits(dtype) : 0; }

  void make_blocks() {
    std::int64_t threads = 0;
    for (const graph::Body& body : graph_.bodies) threads += body.warpgroups;
    std::vector<std::int64_t> rank(cluster_.size());
    do {
      Block& block = blocks_.emplace_back();
      block.rank = rank;
      for (const Operand& operand : operands_)
        block.windows.emplace_back(operand, poison(operand.mapping->array_aval.dtype));
      for (const AbstractValue& scratch : graph_.mapping.scratch_avals) {
        graph::Extents shape;
        for (const Dim& d : scratch.type.shape) shape.push_back(d.value());
        block.scratch.emplace_back(
            graph::Type::ref(scratch.type.dtype, std::move(shape), scratch.memory_space),
            fmt::format("scratch[{}]", block.scratch.size()), poison(scratch.type.dtype));
      }
      for (const graph::Body& body : graph_.bodies)
        for (int w = 0; w < body.warpgroups; ++w) {
          Frame& frame = block.threads.emplace_back(plan_, options_.poison);
          frame.position = {{}, grid_, rank, cluster_, 0, threads};
          frame.position.thread = static_cast<std::int64_t>(block.regions.size());
          block.regions.push_back(body.region);
        }
      if (races_) watch(block);
    } while (advance(rank, cluster_));
    maps_.position = {{}, grid_, {}, cluster_, 0, threads};
  }

  // Refs that some thread may write; what is only read cannot race.
  void watch(Block& block) {
    const auto memory = [&](std::string name, Window& w) {
      w.races = &races_->add_memory(std::move(name), w.dtype(), w.ref_shape());
    };
    for (Window& w : block.windows)
      if (w.operand()->written) memory(w.operand()->mapping->origin, w);
    for (Window& scratch : block.scratch) memory(scratch.name(), scratch);
    for (Frame& frame : block.threads) {
      std::string name = fmt::format("thread {}", frame.position.thread);
      if (cluster_blocks_ > 1) name += fmt::format(" of block {}", blocks_.size() - 1);
      frame.races = &*races_;
      frame.agent = races_->add_thread(std::move(name));
    }
  }

  // All that runs at one place of the parallel axes: the sequential ones are a loop inside, which
  // keeps scratch, and windows as long as their block index stays.
  void run_program(const std::vector<std::int64_t>& parallel) {
    std::vector<std::int64_t> id(grid_.size()), sequential(sequential_sizes_.size());
    for (std::size_t i = 0; i < parallel.size(); ++i) id[parallel_axes_[i]] = parallel[i];
    for (Block& block : blocks_)
      for (Window& scratch : block.scratch) scratch.poison();
    if (races_) races_->start_program(place_text(parallel));
    bool first = true;
    do {
      for (std::size_t i = 0; i < sequential.size(); ++i) id[sequential_axes_[i]] = sequential[i];
      for (std::size_t b = 0; b < blocks_.size(); ++b) move_windows(b, id, first);
      first = false;
      visit(id);
    } while (advance(sequential, sequential_sizes_));
    for (Block& block : blocks_)
      for (Window& window : block.windows) close(window);
  }

  void move_windows(std::size_t b, const std::vector<std::int64_t>& id, bool first) {
    Block& block = blocks_[b];
    maps_.position.grid = id;
    maps_.position.cluster = block.rank;
    // All are stored before one is opened: a block may be read again through another window.
    std::vector<std::vector<std::int64_t>> indices;
    std::vector<bool> moves;
    for (Window& window : block.windows) {
      indices.push_back(block_index(*window.operand()->mapping));
      moves.push_back(first || !std::equal(indices.back().begin(), indices.back().end(),
                                           window.indices().begin(), window.indices().end()));
      if (moves.back() && !first) close(window);
    }
    const auto program = static_cast<std::uint32_t>(program_ * cluster_blocks_ + b);
    for (std::size_t i = 0; i < block.windows.size(); ++i) {
      if (!moves[i]) continue;
      if (const auto dimension = block.windows[i].open(indices[i], program))
        refuse_outside(block.windows[i], id, *dimension);
      if (block.windows[i].races != nullptr) block.windows[i].races->shadow.clear();
    }
  }

  std::vector<std::int64_t> block_index(const BlockMapping& mapping) {
    std::vector<std::int64_t> index(mapping.block_shape.size());
    if (mapping.index_map == no_region) return index;
    const RegionId region{mapping.index_map};
    const std::vector<ValueId>& params = graph_[region].params;
    for (std::size_t i = 0; i < params.size(); ++i)
      maps_.set_number(params[i], maps_.position.grid[i]);
    maps_.run(region);
    const std::vector<ValueId>& yields = graph_[region].yields;
    for (std::size_t d = 0; d < index.size(); ++d) index[d] = maps_.number(yields[d]);
    return index;
  }

  // Every Pallas thread of the cluster, for one visit.
  void visit(const std::vector<std::int64_t>& id) {
    for (Block& block : blocks_)
      for (std::size_t t = 0; t < block.threads.size(); ++t) {
        Frame& frame = block.threads[t];
        frame.position.grid = id;
        bind(frame, graph_[block.regions[t]].params, block);
        scheduler_.spawn([&frame, region = block.regions[t]] { frame.run(region); });
      }
    scheduler_.run();
  }

  void bind(Frame& frame, const std::vector<ValueId>& params, Block& block) {
    std::size_t next = 0;
    for (const Argument& argument : graph_.arguments) {
      const ValueId param = params[next++];
      if (argument.kind == Argument::Kind::input) {
        block.windows[static_cast<std::size_t>(argument.index)].bind(frame.view(param));
      } else {
        fill(frame.bytes(param), 1, argument.dtype.bytes(),
             call_.scalars[static_cast<std::size_t>(argument.index)]);
      }
    }
    for (std::size_t o = static_cast<std::size_t>(graph_.mapping.num_inputs);
         o < block.windows.size(); ++o)
      block.windows[o].bind(frame.view(params[next++]));
    for (Window& scratch : block.scratch) scratch.bind(frame.view(params[next++]));
  }

  void close(Window& window) {
    const auto clash = window.close();
    if (clash && !graph_.allow_revisit) refuse_clash(*window.operand(), *clash);
  }

  std::string axis_name(std::size_t axis) const {
    const std::vector<std::string>& names = graph_.mapping.grid_names;
    return axis < names.size() && !names[axis].empty()
               ? fmt::format("{} (\"{}\")", axis, names[axis])
               : std::to_string(axis);
  }

  [[noreturn]] void refuse_outside(const Window& window, const std::vector<std::int64_t>& id,
                                   int dimension) {
    const Operand& operand = *window.operand();
    const BlockMapping& m = *operand.mapping;
    const auto d = static_cast<std::size_t>(dimension);
    const bool blocked = m.block_shape[d].kind == BlockDim::Kind::blocked;
    Location where = graph_.at;
    if (m.index_map != no_region) {
      const Location at = graph_.location(graph_[RegionId{m.index_map}].yields[d]);
      if (!(at == Location{})) where = at;
    }
    throw CompileError(
        where,
        fmt::format("{}: in program {} block {} lies wholly out of bounds of the array of shape "
                    "[{}]: in dimension {} it starts at {}{}",
                    m.origin, text(id), text(window.indices()), joined(operand.shape, ","),
                    dimension, window.starts()[d],
                    blocked ? fmt::format(" = {} * {} (an index map returns block indices, not "
                                          "element offsets)",
                                          window.indices()[d], m.block_shape[d].size)
                            : std::string()));
  }

  std::vector<std::int64_t> parallel_id(std::uint32_t program) const {
    std::vector<std::int64_t> id(parallel_sizes_.size());
    std::int64_t rest = program / cluster_blocks_;
    for (std::size_t i = id.size(); i > 0; --i) {
      id[i - 1] = rest % parallel_sizes_[i - 1];
      rest /= parallel_sizes_[i - 1];
    }
    return id;
  }

  // "(0, 3)", with a star for each sequential axis.
  std::string place_text(const std::vector<std::int64_t>& parallel) const {
    std::vector<std::string> id(grid_.size(), "*");
    for (std::size_t i = 0; i < parallel.size(); ++i)
      id[parallel_axes_[i]] = std::to_string(parallel[i]);
    return fmt::format("({})", joined(id, ", "));
  }

  std::string program_text(std::uint32_t program) const {
    std::string result = place_text(parallel_id(program));
    if (cluster_blocks_ > 1) result += fmt::format(" block {}", program % cluster_blocks_);
    return result;
  }

  [[noreturn]] void refuse_clash(const Operand& operand, const Clash& clash) {
    const race::Conflict& both = clash.accesses;
    std::vector<std::string> axes;
    const auto first = parallel_id(both.first.program);
    const auto second = parallel_id(both.second.program);
    for (std::size_t i = 0; i < first.size(); ++i)
      if (first[i] != second[i]) axes.push_back("parallel axis " + axis_name(parallel_axes_[i]));
    if (axes.empty()) axes.push_back("the cluster's blocks");
    std::vector<std::int64_t> element(operand.shape.size());
    auto rest = static_cast<std::int64_t>(both.element);
    for (std::size_t d = element.size(); d > 0; --d) {
      element[d - 1] = rest % operand.shape[d - 1];
      rest /= operand.shape[d - 1];
    }
    const std::string what =
        clash.first_reads || clash.second_reads
            ? fmt::format("program {} reads element [{}], program {} writes it",
                          program_text((clash.first_reads ? both.first : both.second).program),
                          joined(element, ","),
                          program_text((clash.first_reads ? both.second : both.first).program))
            : fmt::format("programs {} and {} write the same element [{}]",
                          program_text(both.first.program), program_text(both.second.program),
                          joined(element, ","));
    const Location earlier = graph_.location(ValueId{both.first.tag});
    throw CompileError(
        graph_.location(ValueId{both.second.tag}),
        fmt::format("{}: {}, and they run in any order: they differ along {}{}",
                    operand.mapping->origin, what, joined(axes, " and "),
                    both.first.tag == both.second.tag || earlier == Location{}
                        ? std::string()
                        : fmt::format("; the first {} it at {}",
                                      clash.first_reads ? "read" : "wrote", to_string(earlier))));
  }

  const Graph& graph_;
  const Invocation& call_;
  const Options& options_;
  Plan plan_;
  Frame maps_;  // evaluates index maps
  std::vector<std::int64_t> grid_, cluster_;
  std::vector<std::size_t> parallel_axes_, sequential_axes_;
  std::vector<std::int64_t> parallel_sizes_, sequential_sizes_;
  std::uint32_t cluster_blocks_ = 1;
  std::vector<Operand> operands_;
  std::deque<race::WriterMap> writers_;
  std::deque<race::ReaderMap> readers_;
  std::deque<Block> blocks_;
  fiber::Scheduler scheduler_;
  std::optional<Races> races_;
  std::uint64_t program_ = 0;  // number among the places of the parallel axes
};

}  // namespace

void run(const graph::Graph& g, const Invocation& call, const Options& options) {
  Machine(g, call, options).run();
}

std::uint64_t poison_bits(DType dtype) {
  switch (dtype.kind()) {
  case DType::None: break;
  case DType::Bool: return 1;
  case DType::F16: return 0x7e00;
  case DType::BF16: return 0x7fc0;
  case DType::F32: return 0x7fc00000;
  case DType::F64: return 0x7ff8000000000000;
  default: return dtype.is_signed() ? std::uint64_t(1) << (dtype.bits() - 1) : 0;
  }
  throw InternalError("interpreter: a value without a dtype");
}

}  // namespace palladium::interpreter
