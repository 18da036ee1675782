// What the fuzzers found worth keeping, read again.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "codegen/base/files.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;

TEST_CASE("every reader survives the corpus of its fuzzer, and each file cut short anywhere") {
  for (const fuzz::Target& target : fuzz::targets) {
    const std::string folder =
        test::source_dir() + "/tests/fuzz/corpus/" + std::string(target.name);
    std::vector<std::string> names;
    INFO(folder);
    REQUIRE(files::list(folder, names));
    CHECK(!names.empty());
    for (const std::string& name : names) {
      std::vector<std::byte> bytes;
      REQUIRE(files::read(folder + "/" + name, 1 << 20, bytes));
      INFO(name);
      target.run(bytes);
      const std::size_t step = bytes.size() / 64 + 1;
      for (std::size_t size = 0; size < bytes.size(); size += step)
        target.run(fuzz::Bytes(bytes).first(size));
    }
  }
}
