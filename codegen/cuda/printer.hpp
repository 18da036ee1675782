// Spells a lowered graph as CUDA C++; decides nothing but names and the grouping of accesses into
// vectors.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/affine.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/writer.hpp"
#include "codegen/passes/lowered.hpp"

namespace palladium::cuda {

using graph::Extents;
using graph::ValueId;
using passes::DimMap;

using Coordinates = std::vector<Affine>;

/// "coordinate < limit" or "coordinate >= limit".
struct Bound {
  Affine coordinate;
  std::string limit;
  std::int64_t multiple = 1;  // of the limit
  bool lower = false;
  std::int64_t most = INT64_MAX;  // the limit never is larger
  bool along_element = false;     // the coordinate moves with e
};

/// Where elements of a view stand: base + offset (in elements), valid under the bounds.
struct Address {
  std::string base = {};       // a pointer, or for shared memory a u32 address
  Affine offset = {};          // in elements
  bool wide = false;           // offset needs 64 bits
  std::int64_t alignment = 1;  // of base, in elements
  std::vector<Bound> bounds = {};
  bool shared = false;
  bool resident = false;   // shared, and what the user's stores put there
  bool read_only = false;  // nobody writes it while the kernel runs
  bool writable = false;
  DType dtype = {};
  std::int64_t reach = 0;           // elements that the offset spans, if known
  std::vector<Address> parts = {};  // low bits first, where the element is not in one piece

  /// The same place as an element of another dtype of the same size.
  void see_as(DType t);
};

/// A pass with all that its kinds of sink name, as the nest asks for it.
struct FlatPass : passes::Pass {
  FlatPass(const passes::Lowered& l, const passes::Pass& pass);

  enum class Kind : std::uint8_t { assign, shared, store, reduce } kind = Kind::assign;
  ValueId inst = graph::no_value;
  int storage = -1, window = -1, source = -1, scratch = -1;
  std::vector<int> reduced = {};
};

class Printer {
 public:
  explicit Printer(const passes::Lowered& l) : l_(l), g_(l.graph) {}
  Emitted print();

 private:
  friend class Nest;

  // printer.cpp: the kernel's frame and its statements
  void name_parameters(Emitted& e);
  std::string signature(const Emitted& e) const;
  void find_mutable_storages();
  void find_unstored();
  void print_program_ids();
  void print_storages();
  void print_list(const passes::Statements& list);
  void print_statement(const passes::Statement& s);
  void print_one(const passes::Pass& p);
  void print_one(const passes::Dot& d);
  void print_one(const passes::Relayout& r);
  void print_one(const passes::Sync&);
  void print_one(const passes::Scalar& s);
  void print_one(const passes::CopyStorage& a);
  void print_one(const passes::When& w);
  void print_one(const passes::Loop& l);
  void print_one(const passes::GridLoop& loop);
  void print_one(const passes::EnterWindow& w);
  void print_scalar(const passes::Scalar& s);
  std::string scalar(ValueId v);
  std::string advance(const std::string& counter, std::int64_t step, ValueId hi) const;
  void print_window(int window);
  void print_sync();
  void print_scratch_sync();
  void print_stored(int storage);
  std::string stored_name(int storage) const { return storage_name(storage) + "_stored"; }
  std::string stored_check(int storage) const;
  void check_accumulator(const passes::Dot& d);

  // moves.cpp
  void print_dot(const passes::Dot& d);
  void print_relayout(const passes::Relayout& r);
  void print_rename(const passes::Relayout& r);
  void print_shuffles(const passes::Relayout& r);
  void print_shared_moves(const passes::Relayout& r);
  void print_memory_move(const passes::Relayout& r);

  // names
  std::string storage_name(int storage) const;
  std::string shared_address(int storage) const;
  std::string program_id(int axis) const { return "p" + std::to_string(axis); }
  std::string grid_size(int axis) const;
  std::string window_name(int window) const { return "w" + std::to_string(window); }

