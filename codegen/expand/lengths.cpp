// What is written for several lengths of arrays that only a call knows: of each case the loops of
// nests go as far as any of its lengths does.
#include <algorithm>

#include "codegen/expand/expander.hpp"

namespace palladium::expand {

namespace {

bool ends(const lowered::Statement& s) {
  const auto* const p = std::get_if<lowered::LoopNest>(&s.what);
  return std::holds_alternative<lowered::IfWhole>(s.what) || (p != nullptr && !p->ends.empty());
}

}  // namespace

void Expander::expand_by_length(std::span<const lowered::Statement> list) {
  const lowered::LengthCases& c = l_.length_cases;
  if (c.empty()) return expand_list(list);
  const auto first = std::ranges::find_if(list, ends);
  const auto front = static_cast<std::size_t>(first - list.begin());
  expand_list(list.first(front));
  length_ = Length{
      .extent =
          g_.mapping.block_mappings[static_cast<std::size_t>(c.mapping)].array_aval.shape[c.along]};
  expand_cases(list.subspan(front), 1, c.tiles);
  length_.reset();
}

// Of arrays that reach into `least` to `most` tiles.
void Expander::expand_cases(std::span<const lowered::Statement> list, std::int64_t least,
                            std::int64_t most) {
  if (least == most) return apart([&] { expand_list(list); });
  const Length around = *length_;
  const std::int64_t shorter = (least + most) / 2, above = shorter * l_.length_cases.tile;
  const ExprId length = e_.as(i32, dim(around.extent));
  b_.open(thread::If{.condition = e_.plain(Operator::greater, length, number(above), bool_),
                     .body = {},
                     .uniform = true,
                     .longest = true});
  length_->above = above;
  expand_cases(list, shorter + 1, most);
  length_ = around;
  b_.close();
  b_.open(thread::Else{});
  length_->most = above;
  expand_cases(list, least, shorter);
  length_ = around;
  b_.close();
}

}  // namespace palladium::expand
