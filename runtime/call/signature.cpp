#include "runtime/call/signature.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "codegen/base/dim.hpp"

namespace palladium::runtime {

namespace {

/// The largest power of two up to wide_alignment that divides a number of bits, in bytes, or the
/// size of an element.
int alignment_of(std::int64_t bits, DType t) {
  int bytes = wide_alignment;
  while (bytes > t.bytes() && bits % (8 * bytes) != 0) bytes /= 2;
  return bytes;
}

}  // namespace

// Rows of every rank: whatever stands behind a dimension fills whole pieces of so many bytes.
int row_alignment(const ShapeDtype& type, const DimFacts& facts) {
  if (type.shape.rank() <= 1) return wide_alignment;
  constexpr std::int64_t enough = 8 * wide_alignment;  // elements of a bit
  const std::int64_t elements = multiple_of(type.shape[type.shape.rank() - 1], facts);
  return alignment_of(elements % enough * type.dtype.bits(), type.dtype);
}

namespace {

// An integer of 2^63 and more is none that a size could be.
std::int64_t number_of(const Arg& scalar) {
  return graph::to_int(scalar.scalar().dtype, scalar.scalar().bits);
}

bool is_widely_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % wide_alignment == 0;
}

int stride_alignment(const Array& array) {
  int least = wide_alignment;
  for (int i = 0; i + 1 < array.rank(); ++i)
    if (array.shape()[i].value() > 1)
      least =
          std::min(least, alignment_of(8 * array.dtype().bytes_of(array.stride(i)), array.dtype()));
  return least;
}

}  // namespace

bool is_inner_contiguous(const Array& array) {
  if (array.is_dense()) return true;
  const int last = array.rank() - 1;
  return array.stride(last) == 1 || array.shape()[last].value() == 1;
}

Placement placement(const Array& array, int row_alignment) {
  Placement p{.dense = array.is_dense(), .alignment = array.dtype().bytes()};
  if (is_widely_aligned(array.data()))
    p.alignment = p.dense ? row_alignment : stride_alignment(array);
  return p;
}

