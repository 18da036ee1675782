// Extents that are known at a launch: compiled once, evaluated without lock or allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/base/checked.hpp"
#include "palladium/types.hpp"

namespace palladium::runtime {

/// A Dim over dim_symbol(0), dim_symbol(1), ... as a short program.
class Extent {
 public:
  Extent() = default;
  /// CompileError for an expression too deep to be evaluated on a small stack.
  explicit Extent(const Dim& dim);

  bool operator==(const Extent&) const = default;

  bool is_constant() const { return form_ == Form::constant; }
  std::int64_t constant() const { return leaf_.operand; }
  /// The number of the symbol that this extent is, or -1.
  int symbol() const { return form_ == Form::symbol ? static_cast<int>(leaf_.operand) : -1; }

  /// `symbols[i]` is the value of dim_symbol(i). Does not fit where something is divided by zero or
  /// 64 bits do not hold it.
  Checked find(const std::int64_t* symbols) const {
    if (is_constant()) return leaf_.operand;
    return form_ == Form::program ? run(symbols, false) : value_of(leaf_, symbols);
  }
  /// The same; CompileError where it does not fit.
  std::int64_t evaluate(const std::int64_t* symbols) const {
    if (is_constant()) return leaf_.operand;
    return form_ == Form::program ? run(symbols, true).value() : value_of(leaf_, symbols);
  }

 private:
  struct Step {
    detail::DimOp op = detail::DimOp::constant;
    int shift = 0;             // of a symbol: of which it is how many pieces of 2^shift there are
    std::int64_t operand = 0;  // of symbol and constant
    bool operator==(const Step&) const = default;
  };
  enum class Form : std::uint8_t { constant, symbol, pieces, program };

  // Grids divide extents by the sizes of blocks: most of these are powers of two.
  static std::int64_t value_of(const Step& symbol, const std::int64_t* symbols) {
    const std::int64_t n = symbols[symbol.operand];
    if (n < 0) [[unlikely]]
      return pieces_of_negative(n, symbol.shift);
    const std::int64_t rest = n & ((std::int64_t{1} << symbol.shift) - 1);
    return (n >> symbol.shift) + (rest != 0);
  }
  static std::int64_t pieces_of_negative(std::int64_t n, int shift);
  void compile(const Dim& dim, int depth);
  Checked run(const std::int64_t* symbols, bool refuses) const;

  Form form_ = Form::constant;
  Step leaf_ = {};           // but for Form::program
  std::vector<Step> steps_;  // of that, postfix
};

}  // namespace palladium::runtime
