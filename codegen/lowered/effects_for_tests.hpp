// For tests only: answers of effects() that are wrong. What nobody misses, nobody asked for.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "codegen/lowered/effects.hpp"

namespace palladium::lowered::testing {

/// Which kind of statement was asked about: by its place in Statement::what and, of a loop nest, in
/// Sink.
struct Kind {
  std::size_t statement = 0, sink = 0;
};

/// Hears each answer, and may change it before the one who asked sees it.
using Hearing = std::function<void(const Kind&, Effects&)>;

/// Null but in a test, which changes it while nobody lowers.
extern const Hearing* hearing;

/// `hearing` for the length of a scope.
class Heard {
 public:
  explicit Heard(Hearing by) : by_(std::move(by)) { hearing = &by_; }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;
  ~Heard() { hearing = nullptr; }

 private:
  Hearing by_;
};

}  // namespace palladium::lowered::testing
