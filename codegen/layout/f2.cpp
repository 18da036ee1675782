#include "codegen/layout/f2.hpp"

#include <bit>

namespace palladium::layout {

Bits compose(std::span<const std::uint32_t> outer, std::span<const std::uint32_t> inner) {
  Bits images;
  for (const std::uint32_t column : inner) images.push_back(image_of(outer, column));
  return images;
}

Solver::Solver(std::span<const std::uint32_t> vectors) {
  for (const std::uint32_t v : vectors) add(v);
}

Solver::Row Solver::reduce(std::uint32_t vector) const {
  Row rest{vector, 0};
  for (std::uint32_t unseen = vector; unseen != 0;) {
    const int lead = 31 - std::countl_zero(unseen);
    if (rows_[lead].vector != 0) {
      rest.vector ^= rows_[lead].vector;
      rest.sum_of ^= rows_[lead].sum_of;
    }
    unseen = rest.vector & ((1u << lead) - 1);
  }
  return rest;
}

bool Solver::add(std::uint32_t vector) {
  Row rest = reduce(vector);
  rest.sum_of ^= 1u << added_++;
  if (rest.vector == 0) return false;
  rows_[31 - std::countl_zero(rest.vector)] = rest;
  ++rank_;
  return true;
}

std::optional<std::uint32_t> Solver::solve(std::uint32_t target) const {
  const Row rest = reduce(target);
  if (rest.vector != 0) return std::nullopt;
  return rest.sum_of;
}

int rank(std::span<const std::uint32_t> vectors) { return Solver(vectors).rank(); }

std::optional<Bits> inverse(std::span<const std::uint32_t> columns) {
  const Solver solver(columns);
  Bits images;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto image = solver.solve(1u << i);
    if (!image) return std::nullopt;
    images.push_back(*image);
  }
  return images;
}

}  // namespace palladium::layout
