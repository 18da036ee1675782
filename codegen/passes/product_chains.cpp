#include "codegen/passes/product_chains.hpp"

#include <algorithm>

#include "codegen/lowered/effects.hpp"

namespace palladium::passes {

ProductChains::ProductChains(const Program& l, const Statements& iteration) : l_(l) {
  find_in(iteration, nullptr);
  if (all_.size() > 1) follow(iteration);
}

void ProductChains::find_in(const Statements& list, const char* inside) {
  for (const Statement& s : list) {
    const Dot* const d = std::get_if<Dot>(&s.what);
    if (d != nullptr && !graph::is_product_by_hand(l_.graph[d->inst].op))
      all_.push_back({.dot = d, .at = s.at, .inside = inside});
    if (repeats(s)) continue;
    const bool chosen =
        std::holds_alternative<When>(s.what) || std::holds_alternative<Switch>(s.what);
    const char* const here = chosen ? "a product of its loop stands under a condition"
                                    : "a product of its loop stands in a scope of its own";
    for_each_body(s, [&](const Statements& body) { find_in(body, here); });
  }
}

void ProductChains::follow(const Statements& list) {
  for (const Statement& s : list) {
    follow(s);
    for_each_body(s, [&](const Statements& body) { follow(body); });
  }
}

void ProductChains::follow(const Statement& s) {
  const Effects all = effects(l_, s);
  const Dot* const d = std::get_if<Dot>(&s.what);
  const auto product = d == nullptr ? all_.end() : std::ranges::find(all_, d, &Product::dot);
  Product* const here = product == all_.end() ? nullptr : &*product;
  const Product* of = here;
  if (here != nullptr)
    for (const StorageId operand : {d->a, d->b})
      if (const Product* const other = maker_of(operand)) here->made_of = other;
  for (const Effect& e : all)
    if (here == nullptr && e.reads() && maker_of(e.storage) != nullptr) of = maker_of(e.storage);
  if (of == nullptr) return;
  for (const Effect& e : all)
    if (e.writes() && e.storage) made_of_[e.storage] = of;
}

const ProductChains::Product* ProductChains::find(const Dot& d) const {
  const auto found = std::ranges::find(all_, &d, &Product::dot);
  return found == all_.end() ? nullptr : &*found;
}

const ProductChains::Product* ProductChains::last_made_of_other() const {
  const auto found = std::find_if(all_.rbegin(), all_.rend(),
                                  [](const Product& p) { return p.made_of != nullptr; });
  return found == all_.rend() ? nullptr : &*found;
}

const ProductChains::Product* ProductChains::maker_of(StorageId storage) const {
  const auto found = made_of_.find(storage);
  return found == made_of_.end() ? nullptr : found->second;
}

}  // namespace palladium::passes
