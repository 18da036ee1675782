// Bodies of pallas_call drawn at random: interpreter = emulator = plain loops.
//
// PALLADIUM_TEST_CALLS=10000 tries a quarter as many; a failure says which by
// PALLADIUM_TEST_PLAIN=17, which tries that one again.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "codegen/base/format.hpp"
#include "codegen/graph/graph.hpp"
#include "tests/random/plain.hpp"
#include "tests/support/full.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::test::plain {
namespace {

std::string difference(const Numbers& expected, const Array& found) {
  const Numbers numbers = [&] {
    Numbers n{found.dtype(), {}, {}};
    const Array wide = found.dtype() == f32 ? found : found.astype(i32);
    for (std::int64_t i = 0; i < found.size(); ++i)
      n.at.push_back(found.dtype() == f32 ? static_cast<double>(wide.data<float>()[i])
                                          : static_cast<double>(wide.data<std::int32_t>()[i]));
    return n;
  }();
  for (std::size_t i = 0; i < expected.at.size(); ++i) {
    const double x = expected.at[i], y = numbers.at[i];
    if (x != y && !(std::isnan(x) && std::isnan(y)))
      return fmt::format("element {} is {}, not {}", i, y, x);
  }
  return "";
}

std::string problem_of(std::uint64_t seed, bool emulated) try {
  const Plan plan = draw(seed);
  Random random(seed + 5);
  std::vector<Array> arrays;
  std::vector<Numbers> inputs;
  for (const DType d : plan.inputs) {
    Array& a = arrays.emplace_back(Array::empty(to_shape(plan.extents()), d));
    Numbers& n = inputs.emplace_back(Numbers{d, plan.extents(), {}});
    for (std::int64_t i = 0; i < a.size(); ++i) {
      const std::uint64_t bits = random_number(random, d);
      std::memcpy(static_cast<std::byte*>(a.data()) + i * d.bytes(), &bits,
                  static_cast<std::size_t>(d.bytes()));
      n.at.push_back(d.is_float() ? graph::to_double(d, bits)
                                  : static_cast<double>(graph::to_int(d, bits)));
    }
  }
  const Kernel k = kernel_of(plan);
  const Numbers expected = meant(plan, inputs);
  for (const Target target : {Target::interpreter, Target::emulator}) {
    if (target == Target::emulator && !emulated) continue;
    const Array found =
        arrays.size() == 1 ? k.on(target)(arrays[0]) : k.on(target)(arrays[0], arrays[1]);
    if (const std::string d = difference(expected, found); !d.empty())
      return fmt::format("{}: {}", target == Target::interpreter ? "interpreter" : "emulator", d);
  }
  return "";
} catch (const Error& e) {
  return e.what();
}

}  // namespace

TEST_CASE("random bodies of pallas_call compute what plain loops do") {
  std::uint64_t first = 1, last = 100;
  if (const char* many = std::getenv("PALLADIUM_TEST_CALLS"))
    last = std::max<std::uint64_t>(1, std::strtoull(many, nullptr, 10) / 4);
  const char* const one = std::getenv("PALLADIUM_TEST_PLAIN");
  if (one != nullptr) first = last = std::strtoull(one, nullptr, 10);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    INFO("PALLADIUM_TEST_PLAIN=" << seed);
    CHECK(problem_of(seed, one != nullptr || is_emulated(seed)) == "");
  }
}

}  // namespace palladium::test::plain
