#include "codegen/base/architecture.hpp"

#include <algorithm>
#include <charconv>

#include "palladium/error.hpp"

namespace palladium {
namespace {

// Those of NVRTC 12.9 and newer that text is emitted for.
constexpr int numbers[] = {75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};

/// What may stand behind a number.
std::string_view variants(int number) { return number >= 100 ? "af" : number >= 90 ? "a" : ""; }

[[noreturn]] void refuse(std::string_view name) {
  throw CompileError("unknown architecture '" + std::string(name) + "'; kernels are compiled for " +
                     listed(architecture_names()));
}

}  // namespace

Architecture parse_architecture(std::string_view name) {
  constexpr std::string_view prefix = "sm_";
  constexpr std::size_t most_digits = 3;
  if (!name.starts_with(prefix)) refuse(name);
  Architecture found;
  const char* const end = name.data() + name.size();
  const char* const digits = name.data() + prefix.size();
  const auto [rest, bad] = std::from_chars(digits, end, found.compute_capability);
  const bool is_number = bad == std::errc() && rest <= digits + most_digits && *digits != '0';
  if (!is_number || std::ranges::find(numbers, found.compute_capability) == std::end(numbers) ||
      end - rest > 1)
    refuse(name);
  if (rest == end) return found;
  found.variant = *rest;
  if (variants(found.compute_capability).find(found.variant) == std::string_view::npos)
    refuse(name);
  return found;
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const int number : numbers) {
    names.push_back("sm_" + std::to_string(number));
    for (const char variant : variants(number))
      names.push_back("sm_" + std::to_string(number) + variant);
  }
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace palladium
