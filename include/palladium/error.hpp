// The three exceptions that Palladium throws, and the user's source line that they name.
#pragma once

#include <exception>
#include <string>

#include "palladium/api.hpp"

namespace palladium {

/// A line of the user's C++.
struct Location {
  const char* file = "";
  int line = 0;
  bool operator==(const Location&) const = default;
};

/// The caller's line; used as a default argument, nested default arguments resolve to the
/// outermost call (g++ and clang).
constexpr Location here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {file, line};
}

/// "attention.cpp:41": base name and line, or "" for an unknown location.
PALLADIUM_API std::string to_string(Location at);

/// Base of all exceptions thrown by Palladium.
class PALLADIUM_API Error : public std::exception {
 public:
  explicit Error(std::string message);
  ~Error() override;
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// The user wrote what cannot be. The message is one sentence: operation, what was expected, what
/// was given, the operand's origin (`args[0]`, `outputs[1]`), then "\n  at file.cpp:41".
class PALLADIUM_API CompileError : public Error {
 public:
  CompileError(Location at, const std::string& message);
  /// For errors that no line of the user's can be blamed for (a malformed file, a bad option).
  explicit CompileError(const std::string& message);
  ~CompileError() override;
  Location at() const { return at_; }

 private:
  Location at_;
};

/// The CUDA driver or NVRTC refused: the call with its arguments, the log, the path of the dump.
class PALLADIUM_API CudaError : public Error {
 public:
  using Error::Error;
  ~CudaError() override;
};

/// Palladium is wrong: the pass and the graph's text.
class PALLADIUM_API InternalError : public Error {
 public:
  using Error::Error;
  ~InternalError() override;
};

}  // namespace palladium
