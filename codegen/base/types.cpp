#include "palladium/types.hpp"

#include <cstring>

#include "codegen/base/checked.hpp"
#include "codegen/base/dim.hpp"

namespace palladium {
namespace {

constexpr const char* dtype_names[] = {"none",   "bool",   "i8",  "i16",  "i32", "i64",
                                       "u8",     "u16",    "u32", "u64",  "i4",  "u4",
                                       "f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64"};

std::string name_of(const Shape& shape) {
  return shape.argument() < 0 ? "a shape" : "args[" + std::to_string(shape.argument()) + "]";
}

// With the sizes where they are known, in place of their symbols.
Dim known(const Dim& d) {
  const DimBinding* binding = DimBinding::current();
  return binding && binding->can_peek(d) ? Dim(binding->peek(d)) : d;
}
ShapeDtype known(ShapeDtype type) {
  for (int i = 0; i < type.shape.rank(); ++i) type.shape[i] = known(type.shape[i]);
  return type;
}

std::string with_size(const Dim& d) {
  const Dim size = known(d);
  return d.is_static() || !size.is_static() ? to_string(d) : to_string(d) + " = " + to_string(size);
}

bool unify(const Dim& a, const Dim& b) {
  DimBinding* binding = DimBinding::current();
  return binding ? binding->unify(a, b) : a == b;
}

}  // namespace

const char* DType::name() const { return dtype_names[kind_]; }

DType dtype_named(const char* name) {
  if (!name) return {};
  for (int k = DType::Bool; k <= DType::F64; ++k)
    if (std::strcmp(name, dtype_names[k]) == 0) return DType(static_cast<DType::Kind>(k));
  return {};
}

Shape::Shape(std::initializer_list<Dim> dims) {
  for (const Dim& d : dims) push_back(d);
}

void Shape::push_back(Dim d) {
  if (rank_ == max_rank)
    throw CompileError("a shape has at most " + std::to_string(max_rank) + " dimensions");
  dims_[rank_++] = d;
}

void Shape::require_rank(int rank) const {
  if (rank_ != rank)
    throw CompileError(name_of(*this) + " has rank " + std::to_string(rank_) + ", expected " +
                       std::to_string(rank));
}

bool Shape::is_static() const {
  for (const Dim& d : *this)
    if (!d.is_static()) return false;
  return true;
}

std::int64_t Shape::size() const {
  const Checked n = checked_product(*this);
  if (!n.fits())
    throw CompileError(name_of(*this) + " " + to_string(*this) +
                       " has more elements than 64 bits count");
  return n.value();
}

bool Shape::operator==(const Shape& o) const {
  if (rank_ != o.rank_) return false;
  DimBinding* binding = DimBinding::current();
  for (int i = 0; i < rank_; ++i) {
    const Dim &a = dims_[i], &b = o.dims_[i];
    if (a.same(b)) continue;
    if (!binding || !binding->can_peek(a) || !binding->can_peek(b) || !binding->equal(a, b))
      return false;
  }
  return true;
}

int Shape::position(int i) const {
  if (i >= -rank_ && i < 0) return i + rank_;
  throw CompileError(name_of(*this) + " has no dimension " + std::to_string(i) + ": its rank is " +
                     std::to_string(rank_));
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? "," : "") + to_string(shape[i]);
  return text + "]";
}

std::string to_string(const ShapeDtype& type) { return type.dtype.name() + to_string(type.shape); }

void require_equal(const Dim& a, const Dim& b) {
  if (unify(a, b)) return;
  throw CompileError("require_equal: expected equal extents, given " + with_size(a) + " and " +
                     with_size(b));
}

void require_multiple(const Dim& d, std::int64_t n, Location at) {
  if (n < 1)
    throw CompileError(at,
                       "require_multiple: expected a number from 1, given " + std::to_string(n));
  DimBinding* const binding = DimBinding::current();
  if (!binding && !d.is_static())
    throw CompileError(at, "require_multiple: '" + to_string(d) +
                               "' is symbolic; only an options function can ask for its size");
  if (binding ? binding->require_multiple(d, n) : d.value() % n == 0) return;
  throw CompileError("require_multiple: expected a multiple of " + std::to_string(n) + ", given " +
                     with_size(d));
}

void require_at_most(const Dim& d, const Dim& most) {
  const auto refuse = [&] {
    throw CompileError("require_at_most: expected at most " + with_size(most) + ", given " +
                       with_size(d));
  };
  if (d.is_static() && most.is_static()) return d.value() <= most.value() ? void() : refuse();
  DimBinding* const binding = DimBinding::current();
  if (!binding)
    throw CompileError("require_at_most: '" + to_string(d.is_static() ? most : d) +
                       "' is symbolic; only an options function can ask for its size");
  const Dim left = most - d;
  binding->require_range(left, 0, INT64_MAX);
  if (binding->can_peek(left) && binding->peek(left) < 0) refuse();
}

std::int64_t size_class(const Dim& d, std::int64_t least, Location at) {
  constexpr std::int64_t most_least = std::int64_t{1} << 62;
  if (least < 1 || least > most_least)
    throw CompileError(at, "size_class: expected a number from 1 to 2^62 as the least, given " +
                               std::to_string(least));
  const std::int64_t smallest = next_power_of_2(least);
  const auto class_of = [&](std::int64_t n) {
    return n == 0 ? 0 : std::max(smallest, next_power_of_2(n));
  };
  if (d.is_static()) return class_of(d.value());
  DimBinding* const binding = DimBinding::current();
  if (binding != nullptr && binding->can_peek(d)) {
    const std::int64_t most = class_of(binding->peek(d));
    binding->require_range(d, most == 0 ? 0 : most == smallest ? 1 : most / 2 + 1, most);
    return most;
  }
  const DimSizes said = promised(d);
  if (said.most == INT64_MAX)
    throw CompileError(at, "size_class: '" + to_string(d) +
                               "' is symbolic, and nothing is said of its size: pl::dim(name, "
                               "{.at_most = n})");
  const std::int64_t most = class_of(said.most);
  if (binding != nullptr) binding->require_range(d, 0, most);
  return most;
}

void require_equal(const ShapeDtype& a, const ShapeDtype& b) {
  bool equal = a.dtype == b.dtype && a.shape.rank() == b.shape.rank();
  for (int i = 0; equal && i < a.shape.rank(); ++i) equal = unify(a.shape[i], b.shape[i]);
  if (!equal)
    throw CompileError("require_equal: expected arrays of one shape and dtype, given " +
                       name_of(a.shape) + " " + to_string(known(a)) + " and " + name_of(b.shape) +
                       " " + to_string(known(b)));
}

}  // namespace palladium
