// The process-wide table of dimension expressions behind palladium::Dim.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "palladium/types.hpp"

namespace palladium {

/// One interned expression: equal expressions have equal ids. Ids start at 1 and are never freed.
struct DimNode {
  detail::DimOp op = detail::DimOp::constant;
  Dim a = {}, b = {};        // operands of a binary op
  std::uint32_t symbol = 0;  // op == symbol: see symbol_name
};

DimNode dim_node(const Dim& d);  // precondition: !d.is_static()

/// The symbol with this number (numbers are small and dense from 0). Canonical graphs use these:
/// their symbols are numbered by position, so that user names never reach a key.
Dim dim_symbol(std::uint32_t number);
/// "m" for pl::dim("m"), "s0" for dim_symbol(0).
std::string symbol_name(std::uint32_t symbol);

/// Symbols of an expression in order of first appearance, appended to `out` without repeats.
void collect_symbols(const Dim& d, std::vector<std::uint32_t>& out);

/// The expression with symbol `from[i]` replaced by `to[i]`; folds to an integer where it can.
Dim substitute(const Dim& d, std::span<const std::uint32_t> from, std::span<const Dim> to);

/// Evaluates with symbol number i bound to values[i]; InternalError when a symbol is out of range.
std::int64_t evaluate(const Dim& d, std::span<const std::int64_t> values);

/// While one lives on this thread, reading a symbolic Dim yields its bound value and pins the
/// symbols it is made of.
class DimBinding {
 public:
  DimBinding();
  ~DimBinding();
  DimBinding(const DimBinding&) = delete;

  void bind(std::uint32_t symbol, std::int64_t value);
  bool pinned(std::uint32_t symbol) const;
  std::int64_t value(std::uint32_t symbol) const;

 private:
  friend class palladium::Dim;
  struct Entry {
    std::uint32_t symbol;
    std::int64_t value;
    bool pinned;
  };
  std::int64_t read(const Dim& d);
  std::vector<Entry> entries_;
  DimBinding* outer_;
};

}  // namespace palladium
