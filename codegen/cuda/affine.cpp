#include "codegen/cuda/affine.hpp"

#include <cctype>
#include <numeric>

namespace palladium::cuda {

bool names_identifier(std::string_view text, std::string_view identifier) {
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (std::size_t at = text.find(identifier); at != text.npos;
       at = text.find(identifier, at + 1)) {
    const std::size_t end = at + identifier.size();
    if ((at == 0 || !is_name(text[at - 1])) && (end == text.size() || !is_name(text[end])))
      return true;
  }
  return false;
}

bool Affine::mentions(std::string_view identifier) const {
  for (const Term& t : terms_)
    if (names_identifier(t.name, identifier)) return true;
  return false;
}

Affine Affine::term(std::string name, std::int64_t multiple) {
  Affine a;
  a.terms_.push_back({std::move(name), 1, multiple});
  return a;
}

Affine Affine::operator+(const Affine& o) const {
  Affine sum = *this;
  sum.constant_ += o.constant_;
  for (const Term& t : o.terms_) {
    bool merged = false;
    for (Term& s : sum.terms_)
      if (s.name == t.name) {
        s.coefficient += t.coefficient;
        merged = true;
      }
    if (!merged) sum.terms_.push_back(t);
  }
  std::erase_if(sum.terms_, [](const Term& t) { return t.coefficient == 0; });
  return sum;
}

Affine Affine::operator*(std::int64_t factor) const {
  Affine product = *this;
  product.constant_ *= factor;
  for (Term& t : product.terms_) t.coefficient *= factor;
  if (factor == 0) product.terms_.clear();
  return product;
}

Affine Affine::without(const std::string& name) const {
  Affine rest = *this;
  std::erase_if(rest.terms_, [&](const Term& t) { return t.name == name; });
  return rest;
}

std::int64_t Affine::coefficient(const std::string& name) const {
  for (const Term& t : terms_)
    if (t.name == name) return t.coefficient;
  return 0;
}

std::int64_t Affine::multiple() const {
  std::int64_t m = constant_;
  for (const Term& t : terms_) m = std::gcd(m, t.coefficient * t.multiple);
  return m < 0 ? -m : m;
}

std::string Affine::text(bool wide) const {
  std::string out;
  for (const Term& t : terms_) {
    std::string name = wide ? "i64(" + t.name + ")" : t.name;
    if (t.coefficient == -1)
      name = "-" + name;
    else if (t.coefficient != 1)
      name += " * " + std::to_string(t.coefficient);
    out += (out.empty() ? "" : " + ") + name;
  }
  if (constant_ > 0 || out.empty())
    out += (out.empty() ? "" : " + ") + std::to_string(constant_);
  else if (constant_ < 0)
    out += " - " + std::to_string(-constant_);
  return out;
}

}  // namespace palladium::cuda
