// The process-wide table of dimension expressions behind palladium::Dim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/base/checked.hpp"
#include "palladium/types.hpp"

namespace palladium {

/// One interned expression: equal expressions have equal ids. Ids start at 1 and are never freed.
struct DimNode {
  detail::DimOp op = detail::DimOp::constant;
  Dim a = {}, b = {};        // operands of a binary op
  std::uint32_t symbol = 0;  // op == symbol: see symbol_name
  std::uint32_t size = 0;    // operations, those of shared parts each time: what a walk meets
};
/// More operations are refused: walks recurse, and go into shared parts again and again.
inline constexpr std::uint32_t max_dim_operations = 128;

DimNode dim_node(const Dim& d);  // precondition: !d.is_static()

/// One of the binary operations; does not fit where 64 bits do not hold it or nothing is divided.
Checked apply(detail::DimOp op, std::int64_t a, std::int64_t b);
/// The CompileError for what does not fit.
[[noreturn]] void refuse_size(detail::DimOp op, std::int64_t a, std::int64_t b);

/// The symbol with this number (numbers are small and dense from 0). Canonical graphs use these:
/// their symbols are numbered by position, so that user names never reach a key.
Dim dim_symbol(std::uint32_t number);
/// "m" for pl::dim("m"), "s0" for dim_symbol(0).
std::string symbol_name(std::uint32_t symbol);

/// The symbol behind pl::argument(i), and back; -1 for others.
std::uint32_t argument_symbol(int i);
int argument_of(std::uint32_t symbol);

/// Symbols of an expression in order of first appearance, appended to `out` without repeats.
void collect_symbols(const Dim& d, std::vector<std::uint32_t>& out);

/// The expression with symbol `from[i]` replaced by `to[i]`; folds to an integer where it can.
Dim substitute(const Dim& d, std::span<const std::uint32_t> from, std::span<const Dim> to);

/// Evaluates with symbol number i bound to values[i]; InternalError when a symbol is out of range,
/// CompileError for a division by zero and for what 64 bits do not hold.
std::int64_t evaluate(const Dim& d, std::span<const std::int64_t> values);

/// What is known of the sizes that a symbol stands for.
struct DimSizes {
  std::int64_t multiple = 1;  // that all of them are multiples of; 0 where the size is 0
  std::int64_t least = 0, most = INT64_MAX;

  static DimSizes only(std::int64_t n) { return {n, n, n}; }
  /// Adds what else is known of them.
  void narrow(const DimSizes& o);
};
/// What pl::dim() was told when it gave this very handle; arithmetic forgets it.
DimSizes promised(const Dim& d);
/// The largest value, given those of the symbols by number; does not fit where it is not known.
Checked most(const Dim& d, std::span<const DimSizes> symbols);

/// What holds of a canonical graph's symbols in every call.
struct DimFacts {
  std::vector<std::int64_t> multiples =
      {};  // by symbol; of those that are missing nothing is known
  std::int64_t multiple(std::uint32_t symbol) const {
    return symbol < multiples.size() ? multiples[symbol] : 1;
  }
  bool operator==(const DimFacts&) const = default;
};
/// A number that every value of `d` is a multiple of; 0 where that is 0. Whoever wants to know asks
/// here.
std::int64_t multiple_of(const Dim& d, const DimFacts& facts);

/// What is known of symbols while one lives on this thread: reading a symbolic Dim yields its bound
/// value and pins the symbols it is made of; finding two dims equal makes a symbol the other dim.
class DimBinding {
 public:
  DimBinding();
  ~DimBinding();
  DimBinding(const DimBinding&) = delete;

  void bind(std::uint32_t symbol, std::int64_t value);

  /// A symbol of that name for what a body sees of `is`: values are made of it, and it is pinned
  /// where it is read, as `is` is then.
  Dim seen(const std::string& name, const Dim& is);
  /// Whether there is one in the expression.
  bool has_seen(const Dim& d) const;

  /// The dim in terms of the symbols that are still free.
  Dim resolve(const Dim& d) const;
  /// Its value, which pins nothing; CompileError where a symbol has none.
  std::int64_t peek(const Dim& d) const;
  bool can_peek(const Dim& d) const;
  std::int64_t read(const Dim& d);
  /// Whether both have one value. If so, that becomes a fact about their symbols: a free symbol of
  /// the two is from now on the other dim. If not, both are read.
  bool equal(const Dim& a, const Dim& b);
  /// Makes the two equal where no value says otherwise; false if one does.
  bool unify(const Dim& a, const Dim& b);
  /// Keeps in mind that `d` must be a multiple of `n`; false if its value is not.
  bool require_multiple(const Dim& d, std::int64_t n);
  /// Keeps in mind that `d` must be from `least` to `most`.
  void require_range(const Dim& d, std::int64_t least, std::int64_t most);

  struct Requirement {
    Dim dim;
    DimSizes sizes;
  };
  const std::vector<Requirement>& requirements() const { return requirements_; }
  /// The call runs its kernel for so many elements of a batch, of each of those noted before.
  void note_batch(const Dim& size) { batches_ = batches_ * size; }
  /// All of them; 1 where none was noted.
  const Dim& batches() const { return batches_; }
  /// What the requirements say of a symbol that is still free.
  DimSizes required(std::uint32_t symbol) const;

  static DimBinding* current();

 private:
  struct Entry {
    std::uint32_t symbol;
    bool has_value;
    std::int64_t value;
    Dim is;  // the symbol itself, or what it was found to be
    bool is_seen = false;
  };
  const Entry* find(std::uint32_t symbol) const;
  std::size_t number(std::uint32_t symbol);  // in entries_, made if there is none
  /// Makes one of the two, a symbol, the other; false if that cannot be.
  bool replace_symbol(const Dim& a, const Dim& b);
  bool replace_by(const Dim& symbol, const Dim& d);
  std::vector<Entry> entries_;
  std::vector<Requirement> requirements_;
  Dim batches_ = 1;
  DimBinding* outer_;
};

}  // namespace palladium