Signature::Signature(const graph::Graph& g, std::vector<Requirement> requirements,
                     const std::vector<bool>& refs)
    : requirements_(std::move(requirements)),
      has_runtime_reach_(graph::has_runtime_reach(g)),
      short_offsets_(g.short_offsets),
      box_extents_(g.box_extents),
      num_symbols_(g.num_symbols) {
  if (num_symbols_ > max_symbols)
    throw CompileError(g.at, "'" + g.name + "' has " + std::to_string(num_symbols_) +
                                 " symbolic dimensions; at most " + std::to_string(max_symbols) +
                                 " can be passed");
  const auto operand = [&](const BlockMapping& mapping) {
    Operand o{.dtype = mapping.array_aval.dtype,
              .row_alignment = row_alignment(mapping.array_aval, g.facts),
              .placed = {mapping.dense, mapping.alignment}};
    for (const Dim& d : mapping.array_aval.shape) o.extents.emplace_back(d);
    for (const BlockDim& d : mapping.block_shape) o.blocks.push_back(d.cut());
    return o;
  };
  for (const graph::Argument& argument : g.arguments) {
    if (argument.kind == graph::Argument::Kind::scalar)
      arguments_.push_back({.dtype = argument.dtype, .is_scalar = true});
    else
      arguments_.push_back(
          operand(g.mapping.block_mappings[static_cast<std::size_t>(argument.index)]));
  }
  for (std::size_t i = 0; i < refs.size(); ++i) arguments_[i].is_ref = refs[i];
  const int num_outputs = g.mapping.num_outputs - g.num_globals;
  for (const BlockMapping& mapping : g.mapping.block_mappings_output())
    (static_cast<int>(outputs_.size()) < num_outputs ? outputs_ : globals_)
        .push_back(operand(mapping));

  const std::vector<std::int64_t> classes = graph::class_multiples(g);
  for (int s = 0; s < num_symbols_; ++s)
    if (const std::int64_t n = classes[static_cast<std::size_t>(s)]; n > 1)
      classes_.push_back({s, n - 1, g.facts.multiple(static_cast<std::uint32_t>(s)) % n == 0});

  apart_ = graph::alike_symbols(g);
  for (std::size_t i = 0; i < g.arguments.size(); ++i)
    if (!arguments_[i].is_scalar)
      note_reach(g.mapping.block_mappings[static_cast<std::size_t>(g.arguments[i].index)],
                 {Far::Of::argument, static_cast<int>(i)});
  for (int o = 0; o < g.mapping.num_outputs; ++o)
    note_reach(g.mapping.block_mappings[static_cast<std::size_t>(g.mapping.num_inputs + o)],
               o < num_outputs ? Far{Far::Of::output, o} : Far{Far::Of::global, o - num_outputs});
  for (int i = 0; i < g.mapping.num_inputs; ++i)
    for (const Dim& d : g.mapping.block_mappings[static_cast<std::size_t>(i)].array_aval.shape)
      if (const int symbol = Extent(d).symbol();
          symbol >= 0 && g.mapping.block_mappings[static_cast<std::size_t>(i)].fill)
        nonzero_.push_back(symbol);
  for (const BlockMapping& m : g.mapping.block_mappings) {
    note_bounds(m);
    is_class_of_symbols_ &= m.dense;  // strides decide of others
  }
  has_classes_ = has_runtime_reach_ || !classes_.empty() || !requirements_.empty() ||
                 !apart_.empty() || !nonzero_.empty();

  std::vector<bool> known(static_cast<std::size_t>(num_symbols_));
  for (std::size_t i = 0; i < g.arguments.size(); ++i)
    if (const int symbol = g.arguments[i].symbol;
        symbol >= 0 && !known[static_cast<std::size_t>(symbol)]) {
      known[static_cast<std::size_t>(symbol)] = true;
      binds_.push_back({false, static_cast<int>(i), Bind::by_value, symbol});
    }
  for (const bool of_output : {false, true}) {
    const std::vector<Operand>& operands = of_output ? outputs_ : arguments_;
    for (std::size_t i = 0; i < operands.size(); ++i)
      for (std::size_t d = 0; d < operands[i].extents.size(); ++d) {
        const int symbol = operands[i].extents[d].symbol();
        if (symbol >= 0 && !known[static_cast<std::size_t>(symbol)]) {
          known[static_cast<std::size_t>(symbol)] = true;
          binds_.push_back({of_output, static_cast<int>(i), static_cast<int>(d), symbol});
        } else {
          const Extent& e = operands[i].extents[d];
          (e.is_constant() ? constants_ : symbolic_)
              .push_back({of_output, static_cast<int>(i), static_cast<int>(d),
                          e.is_constant() ? e.constant() : symbol});
        }
      }
    for (int s = 0; s < num_symbols_; ++s)
      if (!known[static_cast<std::size_t>(s)]) {
        if (of_output)
          throw CompileError(g.at, "'" + g.name +
                                       "': a symbolic dimension of grid or outputs is the extent "
                                       "of no array, so that no call can give it a value");
        if (undetermined_ < 0) undetermined_ = s;
      }
  }
}

inline const Operand& Signature::rule_of(const Far& far) const {
  const std::vector<Operand>& of = far.of == Far::Of::argument ? arguments_
                                   : far.of == Far::Of::output ? outputs_
                                                               : globals_;
  return of[static_cast<std::size_t>(far.operand)];
}

// What several arrays ask is asked once.
void Signature::note_reach(const BlockMapping& mapping, Far far) {
  if (!graph::has_runtime_reach(mapping)) return;
  if (graph::may_be_box(mapping)) boxes_.push_back(far);
  const Shape& shape = mapping.array_aval.shape;
  const auto is_symbolic = [](const Dim& d) { return !d.is_static(); };
  const Dim* const dim = std::ranges::find_if(shape, is_symbolic);
  if (mapping.dense && std::ranges::count_if(shape, is_symbolic) == 1 &&
      Extent(*dim).symbol() >= 0) {
    const Most most{Extent(*dim).symbol(),
                    graph::most_of_short_reach(mapping, static_cast<int>(dim - shape.begin()))};
    const auto known = std::ranges::find(most_, most.symbol, &Most::symbol);
    if (known == most_.end())
      most_.push_back(most);
    else
      known->value = std::min(known->value, most.value);
    return;
  }
  const Operand& rule = rule_of(far);
  const bool is_known = std::ranges::any_of(far_, [&](const Far& f) {
    const Operand& other = rule_of(f);
    return rule.placed.dense && other.placed.dense && other.extents == rule.extents &&
           other.blocks == rule.blocks;
  });
  if (is_known) return;
  // Each element adds at most what a block spans to how far the array reaches along a dimension.
  Checked spans = 0;
  for (const std::int64_t block : rule.blocks)
    spans += static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(block)));
  if (rule.placed.dense) far.few = INT32_MAX / spans.value_or(INT64_MAX);
  far_.push_back(far);
}

