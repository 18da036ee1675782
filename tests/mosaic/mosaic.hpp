// What tests of the language of Mosaic GPU say often.
#pragma once

#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/folder.hpp"
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

/// What is said at compile time of a kernel's barriers and copies by hand: "good: ...".
inline std::string verdict_of(const Kernel& k, const std::vector<ArgType>& types) {
  const Environment off("PALLADIUM_VERIFY", "0");
  const std::string all = k.lower(types).schedule({.arch = "sm_90a"});
  const std::string before = "protocol: ";
  return all.substr(all.find(before) + before.size());
}

/// What the interpreter says of a kernel when it looks for races, or "": what is said at compile
/// time is no other.
inline std::string races_of(const Body& body, gpu::KernelOptions options,
                            std::vector<Array> arrays) {
  options.interpret = InterpretParams{.detect_races = true};
  const Kernel k = gpu::kernel(body, std::move(options)).on(Target::interpreter);
  std::string found = refused([&] {
    if (arrays.size() == 1) k(arrays[0]);
    if (arrays.size() == 2) k(arrays[0], arrays[1]);
  });
  std::vector<ArgType> types;
  for (const Array& a : arrays) types.push_back(ShapeDtype{a.shape(), a.dtype()});
  const std::string verdict = verdict_of(k, types);
  INFO(found << "\n" << verdict);
  CHECK(verdict.starts_with(found == "" ? "good" : "counterexample"));
  return found;
}

}  // namespace palladium::test
