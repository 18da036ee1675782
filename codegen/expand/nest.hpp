// The loops of one nest, and expressions of one element. Internal to codegen/expand.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/expand/expander.hpp"
#include "codegen/passes/elements.hpp"
#include "codegen/passes/turned_bytes.hpp"
#include "codegen/thread/vectorize.hpp"

namespace palladium::expand {

using passes::Coordinates;
using thread::Address;
using thread::Bound;
using thread::Bounds;

/// What stores registers there.
Row store_function(const Address& a);

class Nest : private passes::Elements {
 public:
  Nest(Expander& x, const lowered::Redirects& copies) : Elements(x.l_, x.e_), x_(x), b_(x.b_) {
    redirects_ = &copies;
  }
  Nest(Expander& x, const lowered::LoopNest& loops) : Nest(x, loops.redirects) {
    Elements::enter(loops, loops.layout);
  }

  void expand();
  /// An expression of one element outside of loops.
  ExprId scalar(ValueId v, bool enter);
  /// The one element of a storage in shared memory.
  ExprId held(StorageId storage);
  /// The values that an index map yields for a program.
  std::vector<ExprId> index_map(RegionIndex region, int rank);
  ExprId pointer_to(ValueId ref);
  /// What a text is given of a Ref.
  struct Viewed {
    thread::Inline::Operand operand;
    bool shared = false, writable = false;
    int swizzle = 0;
  };
  Viewed view_of(ValueId ref);
  Viewed view_in_panels(ValueId ref);
  std::vector<ExprId> extents_of(ValueId ref);

 private:
  // what addresses and elements are made of
  ExprId index_value(ValueId v) override { return evaluate(v, {}, {}, false); }
  ExprId let_coordinate(ExprId value) override {
    return b_.let_coordinate({.name = prefix("n"), .temporary = true, .type = i32}, value);
  }
  const passes::BlockNames& block(WindowId window) override {
    return as_nest_sees(window, x_.windows_[window]);
  }
  ExprId stride(int mapping, int d) override { return e_.variable(x_.strides_.at({mapping, d})); }
  ExprId dim(const Dim& d) override { return x_.dim(d); }
  ExprId shared_address(StorageId storage) override { return x_.shared_address(storage); }
  bool reads_apart(StorageId storage) override;
  ExprId program_id(int axis) override { return x_.program_id(axis); }
  ExprId temporary(const char* prefix, ExprId value) override;
  ExprId scalar_leaf(ValueId v) override;
  ExprId reciprocal(std::uint32_t symbol) override { return x_.reciprocals_.at(symbol); }
  ExprId held_value(StorageId storage, const DimMap& map) override;
  ExprId in_matrices(StorageId storage, const DimMap& map) override;
  ExprId access(const Address& a, const DimMap& map, ExprId mask) override;
  ExprId load(const Pending& p, ExprId mask) override;
  ExprId load_registers(const Pending& p) override;
  ExprId hinted(const Pending& p) override;
  ExprId skew_of(const Address& row) override;
  std::optional<bool> known(ValueId v) const override;
  ExprId cast_together(DType to, ExprId x) override;
  ExprId converted_halves(const HalvedBytes& bytes, DType to) override;
  ExprId converted_elements(VariableId from, DType to, std::int64_t count,
                            decltype(thread::Call::templates) templates);
  ExprId sum_of(ValueId v, std::vector<ExprId> addends) override;
  std::vector<ExprId> hoisted(std::vector<ExprId> operands) override;

