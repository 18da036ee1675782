// Expressions of one element of a nest in the program of a thread: inlined operations, reads of
// storages and of memory.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "codegen/passes/addresses.hpp"
#include "codegen/passes/signs.hpp"
#include "codegen/passes/sums.hpp"

namespace palladium::passes {

/// Those who decide about a nest and those who spell it evaluate alike, so that the ones see what
/// the others will make; they differ in what a read, or a name, is.
class Elements : protected Addresses {
 protected:
  using ExprId = thread::ExprId;
  using Affine = thread::Affine;
  using Bounds = thread::Bounds;
  using Address = thread::Address;

  Elements(const Program& l, thread::Exprs& e);

  /// A value that waits for its operands.
  struct Pending {
    ValueId v = graph::no_value;
    Coordinates c = {};
    DimMap map = {};
    bool enter = false;                 // computed, whatever holds it
    bool partial = false;               // the coordinates may lie outside of it
    std::vector<ValueId> addends = {};  // of a sum: its operands
    std::vector<ExprId> operands = {};  // those evaluated so far
    ExprId got = thread::no_expr;       // of a load with a mask: what memory holds
  };

  // ---- what differs

  virtual ExprId program_id(int axis) = 0;
  /// A name for the value; `prefix`: what the name begins with.
  virtual ExprId temporary(const char* prefix, ExprId value) = 0;
  /// What has no operands to evaluate, neither a constant nor a coordinate.
  virtual ExprId scalar_leaf(ValueId v) = 0;
  /// Of the symbol's value in f32; no_expr: nobody has it.
  virtual ExprId reciprocal(std::uint32_t) { return thread::no_expr; }
  /// What a storage holds that is not in shared memory.
  virtual ExprId held_value(StorageId storage, const DimMap& map) = 0;
  /// An element of a storage in shared memory that the nest has as matrices; no_expr: it has none.
  virtual ExprId in_matrices(StorageId, const DimMap&) { return thread::no_expr; }
  /// The element at `a`; with it the others of its vector where they stand together.
  virtual ExprId access(const Address& a, const DimMap& map, ExprId mask) = 0;
  /// A load of an element, when its mask is known.
  virtual ExprId load(const Pending& p, ExprId mask);
  virtual ExprId load_registers(const Pending& p);
  virtual ExprId hinted(const Pending& p) = 0;
  /// Of a value of bools what is known of all its elements, if anything is.
  virtual std::optional<bool> known(ValueId) const { return {}; }
  /// A conversion that is made of a whole vector at once; no_expr: of each element by itself.
  virtual ExprId cast_together(DType, ExprId) { return thread::no_expr; }
  /// The same of numbers of 4 bits, which are inlined, and of their conversion: of elements that
  /// the value has.
  ExprId halves_together(ValueId v, const Coordinates& c, DType to);
  /// Bytes that lie together, of whose halves a vector consists.
  struct HalvedBytes {
    ValueId of = graph::no_value;  // what has them
    Coordinates first = {};        // of the first one, in it
    Address at = {};               // of the byte with the number `byte`
    ExprId byte = thread::no_expr;
    int count = 0;
    bool is_signed = false;
  };
  virtual ExprId converted_halves(const HalvedBytes& bytes, DType to) = 0;
  /// Where the block is whole they would be read together.
  virtual void note_end_in_halves() {}
  /// A sum of integers that may be regrouped.
  virtual ExprId sum_of(ValueId v, std::vector<ExprId> addends) = 0;
  /// Names for what is the same in all iterations of a loop in which others of the operands are
  /// not.
  virtual std::vector<ExprId> hoisted(std::vector<ExprId> operands) { return operands; }

  // ---- the loops

  /// Its counters and coordinates are made behind that.
  void enter(const LoopNest& p, const layout::Layout& layout);
  bool is_reduced(int d) const;
  Affine repetition(int d) const;
  Affine low_register_index(const DimMap& map, int& bits) const;
  Affine register_index(const layout::Layout& leaf, const DimMap& map) const;
  bool enters(StorageId storage) const { return lowered::enters(l_, *nest_, storage); }
  DimMap all_dimensions() const { return identity_map(layout_.rank()); }

  // ---- values

