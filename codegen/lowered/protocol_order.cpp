#include "codegen/lowered/protocol_order.hpp"

namespace palladium::lowered::protocol {

void Order::clear() {
  first_word_.clear();
  words_.clear();
}

int Order::add(std::span<const int> behind) {
  const int n = size();
  first_word_.push_back(words_.size());
  words_.resize(words_.size() + static_cast<std::size_t>(n) / 64 + 1);
  for (const int b : behind) add_to(n, b);
  return n;
}

void Order::add_to(int happening, int behind) {
  if (behind < 0) return;
  std::uint64_t* const to = words_.data() + first_word_[static_cast<std::size_t>(happening)];
  const auto b = static_cast<std::size_t>(behind);
  const std::uint64_t* const from = words_.data() + first_word_[b];
  for (std::size_t i = 0; i <= b / 64; ++i) to[i] |= from[i];
  to[b / 64] |= std::uint64_t{1} << (b % 64);
}

bool Order::before(int a, int b) const {
  if (a < 0 || a == b) return true;
  if (b < a) return false;
  const auto bit = static_cast<std::size_t>(a);
  return words_[first_word_[static_cast<std::size_t>(b)] + bit / 64] >> (bit % 64) & 1;
}

}  // namespace palladium::lowered::protocol
