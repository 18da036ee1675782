// Pipelines drawn at random: of one thread, or of several beside one that copies, over grids that
// are known or not, with inputs that stay or change, outputs that are visited once or again and
// again. Interpreter, emulator and plain loops agree, and the verdict finds nothing.
#include <string>
#include <vector>

#include "tests/mosaic/mosaic.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::StartsWith;
using pl::_;

namespace random_pipelines {

/// Which block of an array a step (i, j) of {rows, columns} has.
enum class Map { both, row, column, none, backwards };

struct Plan {
  int rows = 1, columns = 1, height = 8, width = 32;  // of the grid, of a block
  bool dynamic = false;
  std::vector<Map> inputs, outputs;
  std::vector<int> delays, buffers;  // of inputs; 0: as all
  int slots = 1, computing = 0;      // 0: emit_pipeline
  bool carries = false, manual = false;
  int times = 1;
};

Plan drawn(Random& random) {
  Plan p;
  p.rows = random.between(1, 3);
  p.columns = random.between(1, 4);
  p.dynamic = random.chance(40);
  p.slots = random.between(1, 4);
  p.computing = random.between(0, 3);
  p.height = 8 * std::max(1, p.computing);
  p.carries = random.chance(50);
  p.manual = p.computing > 0 && random.chance(30);
  p.times = random.between(1, 2);
  for (int n = random.between(1, 3); n > 0; --n) {
    p.inputs.push_back(static_cast<Map>(random.below(5)));
    p.buffers.push_back(random.chance(30) ? random.between(1, 3) : 0);
    const int slots = p.buffers.back() > 0 ? p.buffers.back() : p.slots;
    p.delays.push_back(p.inputs.back() == Map::none ? 0 : random.between(0, slots - 1));
  }
  if (p.computing > 0) p.inputs[0] = Map::both;  // what has barriers
  if (p.manual) p.inputs.assign(2, Map::both), p.delays.assign(2, 0), p.buffers.assign(2, 0);
  const Map outputs[] = {Map::both, Map::row, Map::none};
  for (int n = random.between(0, 2); n > 0; --n) p.outputs.push_back(outputs[random.below(3)]);
  return p;
}

std::vector<int> block_of(const Plan& p, Map map, int i, int j) {
  switch (map) {
  case Map::both: return {i, j};
  case Map::row: return {i, 0};
  case Map::column: return {0, j};
  case Map::backwards: return {p.rows - 1 - i, j};
  default: return {0, 0};
  }
}

BlockSpec spec_of(const Plan& p, Map map, int delay, int buffers) {
  BlockSpec spec{{p.height, p.width}, [=, rows = p.rows](Index i, Index j) {
                   switch (map) {
                   case Map::both: return Indices{i, j};
                   case Map::row: return Indices{i, 0};
                   case Map::column: return Indices{0, j};
                   case Map::backwards: return Indices{rows - 1 - i, j};
                   default: return Indices{0, 0};
                   }
                 }};
  spec.delay_release = delay;
  if (buffers > 0) spec.pipeline_mode = Buffered(buffers);
  return spec;
}

/// What a step does with a part of its blocks: an output gets the sum of the inputs and a number of
/// the step, or adds it up while the block is the same.
Value compute(const Plan& p, const std::vector<Value>& at, Refs blocks, const Idx& part) {
  const std::size_t inputs = p.inputs.size();
  Value sum = full({p.height / std::max(1, p.computing), p.width}, at[0] * 10 + at[1], f32);
  for (std::size_t n = 0; n < inputs; ++n)
    sum = sum + Value(blocks[static_cast<int>(n)][{part, _}]);
  for (std::size_t n = 0; n < p.outputs.size(); ++n) {
    const Ref& o = blocks[static_cast<int>(inputs + n)];
    if (p.outputs[n] == Map::both) {
      o[{part, _}] = sum;
      continue;
    }
    const Value first = p.outputs[n] == Map::row ? at[1] == 0 : (at[0] == 0) & (at[1] == 0);
    pl::cond(
        first,
        [&] {
          o[{part, _}] = sum;
        },
        [&] {
          o[{part, _}] += sum;
        });
  }
  return sum;
}

using Steps = const std::vector<Value>&;

/// One thread, or each thread a part beside one that copies; `last` gets what was carried.
void pipeline(const Plan& p, const std::vector<Value>& grid, const std::vector<BlockSpec>& in,
              const std::vector<BlockSpec>& out, const std::vector<Ref>& arrays, const Ref& last) {
  if (p.computing == 0) {
    const auto part = ds(0, p.height);
    if (!p.carries)
      return gpu::emit_pipeline(
          [=](Steps at, Refs blocks) { (void)compute(p, at, blocks, part); },
          {.grid = grid, .in_specs = in, .out_specs = out, .max_concurrent_steps = p.slots})(
          arrays);
    last[_] = gpu::emit_pipeline(
        [=](Steps at, Refs blocks, Value sum) { return sum + compute(p, at, blocks, part); },
        {.grid = grid,
         .in_specs = in,
         .out_specs = out,
         .max_concurrent_steps = p.slots,
         .init_carry = {zeros({p.height, p.width}, f32)}})(arrays);
    return;
  }
  const int rows = p.height / p.computing;
  const auto part = ds(axis_index("wg") * rows, rows);
  gpu::EmitPipelineWarpSpecializedOptions options{.grid = grid,
                                                  .memory_registers = 40,
                                                  .in_specs = in,
                                                  .out_specs = out,
                                                  .max_concurrent_steps = p.slots,
                                                  .wg_axis = "wg",
                                                  .num_compute_wgs = p.computing,
                                                  .manual_consumed_barriers = p.manual};
  const auto step = [=](Steps at, Refs blocks) {
    const Value sum = compute(p, at, blocks, part);
    const auto barriers = static_cast<int>(p.inputs.size() + p.outputs.size());
    for (int i = barriers; i < blocks.size(); ++i) gpu::barrier_arrive(blocks[i]);
    return sum;
  };
  if (!p.carries)
    return gpu::emit_pipeline_warp_specialized(
        [=](Steps at, Refs blocks) { (void)step(at, blocks); }, options)(arrays);
  options.compute_context = [=](const gpu::PipelineRun& run) {
    last[{part, _}] = run(zeros({rows, p.width}, f32));
  };
  gpu::emit_pipeline_warp_specialized(
      [=](Steps at, Refs blocks, Value sum) { return sum + step(at, blocks); }, options)(arrays);
}

Kernel kernel_of(const Plan& p) {
  const std::vector<std::int64_t> shape = {p.rows * p.height, p.columns * p.width};
  std::vector<ShapeDtype> outputs(p.outputs.size(),
                                  ShapeDtype{{p.rows * p.height, p.columns * p.width}, f32});
  outputs.push_back(ShapeDtype{{p.height, p.width}, f32});
  std::vector<BlockSpec> in, out;
  for (std::size_t n = 0; n < p.inputs.size(); ++n)
    in.push_back(spec_of(p, p.inputs[n], p.delays[n], p.buffers[n]));
  for (const Map map : p.outputs) out.push_back(spec_of(p, map, 0, 0));
  return gpu::kernel(
      [=](Ref sizes, Ref x, Refs others) {
        std::vector<Ref> arrays(p.inputs.size(), x);
        for (int n = 0; n + 1 < others.size(); ++n) arrays.push_back(others[n]);
        std::vector<Value> grid = {p.rows, p.columns};
        if (p.dynamic) grid = {Value(sizes[0]), Value(sizes[1])};
        pl::loop(0, p.times,
                 [&](Index) { pipeline(p, grid, in, out, arrays, others[others.size() - 1]); });
      },
      {.name = "drawn",
       .out_type = outputs,
       .num_threads = p.computing + 1,
       .thread_name = "wg",
       .interpret = InterpretParams{.detect_races = true}});
}

/// By plain loops: each output, then what was carried.
std::vector<std::vector<float>> expected(const Plan& p, const Array& x) {
  const int width = p.columns * p.width;
  const auto size = static_cast<std::size_t>(p.rows * p.height * width);
  std::vector<std::vector<float>> all(p.outputs.size(), std::vector<float>(size));
  std::vector<float> carried(static_cast<std::size_t>(p.height * p.width));
  for (int i = 0; i < p.rows; ++i)
    for (int j = 0; j < p.columns; ++j)
      for (int e = 0; e < p.height * p.width; ++e) {
        const auto place = [&](Map map) {
          const std::vector<int> at = block_of(p, map, i, j);
          return static_cast<std::size_t>((at[0] * p.height + e / p.width) * width +
                                          at[1] * p.width + e % p.width);
        };
        auto sum = static_cast<float>(10 * i + j);
        for (const Map map : p.inputs) sum += x.data<float>()[place(map)];
        for (std::size_t n = 0; n < p.outputs.size(); ++n) {
          const Map map = p.outputs[n];
          const bool first = map == Map::both || (map == Map::row ? j == 0 : i + j == 0);
          float& to = all[n][place(map)];
          to = first ? sum : to + sum;
        }
        carried[static_cast<std::size_t>(e)] += sum;
      }
  all.push_back(carried);
  return all;
}

std::string text_of(const Plan& p) {
  std::string text = std::to_string(p.rows) + "x" + std::to_string(p.columns) + " steps, " +
                     std::to_string(p.slots) + " slots, " + std::to_string(p.computing) +
                     " computing";
  if (p.dynamic) text += ", dynamic";
  if (p.carries) text += ", carries";
  if (p.manual) text += ", manual";
  for (std::size_t n = 0; n < p.inputs.size(); ++n)
    text += " in " + std::to_string(static_cast<int>(p.inputs[n])) + " delay " +
            std::to_string(p.delays[n]) + " buffers " + std::to_string(p.buffers[n]);
  for (const Map map : p.outputs) text += " out " + std::to_string(static_cast<int>(map));
  return text;
}

// What is not visited holds anything.
bool agrees(const Plan& p, const std::vector<Array>& given, const Array& x) {
  const std::vector<std::vector<float>> all = expected(p, x);
  const auto width = static_cast<std::size_t>(p.columns * p.width);
  bool right = true;
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (n + 1 == all.size() && !p.carries) continue;
    const Map map = n + 1 == all.size() ? Map::both : p.outputs[n];
    const std::vector<float> values = elements<float>(given[n]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool visited =
          map == Map::both || (i % width < static_cast<std::size_t>(p.width) &&
                               (map == Map::row || i / width < static_cast<std::size_t>(p.height)));
      right = right && (!visited || values[i] == all[n][i]);
    }
  }
  return right;
}

