// docs/status.md has a row for every name of four pages of Pallas's documentation, with what it is
// here, and a test that uses it.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "tests/support/paths.hpp"

using namespace palladium;

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string headers(const fs::path& root) {
  std::string all;
  for (const auto& entry : fs::directory_iterator(root / "include/palladium"))
    if (entry.is_regular_file()) all += read(entry.path());
  return all;
}

}  // namespace

TEST_CASE("every name of Pallas's pages is there, and used in the test that its row says") {
  const fs::path root = test::source_dir();
  const std::string page = read(root / "docs/status.md"), public_names = headers(root);
  const std::regex row(
      "\n\\| `([^`]+)` \\| ([^|]*) \\| `([a-z_/]+\\.cpp)` \\| `([^`]+)` \\|(?=\n)");
  const std::regex here("::([a-z_A-Z]+)");
  std::size_t rows = 0;
  for (auto at = std::sregex_iterator(page.begin(), page.end(), row); at != std::sregex_iterator();
       ++at, ++rows) {
    INFO((*at)[1] << " in " << (*at)[3]);
    CHECK(read(root / "tests" / (*at)[3].str()).find((*at)[4]) != std::string::npos);
    const std::string is = (*at)[2];
    for (auto name = std::sregex_iterator(is.begin(), is.end(), here);
         name != std::sregex_iterator(); ++name)
      CHECK(public_names.find((*name)[1]) != std::string::npos);
  }
  CHECK(rows == 77);
}
