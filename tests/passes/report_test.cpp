// What a kernel's report says of its accesses and instructions.
#include <utility>

#include "tests/passes/lowering.hpp"

#include <catch2/catch_test_macros.hpp>

#include "codegen/graph/transform.hpp"
#include "palladium/ops/attention.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"

namespace {

using namespace palladium;
using namespace palladium::test;

Report reported(std::string_view graph, int compute_capability = 90) {
  return cuda::report(graph_of(graph), {.compute_capability = compute_capability});
}

const AccessReport& access(const Report& r, bool shared, bool store) {
  for (const AccessReport& a : r.accesses)
    if (a.shared == shared && a.store == store) return a;
  FAIL("no such access");
  return r.accesses[0];
}

TEST_CASE("the report has the timeline of a kernel, and says where there is none") {
  const std::string copy = whole({"f32[1024]"}, {"f32[1024]"}, R"(
  %2: f32[1024] = load %0
  store %1, %2)");
  const Timeline t = reported(copy).timeline;
  REQUIRE(t.loops.size() == 1);
  CHECK(t.loops[0].is_kernel);
  CHECK(t.loops[0].cycles > 0);
  CHECK(!reported(copy, 75).timeline.unknown.empty());
}

TEST_CASE("a row that a warp reads in order touches no more sectors than it needs") {
  const Report r = reported(whole({"f32[1024]"}, {"f32[1024]"}, R"(
  %2: f32[1024] = load %0
  %3: f32[1024] = exp %2
  store %1, %3)"));
  const AccessReport& load = access(r, false, false);
  CHECK(load.bytes == 16);
  CHECK(load.times == 2);
  CHECK(load.touched == 16);
  CHECK(load.needed == 16);
  CHECK(r.mix.global_loads == 2);
  CHECK(r.mix.global_stores == 2);
  CHECK(r.mix.special == 8);
  CHECK(r.mix.barriers == 0);
  CHECK(r.global_bytes == 64);
  CHECK(load.useful_bytes == 512);
  CHECK(load.moved_bytes == 512);
  CHECK(load.bytes_per_element() == 4);
  CHECK(r.bytes_per_element() == 8);
  CHECK_FALSE(r.depends_on_call);
}

TEST_CASE("loads that fill a sector in a loop share it") {
  const Report narrow = reported(whole({"f32[2048]"}, {"i8[2048]"}, R"(
  %2: f32[2048] = load %0
  %3: i8[2048] = cast %2
  store %1, %3)"));
  const AccessReport& load = access(narrow, false, false);
  CHECK(load.bytes == 16);
  CHECK(load.times == 4);
  CHECK(load.touched == 32);
  CHECK(load.moved_bytes == 512);
  CHECK(narrow.bytes_per_element() == 5);
  const Report apart = reported(whole({"f32[128,8]"}, {"f32[128]"}, R"(
  %2: ref block f32[128] = at %0 [:, 0]
  %3: f32[128] = load %2
  %4: ref block f32[128] = at %0 [:, 1]
  %5: f32[128] = load %4
  %6: f32[128] = add %3, %5
  store %1, %6)"));
  CHECK(access(apart, false, false).bytes_per_element() == 32);
}

TEST_CASE("a column that a warp reads touches a sector for each element") {
  const Report r = reported(whole({"f32[128,64]"}, {"f32[128]"}, R"(
  %2: ref block f32[128] = at %0 [:, 3]
  %3: f32[128] = load %2
  store %1, %3)"));
  const AccessReport &load = access(r, false, false), &store = access(r, false, true);
  CHECK(load.touched == 32);
  CHECK(load.needed == 4);
  CHECK(load.bytes_per_element() == 32);
  CHECK(r.bytes_per_element() == load.bytes_per_element() + store.bytes_per_element());
}

TEST_CASE("the lanes whose test fails touch nothing") {
  const Report r = reported(whole({"f32[8]"}, {"f32[8]"}, R"(
  %2: f32[8] = load %0
  store %1, %2)"));
  CHECK(access(r, false, true).touched == 1);
  CHECK(access(r, false, true).useful_bytes == 32);
}

TEST_CASE("bank conflicts are the wavefronts beyond those that the bytes need") {
  const Report r = reported(whole({"f32[32,32]"}, {"f32[32,32]"}, R"(
  %3: f32[32,32] = load %0
  store %2, %3
  %4: ref smem f32[32,32] = ref_transpose %2 [1,0]
  %5: f32[32,32] = load %4
  store %1, %5)",
                                  {"smem f32[32,32]"}));
  int most = 0;
  for (const AccessReport& a : r.accesses)
    if (a.shared && a.needed > 0) most = std::max(most, a.touched / a.needed);
  CHECK(most > 1);
  CHECK(r.mix.barriers >= 1);
}

TEST_CASE("a loop's accesses count by its trips") {
  const Report r = reported(whole({"f32[8,512]"}, {"f32[512]"}, R"(
  %2: i32[] = constant 0
  %3: i32[] = constant 8
  %4: f32[512] = constant 0
  %5 = loop %2, %3 carry %4
    { %6: i32[] %7: f32[512]
      %8: ref block f32[512] = at %0 [%6,:]
      %9: f32[512] = load %8
      %10: f32[512] = add %7, %9
      yield %10
    }
  %11: f32[512] = get %5 [0]
  store %1, %11)"));
  CHECK(access(r, false, false).times == 8);
  CHECK_FALSE(r.depends_on_call);
}

TEST_CASE("an index that is made of itself many times over is evaluated once per lane") {
  std::string body;
  int last = 1;
  const auto add = [&](const std::string& what) {
    body += "  %" + std::to_string(++last) + ": " + what + "\n";
    return "%" + std::to_string(last);
  };
  std::string at = add("i32[] = program_id [0]"), before = at;
  for (int i = 0; i < 60; ++i) before = std::exchange(at, add("i32[] = add " + at + ", " + before));
  const std::string view = add("ref block f32[1,512] = at %0 [ds(" + at + ",1),:]");
  const std::string value = add("f32[1,512] = load " + view);
  const Report r = reported(R"(kernel k
  grid 4
  args[0]: f32[8,512] in blocks [8,512]
  outputs[0]: f32[4,512] in blocks [1,512]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
{ %0: ref block f32[8,512] %1: ref block f32[1,512]
)" + body + "  store %1, " + value +
                            "\n}\n");
  CHECK(access(r, false, false).times == 1);
}

TEST_CASE("an access whose place depends on data says so by having no sectors") {
  const Report r = reported(whole({"f32[512]", "i32[1]"}, {"f32[64]"}, R"(
  %3: ref block i32[] = at %1 [0]
  %4: i32[] = load %3
  %5: ref block f32[64] = at %0 [ds(%4,64)]
  %6: f32[64] = load %5
  store %2, %6)"));
  int unknown = 0;
  for (const AccessReport& a : r.accesses) unknown += a.needed == 0;
  CHECK(unknown == 1);
  CHECK(r.moved_bytes > 0);
}

}  // namespace

TEST_CASE("a product is predicted to take what its tensor cores do, or its operands") {
  // 64 steps of 128 x 256 x 64 multiply-adds, 2048 in a clock; 132 of 2 x 132 programs at once.
  const MatmulShape shape{
      .m = 128 * 22, .n = 256 * 12, .k = 4096, .block_m = 128, .block_n = 256, .block_k = 64};
  const auto predicted = [&](DType t, int cc) {
    graph::Graph g = by_warps(8, matmul_graph(t, shape));
    return cuda::report(g, {.compute_capability = cc}).prediction;
  };
  const Prediction p = predicted(f16, 90);
  CHECK(p.device == "H100 SXM");
  CHECK(p.tensor == 64 * 128 * 256 * 64 / 2048.0);
  // Both operands of each step, and the result, at 64 bytes in a clock.
  CHECK(p.memory == (64 * (128 + 256) * 64 * 2 + 128 * 256 * 4) / 64.0);
  CHECK(p.clocks() == p.tensor);
  CHECK(p.microseconds == 2 * p.tensor / 1755);
  // Operands of both warpgroups, B for each of them.
  CHECK(p.shared >= 64 * (128 * 64 + 2 * 256 * 64) * 2 / 128);
  CHECK(p.shared < p.tensor);
  // mma.sync of the A100 multiplies half as many.
  CHECK(predicted(bf16, 80).tensor == 2 * p.tensor);
}

TEST_CASE("what only moves elements is predicted to take what memory does") {
  const graph::Graph g = add_graph(1 << 24, 1024);
  const Prediction p = cuda::report(g, {.compute_capability = 90}).prediction;
  CHECK(p.microseconds == 3 * 4 * (1 << 24) / 3352e3);
  CHECK(p.memory == 3 * 4 * 1024 / 64.0);
  CHECK(p.clocks() == p.memory);
  CHECK(p.tensor == 0);
  CHECK(p.special == 0);
  // More of the same takes longer.
  const Prediction twice =
      cuda::report(add_graph(1 << 25, 2048), {.compute_capability = 90}).prediction;
  CHECK(twice.microseconds == 2 * p.microseconds);
  CHECK(twice.memory == 2 * p.memory);
  CHECK(twice.issue > p.issue);
}

TEST_CASE("a softmax is predicted to take the special functions of its rows") {
  const Prediction p = cuda::report(softmax_graph(1024), {.compute_capability = 90}).prediction;
  CHECK(p.special == 1024 / 16.0);
  CHECK(p.memory == 2 * 4 * 1024 / 64.0);
  CHECK(p.issue > 0);
  CHECK(p.tensor == 0);
}

TEST_CASE("attention is predicted to take what its products do, where its length is known") {
  const ShapeDtype x{{4, 16, 4096, 128}, f16};
  const graph::Graph g = graph::from_json(ops::attention().lower(x, x, x).json());
  const Prediction p = cuda::report(g, {.compute_capability = 90}).prediction;
  // 32 blocks of keys, two products each; 2,048 programs in 16 waves.
  CHECK(p.tensor == 32 * 2 * 128 * 128 * 128 / 2048.0);
  CHECK(p.clocks() == p.tensor);
  CHECK(p.microseconds == 16 * p.tensor / 1755);
  CHECK(p.special > p.tensor / 2);
  CHECK(p.special < p.tensor);
}
