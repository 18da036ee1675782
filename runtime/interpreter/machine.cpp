#include "runtime/interpreter/machine.hpp"

#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/graph/warps.hpp"
#include "palladium/error.hpp"

namespace palladium::interpreter {
namespace {

using graph::Argument;

// Advances a row-major index, last dimension fastest; false after the last one.
bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& extents) {
  for (std::size_t d = extents.size(); d > 0; --d) {
    if (++index[d - 1] < extents[d - 1]) return true;
    index[d - 1] = 0;
  }
  return false;
}

fiber::Scheduler::Options schedule(const Launch& launch) {
  // Evaluation recurses into regions: 4 KiB for each, in few sizes, which the stacks' arena keeps.
  fiber::Scheduler::Options o{.stack_bytes = 256 * 1024 * (1 + launch.plan.depth() / 64)};
  if (launch.options.seed) {
    o.order = fiber::Order::random;
    o.seed = *launch.options.seed;
  }
  return o;
}

// Whether a program is one thread that waits for nobody, and needs no more stack than every thread
// has.
bool runs_through(const Launch& launch) {
  constexpr std::size_t most_depth = 8;
  const graph::Graph& g = launch.graph;
  const bool waits = std::ranges::any_of(g.insts, [](const graph::Inst& in) {
    return in.op == graph::Op::Warps ||
           (graph::effects(in.op).syncs && in.op != graph::Op::ScopeEvent);
  });
  return !waits && g.bodies.size() == 1 && g.bodies[0].warpgroups == 1 &&
         launch.cluster_blocks == 1 && launch.plan.depth() <= most_depth;
}

}  // namespace

Machine::Machine(const Launch& launch)
    : launch_(launch),
      graph_(launch.graph),
      maps_(launch.plan, launch.options.poison),
      scheduler_(schedule(launch)),
      semaphores_(scheduler_),
      arrays_(launch.operands.size()) {
  if (launch.options.detect_races || launch.is_concurrent) races_.emplace(graph_);
  runs_through_ = runs_through(launch);
  make_blocks();
  open_index_operands();
}

void Machine::make_blocks() {
  const std::uint64_t places = launch_.is_concurrent ? launch_.num_places() : 1;
  for (std::uint64_t place = 0; place < places; ++place) make_cluster(place);
}

void Machine::make_cluster(std::uint64_t place) {
  std::int64_t threads = 0;
  for (const graph::Body& body : graph_.bodies) threads += body.warpgroups;
  std::vector<std::int64_t> rank(launch_.cluster.size());
  const std::size_t first = blocks_.size();
  std::size_t number = 0;
  do {
    Block& block = blocks_.emplace_back();
    block.place = place;
    block.number = number++;
    block.rank = rank;
    for (const Operand& operand : launch_.operands)
      block.windows.emplace_back(operand, launch_.outside(*operand.mapping));
    for (std::size_t s = 0; s < graph_.mapping.scratch_avals.size(); ++s)
      block.scratch.push_back(scratch_window(s));
    for (const graph::Body& body : graph_.bodies)
      for (int w = 0; w < body.warpgroups; ++w) {
        Frame& frame = block.threads.emplace_back(launch_.plan, launch_.options.poison);
        frame.position = {{}, launch_.grid, rank, launch_.cluster, 0, threads};
        frame.position.thread = static_cast<std::int64_t>(block.regions.size());
        frame.launch = &launch_;
        frame.semaphores = &semaphores_;
        frame.scheduler = &scheduler_;
        frame.barriers = &barriers_;
        block.regions.push_back(body.region);
      }
    make_registers(block);
    if (races_) watch(block);
  } while (advance(rank, launch_.cluster));
  for (std::size_t b = first; b < blocks_.size(); ++b)
    for (std::size_t other = first; other < blocks_.size(); ++other)
      for (std::size_t t = 0; t < blocks_[b].threads.size(); ++t)
        blocks_[b].threads[t].cluster.push_back(&blocks_[other].threads[t]);
  maps_.position = {{}, launch_.grid, {}, launch_.cluster, 0, threads};
}

// Whole arrays, which nobody writes: index maps see one window of each.
void Machine::open_index_operands() {
  for (int i = 0; i < graph_.mapping.num_index_operands; ++i) {
    const Operand& operand = launch_.operands[static_cast<std::size_t>(i)];
    Window& window = index_operands_.emplace_back(operand, launch_.outside(*operand.mapping));
    window.open(std::vector<std::int64_t>(operand.shape.size()), 0);
  }
}

