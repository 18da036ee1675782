// The registers with which ptxas lets a kernel with setmaxnreg begin: what the emulator's pool of a
// block begins with.
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/device/library.hpp"
#include "codegen/nvrtc/nvrtc.hpp"

using namespace palladium;

namespace {

/// What ptxas gives a kernel of so many warpgroups that changes its registers so.
int registers(int warpgroups, const std::string& change) {
  const std::string text = "PL_KERNEL(" + std::to_string(128 * warpgroups) +
                           ") k(u32* o) {\n  const u32 w = pl::warpgroup();\n  pl::setmaxnreg_" +
                           change + "();\n  pl::store_global(o + 128 * w + pl::thread(), &w);\n}\n";
  const nvrtc::Result result = nvrtc::compile(
      {.source = device::prelude(device::Half::cuda, text) + text, .arch = "sm_90a"});
  INFO(text << result.log);
  REQUIRE(result.ok);
  return nvrtc::parse_log(result.log).registers;
}

}  // namespace

TEST_CASE("a kernel begins with its part of the registers, or with the most that it asks for") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  const int parts[] = {255, 255, 168, 128, 96, 80, 72, 64};
  for (int warpgroups = 1; warpgroups <= 8; ++warpgroups) {
    const int part = parts[warpgroups - 1];
    CAPTURE(warpgroups);
    CHECK(registers(warpgroups, "dec<40>") == part);
    CHECK(registers(warpgroups, "inc<256>") == part);
    CHECK(registers(warpgroups, "inc<48>") == 48);
  }
  CHECK(registers(2, "inc<240>") == 240);
  CHECK(registers(3, "inc<160>") == 160);
}
