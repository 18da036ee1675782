#include "tools/size_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace palladium::tools {
namespace {

using KeyParts = std::map<std::string, std::string>;

std::string value_of(const KeyParts& components, const std::string& name) {
  const auto found = components.find(name);
  return found == components.end() ? std::string() : found->second;
}

/// "[s0,cdiv(s1, 2)]" or "1, bounded(64)" in its elements.
std::vector<std::string> elements_of(std::string text) {
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  std::vector<std::string> result;
  std::string element;
  int depth = 0;
  for (const char c : text) {
    depth += (c == '(') - (c == ')');
    if (c == ',' && depth == 0)
      result.push_back(std::exchange(element, {}));
    else if (c != ' ' || !element.empty())
      element += c;
  }
  if (!element.empty()) result.push_back(element);
  return result;
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

/// What a kernel knows of an extent that it may be called with.
struct Known {
  std::string size;            // of one alone
  std::string multiple = "1";  // of any
  std::string most;            // of a block that is bounded

  bool operator==(const Known&) const = default;
};

Known known_of(const KeyParts& components, const std::string& array, std::size_t dimension) {
  const auto dims = elements_of(value_of(components, array + ".shape")),
             blocks = elements_of(value_of(components, array + ".block_shape")),
             multiples = elements_of(value_of(components, "symbol_multiples"));
  const std::string& dim = dims[dimension];
  Known known;
  if (is_number(dim)) known.size = dim;
  if (dim.starts_with('s') && is_number(dim.substr(1)))
    if (const auto symbol = std::stoul(dim.substr(1));
        symbol < multiples.size() && is_number(multiples[symbol]))
      known.multiple = multiples[symbol];
  constexpr std::string_view bounded = "bounded(";
  if (known.size.empty() && dimension < blocks.size() && blocks[dimension].starts_with(bounded))
    known.most =
        blocks[dimension].substr(bounded.size(), blocks[dimension].size() - bounded.size() - 1);
  return known;
}

std::string words_of(const Known& k) {
  if (!k.size.empty()) return k.size;
  std::string words = k.multiple == "1" ? "any number" : "any multiple of " + k.multiple;
  return k.most.empty() ? words : words + " up to " + k.most;
}

}  // namespace

std::vector<std::string> size_words(const KeyParts& first, const KeyParts& second) {
  std::vector<std::string> result;
  constexpr std::string_view shape = ".shape";
  for (const auto& [name, dims] : first) {
    if (!name.ends_with(shape)) continue;
    const std::string array = name.substr(0, name.size() - shape.size());
    const std::size_t rank = elements_of(dims).size();
    if (elements_of(value_of(second, name)).size() != rank) continue;
    for (std::size_t d = 0; d < rank; ++d)
      if (const Known a = known_of(first, array, d), b = known_of(second, array, d); a != b)
        result.push_back(fmt::format("{}[{}] is {} in the first, {} in the second", name, d,
                                     words_of(a), words_of(b)));
  }
  const auto reach_of = [](const KeyParts& c) -> std::string {
    if (value_of(c, "short_offsets") == "true") return "have fewer than 2^31 elements";
    return value_of(c, "box_extents") == "yes" ? "have extents below 2^31" : "have any sizes";
  };
  if (const std::string a = reach_of(first), b = reach_of(second); a != b)
    result.push_back(fmt::format("arrays {} in the first, {} in the second", a, b));
  return result;
}

}  // namespace palladium::tools
