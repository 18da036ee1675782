// What the accesses of a nest cost in a layout that is being weighed: by the addresses and the
// widths that the program of a thread would have.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "codegen/layout/memory.hpp"
#include "codegen/passes/elements.hpp"
#include "codegen/passes/indices.hpp"

namespace palladium::passes {

class AccessModel : protected Elements {
 public:
  explicit AccessModel(const Program& l);

  /// Elements per access of the view, at most, in whatever layout: along the dimension in which
  /// that is most.
  int widest(ValueId ref);
  /// The same of a window's block in its array.
  int widest_of_block(WindowId window);

  /// The loops of a nest in a layout; `cost` is of accesses in them.
  void enter(const LoopNest& p, const layout::Layout& layout);
  /// Of every element that the nest reads, or writes, of the view at these coordinates; nothing
  /// for elements in several pieces. `layout`: that of the nest without the dimensions that `map`
  /// lacks.
  std::optional<layout::AccessCost> cost(ValueId ref, const DimMap& map,
                                         const layout::Layout& layout);
  /// Elements of the view that are neighbours, aligned, and in or out of bounds, together.
  int whole_width(ValueId ref, const DimMap& map);
  /// Whether elements of the view, in some dimension, are neighbours in memory.
  bool has_neighbours(ValueId ref);
  /// What divides the extent.
  std::int64_t multiple(const Dim& d) { return e_.facts(dim(d)).multiple; }
  /// Elements that one access reads of a view of a staged window.
  int staged_width(ValueId ref, const DimMap& map);
  /// Wavefronts of such an access: 1 where no bank has two words to give.
  double wavefronts(ValueId ref, const DimMap& map);
  /// The same of what accesses a storage, so many elements at a time.
  double wavefronts(StorageId storage, const DimMap& map, std::int64_t width = 1);

 protected:
  thread::ExprId converted_halves(const HalvedBytes& bytes, DType to) override;
  thread::Affine chosen_index(ValueId v, const Coordinates& c, const DimMap& map) override;
  thread::ExprId access(const thread::Address& a, const DimMap& map, thread::ExprId mask) override;
  thread::ExprId sum_of(ValueId v, std::vector<thread::ExprId> addends) override;
  const BlockNames& block(WindowId window) override;
  /// A variable of which no more is known.
  thread::ExprId unknown(DType t, const thread::Facts& facts);

 private:
  /// Of thread 0, and of those whose number has one bit set: of each bit of the lane.
  using OfThreads = std::array<std::int64_t, 1 + layout::lane_bits>;

  thread::ExprId index_value(ValueId v) override { return indices_.expr(v); }
  thread::ExprId let_coordinate(thread::ExprId value) override;
  thread::ExprId stride(int mapping, int d) override;
  thread::ExprId dim(const Dim& d) override { return expr_of_dim(e_, d, symbols_); }
  thread::ExprId shared_address(StorageId) override { return e_.number(0, u32); }
  thread::ExprId size_name(thread::ExprId start, const Dim& extent, const thread::Facts& known);
  thread::ExprId program_id(int axis) override;
  thread::ExprId temporary(const char*, thread::ExprId value) override;
  thread::ExprId scalar_leaf(ValueId v) override { return indices_.expr(v); }
  thread::ExprId held_value(StorageId storage, const DimMap& map) override;
  thread::ExprId hinted(const Pending& p) override;
  thread::ExprId skew_of(const thread::Address& row) override;

  OfThreads scattered(const Coordinates& c);
  Coordinates coordinates(const DimMap& map) const;
  thread::Address in_view(ValueId ref, const DimMap& map);
  double wavefronts(const thread::Address& a, std::int64_t width);
  thread::Address place(ValueId ref, const DimMap& map);
  OfThreads values_of(thread::ExprId e) const;
  std::int64_t in_lane(thread::ExprId e, std::int64_t lane) const;
  std::int64_t value_of(thread::VariableId v, std::size_t thread) const;

  thread::Exprs exprs_;
  template <class F>
  int widest(const graph::Type& type, F&& address_of);

  Indices indices_;
  std::vector<thread::ExprId> symbols_;
  Table<WindowId, std::optional<BlockNames>> blocks_;
  std::map<std::tuple<thread::ExprId, thread::ExprId, std::int64_t, std::int64_t, std::int64_t>,
           thread::ExprId>
      sizes_;  // by where blocks begin, where their array ends, and what is known
  std::map<std::pair<int, int>, thread::ExprId> strides_;  // of block mapping, dimension
  std::map<thread::VariableId, OfThreads> names_;          // of coordinates, by thread
  /// What they stand for, and what that is in each lane, once asked.
  struct Named {
    thread::ExprId value = thread::no_expr;
    std::array<std::optional<std::int64_t>, 1 << layout::lane_bits> in_lanes = {};
  };
  mutable std::map<thread::VariableId, Named> named_;
  std::map<int, thread::ExprId> program_ids_;
  std::map<std::vector<std::uint32_t>, thread::ExprId> chosen_;  // of array, coordinates
  std::map<StorageId, thread::VariableId> registers_;
  std::map<std::pair<std::int64_t, thread::Depends>, thread::ExprId> counters_of_;
  thread::ExprId thread_ = thread::no_expr;

  layout::Bits warps_;  // of the layout that was entered
};

}  // namespace palladium::passes
