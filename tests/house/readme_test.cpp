// README and reference say what is so: the program, and the table of environment variables.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "codegen/base/environment.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string environment_table() {
  std::string table;
  for (const environment::Row& row : environment::table()) {
    const std::string fallback = row.fallback;
    table += std::string("| `") + row.name + "` |" + (fallback.empty() ? "" : " " + fallback) +
             " | " + row.meaning + " |\n";
  }
  return table;
}

}  // namespace

TEST_CASE("the reference's table of environment variables is the one that is read") {
  const std::string reference = read(test::source_dir() + "/docs/reference.md");
  const std::string expected = "|---|---|---|\n" + environment_table() + "\n";
  INFO(expected);
  CHECK(reference.find(expected) != std::string::npos);
}

TEST_CASE("no environment variable of ours is missing in the table") {
  std::set<std::string> known;
  for (const environment::Row& row : environment::table()) known.insert(row.name);
  for (const char* folder : {"codegen", "cache", "runtime", "tools", "examples"}) {
    const std::filesystem::path root = std::filesystem::path(test::source_dir()) / folder;
    if (!std::filesystem::exists(root)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      const std::string text = read(entry.path());
      const std::string start = "\"PALLADIUM_";
      for (std::size_t at = 0; (at = text.find(start, at)) != std::string::npos; ++at) {
        const std::size_t end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", at + 1);
        if (end == std::string::npos || text[end] != '"') continue;
        const std::string name = text.substr(at + 1, end - at - 1);
        INFO(entry.path() << " says " << name);
        CHECK(known.count(name) == 1);
      }
    }
  }
}

TEST_CASE("the README's program is the one that is built outside the tree") {
  const std::string program = read(test::source_dir() + "/tests/house/consumer/main.cpp");
  REQUIRE(!program.empty());
  const std::string readme = read(test::source_dir() + "/README.md");
  CHECK(readme.find("```cpp\n" + program + "```") != std::string::npos);
}

TEST_CASE("the README is read in two screens") {
  const std::string readme = read(test::source_dir() + "/README.md");
  CHECK(std::count(readme.begin(), readme.end(), '\n') <= 140);
  CHECK(readme.size() <= 8000);
}
