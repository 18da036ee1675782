#include <algorithm>
#include <cmath>

#include "codegen/base/format.hpp"
#include "tests/conformance/run.hpp"
#include "tests/emulator/waist_numbers.hpp"

namespace palladium::conformance {
namespace {

// Of an array that differs, for the report.
constexpr std::size_t most_elements = 16, most_bytes = 2048;

/// How far apart two elements are under the array's agreement; 0 is no distance at all.
double distance(const Array& a, const test::NumberType& t, std::size_t i, std::uint64_t emulated,
                std::uint64_t got) {
  const long double value = test::value_of(t, got);
  switch (a.agreement) {
  case Agreement::any: return 0;
  case Agreement::ulp: return test::ulps(t, value, a.reference(i));
  case Agreement::near: {
    const long double want = a.reference ? a.reference(i) : test::value_of(t, emulated);
    if (test::same_value(value, want)) return 0;
    const auto apart = static_cast<double>(std::fabs(value - want));
    return std::isnan(apart) ? INFINITY : apart;
  }
  default: break;
  }
  if (emulated == got) return 0;
  const bool both_nan = t.is_float && std::isnan(value) && std::isnan(test::value_of(t, emulated));
  return both_nan ? 0 : INFINITY;
}

std::string hexadecimal(std::uint64_t bits, int bytes) {
  return fmt::format("{:#0{}x}", bits, 2 + 2 * bytes);
}

/// The first bytes in memory's order, two digits each.
std::string digits(const std::vector<std::byte>& bytes) {
  std::string text;
  for (std::size_t i = 0; i < std::min(bytes.size(), most_bytes); ++i)
    text += fmt::format("{:02x}", std::to_integer<int>(bytes[i]));
  return text;
}

}  // namespace

Verdict judge(const Case& c, const Arrays& emulated, const Arrays& got) {
  Verdict verdict;
  verdict.measured = nlohmann::json::object();
  verdict.differing = nlohmann::json::array();
  if (c.answer) verdict.answer = c.answer(got);
  for (std::size_t k = 0; k < c.arrays.size(); ++k) {
    const Array& a = c.arrays[k];
    if (!a.output) continue;
    const test::NumberType& t = test::number_type(a.type);
    const auto size = static_cast<std::size_t>(t.bytes);
    const std::size_t count = a.bytes.size() / size;
    double worst = 0;
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double apart =
          distance(a, t, i, element(emulated[k], i, size), element(got[k], i, size));
      worst = std::max(worst, apart);
      if (apart > a.bound && wrong++ == 0) first = i;
    }
    if (!a.label.empty()) {
      // JSON has no infinity.
      const nlohmann::json error = std::isfinite(worst) ? nlohmann::json(worst) : "infinite";
      verdict.measured[a.label] = {{"error", error},
                                   {"bound", a.bound},
                                   {"unit", a.agreement == Agreement::near ? "absolute" : "ulp"}};
    }
    if (wrong == 0) continue;
    nlohmann::json& told = verdict.differing.emplace_back();
    told["array"] = k;
    told["type"] = a.type;
    told["differ"] = wrong;
    told["of"] = count;
    for (std::size_t i = first; i < count && told["elements"].size() < most_elements; ++i) {
      const std::uint64_t e = element(emulated[k], i, size), g = element(got[k], i, size);
      if (distance(a, t, i, e, g) > a.bound)
        told["elements"].push_back({i, hexadecimal(g, t.bytes), hexadecimal(e, t.bytes)});
    }
    told["got"] = digits(got[k]);
    const std::uint64_t e = element(emulated[k], first, size), g = element(got[k], first, size);
    verdict.problem += fmt::format(
        "{}array {} ({}{}): {} of {} elements differ, the first is {}: {} ({}), emulator {} ({})",
        verdict.problem.empty() ? "" : "; ", k, a.type, a.label.empty() ? "" : ", " + a.label,
        wrong, count, first, hexadecimal(g, t.bytes), static_cast<double>(test::value_of(t, g)),
        hexadecimal(e, t.bytes), static_cast<double>(test::value_of(t, e)));
    if (a.agreement != Agreement::bits) {
      verdict.problem +=
          fmt::format(", worst error {:.3g} where {:.3g} is allowed", worst, a.bound);
      if (a.reference)
        verdict.problem += fmt::format(", wanted {}", static_cast<double>(a.reference(first)));
    }
  }
  return verdict;
}

}  // namespace palladium::conformance
