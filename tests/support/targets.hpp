// One numeric body, run on every target that this machine has.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <string>

#include "palladium/palladium.hpp"

namespace palladium::test {

/// Whether $PALLADIUM_TEST_TARGETS, if it is set, names the target: where a GPU is there for
/// minutes, what other machines run is left out.
bool is_wanted(Target target);

/// Runs `body` on interpreter, emulator and, where there is one, the GPU, one after the other: in no
/// sections, of which Catch2 runs those of one name once, however often a loop comes to them.
/// Without a GPU the report says so.
void for_each_target(const std::string& name, const std::function<void(Target)>& body);

/// A copy where the target's kernels can read it, and one that the CPU can.
inline Array on(Target target, const Array& a) { return a.to(device_of(target)); }
inline Array on_cpu(const Array& a) { return a.to(Device::cpu()); }

/// An array with `element(i)` at the i-th place in row-major order.
template <class T, class F>
Array make_array(const Shape& shape, F element) {
  Array a = Array::empty(shape, dtype_of<T>);
  T* data = a.data<T>();
  for (std::int64_t i = 0; i < a.size(); ++i) data[i] = static_cast<T>(element(i));
  return a;
}

}  // namespace palladium::test
