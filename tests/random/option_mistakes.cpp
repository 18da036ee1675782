// What a user can do wrong in options.
#include "codegen/base/format.hpp"
#include "tests/random/mistakes.hpp"

namespace palladium::test::random_calls {
namespace {

Grid& grid_in(PallasCallOptions& o) { return o.grid_spec.grid.empty() ? o.grid : o.grid_spec.grid; }
std::vector<BlockSpec>& in_specs(PallasCallOptions& o) {
  return o.grid_spec.in_specs.empty() ? o.in_specs : o.grid_spec.in_specs;
}
std::vector<BlockSpec>& out_specs(PallasCallOptions& o) {
  return o.grid_spec.out_specs.empty() ? o.out_specs : o.grid_spec.out_specs;
}
ScratchTypes& scratch_in(PallasCallOptions& o) {
  return o.grid_spec.grid.empty() && o.grid_spec.in_specs.empty() ? o.scratch_types
                                                                  : o.grid_spec.scratch_shapes;
}

void set_grid(Making& m, std::int64_t size) {
  m.say(fmt::format("grid size {}", size));
  m.at(kernel_line);
  if (m.plan.axes.empty())  // an index map may be found to take too few ids first
    for (int i = 0; i < 3; ++i)
      for (const int line : {in_map_line, out_map_line}) m.at(line, i);
  m.options([size, axis = static_cast<std::size_t>(m.axis())](PallasCallOptions& o) {
    Grid& grid = grid_in(o);
    if (axis < grid.sizes.size())
      grid.sizes[axis] = size;
    else
      grid.sizes.push_back(size);
  });
}

/// A spec of an input or output: its list, number, and lines.
struct Spec {
  bool output = false;
  int i = 0;
};
Spec some_spec(Making& m) {
  Spec s;
  s.output = m.random.chance(40);
  s.i = s.output ? m.some_output() : m.some_input();
  m.at(s.output ? out_spec_line : in_spec_line, s.i);
  m.at(s.output ? out_map_line : in_map_line, s.i);
  m.at(kernel_line);
  m.say(fmt::format("{} {}", s.output ? "output" : "input", s.i));
  return s;
}
const Operand& operand(const Making& m, const Spec& s) {
  return s.output ? m.plan.outputs[static_cast<std::size_t>(s.i)]
                  : m.plan.inputs[static_cast<std::size_t>(s.i)];
}
void change_spec(Making& m, Spec s, std::function<void(BlockSpec&)> change) {
  m.options([s, change = std::move(change)](PallasCallOptions& o) {
    std::vector<BlockSpec>& list = s.output ? out_specs(o) : in_specs(o);
    if (static_cast<std::size_t>(s.i) < list.size()) change(list[static_cast<std::size_t>(s.i)]);
  });
}
Location map_line(const Spec& s) { return user(s.output ? out_map_line : in_map_line, s.i); }

/// Another index map, of any number of ids.
template <class F>
void change_map(Making& m, const char* text, F indices) {
  const Spec s = some_spec(m);
  m.say(text);
  std::vector<BlockDim> block;
  for (const Cut& c : operand(m, s).cuts) block.push_back(c.block);
  const std::size_t rank = block.size();
  change_spec(m, s, [=](BlockSpec& spec) {
    spec.whole = false;
    spec.block_shape = block;
    spec.index_map =
        IndexMap([=](auto... ids) { return Indices(indices(std::vector<Value>{ids...}, rank)); },
                 map_line(s));
  });
}

const Mistake mistakes[] = {
    // ---- grid and cluster
    {"a negative grid", [](Making& m) { set_grid(m, m.negative()); }},
    {"an empty grid",
     [](Making& m) {
       set_grid(m, 0);
       m.free();
     }},
    {"a huge grid",
     [](Making& m) {
       set_grid(m, m.huge());
       m.blame.code = true;
     }},
    {"another grid",
     [](Making& m) {
       set_grid(m, m.random.between(1, 7));
       m.at(call_line);
       for (int i = 0; i < 3; ++i)
         for (const int line : {in_map_line, out_map_line, in_spec_line, out_spec_line})
           m.at(line, i);
       m.blame.code = true;
       m.free();
     }},
    {"a grid of too many axes",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) { grid_in(o).sizes.resize(9, Dim(1)); });
     }},
    {"a grid with a symbol that nothing knows",
     [](Making& m) {
       m.at(kernel_line);
       m.at(call_line);
       // An index map may be found to take too few ids first.
       for (int i = 0; i < 3; ++i)
         for (const int line : {in_map_line, out_map_line}) m.at(line, i);
       m.options([](PallasCallOptions& o) { grid_in(o).sizes.push_back(dim("nowhere")); });
     }},
    {"names of another number of axes",
     [](Making& m) {
       m.at(kernel_line);
       m.options(
           [](PallasCallOptions& o) { o.grid_names.assign(grid_in(o).sizes.size() + 1, "i"); });
     }},
    {"an axis name twice",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) {
         grid_in(o).sizes.resize(std::max<std::size_t>(2, grid_in(o).sizes.size()), Dim(1));
         o.grid_names.assign(grid_in(o).sizes.size(), "");
       });
     }},
    {"axes named in two places",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) {
         if (grid_in(o).sizes.empty()) grid_in(o).sizes.push_back(1);
         o.grid_names.assign(grid_in(o).sizes.size(), "i");
         grid_in(o).names = o.grid_names;
       });
     }},
    {"a cluster of a size that cannot be",
     [](Making& m) {
       const std::int64_t size = m.random.chance(50) ? m.huge() : m.random.pick({0, -1, -4});
       m.say(std::to_string(size));
       m.at(kernel_line);
       m.options([size](PallasCallOptions& o) { o.cluster = {size}; });
     }},
    {"a cluster of too many axes or blocks",
     [](Making& m) {
       m.at(kernel_line);
       const std::vector<Dim> cluster = m.random.pick<std::vector<Dim>>(
           {{1, 1, 1, 1}, {17}, {4, 4, 4}, {1 << 20, 1 << 20, 1 << 30}});
       m.options([cluster](PallasCallOptions& o) { o.cluster = cluster; });
     }},
    {"a cluster",
     [](Making& m) {
       m.at(kernel_line);
       m.at(call_line);
       m.blame.code = true;
       m.free();
       const int size = m.random.pick({1, 2, 3, 4, 8});
       m.say(std::to_string(size));
       m.options([size](PallasCallOptions& o) { o.cluster = {size}; });
     }},
    {"cluster names of another number",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) { o.cluster_names.assign(o.cluster.size() + 1, "c"); });
     }},
    {"an axis of grid and cluster",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) {
         Grid& grid = grid_in(o);
         if (grid.sizes.empty()) grid.sizes.push_back(1);
         grid.names.clear();
         o.grid_names.clear();
         for (std::size_t i = 0; i < grid.sizes.size(); ++i)
           o.grid_names.push_back("a" + std::to_string(i));
         o.cluster = {1};
         o.cluster_names = {"a0"};
       });
     }},
    // ---- options
    {"semantics of another number",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) {
         o.compiler_params.dimension_semantics.assign(grid_in(o).sizes.size() + 1, parallel);
       });
     }},
    {"semantics as they come",
     [](Making& m) {
       m.free();
       m.at(kernel_line);
       for (int i = 0; i < 3; ++i) {
         m.at(out_map_line, i);
         m.at(out_spec_line, i);
       }
       m.blame.code = true;
       const std::uint64_t bits = m.random.bits();
       m.options([bits](PallasCallOptions& o) {
         for (std::size_t i = 0; i < grid_in(o).sizes.size(); ++i)
           o.compiler_params.dimension_semantics.push_back((bits >> i) & 1 ? parallel : sequential);
       });
     }},
    {"out_type and out_shape",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) { o.out_shape = {{4}, f32}; });
     }},
    {"odd names",
     [](Making& m) {
       m.harmless();
       const std::string name =
           m.random.pick<std::string>({"a/b", "../../a", "a\"b\\c\nd", "1", "int", "\xc3\xa4 \xff",
                                       "%s{}", "main", std::string(5000, 'n')});
       m.options([name](PallasCallOptions& o) {
         o.name = name;
         // Bodies name axes as the plan does.
         o.metadata = {{name, name}};
         for (NamedScoped& s : scratch_in(o).list) s.name = name + s.name;
       });
     }},
    {"a name with a NUL",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) { o.name = std::string("a\0b", 3); });
     }},
    {"no outputs",
     [](Making& m) {
       m.at(kernel_line);
       m.at(body_line);
       m.at(call_line);
       m.at(output_line);
       m.options([](PallasCallOptions& o) { o.out_type = OutType(); });
     }},
    {"grid_spec beside grid",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) {
         o.grid_spec.grid = {2};
         o.grid = {2};
       });
     }},
    {"scratch_types and scratch_shapes",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) {
         o.scratch_types = {gpu::SMEM({4}, f32)};
         o.scratch_shapes = {gpu::SMEM({4}, f32)};
       });
     }},
    {"an alias of what is not there",
     [](Making& m) {
       m.at(kernel_line);
       const InputOutputAlias alias = m.random.pick<InputOutputAlias>(
           {{-1, 0}, {99, 0}, {0, -1}, {0, 99}, {0, std::numeric_limits<int>::min()}});
       m.options([alias](PallasCallOptions& o) { o.input_output_aliases = {alias}; });
     }},
    {"an alias of another type",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) {
         std::vector<ShapeDtype> types = o.out_type.list();
         if (types.empty()) types.push_back({{4}, f32});
         types[0].shape.push_back(2);
         types[0].dtype = types[0].dtype == f64 ? i8 : f64;
         if (types[0].shape.rank() > 7) types[0].shape = {3};
         o.out_specs.clear();
         o.grid_spec.out_specs.clear();
         o.out_type = types;
         o.input_output_aliases = {{0, 0}};
       });
     }},
    {"an alias twice",
     [](Making& m) {
       m.at(kernel_line);
       m.options([](PallasCallOptions& o) { o.input_output_aliases = {{0, 0}, {0, 0}}; });
     }},
    {"specs of another number",
     [](Making& m) {
       m.at(kernel_line);
       const bool output = m.random.chance(50), more = m.random.chance(50);
       m.options([=](PallasCallOptions& o) {
         std::vector<BlockSpec>& list = output ? out_specs(o) : in_specs(o);
         if (more || list.size() < 2)
           list.resize(list.size() + 1);
         else
           list.pop_back();
       });
     }},
    // ---- blocks
    {"a block of another rank",
     [](Making& m) {
       const Spec s = some_spec(m);
       const bool more = m.random.chance(50);
       change_spec(m, s, [=](BlockSpec& spec) {
         spec.whole = false;
         if (more || spec.block_shape.empty())
           spec.block_shape.resize(s.i == 0 ? 9 : 5, BlockDim(1));
         else
           spec.block_shape.pop_back();
       });
     }},
    {"a block of no or negative size",
     [](Making& m) {
       const Spec s = some_spec(m);
       const std::int64_t size = m.random.chance(50) ? 0 : m.negative();
       m.say(std::to_string(size));
       change_spec(m, s, [=](BlockSpec& spec) {
         spec.whole = false;
         if (spec.block_shape.empty())
           spec.block_shape = {size};
         else
           spec.block_shape[0].size = size;
       });
     }},
    {"a huge block",
     [](Making& m) {
       const Spec s = some_spec(m);
       const std::int64_t size = m.huge();
       m.say(std::to_string(size));
       m.blame.code = true;
       m.free();  // the block of an input need not be read
       change_spec(m, s, [=](BlockSpec& spec) {
         spec.whole = false;
         if (spec.block_shape.empty())
           spec.block_shape = {size};
         else
           spec.block_shape[0].size = size;
       });
     }},
    {"padding that cannot be",
     [](Making& m) {
       const Spec s = some_spec(m);
       const std::int64_t pad = m.negative();
       m.say(std::to_string(pad));
       change_spec(m, s, [=](BlockSpec& spec) {
         spec.whole = false;
         spec.block_shape.assign(std::max<std::size_t>(1, spec.block_shape.size()),
                                 Element(1, {pad, 0}));
       });
     }},
    {"huge padding",
     [](Making& m) {
       const Spec s = some_spec(m);
       const std::int64_t lo = m.random.chance(50) ? m.huge() : 0, hi = m.huge();
       m.say(fmt::format("{} {}", lo, hi));
       m.free();
       m.blame.code = true;
       change_spec(m, s, [=](BlockSpec& spec) {
         if (spec.block_shape.empty()) return;
         spec.block_shape[0] = Element(spec.block_shape[0].size, {lo, hi});
       });
     }},
    {"a block in registers",
     [](Making& m) {
       const Spec s = some_spec(m);
       change_spec(m, s, [=](BlockSpec& spec) { spec.memory_space = {Space::regs}; });
     }},
    {"a block in shared memory",
     [](Making& m) {
       const Spec s = some_spec(m);
       m.free();
       change_spec(m, s, [=](BlockSpec& spec) { spec.memory_space = {Space::smem}; });
     }},
    {"an index map of another arity",
     [](Making& m) {
       const Spec s = some_spec(m);
       const int arity = static_cast<int>(m.plan.axes.size());
       const int more = m.random.pick({-1, 1, 2});
       std::vector<BlockDim> block;
       for (const Cut& c : operand(m, s).cuts) block.push_back(c.block);
       change_spec(m, s, [=](BlockSpec& spec) {
         spec.whole = false;
         spec.block_shape = block;
         const Indices none(std::vector<Value>(block.size(), Value(0)));
         switch (arity + more) {
         case 0: spec.index_map = IndexMap([=]() { return none; }, map_line(s)); break;
         case 1: spec.index_map = IndexMap([=](Index) { return none; }, map_line(s)); break;
         case 2: spec.index_map = IndexMap([=](Index, Index) { return none; }, map_line(s)); break;
         case 3:
           spec.index_map = IndexMap([=](Index, Index, Index) { return none; }, map_line(s));
           break;
         default:
           spec.index_map = IndexMap(
               [=](Index, Index, Index, Index, Index, Index, Index) { return none; }, map_line(s));
         }
       });
     }},
    {"an index map of another number of indices",
     [](Making& m) {
       change_map(m, "one more", [](const std::vector<Value>&, std::size_t rank) {
         return std::vector<Value>(rank + 1, Value(0));
       });
     }},
    {"an index map that gives too few",
     [](Making& m) {
       change_map(m, "too few", [](const std::vector<Value>&, std::size_t rank) {
         return std::vector<Value>(rank == 0 ? 1 : rank - 1, Value(0));
       });
     }},
    {"an index map that gives floats",
     [](Making& m) {
       change_map(m, "floats", [](const std::vector<Value>&, std::size_t rank) {
         return std::vector<Value>(std::max<std::size_t>(1, rank), Value(0.5));
       });
     }},
    {"an index map that gives nothing",
     [](Making& m) {
       change_map(m, "values that were given none",
                  [](const std::vector<Value>&, std::size_t rank) {
                    return std::vector<Value>(std::max<std::size_t>(1, rank), Value());
                  });
     }},
    {"an index map that gives vectors",
     [](Making& m) {
       change_map(m, "vectors", [](const std::vector<Value>&, std::size_t rank) {
         return std::vector<Value>(std::max<std::size_t>(1, rank), zeros({2}, i32));
       });
     }},
    {"an index map that leaves the array",
     [](Making& m) {
       const int far = m.random.pick({-1, 100, -100, 1 << 20, 1 << 30, -(1 << 30)});
       change_map(m, "far out", [far](const std::vector<Value>& ids, std::size_t rank) {
         return std::vector<Value>(rank, ids.empty() ? Value(far) : ids[0] + far);
       });
       m.at(call_line);
       m.free();  // arrays of rank 0 have no index
       m.blame.code = true;
     }},
    {"an index map that multiplies",
     [](Making& m) {
       const int factor = m.random.pick({2, 3, 1 << 16, 1 << 30, std::numeric_limits<int>::max()});
       change_map(m, "many times", [factor](const std::vector<Value>& ids, std::size_t rank) {
         return std::vector<Value>(rank, ids.empty() ? Value(0) : ids[0] * factor);
       });
       m.at(call_line);
       m.free();
       m.blame.code = true;
     }},
    // ---- outputs and scratch
    {"an output without a dtype",
     [](Making& m) {
       m.at(kernel_line);
       for (const int line : {out_spec_line, in_spec_line}) m.at(line);
       m.options([](PallasCallOptions& o) { o.out_type = {{4}, DType()}; });
     }},
    {"an output of negative extent",
     [](Making& m) {
       m.at(kernel_line);
       m.at(out_spec_line);
       const std::int64_t n = m.negative();
       m.options([n](PallasCallOptions& o) {
         std::vector<ShapeDtype> types = o.out_type.list();
         if (types.empty() || types[0].shape.rank() == 0) types = {{{n}, f32}};
         types[0].shape[0] = n;
         o.out_type = types;
       });
     }},
    {"an output of huge extent",
     [](Making& m) {
       for (const int line : {int(kernel_line), int(out_spec_line), int(call_line),
                              int(output_line), int(argument_line)})
         m.at(line);
       const std::int64_t n = m.random.pick<std::int64_t>(
           {std::int64_t(1) << 46, std::int64_t(1) << 60, largest, largest / 4});
       m.say(std::to_string(n));
       m.options([n](PallasCallOptions& o) {
         std::vector<ShapeDtype> types = o.out_type.list();
         if (types.empty() || types[0].shape.rank() == 0) types = {{{n}, f32}};
         types[0].shape[0] = n;
         o.out_type = types;
       });
     }},
    {"scratch that cannot be",
     [](Making& m) {
       m.at(kernel_line);
       m.at(scratch_line, 9);
       m.blame.code = true;  // which may fill it
       m.at(body_line);      // or does not take it
       const Location at = user(scratch_line, 9);
       const Scoped s = m.random.pick<Scoped>({{Space::smem, {{0}, f32}, at},
                                               {Space::regs, {{4, -1}, f32}, at},
                                               {Space::smem, {{4}, DType()}, at},
                                               {Space::gmem, {{4}, f32}, at},
                                               {Space::automatic, {{4}, f32}, at},
                                               {Space::smem, {{std::int64_t(1) << 46}, f32}, at},
                                               {Space::regs, {{1 << 30, 1 << 30, 1 << 30}, i8}, at},
                                               {Space::smem, {{largest, largest}, f64}, at}});
       m.say(to_string(s.type));
       m.options([s](PallasCallOptions& o) { scratch_in(o).list.push_back({"", s}); });
     }},
};

}  // namespace

std::span<const Mistake> option_mistakes() { return mistakes; }

}  // namespace palladium::test::random_calls
