// What docs/installing.md shows is what tests build, and what the tree has.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/paths.hpp"

using namespace palladium;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string page() { return read(test::source_dir() + "/docs/installing.md"); }

/// The lines of the files of these folders.
std::set<std::string> lines_of(std::initializer_list<const char*> folders) {
  std::set<std::string> lines;
  for (const char* folder : folders)
    for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() + folder)) {
      std::istringstream text(read(entry.path()));
      for (std::string line; std::getline(text, line);) lines.insert(line);
    }
  return lines;
}

}  // namespace

TEST_CASE("the CMake and C++ lines of docs/installing.md are lines of projects that tests build") {
  const std::set<std::string> built =
      lines_of({"/tests/house/consumer", "/tests/house/subproject"});
  std::istringstream text(page());
  std::string block;
  int seen = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) {
      block = line.substr(3);
    } else if (block == "cmake" || block == "cpp") {
      CAPTURE(line);
      CHECK(built.count(line) == 1);
      ++seen;
    }
  }
  CHECK(seen >= 9);
}

TEST_CASE("the options of docs/installing.md are those of CMake, with these defaults") {
  const std::string cmake = read(test::source_dir() + "/CMakeLists.txt"), text = page();
  const std::regex option("option\\((PALLADIUM_\\w+) \"[^\"]*\" (\\S+)\\)");
  int seen = 0;
  for (std::sregex_iterator i(cmake.begin(), cmake.end(), option), end; i != end; ++i) {
    const std::string name = (*i)[1], fallback = (*i)[2];
    if (name == "PALLADIUM_FUZZ") continue;
    CAPTURE(name, fallback);
    const std::regex row("\n\\|[^|\n]*`" + name + "`[^|\n]*\\| (ON|OFF) \\| (ON|OFF) \\|");
    std::smatch found;
    REQUIRE(std::regex_search(text, found, row));
    CHECK(found[1] == (fallback == "ON" ? "ON" : "OFF"));
    CHECK(found[2] == "ON");
    CHECK((fallback == "ON" || fallback == "${PROJECT_IS_TOP_LEVEL}"));
    ++seen;
  }
  CHECK(seen == 7);
}

TEST_CASE("all macros of the public headers have the prefix") {
  const std::regex macro("\n *# *define +(\\w+)");
  int seen = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_dir() + "/include")) {
    if (entry.is_directory()) continue;
    const std::string text = read(entry.path());
    for (std::sregex_iterator i(text.begin(), text.end(), macro), end; i != end; ++i, ++seen) {
      CAPTURE(entry.path(), i->str());
      CHECK((*i)[1].str().starts_with("PALLADIUM_"));
    }
  }
  CHECK(seen >= 6);
}
