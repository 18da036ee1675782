// What a scope writes to stderr, log lines among it, or to stdout.
#pragma once

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <string>

namespace palladium::test {

class Captured {
 public:
  explicit Captured(std::FILE* stream)
      : stream_(stream), file_(std::tmpfile()), saved_(::dup(::fileno(stream))) {
    REQUIRE(file_ != nullptr);
    std::fflush(stream_);
    REQUIRE(::dup2(::fileno(file_), ::fileno(stream_)) >= 0);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    std::fflush(stream_);
    ::dup2(saved_, ::fileno(stream_));
    ::close(saved_);
    std::fclose(file_);
  }

  /// Everything written so far.
  std::string text() const {
    std::fflush(stream_);
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
  std::FILE* stream_;
  std::FILE* file_;
  int saved_;
};

struct CapturedStderr : Captured {
  CapturedStderr() : Captured(stderr) {}
};
struct CapturedStdout : Captured {
  CapturedStdout() : Captured(stdout) {}
};

}  // namespace palladium::test
