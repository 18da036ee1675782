#include "runtime/call/specialization.hpp"

#include <algorithm>
#include <atomic>

#include "codegen/base/dim.hpp"
#include "codegen/base/environment.hpp"
#include "codegen/base/log.hpp"
#include "codegen/trace/trace.hpp"
#include "runtime/call/check.hpp"
#include "runtime/call/clock.hpp"

namespace palladium::runtime {
namespace {

using palladium::detail::OptionsFunction;

/// `type` with a symbol of its own for each extent, bound to it.
ShapeDtype bind(const ShapeDtype& type, std::size_t argument, DimBinding& binding) {
  ShapeDtype result{{}, type.dtype};
  for (int d = 0; d < type.shape.rank(); ++d) {
    const std::string name =
        "args[" + std::to_string(argument) + "].shape[" + std::to_string(d) + "]";
    const Dim symbol = dim(name.c_str());
    binding.bind(dim_node(symbol).symbol, type.shape[d].value());
    result.shape.push_back(symbol);
  }
  return result;
}

OptionsFunction::Made call_options(const detail::Shared<OptionsFunction>& function,
                                   std::span<ShapeDtype> types, Location at) {
  if (function->arity != OptionsFunction::any && function->arity != static_cast<int>(types.size()))
    throw CompileError(at, "the options function takes " + std::to_string(function->arity) +
                               " types but the call has " + std::to_string(types.size()) +
                               " arguments");
  for (std::size_t i = 0; i < types.size(); ++i) types[i].shape.set_argument(static_cast<int>(i));
  // Each may make a kernel, and call it.
  constexpr int deepest = 64;
  static thread_local int depth = 0;
  if (depth == deepest)
    throw CompileError(at, "more than " + std::to_string(deepest) +
                               " options functions call kernels inside each other");
  const struct Inside {
    Inside() { ++depth; }
    ~Inside() { --depth; }
  } inside;
  try {
    return function->call(types);
  } catch (const CompileError& error) {
    if (error.at().line != 0) throw;
    throw CompileError(at, error.what());  // what it says of the arguments is about this call
  }
}

/// Errors for values that a variable cannot have; a line, once, for variables that there are not.
void check_environment() {
  environment::check();
  static std::atomic<bool> has_warned = false;
  if (has_warned.exchange(true)) return;
  for (const std::string& name : environment::unknown())
    log::warning(name + " is set, but Palladium has no such variable; README.md lists them");
}

void set_placement(BlockMapping& mapping, Placement placed) {
  mapping.dense = placed.dense;
  if (placed.dense && !rows_align(mapping.array_aval))
    placed.alignment = mapping.array_aval.dtype.bytes();
  mapping.alignment = placed.alignment;
}

// How the memory of an output lies: as given, as the input's whose memory it is, or as a call
// allocates it.
Placement placement_of_output(const graph::Graph& g, std::span<const Request> arguments,
                              std::span<const Request> outputs, std::size_t number) {
  if (number < outputs.size()) return outputs[number].placed;
  for (const graph::Alias& a : g.aliases)
    if (a.output == static_cast<int>(number))
      return arguments[position_of_input(g, a.input)].placed;
  return {};
}

}  // namespace

Request request(const ArgType& type) {
  if (!type.array()) return {.type = type.type(), .is_scalar = type.is_scalar(), .at = type.at()};
  return request(Arg(*type.array(), type.at()));
}

Request request(const Arg& arg) {
  if (!arg.array()) return {.type = {{}, arg.scalar().dtype}, .is_scalar = true, .at = arg.at()};
  return {.type = arg.array()->type(),
          .is_array = true,
          .placed = placement(*arg.array(), true),
          .at = arg.at()};
}

std::shared_ptr<Specialization> specialize(const Source& source, std::span<const Request> arguments,
                                           std::span<const Request> outputs, Location at) {
  const Clock clock;
  check_environment();
  DimBinding binding;
  std::vector<ShapeDtype> types;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Request& r = arguments[i];
    types.push_back(source.function && r.is_array ? bind(r.type, i, binding) : r.type);
  }

  OptionsFunction::Made made;
  if (source.function) made = call_options(source.function, types, at);
  const PallasCallOptions& options = source.function ? made.options : source.options;

  std::vector<trace::ArgumentType> traced;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    traced.push_back({.type = types[i], .is_scalar = arguments[i].is_scalar});

  auto result = std::make_shared<Specialization>();
  result->interpret = options.interpret;
  result->graph = trace::trace(made.body.empty() ? source.body : made.body, options, traced,
                               source.at, &binding);
  // Only now is it known which extents are integers.
  GridMapping& mapping = result->graph.mapping;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const graph::Argument& argument = result->graph.arguments[i];
    if (argument.kind == graph::Argument::Kind::input)
      set_placement(mapping.block_mappings[static_cast<std::size_t>(argument.index)],
                    arguments[i].placed);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(mapping.num_outputs); ++i)
    set_placement(mapping.block_mappings[static_cast<std::size_t>(mapping.num_inputs) + i],
                  placement_of_output(result->graph, arguments, outputs, i));
  result->signature = Signature(result->graph);
  result->grid = CallGrid(result->graph);
  result->trace_ms = clock.ms();
  return result;
}

}  // namespace palladium::runtime
