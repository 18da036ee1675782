// The pages for people: each is found from the index, and what they link to is there.
#include <catch2/catch_test_macros.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
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

/// The lines of a page that are not inside of fences.
std::vector<std::string> prose(const std::string& page) {
  std::vector<std::string> lines;
  std::istringstream stream(page);
  bool inside = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("```"))
      inside = !inside;
    else if (!inside)
      lines.push_back(line);
  }
  return lines;
}

/// The anchor of a heading, as GitHub makes it: what is no word is dropped, blanks are hyphens.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) || c == '_' || c == '-' || u >= 128)
      anchor += static_cast<char>(std::tolower(u));
    else if (c == ' ')
      anchor += '-';
  }
  return anchor;
}

/// The second heading of one name has -1 behind it.
std::set<std::string> anchors(const std::string& page) {
  std::set<std::string> all;
  std::map<std::string, int> times;
  for (const std::string& line : prose(page)) {
    const std::size_t text = line.find_first_not_of('#');
    if (text == 0 || text == line.npos || line[text] != ' ') continue;
    const std::string anchor = anchor_of(line.substr(text + 1));
    const int before = times[anchor]++;
    all.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
  }
  return all;
}

/// What a page links to: "debugging.md#nan".
std::vector<std::string> links(const std::string& page) {
  static const std::regex code("`[^`]*`"), link("\\[[^\\]]*\\]\\(([^)\\s]+)\\)");
  std::vector<std::string> all;
  for (const std::string& line : prose(page)) {
    const std::string text = std::regex_replace(line, code, "code");
    for (auto at = std::sregex_iterator(text.begin(), text.end(), link);
         at != std::sregex_iterator(); ++at)
      all.push_back((*at)[1]);
  }
  return all;
}

bool leads_elsewhere(const std::string& link) { return link.find("://") != link.npos; }

/// "" if the link leads somewhere, else what is not there.
std::string broken(const fs::path& page, const std::string& link) {
  const std::size_t hash = link.find('#');
  const std::string file = link.substr(0, hash);
  const fs::path target = file.empty() ? page : page.parent_path() / file;
  if (!fs::exists(target)) return "there is no " + target.lexically_normal().string();
  if (hash == link.npos || anchors(read(target)).contains(link.substr(hash + 1))) return "";
  return target.lexically_normal().string() + " has no heading for #" + link.substr(hash + 1);
}

std::vector<fs::path> pages() {
  const fs::path root = test::source_dir();
  std::vector<fs::path> all = {root / "README.md", root / "tests/README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  return all;
}

}  // namespace

TEST_CASE("links between pages lead to files and headings that exist") {
  std::size_t found = 0;
  for (const fs::path& page : pages())
    for (const std::string& link : links(read(page))) {
      if (leads_elsewhere(link)) continue;
      INFO(page << " links to " << link);
      CHECK(broken(page, link) == "");
      ++found;
    }
  CHECK(found > 40);
}

TEST_CASE("links to what is not there are seen") {
  const fs::path index = fs::path(test::source_dir()) / "docs/index.md";
  CHECK(broken(index, "nowhere.md") != "");
  CHECK(broken(index, "debugging.md#no-such-heading") != "");
  CHECK(broken(index, "#index-by-task") == "");
  CHECK(links("`[](x)` [a](b.md#c) [d](e)\n```\n[f](g)\n```\n") ==
        std::vector<std::string>{"b.md#c", "e"});
  CHECK(anchors("# A `pl::x`, B_c\n## d\n```\n# no\n```\n## d\n") ==
        std::set<std::string>{"a-plx-b_c", "d", "d-1"});
}

TEST_CASE("every page of docs stands in the index, each row with a sentence") {
  const fs::path docs = fs::path(test::source_dir()) / "docs";
  const std::string index = read(docs / "index.md");
  std::set<std::string> linked;
  for (const std::string& link : links(index)) linked.insert(link.substr(0, link.find('#')));
  for (const auto& entry : fs::recursive_directory_iterator(docs)) {
    const std::string page = fs::relative(entry.path(), docs);
    if (entry.path().extension() != ".md" || page == "index.md") continue;
    INFO(page);
    CHECK(linked.contains(page));
  }
  std::size_t rows = 0;
  const std::regex row("\\| [^|]+ \\| \\[[^|]+\\)[^|]* \\| [^|]{20,} \\|");
  for (const std::string& line : prose(index)) {
    if (!line.starts_with("| ") || line.starts_with("| I want")) continue;
    INFO(line);
    CHECK(std::regex_match(line, row));
    ++rows;
  }
  CHECK(rows > 15);
}

TEST_CASE("the README leads to the index") {
  bool leads = false;
  for (const std::string& link : links(read(fs::path(test::source_dir()) / "README.md")))
    leads = leads || link == "docs/index.md";
  CHECK(leads);
}
