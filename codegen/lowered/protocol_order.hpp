// What is sure to happen before what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace palladium::lowered::protocol {

/// Happenings, numbered in an order in which they can happen; of each, all that is sure to have
/// happened before.
class Order {
 public:
  void clear();
  int size() const { return static_cast<int>(first_word_.size()); }
  /// One that happens behind these and all that is before them; those that are -1 do not count.
  int add(std::span<const int> behind);
  int add(std::initializer_list<int> behind) { return add({behind.begin(), behind.size()}); }
  void add_to(int happening, int behind);
  /// Whether `a` is sure to happen before `b`, or is it; -1 is before all.
  bool before(int a, int b) const;

 private:
  std::vector<std::size_t> first_word_;
  std::vector<std::uint64_t> words_;
};

/// Of a happening: whose it is, and in which event; or that something asynchronous is done that the
/// event began.
struct Happening {
  int agent = 0, event = 0;
  bool is_end = false;
};

}  // namespace palladium::lowered::protocol
