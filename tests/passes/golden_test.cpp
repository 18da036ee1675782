// Whole kernels as they are emitted, so that a change of emitted text is seen in review.
// PALLADIUM_TEST_REFRESH=1 build/test_passes "the emitted text of*,none of these*" writes the
// files anew.
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

graph::Graph shipped(const char* name) {
  const ops::Entry& e = ops::find(name);
  return graph::from_json(
      e.factory().lower(std::vector<ArgType>(e.inputs.begin(), e.inputs.end())).json());
}

/// x + y of vectors of fewer than 2^31 elements, a multiple of `multiple` of them.
graph::Graph short_add(std::int64_t multiple) {
  const ShapeDtype x{{dim("n", {.multiple_of = multiple, .at_most = 1 << 30})}, f32};
  return graph::from_json(ops::find("add").factory().lower(x, x).json());
}

/// Of a matrix whose rows are multiples of 16 bytes.
graph::Graph wide_transpose() {
  const DimOptions sizes{.multiple_of = 4, .at_most = 1 << 15};
  const ShapeDtype x{{dim("m", sizes), dim("n", sizes)}, f32};
  return graph::from_json(ops::find("transpose").factory().lower(x).json());
}

/// softmax(q k^T) v for one head, over blocks of 64 keys, with a running maximum and sum.
graph::Graph attention_graph() {
  constexpr int keys = 512;
  const BlockSpec queries{{64, 64}, [](Index i) { return Indices{i, 0}; }};
  const BlockSpec all{{keys, 64}, [](Index) { return Indices{0, 0}; }};
  return traced(
      [](Ref q, Ref k, Ref v, Ref o) {
        auto [acc, highest, total] = loop(
            0, keys / 64,
            [&](Value i, Value acc, Value highest, Value total) {
              Value s = dot(q[_], k[{ds(i * 64, 64), _}], {.trans_b = true}) * 0.125f;
              Value next = maximum(highest, max(s, {.axis = {1}, .keepdims = true}));
              Value p = exp(s - next), scale = exp(highest - next);
              Value sums = sum(p, {.axis = {1}, .keepdims = true});
              return carry(acc * scale + dot(f16(p), v[{ds(i * 64, 64), _}]), next,
                           total * scale + sums);
            },
            zeros({64, 64}, f32), full({64, 1}, -1e30f, f32), zeros({64, 1}, f32));
        (void)highest;
        o[_] = f16(acc / total);
      },
      {.name = "attention",
       .out_type = ShapeDtype{{1024, 64}, f16},
       .grid = {16},
       .in_specs = {queries, all, all},
       .out_specs = {queries}},
      {array({1024, 64}, f16), array({keys, 64}, f16), array({keys, 64}, f16)});
}

/// Shifts rows by one in shared memory, in place.
graph::Graph rotate_graph() {
  return traced(
      [](Ref x, Ref o, Ref row) {
        row[_] = x[_];
        o.at({_, ds(1, 255)})[_] = row[{_, ds(0, 255)}];
        o.at({_, ds(0, 1)})[_] = row[{_, ds(255, 1)}];
      },
      {.name = "rotate",
       .out_type = ShapeDtype{{8, 256}, f32},
       .scratch_types = {gpu::SMEM({8, 256}, f32)},
       .input_output_aliases = {{0, 0}}},
      {array({8, 256})});
}

/// The file's text; with PALLADIUM_TEST_REFRESH it is written first.
std::string golden(const std::string& name, const std::string& text) {
  const std::string path = source_dir() + "/tests/passes/golden/" + name;
  if (std::getenv("PALLADIUM_TEST_REFRESH") != nullptr) {
    std::ofstream(path) << text;
    WARN("wrote " << path);
  }
  std::ifstream in(path);
  REQUIRE(in.good());
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

struct Reviewed {
  const char* name;
  graph::Graph graph;
  int compute_capability;
};

std::vector<Reviewed> reviewed_kernels() {
  return {
      {"add", shipped("add"), 90},
      {"add_short", short_add(1), 90},
      {"add_short_wide", short_add(4), 90},
      {"add_ragged_f16", add_graph(1001, 512, f16), 90},
      {"softmax", shipped("softmax"), 90},
      {"softmax_four_rows_sm75", softmax_graph(1000, 4), 75},
      {"softmax_streamed", softmax_graph(1 << 20), 90},
      {"layer_norm", shipped("layer_norm"), 90},
      {"rms_norm", shipped("rms_norm"), 90},
      {"cross_entropy", shipped("cross_entropy"), 90},
      {"transpose", shipped("transpose"), 90},
      {"transpose_wide", wide_transpose(), 90},
      {"cumsum_rows", cumsum_graph({4, 1000}, 1), 90},
      {"cumsum_reverse_f16", cumsum_graph({5000}, 0, true, f16), 90},
      {"matmul", shipped("matmul"), 90},
      {"matmul_f16_sm75", matmul_graph(f16, {.m = 1000, .n = 700, .k = 300}), 75},
      {"matmul_bf16_transposed",
       matmul_graph(bf16, {.m = 1024, .n = 512, .k = 256, .trans_b = true}), 90},
      {"blur", shipped("blur"), 90},
      {"attention", attention_graph(), 90},
      {"attention_shipped", shipped("attention"), 90},
      {"rotate", rotate_graph(), 90},
      {"vm", vm_graph(), 90},
      {"softmax_8_warps", by_warps(8, softmax_graph(4096)), 90},
      {"matmul_8_warps",
       by_warps(
           8, matmul_graph(f16, {.m = 1024, .n = 1024, .k = 256, .block_m = 128, .block_n = 128})),
       90},
  };
}

/// What a kernel's report comes to, by name.
std::vector<std::pair<std::string, double>> figures(const Report& r) {
  double sectors = 0, wavefronts = 0;
  for (const AccessReport& a : r.accesses) (a.shared ? wavefronts : sectors) += a.touched * a.times;
  const InstructionMix& m = r.mix;
  return {{"global_loads", m.global_loads},
          {"global_stores", m.global_stores},
          {"shared_loads", m.shared_loads},
          {"shared_stores", m.shared_stores},
          {"operations", m.operations},
          {"special", m.special},
          {"exchanges", m.exchanges},
          {"barriers", m.barriers},
          {"sectors", sectors},
          {"wavefronts", wavefronts},
          {"bytes_per_element", r.bytes_per_element()}};
}

}  // namespace

TEST_CASE("the emitted text of a dozen kernels is the one that was reviewed") {
  for (const Reviewed& k : reviewed_kernels()) {
    INFO(k.name << ".cu");
    const std::string text = cuda::emit(k.graph, {.compute_capability = k.compute_capability}).text;
    CHECK(golden(std::string(k.name) + ".cu", text) == text);
  }
}

TEST_CASE("none of these kernels asks more of the machine than when it was reviewed") {
  constexpr double tolerance = 1.02;
  std::ostringstream found;
  std::map<std::pair<std::string, std::string>, double> now;
  for (const Reviewed& k : reviewed_kernels())
    for (const auto& [what, n] :
         figures(cuda::report(k.graph, {.compute_capability = k.compute_capability}))) {
      found << k.name << ' ' << what << ' ' << n << '\n';
      now[{k.name, what}] = n;
    }
  std::istringstream reviewed(golden("report.txt", found.str()));
  std::string kernel, what;
  double most = 0;
  std::size_t compared = 0;
  for (; reviewed >> kernel >> what >> most; ++compared) {
    INFO(kernel << ": " << what);
    CHECK(now.at({kernel, what}) <= most * tolerance);
  }
  CHECK(compared == now.size());
}