Window Machine::scratch_window(std::size_t number) const {
  const AbstractValue& scratch = graph_.mapping.scratch_avals[number];
  graph::Extents shape;
  for (const Dim& d : scratch.type.shape) shape.push_back(d.value());
  return {graph::Type::ref(scratch.type.dtype, std::move(shape), scratch.memory_space),
          fmt::format("scratch[{}]", number), launch_.poison(scratch.type.dtype)};
}

// Registers are a thread's own.
void Machine::make_registers(Block& block) {
  const std::vector<AbstractValue>& scratch = graph_.mapping.scratch_avals;
  for (std::size_t t = 1; t < block.threads.size(); ++t) {
    std::deque<Window>& own = block.registers.emplace_back();
    for (std::size_t s = 0; s < scratch.size(); ++s)
      if (graph::is_own(scratch[s].memory_space)) own.push_back(scratch_window(s));
  }
}

// Refs that some thread may write; what is only read cannot race.
void Machine::watch(Block& block) {
  const auto memory = [&](std::string name, Window& w) {
    return w.races = &races_->add_memory(std::move(name), w.dtype(),
                                         w.is_array() ? w.operand()->shape : w.ref_shape());
  };
  for (std::size_t i = 0; i < block.windows.size(); ++i) {
    Window& w = block.windows[i];
    if (!w.operand()->written) continue;
    if (!w.is_array() || arrays_[i] == nullptr)
      arrays_[i] = memory(w.operand()->mapping->origin, w);
    w.races = arrays_[i];
  }
  for (std::size_t s = 0; s < block.scratch.size(); ++s)
    if (!graph::is_own(graph_.mapping.scratch_avals[s].memory_space))
      memory(block.scratch[s].name(), block.scratch[s]);
  for (Frame& frame : block.threads) {
    std::string name = fmt::format("thread {}", frame.position.thread);
    if (launch_.is_concurrent) name += " of program " + launch_.text_of_place(block.place);
    if (launch_.cluster_blocks > 1) name += fmt::format(" of block {}", block.number);
    frame.races = &*races_;
    if (graph::has_warps(graph_))
      for (int w = 0; w < graph::num_warps; ++w)
        frame.warp_agents.push_back(races_->add_thread(fmt::format("warp {} of {}", w, name)));
    if (graph::has_async_ops(graph_)) add_copy_agents(frame, name);
    frame.agent = races_->add_thread(std::move(name));
  }
}

void Machine::add_copy_agents(Frame& frame, const std::string& thread) {
  const std::string name = "a copy of " + thread;
  frame.copy_agents = {races_->add_thread(name), races_->add_thread(name), races_->add_thread(name),
                       races_->add_thread("a product of " + thread)};
}

void Machine::run(std::uint64_t place) {
  if (!races_) return run_visits(place);
  races_->start_program(launch_.is_concurrent ? "any" : launch_.text_of_place(place));
  try {
    run_visits(place);
  } catch (const CompileError& e) {
    // A race may well be the cause of it.
    if (races_->found()) races_->refuse(e.what());
    throw;
  }
  if (races_->found()) races_->refuse();
}

void Machine::run_visits(std::uint64_t place) {
  std::vector<std::int64_t> sequential(launch_.sequential_sizes.size());
  for (Block& block : blocks_) {
    const std::vector<std::int64_t> parallel = launch_.index_of(place + block.place);
    block.id.resize(launch_.grid.size());
    for (std::size_t i = 0; i < parallel.size(); ++i)
      block.id[launch_.parallel_axes[i]] = parallel[i];
    for (Window& scratch : block.scratch) scratch.poison();
    for (std::deque<Window>& own : block.registers)
      for (Window& scratch : own) scratch.poison();
  }
  barriers_.clear();
  bool first = true;
  do {
    for (Block& block : blocks_) {
      for (std::size_t i = 0; i < sequential.size(); ++i)
        block.id[launch_.sequential_axes[i]] = sequential[i];
      move_windows(block, place + block.place, first);
    }
    first = false;
    visit();
  } while (advance(sequential, launch_.sequential_sizes));
  check_ends();
  for (Block& block : blocks_)
    for (Window& window : block.windows) close(window);
}

