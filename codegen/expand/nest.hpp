// The loop nest of one pass, and expressions of one element. Internal to codegen/expand.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/expand/expander.hpp"
#include "codegen/thread/vectorize.hpp"

namespace palladium::expand {

using Coordinates = std::vector<Affine>;
using thread::Address;
using thread::Bound;
using thread::Bounds;

class Nest {
 public:
  Nest(Expander& x, const passes::Copies& copies)
      : x_(x), l_(x.l_), g_(x.g_), e_(x.e_), b_(x.b_), copies_(copies) {}
  Nest(Expander& x, const passes::Pass& pass) : Nest(x, pass.copies) { pass_ = &pass; }

  void expand();
  /// An expression of one element outside of loops.
  ExprId scalar(ValueId v, bool enter);
  /// The values that an index map yields for a program.
  std::vector<ExprId> index_map(RegionIndex region, int rank);

 private:
  // nest.cpp: the loops, and what becomes of each element
  void set_layout();
  int widest_access() const;
  void name_coordinates();
  void open_repetitions(bool reduced, bool kept);
  void open_groups();
  void open_elements();
  bool is_reduced(int d) const;
  Affine repetition(int d) const;
  Affine low_register_index(const DimMap& map, int& bits) const;
  Affine register_index(const layout::Layout& leaf, const DimMap& map) const;
  Bounds padding(const DimMap& map) const;
  bool enters(int storage) const;
  void mask_replicas();
  void expand_sink(const passes::Assign& s);
  void expand_sink(const passes::Stage& s);
  void expand_sink(const passes::Store& s);
  void expand_sink(const passes::Reduce& s);
  void expand_sink(const passes::Fill& s);
  void expand_sink(const passes::Flush& s);
  void expand_sink(const passes::Spill& s);
  void declare_sink();
  bool copies_window(int window, int storage);
  bool copies_load(int storage);
  bool copy(const Address& a, int storage);
  void assign_element(int storage, ExprId value);
  void put_in_shared(int storage, ExprId value);
  void store_element(const Address& a, ExprId value, ExprId mask, const Bounds& limits);
  void store_one(const Address& a, VariableId from, ExprId mask, const Bounds& bounds);
  void store_parts(const Address& a, ExprId value, ExprId mask, const Bounds& limits);

  // reduce.cpp
  struct Folding {
    graph::Op op{};
    DType type = {};  // of the accumulator
    ExprId identity = no_expr;
    thread::Fold how{};
    layout::Layout result = {};
    VariableId acc = thread::no_variable;
    std::int64_t registers = 1;
    bool one = false;  // acc is no array
    ExprId accumulator(Exprs& e, ExprId at) const;
  };
  Folding folding(const passes::Reduce& s);
  void start_folding(Folding& f);
  void fold_elements(const passes::Reduce& s, const Folding& f);
  void fold_threads(const passes::Reduce& s, const Folding& f);
  void keep_result(const passes::Reduce& s, const Folding& f);
  void keep_result_in_shared(const passes::Reduce& s, const Folding& f);
  ExprId converted(ExprId x, DType to);

  // elements.cpp: expressions
  struct Pending {  // a value that waits for its operands
    ValueId v = graph::no_value;
    Coordinates c = {};
    DimMap map = {};
    bool enter = false;
    std::vector<ExprId> operands = {};  // those evaluated so far
    ExprId got = no_expr;               // of a load with a mask: what memory holds
  };
  using Key = std::vector<std::uint32_t>;
  Key key_of(std::uint32_t what, const Coordinates& c);
  ExprId evaluate(ValueId v, const Coordinates& c, const DimMap& map, bool enter);
  bool next_operand(Pending& p, Pending& operand, ExprId& value);
  bool next_of_load(Pending& p, Pending& operand, ExprId& value);
  ExprId leaf(ValueId v, const Coordinates& c);
  ExprId named(ValueId v, ExprId value);
  std::vector<ExprId> hoisted(std::vector<ExprId> operands);
  ExprId coordinate_value(const Affine& c, DType t);
  ExprId load_registers(ValueId v, const Coordinates& c, const DimMap& map);
  ExprId read(int storage, const Coordinates& c, const DimMap& map);
  ExprId temporary(const char* prefix, ExprId value);
  std::string prefix(const char* of) const { return pass_ ? of : std::string("s") + of; }
  Affine index_name(ExprId value);
  Affine flat(const Extents& shape, const Coordinates& c) const;
  Coordinates operand_coordinates(ValueId v, std::size_t arg, const Coordinates& c);
  Coordinates reshape_coordinates(const Extents& from, const Extents& to, const Coordinates& c);