void Signature::note_bounds(const BlockMapping& mapping) {
  for (std::size_t d = 0; d < mapping.block_shape.size(); ++d) {
    const BlockDim& b = mapping.block_shape[d];
    const Dim& dim = mapping.array_aval.shape[static_cast<int>(d)];
    if (b.kind != BlockDim::Kind::bounded || dim.is_static()) continue;
    const Extent extent(dim);
    if (std::ranges::none_of(requirements_, [&](const Requirement& r) {
          return r.extent == extent && r.most <= b.size;
        }))
      requirements_.push_back({.extent = extent, .most = b.size});
  }
}

inline bool Signature::fits(const Operand& rule, const Arg& arg) {
  const Array* array = arg.array();
  if (!array) return rule.is_scalar && arg.scalar().dtype == rule.dtype;
  if (rule.is_scalar || array->dtype() != rule.dtype ||
      array->rank() != static_cast<int>(rule.extents.size()))
    return false;
  if (!array->is_dense()) return fits_with_gaps(rule, *array);
  // What placement() would say, without asking for more than decides.
  const int element = rule.dtype.bytes();
  const bool is_wide = rule.row_alignment > element && is_widely_aligned(array->data());
  return rule.placed.dense && rule.placed.alignment == (is_wide ? rule.row_alignment : element);
}

bool Signature::fits_with_gaps(const Operand& rule, const Array& array) {
  return is_inner_contiguous(array) && placement(array, rule.row_alignment) == rule.placed;
}

bool Signature::fits_stronger(const Operand& rule, const Arg& arg) {
  const Array* array = arg.array();
  if (!array) return rule.is_scalar && arg.scalar().dtype == rule.dtype;
  if (rule.is_scalar || array->dtype() != rule.dtype ||
      array->rank() != static_cast<int>(rule.extents.size()) || !is_inner_contiguous(*array) ||
      (rule.placed.dense && !array->is_dense()))
    return false;
  if (rule.placed.alignment == rule.dtype.bytes()) return true;
  return is_widely_aligned(array->data()) &&
         (rule.placed.dense || stride_alignment(*array) >= rule.placed.alignment);
}

bool Signature::is_short(const Operand& rule, const Array* array, const Symbols& symbols) {
  graph::Reach reach;
  for (std::size_t d = rule.extents.size(); d-- > 0;) {
    const Checked extent = rule.extents[d].find(symbols);
    if (!extent.fits()) return false;
    if (rule.placed.dense)
      reach.add(extent.value(), rule.blocks[d]);
    else
      reach.add(extent.value(), rule.blocks[d], array->stride(static_cast<int>(d)));
  }
  return reach.is_short();
}

template <Signature::Fit fit>
inline bool Signature::is_of_class_as(std::span<const Arg> arguments, std::span<const Arg> outputs,
                                      const Symbols& symbols) const {
  if (!has_classes_) return true;
  constexpr bool is_exact = fit == Fit::exact;
  for (const Class& c : classes_)
    if (((symbols[c.symbol] & c.mask) == 0) != c.is_multiple && (is_exact || c.is_multiple))
      return false;
  for (const auto& [a, b] : apart_)
    if (is_exact && symbols[a] == symbols[b]) return false;
  for (const int symbol : nonzero_)
    if (symbols[symbol] == 0) return false;
  for (const Requirement& r : requirements_) {
    const Checked n = r.extent.find(symbols);
    if (!n.within(r.least, r.most)) return false;
    if (r.multiple != 1 && n.value() % r.multiple != 0) return false;
  }
  if (!has_runtime_reach_ || (!is_exact && !short_offsets_ && !box_extents_)) return true;
  const bool must_be_short = is_exact || short_offsets_;
  if (must_be_short && has_short_offsets(arguments, outputs, symbols) != short_offsets_)
    return false;
  return short_offsets_ || has_box_extents(arguments, outputs, symbols) == box_extents_;
}

