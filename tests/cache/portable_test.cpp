// Keys and cubins that are the same wherever they are made: another folder, user, environment and
// locale find what the first one stored, and the same source is the same bytes in every process.
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "codegen/base/files.hpp"
#include "codegen/nvrtc/pool.hpp"
#include "palladium/version.hpp"
#include "tests/support/compile_helper.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using test::Folder;
using Json = nlohmann::json;

namespace {

constexpr uid_t nobody = 65534;

void copy(const std::string& from, const std::string& to) {
  const test::Finished copied = test::run_program({"/bin/cp", "-rL", from, to});
  INFO(copied.err);
  REQUIRE(copied.status == 0);
}

/// The tool and what it needs, in another folder.
void install(const std::string& folder) {
  REQUIRE(files::make_directories(folder));
  std::string library = "libpalladium.so." + std::to_string(PALLADIUM_VERSION_MAJOR);
  if (PALLADIUM_VERSION_MAJOR == 0) library += "." + std::to_string(PALLADIUM_VERSION_MINOR);
  for (const std::string& file :
       {std::string("palladium"), std::string("palladium-compile"), library})
    copy(test::binary_dir() + "/" + file, folder + "/" + file);
}

/// That NVRTC in another folder, and the variable that names it there.
std::string install(const nvrtc::Toolchain& toolchain, const std::string& folder) {
  REQUIRE(files::make_directories(folder));
  for (const std::string& file : {toolchain.library, toolchain.builtins})
    copy(file, folder + "/" + files::name_of(file));
  return "PALLADIUM_NVRTC=" + folder + "/" + files::name_of(toolchain.library);
}

/// What `program warm ...` prints, in that folder, by that user, with exactly that environment.
Json warm(const std::string& program, const std::string& in, uid_t user,
          const std::vector<std::string>& environment, const std::string& out) {
  const int status = test::status_of_fork([&] {
    std::vector<char*> variables;
    for (const std::string& variable : environment)
      variables.push_back(const_cast<char*>(variable.c_str()));
    variables.push_back(nullptr);
    const std::string command = "exec '" + program +
                                "' warm softmax matmul --arch sm_90a --json >'" + out + "' 2>'" +
                                out + ".err'";
    const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
    if (::chdir(in.c_str()) != 0) return 98;
    if (user != ::geteuid() &&
        (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
         ::setresuid(user, user, user) != 0))
      return 99;
    ::execve("/bin/sh", const_cast<char**>(arguments), variables.data());
    return 97;
  });
  INFO(test::text_of(out + ".err"));
  REQUIRE(status == 0);
  return Json::parse(test::text_of(out));
}

}  // namespace

TEST_CASE("another user, folder, locale and environment find what was compiled elsewhere") {
  const nvrtc::Toolchain& toolchain = test::toolchain();
  const Folder mine, theirs;
  const std::string first_tool = mine / "tool", second_tool = theirs / "opt/some where/else";
  install(first_tool);
  install(second_tool);
  std::vector<std::string> environment = {"PALLADIUM_CACHE_DIR=" + (mine / "cache"),
                                          "HOME=" + mine.path(),
                                          "LANG=C",
                                          "A=1",
                                          "Z=2",
                                          "PALLADIUM_LIBCUDA=no-such-libcuda.so.1",
                                          "PATH=/usr/bin:/bin",
                                          "PALLADIUM_NVRTC=" + toolchain.library};
  const Json first =
      warm(first_tool + "/palladium", mine.path(), ::geteuid(), environment, mine / "out");
  CHECK(first.at("compiled") == 4);

  const uid_t user = ::geteuid() == 0 ? nobody : ::geteuid();
  copy(mine / "cache", theirs / "their cache");
  const std::string their_nvrtc = install(toolchain, theirs / "a toolkit");
  if (user != ::geteuid()) {
    const test::Finished owned =
        test::run_program({"/bin/chown", "-R", std::to_string(user), theirs.path()});
    REQUIRE(owned.status == 0);
  }
  environment = {"PALLADIUM_CACHE_DIR=" + (theirs / "their cache"),
                 "HOME=/nonexistent",
                 "LANG=tr_TR.UTF-8",
                 "LC_ALL=tr_TR.UTF-8",
                 "TZ=Asia/Tokyo",
                 "TMPDIR=" + theirs.path(),
                 "USER=somebody",
                 "HOSTNAME=elsewhere",
                 "Z=3",
                 "PALLADIUM_LIBCUDA=no-such-libcuda.so.1",
                 their_nvrtc,
                 "PATH=/bin:/usr/bin"};
  std::mt19937 random(5);
  for (int round = 0; round < 3; ++round) {
    std::ranges::shuffle(environment, random);
    const Json second = warm(second_tool + "/palladium", round == 0 ? "/" : theirs / "opt", user,
                             environment, theirs / ("out" + std::to_string(round)));
    CHECK(second.at("compiled") == 0);
    CHECK(second.at("hits") == 4);
    for (int i = 0; i < 4; ++i)
      CHECK(second.at("kernels")[i].at("key") == first.at("kernels")[i].at("key"));
  }
}

TEST_CASE("fifty compiles of one source, in three processes and two folders, give one cubin") {
  const nvrtc::Toolchain& by = test::toolchain();
  const nvrtc::Request request = test::scale();
  nvrtc::Pool one(test::helper_options(), 1), other(test::helper_options(), 1);
  const nvrtc::Result first = nvrtc::compile(request, by);
  REQUIRE(first.ok);
  for (nvrtc::Pool* pool : {&one, &other})
    for (int i = 0; i < 23; ++i) {
      const nvrtc::Pool::Outcome outcome = pool->compile(request, by);
      REQUIRE(outcome.end == nvrtc::Pool::End::result);
      CHECK(outcome.result.cubin == first.cubin);
      CHECK(outcome.result.ptx == first.ptx);
    }
  CHECK(one.idle_processes() != other.idle_processes());
  const Folder folder;
  char before[4096];
  REQUIRE(::getcwd(before, sizeof before) != nullptr);
  REQUIRE(::chdir(folder.path().c_str()) == 0);
  for (int i = 0; i < 3; ++i) CHECK(nvrtc::compile(request, by).cubin == first.cubin);
  REQUIRE(::chdir(before) == 0);
}