  using Key = std::vector<std::uint32_t>;
  Key key_of(std::uint32_t what, const Coordinates& c);
  ExprId evaluate(ValueId v, const Coordinates& c, const DimMap& map, bool enter);
  ExprId operation(const graph::Inst& i, const Coordinates& c, std::vector<ExprId> operands);
  Holding holding(const graph::Inst& i, const Coordinates& c);
  /// A name for what is used more than once, or holds many operations.
  ExprId named(ValueId v, ExprId value);
  ExprId coordinate_value(const Affine& c, DType t);
  Coordinates operand_coordinates(ValueId v, std::size_t arg, const Coordinates& c);
  /// The register that holds the value at coordinates_; no_expr if it has to be computed.
  ExprId in_registers(ValueId v);
  Affine chosen_index(ValueId v, const Coordinates& c, const DimMap& map) override;

  // ---- reads

  /// Where the nest reads the storage from.
  StorageId copy_of(StorageId storage, const DimMap& map) const;
  /// Of a row of skewed storage, by where it stands in global memory.
  virtual ExprId skew_of(const Address& row) = 0;
  ExprId read(StorageId storage, const Coordinates& c, const DimMap& map, bool partial = false);
  Address store_address(ValueId ref);
  bool is_storing() const override { return storing_; }

  // ---- tests

  /// Tests of the nest's coordinates against the shape, where registers or threads hold padding.
  Bounds padding(const DimMap& map) const;
  /// What an access is subject to: its bounds and those of the padding.
  Bounds bounds_of(const Address& a, const DimMap& map) const;
  Affine first_of_repetition(int d) const;
  /// The extents that loops over repetitions of the dimension end at.
  std::vector<Dim> ends_along(int d) const;
  /// Whether a condition holds of the element at `c` since loops end where it does not.
  bool holds_before_end(ValueId v, const Coordinates& c);
  bool is_before_end(const Affine& x, const Dim& extent) const override;
  /// Whether the element is inside all bounds, and the others hold; no_expr: always.
  ExprId predicate(const Bounds& bounds, std::vector<ExprId> others = {});
  thread::Depends depends(const Address& a, const Bounds& bounds) const;
  /// Whether the elements of a vector are accessed together.
  bool is_vector(const Address& a, const DimMap& map) const;
  /// Where those of a vector are among others that are read with them, in or out of bounds all of
  /// them; none where they are not, or are read as they come.
  std::optional<thread::Span> span_around(const Address& a, const DimMap& map, ExprId mask);
  /// Whether all elements of a vector are stored, or none, where one address says.
  bool is_together(const Address& a, const Bounds& bounds, ExprId mask) const;
  thread::Width vector_width(const Address& a, const Bounds& bounds) const {
    return thread::width_of(e_, a, bounds, element_, vector_);
  }
  void add_range(Bounds& bounds, const Coordinates& c, const Extents& shape);

  // ---- blocks

  /// What is known of a block, where those of the nest are whole: no bounds.
  const BlockNames& as_nest_sees(WindowId window, const BlockNames& names);
  /// Tests of the coordinates against the value, and against the storage that it fills.
  std::pair<Bounds, Bounds> limits() const;

  // ---- whole vectors

  /// Whether views between `ref` and its root keep what is next to each other along a dimension.
  /// Index arrays do not.
  bool is_plain(ValueId ref) const;
  /// Whether the nest, which fills the storage, does nothing but read memory for it.
  bool loads_memory(StorageId storage) const;
  /// Whether what stands at `a` goes to the registers of the storage a vector at a time.
  bool fills_vectors(const Address& a, StorageId storage) const;
  /// The register of what a Store takes from there as it is; no_expr: it is computed.
  ExprId held_vector(const Store& s);

  /// The end of a row behind some vectors of each thread, and before others: where these read the
  /// thread's first one again, at `first` instead of `step` * `iteration` behind it, they need no
  /// more than the `others` of their bounds.
  struct RowEnd {
    Affine first = {};
    ExprId iteration = thread::no_expr, inside = thread::no_expr;
    std::int64_t step = 0;
    Bounds others = {};
  };
  /// No step where the row has no such end.
  RowEnd row_end(const Address& a, const Bounds& bounds);
  bool has_later_vectors() const;

  // ---- rows that are divided

