// From a plan to its options and its kernel, and to words.
#include <utility>

#include "codegen/base/format.hpp"
#include "tests/random/plan.hpp"

namespace palladium::test::random_calls {
namespace {

std::vector<Value> indices(const Operand& o, const std::vector<Index>& ids) {
  std::vector<Value> result;
  for (const Cut& c : o.cuts) {
    if (c.axis < 0) {
      result.push_back(c.index);
      continue;
    }
    const Value id = ids[static_cast<std::size_t>(c.axis)];
    result.push_back(c.reversed ? num_programs(c.axis) - 1 - id : id);
  }
  return result;
}

template <std::size_t... I>
IndexMap map_of_arity(const Operand& o, Location at, std::index_sequence<I...>) {
  return IndexMap(
      [o](pl::detail::Repeat<Index, I>... ids) {
        return Indices(indices(o, std::vector<Index>{ids...}));
      },
      at);
}

IndexMap index_map(const Operand& o, std::size_t arity, Location at) {
  if (!o.fixed_arity)
    return IndexMap([o](auto... ids) { return Indices(indices(o, std::vector<Index>{ids...})); },
                    at);
  switch (arity) {
  case 0: return map_of_arity(o, at, std::make_index_sequence<0>());
  case 1: return map_of_arity(o, at, std::make_index_sequence<1>());
  case 2: return map_of_arity(o, at, std::make_index_sequence<2>());
  case 3: return map_of_arity(o, at, std::make_index_sequence<3>());
  default: return map_of_arity(o, at, std::make_index_sequence<4>());
  }
}

BlockSpec spec_of(const Operand& o, std::size_t arity, Location at, Location map_at) {
  const BlockSpecOptions options{.memory_space = {o.space}, .fill = o.fill};
  if (o.whole) return BlockSpec(options, at);
  std::vector<BlockDim> block;
  for (const Cut& c : o.cuts) block.push_back(c.block);
  return BlockSpec::of(std::move(block), index_map(o, arity, map_at), options, at);
}

// The extent of the first input along `axis`, as the options function was given it.
Dim symbolic_extent(const Plan& plan, std::span<const ShapeDtype> types, int axis) {
  const std::size_t argument = plan.pattern.find('r');
  const std::vector<Cut>& cuts = plan.inputs[0].cuts;
  for (std::size_t d = 0; d < cuts.size(); ++d)
    if (cuts[d].axis == axis && argument < types.size() &&
        static_cast<int>(d) < types[argument].shape.rank())
      return types[argument].shape[static_cast<int>(d)];
  return plan.axes[static_cast<std::size_t>(axis)].extent;
}

}  // namespace

PallasCallOptions options_of(const Plan& plan, std::span<const ShapeDtype> types) {
  PallasCallOptions o = plan.rest;
  Grid grid;
  for (std::size_t a = 0; a < plan.axes.size(); ++a) {
    const Axis& axis = plan.axes[a];
    if (plan.symbolic)
      grid.sizes.push_back(cdiv(symbolic_extent(plan, types, static_cast<int>(a)), axis.block));
    else
      grid.sizes.push_back(axis.programs);
  }
  std::vector<BlockSpec> in_specs, out_specs;
  std::vector<ShapeDtype> out_type;
  const auto at = [](Line line, std::size_t i) { return user(line, static_cast<int>(i)); };
  for (std::size_t i = 0; i < plan.inputs.size(); ++i)
    in_specs.push_back(
        spec_of(plan.inputs[i], plan.axes.size(), at(in_spec_line, i), at(in_map_line, i)));
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const Operand& output = plan.outputs[i];
    out_specs.push_back(
        spec_of(output, plan.axes.size(), at(out_spec_line, i), at(out_map_line, i)));
    ShapeDtype type{output.shape(), output.dtype};
    for (std::size_t d = 0; plan.symbolic && d < output.cuts.size(); ++d)
      if (output.cuts[d].axis >= 0)
        type.shape[static_cast<int>(d)] = symbolic_extent(plan, types, output.cuts[d].axis);
    out_type.push_back(type);
  }
  ScratchTypes scratch;
  scratch.list = plan.scratch;
  o.out_type = out_type.size() == 1 ? OutType(out_type[0]) : OutType(out_type);
  if (plan.as_grid_spec) {
    o.grid_spec = {grid, in_specs, out_specs, scratch};
  } else {
    o.grid = grid;
    o.in_specs = in_specs;
    o.out_specs = out_specs;
    o.scratch_types = scratch;
  }
  for (const auto& change : plan.spoil_options) change(o);
  return o;
}

Kernel kernel_of(const Plan& plan) {
  const auto made = [plan](std::span<const ShapeDtype> types) { return options_of(plan, types); };
  switch (plan.options) {
  case Plan::Options::plain: break;
  case Plan::Options::function: return pallas_call(body_of(plan), made, user(kernel_line));
  case Plan::Options::call:
    return pallas_call(
        [plan, made](std::span<const ShapeDtype> types) {
          return Call{body_of(plan), made(types)};
        },
        user(kernel_line));
  }
  return pallas_call(body_of(plan), made({}), user(kernel_line));
}

namespace {

std::string text_of(const Operand& o) {
  std::string text = fmt::format("{}[", o.dtype.name());
  for (const Cut& c : o.cuts) {
    const char* kind = c.block.kind == BlockDim::Kind::blocked    ? ""
                       : c.block.kind == BlockDim::Kind::squeezed ? "squeezed "
                                                                  : "Element ";
    text += fmt::format("{}{}/{}{}", &c == o.cuts.data() ? "" : ", ", c.extent, kind, c.block.size);
    if (c.block.pad_lo != 0 || c.block.pad_hi != 0)
      text += fmt::format(" {{{},{}}}", c.block.pad_lo, c.block.pad_hi);
    if (c.axis >= 0)
      text += fmt::format(" axis {}{}", c.axis, c.reversed ? " reversed" : "");
    else if (c.index != 0)
      text += fmt::format(" at {}", c.index);
  }
  const char* const layouts[] = {"", " shifted", " gaps", " repeated", " read-only"};
  return text + "]" + (o.whole ? " whole" : "") + layouts[static_cast<int>(o.layout)] +
         (o.space == Space::automatic ? "" : std::string(" ") + to_string(o.space));
}

}  // namespace

std::string describe(const Plan& plan) {
  std::string text = "grid {";
  for (const Axis& a : plan.axes)
    text += fmt::format("{}{}*{}<={}", &a == plan.axes.data() ? "" : ", ", a.programs, a.block,
                        a.extent);
  text += plan.symbolic ? "} symbolic" : "}";
  for (const Operand& o : plan.inputs) text += "\n  in  " + text_of(o);
  for (const Operand& o : plan.outputs) text += "\n  out " + text_of(o);
  for (const Number& n : plan.numbers)
    text += fmt::format("\n  number {} {:#x}", n.dtype.name(), n.bits);
  for (const NamedScoped& s : plan.scratch)
    text += fmt::format("\n  scratch {} {} {}", s.name, to_string(s.type.space),
                        to_string(s.type.type));
  const char* const options[] = {"options", "a function of the types", "a function with the body"};
  const char* const entries[] = {"k(...)", "k.call", "k.into"};
  return text + fmt::format("\n  arguments {}; {}; {}{}; {} statements{}", plan.pattern,
                            options[static_cast<int>(plan.options)],
                            entries[static_cast<int>(plan.entry)],
                            plan.aliased ? "; outputs[0] is inputs[0]" : "", plan.statements,
                            plan.elementary ? ", elementary" : "");
}

}  // namespace palladium::test::random_calls
