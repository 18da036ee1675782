// One function for each alternative of a variant: std::visit(Overloaded{...}, v) does not compile
// while one is missing.
#pragma once

namespace palladium {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace palladium
