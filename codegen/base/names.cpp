#include "codegen/base/names.hpp"

namespace palladium {
namespace {

constexpr std::size_t longest = 64;

// Whatever the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::string file_name_of(std::string_view name) {
  std::string result;
  for (const char c : name.substr(0, longest)) {
    const bool stays =
        is_digit(c) || is_letter(c) || c == '_' || c == '-' || (c == '.' && !result.empty());
    result += stays ? c : '_';
  }
  return result.empty() ? "kernel" : result;
}

std::string identifier_of(std::string_view name) {
  std::string result;
  for (const char c : name.substr(0, longest)) result += is_digit(c) || is_letter(c) ? c : '_';
  if (result.empty() || is_digit(result[0])) result = "k" + result;
  return result;
}

}  // namespace palladium
