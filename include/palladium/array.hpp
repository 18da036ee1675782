// Array: a handle on the elements that kernels read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "palladium/half.hpp"
#include "palladium/types.hpp"

// The structs of the DLPack ABI, as dlpack.h names them.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace palladium {

/// A place for memory.
struct Device {
  enum class Kind : std::uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;

  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(int index = 0) { return {Kind::cuda, index}; }
  constexpr bool is_cpu() const { return kind == Kind::cpu; }
  constexpr bool is_cuda() const { return kind == Kind::cuda; }
  bool operator==(const Device&) const = default;
};
/// "cpu", "cuda:0".
PALLADIUM_API std::string to_string(Device device);

namespace detail {
class Storage;

template <class T>
constexpr DType dtype_of_arithmetic() {
  if constexpr (std::is_same_v<T, bool>)
    return bool_;
  else if constexpr (std::is_same_v<T, float>)
    return f32;
  else if constexpr (std::is_same_v<T, double>)
    return f64;
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    return sizeof(T) == 1 ? i8 : sizeof(T) == 2 ? i16 : sizeof(T) == 4 ? i32 : i64;
  else if constexpr (std::is_integral_v<T>)
    return sizeof(T) == 1 ? u8 : sizeof(T) == 2 ? u16 : sizeof(T) == 4 ? u32 : u64;
  else if constexpr (std::is_same_v<T, float16_t>)
    return f16;
  else if constexpr (std::is_same_v<T, bfloat16_t>)
    return bf16;
  else if constexpr (std::is_same_v<T, float8_e4m3_t>)
    return f8e4m3;
  else if constexpr (std::is_same_v<T, float8_e5m2_t>)
    return f8e5m2;
  else
    return DType();
}

/// Any number of C++'s, as it is.
struct Number {
  template <class T>
  requires std::is_convertible_v<T, float> Number(T x) {
    if constexpr (!std::is_integral_v<T>)
      kind = Kind::real, real = static_cast<double>(x);
    else if constexpr (std::is_signed_v<T>)
      kind = Kind::integer, integer = x;
    else
      kind = Kind::natural, natural = x;
  }
  enum class Kind : std::uint8_t { real, integer, natural } kind = Kind::real;
  union {
    double real = 0;
    std::int64_t integer;
    std::uint64_t natural;
  };
};

/// What a generic function of one parameter is given of an element: its index, of a vector's, or
/// its indices.
class PALLADIUM_API ElementIndex {
 public:
  ElementIndex(std::span<const std::int64_t> indices, Location at) : indices_(indices), at_(at) {}
  /// CompileError where there is not one.
  operator std::int64_t() const;
  operator std::span<const std::int64_t>() const { return indices_; }
  std::int64_t operator[](std::size_t dimension) const { return indices_[dimension]; }
  std::size_t size() const { return indices_.size(); }
  auto begin() const { return indices_.begin(); }
  auto end() const { return indices_.end(); }

 private:
  std::span<const std::int64_t> indices_;
  Location at_;
};

template <class F, std::size_t... I>
constexpr bool takes_indices(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, decltype(std::int64_t(I))...>;
}
/// Whether it is a generic function of one parameter. To ask such a one whether it takes an index,
/// or a span, is to compile its body, which may be for the other.
template <class F>
constexpr bool takes_element_index() {
  if constexpr (requires { &F::operator(); } || !std::is_class_v<F>)
    return false;
  else if constexpr (takes_indices<F>(std::make_index_sequence<2>()))
    return false;  // of any number of them
  else
    return std::is_invocable_v<F&, ElementIndex>;
}
/// A bit for each number of indices that a function takes; 0: it takes them as
/// std::span<const std::int64_t>.
template <class F>
constexpr unsigned indices_taken() {
  constexpr unsigned some = []<std::size_t... N>(std::index_sequence<N...>) {
    return ((unsigned{takes_indices<F>(std::make_index_sequence<N + 1>())} << (N + 1)) | ...);
  }
  (std::make_index_sequence<Shape::max_rank>());
  if constexpr (some != 0)
    return some;
  else
    return unsigned{std::is_invocable_v<F&>};
}
/// What it gives for these.
template <std::size_t n, class F>
Number number_at(F& element, const std::int64_t* index) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return Number(element(index[I]...)); }
  (std::make_index_sequence<n>());
}
}  // namespace detail

/// The dtype of a C++ type. Specialise it for your own, such as
/// `template <> inline constexpr pl::DType pl::dtype_of<__half> = pl::f16;`
template <class T>
inline constexpr DType dtype_of = detail::dtype_of_arithmetic<T>();

/// What Array::random draws: numbers in [low, high), before they are rounded to the dtype. Where
/// both are 0: floats in [0, 1), every integer that the dtype has, false and true.
struct RandomOptions {
  std::uint64_t seed = 0;
  double low = 0, high = 0;
};

