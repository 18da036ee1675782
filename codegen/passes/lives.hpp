// From where to where in a program storages of shared memory hold something.
#pragma once

#include <functional>
#include <vector>

#include "codegen/passes/lowered.hpp"

namespace palladium::passes {

/// Positions number the statements in order, those inside of others behind them. What is touched
/// inside of a loop and outside of it lives as long as the loop.
class Lives {
 public:
  explicit Lives(const Lowered& l);

  struct Span {
    int first = -1, last = -1;  // -1: never
  };
  Span of(int storage) const { return spans_[static_cast<std::size_t>(storage)]; }
  bool meet(int a, int b) const { return of(a).first <= of(b).last && of(b).first <= of(a).last; }

 private:
  void walk(const Statements& list);
  void touch(int storage);

  const Lowered& l_;
  std::vector<Span> spans_;
  std::vector<Span> loops_;  // inner ones first
  int position_ = 0;
};

/// Whether a statement fills such a storage in shared memory, itself.
bool fills_shared(const Lowered& l, const Statement& s, const std::function<bool(int)>& is_meant);

}  // namespace palladium::passes