  const passes::Lowered& l_;
  const graph::Graph& g_;
  Writer w_;
  std::vector<std::string> arrays_;             // per block mapping: parameter
  std::map<std::uint32_t, std::string> names_;  // scalar parameters of regions
  int temporaries_ = 0;                         // of scalar expressions
  bool synced_ = true;                          // nothing was written since the last barrier
  int loops_ = 0;                               // around the statement
  std::set<int> declared_;                      // storages whose variable stands in the text
  std::set<int> mutable_;                       // storages that are assigned more than once
  // Windows in registers, by storage, of which nothing is known before the user stores it.
  std::map<int, int> unstored_;
};

/// The part of each image that lies in dimension d.
layout::Bits fields_of(const layout::Layout& l, const layout::Bits& images, int d);

/// Adds the tests of `padding` that `bounds` do not imply.
void add_padding(std::vector<Bound>& bounds, const std::vector<Bound>& padding);

/// Of coordinates and what is computed of them.
inline constexpr const char* index_type = "const i32";

/// Reads of one evaluation, and where its lines go.
class Nest {
 public:
  Nest(Printer& p, const passes::Copies& copies) : p_(p), l_(p.l_), g_(p.g_), copies_(copies) {}

  void print(const passes::Pass& pass);
  /// An expression of one element outside of loops.
  std::string scalar(ValueId v, bool enter);
  /// The values that an index map yields for a program.
  std::vector<std::string> index_map(RegionIndex region, int rank);

 private:
  // nest.cpp: the loops
  void set_layout(const layout::Layout& layout);
  std::vector<std::pair<std::string, std::string>> find_coordinates();
  void open_repetitions(bool reduced, bool kept);
  void open_groups();
  void close_loops(int down_to = 0);
  void print_assign();
  bool print_copy(const std::string& to);
  void print_store();
  void print_shared();
  void print_reduce();
  void finish_reduction(const std::string& fold, bool one);
  void print_result(std::int64_t registers);
  void print_shared_result(std::int64_t registers);
  void store_element(const Address& a, const std::string& text, const std::string& mask,
                     const std::vector<Bound>& limits);
  void store_one(const Address& a, const std::string& from, const std::string& mask,
                 const std::vector<Bound>& bounds);
  void store_parts(const Address& a, const std::string& text, const std::string& mask,
                   const std::vector<Bound>& limits);
  std::string value(bool enter);
  void open_elements();
  bool is_reduced(int d) const;
  Affine repetition(int d) const;
  Affine tested_coordinate(const Bound& b) const;
  std::string predicate(const std::vector<Bound>& bounds, const std::string& mask) const;
  std::vector<Bound> padding(const DimMap& map) const;
  Affine register_index(const layout::Layout& leaf, const DimMap& map) const;
  std::string group_in_registers(int storage) const;
  Affine low_register_index(const DimMap& map, int& bits) const;
  int widest_access() const;
  bool enters() const;
  void flush();
  void print_flush_of_shared();
  void before(std::string text) { before_.push_back({std::move(text), reading_}); }
  void inside(std::string text) { inside_.push_back({std::move(text), reading_}); }

