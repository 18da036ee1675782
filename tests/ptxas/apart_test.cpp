// Products into the same registers, of which an assembler leaves out none.
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/device/library.hpp"
#include "codegen/nvrtc/disassemble.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/machine_products.hpp"
#include "tests/support/tracing.hpp"

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
  const auto goes_on = [](bool by_loops) {
    return [=](Ref x, Ref y, Ref o, Ref held) {
      const Value a = x[_], b = y[_];
      held[_] = zeros({64, 64}, f32);
      for (int i = 0; i < 2; ++i) {
        const auto add = [&] {
          held[_] += dot(a, b, {.trans_b = i > 0});
          o.at({i})[_] = held[_] * 3;
        };
        if (by_loops)
          loop(0, 1, [&](Index) { add(); });
        else
          add();
      }
    };
  };
  for (const bool by_loops : {false, true}) {
    INFO(by_loops);
    const MachineProducts p =
        products_of(emitted(traced(goes_on(by_loops),
                                   {.name = "goes_on",
                                    .out_type = {{2, 64, 64}, f32},
                                    .scratch_shapes = {gpu::REGS({64, 64}, f32)}},
                                   {array({64, 64}, f16), array({64, 64}, f16)})));
    CHECK(p.kept == 8);
    CHECK(p.left_out == 0);
  }
  for (const int n : {128, 256}) {
    INFO("parts of sums of " << n << " columns");
    const MachineProducts p = products_of(emitted(traced(
        [=](Ref x, Ref y, Ref o) {
          o[_] = loop(
              0, 1, {}, [&](Value, Value sum) { return sum + dot(x[_], y[_], {.trans_b = true}); },
              zeros({128, n}, f32));
        },
        {.name = "one_step",
         .out_type = {{128, n}, f32},
         .compiler_params = {.num_warps = n > 128 ? 8 : 4}},
        {array({128, 128}, f8e4m3), array({n, 128}, f8e4m3)})));
    CHECK(p.kept >= 8);
    CHECK(p.left_out == 0);
  }
}
