// Index arithmetic of emitted text: sums of named terms whose divisibility is known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace palladium::cuda {

/// Whether an expression names the identifier, as a whole word.
bool names_identifier(std::string_view text, std::string_view identifier);

/// constant + sum of coefficient * name, where name is an i32 expression of the emitted text.
class Affine {
 public:
  struct Term {
    std::string name;
    std::int64_t coefficient = 1;
    std::int64_t multiple = 1;  // name is known to be a multiple of this
  };

  Affine() = default;
  Affine(std::int64_t constant) : constant_(constant) {}
  static Affine term(std::string name, std::int64_t multiple = 1);

  Affine operator+(const Affine& o) const;
  Affine operator*(std::int64_t factor) const;
  /// Without the terms named `name`.
  Affine without(const std::string& name) const;

  std::int64_t constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }
  std::int64_t coefficient(const std::string& name) const;
  /// Whether a term's expression names the identifier.
  bool mentions(std::string_view identifier) const;
  /// A number that every value is a multiple of; 0 for the constant 0.
  std::int64_t multiple() const;

  /// C++ text; `wide`: terms are computed in 64 bits.
  std::string text(bool wide = false) const;

 private:
  std::vector<Term> terms_;
  std::int64_t constant_ = 0;
};

}  // namespace palladium::cuda
