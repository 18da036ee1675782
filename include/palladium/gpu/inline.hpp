// Text of the user's own in a kernel: CUDA C++, or PTX, on values in registers and views of memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/control.hpp"
#include "palladium/gpu/layout.hpp"
#include "palladium/ref.hpp"

namespace palladium::gpu {

/// The type of a value, and how threads hold it; without a layout as all values of its shape that
/// the text is given without one.
struct ShapeDtypeStruct {
  Shape shape = {};
  DType dtype = {};
  std::optional<Layout> layout = {};
};

/// What the text does with a Ref. Nothing else of memory is its business: barriers are placed, and
/// races found, by what is said here.
enum class InlineAccess : std::uint8_t { reads, writes, updates };
inline constexpr InlineAccess reads = InlineAccess::reads, writes = InlineAccess::writes,
                              updates = InlineAccess::updates;

/// What the text is given by a name: a value, of which it gets the registers of its thread,
/// `T (&name)[n]`, or as a scalar the number; or a Ref, which it gets as a `pl::View<T, rank>`.
class InlineOperand {
 public:
  PALLADIUM_API InlineOperand(std::string name, const Operand& value,
                              std::optional<Layout> layout = {});
  InlineOperand(std::string name, const Ref& ref, InlineAccess access, Location at = here())
      : name_(std::move(name)), ref_(ref), access_(access), at_(at) {}

 private:
  friend class detail::Access;
  std::string name_;
  Value value_;
  std::optional<Ref> ref_;
  std::optional<Layout> layout_;
  InlineAccess access_ = reads;
  Location at_;
};

/// What the text sets: the registers of its thread, or of shape {} a number, the same in all
/// threads.
struct InlineResult {
  std::string name;
  ShapeDtypeStruct type;
};

/// What a text means, said by operations: what a lambda records that returns as many Values as the
/// text has results. It is called at once.
class Meaning {
 public:
  Meaning() = default;
  template <std::invocable F>
  Meaning(const F& f)
      : function_(&f), record_([](detail::Building& building, const void* function) {
          detail::record_region(building, *static_cast<const F*>(function));
        }) {}
  explicit operator bool() const { return record_ != nullptr; }
  void record(detail::Building& building) const { record_(building, function_); }

 private:
  const void* function_ = nullptr;
  void (*record_)(detail::Building&, const void*) = nullptr;
};

/// Designators stand in this order.
struct InlineOptions {
  std::string name = "text";  ///< of the function in the emitted text, and in messages
  /// PTX instead: run for each register, in which `$name` is a register of an operand or result, or
  /// the address of a Ref.
  bool ptx = false;
  Meaning interpret = {};  ///< what the interpreter does in its place
};

}  // namespace palladium::gpu

namespace palladium::detail {

/// The text with all that it is given, while it is recorded.
struct InlineText {
  const char* text;
  const std::vector<gpu::InlineOperand>& operands;
  const gpu::InlineResult* results;
  std::size_t count;  // of results
  const gpu::InlineOptions& options;
};

}  // namespace palladium::detail

namespace palladium::gpu {

/// Runs the text, the body of a `__device__` function, in all threads that come here, once each:
/// CUDA C++ on what the operands and results are called.
PALLADIUM_API void inline_cuda(const char* text, const std::vector<InlineOperand>& operands,
                               const InlineOptions& options = {},
                               const detail::Expression& at = {});
/// The same of a text that sets results: gives a Value; of several, `auto [a, b] = ...`.
template <std::size_t N>
auto inline_cuda(const char* text, const std::vector<InlineOperand>& operands,
                 const InlineResult (&results)[N], const InlineOptions& options = {},
                 const detail::Expression& at = {}) {
  detail::Building building(detail::InlineText{text, operands, results, N, options}, at);
  if (options.interpret) options.interpret.record(building);
  if constexpr (N == 1)
    return detail::results<Value>(building);
  else
    return detail::results<Values<N>>(building);
}

}  // namespace palladium::gpu
