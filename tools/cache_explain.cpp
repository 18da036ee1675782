// `palladium cache explain`: in which parts the keys of two kernels differ.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "palladium/error.hpp"
#include "tools/cache_entry.hpp"
#include "tools/commands.hpp"
#include "tools/kernels.hpp"
#include "tools/output.hpp"
#include "tools/size_words.hpp"

namespace palladium::tools {
namespace {

using Components = std::map<std::string, std::string>;

struct Side {
  std::string what;  // "softmax for sm_90a, 3f9a1c..."
  std::string key;
  Components components;
};

Side side_of(const CacheEntry& e) {
  return {fmt::format("{} for {}, {}", e.kernel, e.arch, e.key.substr(0, 12)),
          e.key,
          {e.components.begin(), e.components.end()}};
}

bool is_key(const std::string& name) {
  return name.find_first_not_of("0123456789abcdef") == std::string::npos && name.size() >= 4;
}

/// An entry of the cache, or a kernel that may not be there.
Side find_side(const std::string& name, const std::optional<std::string>& arch) {
  if (is_key(name) && !cache_entries(name).empty()) return side_of(find_entry(name));
  const Kernels found = kernels_of(name);
  if (found.kernels.size() != 1)
    throw CompileError("'" + name + "' has " + std::to_string(found.kernels.size()) +
                       " kernels; one is named '" + name + "#1'");
  const NamedKernel& k = found.kernels.front();
  const CompileOptions options{.arch = arch              ? *arch
                                       : k.archs.empty() ? default_arch()
                                                         : k.archs.front()};
  const auto components = k.kernel.key_components(options);
  const std::string key = k.kernel.key(options);
  return {fmt::format("{} for {}, {}", k.name, options.arch, key.substr(0, 12)),
          key,
          {components.begin(), components.end()}};
}

struct Difference {
  std::string component;
  std::string first, second;  // "" where a side has no such part
};

std::vector<Difference> differences(const Components& first, const Components& second) {
  Components names = first;
  names.insert(second.begin(), second.end());
  std::vector<Difference> result;
  const auto value = [](const Components& c, const std::string& name) {
    const auto found = c.find(name);
    return found == c.end() ? std::string() : found->second;
  };
  for (const auto& [name, ignored] : names) {
    Difference d{name, value(first, name), value(second, name)};
    if (d.first != d.second) result.push_back(std::move(d));
  }
  // The digest of the whole says something only where no part does.
  const auto is_part = [](const Difference& d) {
    return d.component != "graph" && d.component != "arch" && d.component != "text";
  };
  if (std::ranges::any_of(result, is_part))
    std::erase_if(result, [](const Difference& d) { return d.component == "graph"; });
  return result;
}

/// The entry that differs in fewest parts, those of the same name before others; of several that of
/// the oldest architecture.
std::optional<Side> nearest(const Side& side) {
  std::optional<Side> best;
  std::tuple<bool, std::size_t, std::size_t, std::string> least;
  for (const CacheEntry& e : cache_entries()) {
    if (!e.usable) continue;
    Side candidate = side_of(e);
    const auto differing = differences(side.components, candidate.components);
    const bool is_other =
        std::ranges::any_of(differing, [](const Difference& d) { return d.component == "name"; });
    const auto arch = candidate.components.find("arch");
    const std::string name = arch == candidate.components.end() ? "" : arch->second;
    std::tuple distance(is_other, differing.size(), name.size(), name);
    if (best && !(distance < least)) continue;
    least = std::move(distance);
    best = std::move(candidate);
  }
  return best;
}

std::string indented(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 9)
    text.replace(at, 1, "\n        ");
  return text.empty() ? "-" : text;
}

}  // namespace

int cache_explain(const CacheExplain& asked) {
  if (asked.arch) checked_arch(*asked.arch);
  const Side first = find_side(asked.first, asked.arch);
  const std::optional<Side> second =
      asked.second.empty() ? nearest(first) : find_side(asked.second, asked.arch);
  if (!second) throw CompileError("the cache " + cache_root() + " holds no usable kernel");
  const auto found = differences(first.components, second->components);
  const std::vector<std::string> sizes = size_words(first.components, second->components);
  if (asked.json) {
    Json list = Json::array();
    for (const Difference& d : found)
      list.push_back({{"component", d.component}, {"first", d.first}, {"second", d.second}});
    print(Json{{"first", first.key},
               {"second", second->key},
               {"sizes", sizes},
               {"differences", std::move(list)}});
    return 0;
  }
  print(fmt::format("first   {}\nsecond  {}", first.what, second->what));
  for (const std::string& size : sizes) print("size    " + size);
  if (found.empty())
    print(std::string("the same key: what differs is the NVRTC that compiled it, if anything"));
  for (const Difference& d : found)
    print(fmt::format("{}\n  first   {}\n  second  {}", d.component, indented(d.first),
                      indented(d.second)));
  return 0;
}

}  // namespace palladium::tools
