// One version, in the headers, the library, the package and the changelog.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cache/text_digest.hpp"
#include "palladium/version.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("headers, library and package have one version") {
  CHECK(version() == PALLADIUM_VERSION);
  CHECK(version() ==
        PALLADIUM_VERSION_MAJOR * 10000 + PALLADIUM_VERSION_MINOR * 100 + PALLADIUM_VERSION_PATCH);
  const std::string text = std::to_string(PALLADIUM_VERSION_MAJOR) + "." +
                           std::to_string(PALLADIUM_VERSION_MINOR) + "." +
                           std::to_string(PALLADIUM_VERSION_PATCH);
  CHECK(version_string() == text);
  CHECK(PALLADIUM_VERSION_STRING == text);
  CHECK(read(test::binary_dir() + "/palladiumConfigVersion.cmake")
            .find("set(PACKAGE_VERSION \"" + text + "\")") != std::string::npos);
  CHECK(text_digest() == std::string(cache::text_digest));
}
#if PALLADIUM_VERSION < 100 || PALLADIUM_VERSION_MAJOR > 99
#  error PALLADIUM_VERSION is no number for the preprocessor
#endif

TEST_CASE("the changelog has the headings of keepachangelog.com, and this version at the top") {
  std::istringstream lines(read(test::source_dir() + "/CHANGELOG.md"));
  const std::set<std::string> kinds = {"Added",   "Changed", "Deprecated",
                                       "Removed", "Fixed",   "Security"};
  std::vector<std::string> versions;
  bool has_entries = true;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    if (line.starts_with("## ")) {
      versions.push_back(line.substr(3));
    } else if (line.starts_with("### ")) {
      CHECK(kinds.count(line.substr(4)) == 1);
      CHECK(has_entries);
      has_entries = false;
    } else if (line.starts_with("- ")) {
      has_entries = true;
    }
  }
  CHECK(has_entries);
  REQUIRE(!versions.empty());
  const std::string released = "[" PALLADIUM_VERSION_STRING "] - 20";
  const bool unreleased = versions[0] == "[Unreleased]";
  CAPTURE(versions);
  // Until the first release there is nothing below what is unreleased.
  CHECK((unreleased || versions[0].starts_with(released)));
  if (versions.size() > 1) CHECK(versions[unreleased ? 1 : 0].starts_with(released));
}
