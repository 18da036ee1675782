// What tests of the language of Mosaic GPU say often.
#pragma once

#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/targets.hpp"

namespace palladium::test {

template <class T>
std::vector<T> elements(const Array& a) {
  const Array on_host = on_cpu(a);
  const auto values = on_host.values<const T>();
  return {values.begin(), values.end()};
}

inline Array counted(const Shape& shape) {
  return make_array<float>(shape, [](std::int64_t i) { return i; });
}

/// The words of the error, or "".
template <class F>
std::string refused(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

/// What the interpreter says of a kernel when it looks for races, or "".
inline std::string races_of(const Body& body, gpu::KernelOptions options,
                            std::vector<Array> arrays) {
  options.interpret = InterpretParams{.detect_races = true};
  const Kernel k = gpu::kernel(body, std::move(options)).on(Target::interpreter);
  return refused([&] {
    if (arrays.size() == 1) k(arrays[0]);
    if (arrays.size() == 2) k(arrays[0], arrays[1]);
  });
}

}  // namespace palladium::test