  // nest.cpp: the loops, and what becomes of each element
  void name_coordinates();
  void open_repetition(int d);
  void break_at(int d, const Dim& extent, std::int64_t repetitions);
  void open_repetitions(bool reduced, bool kept);
  std::int64_t repetitions_up_to(int d, const Dim& extent) const;
  std::int64_t whole_repetitions(int d, const Dim& extent) const;
  void open_groups();
  /// Of repetitions along a dimension, that stand in the text of their loop; 0: all.
  int unrolled_by(int d) const {
    const auto at = static_cast<std::size_t>(d);
    return at < nest_->rolled.size() ? nest_->rolled[at] : 0;
  }
  void open_elements();
  void mask_replicas();
  void open_unless_one();
#define PALLADIUM_EXPAND(Kind) expand_sink(const lowered::Kind& s)
  void PALLADIUM_SINKS(PALLADIUM_EXPAND);
#undef PALLADIUM_EXPAND
  /// What the expansion of one kind has to itself: defined in the file of that kind.
  template <class Kind>
  class Expansion;
  void stage(const lowered::Fill& s);
  // copies.cpp: asynchronous copies to shared memory
  bool copies_moved(const lowered::Stage& s);
  bool copies_asynchronously(const Address& from, StorageId filled, lowered::CopyMode by,
                             ExprId mask = no_expr);
  bool copies_asynchronously(const Address& from, const Address& to, bool repeats,
                             lowered::CopyMode by, ExprId mask);
  bool copies_stored(const lowered::Store& s);
  void copy_rows_around(const lowered::Stage& s);
  void copy_around(const lowered::Stage& s, const Coordinates& c, std::int64_t left,
                   std::vector<ExprId> threads);
  bool copies_window(WindowId window, StorageId storage);
  bool copies_load(StorageId storage);
  bool copy(const Address& a, StorageId storage);
  void assign_element(StorageId storage, ExprId value);
  void assign_words(StorageId storage, ExprId value);
  void put_in_shared(StorageId storage, ExprId value);
  void store_element(const Address& a, ExprId value, ExprId mask, const Bounds& limits);
  VariableId gathered(DType type, ExprId value);
  // together.cpp: arithmetic of all elements of a vector at once
  /// Where a function of all elements finds them: one for each, or (step 0) one for all.
  struct Together {
    ExprId address = no_expr;
    std::int64_t step = 1;
  };
  VariableId combined(DType type, ExprId value);
  Together together(DType type, ExprId value, std::vector<thread::Call>& calls);
  ExprId narrowed_together(ExprId value);
  ExprId unnamed(ExprId value) const;
  std::map<ExprId, ExprId> named_;  // what names stand for
  void store_vector(const Address& a, VariableId from, ExprId mask, Bounds bounds, Row function);
  void store_one(const Address& a, VariableId from, ExprId mask, const Bounds& bounds);
  void store_parts(const Address& a, ExprId value, ExprId mask, const Bounds& limits);

  // matrices.cpp: elements that go to shared memory, or come from there, as matrices
  /// How: `four` by one access, of which two follow each other along a dimension, or two.
  struct Matrices {
    bool transposed = false, four = false;
    int along = -1;
    int of_one_access(int d) const { return four && d == along ? 2 : 1; }
  };
  StorageId stored_in_shared(const lowered::Store& s) const;
  std::optional<Matrices> matrices_of(StorageId storage) const;
  std::optional<Matrices> matrices_stored(StorageId storage) const;
  std::optional<Matrices> matrices_loaded(StorageId storage);
  void store_matrices(StorageId storage, const Matrices& m, const std::function<ExprId()>& value);
  VariableId load_all_matrices(StorageId storage, const Matrices& m);
  ExprId load_matrices_of_tile(StorageId storage, Matrices m);
  std::vector<Affine> open_stores(const Matrices& m);
  Affine first_register(const Matrices& m, const std::vector<Affine>& counted) const;
  Affine open_counted(int d, std::int64_t count);
  layout::Bits bits_of_row(const Matrices& m, int d) const;
  std::map<StorageId, VariableId> matrices_;  // all of a storage's, where they are read together
  ExprId row_of_matrix(StorageId storage, const Matrices& m, const std::vector<Affine>& counted);
  ExprId row_in_panels(StorageId storage, const Matrices& m, const std::vector<Affine>& counted);

  // updates.cpp: atomic operations
  bool adds_vectors(const lowered::Update& s, const Address& a, const Bounds& bounds, ExprId mask);
  ExprId update_element(const lowered::Update& s, Address a, ExprId value, ExprId expected,
                        ExprId test);

  // turned.cpp: bytes that are transposed
  bool is_tf32(ValueId v) const;
  void turn_bytes(const passes::TurnedBytes& t);

