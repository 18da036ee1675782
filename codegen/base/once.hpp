// What is said once in a process, however often it comes true.
#pragma once

#include <string>

namespace palladium::warn {

/// A warning for the log, unless the same line was given here before.
void once(const std::string& line);

}  // namespace palladium::warn
