// Tags of tests such as [C31] stand for cases that tests/README.md tells.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/paths.hpp"

using namespace palladium;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Group 1 of every match, in order.
std::vector<std::string> all(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), regex);
       at != std::sregex_iterator(); ++at)
    found.push_back((*at)[1]);
  return found;
}

const char* const tag = "\\[([CEM]\\d+b?)\\]";

}  // namespace

TEST_CASE("every case that a tag names stands in tests/README.md, once") {
  const std::filesystem::path tests = std::filesystem::path(test::source_dir()) / "tests";
  const std::vector<std::string> rows = all(read(tests / "README.md"), "\n\\| ([CEM]\\d+b?) \\| ");
  const std::set<std::string> told(rows.begin(), rows.end());
  CHECK(rows.size() == told.size());
  std::size_t tags = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tests)) {
    if (entry.path().extension() != ".cpp") continue;
    for (const std::string& name : all(read(entry.path()), tag)) {
      INFO(entry.path().filename() << " " << name);
      CHECK(told.contains(name));
      ++tags;
    }
  }
  CHECK(tags > 50);
}

TEST_CASE("every case of kernels and mistakes has a test, or a reason") {
  // Why no test can show it.
  const std::map<std::string, std::string> reasons = {
      {"E16", "nothing takes a derivative: there is no function that could refuse a kernel"},
  };
  const std::filesystem::path tests = std::filesystem::path(test::source_dir()) / "tests";
  std::set<std::string> tested;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tests))
    if (entry.path().filename() != "cases_test.cpp" && entry.path().extension() == ".cpp")
      for (const std::string& name : all(read(entry.path()), tag)) tested.insert(name);
  for (const std::string& row : all(read(tests / "README.md"), "\n\\| ([CE]\\d+b?) \\| ")) {
    INFO(row);
    CHECK(tested.contains(row) != reasons.contains(row));
  }
}

TEST_CASE("a tag is told from a subscript") {
  CHECK(all("[C31][C36b] a[C1x] [.] [E06]", tag) == std::vector<std::string>{"C31", "C36b", "E06"});
}
