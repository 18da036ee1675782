#include "runtime/call/specialization.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <utility>

#include "codegen/base/dim.hpp"
#include "codegen/base/environment.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "codegen/base/once.hpp"
#include "codegen/base/profile.hpp"
#include "codegen/graph/classes.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/trace/captures.hpp"
#include "codegen/trace/trace.hpp"
#include "runtime/call/check.hpp"
#include "runtime/call/clock.hpp"

namespace palladium::runtime {
namespace {

using palladium::detail::OptionsFunction;

/// `type` with a symbol of its own for each extent, bound to it; those that are 0 also go to
/// `zeros`.
ShapeDtype bind(const ShapeDtype& type, std::size_t argument, DimBinding& binding,
                std::vector<Dim>& zeros) {
  ShapeDtype result{{}, type.dtype};
  for (int d = 0; d < type.shape.rank(); ++d) {
    const std::string name =
        "args[" + std::to_string(argument) + "].shape[" + std::to_string(d) + "]";
    const Dim symbol = dim(name.c_str());
    binding.bind(dim_node(symbol).symbol, type.shape[d].value());
    result.shape.push_back(symbol);
    if (type.shape[d].value() == 0) zeros.push_back(symbol);
  }
  return result;
}

/// Takes the axis of a batch out of the types: of the symbols of a call where those have any.
class Unbatching {
 public:
  Unbatching(std::vector<ShapeDtype>& types, std::span<const Request> arguments,
             DimBinding& binding)
      : types_(types), arguments_(arguments), binding_(binding) {}

  trace::BatchType run(const Batch& batch) {
    trace::BatchType result{.at = batch.at};
    const std::size_t n = types_.size();
    if (!batch.in_axes.empty() && batch.in_axes.size() != n)
      fail(batch.at, "in_axes has " + std::to_string(batch.in_axes.size()) +
                         " entries for a call of " + std::to_string(n) + " arguments");
    int first = -1;
    for (std::size_t i = 0; i < n; ++i) {
      const int axis = axis_of(batch, i);
      result.axes.push_back(axis);
      if (axis < 0) continue;
      const Dim size = take_out(types_[i].shape, axis);
      if (first < 0) {
        first = static_cast<int>(i);
        result.size = size;
      } else if (!is_same(result.size, size)) {
        fail(arguments_[i].at, "args[" + std::to_string(first) + "] has a batch of " +
                                   text(result.size) + ", args[" + std::to_string(i) + "] one of " +
                                   text(size));
      }
    }
    if (first < 0) fail(batch.at, "no argument has a batch: there is none, or all are unbatched");
    return result;
  }

 private:
  [[noreturn]] static void fail(Location at, const std::string& what) {
    throw CompileError(at, "vmap: " + what);
  }

  int axis_of(const Batch& batch, std::size_t i) const {
    const int wanted = batch.in_axes.empty() ? 0 : batch.in_axes[i];
    if (wanted == unbatched) return -1;
    if (arguments_[i].is_scalar) {
      if (batch.in_axes.empty()) return -1;
      fail(batch.at, "args[" + std::to_string(i) + "] is a scalar, which is pl::unbatched");
    }
    const int rank = types_[i].shape.rank();
    const int axis = wanted < 0 ? wanted + rank : wanted;
    if (axis < 0 || axis >= rank)
      fail(batch.at, "args[" + std::to_string(i) + "] has " + std::to_string(rank) +
                         (rank == 1 ? " dimension" : " dimensions") + " and no axis " +
                         std::to_string(wanted));
    return axis;
  }

  static Dim take_out(Shape& shape, int axis) {
    Shape shorter;
    for (int d = 0; d < shape.rank(); ++d)
      if (d != axis) shorter.push_back(shape[d]);
    return std::exchange(shape, shorter)[axis];
  }

  bool is_same(const Dim& a, const Dim& b) const {
    if (a.same(b)) return true;
    return a.is_static() && b.is_static() ? a.value() == b.value() : binding_.unify(a, b);
  }

  std::string text(const Dim& d) const {
    return std::to_string(binding_.can_peek(d) ? binding_.peek(d) : d.value());
  }

