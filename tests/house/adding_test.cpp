// docs/adding-an-op.md names the files that know the operations which it walks through the tree,
// all of them and no others.
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

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::smatch> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  return {std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()};
}

/// A walk: the names in its heading, and its rows, from file to what stands there.
struct Walk {
  std::set<std::string> names;
  std::multimap<std::string, std::string> rows;
};

std::vector<Walk> walks(const std::string& page) {
  std::vector<Walk> all;
  for (std::size_t at = page.find("\n## "); at != page.npos;) {
    const std::size_t end = page.find("\n## ", at + 1);
    const std::string section = page.substr(at, end - at);
    Walk walk;
    const std::string heading = section.substr(1, section.find('\n', 1));
    for (const std::smatch& m : matches(heading, "`([^`]+)`")) walk.names.insert(m[1]);
    for (const std::smatch& m : matches(section, "\n\\| `([^`]+)` \\| `([^`]+)` \\| "))
      walk.rows.emplace(m[1], m[2]);
    all.push_back(std::move(walk));
    at = end;
  }
  return all;
}

/// The text of every source file but tests, and of the page that is made of tables, by its path
/// from the root.
std::map<std::string, std::string> sources(const fs::path& root) {
  std::map<std::string, std::string> all;
  for (const char* folder : {"codegen", "cache", "runtime", "include", "tools", "examples"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file() && entry.path().extension() != ".md")
        all[fs::relative(entry.path(), root)] = read(entry.path());
  all["docs/operations.md"] = read(root / "docs/operations.md");
  return all;
}

bool says(const std::string& text, const std::set<std::string>& names) {
  for (const std::string& name : names)
    if (text.find(name) != text.npos) return true;
  return false;
}

}  // namespace

TEST_CASE("docs/adding-an-op.md names all files that know its operations, and no others") {
  const fs::path root = test::source_dir();
  const std::map<std::string, std::string> tree = sources(root);
  REQUIRE(tree.size() > 200);
  const std::vector<Walk> all = walks(read(root / "docs/adding-an-op.md"));
  REQUIRE(all.size() == 7);
  int functions = 0;
  for (const Walk& walk : all) {
    REQUIRE(!walk.names.empty());
    const bool is_function = walk.rows.contains("include/palladium/math.def");
    functions += is_function;
    CHECK(walk.rows.size() <= (is_function ? 4 : 11));
    for (const auto& [file, there] : walk.rows) {
      INFO(file << " should hold " << there);
      REQUIRE(tree.contains(file));
      CHECK(tree.at(file).find(there) != std::string::npos);
    }
    for (const auto& [file, text] : tree) {
      INFO(file << " knows " << *walk.names.begin());
      // The page names operations by the table's text, not by the names of sources.
      const bool is_page = file == "docs/operations.md";
      if (!is_page && says(text, walk.names)) CHECK(walk.rows.contains(file));
    }
  }
  CHECK(functions == 3);
}

TEST_CASE("every file that docs/adding-an-op.md mentions exists") {
  const fs::path root = test::source_dir();
  const std::string page = read(root / "docs/adding-an-op.md");
  int found = 0;
  for (const std::smatch& m : matches(page, "`((?:codegen|include|runtime|tests|docs)/[^`]+)`")) {
    INFO(m[1].str());
    CHECK(fs::exists(root / m[1].str()));
    ++found;
  }
  CHECK(found > 20);
}
