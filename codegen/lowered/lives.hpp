// From where to where in a program storages of shared memory hold something.
#pragma once

#include <functional>
#include <vector>

#include "codegen/lowered/program.hpp"

namespace palladium::lowered {

/// Positions number the statements in order, those inside of others behind them. What is touched
/// inside of a loop and outside of it lives as long as the loop.
class Lives {
 public:
  explicit Lives(const Program& l);

  struct Span {
    int first = -1, last = -1;  // -1: never
  };
  Span of(StorageId storage) const { return spans_[storage]; }
  bool meet(StorageId a, StorageId b) const {
    return of(a).first <= of(b).last && of(b).first <= of(a).last;
  }

 private:
  void walk(const Statements& list);
  void touch(StorageId storage);

  const Program& l_;
  Table<StorageId, Span> spans_;
  std::vector<Span> loops_;  // inner ones first
  int position_ = 0;
};

/// Whether a statement fills such a storage in shared memory, itself.
bool fills_shared(const Program& l, const Statement& s,
                  const std::function<bool(StorageId)>& is_meant);

}  // namespace palladium::lowered
