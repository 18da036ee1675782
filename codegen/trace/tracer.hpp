// One trace while it goes on: what trace() does, step by step, in the order of run().
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "codegen/trace/body.hpp"
#include "codegen/trace/recorder.hpp"
#include "codegen/trace/spelled.hpp"
#include "codegen/trace/trace.hpp"
#include "palladium/error.hpp"

namespace palladium::trace {

using detail::Access;

template <class T>
std::string text(const std::vector<T>& list) {
  std::string result = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if constexpr (std::is_same_v<T, std::string>)
      result += (i ? "," : "") + list[i];
    else if constexpr (std::is_same_v<T, Dim>)
      result += (i ? "," : "") + to_string(list[i]);
    else
      result += (i ? "," : "") + std::to_string(list[i]);
  }
  return result + "]";
}

std::string text(const std::vector<BlockDim>& block);

/// What is refused without knowing a line, such as a shape of too many dimensions, is refused at
/// `at`.
template <class F>
void blaming(Location at, F f) try {
  f();
} catch (const CompileError& error) {
  if (error.at().line != 0) throw;
  throw CompileError(at, error.what());
}

/// The specification of an array that has none: one block, which is the array.
const BlockSpec& whole_array();

class Tracer {
 public:
  Tracer(const PallasCallOptions& options, std::span<const ArgumentType> arguments, Location at,
         const DimBinding* binding, std::span<const BatchType> batches, const OverMeshes& over);

  /// Once.
  graph::Graph run(std::span<const Body> bodies);
  std::vector<SymbolOrigin> symbols() && { return std::move(symbols_); }
  DebugMet debug() const { return {recorder_.debug_asked, recorder_.debug_recorded}; }
  std::vector<ArrayRef> captured() const;

 private:
  bool is_meshed() const { return over_.meshes != nullptr; }
  [[noreturn]] void fail(const std::string& what) const { fail(at_, what); }
  [[noreturn]] void fail(Location at, const std::string& what) const {
    throw CompileError(at.line ? at : at_, "kernel '" + recorder_.graph.name + "': " + what);
  }
  BlockMapping& mapping(int i) {
    return recorder_.graph.mapping.block_mappings[static_cast<std::size_t>(i)];
  }

  // ---- trace.cpp

  /// Messages are C strings: what is said of such a kernel would end within its name.
  void check_name() const;
  void check_persistent() const;
  /// The innermost first: what an outer one adds stands in front of it.
  void add_batches();
  void resolve_dims();
  /// Sizes in bodies and index maps, and extents of Refs, in terms of the symbols that are left.
  void settle_extents();
  /// By their coming numbers, with what requirements and promises say of each.
  void find_symbols();
  void narrow(const Dim& d, const DimSizes& sizes);  // what is known of it, if it is a symbol
  void set_class(graph::Graph& g) const;
  std::vector<std::optional<graph::Semantics>> wanted_order() const;

  // ---- grid.cpp

  void set_grid();
  void set_grid_order();
  void set_split();
  void set_expectation();
  void set_profile();
  /// What is sequential is known at the end.
  void check_grid_order(const graph::Graph& g) const;
  /// Semaphores tell at least those who count with them.
  static void check_memory_scopes(const graph::Graph& g);
  void set_cluster();
  void note_cluster_barriers(const std::vector<ValueId>& scratch);
  void add_members(std::vector<ValueId>& scratch);
  void set_threads(std::size_t bodies);
  void check_names(const std::vector<std::string>& names, std::size_t axes, const char* what);

  // ---- block_mappings.cpp