  /// A loop around the elements of a vector.
  struct Counting {
    int over = over_groups;  // or the dimension of repetitions
    ExprId counter = thread::no_expr;
    std::int64_t count = 1;
  };
  /// Around what the nest divides: from the outermost to the innermost, of which row_loops run
  /// along the rows.
  std::vector<Counting> countings() const;
  /// Where the element stands in its row, and how many a row has.
  std::pair<Affine, std::int64_t> place_in_row(std::span<const Counting> row) const;
  std::int64_t groups() const {
    return std::int64_t{1} << (layout_.reg.size() - static_cast<std::size_t>(vector_bits_));
  }

  // ---- rows of staged windows

  /// Whether the access may read its row by accesses around what it wants.
  bool reads_row(const Address& a, const DimMap& map, ExprId mask);
  /// What it wants then, from where all reads of the row begin.
  RowSpan wanted_of(const Address& a) const;
  Affine row_of(const Address& a) const;

  const LoopNest* nest_ = nullptr;
  const Redirects* redirects_ = nullptr;
  layout::Layout layout_ = {};
  int vector_bits_ = 0;  // register bits that run along the last dimension: loop over e
  int vector_ = 1;
  ExprId group_ = thread::no_expr, element_ = thread::no_expr;
  std::vector<ExprId> repetitions_;  // per dimension
  Coordinates coordinates_;          // of the element that the loops stand at
  std::map<Key, ExprId> memo_;
  std::map<ValueId, ExprId> quotients_;  // at coordinates_, of rows that have been divided
  bool conditions_hold_ = false;         // those that hold in whole blocks
  bool has_conditions_ = false;          // there were some that do not hold elsewhere
  Sums sums_;

 private:
  bool next_operand(Pending& p, Pending& operand, ExprId& value);
  bool next_of_load(Pending& p, Pending& operand, ExprId& value);
  bool next_of_move(Pending& p, Pending& operand, ExprId& value);
  bool next_of_concatenation(Pending& p, Pending& operand, ExprId& value);
  bool next_of_update(Pending& p, Pending& operand, ExprId& value);
  Affine clamped(ExprId x, std::int64_t most);
  Coordinates begin_of_part(std::span<const ExprId> starts, const Extents& whole,
                            const Extents& part);
  std::vector<ValueId> addends_of(ValueId v) const;
  std::optional<HalvedBytes> halved_bytes(ValueId v, const Coordinates& c);
  bool is_read_directly(ValueId load) const;
  ExprId leaf(ValueId v, const Coordinates& c);
  ExprId folded(const graph::Inst& i, const std::vector<ExprId>& operands);
  ExprId compared_first(graph::Op op, const std::vector<ExprId>& operands);
  bool holds_if_whole(ValueId v, const Coordinates& c);
  bool ends_loop(const NestEnd& end) const;
  bool ends_vectors(const NestEnd& end) const;
  bool is_before_end_of_block(int d, std::int64_t size) const;
  Affine tested_coordinate(const thread::Bound& b) const;

  /// A function by the instructions that come near it, of what is rounded to 16 bits before anybody
  /// sees it; no_expr: it has none.
  ExprId near_operation(const graph::Inst& i, ExprId operand);

  bool storing_ = false;       // addresses are of a store
  std::vector<bool> rounded_;  // by value, once asked
  std::optional<Sums::Conditions> if_whole_;
  std::map<WindowId, BlockNames> whole_blocks_;
};

/// What has to hold of a block to be whole, that is not known to: each of these expressions is that
/// number.
std::vector<std::pair<thread::ExprId, std::int64_t>> tests_of_whole(const Program& l,
                                                                    const thread::Exprs& e,
                                                                    WindowId window,
                                                                    const BlockNames& names);

/// The windows that the nest accesses where its blocks may be wholly inside; none of a nest that is
/// part of a product or of a fold.
std::vector<WindowId> accessed_windows(const Program& l, const LoopNest& p);

/// What the text of the nest has for a thread: loops that stay loops counted once.
std::int64_t elements_in_text(const LoopNest& p);

/// Adds the tests of `padding` that `bounds` do not imply.
void add_padding(const thread::Exprs& e, thread::Bounds& bounds, const thread::Bounds& padding);

/// Operations that one expression of the text may hold.
inline constexpr int most_operations = 12;

}  // namespace palladium::passes
