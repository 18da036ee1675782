// The kernels of examples/mosaic.
#include <algorithm>
#include <cmath>

#include "codegen/nvrtc/disassemble.hpp"
#include "examples/mosaic/matmul.hpp"
#include "examples/mosaic/softmax.hpp"
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;

namespace examples {

TEST_CASE("the matrix product of examples/mosaic is that of its operands, in several blocks") {
  for_each_target("matmul", [](Target target) {
    const std::int64_t m = 256, n = 256, k = 256;
    const auto a = [](std::int64_t i, std::int64_t p) { return (3 * i + 5 * p) % 7 - 3; };
    const auto b = [](std::int64_t p, std::int64_t j) { return (2 * p + 3 * j) % 5 - 2; };
    const Array x = make_array<float>({m, k}, [&](std::int64_t i) { return a(i / k, i % k); });
    const Array y = make_array<float>({k, n}, [&](std::int64_t i) { return b(i / n, i % n); });
    const Kernel kernel = mosaic::matmul({.m = 128, .n = 128, .k = 64, .slots = 3});
    const Array c = on_cpu(kernel.on(target)(on(target, x.astype(f16)), on(target, y.astype(f16))));
    const Array sums = c.astype(f32);
    bool right = true;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        float expected = 0;
        for (std::int64_t p = 0; p < k; ++p) expected += static_cast<float>(a(i, p) * b(p, j));
        right = right && sums.data<float>()[n * i + j] == expected;
      }
    CHECK(right);
  });
}

TEST_CASE("the barriers of the matrix product of examples/mosaic are right") {
  const ShapeDtype matrix{{1024, 1024}, f16};
  CHECK_THAT(verdict_of(mosaic::matmul(), {matrix, matrix}), Catch::Matchers::StartsWith("good"));
}

TEST_CASE("the matrix product of examples/mosaic compiles for sm_90a without spills") {
  const Compiled compiled = mosaic::matmul()
                                .lower(ShapeDtype{{4096, 4096}, f16}, ShapeDtype{{4096, 4096}, f16})
                                .compile({.arch = "sm_90a"});
  const Resources r = compiled.resources();
  CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
  for (const std::string& warning : r.warnings) FAIL_CHECK(warning);
  CHECK(r.registers <= 168);  // of 384 threads
  if (nvrtc::find_nvdisasm().empty()) return;
  int multiplying = 0;
  for (const SassLoop& loop : compiled.sass().loops)
    for (const auto& [kind, count] : loop.mix.classes)
      if (kind == "HGMMA" && count == 4) multiplying = loop.mix.instructions;
  CHECK(multiplying > 0);
  CHECK(multiplying <= 64);  // for each tile
}

TEST_CASE("the softmax of examples/mosaic is that of whole rows, each of two blocks") {
  for_each_target("softmax", [](Target target) {
    const std::int64_t rows = 8, columns = 640;
    const Array x = make_array<float>({rows, columns}, [](std::int64_t i) {
      return static_cast<float>((7 * i + i / columns * 11) % 64) / 8.0f;
    });
    const Kernel kernel = mosaic::softmax().on(target);
    const std::vector<float> in = elements<float>(x), o = elements<float>(kernel(on(target, x)));
    double error = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      const auto e = [&](std::int64_t c) {
        return std::exp(double(in[std::size_t(r * columns + c)]));
      };
      for (std::int64_t c = 0; c < columns; ++c) sum += e(c);
      for (std::int64_t c = 0; c < columns; ++c)
        error = std::max(error, std::abs(e(c) / sum - o[std::size_t(r * columns + c)]));
    }
    CHECK(error < 1e-6);
  });
  CHECK_THAT(verdict_of(mosaic::softmax(), {ShapeDtype{{64, 8192}, f32}}),
             Catch::Matchers::StartsWith("good"));
}

TEST_CASE("the softmax of examples/mosaic compiles for sm_90a without spills") {
  const Resources r =
      mosaic::softmax().lower(ShapeDtype{{64, 32768}, f32}).compile({.arch = "sm_90a"}).resources();
  CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
  for (const std::string& warning : r.warnings) FAIL_CHECK(warning);
}

}  // namespace examples
