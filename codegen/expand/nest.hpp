// The loops of one nest, and expressions of one element. Internal to codegen/expand.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/expand/expander.hpp"
#include "codegen/passes/sums.hpp"
#include "codegen/thread/vectorize.hpp"

namespace palladium::expand {

using passes::Coordinates;
using thread::Address;
using thread::Bound;
using thread::Bounds;

/// Operations that one expression of the text may hold.
inline constexpr int most_operations = 12;

class Nest : private passes::Addresses {
 public:
  Nest(Expander& x, const lowered::Redirects& copies)
      : Addresses(x.l_, x.e_),
        x_(x),
        b_(x.b_),
        redirects_(copies),
        sums_(x.g_, x.e_, [&x](int axis) { return x.program_id(axis); }) {}
  Nest(Expander& x, const lowered::LoopNest& loops) : Nest(x, loops.redirects) { nest_ = &loops; }

  void expand();
  /// An expression of one element outside of loops.
  ExprId scalar(ValueId v, bool enter);
  /// The one element of a storage in shared memory.
  ExprId held(StorageId storage);
  /// The values that an index map yields for a program.
  std::vector<ExprId> index_map(RegionIndex region, int rank);
  ExprId pointer_to(ValueId ref);

 private:
  // what addresses are made of
  ExprId index_value(ValueId v) override { return evaluate(v, {}, {}, false); }
  Affine chosen_index(ValueId v, const Coordinates& c, const DimMap& map) override;
  ExprId let_coordinate(ExprId value) override {
    return b_.let_coordinate({.name = prefix("n"), .temporary = true, .type = i32}, value);
  }
  const passes::BlockNames& block(WindowId window) override;
  ExprId stride(int mapping, int d) override { return e_.variable(x_.strides_.at({mapping, d})); }
  ExprId dim(const Dim& d) override { return x_.dim(d); }
  ExprId shared_address(StorageId storage) override { return x_.shared_address(storage); }
  bool is_storing() const override { return storing_; }

  // nest.cpp: the loops, and what becomes of each element
  void name_coordinates();
  void open_repetition(int d);
  void open_repetitions(bool reduced, bool kept);
  void open_groups();
  bool is_rolled(int d) const {
    const auto at = static_cast<std::size_t>(d);
    return at < nest_->rolled.size() && nest_->rolled[at];
  }
  std::int64_t groups() const {
    return std::int64_t{1} << (layout_.reg.size() - static_cast<std::size_t>(vector_bits_));
  }
  void open_elements();
  void expand_nest();
  bool is_reduced(int d) const;
  Affine repetition(int d) const;
  Affine low_register_index(const DimMap& map, int& bits) const;
  Affine register_index(const layout::Layout& leaf, const DimMap& map) const;
  Bounds padding(const DimMap& map) const;
  bool enters(StorageId storage) const { return lowered::enters(l_, *nest_, storage); }
  void mask_replicas();
#define PALLADIUM_EXPAND(Kind) expand_sink(const lowered::Kind& s)
  void PALLADIUM_SINKS(PALLADIUM_EXPAND);
#undef PALLADIUM_EXPAND
  /// What the expansion of one kind has to itself: defined in the file of that kind.
  template <class Kind>
  class Expansion;
  void declare_sink();
  void stage(const lowered::Fill& s);
  // copies.cpp: asynchronous copies to shared memory
  bool copies_moved(const lowered::Stage& s);
  bool copies_asynchronously(const Address& from, StorageId filled, lowered::CopyMode by);
  std::pair<Bounds, Bounds> limits() const;
  bool copies_window(WindowId window, StorageId storage);
  bool copies_load(StorageId storage);
  bool copy(const Address& a, StorageId storage);
  void assign_element(StorageId storage, ExprId value);
  void assign_pair(StorageId storage, ExprId value);
  void put_in_shared(StorageId storage, ExprId value);
  void store_element(const Address& a, ExprId value, ExprId mask, const Bounds& limits);
  void store_vector(const Address& a, VariableId from, ExprId mask, Bounds bounds);
  void store_one(const Address& a, VariableId from, ExprId mask, const Bounds& bounds);
  void store_parts(const Address& a, ExprId value, ExprId mask, const Bounds& limits);

