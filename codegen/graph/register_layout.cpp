#include "codegen/graph/register_layout.hpp"

#include <algorithm>

#include "codegen/graph/type_rule.hpp"

namespace palladium::graph {
namespace {

constexpr const char* names[] = {"WG_SPLAT",
                                 "WG_STRIDED",
                                 "WGMMA",
                                 "WGMMA_8BIT",
                                 "WGMMA_UPCAST_2X",
                                 "WGMMA_UPCAST_4X",
                                 "WGMMA_TRANSPOSED",
                                 "MMA_LHS",
                                 "MMA_RHS",
                                 "MMA_ACC",
                                 "TILED"};
constexpr std::int64_t num_kinds = std::size(names);

void put(std::vector<std::int64_t>& to, const std::vector<int>& list) {
  to.push_back(static_cast<std::int64_t>(list.size()));
  to.insert(to.end(), list.begin(), list.end());
}

std::vector<int> take(const std::vector<std::int64_t>& from, std::size_t& at) {
  std::vector<int> list(static_cast<std::size_t>(from.at(at++)));
  for (int& n : list) n = static_cast<int>(from.at(at++));
  return list;
}

}  // namespace

std::vector<std::int64_t> RegisterLayout::encode(const Tiles& t) {
  std::vector<std::int64_t> to{static_cast<std::int64_t>(t.tiles.size())};
  for (const std::vector<int>& tile : t.tiles) put(to, tile);
  put(to, t.warp_dims);
  put(to, t.lane_dims);
  to.push_back(t.vector_dim);
  return to;
}

RegisterLayout::Tiles RegisterLayout::tiles() const {
  Tiles t;
  std::size_t at = 1;
  for (std::int64_t i = 0; i < numbers.at(0); ++i) t.tiles.push_back(take(numbers, at));
  t.warp_dims = take(numbers, at);
  t.lane_dims = take(numbers, at);
  t.vector_dim = static_cast<int>(numbers.at(at));
  return t;
}

std::vector<std::int64_t> RegisterLayout::encode() const {
  std::vector<std::int64_t> to{static_cast<std::int64_t>(kind),
                               static_cast<std::int64_t>(reduced.size())};
  to.insert(to.end(), reduced.begin(), reduced.end());
  to.insert(to.end(), numbers.begin(), numbers.end());
  return to;
}

bool RegisterLayout::is_well_formed(const std::vector<std::int64_t>& ints) {
  if (ints.size() < 2 || ints[0] < 0 || ints[0] >= num_kinds || ints[1] < 0 ||
      ints.size() < 2 + static_cast<std::size_t>(ints[1]))
    return false;
  const auto kind = static_cast<Kind>(ints[0]);
  const std::size_t first = 2 + static_cast<std::size_t>(ints[1]);
  const std::size_t count = ints.size() - first;
  if (kind != Kind::tiled) {
    const bool takes = kind == Kind::strided || kind == Kind::mma_lhs || kind == Kind::mma_rhs ||
                       kind == Kind::mma_acc;
    return count == (takes ? 1u : 0u);
  }
  // Lists of numbers with their lengths in front, and one number.
  std::size_t at = first + 1;
  std::int64_t lists = count > 0 ? ints[first] + 2 : -1;
  for (; lists > 0 && at < ints.size() && ints[at] >= 0; --lists)
    at += 1 + static_cast<std::size_t>(std::min<std::int64_t>(ints[at], 64));
  return lists == 0 && at + 1 == ints.size();
}

RegisterLayout RegisterLayout::of(const Inst& inst) {
  const std::vector<std::int64_t>& ints = inst.attr.ints;
  const auto first = ints.begin() + 2 + static_cast<std::ptrdiff_t>(ints[1]);
  return {static_cast<Kind>(ints[0]), {first, ints.end()}, {ints.begin() + 2, first}};
}

std::string to_string(const RegisterLayout& layout) {
  std::string text = names[static_cast<std::int64_t>(layout.kind)];
  for (std::size_t i = 0; i < layout.reduced.size(); ++i)
    text += (i ? ", " : ".reduce({") + std::to_string(layout.reduced[i]);
  return text + (layout.reduced.empty() ? "" : "})");
}

namespace typing {

Type rule_layout_cast(const Context& c) {
  const Type& x = value(c, 0);
  if (!RegisterLayout::is_well_formed(c.attr.ints)) c.fail("a layout is malformed");
  if (x.shape.empty()) c.fail("expected an array, given " + text(x));
  return x;
}

Type rule_print_layout(const Context& c) {
  expect_ints(c, 1);
  const auto at = static_cast<std::size_t>(c.ints()[0]);
  if (at >= c.attr.text.size() || c.attr.text.compare(at, 2, "{}") != 0)
    c.fail("expected a text with {}, given \"" + c.attr.text + "\"");
  return Type::none();
}

}  // namespace typing
}  // namespace palladium::graph
