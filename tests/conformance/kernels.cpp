// Whole kernels: the GEMM and the attention of tests/kernels.
#include <bit>

#include "codegen/base/format.hpp"
#include "tests/conformance/case.hpp"
#include "tests/support/hopper_kernels.hpp"

namespace palladium::conformance {
namespace {

std::vector<std::byte> matrix(int rows, int columns, std::uint64_t seed, float scale = 1) {
  std::vector<std::uint16_t> v = test::small_integers(
      static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), seed);
  for (std::uint16_t& x : v) x = test::to_bf16(test::from_bf16(x) * scale);
  return Case::bytes_of(v);
}

TensorMapSpec map(int rows, int columns, int box_rows) {
  std::vector<std::uint16_t> none;
  return test::map_of(none, rows, columns, box_rows, 64);
}

Case gemm(const test::Gemm& g) {
  Case c;
  c.name = fmt::format("kernels/gemm {}x{}x{}, tile 128x{}, {} stages, cluster {}", g.m, g.n, g.k,
                       g.bn, g.stages, g.cluster);
  c.text = g.text();
  c.entry = "gemm";
  c.alone = true;
  const auto tiles = [](int a, int b) { return (a + b - 1) / b; };
  c.grid = {tiles(tiles(g.m, 128), g.cluster) * g.cluster, tiles(g.n, g.bn), 1};
  c.cluster = {g.cluster, 1, 1};
  c.warpgroups = 3;
  c.shared_bytes = g.shared_bytes();
  c.mapped({.type = "bf16", .bytes = matrix(g.m, g.k, 1)}, map(g.m, g.k, 128));
  c.mapped({.type = "bf16", .bytes = matrix(g.n, g.k, 2)}, map(g.n, g.k, g.bn / g.cluster));
  c.mapped({.type = "bf16", .bytes = matrix(g.m, g.n, 3), .output = true}, map(g.m, g.n, 64));
  c.word(g.k);
  return c;
}

Case attention(const test::Attention& a) {
  Case c;
  c.name = fmt::format("kernels/attention of {} rows, {} stages", a.length, a.stages);
  c.text = a.text();
  c.entry = "attention";
  c.alone = true;
  c.grid = {a.length / 128, 1, 1};
  c.warpgroups = 3;
  c.shared_bytes = a.shared_bytes();
  for (const std::uint64_t seed : {1, 2, 3})
    c.mapped({.type = "bf16", .bytes = matrix(a.length, 64, seed, 0.125f)}, map(a.length, 64, 128));
  Array o = {.type = "bf16", .bytes = matrix(a.length, 64, 4), .output = true};
  o.agreement = Agreement::near;
  o.bound = 2e-3;
  o.label = "attention";
  o.reference = [all = std::vector<double>(), a](std::size_t i) mutable {
    if (all.empty()) all = test::reference_attention(a);
    return static_cast<long double>(all[i]);
  };
  c.mapped(o, map(a.length, 64, 64));
  c.word(a.length);
  c.word(std::bit_cast<std::int32_t>(a.scale));
  return c;
}

}  // namespace

void add_kernels(std::vector<Case>& all) {
  for (const test::Gemm& g : {test::Gemm{}, test::Gemm{.m = 256, .n = 384, .k = 320, .cluster = 2},
                              test::Gemm{.m = 200, .n = 264, .k = 152, .bn = 256},
                              test::Gemm{.m = 328, .n = 200, .k = 1000, .bn = 256, .cluster = 2},
                              test::Gemm{.m = 128, .n = 128, .k = 64, .stages = 2}})
    all.push_back(gemm(g));
  all.push_back(attention({}));
  all.push_back(attention({.length = 512, .stages = 1}));
}

}  // namespace palladium::conformance
