#include "palladium/types.hpp"

#include <cstring>

namespace palladium {
namespace {

constexpr const char* dtype_names[] = {"none", "bool", "i8",  "i16", "i32",  "i64", "u8",
                                       "u16",  "u32",  "u64", "f16", "bf16", "f32", "f64"};

}  // namespace

const char* DType::name() const { return dtype_names[kind_]; }

DType dtype_named(const char* name) {
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

bool Shape::is_static() const {
  for (const Dim& d : *this)
    if (!d.is_static()) return false;
  return true;
}

std::int64_t Shape::size() const {
  std::int64_t n = 1;
  for (const Dim& d : *this) n *= d.value();
  return n;
}

bool Shape::operator==(const Shape& o) const {
  if (rank_ != o.rank_) return false;
  for (int i = 0; i < rank_; ++i)
    if (!dims_[i].same(o.dims_[i])) return false;
  return true;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? "," : "") + to_string(shape[i]);
  return text + "]";
}

std::string to_string(const ShapeDtype& type) { return type.dtype.name() + to_string(type.shape); }

}  // namespace palladium