// Barriers are done with, and what copies read is there no more.
void Machine::check_ends() {
  for (const auto& [which, barrier] : barriers_) Semaphores::check_end(barrier, graph_.at);
  for (Block& block : blocks_)
    for (Frame& frame : block.threads) {
      CopyGroups copies = std::exchange(frame.copies, {});
      frame.products.clear();
      const std::vector<Sent> fetches = std::exchange(frame.fetches, {});
      if (const std::size_t fetched = std::exchange(frame.fetched, 0); fetched < fetches.size())
        throw CompileError(fetches[fetched].at,
                           fmt::format("copy_gmem_to_smem: thread {} ends before the copy is "
                                       "there: plgpu::wait_gmem_to_smem(0)",
                                       frame.position.thread));
      if (!copies.open.empty()) copies.closed.push_back(copies.open);
      if (copies.read < copies.closed.size() && !copies.closed[copies.read].empty())
        throw CompileError(copies.closed[copies.read][0].at,
                           fmt::format("copy_smem_to_gmem: thread {} ends before the copy has read "
                                       "what it copies: plgpu::wait_smem_to_gmem(0)",
                                       frame.position.thread));
    }
}

void Machine::move_windows(Block& block, std::uint64_t place, bool first) {
  maps_.position.grid = block.id;
  maps_.position.cluster = block.rank;
  // All are stored before one is opened: a block may be read again through another window.
  moves_.resize(block.windows.size());
  for (std::size_t i = 0; i < moves_.size(); ++i) {
    Window& window = block.windows[i];
    Move& move = moves_[i];
    find_block(*window.operand()->mapping, move.indices);
    move.moves = first || !std::ranges::equal(move.indices, window.indices());
    if (move.moves && !first) close(window);
  }
  for (std::size_t i = 0; i < moves_.size(); ++i) {
    if (!moves_[i].moves) continue;
    const auto dimension =
        block.windows[i].open(moves_[i].indices, launch_.program(place, block.number));
    if (dimension && !block.windows[i].operand()->is_absent)
      launch_.refuse_outside(block.windows[i], block.id, *dimension);
    if (block.windows[i].races != nullptr) block.windows[i].races->shadow.clear();
  }
}

void Machine::find_block(const BlockMapping& mapping, std::vector<std::int64_t>& index) {
  index.assign(mapping.num_indices(), 0);
  if (mapping.index_map == no_region) return;
  const RegionId region{mapping.index_map};
  const std::vector<ValueId>& params = graph_[region].params;
  const std::size_t axes = maps_.position.grid.size();
  for (std::size_t i = 0; i < axes; ++i) maps_.set_number(params[i], maps_.position.grid[i]);
  for (std::size_t i = 0; i < index_operands_.size(); ++i)
    index_operands_[i].bind(maps_.view(params[axes + i]));
  maps_.run(region);
  const std::vector<ValueId>& yields = graph_[region].yields;
  for (std::size_t d = 0; d < index.size(); ++d) index[d] = maps_.number(yields[d]);
}

// Every Pallas thread of the blocks, for one visit.
void Machine::visit() {
  for (Block& block : blocks_)
    for (std::size_t t = 0; t < block.threads.size(); ++t) {
      Frame& frame = block.threads[t];
      frame.position.grid = block.id;
      bind(frame, graph_[block.regions[t]].params, block, t);
      if (runs_through_) {
        frame.run(block.regions[t]);
        continue;
      }
      scheduler_.spawn([&frame, region = block.regions[t]] { frame.run(region); });
    }
  if (!runs_through_) scheduler_.run();
}

void Machine::bind(Frame& frame, const std::vector<ValueId>& params, Block& block,
                   std::size_t thread) {
  std::size_t next = 0;
  for (const Argument& argument : graph_.arguments) {
    const ValueId param = params[next++];
    if (argument.kind == Argument::Kind::input) {
      block.windows[static_cast<std::size_t>(argument.index)].bind(frame.view(param));
    } else {
      fill(frame.bytes(param), 1, argument.dtype.bytes(),
           launch_.call.scalars[static_cast<std::size_t>(argument.index)]);
    }
  }
  for (std::size_t o = static_cast<std::size_t>(graph_.mapping.num_inputs);
       o < block.windows.size(); ++o)
    block.windows[o].bind(frame.view(params[next++]));
  std::size_t own = 0;
  for (std::size_t s = 0; s < block.scratch.size(); ++s) {
    const bool is_own = thread > 0 && graph::is_own(graph_.mapping.scratch_avals[s].memory_space);
    Window& scratch = is_own ? block.registers[thread - 1][own++] : block.scratch[s];
    scratch.bind(frame.view(params[next++]));
  }
}

void Machine::close(Window& window) {
  const auto clash = window.close();
  if (clash && !graph_.allow_revisit) launch_.refuse_clash(*window.operand(), *clash);
}

}  // namespace palladium::interpreter
