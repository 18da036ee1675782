#include "codegen/thread/vectorize.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "codegen/thread/evaluate.hpp"

namespace palladium::thread {
namespace {

constexpr int widest_bytes = 16;
constexpr std::int64_t most_of_span = 64;  // bytes: registers that each thread has of it

int limited(int width, std::int64_t multiple) {
  while (width > 1 && multiple % width != 0) width /= 2;
  return width;
}

std::int64_t rounded_down(std::int64_t n, std::int64_t to) { return n - (n % to + to) % to; }

// The places of the elements; nothing where anything but their numbers is in them.
std::optional<std::set<std::int64_t>> places(const Exprs& exprs, const Affine& at, ExprId element,
                                             int vector) {
  std::set<std::int64_t> all;
  for (std::int64_t k = 0; k < vector; ++k) {
    std::int64_t place = at.constant();
    for (const Affine::Term& t : at.terms()) {
      const auto value = evaluate(exprs, t.of, [&](VariableId v) {
        return v == exprs[element].variable ? std::optional(k) : std::nullopt;
      });
      if (!value) return {};
      place += t.coefficient * *value;
    }
    all.insert(place);
  }
  return all;
}

}  // namespace

Width width_of(const Exprs& exprs, const Address& a, const Bounds& bounds, ExprId element,
               int vector) {
  const auto moves_otherwise = [&](const Affine& x) {
    return (exprs.depends(x.without(element)) & (on_element | in_element)) != 0;
  };
  if (a.offset.coefficient(element) != 1 || moves_otherwise(a.offset)) return {};
  int width = std::min<int>(vector, widest_bytes / a.dtype.bytes());
  width = limited(width, a.alignment);
  width = limited(width, exprs.multiple(a.offset.without(element)));
  int whole = width;  // elements that are in or out of bounds together
  bool upper = true;
  for (const Bound& b : bounds) {
    const std::int64_t step = b.at.coefficient(element);
    if (step > 1 || step < 0 || moves_otherwise(b.at)) return {};
    if (step == 0) continue;
    upper = upper && !b.lower;
    whole = limited(whole, exprs.facts(b.limit).multiple);
    whole = limited(whole, exprs.multiple(b.at.without(element)));
  }
  if (whole < width && upper && !a.zeros && (!a.shared || a.resident)) return {width, true};
  return {whole, false};
}

int width_around(const Exprs& exprs, const Address& a, ExprId element, int vector) {
  const Affine first = a.offset.without(element);
  if (a.offset.coefficient(element) != 1 || (exprs.depends(first) & (on_element | in_element)) != 0)
    return 0;
  const int width = limited(std::min<int>(vector, widest_bytes / a.dtype.bytes()), a.alignment);
  return limited(width, exprs.multiple(first + Affine(-first.constant())));
}

std::optional<Span> span_of(const Exprs& exprs, const Address& a, ExprId element, int vector) {
  Span span{.at = Affine(a.offset.constant())};
  for (const Affine::Term& t : a.offset.terms()) {
    const bool moves = (exprs.depends(t.of) & (on_element | in_element)) != 0;
    Affine& to = moves ? span.at : span.first;
    to = to + Affine::term(t.of, t.coefficient);
  }
  span.width = limited(widest_bytes / a.dtype.bytes(), std::gcd(a.alignment, a.together));
  span.width = limited(span.width, exprs.multiple(span.first));
  if (span.width == 1 || span.at.is_constant()) return {};
  const auto all = places(exprs, span.at, element, vector);
  if (!all) return {};
  std::set<std::int64_t> accesses;
  for (const std::int64_t place : *all) accesses.insert(rounded_down(place, span.width));
  const std::int64_t low = *accesses.begin();
  span.count = *accesses.rbegin() + span.width - low;
  if (std::ssize(accesses) * span.width != span.count || accesses.size() >= all->size() ||
      span.count * a.dtype.bytes() > most_of_span)
    return {};
  span.first = span.first + Affine(low);
  span.at = span.at + Affine(-low);
  return span;
}

}  // namespace palladium::thread
