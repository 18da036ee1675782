// Outputs: what a call of a kernel gives.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/array.hpp"

namespace palladium {

namespace detail {

/// What every field of a struct of arrays is made of.
struct AnyArray {
  operator Array() const;
};
template <class T, int N = 16>
consteval int array_fields() {
  constexpr bool fits = []<std::size_t... I>(std::index_sequence<I...>) {
    return requires { T{(static_cast<void>(I), AnyArray())...}; };
  }
  (std::make_index_sequence<N>());
  if constexpr (N == 0 || fits)
    return N;
  else
    return array_fields<T, N - 1>();
}

}  // namespace detail

/// What a call of a kernel gives: one array per output. One is an array wherever an array is asked
/// for, `auto y = k(x); auto z = k2(y); y.shape();`, with all of Array's members; of several each
/// has a number, and a name if out_type gives it one: `y[0]`, `y["lse"]`. Two come apart,
/// `auto [o, lse] = k(q, k, v);`; of more C++ must be told how many, which is known only when the
/// kernel runs: `auto [a, b, c] = k(x).unpack<3>();`. CompileError where they are not so many.
class PALLADIUM_API Outputs {
 public:
  explicit Outputs(std::vector<Array> arrays, Location at, std::vector<std::string> names = {})
      : arrays_(std::move(arrays)), names_(std::move(names)), count_(arrays_.size()), at_(at) {}

  /// `auto [a, b, c] = k(x).unpack<3>();`
  template <std::size_t N>
  std::array<Array, N> unpack() const {
    check("unpack: ", N, at_);
    std::array<Array, N> result;
    for (std::size_t i = 0; i < N; ++i) result[i] = arrays_[i];
    return result;
  }
  /// A plain struct of arrays: `struct Result { pl::Array o, lse; };`
  /// `auto [o, lse] = k(q, k, v).as<Result>();`
  template <class T>
  T as() const {
    constexpr int fields = std::is_aggregate_v<T> ? detail::array_fields<T>() : 0;
    static_assert(fields > 0, "palladium: as<T>() gives a plain struct of pl::Arrays");
    check("as: ", fields, at_);
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return T{arrays_[I]...}; }
    (std::make_index_sequence<fields>());
  }
  /// Of two outputs one, for `auto [o, lse] = k(q, k, v);`
  template <std::size_t I>
  requires(I < 2) const Array& get() const& {
    check("", 2, at_);
    return arrays_[I];
  }
  template <std::size_t I>
  requires(I < 2) Array get()
  const&& {
    check("", 2, at_);
    return arrays_[I];
  }
  /// By its name in out_type; CompileError with the list of names if there is none.
  const Array& operator[](const char* name) const& { return named(name); }
  Array operator[](const char* name) && { return named(name); }
  /// By its number, below 0 from the end; CompileError if there are not so many.
  template <std::integral I>
  const Array& operator[](I number) const& {
    return numbered(static_cast<std::int64_t>(number));
  }
  template <std::integral I>
  Array operator[](I number) && {
    return numbered(static_cast<std::int64_t>(number));
  }
  std::span<const Array> all() const { return arrays_; }

  /// The only output. `what` asks for it: a CompileError names that, and how many there are.
  const Array& only(const char* what, Location at = here()) const;
  operator Array() const { return only("an array", at_); }

  // Array's members, of the only output.
  explicit operator bool() const { return static_cast<bool>(only("a truth value", at_)); }
  Shape shape(Location at = here()) const { return only("shape", at).shape(); }
  int rank(Location at = here()) const { return only("rank", at).rank(); }
  DType dtype(Location at = here()) const { return only("dtype", at).dtype(); }
  ShapeDtype type(Location at = here()) const { return only("type", at).type(); }
  Device device(Location at = here()) const { return only("device", at).device(); }
  std::int64_t size(Location at = here()) const { return only("size", at).size(); }
  std::int64_t stride(int i, Location at = here()) const { return only("stride", at).stride(i); }
  bool is_dense(Location at = here()) const { return only("is_dense", at).is_dense(); }
  bool is_read_only(Location at = here()) const { return only("is_read_only", at).is_read_only(); }
  void* data(Location at = here()) const { return only("data", at).data(); }
  template <class T>
  T* data(Location at = here()) const {
    return only("data", at).template data<T>(at);
  }
  template <class T>
  std::span<T> values(Location at = here()) const& {
    return only("values", at).template values<T>(at);
  }
  template <class T>
  ArrayValues<T> values(Location at = here()) const&& {
    return Array(only("values", at)).template values<T>(at);
  }
  Array to(Device device, Location at = here()) const { return only("to", at).to(device, at); }
  Array copy(Location at = here()) const { return only("copy", at).copy(at); }
  Array astype(DType dtype, Location at = here()) const {
    return only("astype", at).astype(dtype, at);
  }
  Array reshape(const Shape& shape, Location at = here()) const {
    return only("reshape", at).reshape(shape, at);
  }
  void fill(detail::Number value, Location at = here()) const { only("fill", at).fill(value, at); }
  DLManagedTensor* to_dlpack(Location at = here()) const {
    return only("to_dlpack", at).to_dlpack(at);
  }
  DLManagedTensorVersioned* to_dlpack_versioned(Location at = here()) const {
    return only("to_dlpack_versioned", at).to_dlpack_versioned(at);
  }
  using Bytes = Array::Bytes;
  Bytes bytes(Location at = here()) const { return only("bytes", at).bytes(); }
  detail::Storage* storage(Location at = here()) const { return only("storage", at).storage(); }

 private:
  void check(const std::string& what, std::size_t expected, Location at) const;
  const Array& named(const char* name) const;
  const Array& numbered(std::int64_t number) const;
  std::string how_to_take() const;

  std::vector<Array> arrays_;
  std::vector<std::string> names_;
  std::size_t count_;  // where the arrays were moved away, they were so many
  Location at_;
};

}  // namespace palladium

/// `auto [a, b] = k(x)`: C++ asks the type for the number, so that two arrays alone come apart
/// without `.unpack`. Outputs::get() sees whether they are two.
template <>
struct std::tuple_size<palladium::Outputs> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, palladium::Outputs> {
  using type = palladium::Array;
};
