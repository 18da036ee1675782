// The environment, read as it is or as it was.
#include "codegen/base/environment.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>
#include <thread>

#include "tests/support/folder.hpp"

using namespace palladium;
using test::Environment;

TEST_CASE("a variable has its value, or none") {
  const Environment set("PALLADIUM_DUMP", "cuda=1");
  const Environment unset("XDG_CACHE_HOME", nullptr);
  CHECK(environment::get(environment::Variable::dump) == "cuda=1");
  CHECK(environment::get("XDG_CACHE_HOME").empty());
}

TEST_CASE("a snapshot stays as the environment was, in the thread that reads it") {
  const Environment before("PALLADIUM_DUMP", "before");
  const Environment similar("PALLADIUM_DUMP_DIR", "other");
  const environment::Snapshot snapshot;
  const Environment after("PALLADIUM_DUMP", "after");
  {
    const environment::Reading reading(snapshot);
    CHECK(environment::get("PALLADIUM_DUMP") == "before");
    CHECK(environment::get("PALLADIUM_DUMP_DIR") == "other");
    CHECK(environment::get("PALLADIUM_DUM").empty());
    std::string elsewhere;
    std::thread([&] { elsewhere = environment::get("PALLADIUM_DUMP"); }).join();
    CHECK(elsewhere == "after");
    bool has_old = false;
    for (char* const entry : environment::pointers())
      has_old = has_old || (entry && std::strcmp(entry, "PALLADIUM_DUMP=before") == 0);
    CHECK(has_old);
  }
  CHECK(environment::get("PALLADIUM_DUMP") == "after");
  CHECK(environment::pointers().back() == nullptr);
}
