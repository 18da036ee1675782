// What a kernel tells while it runs: lines, and conditions that must hold.
#pragma once

#include <utility>

#include "palladium/value.hpp"

namespace palladium {

namespace detail {

/// A format string and the user's line.
class DebugFormat {
 public:
  DebugFormat(const char* text, Location at = here()) : text_(text), at_(at) {}
  const char* text() const { return text_; }
  Location at() const { return at_; }

 private:
  const char* text_;
  Location at_;
};

PALLADIUM_API void debug_print(const DebugFormat& format, const Operand* values, int count);

}  // namespace detail

/// Prints a line to stdout, once for each Pallas thread that comes by, each {} being a scalar; of
/// one array a line for each element, "[1, 0]: 2.5" standing for the {}. A brace is written {{ or
/// }}. Lines of one thread keep their order. The interpreter prints at once; what a kernel prints
/// on a GPU comes when somebody waits for it: an array is read, pl::debug_flush() is called.
///
/// CompileError where the format holds anything but {} in braces, or not one for each value, and
/// for an array among other values.
template <class... Values>
void debug_print(const detail::DebugFormat& format, Values&&... values) {
  const Operand all[] = {Operand(std::forward<Values>(values))..., Operand(0)};
  detail::debug_print(format, all, sizeof...(Values));
}

/// Where the condition, of an array any element, does not hold, the call fails with a CompileError
/// that says the message, the user's line and the program; on a GPU it is thrown where
/// debug_print's lines come, the kernel goes on until then, and what it computes means nothing.
/// Nothing is recorded unless checks are enabled while the body is traced.
PALLADIUM_API void debug_check(const Operand& condition, const char* message);

/// Whether bodies record pl::debug_check from now on; kernels that were traced before are traced
/// anew when they are called. Else it is PALLADIUM_DEBUG that says so.
PALLADIUM_API void enable_debug_checks(bool enable = true);
PALLADIUM_API bool debug_checks_enabled();

}  // namespace palladium
