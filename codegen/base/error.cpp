#include "palladium/error.hpp"

#include <cstring>
#include <utility>

namespace palladium {

std::string to_string(Location at) {
  if (at.line == 0) return "";
  const char* slash = std::strrchr(at.file, '/');
  return std::string(slash ? slash + 1 : at.file) + ":" + std::to_string(at.line);
}

namespace {

// A report may end in it already.
std::string with_line(const std::string& message, Location at) {
  const std::string line = at.line == 0 ? "" : "\n  at " + to_string(at);
  return message.ends_with(line) ? message : message + line;
}

}  // namespace

Error::Error(std::string message) : message_(std::move(message)) {}
Error::~Error() = default;

CompileError::CompileError(Location at, const std::string& message)
    : Error(with_line(message, at)), at_(at) {}
CompileError::CompileError(const std::string& message) : Error(message) {}
CompileError::~CompileError() = default;

CudaError::~CudaError() = default;
InternalError::~InternalError() = default;

}  // namespace palladium
