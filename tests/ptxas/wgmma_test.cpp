// What ptxas says of every product that codegen/device/wgmma.cpp can make. Slow: there are 912.
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/device/wgmma.hpp"
#include "codegen/nvrtc/nvrtc.hpp"

using namespace palladium;
using device::Wgmma;

namespace {

std::vector<std::string> template_arguments(const Wgmma& op) {
  if (!op.has_transposes()) return {""};
  if (op.rs) return {"<false>", "<true>"};
  return {"<false, false>", "<true, false>", "<false, true>", "<true, true>"};
}

/// One kernel for each shape of the accumulators, which all products of that shape share.
std::string kernels(const std::vector<Wgmma>& products) {
  std::map<std::pair<std::string_view, int>, std::string> statements;
  for (const Wgmma& op : products) {
    std::string& text = statements[{op.d, op.n}];
    for (const std::string& arguments : template_arguments(op)) {
      text += "  pl::" + op.name() + arguments + "(d, " + (op.rs ? "w" : "a") + ", b, " +
              (text.empty() ? "false" : "true") + ");\n";
    }
  }
  std::string text;
  for (const auto& [shape, products_of_shape] : statements) {
    const Wgmma op = {.n = shape.second, .d = shape.first, .a = {}, .b = {}};
    const std::string type = op.d == "f32" ? "f32" : op.d == "f16" ? "u32" : "i32";
    const std::string count = std::to_string(op.registers());
    text += "PL_KERNEL(128) into_" + std::string(op.d) + "_" + std::to_string(op.n) + "(" + type +
            "* m, u64 a, u64 b, u32 x) {\n  " + type + " d[" + count +
            "];\n  const u32 w[4] = {x, x + 1, x + 2, x + 3};\n"
            "  pl::wgmma_fence();\n" +
            products_of_shape +
            "  pl::wgmma_commit();\n  pl::wgmma_wait<0>();\n  pl::wgmma_registers(d);\n"
            "  PL_UNROLL for (i32 i = 0; i < " +
            count + "; ++i) pl::store_global(m + 128 * i + pl::thread(), d + i);\n}\n";
  }
  return text;
}

void accepted(std::size_t count, const std::function<bool(const Wgmma&)>& wanted) {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  std::vector<Wgmma> products;
  for (const Wgmma& op : device::wgmma_variants())
    if (wanted(op)) products.push_back(op);
  CHECK(products.size() == count);
  const std::string text = kernels(products);
  const nvrtc::Result result = nvrtc::compile(
      {.source = device::prelude(device::Half::cuda, text) + text, .arch = "sm_90a"});
  INFO(result.log);
  REQUIRE(result.ok);
  const Resources resources = nvrtc::parse_log(result.log);
  CHECK(resources.warnings.empty());
  CHECK(resources.stack_bytes == 0);
  CHECK(resources.spill_store_bytes + resources.spill_load_bytes == 0);
}

}  // namespace

TEST_CASE("every product of 16-bit and tf32 operands into f32 compiles without complaint") {
  accepted(192, [](const Wgmma& op) { return op.d == "f32" && op.k < 32; });
}
TEST_CASE("every product of 8-bit floats into f32 compiles without complaint") {
  accepted(256, [](const Wgmma& op) { return op.d == "f32" && op.k == 32; });
}
TEST_CASE("every product into f16 compiles without complaint") {
  accepted(320, [](const Wgmma& op) { return op.d == "f16"; });
}
TEST_CASE("every product of integers compiles without complaint") {
  accepted(144, [](const Wgmma& op) { return op.d == "s32"; });
}
