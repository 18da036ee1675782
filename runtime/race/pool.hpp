// Numbered objects with stable addresses that are given back one by one or all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace palladium::race {

template <class T>
class Pool {
 public:
  T& operator[](std::uint32_t i) { return blocks_[i / per_block][i % per_block]; }

  /// The number of an object with unspecified contents.
  std::uint32_t take() {
    if (!free_.empty()) {
      const std::uint32_t i = free_.back();
      free_.pop_back();
      return i;
    }
    if (used_ == blocks_.size() * per_block)
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(per_block));
    return used_++;
  }

  void give(std::uint32_t i) { free_.push_back(i); }

  /// Gives all back; their memory is kept for the next.
  void clear() {
    free_.clear();
    used_ = 0;
  }

 private:
  static constexpr std::uint32_t per_block = 256;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
};

}  // namespace palladium::race