  // updates.cpp: atomic operations
  ExprId update_element(const lowered::Update& s, Address a, ExprId value, ExprId expected,
                        ExprId test);

  // quotients.cpp: rows that are divided by one number
  /// A loop around the elements of a vector.
  struct Counting {
    int over = lowered::over_groups;  // or the dimension of repetitions
    ExprId counter = no_expr;
    std::int64_t count = 1;
  };
  void open_to_groups();
  Counting counting(int over) const;
  void open(const Counting& loop);
  void divide_row(ValueId division, std::span<const Counting> row);
  ExprId dividends(ValueId v, const Affine& at, std::int64_t count, std::span<const Counting> row,
                   VariableId q);
  void forget(thread::Depends changing);
  ExprId in_registers(ValueId v) const;
  bool stores_registers(const lowered::Store& s);

  // reduce.cpp
  struct Folding {
    DType type = {};  // of the accumulator
    ExprId identity = no_expr;
    thread::Fold how{};
    layout::Layout result = {};
    VariableId acc = thread::no_variable;
    std::int64_t registers = 1;
    bool one = false;  // acc is no array
    ExprId accumulator(Exprs& e, ExprId at) const;
  };
  Folding folding(const lowered::Reduce& s);
  void start_folding(Folding& f);
  ExprId folded_elements(const lowered::Reduce& s, const Folding& f);
  void fold_elements(const lowered::Reduce& s, const Folding& f);
  void fold_threads(const lowered::Reduce& s, const Folding& f);
  void keep_result(const lowered::Reduce& s, const Folding& f);
  void keep_result_in_shared(const lowered::Reduce& s, const Folding& f);
  ExprId converted(ExprId x, DType to);
  ExprId identity(thread::Fold how, DType type);

  // elements.cpp: expressions
  struct Pending {  // a value that waits for its operands
    ValueId v = graph::no_value;
    Coordinates c = {};
    DimMap map = {};
    bool enter = false;
    bool partial = false;               // the coordinates may lie outside of it
    std::vector<ValueId> addends = {};  // of a sum: its operands
    std::vector<ExprId> operands = {};  // those evaluated so far
    ExprId got = no_expr;               // of a load with a mask: what memory holds
  };
  using Key = std::vector<std::uint32_t>;
  Key key_of(std::uint32_t what, const Coordinates& c);
  ExprId evaluate(ValueId v, const Coordinates& c, const DimMap& map, bool enter);
  bool next_operand(Pending& p, Pending& operand, ExprId& value);
  bool next_of_load(Pending& p, Pending& operand, ExprId& value);
  // moves.cpp
  bool next_of_move(Pending& p, Pending& operand, ExprId& value);
  bool next_of_concatenation(Pending& p, Pending& operand, ExprId& value);
  bool next_of_update(Pending& p, Pending& operand, ExprId& value);
  Affine clamped(ExprId x, std::int64_t most);
  Coordinates begin_of_part(std::span<const ExprId> starts, const Extents& whole,
                            const Extents& part);
  void add_range(Bounds& bounds, const Coordinates& c, const Extents& shape);

  ExprId operation(const graph::Inst& i, std::vector<ExprId> operands);
  ExprId leaf(ValueId v, const Coordinates& c);
  ExprId named(ValueId v, ExprId value);
  std::vector<ExprId> hoisted(std::vector<ExprId> operands);
  ExprId coordinate_value(const Affine& c, DType t);

