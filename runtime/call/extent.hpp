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

  bool is_constant() const { return steps_.empty(); }
  std::int64_t constant() const { return constant_; }
  /// The number of the symbol that this extent is, or -1.
  int symbol() const { return steps_.size() == 1 ? static_cast<int>(steps_.front().operand) : -1; }

  /// `symbols[i]` is the value of dim_symbol(i). Does not fit where something is divided by zero or
  /// 64 bits do not hold it.
  Checked find(const std::int64_t* symbols) const {
    if (is_constant()) return constant_;
    if (const int s = symbol(); s >= 0) return symbols[s];
    return run(symbols, false);
  }
  /// The same; CompileError where it does not fit.
  std::int64_t evaluate(const std::int64_t* symbols) const {
    if (is_constant()) return constant_;
    if (const int s = symbol(); s >= 0) return symbols[s];
    return run(symbols, true).value();
  }

 private:
  struct Step {
    detail::DimOp op;
    std::int64_t operand;  // of symbol and constant
    bool operator==(const Step&) const = default;
  };
  void compile(const Dim& dim, int depth);
  Checked run(const std::int64_t* symbols, bool refuses) const;

  std::int64_t constant_ = 0;
  std::vector<Step> steps_;  // postfix
};

}  // namespace palladium::runtime
