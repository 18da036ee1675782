// A compile reads no file but NVRTC itself, and never meets a driver.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "tests/support/compile_helper.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using test::Folder;

namespace {

struct Opened {
  std::string process, path;
  bool is_there;
};

/// The opens in a log of `strace -f`: "123 openat(AT_FDCWD, \"/etc/localtime\", ...) = 3".
std::vector<Opened> opens_in(const std::string& log) {
  std::vector<Opened> opens;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string line = log.substr(at, end - at);
    at = end + 1;
    const std::size_t call = line.find("open"), path = line.find('"');
    if (call == std::string::npos || path == std::string::npos) continue;
    opens.push_back({line.substr(0, line.find(' ')),
                     line.substr(path + 1, line.find('"', path + 1) - path - 1),
                     line.find("= -1") == std::string::npos});
  }
  return opens;
}

bool is_of_system(const std::string& path) {
  // Shared libraries, which the loader finds, and what libc asks of the machine.
  for (const char* start : {"/lib", "/usr/lib", "/etc/ld.so", "/proc/", "/sys/", "/dev/null"})
    if (path.starts_with(start)) return true;
  return path == "/etc/localtime";
}

}  // namespace

TEST_CASE("NVRTC opens nothing but itself while it compiles the shipped kernels") {
  const nvrtc::Toolchain& by = test::toolchain();
  const Folder folder;
  const std::string log = folder / "strace";
  if (test::run_program({"/usr/bin/env", "strace", "-o", log, "/bin/true"}).status != 0)
    SKIP("needs strace");
  const test::Finished traced =
      test::run_program({"/usr/bin/env", "strace", "-f", "-o", log, "-e",
                         "trace=open,openat,openat2", test::binary_dir() + "/palladium", "warm",
                         "add", "softmax", "matmul", "blur", "--arch", "sm_90a", "-j", "1"},
                        {{"PALLADIUM_CACHE_DIR", folder / "cache"},
                         {"PALLADIUM_LIBCUDA", "no-such-libcuda.so.1"},
                         {"PALLADIUM_NVRTC", by.library}});
  INFO(traced.out << traced.err);
  REQUIRE(traced.status == 0);

  const std::vector<Opened> opens = opens_in(test::text_of(log));
  const auto compiler = std::ranges::find_if(opens, [&](const Opened& o) {
    // The tool itself, which comes first, reads the file's identity.
    return o.process != opens.front().process && o.is_there &&
           files::name_of(o.path) == files::name_of(by.builtins);
  });
  REQUIRE(compiler != opens.end());
  int own = 0;
  for (const Opened& o : opens) {
    if (o.process != compiler->process) continue;
    INFO(o.path);
    const bool is_nvrtc = files::name_of(o.path).starts_with("libnvrtc");
    // Where it is one of a wheel's, the loader looks beside it for libraries of the system first.
    CHECK((!o.is_there || is_nvrtc || is_of_system(o.path)));
    CHECK(o.path.find("libcuda.so") == std::string::npos);
    own += is_nvrtc && o.is_there;
  }
  CHECK(own >= 2);
}
