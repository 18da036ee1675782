// The environment, read as it is or as it was.
#include "codegen/base/environment.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstring>
#include <string>
#include <thread>

#include "palladium/error.hpp"
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

TEST_CASE("a variable is refused a value that it cannot have, with those that it can") {
  using environment::Variable;
  struct Case {
    Variable variable;
    const char *name, *right, *sentence;
    std::vector<const char*> wrong;
  };
  const std::vector<const char*> no_numbers = {
      "0", "-1", "many", "3x", " 3", "1e3", "99999999999999999999", "0x10"};
  const Case cases[] = {
      {Variable::target, "PALLADIUM_TARGET", "emulator", "cuda, interpreter or emulator", {"gpu"}},
      {Variable::log, "PALLADIUM_LOG", "off", "debug, info, warning, error or off", {"loud"}},
      {Variable::log_format, "PALLADIUM_LOG_FORMAT", "json", "text or json", {"xml"}},
      {Variable::dump,
       "PALLADIUM_DUMP",
       "cuda,ptx",
       "a comma list of graph, passes, cuda and ptx",
       {"sass", "cuda,sass", "cuda ptx"}},
      {Variable::verify, "PALLADIUM_VERIFY", "1", "0 or 1", {"on", "debug", "2"}},
      {Variable::nvtx, "PALLADIUM_NVTX", "1", "0 or 1", {"on", "yes", "2"}},
      {Variable::cache_size, "PALLADIUM_CACHE_SIZE", "7", "a number from 1 to 1099511627776",
       no_numbers},
      {Variable::cache_files, "PALLADIUM_CACHE_FILES", "7", "a number from 1 to 1099511627776",
       no_numbers},
      {Variable::cache_sharing, "PALLADIUM_CACHE_SHARING", "group", "own or group", {"all"}},
      {Variable::jit, "PALLADIUM_JIT", "off", "on or off", {"OFF", "0"}},
      {Variable::toolchain, "PALLADIUM_TOOLCHAIN", "any", "any", {"newest"}},
      {Variable::compile, "PALLADIUM_COMPILE", "in-process", "helper or in-process", {"here"}},
      {Variable::compile_jobs, "PALLADIUM_COMPILE_JOBS", "1024", "a number from 1 to 1024",
       no_numbers},
      {Variable::compile_memory, "PALLADIUM_COMPILE_MEMORY", "64", "a number from 1 to 1048576",
       no_numbers},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    for (const char* wrong : c.wrong) {
      CAPTURE(wrong);
      const Environment set(c.name, wrong);
      const auto message = Catch::Matchers::Message(std::string(c.name) + " is '" + wrong +
                                                    "'; it can be " + c.sentence);
      CHECK_THROWS_MATCHES(environment::checked(c.variable), CompileError, message);
      CHECK_THROWS_MATCHES(environment::check(), CompileError, message);
    }
    const Environment set(c.name, c.right);
    CHECK(environment::checked(c.variable) == c.right);
    CHECK_NOTHROW(environment::check());
  }
}

TEST_CASE("a variable that is none of Palladium's is told") {
  const Environment set("PALLADIUM_CACHEDIR", "/tmp");
  const std::vector<std::string> unknown = environment::unknown();
  CHECK(std::find(unknown.begin(), unknown.end(), "PALLADIUM_CACHEDIR") != unknown.end());
  CHECK(std::find(unknown.begin(), unknown.end(), "PALLADIUM_JIT") == unknown.end());
}