void check(std::uint64_t seed, bool emulated) {
  Random random(seed);
  const Plan p = drawn(random);
  INFO(text_of(p));
  const Array x = counted({p.rows * p.height, p.columns * p.width});
  const Array sizes =
      make_array<std::int32_t>({2}, [&](std::int64_t i) { return i == 0 ? p.rows : p.columns; });
  const Kernel k = kernel_of(p);
  const auto run = [&](Target target) {
    const Outputs outputs = k.on(target)(on(target, sizes), on(target, x));
    std::vector<Array> arrays;
    for (std::size_t n = 0; n <= p.outputs.size(); ++n)
      arrays.push_back(outputs[static_cast<int>(n)]);
    return arrays;
  };
  CHECK(agrees(p, run(Target::interpreter), x));
  const std::string verdict = verdict_of(k, {ShapeDtype{{2}, i32}, ShapeDtype{x.shape(), f32}});
  CHECK_FALSE(verdict.starts_with("counterexample"));
  if (emulated && is_wanted(Target::emulator)) CHECK(agrees(p, run(Target::emulator), x));
  if (!devices().empty()) CHECK(agrees(p, run(Target::cuda), x));
}

TEST_CASE("pipelines that are drawn at random do what plain loops do") {
  for_seeds(1, is_full() ? 1000 : 60,
            [](std::uint64_t seed) { check(seed, is_full() || seed % 6 == 0); });
}

}  // namespace random_pipelines
