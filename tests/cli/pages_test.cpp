// The pages of docs: what they show runs, and prints what they say. Blocks marked cpp are compiled
// into this program, those marked sh are commands; a block marked text right behind one is what it
// prints, where a line "…" stands for any number of lines. With PALLADIUM_TEST_REFRESH blocks
// without such lines are written anew (twice, if lines of the page are among the output).
#include <catch2/catch_test_macros.hpp>

#include "palladium/palladium.hpp"
#include "tests/cli/pages.hpp"
#include "tests/support/folder.hpp"

using namespace palladium::test;

TEST_CASE("the programs and commands of the documentation print what its pages show") {
  const Folder cache;
  const Environment in_cache("PALLADIUM_CACHE_DIR", cache.path());
  const Environment target("PALLADIUM_TARGET", "interpreter");
  pl::set_default_target(pl::Target::interpreter);
  CHECK(page_programs().size() == 8);
  for (const PageProgram& program : page_programs()) {
    std::vector<std::string> wrong;
    {
      Page page(program.file);
      program.run(page);
      wrong = page.finish();
    }
    for (const std::string& sentence : wrong) FAIL_CHECK(sentence);
  }
}

TEST_CASE("what pages show stands behind what prints it, and all that they show is checked") {
  for (const PageProgram& program : page_programs())
    for (const std::string& sentence : misplaced(program.file)) FAIL_CHECK(sentence);
}