  // evaluate.cpp: expressions
  std::string evaluate(ValueId v, const Coordinates& c, const DimMap& map, bool enter);
  /// A value that waits for its operands.
  struct Pending {
    ValueId v = graph::no_value;
    Coordinates c = {};
    DimMap map = {};
    bool enter = false;
    std::string key = {};                    // in memo_
    std::vector<std::string> operands = {};  // those evaluated so far
    std::string got = {};                    // of a load with a mask: what memory holds
  };
  bool next_operand(Pending& p, Pending& operand, std::string& text);
  bool next_of_load(Pending& p, Pending& operand, std::string& text);
  std::string leaf(ValueId v, const Coordinates& c);
  std::string coordinate_value(const Affine& c, DType t) const;
  std::string load_registers(ValueId v, const Coordinates& c, const DimMap& map);
  std::string read(int storage, const Coordinates& c, const DimMap& map);
  std::string access(const Address& a, const DimMap& map, const std::string& mask);
  std::vector<Bound> bounds_of(const Address& a, const DimMap& map) const;
  bool is_vector(const Address& a, const DimMap& map) const;
  std::string reading_threads(const Address& a) const;
  static std::string load_function(const Address& a);
  std::string load_vector(const Address& a, const DimMap& map, const std::string& to) const;
  Coordinates operand_coordinates(ValueId v, std::size_t arg, const Coordinates& c);
  Coordinates reshape_coordinates(const Extents& from, const Extents& to, const Coordinates& c);
  Affine flat(const Extents& shape, const Coordinates& c) const;
  std::string joined_access(const Address& a, const DimMap& map, const std::string& mask);
  bool is_of_element(const Affine& a) const;
  bool varies_within_group(const std::string& text) const;
  std::string declare_index(const std::string& text, bool per_element);
  Affine divided(const Affine& a, std::int64_t by);
  Address address(ValueId ref, const Coordinates& c);
  Address part_address(ValueId ref, Coordinates c, Affine k, DType t);
  void step_into(ValueId ref, Coordinates& c, Affine& k, DType t);
  Address window_address(int window, const Coordinates& c) const;
  void add_bounds_of_window(Address& a, int window, const Coordinates& c) const;
  bool is_zero(RegionIndex region, int d) const;
  static std::int64_t a_multiple(const BlockMapping& m, int bytes);
  void add_window_bounds(Address& a, const std::string& name, const BlockMapping& m, int d,
                         const Affine& at) const;
  Address storage_address(int storage, const Coordinates& c) const;
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
  void check_indices(ValueId access, const Coordinates& c, const DimMap& map,
                     const std::string& mask);
  void print_check(const std::string& text);
  /// How an access goes along e: `width` elements at once; `part`: the bounds along e may end it
  /// between them.
  struct Width {
    int width = 1;
    bool part = false;
  };
  Width vector_width(const Address& a, const std::vector<Bound>& bounds) const;
  std::string vector_access(const std::string& function, Address a, const std::string& array,
                            bool store, std::vector<Bound> bounds, const std::string& extra,
                            const Address* from = nullptr) const;
  void store_vector(const Address& a, const std::string& values, std::vector<Bound> bounds);
  std::string place(const Address& a) const;
  std::string temporary(const std::string& prefix);
  std::string named(const Pending& p, const std::string& text);

  Printer& p_;
  const passes::Lowered& l_;
  const graph::Graph& g_;
  const passes::Copies& copies_;
  const FlatPass* pass_ = nullptr;
  layout::Layout layout_;
  int vector_bits_ = 0;  // register bits that run along the last dimension: loop over e
  int vector_ = 1;
  Coordinates coordinates_;  // of the element that the loops stand at
  std::string thread_mask_;  // stores only by threads where this holds
  int open_ = 0;             // loops
  bool groups_ = false;      // more than one group of `vector_` registers per repetition
  std::map<std::string, std::string> memo_;
  struct Line {
    std::string text;
    Location at;
  };
  std::vector<Line> before_;               // of a group of elements: vector loads
  std::vector<Line> inside_;               // of one element
  std::vector<Line> checks_;               // of the whole pass
  std::set<std::string> temporary_names_;  // of the pass
  Location reading_;                       // the user's line of the load that is being printed
  bool storing_ = false;                   // addresses are of a store
  std::vector<Index>* found_indices_ = nullptr;  // where addresses put them, if anywhere
  std::set<std::string> element_names_;          // declared by lines of one element
  std::vector<std::string> indices_;             // declared in the pass
  int temporaries_ = 0;
};

}  // namespace palladium::cuda
