#include "codegen/layout/terms.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace palladium::layout {
namespace {

Bits fields(const Layout& l, const Bits& images, int d) {
  Bits list;
  for (const std::uint32_t image : images) list.push_back(l.field(d, image));
  return list;
}

std::uint32_t images_of(const Terms& terms) {
  std::uint32_t bits = 0;
  for (const Term& t : terms.terms) bits |= t.shift < 0 ? t.mask >> -t.shift : t.mask << t.shift;
  return bits;
}

}  // namespace

Terms terms_of(std::span<const std::uint32_t> columns) {
  std::map<int, std::uint32_t> mask_by_shift;
  Terms result;
  std::uint32_t seen = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    result.disjoint &= (seen & columns[i]) == 0;
    seen |= columns[i];
    for (std::uint32_t rest = columns[i]; rest != 0; rest &= rest - 1) {
      mask_by_shift[std::countr_zero(rest) - static_cast<int>(i)] |= 1u << i;
    }
  }
  for (const auto& [shift, mask] : mask_by_shift) result.terms.push_back({mask, shift});
  return result;
}

std::uint32_t evaluate(const Terms& terms, std::uint32_t v) {
  std::uint32_t sum = 0;
  for (const Term& t : terms.terms) {
    sum ^= t.shift < 0 ? (v & t.mask) >> -t.shift : (v & t.mask) << t.shift;
  }
  return sum;
}

std::vector<Coordinate> coordinates(const Layout& l) {
  std::vector<Coordinate> list(l.domain.size());
  std::int64_t inner = 1;
  for (int d = l.rank() - 1; d >= 0; --d) {
    Coordinate& c = list[d];
    c.thread = terms_of(fields(l, l.thread(), d));
    c.reg = terms_of(fields(l, l.reg, d));
    c.disjoint = (images_of(c.thread) & images_of(c.reg)) == 0;
    c.repeats = l.repetitions(d) > 1;
    c.repetition_shift = static_cast<int>(l.reg.size());
    c.repetition_divisor = inner;
    c.tile = l.tile(d);
    inner *= l.repetitions(d);
  }
  std::int64_t outer = 1;
  for (int d = 0; d < l.rank(); ++d) {
    list[d].repetition_modulus = outer > 1 ? l.repetitions(d) : 0;
    outer *= l.repetitions(d);
  }
  return list;
}

std::int64_t evaluate(const Coordinate& c, int t, std::int64_t k) {
  const auto low = static_cast<std::uint32_t>(k & ((std::int64_t{1} << c.repetition_shift) - 1));
  std::int64_t value = evaluate(c.thread, static_cast<std::uint32_t>(t)) ^ evaluate(c.reg, low);
  if (c.repeats) {
    std::int64_t repetition = (k >> c.repetition_shift) / c.repetition_divisor;
    if (c.repetition_modulus != 0) repetition %= c.repetition_modulus;
    value += repetition * c.tile;
  }
  return value;
}

std::optional<Terms> terms_of_table(std::span<const int> table) {
  if (table.empty()) return std::nullopt;
  Bits columns;
  const auto linear = [&](std::size_t k) {
    return image_of(columns, static_cast<std::uint32_t>(k));
  };
  for (std::size_t bit = 1; bit < table.size(); bit *= 2) {
    std::uint32_t column = 0;  // of the first entry with this top bit that says anything
    for (std::size_t k = bit; k < std::min(2 * bit, table.size()); ++k) {
      if (table[k] < 0) continue;
      column = static_cast<std::uint32_t>(table[k]) ^ linear(k - bit);
      break;
    }
    columns.push_back(column);
  }
  for (std::size_t k = 0; k < table.size(); ++k) {
    if (table[k] >= 0 && static_cast<std::uint32_t>(table[k]) != linear(k)) return std::nullopt;
  }
  return terms_of(columns);
}

}  // namespace palladium::layout
