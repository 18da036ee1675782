// What the accesses of a nest come to in the program of a thread: its elements are evaluated as
// there, and nothing is written.
#pragma once

#include <climits>
#include <map>
#include <utility>
#include <vector>

#include "codegen/passes/access_model.hpp"

namespace palladium::passes {

/// Whether an update adds floats of which one access adds several, and nobody asks what was there.
bool adds_vectors(const Program& l, const lowered::Update& u);

class NestModel : private AccessModel {
 public:
  explicit NestModel(const Program& l) : AccessModel(l) {}

  struct Found {
    bool has_parts = false;       // a bound makes accesses narrower, or tests each element
    bool has_conditions = false;  // some that hold where blocks are whole
    bool stores_vectors = false;  // of which nothing but the elements is computed one by one
    bool may_repeat = false;      // vectors beyond their row's end may be its first again
    std::vector<SharedRow> rows = {};
    std::vector<SharedColumns> columns = {};
    std::map<ValueId, int> widths = {};  // elements of one access of each load, at least
  };
  Found look(const LoopNest& p);

  /// Tests that tell whether all these blocks are whole; none where they always are, or never.
  std::size_t tests_of(const std::vector<WindowId>& windows);
  /// Whether, where the blocks are not whole, there is something to ask of each.
  bool may_end(const std::vector<WindowId>& windows) const;
  /// Whether threads of the nest have vectors beyond the end of a row.
  bool pads_rows(const LoopNest& p);

 private:
  const BlockNames& block(WindowId window) override {
    return as_nest_sees(window, AccessModel::block(window));
  }
  ExprId shared_address(StorageId storage) override;
  thread::Affine chosen_index(ValueId v, const Coordinates& c, const DimMap& map) override {
    return Elements::chosen_index(v, c, map);
  }
  ExprId load(const Pending& p, ExprId mask) override;
  ExprId access(const Address& a, const DimMap& map, ExprId mask) override;
  ExprId sum_of(ValueId v, std::vector<ExprId> addends) override;
  ExprId converted_halves(const HalvedBytes& bytes, DType to) override;
  void note_end_in_halves() override { found_.has_parts |= !nest_->whole; }

  void divide();
#define PALLADIUM_LOOK(Kind) look_at(const Kind& s)
  void PALLADIUM_SINKS(PALLADIUM_LOOK);
#undef PALLADIUM_LOOK
  void copied(const Address& a);
  void moved(const Address& a, const Bounds& bounds, int most = INT_MAX);
  void stored(const Address& a, ExprId mask, const Bounds& limits);
  ExprId row_element(const Address& a);
  void join_rows();
  void share_columns();
  ExprId evaluated(ValueId v, bool enter = false);

  /// An addend that is an element of a row.
  struct Tap {
    std::size_t row = 0;
    std::int64_t column = 0;
    int number = 0;  // among the addends
  };
  struct Sum {
    ValueId value = graph::no_value;
    std::vector<Tap> taps = {};
  };
  std::size_t span_of(const Tap& tap) const;
  std::vector<SharedColumns> shared_columns(const Sum& sum) const;

  Found found_ = {};
  ValueId loaded_ = graph::no_value;                              // for which memory is accessed
  std::map<std::pair<ExprId, ExprId>, std::size_t> row_numbers_;  // by base and offset
  std::vector<thread::VariableId> row_arrays_;                    // by number
  std::map<thread::VariableId, std::size_t> rows_by_array_;
  std::vector<std::pair<std::size_t, std::int64_t>> met_;  // rows, where accesses begin in them
  std::vector<Sum> row_sums_;
  std::map<StorageId, ExprId> shared_addresses_;
};

}  // namespace palladium::passes
