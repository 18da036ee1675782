// What NVRTC makes of the shipped attention.
#include <tuple>

#include <catch2/catch_test_macros.hpp>

#include "codegen/nvrtc/toolchain.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/palladium.hpp"

using namespace palladium;

TEST_CASE("attention keeps its values in registers, and its products run beside one another") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for (const auto& [t, d, causal] : {std::tuple{bf16, 128, true}, {f16, 64, true}}) {
    const ShapeDtype x{{2, 4, 500, d}, t};
    const Resources r =
        ops::attention({.causal = causal}).lower(x, x, x).compile({.arch = "sm_90a"}).resources();
    INFO(t.name() << ' ' << d << ", causal " << causal);
    CHECK(r.spill_store_bytes + r.spill_load_bytes + r.stack_bytes == 0);
    CHECK(r.warnings.empty());
  }
}
