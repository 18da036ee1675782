// What conversions say of accumulator registers that a wgmma has not finished. The pattern is put
// there by hand: what the emulator does with real products is tested where they are.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/error.hpp"
#include "tests/emulator/waist_kernels.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The report of a kernel whose register holds `bits`, converted by line 102.
std::string report(std::uint32_t bits, const std::string& conversion) {
  const std::string text =
      "PL_KERNEL(128) k(const u32* x) {\n"
      "  u32 w; pl::load_global(&w, x); const f32 d = pl::bitcast<f32>(w);\n  " +
      conversion + "\n}\nPL_EXPORT(k)\n";
  std::vector<std::uint32_t> x = {bits};
  void* p = x.data();
  void* parameters[] = {&p};
  const emulator::Buffer buffers[] = {test::buffer("args[0]", x)};
  const std::vector<Location> lines = {{"u.cpp", 100}, {"u.cpp", 101}, {"u.cpp", 102}};
  try {
    emulator::run({.kernel = "k",
                   .text = text,
                   .parameters = parameters,
                   .buffers = buffers,
                   .lines = lines});
  } catch (const InternalError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a conversion of an accumulator in flight is reported with its line") {
  constexpr std::uint32_t signalling = 0x7fadbeef, quiet = 0x7fedbeef;
  for (const std::uint32_t bits : {signalling, quiet}) {
    for (const char* conversion :
         {"pl::to<bf16>(d);", "pl::to<f16>(d);", "pl::to<i32>(d);", "pl::to<f64>(d);",
          "f16 h[2]; pl::unpack(h, w);", "pl::pack(pl::to<bf16>(d), pl::to<bf16>(1.0f));"}) {
      INFO(conversion);
      const std::string said = report(bits, conversion);
      CHECK_THAT(said, ContainsSubstring("accumulator register that a wgmma in flight"));
      CHECK_THAT(said, ContainsSubstring("u.cpp:102"));
    }
  }
}

TEST_CASE("other NaNs and integers are not taken for accumulators in flight") {
  for (const std::uint32_t bits : {0x7fc00000u, 0x7fffffffu, 0xffadbeefu, 0x7fadbeeeu})
    CHECK(report(bits, "pl::to<bf16>(d); pl::to<i32>(d); f16 h[2]; pl::unpack(h, w);") ==
          "nothing");
  CHECK(report(0x7fadbeef, "pl::to<f32>(w); pl::to<f32>(d); i16 h[2]; pl::unpack(h, w);") ==
        "nothing");
}
