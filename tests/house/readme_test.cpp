// The README says what is so: its table of environment variables and its program.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
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

TEST_CASE("the README's table of environment variables is the one that is read") {
  const std::string readme = read(test::source_dir() + "/README.md");
  const std::string expected = "|---|---|---|\n" + environment_table() + "\n";
  INFO(expected);
  CHECK(readme.find(expected) != std::string::npos);
}

TEST_CASE("no environment variable of ours is missing in the table") {
  std::set<std::string> known;
  for (const environment::Row& row : environment::table()) known.insert(row.name);
  const std::regex quoted("\"(PALLADIUM_[A-Z_]+)\"");
  for (const char* folder : {"codegen", "cache", "runtime", "tools", "examples"}) {
    const std::filesystem::path root = std::filesystem::path(test::source_dir()) / folder;
    if (!std::filesystem::exists(root)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      const std::string text = read(entry.path());
      for (std::sregex_iterator match(text.begin(), text.end(), quoted), end; match != end;
           ++match) {
        INFO(entry.path() << " says " << match->str(1));
        CHECK(known.count(match->str(1)) == 1);
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
