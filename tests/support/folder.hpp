// What tests of files share: a folder of their own, and file functions that fail.
#pragma once

#include <stdlib.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "codegen/base/files.hpp"

namespace palladium::test {

/// A folder of the test's own; removed with what is in it.
class Folder {
 public:
  Folder() {
    std::string pattern = P_tmpdir "/palladium-test-XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { remove_tree(path_); }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    REQUIRE(files::list(path_, result));
    return result;
  }

 private:
  static void remove_tree(const std::string& path) {
    std::vector<std::string> names;
    if (files::list(path, names)) {
      for (const std::string& name : names) remove_tree(path + "/" + name);
      (void)files::remove_directory(path);
    } else {
      (void)files::remove(path);
    }
  }
  std::string path_;
};

/// `replaced->write = ...` for the length of a scope.
struct ReplacedFiles {
  ReplacedFiles() = default;
  ReplacedFiles(const ReplacedFiles&) = delete;
  ReplacedFiles& operator=(const ReplacedFiles&) = delete;
  ~ReplacedFiles() { restore(); }
  void restore() { files::functions() = files::system_functions(); }
  files::Functions* operator->() { return &files::functions(); }
};

/// What a failing system call does.
inline int fail_with(int error) {
  errno = error;
  return -1;
}

inline std::string text_of(const std::string& path) {
  std::string text;
  REQUIRE(files::read(path, 64 << 20, text));
  return text;
}

/// An environment variable set (or, with nullptr, unset) for the length of a scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    had_ = old != nullptr;
    if (had_) old_ = old;
    if (value != nullptr) {
      ::setenv(name, value, 1);
    } else {
      ::unsetenv(name);
    }
  }
  Environment(const char* name, const std::string& value) : Environment(name, value.c_str()) {}
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    if (had_) {
      ::setenv(name_, old_.c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  bool had_;
  std::string old_;
};

}  // namespace palladium::test
