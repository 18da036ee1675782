// What a scope writes to stderr, log lines among it.
#pragma once

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <string>

namespace palladium::test {

class CapturedStderr {
 public:
  CapturedStderr() : file_(std::tmpfile()), saved_(::dup(STDERR_FILENO)) {
    REQUIRE(file_ != nullptr);
    std::fflush(stderr);
    REQUIRE(::dup2(::fileno(file_), STDERR_FILENO) >= 0);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;
  ~CapturedStderr() {
    std::fflush(stderr);
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    std::fclose(file_);
  }

  /// Everything written so far.
  std::string text() const {
    std::fflush(stderr);
    std::string result;
    char buffer[4096];
    for (off_t at = 0;;) {
      const ssize_t count = ::pread(::fileno(file_), buffer, sizeof buffer, at);
      if (count <= 0) return result;
      result.append(buffer, static_cast<std::size_t>(count));
      at += count;
    }
  }

 private:
  std::FILE* file_;
  int saved_;
};

}  // namespace palladium::test