bool Signature::has_box_extents(std::span<const Arg> arguments, std::span<const Arg> outputs,
                                const Symbols& symbols) const {
  return !boxes_.empty() && std::ranges::all_of(boxes_, [&](const Far& f) {
    const Operand& rule = rule_of(f);
    const auto& given = f.of == Far::Of::output ? outputs : arguments;
    graph::BoxExtents extents(rule.dtype);
    for (std::size_t d = rule.extents.size(); d-- > 0;) {
      const Checked extent = rule.extents[d].find(symbols);
      if (!extent.fits()) return false;
      if (rule.placed.dense)
        extents.add(extent.value());
      else
        extents.add(extent.value(), given[static_cast<std::size_t>(f.operand)].array()->stride(
                                        static_cast<int>(d)));
    }
    return extents.fit();
  });
}

bool Signature::has_short_offsets(std::span<const Arg> arguments, std::span<const Arg> outputs,
                                  const Symbols& symbols) const {
  for (const Most& m : most_)
    if (symbols[m.symbol] > m.value) return false;
  for (const Far& f : far_) {
    const auto& given = f.of == Far::Of::output ? outputs : arguments;
    const Operand& rule = rule_of(f);
    const bool is_made = given.empty() || f.of == Far::Of::global;
    const Array* const array =
        is_made ? nullptr : given[static_cast<std::size_t>(f.operand)].array();
    if (array && array->size() > 0 && array->size() <= f.few) continue;
    // An output that is to be made with gaps is an input.
    if ((array || rule.placed.dense) && !is_short(rule, array, symbols)) return false;
  }
  return true;
}

bool Signature::match_arrays(std::span<const Arg> arguments, std::span<const Arg> outputs,
                             Symbols& symbols) const {
  return match_arrays_as<Fit::exact>(arguments, outputs, symbols);
}

bool Signature::is_of_class(std::span<const Arg> arguments, std::span<const Arg> outputs,
                            const Symbols& symbols) const {
  return is_of_class_as<Fit::exact>(arguments, outputs, symbols);
}

bool Signature::serves(std::span<const Arg> arguments, std::span<const Arg> outputs,
                       Symbols& symbols) const {
  return match_arrays_as<Fit::stronger>(arguments, outputs, symbols) &&
         is_of_class_as<Fit::stronger>(arguments, outputs, symbols);
}

bool Signature::serves_arrays(std::span<const Arg> arguments, std::span<const Arg> outputs,
                              Symbols& symbols, std::uint64_t& wide) const {
  constexpr std::size_t most = 64;
  if (arguments.size() + outputs.size() > most) return false;
  wide = 0;
  for (const auto& all : {arguments, outputs})
    for (const Arg& arg : all) {
      const Array* const array = arg.array();
      if (array && !array->is_dense()) return false;
      wide = wide << 1 | static_cast<std::uint64_t>(array && is_widely_aligned(array->data()));
    }
  return match_arrays_as<Fit::stronger>(arguments, outputs, symbols);
}

