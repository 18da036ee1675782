// Where the elements of views stand in memory: the walk from a view to its root.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "codegen/passes/coordinates.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/thread/vectorize.hpp"

namespace palladium::passes {

/// What is known of the block that a window of global memory shows.
struct BlockNames {
  thread::ExprId pointer = thread::no_expr;  // to its first element, or to that of the array
  thread::ExprId first = thread::no_expr;    // then from there to the block's, i32
  std::vector<thread::ExprId> size, from;    // per dimension of the array; no_expr: no bound there
  std::vector<thread::ExprId> start = {};    // per dimension: of its first element
  std::vector<std::int64_t> multiple;        // per dimension: of where blocks begin; 0: all at 0
};

/// Those who weigh a layout and those who make a program walk alike; they differ in what they know
/// of windows, indices and names.
class Addresses {
 public:
  Addresses(const Program& l, thread::Exprs& e) : l_(l), g_(l.graph), e_(e) {}
  virtual ~Addresses() = default;

  /// Of the element at `c` of a view, whose coordinates follow from those of the nest by `map`.
  thread::Address address(ValueId ref, const Coordinates& c, const DimMap& map);

 protected:
  /// A scalar, which a dynamic index is.
  virtual thread::ExprId index_value(ValueId v) = 0;
  /// The element at `c` of an index array.
  virtual thread::Affine chosen_index(ValueId v, const Coordinates& c, const DimMap& map) = 0;
  /// A variable that holds the value, computed of coordinates.
  virtual thread::ExprId let_coordinate(thread::ExprId value) = 0;
  virtual const BlockNames& block(WindowId window) = 0;
  /// Of an array that is not dense, in elements, i64.
  virtual thread::ExprId stride(int mapping, int d) = 0;
  /// Over the kernel's symbols, i64.
  virtual thread::ExprId dim(const Dim& d) = 0;
  virtual thread::ExprId shared_address(StorageId storage) = 0;
  /// Whether the nest writes elsewhere, as far as is known.
  virtual bool reads_apart(StorageId) { return false; }
  /// Whether the loops around the element end in front of coordinates that are not less.
  virtual bool is_before_end(const thread::Affine&, const Dim&) const { return false; }
  /// Bounds of the block matter to nobody where this is a store to a resident window.
  virtual bool is_storing() const { return false; }

  /// An index that may leave its Ref: `coordinate` must lie in [0, extent) of a dimension of a
  /// view's source.
  struct Index {
    ValueId at = graph::no_value;
    int dimension = 0;
    thread::Affine coordinate = {};
    std::int64_t extent = 0;
  };
  /// Those that lead from the element at `c` of a view to its root.
  std::vector<Index> find_indices(ValueId ref, const Coordinates& c, const DimMap& map);

  /// Of the element at `c` of a block in global memory, of a storage in shared memory.
  thread::Address window_address(WindowId window, const Coordinates& c);
  thread::Address storage_address(StorageId storage, const Coordinates& c);
  void add_bounds_of_block(thread::Bounds& bounds, WindowId window, const Coordinates& c);
  /// One name for all that ask for the value; numbers and variables need none.
  thread::Affine named_index(thread::ExprId value);
  /// The names of what changes with that are out of scope.
  void forget_names(thread::Depends changing);
  /// The address as one of elements of another type of its width.
  void see_as(thread::Address& a, DType t);
  /// Coordinates in `from` of the element that stands at `c` in `to`, both row-major.
  Coordinates reshape_coordinates(const Extents& from, const Extents& to, const Coordinates& c);
  void take_apart(thread::Affine position, const Extents& shape, std::span<thread::Affine> out);

  const Program& l_;
  const graph::Graph& g_;
  thread::Exprs& e_;

 private:
  void set_outside(thread::Address& a, WindowId window);
  thread::Address part_address(ValueId ref, Coordinates c, DimMap map, thread::Affine k, DType t);
  void step_into(ValueId ref, Coordinates& c, const DimMap& map, thread::Affine& k, DType t);
  Coordinates subscripted(ValueId at, const Coordinates& c, const DimMap& map);
  bool join(const std::vector<thread::Address>& parts, DType whole, thread::Address& result);
  thread::Affine divided(const thread::Affine& a, std::int64_t by);
  std::pair<thread::Affine, thread::Affine> element_part(const thread::Affine& x,
                                                         std::int64_t chunk) const;
  std::pair<thread::Affine, thread::Affine> elements_apart(const thread::Affine& x,
                                                           std::int64_t by) const;
  std::pair<thread::Affine, thread::Affine> split(const thread::Affine& x, std::int64_t by);
  thread::ExprId quotient(thread::ExprId x, std::int64_t by);
  thread::Affine in_panels(const Storage& s, const Coordinates& c);

  std::map<thread::ExprId, thread::ExprId> index_names_;
  std::vector<Index>* found_indices_ = nullptr;  // where addresses put them, if anywhere
};

/// a * b of 64 bits, by what multiplies 32 where that is enough.
thread::ExprId wide_product(thread::Exprs& e, thread::ExprId a, thread::ExprId b);
/// A dimension as i64, of what the kernel's symbols are.
thread::ExprId expr_of_dim(thread::Exprs& e, const Dim& d, std::span<const thread::ExprId> symbols);

/// Where a block begins along a dimension whose index map yields `at`, in elements of the array.
thread::ExprId start_of_block(thread::Exprs& e, const BlockDim& b, thread::ExprId at,
                              DType type = i64, std::int64_t lead = 0);
/// Along a bounded slice, what its index map yields as the size.
ValueId size_of_slice(const graph::Graph& g, const BlockMapping& m, std::size_t dimension);
/// Whether every block begins in its array along d: those that are numbered by an axis do if it has
/// no more programs than there are blocks that do.
bool begins_inside(const graph::Graph& g, const BlockMapping& m, int d);
/// Of the number of elements that exist along d of what is loaded of a block.
thread::Facts facts_of_size(const graph::Graph& g, const BlockMapping& m, int d,
                            std::int64_t loaded, const thread::Facts& extent,
                            const thread::Facts& start);
/// Of the number of elements in front of the array that a block begins with.
thread::Facts facts_of_from(std::int64_t size, std::int64_t multiple_of_start);
/// Along dimension d of an array, what of it is loaded for a window: with what stands around its
/// rows if it is staged. Coordinates of its block in global memory count from there.
struct Loaded {
  std::int64_t lead = 0, size = 1;
  bool in_bounds = false;  // it is proved to be inside of the array
};
Loaded loaded(const Program& l, const Window& w, int d);

/// Of a stride of an array that is not dense.
thread::Facts facts_of_stride(const BlockMapping& m);
/// Of a symbol's value.
thread::Facts facts_of_symbol(const graph::Graph& g, int symbol);

DType unsigned_of(int bytes);

}  // namespace palladium::passes