struct ViewOptions {
  /// In elements, one per dimension; empty: row-major without gaps.
  std::span<const std::int64_t> strides = {};
  /// Where a raw pointer points to is asked of the CUDA driver; this spares the question.
  const Device* device = nullptr;
  bool read_only = false;
};

template <class T>
class ArrayValues;

/// Elements of one dtype in host or device memory, owned or only viewed. Copying a handle copies
/// no elements; the memory of an owning array lives until its last handle is gone.
class PALLADIUM_API Array {
 public:
  /// No array at all.
  Array() = default;
  Array(const Array& o) noexcept;
  Array(Array&& o) noexcept;
  Array& operator=(const Array& o) noexcept;
  Array& operator=(Array&& o) noexcept;
  ~Array();

  /// Owning arrays, dense. `empty` leaves the elements undefined.
  static Array empty(const Shape& shape, DType dtype, Device device = Device::cpu(),
                     Location at = here());
  static Array zeros(const Shape& shape, DType dtype, Device device = Device::cpu(),
                     Location at = here());
  /// A one-dimensional array of the CPU with these elements.
  template <class T>
  static Array of(std::initializer_list<T> values, Location at = here()) {
    Array a = empty({values.size()}, dtype_of<T>, Device::cpu(), at);
    std::size_t i = 0;
    for (const T& v : values) static_cast<T*>(a.data())[i++] = v;
    return a;
  }

  /// An owning array whose elements are all `value`, converted as a cast in a kernel would.
  static Array full(const Shape& shape, DType dtype, detail::Number value,
                    Device device = Device::cpu(), Location at = here());
  /// A dense array of the CPU: element(i, j, ...) at [i,j,...], one std::int64_t for each
  /// dimension, or element(std::span<const std::int64_t>) of all of them; the `i` of `[](auto i)`
  /// may be used as either. It gives any number, converted as a cast in a kernel would.
  template <class F>
  static Array from_function(const Shape& shape, DType dtype, F element, Location at = here()) {
    if constexpr (detail::takes_element_index<F>()) {
      const auto generic = [&element, at](std::span<const std::int64_t> indices) {
        if constexpr (std::is_same_v<decltype(element(detail::ElementIndex(indices, at))),
                                     detail::ElementIndex>)
          return std::int64_t{element(detail::ElementIndex(indices, at))};
        else
          return element(detail::ElementIndex(indices, at));
      };
      return from_function(shape, dtype, generic, at);
    } else {
      return from_indices(shape, dtype, element, at);
    }
  }
  /// Numbers drawn evenly, the same for a seed on every machine.
  static Array random(const Shape& shape, DType dtype, RandomOptions options = {},
                      Device device = Device::cpu(), Location at = here());

  /// Memory of the caller's, which must outlive every use.
  static Array view(void* data, const Shape& shape, DType dtype, ViewOptions options = {},
                    Location at = here());
  template <class T>
  static Array view(std::span<T> values, const Shape& shape, Location at = here()) {
    return view_host(const_cast<std::remove_const_t<T>*>(values.data()), values.size(), shape,
                     dtype_of<std::remove_const_t<T>>, std::is_const_v<T>, at);
  }
  template <class T>
  static Array view(std::span<T> values, Location at = here()) {
    return view(values, {values.size()}, at);
  }

  /// Takes over a tensor of another library (PyTorch, JAX, CuPy, ...): its deleter is called when
  /// the last handle is gone. CompileError, and the tensor stays the caller's, if it cannot be
  /// viewed. The caller orders its streams.
  static Array from_dlpack(DLManagedTensor* tensor, Location at = here());
  static Array from_dlpack(DLManagedTensorVersioned* tensor, Location at = here());
  /// A tensor that shares this array's memory and keeps it alive until its deleter is called.
  DLManagedTensor* to_dlpack(Location at = here()) const;
  DLManagedTensorVersioned* to_dlpack_versioned(Location at = here()) const;

  /// This array on `device`: the same handle if it is there, else a dense copy, ready on return.
  /// The copy is made in the stream of the call that this array comes from, else in the default
  /// stream.
  Array to(Device device, Location at = here()) const;
  /// A dense copy on the same device, ready on return.
  Array copy(Location at = here()) const;

  /// A dense copy of another dtype on the same device, converted as a cast in a kernel would, ready
  /// on return. The CPU converts.
  Array astype(DType dtype, Location at = here()) const;
  /// Makes every element `value`, converted as a cast in a kernel would. Arrays of a GPU must be
  /// dense.
  void fill(detail::Number value, Location at = here()) const;

