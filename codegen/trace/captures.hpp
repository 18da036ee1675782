// Captures by reference in functions that a kernel keeps.
#pragma once

#include <string>

#include "palladium/error.hpp"

namespace palladium::trace {

/// A line in the log, once, about such a function (palladium::detail::refers_to_stack): `what` is
/// "the kernel function", ...
void warn_of_captures(const std::string& kernel, const std::string& what, Location at);

}  // namespace palladium::trace
