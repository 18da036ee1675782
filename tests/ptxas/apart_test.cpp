// Products into the same registers, of which an assembler leaves out none.
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/device/library.hpp"
#include "codegen/nvrtc/disassemble.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/support/machine_products.hpp"
#include "tests/support/sums_again.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

MachineProducts products_of(const std::string& text) {
  const nvrtc::Result r = nvrtc::compile(
      {.source = device::prelude(device::Half::cuda, text) + text, .arch = "sm_90a"});
  INFO(r.log);
  REQUIRE(r.ok);
  return machine_products(r.cubin);
}

/// A product into d, `behind` it, and another of the same into the same registers.
std::string twice(const std::string& between) {
  const std::string product =
      "  pl::wgmma_registers(d);\n  pl::wgmma_fence();\n"
      "  pl::wgmma_m64n64k16_f32_f16_f16(d, a, b, true);\n"
      "  pl::wgmma_commit();\n  pl::wgmma_wait<0>();\n  pl::wgmma_registers(d);\n"
      "  PL_UNROLL for (i32 i = 0; i < 32; ++i) { const f32 x = d[i] * s; "
      "pl::store_global(o++, &x); }\n";
  return "PL_KERNEL(128) twice(f32* o, u64 a, u64 b, f32 s) {\n  f32 d[32] = {};\n" + product +
         between + product + "}\nPL_EXPORT(twice)\n";
}

std::string emitted(const graph::Graph& g) {
  return cuda::emit(g, {.compute_capability = 90}).text;
}

#define NEEDS_NVDISASM()                           \
  if (!nvrtc::toolchain().found) SKIP("no NVRTC"); \
  if (nvrtc::find_nvdisasm().empty()) SKIP("no nvdisasm")

}  // namespace

TEST_CASE("an assembler leaves no product out where wgmma_apart stands") {
  NEEDS_NVDISASM();
  const MachineProducts apart = products_of(twice("  pl::wgmma_apart();\n"));
  CHECK(apart.kept == 2);
  CHECK(apart.left_out == 0);
  // Else one that leaves it out is not seen.
  const MachineProducts together = products_of(twice(""));
  CHECK(together.kept + together.left_out == 2);
}

TEST_CASE("an assembler leaves out no product of ours") {
  NEEDS_NVDISASM();
  for (const bool by_loops : {false, true}) {
    INFO(by_loops);
    const MachineProducts p = products_of(emitted(sum_that_goes_on(by_loops)));
    CHECK(p.kept == 8);
    CHECK(p.left_out == 0);
  }
  for (const int n : {128, 256}) {
    INFO("parts of sums of " << n << " columns");
    const MachineProducts p = products_of(emitted(sum_of_one_step(128, n)));
    CHECK(p.kept >= 8);
    CHECK(p.left_out == 0);
  }
}
