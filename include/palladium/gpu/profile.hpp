// Scopes of a body in the profile of a launch: what a kernel was at, and for how long.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "palladium/value.hpp"

namespace palladium::detail {

/// A scope that is recorded, unless the kernel is not profiled.
class ScopeMark {
 public:
  PALLADIUM_API ScopeMark(const char* name, Location at);
  ScopeMark(const ScopeMark&) = delete;
  PALLADIUM_API void end() const;

 private:
  const char* name_;
  Location at_;
  int number_ = -1;
};

}  // namespace palladium::detail

namespace palladium::gpu {

/// Runs the body, and gives what it returns; CompilerParams::profile_space says that what begins
/// and ends here is written down, when it does, for each warpgroup. Else it is nothing.
template <std::invocable F>
auto named_scope(const char* name, F&& body, Location at = here()) {
  const detail::ScopeMark mark(name, at);
  if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
    body();
    mark.end();
  } else {
    auto result = body();
    mark.end();
    return result;
  }
}

}  // namespace palladium::gpu
