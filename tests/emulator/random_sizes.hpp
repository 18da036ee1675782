// Sizes that a seed draws, and calls whose kernels are counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "tests/support/full.hpp"
#include "tests/support/targets.hpp"

namespace palladium::test {

/// Sizes of which the first are those that are easily got wrong, the others random.
class RandomSizes {
 public:
  explicit RandomSizes(std::uint64_t seed) : random_(seed) {}
  static int count() { return is_full() ? 200 : 10; }
  std::int64_t next(std::int64_t least, std::int64_t most) {
    constexpr std::int64_t first[] = {0, 1, 7, 16, 33, 128};
    if (drawn_ < std::size(first)) return std::clamp(first[drawn_++], least, most);
    return below(most - least + 1) + least;
  }
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }

 private:
  std::mt19937_64 random_;
  std::size_t drawn_ = 0;
};

/// Runs calls, and counts the kernels that they need.
class CountedCalls {
 public:
  explicit CountedCalls(Kernel kernel) : kernel_(std::move(kernel)) {}
  template <class... A>
  Array operator()(Target target, const A&... arrays) {
    keys_.insert(kernel_.lower(arrays...).key());
    return on_cpu(kernel_.on(target)(on(target, arrays)...));
  }
  std::size_t kernels() const { return keys_.size(); }

 private:
  Kernel kernel_;
  std::set<std::string> keys_;
};

/// Small whole numbers.
inline Array small_numbers(const Shape& shape) {
  return make_array<float>(shape, [](std::int64_t i) { return (i * 7 + i / 5) % 13 - 6; });
}

}  // namespace palladium::test