  explicit operator bool() const { return dtype_ != DType(); }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  DType dtype() const { return dtype_; }
  ShapeDtype type() const { return {shape_, dtype_}; }
  Device device() const { return device_; }
  /// Number of elements.
  std::int64_t size() const { return size_; }
  /// Distance, in elements, along dimension i; a negative one counts from the end. CompileError if
  /// there is no such dimension.
  std::int64_t stride(int i) const {
    (void)shape_[i];
    return strides_[i < 0 ? i + rank() : i];
  }
  /// Row-major without gaps.
  bool is_dense() const { return dense_; }
  bool is_read_only() const { return read_only_; }

  /// First byte, wherever it is.
  void* data() const { return data_; }
  /// First element; CompileError if the elements are not of type T.
  template <class T>
  T* data(Location at = here()) const {
    return static_cast<T*>(typed(dtype_of<std::remove_const_t<T>>, std::is_const_v<T>, at));
  }
  /// The elements of a dense array on the CPU.
  template <class T>
  std::span<T> values(Location at = here()) const& {
    require_host(at);
    return {data<T>(at), static_cast<std::size_t>(size_)};
  }
  /// Of an array without a name; they keep it: `for (float x : k(a).to(device).values<float>())`.
  template <class T>
  ArrayValues<T> values(Location at = here()) const&& {
    return ArrayValues<T>(*this, values<T>(at));
  }

  /// A handle on the same memory with another shape of as many elements; dense arrays only.
  Array reshape(const Shape& shape, Location at = here()) const;

  /// Half-open range of bytes that elements lie in; empty for an array without elements.
  struct Bytes {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
  };
  Bytes bytes() const;

  /// Takes over one reference to `storage`; null for memory of the caller's.
  static Array of_storage(detail::Storage* storage, void* data, const Shape& shape, DType dtype,
                          Device device, const ViewOptions& options, Location at);
  detail::Storage* storage() const { return storage_; }

 private:
  using Element = detail::Number (*)(void* f, const std::int64_t* index, int rank);
  template <class F>
  static Array from_indices(const Shape& shape, DType dtype, F& element, Location at) {
    constexpr unsigned taken = detail::indices_taken<F>();
    // One that is not asked for a span may have a body that does not compile with it.
    if constexpr (taken == 0)
      static_assert(
          std::is_invocable_v<F&, std::span<const std::int64_t>>,
          "from_function: expected a function of one std::int64_t for each dimension, or of "
          "std::span<const std::int64_t> for all of them");
    const auto call = [](void* f, const std::int64_t* index, int rank) -> detail::Number {
      F& element = *static_cast<F*>(f);
      if constexpr (taken == 0) {
        return element(std::span<const std::int64_t>(index, static_cast<std::size_t>(rank)));
      } else {
        detail::Number number(0);
        [&]<std::size_t... N>(std::index_sequence<N...>) {
          (number_of_rank<N, taken>(number, element, index, rank), ...);
        }
        (std::make_index_sequence<Shape::max_rank + 1>());
        return number;
      }
    };
    return from_elements(shape, dtype, call, &element, taken, at);
  }
  static Array from_elements(const Shape& shape, DType dtype, Element element, void* f,
                             unsigned taken, Location at);
  template <std::size_t n, unsigned taken, class F>
  static void number_of_rank(detail::Number& number, F& element, const std::int64_t* index,
                             int rank) {
    if constexpr ((taken >> n & 1) != 0)
      if (rank == static_cast<int>(n)) number = detail::number_at<n>(element, index);
  }
  static Array view_host(void* data, std::size_t count, const Shape& shape, DType dtype,
                         bool read_only, Location at);
  void* typed(DType wanted, bool constant, Location at) const;
  void require_host(Location at) const;

  detail::Storage* storage_ = nullptr;
  void* data_ = nullptr;
  std::int64_t size_ = 0;
  DType dtype_ = {};
  bool dense_ = true;
  bool read_only_ = false;
  Device device_ = {};
  Shape shape_ = {};
  std::int64_t strides_[Shape::max_rank] = {};
};

/// Elements, and the array whose they are.
template <class T>
class ArrayValues : public std::span<T> {
 public:
  ArrayValues(Array array, std::span<T> values) : std::span<T>(values), array_(std::move(array)) {}

 private:
  Array array_;
};

struct PrintOptions {
  int precision = 6;              // significant digits of floats
  std::int64_t threshold = 1000;  // of more elements only those at the edges are shown
  std::int64_t edge_items = 3;    // at either end of each dimension
};
/// The elements as NumPy writes them, row in brackets by row. Those of a GPU are copied first.
PALLADIUM_API std::string to_string(const Array& array, PrintOptions options = {},
                                    Location at = here());
/// The same to stdout, and a new line.
PALLADIUM_API void print(const Array& array, PrintOptions options = {}, Location at = here());

}  // namespace palladium
