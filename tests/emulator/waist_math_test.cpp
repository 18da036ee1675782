#include <algorithm>
#include <cmath>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/device/waist.hpp"
#include "tests/emulator/waist_numbers.hpp"
#include "tests/support/waist_reference.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

int bound(const device::RowInfo& f, const NumberType& t) {
  return t.bytes == 8 ? f.ulp_f64 : f.ulp_f32;
}

}  // namespace

TEST_CASE("elementary functions stay within the table's error") {
  for (const char* name : {"f32", "f64", "f16", "bf16"}) {
    const NumberType& t = number_type(name);
    std::vector<Expression> expressions;
    std::vector<const device::RowInfo*> tried;
    for (const device::RowInfo& f : device::rows()) {
      const std::string call = "pl::" + std::string(f.name);
      const bool approximate = f.name.ends_with("_approx");
      if (bound(f, t) < 0 || f.name == "fma" || (approximate && t.bytes != 4)) continue;
      const bool one = unary_references.contains(std::string(f.name));
      REQUIRE((one || binary_references.contains(std::string(f.name))));
      expressions.push_back({call + (one ? "(x)" : "(x, y)"), name});
      tried.push_back(&f);
    }
    REQUIRE(tried.size() >= 21);
    std::vector<std::uint64_t> x = patterns(t), y = x;
    std::shuffle(y.begin(), y.end(), std::mt19937(11));
    const auto results = evaluate(t, x, y, expressions);
    for (std::size_t k = 0; k < tried.size(); ++k) {
      const std::string function(tried[k]->name);
      double worst = 0;
      std::size_t example = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const long double a = value_of(t, x[i]), b = value_of(t, y[i]);
        const auto found = unary_references.find(function);
        const long double want = found != unary_references.end()
                                     ? found->second(a)
                                     : binary_references.at(function)(a, b);
        const double error = ulps(t, value_of(t, results[k][i]), want);
        if (error > worst) worst = error, example = i;
      }
      // A 16-bit result is the f32 one rounded once more.
      // An f64 reference is itself rounded, to 64 digits: what lies halfway may fall either way.
      const double exact = t.bytes == 8 ? 0.5 : 0;
      const double allowed = t.bytes == 2 ? 0.501 : std::max<double>(bound(*tried[k], t), exact);
      INFO(function << " of " << name << ", worst for " << value_of(t, x[example]) << ", "
                    << value_of(t, y[example]) << " giving " << value_of(t, results[k][example]));
      CHECK(worst <= allowed);
    }
  }
}

TEST_CASE("fma rounds once") {
  for (const char* name : {"f32", "f64"}) {
    const NumberType& t = number_type(name);
    std::vector<std::uint64_t> x = patterns(t), y = x;
    std::shuffle(y.begin(), y.end(), std::mt19937(13));
    const auto r = evaluate(t, x, y, {{"pl::fma(x, y, x)", name}, {"pl::fma(x, y, -y)", name}});
    int wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (t.bytes == 4) {
        const auto a = std::bit_cast<float>(static_cast<std::uint32_t>(x[i]));
        const auto b = std::bit_cast<float>(static_cast<std::uint32_t>(y[i]));
        wrong += !same_value(value_of(t, r[0][i]), std::fma(a, b, a));
        wrong += !same_value(value_of(t, r[1][i]), std::fma(a, b, -b));
      } else {
        const auto a = std::bit_cast<double>(x[i]), b = std::bit_cast<double>(y[i]);
        wrong += !same_value(value_of(t, r[0][i]), std::fma(a, b, a));
        wrong += !same_value(value_of(t, r[1][i]), std::fma(a, b, -b));
      }
    }
    CHECK(wrong == 0);
  }
  // 1/3 of a unit below 1: a product rounded first would lose it.
  const NumberType& half = number_type("f16");
  const auto r = evaluate(half, {0x3c01}, {0xbc02}, {{"pl::fma(x, x, y)", "f16"}});
  CHECK(value_of(half, r[0][0]) == 0x1p-20L);
}
