// What a specialised kernel demands of the arrays of a call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/graph/classes.hpp"
#include "codegen/graph/graph.hpp"
#include "palladium/call.hpp"
#include "runtime/call/extent.hpp"

namespace palladium::runtime {

using graph::wide_alignment;

/// How an array lies in memory, as far as kernels are specialised on it.
struct Placement {
  bool dense = true;
  int alignment = wide_alignment;  // of every row, in bytes: that, or less down to an element's
  bool operator==(const Placement&) const = default;
};
/// Whether kernels can take the array: without gaps along its last dimension.
bool is_inner_contiguous(const Array& array);
/// `row_alignment`: of a dense array that begins at a multiple of wide_alignment. Of any other
/// nothing is known but where elements begin.
Placement placement(const Array& array, int row_alignment);
/// At a multiple of how many bytes, up to wide_alignment, every row of a dense array of the type
/// begins, by its extents, of whose symbols this is known; at least an element's.
int row_alignment(const ShapeDtype& type, const DimFacts& facts);

/// One array or scalar of a call.
struct Operand {
  DType dtype = {};
  bool is_scalar = false;
  bool is_ref = false;  // an ArrayRef
  int row_alignment = wide_alignment;
  Placement placed = {};
  std::vector<Extent> extents = {};
  std::vector<std::int64_t> blocks = {};  // their sizes
};

/// What pl::require_multiple(), pl::size_class() and bounded blocks ask of every call.
struct Requirement {
  Extent extent;
  std::int64_t multiple = 1, least = INT64_MIN, most = INT64_MAX;
};

class Signature {
 public:
  /// More symbols than this are a CompileError.
  static constexpr int max_symbols = 64;
  using Symbols = std::int64_t[max_symbols];

  Signature() = default;
  /// `refs`: by argument, whether it is an ArrayRef; or nothing.
  explicit Signature(const graph::Graph& g, std::vector<Requirement> requirements = {},
                     const std::vector<bool>& refs = {});

  const std::vector<Operand>& arguments() const { return arguments_; }
  const std::vector<Operand>& outputs() const { return outputs_; }
  int num_symbols() const { return num_symbols_; }

  /// Whether a call fits, and the values of the symbols then. Without `outputs` they are to be
  /// made.
  bool match(std::span<const Arg> arguments, std::span<const Arg> outputs, Symbols& symbols) const {
    return match_arrays(arguments, outputs, symbols) && is_of_class(arguments, outputs, symbols);
  }
  /// The first part of that, and the rest of it.
  bool match_arrays(std::span<const Arg> arguments, std::span<const Arg> outputs,
                    Symbols& symbols) const;
  bool is_of_class(std::span<const Arg> arguments, std::span<const Arg> outputs,
                   const Symbols& symbols) const;
  /// Whether the rest is the same for all calls of the same symbols.
  bool is_class_of_symbols() const { return is_class_of_symbols_; }

  /// The same for a kernel that may know less than holds of the call.
  bool serves(std::span<const Arg> arguments, std::span<const Arg> outputs, Symbols& symbols) const;
  /// The first part of that, of arrays without gaps. In bits of `wide`, by argument and output,
  /// whether it begins at a multiple of wide_alignment: calls of equal symbols and bits are alike.
  bool serves_arrays(std::span<const Arg> arguments, std::span<const Arg> outputs, Symbols& symbols,
                     std::uint64_t& wide) const;

  /// Throws what keeps `outputs` from fitting, for arguments that fit.
  [[noreturn]] void refuse(std::span<const Arg> arguments, std::span<const Arg> outputs,
                           const std::string& kernel, Location at) const;

  /// Memory of the launch alone, behind the outputs, which calls know nothing of.
  const std::vector<Operand>& globals() const { return globals_; }
  /// Shape of output `i`; CompileError at `at` if no array can have it. Precondition: match()
  /// without outputs.
  Shape output_shape(int i, const Symbols& symbols, const std::string& kernel, Location at) const;
  Shape global_shape(int i, const Symbols& symbols, const std::string& kernel, Location at) const;

 private:
  static Shape shape_of(const Operand& operand, const std::string& of, const Symbols& symbols,
                        const std::string& kernel, Location at);
  /// An extent that gives a symbol its value, or is compared afterwards; or a scalar.
  struct Bind {
    static constexpr int by_value = -1;  // dimension of a scalar
    bool of_output;
    int operand, dimension, symbol;
  };
  static constexpr std::int64_t not_symbol = -1;
  struct Check {
    bool of_output;
    int operand, dimension;
    std::int64_t expected;  // the extent; of symbolic_: the symbol that it is, or not_symbol
  };
  /// The class of a symbol; what it is a multiple of, or not, is a power of two.
  struct Class {
    int symbol;
    std::int64_t mask;
    bool is_multiple;
  };
  /// What offsets are short up to, of a symbol that alone decides how far arrays reach.
  struct Most {
    int symbol;
    std::int64_t value;
  };
  /// An array that reaches as far as several symbols say, or its strides.
  struct Far {
    enum class Of : std::uint8_t { argument, output, global } of;
    int operand;
    std::int64_t few = 0;  // elements of a dense array with which it does not reach far
  };
  /// What a call has that fits: what the kernel knows, or that and more.
  enum class Fit : std::uint8_t { exact, stronger };
  template <Fit fit>
  bool match_arrays_as(std::span<const Arg> arguments, std::span<const Arg> outputs,
                       Symbols& symbols) const;
  const Operand& rule_of(const Far& far) const;
  void note_bounds(const BlockMapping& mapping);
  void note_reach(const BlockMapping& mapping, Far far);
  template <Fit fit>
  bool is_of_class_as(std::span<const Arg> arguments, std::span<const Arg> outputs,
                      const Symbols& symbols) const;
  bool has_short_offsets(std::span<const Arg> arguments, std::span<const Arg> outputs,
                         const Symbols& symbols) const;
  bool has_box_extents(std::span<const Arg> arguments, std::span<const Arg> outputs,
                       const Symbols& symbols) const;
  static bool is_short(const Operand& rule, const Array* array, const Symbols& symbols);
  static bool fits(const Operand& rule, const Arg& arg);
  static bool fits_stronger(const Operand& rule, const Arg& arg);
  static bool fits_with_gaps(const Operand& rule, const Array& array);

  std::vector<Operand> arguments_, outputs_, globals_;
  std::vector<Bind> binds_;
  std::vector<Check> constants_, symbolic_;
  std::vector<Class> classes_;
  std::vector<int> nonzero_;              // symbols that, if 0, are numbers of another signature
  std::vector<graph::SymbolPair> apart_;  // which, if equal, are one symbol of another signature
  std::vector<Requirement> requirements_;
  std::vector<Most> most_;
  std::vector<Far> far_;
  std::vector<Far> boxes_;  // arrays of which only a call knows how far they reach
  bool has_runtime_reach_ = false, short_offsets_ = false, box_extents_ = false,
       has_classes_ = false, is_class_of_symbols_ = true;
  int num_symbols_ = 0;
  int undetermined_ = -1;  // a symbol that no argument gives a value
};

}  // namespace palladium::runtime
