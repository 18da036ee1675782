#include "codegen/device/waist.hpp"

#include <limits>
#include <map>

#include "codegen/base/forking.hpp"
#include "codegen/device/declarations.hpp"

namespace palladium::device {
namespace {

// The words of the column `effects`.
namespace words {

using enum Memory;
using enum Group;
using enum Completion;
constexpr Proxy async = Proxy::async;

constexpr Effects operator|(Effects a, const Effects& b) {
  a.pure |= b.pure;
  if (b.by != Group::thread) a.by = b.by;
  a.releases |= b.releases;
  a.acquires |= b.acquires;
  a.waits |= b.waits;
  a.ordered |= b.ordered;
  if (b.role != Effects::Role::none) {
    a.role = b.role;
    a.on = b.on;
    a.on_argument = b.on_argument;
  }
  for (const Access& access : b.accesses()) a.all[static_cast<std::size_t>(a.count++)] = access;
  return a;
}

constexpr Effects touching(const Access& a) { return {.all = {a}, .count = 1}; }

constexpr Effects other = {};
constexpr Effects pure = {.pure = true};
constexpr Effects releases = {.releases = true};
constexpr Effects acquires = {.acquires = true};
constexpr Effects waits = {.waits = true};
constexpr Effects by(Group g) { return {.by = g}; }
constexpr Effects meets(Group g) { return by(g) | releases | acquires | waits; }
constexpr Effects orders(Memory m) {
  return {.ordered = static_cast<std::uint8_t>(1u << static_cast<int>(m))};
}
constexpr Effects reads(int k, Memory m, Proxy p = Proxy::generic) {
  return touching({.argument = k, .memory = m, .proxy = p, .reads = true});
}
constexpr Effects writes(int k, Memory m, Proxy p = Proxy::generic) {
  return touching({.argument = k, .memory = m, .proxy = p, .writes = true});
}
constexpr Effects updates(int k, Memory m, Proxy p = Proxy::generic) {
  return touching({.argument = k, .memory = m, .proxy = p, .reads = true, .writes = true});
}
constexpr Effects combines(int k, Memory m, Proxy p = Proxy::generic) {
  return touching(
      {.argument = k, .memory = m, .proxy = p, .reads = true, .writes = true, .atomic = true});
}
constexpr Effects observes(int k, Memory m) {
  return touching({.argument = k, .memory = m, .reads = true, .atomic = true});
}
constexpr Effects publishes(int k, Memory m) {
  return touching({.argument = k, .memory = m, .writes = true, .atomic = true});
}
constexpr Effects completes(Completion c, int k = -1) {
  return {.on = c, .role = Effects::Role::completes, .on_argument = k};
}
constexpr Effects closes(Completion c, int k = -1) {
  return {.on = c, .role = Effects::Role::closes, .on_argument = k};
}
constexpr Effects awaits(Completion c, int k = -1) {
  return {.waits = true, .on = c, .role = Effects::Role::awaits, .on_argument = k};
}

constexpr int any_arch = std::numeric_limits<int>::max();
constexpr RowInfo table[] = {
#define PALLADIUM_WAIST(file, name, first_arch, effects, declaration, meaning) \
  {Row::name, #file, #name, first_arch, any_arch, -1, -1, effects, declaration, meaning},
#define PALLADIUM_WAIST_HOPPER(file, name, effects, declaration, meaning) \
  {Row::name, #file, #name, 90, 90, -1, -1, effects, declaration, meaning},
#define PALLADIUM_WAIST_MATH(file, name, ulp_f32, ulp_f64, declaration, meaning) \
  {Row::name, #file, #name, 75, any_arch, ulp_f32, ulp_f64, pure, declaration, meaning},
#include "codegen/device/waist.def"
};

}  // namespace words

const std::map<std::string_view, Row>& by_name() {
  // Never destroyed: a compile in the background may be at it when the process ends. A child of
  // fork() must not find it half made.
  const forking::Section section;
  static const auto& names = *[] {
    auto* all = new std::map<std::string_view, Row>;
    for (const RowInfo& r : words::table) all->emplace(r.name, r.row);
    return all;
  }();
  return names;
}

}  // namespace

std::span<const RowInfo> rows() { return words::table; }

const RowInfo& info(Row row) { return words::table[static_cast<std::size_t>(row)]; }

std::optional<Row> row_named(std::string_view name) {
  const auto found = by_name().find(name);
  return found == by_name().end() ? std::nullopt : std::optional(found->second);
}

std::set<Row> rows_in(std::string_view text) {
  std::set<Row> found;
  std::string_view before;
  for (const std::string_view word : identifiers(text)) {
    const auto row = before == "pl" ? row_named(word) : std::nullopt;
    if (row) found.insert(*row);
    before = word;
  }
  return found;
}

Effects product_effects(bool rs) {
  using namespace words;
  const Effects a = rs ? reads(1, registers, async) : reads(1, shared, async);
  return updates(0, registers, async) | a | reads(2, shared, async) | completes(wgmma_group) |
         by(warpgroup);
}

}  // namespace palladium::device
