#include "codegen/thread/vectorize.hpp"

#include <algorithm>

namespace palladium::thread {
namespace {

constexpr int widest_bytes = 16;

int limited(int width, std::int64_t multiple) {
  while (width > 1 && multiple % width != 0) width /= 2;
  return width;
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

}  // namespace palladium::thread