  std::vector<ShapeDtype>& types_;
  std::span<const Request> arguments_;
  DimBinding& binding_;
};

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
    log::warning(name +
                 " is set, but Palladium has no such variable; docs/reference.md lists them");
}

/// The arrays of a call by block mapping: inputs, outputs as given or as the inputs whose memory
/// they are. Null for an output that the call allocates.
std::vector<const Request*> arrays_of(const graph::Graph& g, std::span<const Request> arguments,
                                      std::span<const Request> outputs) {
  std::vector<const Request*> arrays;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (g.arguments[i].kind == graph::Argument::Kind::input) arrays.push_back(&arguments[i]);
  for (std::size_t o = 0; o < static_cast<std::size_t>(g.mapping.num_outputs); ++o) {
    const Request* array = o < outputs.size() ? &outputs[o] : nullptr;
    for (const graph::Alias& a : g.aliases)
      if (!array && a.output == static_cast<int>(o))
        array = &arguments[position_of_input(g, a.input)];
    arrays.push_back(array);
  }
  return arrays;
}

/// Only arrays that are there have sizes.
void add_sizes(const graph::Graph& g, std::span<const Request> arguments,
               std::span<const Request* const> arrays, std::vector<trace::SymbolOrigin>& symbols) {
  std::vector<bool> known(symbols.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const int s = g.arguments[i].symbol;
    const std::optional<std::int64_t>& value = arguments[i].value;
    if (s < 0 || !value || *value < 0) continue;  // below 0: refused later
    symbols[static_cast<std::size_t>(s)].sizes = DimSizes::only(*value);
    known[static_cast<std::size_t>(s)] = true;
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i] || !arrays[i]->is_array) continue;
    const Shape &shape = g.mapping.block_mappings[i].array_aval.shape,
                &given = arrays[i]->type.shape;
    for (int d = 0; d < std::min(shape.rank(), given.rank()); ++d) {
      if (shape[d].is_static() || dim_node(shape[d]).op != palladium::detail::DimOp::symbol)
        continue;
      const std::uint32_t s = dim_node(shape[d]).symbol;
      if (!known[s]) symbols[s].sizes = DimSizes::only(given[d].value());
      known[s] = true;
    }
  }
}

/// Where it is known for this call.
std::optional<std::int64_t> extent_of(const Dim& d, std::span<const trace::SymbolOrigin> symbols) {
  if (d.is_static()) return d.value();
  const DimNode node = dim_node(d);
  if (node.op != palladium::detail::DimOp::symbol || node.symbol >= symbols.size())
    return std::nullopt;
  const DimSizes& sizes = symbols[node.symbol].sizes;
  return sizes.least == sizes.most ? std::optional(sizes.most) : std::nullopt;
}

/// What one walk of blocks goes along should end at one place, unless somebody has said what lies
/// behind the end of what is shorter.
void warn_of_extents(const graph::Graph& g, std::span<const trace::SymbolOrigin> symbols) {
  for (const auto& [a, b] : graph::shared_walks(g)) {
    const BlockMapping &x = g.mapping.block_mappings[a.mapping],
                       &y = g.mapping.block_mappings[b.mapping];
    if (x.fill || y.fill) continue;
    const auto m = extent_of(x.array_aval.shape[a.dimension], symbols),
               n = extent_of(y.array_aval.shape[b.dimension], symbols);
    if (!m || !n || *m == *n) continue;
    warn::once(fmt::format(
        "kernel '{}': one walk of blocks of {} goes along dimension {} of {}, which has "
        "{} elements, and dimension {} of {}, which has {}: what lies beyond the end "
        "of the shorter one is undefined, or what is left of the longer one is never "
        "seen; pl::require_equal in the options function refuses such calls, .fill in "
        "a BlockSpec says that it is meant{}",
        g.name, x.block_shape[static_cast<std::size_t>(a.dimension)].size, a.dimension, x.origin,
        *m, b.dimension, y.origin, *n, g.at.line == 0 ? "" : "\n  at " + to_string(g.at)));
  }
}

/// Whether an input whose blocks have a fill is an array without elements, and only the call knows.
bool fills_nothing(const graph::Graph& g, std::span<const Request* const> arrays) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(g.mapping.num_inputs); ++i) {
    const BlockMapping& m = g.mapping.block_mappings[i];
    if (!m.fill || !arrays[i] || !arrays[i]->is_array) continue;
    const Shape &shape = m.array_aval.shape, &given = arrays[i]->type.shape;
    for (int d = 0; d < std::min(shape.rank(), given.rank()); ++d)
      if (!shape[d].is_static() && given[d].value() == 0) return true;
  }
  return false;
}

bool has_short_offsets(const BlockMapping& mapping, const Request& array) {
  if (array.strides.size() != mapping.block_shape.size()) return false;  // refused later
  graph::Reach reach;
  for (std::size_t d = array.strides.size(); d-- > 0;)
    reach.add(array.type.shape[static_cast<int>(d)].value(), mapping.block_shape[d].cut(),
              array.strides[d]);
  return reach.is_short();
}

