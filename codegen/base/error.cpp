#include "palladium/error.hpp"

#include <cstring>
#include <utility>

namespace palladium {

std::string to_string(Location at) {
  if (at.line == 0) return "";
  const char* slash = std::strrchr(at.file, '/');
  return std::string(slash ? slash + 1 : at.file) + ":" + std::to_string(at.line);
}

Error::Error(std::string message) : message_(std::move(message)) {}
Error::~Error() = default;

CompileError::CompileError(Location at, const std::string& message)
    : Error(at.line == 0 ? message : message + "\n  at " + to_string(at)), at_(at) {}
CompileError::CompileError(const std::string& message) : Error(message) {}
CompileError::~CompileError() = default;

CudaError::~CudaError() = default;
InternalError::~InternalError() = default;

}  // namespace palladium