  // addends.cpp: sums of integers
  struct Taps;
  /// Conditions under which addends are 1 where they else are 0.
  struct Counts {
    std::set<std::vector<ExprId>> all = {};  // of each at most two
    std::set<ExprId> sides[2] = {};
    bool alone[2] = {};  // whether the other side's conditions also count alone
    bool split();
  };
  std::vector<ValueId> addends_of(ValueId v) const;
  ExprId sum_of(const graph::Inst& sum, std::vector<ExprId> addends);
  std::vector<Taps> rows_of(const std::vector<ExprId>& addends) const;
  void share_columns(DType t, std::vector<ExprId>& addends);
  /// What rows add in each column.
  struct ColumnSum {
    DType::Kind type = {};
    std::int64_t count = 0;
    std::vector<std::pair<VariableId, std::int64_t>> rows = {};  // arrays, from where in them
    friend auto operator<=>(const ColumnSum&, const ColumnSum&) = default;
  };
  VariableId add_rows(DType t, const std::vector<Taps>& rows, std::int64_t count);
  VariableId declare_rows(DType t, const std::vector<Taps>& rows, std::int64_t count);
  std::optional<std::vector<ExprId>> counted(ExprId addend) const;
  void multiply_counts(DType t, std::vector<ExprId>& addends);

  // hints.cpp
  ExprId hinted(const Pending& p);
  ExprId multiple(const graph::Inst& i, ExprId x);
  void check_hint(const Pending& p, std::size_t d);
  bool is_computed(ValueId v) const;

  // elements.cpp: reads and coordinates
  ExprId load_registers(const Pending& p);
  StorageId copy_of(StorageId storage, const DimMap& map) const;
  ExprId read(StorageId storage, const Coordinates& c, const DimMap& map, bool partial = false);
  ExprId temporary(const char* prefix, ExprId value);
  std::string prefix(const char* of) const { return nest_ ? of : std::string("s") + of; }
  Coordinates operand_coordinates(ValueId v, std::size_t arg, const Coordinates& c);

  // checks.cpp: indices that may leave their Ref
  bool is_plain(ValueId ref) const;
  bool may_leave(ValueId ref) const;
  void check_indices(ValueId access, const Coordinates& c, const DimMap& map, ExprId mask);

  // accesses.cpp: how they are read and written
  enum class Direction : std::uint8_t { load, store, flush };
  /// One access of every element of a vector.
  struct Vector {
    Direction direction = Direction::load;
    Row function{}, function_of_part{};
    Address place = {};
    VariableId array = thread::no_variable;  // registers: array + first + e
    Affine first = {};
    Bounds bounds = {};
    std::vector<ExprId> tests = {};
    ExprId outside = no_expr;  // load: what elements that are not there hold
    Address from = {};         // flush
  };
  thread::Width vector_width(const Address& a, const Bounds& bounds) const {
    return thread::width_of(e_, a, bounds, element_, vector_);
  }
  thread::Statement vector_access(Vector v);
  thread::Place place_of(const Address& a);
  ExprId access(const Address& a, const DimMap& map, ExprId mask);
  ExprId joined_access(const Address& a, const DimMap& map, ExprId mask);
  ExprId joined_filled(const Address& a, const DimMap& map, ExprId mask);
  void fill_outside(thread::Access& access, ExprId outside);
  ExprId filled(const Address& a, ExprId value);
  Vector load_of(const Address& a, const DimMap& map, VariableId array, const Affine& first) const;
  VariableId unfilled(const char* of, DType type, std::int64_t count);
  Bounds bounds_of(const Address& a, const DimMap& map) const;
  bool is_vector(const Address& a, const DimMap& map) const;
  thread::Depends depends(const Address& a, const Bounds& bounds) const;
  std::vector<ExprId> reading_threads(const Address& a) const;
  Affine tested_coordinate(const Bound& b) const;