template <Signature::Fit fit>
inline bool Signature::match_arrays_as(std::span<const Arg> arguments, std::span<const Arg> outputs,
                                       Symbols& symbols) const {
  const auto suits = [](const Operand& rule, const Arg& arg) {
    return fit == Fit::exact ? fits(rule, arg) : fits_stronger(rule, arg);
  };
  if (arguments.size() != arguments_.size()) return false;
  const bool has_outputs = !outputs.empty() || outputs_.empty();
  if (has_outputs ? outputs.size() != outputs_.size() : undetermined_ >= 0) return false;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].is_ref() != arguments_[i].is_ref || !suits(arguments_[i], arguments[i]))
      return false;
  if (has_outputs)
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!suits(outputs_[i], outputs[i])) return false;

  const auto extent = [&](bool of_output, int operand, int dimension) {
    const auto& call = of_output ? outputs : arguments;
    // The ranks are equal by now.
    return call[static_cast<std::size_t>(operand)].array()->shape().begin()[dimension].value();
  };
  for (const Bind& b : binds_)
    if (b.dimension == Bind::by_value)
      symbols[b.symbol] = number_of(arguments[static_cast<std::size_t>(b.operand)]);
    else if (has_outputs || !b.of_output)
      symbols[b.symbol] = extent(b.of_output, b.operand, b.dimension);
  for (const Check& c : constants_)
    if (has_outputs || !c.of_output)
      if (extent(c.of_output, c.operand, c.dimension) != c.expected) return false;
  for (const Check& c : symbolic_) {
    if (c.of_output && !has_outputs) continue;
    const std::int64_t given = extent(c.of_output, c.operand, c.dimension);
    if (c.expected != not_symbol) {
      if (given != symbols[c.expected]) return false;
      continue;
    }
    const Operand& rule =
        (c.of_output ? outputs_ : arguments_)[static_cast<std::size_t>(c.operand)];
    const Checked expected = rule.extents[static_cast<std::size_t>(c.dimension)].find(symbols);
    if (!expected.within(given, given)) return false;
  }
  return true;
}

void Signature::refuse(std::span<const Arg> arguments, std::span<const Arg> outputs,
                       const std::string& kernel, Location at) const {
  const std::string prefix = "'" + kernel + "': ";
  if (outputs.empty() && undetermined_ >= 0)
    throw CompileError(at, prefix +
                               "the arguments do not determine every extent of the outputs; "
                               "give outputs with .into({outputs}, {arguments})");
  if (outputs.size() != outputs_.size())
    throw CompileError(at, prefix + "the kernel has " + std::to_string(outputs_.size()) +
                               " outputs but " + std::to_string(outputs.size()) + " were given");
  Symbols symbols = {};
  for (const Bind& b : binds_) {
    const auto& call = b.of_output ? outputs : arguments;
    const Arg& arg = call[static_cast<std::size_t>(b.operand)];
    const Array* array = arg.array();
    if (b.dimension == Bind::by_value)
      symbols[b.symbol] = number_of(arg);
    else if (array && b.dimension < array->rank())
      symbols[b.symbol] = array->shape()[b.dimension].value();
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Array& given = *outputs[i].array();
    const Shape expected = output_shape(static_cast<int>(i), symbols, kernel, outputs[i].at());
    if (given.dtype() != outputs_[i].dtype || !(given.shape() == expected))
      throw CompileError(outputs[i].at(), prefix + "outputs[" + std::to_string(i) + "] must be " +
                                              to_string(ShapeDtype{expected, outputs_[i].dtype}) +
                                              ", not " + to_string(given.type()));
  }
  throw InternalError("signature: a new specialisation of '" + kernel + "' refuses its own call");
}

Shape Signature::output_shape(int i, const Symbols& symbols, const std::string& kernel,
                              Location at) const {
  return shape_of(outputs_[static_cast<std::size_t>(i)], "outputs[" + std::to_string(i) + "]",
                  symbols, kernel, at);
}

Shape Signature::global_shape(int i, const Symbols& symbols, const std::string& kernel,
                              Location at) const {
  return shape_of(globals_[static_cast<std::size_t>(i)], "memory of the launch", symbols, kernel,
                  at);
}

Shape Signature::shape_of(const Operand& output, const std::string& of, const Symbols& symbols,
                          const std::string& kernel, Location at) {
  const auto fail = [&](const std::string& what) {
    throw CompileError(at, "'" + kernel + "': " + of + what);
  };
  Shape shape;
  bool is_negative = false;
  for (const Extent& e : output.extents) try {
      shape.push_back(e.evaluate(symbols));
      is_negative |= shape[-1].value() < 0;
    } catch (const CompileError& error) {
      fail(std::string(": ") + error.what());
    }
  const auto would = [&] { return " would be " + to_string(ShapeDtype{shape, output.dtype}); };
  if (is_negative) fail(would() + ": an extent is negative");
  if (!(checked_product(shape) * output.dtype.bytes()).fits())
    fail(would() + ", of more bytes than can be counted");
  return shape;
}

}  // namespace palladium::runtime
