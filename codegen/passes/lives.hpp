// From where to where in a program storages of shared memory hold something.
#pragma once

#include <vector>

#include "codegen/passes/lowered.hpp"

namespace palladium::passes {

/// Positions number the statements in order, those inside of others behind them. What is touched
/// inside of a loop and outside of it lives as long as the loop.
class Lives {
 public:
  explicit Lives(Lowered& l);

  struct Span {
    int first = -1, last = -1;  // -1: never
  };
  Span of(int storage) const { return spans_[static_cast<std::size_t>(storage)]; }
  bool meet(int a, int b) const { return of(a).first <= of(b).last && of(b).first <= of(a).last; }

 private:
  void walk(Statements& list);
  void touch(int storage);
  void touch_leaves(ValueId value, const DimMap& map, bool enter);

  void touch(const LoopNest& p);
  void touch(const Dot& d);
  void touch(const Relayout& r);
  void touch(const Send& s);
  void touch(const Scalar& s);
  void touch(const CopyStorage& c);
  void touch(const Semaphore& s);
  void touch(const HostCall& t);
  template <class T>
  void touch(const T&) {}

  Lowered& l_;
  std::vector<Span> spans_;
  std::vector<Span> loops_;  // inner ones first
  int position_ = 0;
};

/// The storages of shared memory that a statement fills, itself.
std::vector<int> shared_filled(const Lowered& l, const Statement& s);

}  // namespace palladium::passes