  /// An array of the call, or an output.
  struct ArrayOperand {
    ShapeDtype type;
    std::string origin;
    bool dense = true;
    int alignment = 16;
  };
  /// Arguments and outputs: their block mappings, still without index maps.
  void map_operands();
  /// A specification may be for several of them.
  void map_operands(std::span<const ArrayOperand> arrays, const std::vector<BlockSpec>& specs);
  void map_operand(std::span<const ArrayOperand>& next, const BlockSpec& spec);
  /// Takes the arrays of the specification from the front.
  BlockMapping operand(std::span<const ArrayOperand>& next, const BlockSpec& spec);
  void check_prefetched(int count) const;
  void check_count(const std::vector<BlockSpec>& specs, std::size_t operands, const char* field,
                   const char* what);
  BlockMapping mapping_of(const ArrayOperand& array, const BlockSpec& spec);
  /// A block of no elements along a dimension in which the array has none becomes one of the least
  /// extent, which no program may use; whether it is one.
  bool set_empty(BlockMapping& m);
  void check_empty(const graph::Graph& g) const;
  /// None for a symbol that stands for no number here.
  static std::optional<std::int64_t> number_of(const Dim& d);
  /// The block is all of the array along the dimension, where it is.
  void set_bounded(BlockMapping& m, const BlockSpec& spec) const;
  std::optional<std::int64_t> peeked(const Dim& d) const;  // its value, which pins nothing
  void set_indirect(BlockMapping& m, const BlockSpec& spec);
  void pin(Dim& extent, const BlockSpec& spec, const std::string& what) const;
  /// Which elements share a byte is known where rows begin.
  void set_packed(BlockMapping& m, const BlockSpec& spec) const;
  void set_fill(BlockMapping& m, const BlockSpec& spec) const;
  void check_size(const BlockMapping& m, Location at) const;
  /// The blocks that are all of an array.
  void set_whole(BlockMapping& m, const BlockSpec& spec);
  void set_aliases();

  // ---- index_maps.cpp

  void trace_index_maps();
  void warn_of_captures_in(const IndexMap& map, const std::string& what) const;
  /// Of the options that say what bodies and index maps see of the grid.
  void trace_grid_env();
  RegionIndex trace_grid_region(const IndexMap& map, const char* what,
                                const std::function<bool(std::size_t)>& fits, const char* expected);
  std::vector<Value> program_ids(Location at);
  ValueId scalar_index(const Value& index, const std::string& who, std::size_t number, Location at);
  /// What the map gives for these ids and index operands, where it is recorded.
  std::vector<BlockIndex> indices_of(const BlockMapping& m, const BlockSpec& spec,
                                     const std::vector<Value>& ids, const std::vector<Ref>& refs);
  /// The parameters are those that the mapping says index maps have.
  RegionIndex trace_index_map(const BlockMapping& m, const BlockSpec& spec);
  void check_kind(const BlockMapping& m, const BlockIndex& index, std::size_t i, Location at) const;
  /// The view that an index map's arrays of indices choose, chained dimension by dimension.
  ValueId chosen(ValueId ref, const BlockMapping& m, const BlockSpec& spec,
                 const std::vector<Ref>& operands);
  ValueId chosen_along(ValueId ref, std::size_t dimension, const BlockIndex& indices,
                       const BlockMapping& m, std::int64_t count, std::size_t position,
                       Location at);
  Ref index_operand(const AbstractValue& operand, const BlockMapping& m, Location at);
  [[noreturn]] void refuse_parameters(const BlockMapping& m, int arity, Location at) const;

  // ---- bodies.cpp

  void set_scratch();
  /// Counters of a block are memory of the launch: each block has its own part.
  void set_semaphores(const Scoped& scratch, const std::string& who);
  /// Of an argument that is an ArrayRef the body gets the output.
  void trace_body(std::size_t number, const Body& body);
  void note_unaliased(const BlockMapping& m, ValueId ref);
  /// What the body gets of the arrays of which Indirect chooses.
  void choose(std::vector<BodyOperand>& operands);
  /// Behind the arguments of the call, and behind its outputs.
  void add_captured();

  const PallasCallOptions& options_;
  std::span<const ArgumentType> arguments_;
  Location at_;
  const DimBinding* binding_;
  std::span<const BatchType> batches_;
  const OverMeshes& over_;
  Recorder recorder_;
  Spelled call_;
  std::vector<const BlockSpec*> specs_;  // per block mapping
  std::vector<std::size_t> empty_;       // block mappings whose blocks have no elements
  std::vector<std::string> scratch_names_;
  std::vector<int> global_of_scratch_;  // of semaphores; -1: it is memory of the block
  int num_visible_ = 0;                 // outputs of the call
  std::vector<Dim> promised_;           // extents of arrays of which pl::dim() was told something
  std::vector<SymbolOrigin> symbols_;
};

}  // namespace palladium::trace
