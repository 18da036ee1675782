// Arithmetic on sizes, offsets and counts of whatever the user gives: nothing wraps.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

namespace palladium {

/// A whole number, or the knowledge that 64 bits do not hold it, which stays with all that is
/// computed from it. So a formula is written as it stands, and whoever needs its result asks once,
/// and finds the words for the user.
class Checked {
 public:
  template <std::integral T>
  constexpr Checked(T n)
      : value_(static_cast<std::int64_t>(n)), fits_(std::in_range<std::int64_t>(n)) {}

  constexpr bool fits() const { return fits_; }
  /// Precondition: fits().
  constexpr std::int64_t value() const { return value_; }
  constexpr std::int64_t value_or(std::int64_t other) const { return fits_ ? value_ : other; }
  /// Whether it is known to lie in [low, high].
  constexpr bool within(std::int64_t low, std::int64_t high) const {
    return fits_ && value_ >= low && value_ <= high;
  }

  friend constexpr Checked operator+(Checked a, Checked b) {
    return {a, b, __builtin_add_overflow(a.value_, b.value_, &a.value_)};
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    return {a, b, __builtin_sub_overflow(a.value_, b.value_, &a.value_)};
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    return {a, b, __builtin_mul_overflow(a.value_, b.value_, &a.value_)};
  }
  /// As C++ divides; by zero it does not fit.
  friend constexpr Checked operator/(Checked a, Checked b) {
    const bool bad = !divides(a, b);
    if (!bad) a.value_ /= b.value_;
    return {a, b, bad};
  }
  friend constexpr Checked operator%(Checked a, Checked b) {
    const bool bad = !divides(a, b);
    if (!bad) a.value_ %= b.value_;
    return {a, b, bad};
  }
  constexpr Checked& operator+=(Checked b) { return *this = *this + b; }
  constexpr Checked& operator*=(Checked b) { return *this = *this * b; }

 private:
  // By reference: `a` already holds the result when it is read.
  constexpr Checked(const Checked& a, const Checked& b, bool overflows)
      : value_(a.value_), fits_(a.fits_ && b.fits_ && !overflows) {}
  static constexpr bool divides(Checked a, Checked b) {
    return b.value_ != 0 && !(a.value_ == INT64_MIN && b.value_ == -1);
  }

  std::int64_t value_;
  bool fits_;
};

/// 1 for nothing. A factor of zero makes the product zero, however large the others are.
template <class Range>
constexpr Checked checked_product(const Range& factors) {
  Checked product = 1;
  bool is_empty = false;
  for (const auto& factor : factors) {
    const auto n = static_cast<std::int64_t>(factor);
    is_empty |= n == 0;
    product *= n;
  }
  return is_empty ? Checked(0) : product;
}

/// The next multiple of `to` > 0 that is not below n >= 0.
constexpr Checked checked_align_up(Checked n, std::int64_t to) { return (n + (to - 1)) / to * to; }

}  // namespace palladium
