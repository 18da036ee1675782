// How many elements of values are elements of an array, along dimensions in which blocks are
// bounded.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::trace {

/// A value has its element i along a dimension where `first` + `stride` * i, and the addends, are
/// less than the extent.
struct Length {
  /// An i32[], so many times; where `most` is not negative, moved into 0 to that.
  struct Addend {
    graph::ValueId value = graph::no_value;
    std::int64_t times = 1, most = -1;
    bool operator==(const Addend&) const = default;
  };
  Dim extent;
  std::int64_t first = 0, stride = 1;
  std::vector<Addend> addends = {};

  bool is_plain() const { return first == 0 && stride == 1 && addends.empty(); }
  /// Whether both say the same of every call.
  bool same(const Length& o) const;
};
/// By dimension; of several all hold. None where no dimension has any.
using Lengths = std::vector<std::vector<Length>>;

bool has_any(const Lengths& lengths);
/// Adds what the others say.
void narrow(Lengths& lengths, const Lengths& others);
/// Those of `lengths` that are none of `known`.
Lengths without(const Lengths& lengths, const Lengths& known);

/// What is known of the values and Refs of a graph, made as it grows. A kernel without bounded
/// blocks has none.
class LengthTable {
 public:
  explicit LengthTable(const graph::Graph& g) : g_(g) {}

  /// Of a parameter of a body.
  void bound(graph::ValueId ref, const BlockMapping& m);
  /// Of anything, in place of what follows from its operands.
  void set(graph::ValueId v, Lengths lengths);
  /// Of the results that a Get of `v` gives.
  void set_results(graph::ValueId v, std::vector<Lengths> results);
  bool any() const { return any_; }
  /// CompileError, at the user's line, for what leaves no length to a value.
  Lengths of(graph::ValueId v);

 private:
  Lengths inferred(graph::ValueId v) const;
  Lengths of_view(const graph::Inst& at) const;
  Lengths of_slice(graph::ValueId v) const;
  Lengths of_dynamic_slice(graph::ValueId v) const;
  Lengths of_dot(const graph::Inst& dot) const;
  Lengths moved(graph::ValueId v) const;
  Lengths reshaped(graph::ValueId v) const;
  Lengths elementwise(const graph::Inst& i) const;
  [[noreturn]] void refuse(graph::ValueId v, const std::string& why) const;

  const graph::Graph& g_;
  bool any_ = false;
  std::vector<Lengths> known_;  // by value
  std::map<graph::ValueId, std::vector<Lengths>> results_;
};

}  // namespace palladium::trace
