// Which products of an iteration are made of which.
#pragma once

#include <map>
#include <vector>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// The products of a loop's iteration in order, but for those of loops inside of it and those by
/// hand. What a product fills is made of it; what else a statement fills, of what it reads.
class ProductChains {
 public:
  struct Product {
    const Dot* dot = nullptr;
    Location at = {};
    const char* inside = nullptr;  // of what else than the loop it stands
    /// Another one, of whose result an operand is made; null: none.
    const Product* made_of = nullptr;
  };

  ProductChains(const Program& l, const Statements& iteration);

  std::size_t count() const { return all_.size(); }
  /// Null if it is by hand, or none of these.
  const Product* find(const Dot& d) const;
  /// The last one that is made of another: it could run while the next iteration begins. Null:
  /// none is.
  const Product* last_made_of_other() const;

 private:
  void find_in(const Statements& list, const char* inside);
  void follow(const Statements& list);
  void follow(const Statement& s);
  const Product* maker_of(StorageId storage) const;

  const Program& l_;
  std::vector<Product> all_;
  std::map<StorageId, const Product*> made_of_;  // one of those
};

}  // namespace palladium::passes