  // staged.cpp: rows of staged windows, which several reads share
  /// Neighbours that a thread reads of a row, `low` to `high` from where all its reads begin.
  struct Span {
    std::int64_t low = 0, high = 0;
    int width = 1;  // of an access
    VariableId array = thread::no_variable;
  };
  using Spans = std::map<std::pair<ExprId, ExprId>, std::vector<Span>>;  // by base and offset
  bool reads_staged() const;
  void survey();
  Span wanted_of(const Address& a) const;
  Affine row_of(const Address& a) const;
  Span* span_of(const Affine& row, const Address& a, const Span& wanted);
  bool shares_row(const Address& a, const DimMap& map, ExprId mask);
  ExprId row_access(const Address& a, const DimMap& map);
  void load_span(Span& span, const Address& a, const Affine& from, const DimMap& map);

  // known.cpp: conditions that hold where blocks are whole
  bool holds_if_whole(ValueId v, const Coordinates& c);
  ExprId folded(const graph::Inst& i, const std::vector<ExprId>& operands);

  // whole.cpp: blocks that are wholly inside of their arrays
  std::vector<WindowId> windows_of_pass() const;
  std::int64_t elements_in_text() const;
  ExprId wholeness();
  bool streams() const;
  bool tests_blocks() const;
  lowered::LoopNest by_elements() const;
  struct Variant;
  Variant variant(const lowered::LoopNest& loops, bool whole, ExprId fork = no_expr);
  void store_two_ways(const lowered::Store& s);

  // padding.cpp: registers beyond the value that hold the first vector of their thread again
  bool has_later_vectors() const;
  bool reads_first_again(Vector& v);
  bool repeats_first(ValueId value, bool enter) const;
  bool asks_coordinates(ValueId value, bool enter) const;
  ExprId predicate(const Bounds& bounds, std::vector<ExprId> others = {});
  std::int64_t multiple_of(ExprId limit) const { return e_.facts(limit).multiple; }

  Expander& x_;
  Builder& b_;
  const lowered::Redirects& redirects_;
  const lowered::LoopNest* nest_ = nullptr;
  layout::Layout layout_ = {};
  int vector_bits_ = 0;  // register bits that run along the last dimension: loop over e
  int vector_ = 1;
  ExprId thread_ = no_expr, group_ = no_expr, element_ = no_expr;  // t, g, e
  std::vector<ExprId> repetitions_, thread_part_;                  // per dimension
  Coordinates coordinates_;          // of the element that the loops stand at
  std::vector<ExprId> thread_mask_;  // stores only by threads where these hold
  thread::Depends loops_ = 0;        // that are open around the elements
  std::map<Key, ExprId> memo_;
  std::map<ExprId, ExprId> hoisted_;     // their names
  std::map<ValueId, ExprId> quotients_;  // at coordinates_, of rows that have been divided
  std::set<std::tuple<ExprId, ExprId, std::int64_t, ExprId>> checked_;
  std::set<StorageId> checked_stored_;
  bool beside_ = false;           // evaluating what a hint compares with
  bool whole_ = false;            // for blocks that are wholly inside
  bool has_parts_ = false;        // a bound makes accesses narrower, or tests each element
  bool has_conditions_ = false;   // some hold where blocks are whole
  bool stores_vectors_ = false;   // of which nothing but the elements is computed one by one
  ExprId fork_ = no_expr;         // two ways to the elements: this one where it holds
  bool conditions_hold_ = false;  // on the way for whole blocks
  std::map<WindowId, passes::BlockNames> whole_blocks_;
  bool storing_ = false;    // addresses are of a store
  bool surveying_ = false;  // what is expanded is only looked at: which reads share rows
  Spans spans_;
  std::map<ColumnSum, VariableId> column_sums_;
  passes::Sums sums_;
  std::optional<passes::Sums::Conditions> if_whole_;
};

/// How an address is read, wholly or in part.
Row load_function(const Address& a);
Row load_function_of_part(const Address& a);

/// Adds the tests of `padding` that `bounds` do not imply.
void add_padding(const Exprs& e, Bounds& bounds, const Bounds& padding);

}  // namespace palladium::expand
