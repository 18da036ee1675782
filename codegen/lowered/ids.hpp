// Numbers of what a lowered program is made of, and the tables that are asked by them.
#pragma once

#include <compare>
#include <cstddef>
#include <utility>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::lowered {

using graph::ValueId;

/// Which of its kind: its place in the program's table of these; or none. Numbers of different
/// kinds are different types, which nobody counts with.
template <class Kind>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(int number) : number_(number) {}
  /// Whether it is one.
  constexpr explicit operator bool() const { return number_ >= 0; }
  /// -1: none.
  constexpr int number() const { return number_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  int number_ = -1;
};

using StorageId = Id<struct Storage>;
using WindowId = Id<struct Window>;
using RingId = Id<struct Ring>;
using BoxId = Id<struct TensorBox>;
using BarrierId = Id<struct Barriers>;
using StatementId = Id<struct Statement>;
/// Of what gets a layout: a loop nest, and the storage that it fills.
using LayoutVariableId = Id<struct LayoutVariable>;

template <class Kind>
constexpr std::size_t place_of(Id<Kind> id) {
  return static_cast<std::size_t>(id.number());
}
constexpr std::size_t place_of(ValueId v) { return graph::index(v); }

/// A row for each thing of a kind, or for each instruction of a graph.
template <class Key, class Row>
class Table {
 public:
  Table() = default;
  explicit Table(std::size_t count, Row row = {}) : rows_(count, row) {}

  decltype(auto) operator[](Key key) { return rows_[place_of(key)]; }
  decltype(auto) operator[](Key key) const { return rows_[place_of(key)]; }
  auto begin() { return rows_.begin(); }
  auto end() { return rows_.end(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  Row& back() { return rows_.back(); }
  const Row& front() const { return rows_.front(); }
  void assign(std::size_t count, const Row& row) { rows_.assign(count, row); }
  void resize(std::size_t count, const Row& row = {}) { rows_.resize(count, row); }
  void push_back(Row row) { rows_.push_back(std::move(row)); }
  void pop_back() { rows_.pop_back(); }

  /// The number of what was added.
  Key add(Row row) {
    rows_.push_back(std::move(row));
    return Key(static_cast<int>(rows_.size()) - 1);
  }
  /// The numbers of all that there are now.
  std::vector<Key> ids() const {
    std::vector<Key> all;
    for (std::size_t i = 0; i < rows_.size(); ++i) all.push_back(Key(static_cast<int>(i)));
    return all;
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace palladium::lowered
