// How a mistake is made.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "tests/random/plan.hpp"

namespace palladium::test::random_calls {

inline constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// One mistake while it is made.
struct Making {
  Plan& plan;
  Random random;
  Blame blame;

  void options(std::function<void(PallasCallOptions&)> change) {
    plan.spoil_options.push_back(std::move(change));
  }
  void call(std::function<void(Givens&)> change) { plan.spoil_call.push_back(std::move(change)); }
  void at(int line, int i = 0) { blame.lines.insert(line + i); }
  void free() { blame.expect = Expect::free; }
  void harmless() { blame.expect = Expect::harmless; }
  void say(const std::string& text) { blame.text += (blame.text.empty() ? "" : ", ") + text; }

  int some_input() { return random.below(static_cast<int>(plan.inputs.size())); }
  int some_output() { return random.below(static_cast<int>(plan.outputs.size())); }
  int axis() { return plan.axes.empty() ? 0 : random.below(static_cast<int>(plan.axes.size())); }
  /// Position among the arguments of input `i`.
  std::size_t argument_of(int i) const {
    std::size_t position = 0;
    for (;; ++position)
      if (plan.pattern[position] == 'r' && i-- == 0) return position;
  }
  std::int64_t huge() {
    return random.pick<std::int64_t>({std::int64_t(1) << 31, std::int64_t(1) << 33,
                                      std::int64_t(1) << 62, largest, largest - 7});
  }
  std::int64_t negative() {
    return random.pick<std::int64_t>({-1, -7, -(std::int64_t(1) << 40), -largest - 1});
  }
};

/// A kind of mistake.
struct Mistake {
  const char* name;
  void (*make)(Making&);
};

/// Those in options.
std::span<const Mistake> option_mistakes();

}  // namespace palladium::test::random_calls