  // quotients.cpp: rows that are divided by one number
  void open_to_groups();
  void open(const Counting& loop);
  void divide_row(ValueId division, std::span<const Counting> row);
  ExprId dividends(ValueId v, const Affine& at, std::int64_t count, std::span<const Counting> row,
                   VariableId q);
  void forget(thread::Depends changing);
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
  ExprId folded_elements(const lowered::Reduce& s);
  ExprId folded(const Folding& f, ExprId into, ExprId value);
  void fold_elements(const lowered::Reduce& s, const Folding& f);
  void fold_threads(const lowered::Reduce& s, const Folding& f);
  void keep_result(const lowered::Reduce& s, const Folding& f);
  void sync_scratch();
  void keep_result_in_shared(const lowered::Reduce& s, const Folding& f);
  ExprId converted(ExprId x, DType to);
  ExprId identity(thread::Fold how, DType type);

  // addends.cpp: sums of integers
  struct Taps;
  /// Conditions under which addends are 1 where they else are 0.
  struct Counts {
    std::set<std::vector<ExprId>> all = {};  // of each at most two
    std::set<ExprId> sides[2] = {};
    bool alone[2] = {};  // whether the other side's conditions also count alone
    bool split();
  };
  Taps taps(const std::vector<ExprId>& addends, const std::vector<int>& places) const;
  void share_columns(ValueId sum, std::vector<ExprId>& addends);
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
  ExprId multiple(const graph::Inst& i, ExprId x);
  void check_hint(const Pending& p, std::size_t d);

  // values.cpp: what values are called, and what has no operands
  std::string prefix(const char* of) const { return nest_ ? of : std::string("s") + of; }

  // checks.cpp: indices that may leave their Ref
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
  thread::Statement vector_access(Vector v);
  void read_first_again(Vector& v);
  thread::Place place_of(const Address& a);
  ExprId span_access(const Address& a, const DimMap& map, ExprId mask, const thread::Span& span);
  void read_span(thread::Access access, Address from, VariableId array, std::int64_t count,
                 thread::Depends depends);
  ExprId joined_access(const Address& a, const DimMap& map, ExprId mask);
  ExprId joined_filled(const Address& a, const DimMap& map, ExprId mask);
  void fill_outside(thread::Access& access, ExprId outside);
  ExprId filled(const Address& a, ExprId value);
  Vector load_of(const Address& a, const DimMap& map, VariableId array, const Affine& first) const;
  thread::Depends near(thread::Depends depends, DType type);
  VariableId unfilled(const char* of, DType type, std::int64_t count);
  std::vector<ExprId> reading_threads(const Address& a) const;

  // staged.cpp: rows of staged windows, which several reads share
  /// The row that an access reads, and which of its spans.
  std::pair<std::size_t, std::size_t> span_of(const Address& a);
  bool shares_row(const Address& a, const DimMap& map, ExprId mask);
  ExprId row_access(const Address& a, const DimMap& map);
  void load_span(const lowered::RowSpan& span, VariableId array, const Address& a,
                 const DimMap& map);

  // whole.cpp: elements that are computed in two ways
  void store_two_ways(const lowered::Store& s);

  Expander& x_;
  Builder& b_;
  std::optional<std::set<StorageId>> written_;
  ExprId thread_ = no_expr;           // t
  std::vector<ExprId> thread_part_;   // per dimension
  std::vector<ExprId> thread_mask_;   // stores only by threads where these hold
  thread::Depends loops_ = 0;         // that are open around the elements
  int loops_around_ = 0;              // around the nest
  std::int64_t held_in_front_ = 0;    // registers of what is loaded in front of run-time loops
  std::map<ExprId, ExprId> hoisted_;  // their names
  std::set<std::tuple<ExprId, ExprId, std::int64_t, ExprId>> checked_;
  std::set<StorageId> checked_stored_;
  bool beside_ = false;    // evaluating what a hint compares with
  ExprId fork_ = no_expr;  // two ways to the elements: this one where it holds
  std::map<std::pair<ExprId, ExprId>, std::size_t> row_numbers_;  // by base and offset
  std::vector<std::vector<VariableId>> row_arrays_;               // by number, of each span
  std::map<ColumnSum, VariableId> column_sums_;
  std::set<VariableId> spans_;  // arrays with elements of a vector among others
};

/// How an address is read, wholly or in part.
Row load_function(const Address& a);
Row load_function_of_part(const Address& a);

}  // namespace palladium::expand