bool has_box_extents(const Request& array) {
  graph::BoxExtents extents(array.type.dtype);
  for (std::size_t d = array.strides.size(); d-- > 0;)
    extents.add(array.type.shape[static_cast<int>(d)].value(), array.strides[d]);
  return extents.fit();
}

/// What the kernel may rely on in memory and sizes. Only after the trace is it known which extents
/// are integers.
void set_class(graph::Graph& g, std::span<const Request* const> arrays,
               std::span<const DimSizes> sizes) {
  std::vector<BlockMapping>& mappings = g.mapping.block_mappings;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    mappings[i].dense = !arrays[i] || arrays[i]->placed.dense;

  std::vector<std::int64_t> multiples;
  for (const DimSizes& s : sizes) multiples.push_back(s.multiple);
  graph::set_multiples(g, std::move(multiples));
  g.short_offsets = graph::has_runtime_reach(g) && graph::has_short_offsets(g, sizes);
  g.box_extents = graph::has_box_extents(g, sizes);

  for (std::size_t i = 0; i < arrays.size(); ++i) {
    BlockMapping& m = mappings[i];
    m.alignment = arrays[i] ? arrays[i]->placed.alignment : wide_alignment;
    if (m.dense) m.alignment = std::min(m.alignment, row_alignment(m.array_aval, g.facts));
    if (!m.dense && !has_short_offsets(m, *arrays[i])) g.short_offsets = false;
    if (!m.dense && !has_box_extents(*arrays[i])) g.box_extents = false;
  }
  if (g.short_offsets) g.box_extents = false;
}

using Numbers = std::vector<std::uint32_t>;

/// By symbol the first of those that are one with it: cut alike, and of one size.
Numbers groups_of(const graph::Graph& g, std::span<const DimSizes> sizes) {
  Numbers group(sizes.size());
  std::iota(group.begin(), group.end(), 0u);
  for (const auto& [a, b] : graph::alike_symbols(g)) {
    const bool are_known = sizes[a].least == sizes[a].most && sizes[b].least == sizes[b].most;
    if (!are_known || sizes[a].most != sizes[b].most) continue;
    const auto [first, other] = std::minmax({group[a], group[b]});
    std::ranges::replace(group, other, first);
  }
  return group;
}

/// Makes the graph that of the call's class. Gives by symbol of the trace its number in the graph.
Numbers specialize_graph(Specialization& s, std::span<const Request> arguments,
                         std::span<const Request* const> arrays,
                         std::vector<trace::SymbolOrigin>& symbols) {
  add_sizes(s.graph, arguments, arrays, symbols);
  warn_of_extents(s.graph, symbols);
  std::vector<DimSizes> sizes;
  for (const trace::SymbolOrigin& origin : symbols) sizes.push_back(origin.sizes);
  const Numbers group = groups_of(s.graph, sizes);
  if (std::ranges::adjacent_find(group, std::ranges::greater_equal()) == group.end()) {
    set_class(s.graph, arrays, sizes);  // each is a group of its own
    return group;
  }
  graph::Graph apart = s.graph;
  set_class(apart, arrays, sizes);
  const Numbers numbers = graph::unite_symbols(s.graph, group);
  std::vector<DimSizes> united(static_cast<std::size_t>(s.graph.num_symbols));
  for (std::size_t i = 0; i < sizes.size(); ++i) united[numbers[i]].narrow(sizes[i]);
  set_class(s.graph, arrays, united);
  s.apart.reset(new Specialization::Apart{.graph = std::move(apart), .symbols = numbers});
  return numbers;
}

/// What the options function asks of the sizes that stay symbols; by symbol its number.
std::vector<Requirement> requirements_of(const DimBinding& binding,
                                         std::span<const trace::SymbolOrigin> symbols,
                                         std::span<const std::uint32_t> numbers) {
  std::vector<std::uint32_t> from;
  std::vector<Dim> to;
  for (const trace::SymbolOrigin& s : symbols) {
    to.push_back(dim_symbol(numbers[from.size()]));
    from.push_back(s.symbol);
  }
  std::vector<Requirement> result;
  for (const DimBinding::Requirement& r : binding.requirements())
    if (const Dim d = substitute(binding.resolve(r.dim), from, to); !d.is_static())
      result.push_back({.extent = Extent(d),
                        .multiple = r.sizes.multiple,
                        .least = r.sizes.least,
                        .most = r.sizes.most});
  return result;
}

void name_outputs(Specialization& s, const PallasCallOptions& options) {
  const OutType& type = options.out_type.empty() ? options.out_shape : options.out_type;
  s.num_visible = type.list().size();
  s.out_names = type.names();
}

}  // namespace