  // addresses.cpp: where the elements of a view stand
  Address address(ValueId ref, const Coordinates& c);
  Address part_address(ValueId ref, Coordinates c, Affine k, DType t);
  void step_into(ValueId ref, Coordinates& c, Affine& k, DType t);
  Address window_address(int window, const Coordinates& c);
  Address storage_address(int storage, const Coordinates& c);
  void add_bounds_of_window(Bounds& bounds, int window, const Coordinates& c) const;
  bool join(const std::vector<Address>& parts, DType whole, Address& result);
  void see_as(Address& a, DType t);
  Affine divided(const Affine& a, std::int64_t by);
  /// A dynamic index: `coordinate` must lie in [0, extent) of a dimension of a view's source.
  struct Index {
    ValueId at = graph::no_value;
    int dimension = 0;
    Affine coordinate = {};
    std::int64_t extent = 0;
  };
  bool is_plain(ValueId ref) const;
  bool has_dynamic_index(ValueId ref) const;
  std::vector<Index> find_indices(ValueId ref, const Coordinates& c);
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
    Address from = {};  // flush
  };
  thread::Width vector_width(const Address& a, const Bounds& bounds) const {
    return thread::width_of(e_, a, bounds, element_, vector_);
  }
  thread::Statement vector_access(Vector v);
  thread::Place place_of(const Address& a);
  ExprId access(const Address& a, const DimMap& map, ExprId mask);
  ExprId joined_access(const Address& a, const DimMap& map, ExprId mask);
  Vector load_of(const Address& a, const DimMap& map, VariableId array, const Affine& first) const;
  VariableId unfilled(const char* of, DType type, std::int64_t count);
  Bounds bounds_of(const Address& a, const DimMap& map) const;
  bool is_vector(const Address& a, const DimMap& map) const;
  thread::Depends depends(const Address& a, const Bounds& bounds) const;
  std::vector<ExprId> reading_threads(const Address& a) const;
  Affine tested_coordinate(const Bound& b) const;
  ExprId predicate(const Bounds& bounds, std::vector<ExprId> others = {});
  std::int64_t multiple_of(ExprId limit) const { return e_.facts(limit).multiple; }

  Expander& x_;
  const passes::Lowered& l_;
  const graph::Graph& g_;
  Exprs& e_;
  Builder& b_;
  const passes::Copies& copies_;
  const passes::Pass* pass_ = nullptr;
  layout::Layout layout_ = {};
  int vector_bits_ = 0;  // register bits that run along the last dimension: loop over e
  int vector_ = 1;
  ExprId thread_ = no_expr, group_ = no_expr, element_ = no_expr;  // t, g, e
  std::vector<ExprId> repetitions_, thread_part_;                  // per dimension
  Coordinates coordinates_;          // of the element that the loops stand at
  std::vector<ExprId> thread_mask_;  // stores only by threads where these hold
  thread::Depends loops_ = 0;        // that are open around the elements
  std::map<Key, ExprId> memo_;
  std::map<ExprId, ExprId> index_names_;
  std::set<std::tuple<ExprId, ExprId, std::int64_t, ExprId>> checked_;
  std::set<int> checked_stored_;
  bool storing_ = false;                         // addresses are of a store
  std::vector<Index>* found_indices_ = nullptr;  // where addresses put them, if anywhere
};

DType unsigned_of(int bytes);

/// How an address is read, wholly or in part.
Row load_function(const Address& a);
Row load_function_of_part(const Address& a);

/// Adds the tests of `padding` that `bounds` do not imply.
void add_padding(const Exprs& e, Bounds& bounds, const Bounds& padding);

}  // namespace palladium::expand