Request request(const ArgType& type) {
  if (!type.array()) return {.type = type.type(), .is_scalar = type.is_scalar(), .at = type.at()};
  Request r = request(Arg(*type.array(), type.at()));
  r.is_ref = type.is_ref();
  return r;
}

Request request(const Arg& arg) {
  if (!arg.array()) {
    Request r{.type = {{}, arg.scalar().dtype}, .is_scalar = true, .at = arg.at()};
    if (r.type.dtype.is_integer()) r.value = graph::to_int(r.type.dtype, arg.scalar().bits);
    return r;
  }
  Request r{.type = arg.array()->type(),
            .is_array = true,
            .is_ref = arg.is_ref(),
            .placed = placement(*arg.array(), wide_alignment),
            .at = arg.at()};
  if (!r.placed.dense)
    for (int d = 0; d < arg.array()->rank(); ++d) r.strides.push_back(arg.array()->stride(d));
  return r;
}

std::shared_ptr<Specialization> specialize(const Source& source, std::span<const Request> arguments,
                                           std::span<const Request> outputs, Location at) {
  const Clock clock;
  check_environment();
  DimBinding binding;
  std::vector<ShapeDtype> types;
  std::vector<Dim> zeros;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Request& r = arguments[i];
    types.push_back((source.function || !source.batches.empty()) && r.is_array
                        ? bind(r.type, i, binding, zeros)
                        : r.type);
  }
  std::vector<trace::BatchType> batches;
  for (const Batch& b : source.batches)
    binding.note_batch(batches.emplace_back(Unbatching(types, arguments, binding).run(b)).size);
  // Only an options function is given symbols.
  if (!source.function)
    for (ShapeDtype& t : types)
      for (int d = 0; d < t.shape.rank(); ++d)
        if (binding.can_peek(t.shape[d])) t.shape[d] = t.shape[d].value();

  OptionsFunction::Made made;
  if (source.function && source.function->on_stack)
    trace::warn_of_captures(source.options.name.empty() ? "kernel" : source.options.name,
                            "the options function", source.at);
  if (source.function) made = call_options(source.function, types, at);
  const PallasCallOptions& options = source.function ? made.options : source.options;
  const profile::Range range("trace", options.name.empty() ? "kernel" : options.name);

  std::vector<trace::ArgumentType> traced;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    traced.push_back(
        {.type = types[i], .is_scalar = arguments[i].is_scalar, .is_ref = arguments[i].is_ref});

  auto result = std::make_shared<Specialization>();
  std::vector<trace::SymbolOrigin> symbols;
  result->interpret = options.interpret;
  const trace::OverMeshes over{.meshes = !source.is_meshed ? nullptr
                                         : source.function ? &made.meshes
                                                           : &source.meshes,
                               .is_list = source.is_list,
                               .must_write = source.must_write,
                               .captured = &result->captured,
                               .captures_symbols = bool(source.function)};
  std::vector<Request> all;
  const auto trace = [&] {
    result->captured.clear();
    result->debug = {};
    symbols.clear();
    result->graph = trace::trace(made.body.empty() ? source.body : made.body, options, traced,
                                 source.at, &binding, &symbols, batches, over, &result->debug);
    all.assign(arguments.begin(), arguments.end());
    for (const ArrayRef& ref : result->captured) all.push_back(request(Arg(ref, source.at)));
  };
  trace();
  // Of an array that is known to have no elements the fill is a number, and nothing is loaded.
  if (!zeros.empty() && fills_nothing(result->graph, arrays_of(result->graph, all, outputs))) {
    for (const Dim& extent : zeros) binding.read(extent);
    trace();
  }
  name_outputs(*result, options);
  const Numbers numbers =
      specialize_graph(*result, all, arrays_of(result->graph, all, outputs), symbols);
  result->requirements = requirements_of(binding, symbols, numbers);
  if (result->apart) {
    Numbers own(symbols.size());
    std::iota(own.begin(), own.end(), 0u);
    Specialization::Apart apart = *result->apart;
    apart.requirements = requirements_of(binding, symbols, own);
    result->apart.reset(new Specialization::Apart(std::move(apart)));
  }
  std::vector<bool> refs;
  for (const Request& r : all) refs.push_back(r.is_ref);
  result->signature = Signature(result->graph, result->requirements, refs);
  result->grid = CallGrid(result->graph);
  result->trace_ms = clock.ms();
  if (result->graph.mapping.debug) log::show(graph::to_text(result->graph, true));
  return result;
}

}  // namespace palladium::runtime
