// NVRTC and ptxas on kernels over meshes, without spills.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

graph::Graph over(std::vector<Body> bodies, const Meshes& meshes, const PallasCallOptions& options,
                  const std::vector<trace::ArgumentType>& arguments) {
  return trace::trace(bodies, options, arguments, here(), nullptr, nullptr, {},
                      {.meshes = &meshes, .is_list = meshes.is_list});
}

void check_architectures(const graph::Graph& g) { CHECK(compile_problem(g) == ""); }

}  // namespace

TEST_CASE("a body of two Pallas threads over a grid compiles for every architecture") {
  check_architectures(over(
      {[](Ref x, Ref total, Ref o, Ref s) {
        const Value row = axis_index("i"), wg = axis_index("wg");
        s[wg] = x[{row, ds(wg * 500, 500)}];
        o[{row, ds(wg * 500, 500)}] = s[wg] - pl::max(s[wg]);
        total[{row, wg}] += pl::sum(s[wg]);
      }},
      gpu::Mesh{.grid = {30}, .grid_names = {"i"}, .num_threads = 2, .thread_name = "wg"},
      {.name = "rows", .out_type = {{30, 1000}, f32}, .scratch_types = {gpu::SMEM({2, 500}, f32)}},
      {array({30, 1000}), {.type = {{30, 2}, f32}, .is_ref = true}}));
}

TEST_CASE("two bodies of one launch compile for every architecture") {
  const gpu::Mesh one{.grid = {4}, .grid_names = {"i"}};
  gpu::Mesh two = one;
  two.num_threads = 2;
  two.thread_name = "wg";
  check_architectures(
      over({[](Ref x, Ref o, Ref) {
              o[{0, axis_index("i"), _}] = x[{axis_index("i"), _}] * 2.f;
            },
            [](Ref x, Ref o, Ref kept) {
              kept[_] = x[{axis_index("i"), ds(axis_index("wg") * 128, 128)}];
              o[{1, axis_index("i"), ds(axis_index("wg") * 128, 128)}] = pl::exp(kept[_]);
            }},
           Meshes{one, two},
           {.name = "halves",
            .out_type = {{2, 4, 256}, f32},
            .scratch_types = {gpu::REGS({128}, f32).on(1)}},
           {array({4, 256})}));
}

TEST_CASE("semaphores of blocks and of a launch compile for every architecture") {
  const gpu::Mesh mesh{.grid = {4}, .grid_names = {"i"}};
  check_architectures(
      over({[](Ref x, Ref, Ref buffer, Ref full, Ref empty) {
              pl::loop(0, 6, [&](Index i) {
                pl::semaphore_wait(empty.at(i % 2));
                buffer[i % 2] = x[{axis_index("i"), ds(i * 256, 256)}];
                pl::semaphore_signal(full.at(i % 2));
              });
            },
            [](Ref, Ref o, Ref buffer, Ref full, Ref empty) {
              const Ref turn = pl::get_global(gpu::SemaphoreType::REGULAR());
              for (int slot = 0; slot < 2; ++slot) pl::semaphore_signal(empty.at(slot));
              pl::loop(0, 6, [&](Index i) {
                pl::semaphore_wait(full.at(i % 2));
                o[{axis_index("i"), ds(i * 256, 256)}] = pl::exp(buffer[i % 2]);
                pl::semaphore_signal(empty.at(i % 2));
              });
              pl::semaphore_wait(turn, axis_index("i"), {.decrement = false});
              const Value n = pl::semaphore_read(turn);
              o[{axis_index("i"), 0}] += n.astype(f32);
              pl::semaphore_signal(turn);
            }},
           Meshes{mesh, mesh},
           {.name = "hand_over",
            .out_type = {{4, 6 * 256}, f32},
            .scratch_types = {gpu::SMEM({2, 256}, f32), gpu::SemaphoreType::REGULAR({2}),
                              gpu::SemaphoreType::REGULAR({2})}},
           {array({4, 6 * 256})}));
}

TEST_CASE("integers of 4 bits, and what warps do, compile for every architecture") {
  check_architectures(over({[](Ref x, Ref scale, Ref o, Ref q, Ref totals, Ref turn) {
                             const Value row = axis_index("i");
                             const Value v = x[{row, _}].astype(f32) * scale[{row, _}];
                             o[{row, _}] = v;
                             q[{row, _}] = pl::round(v).astype(u4);
                             const Value total = pl::sum(v);
                             pl::core_map(gpu::WarpMesh{"w"})([&] {
                               const Value w = axis_index("w");
                               pl::semaphore_wait(turn, w, {.decrement = false});
                               const Value old = pl::atomic_add(totals.at(row), total);
                               pl::when(old > 4.0f, [&] { totals[row] = old * w.astype(f32); });
                               pl::semaphore_signal(turn);
                             });
                           }},
                           gpu::Mesh{.grid = {30}, .grid_names = {"i"}},
                           {.name = "dequantize",
                            .out_type = {{{30, 256}, f32}, {{30, 256}, u4}, {{30}, f32}},
                            .scratch_types = {gpu::SemaphoreType::REGULAR()}},
                           {array({30, 256}, i4), array({30, 256})}));
}

TEST_CASE("semaphores of a cluster compile where there are clusters [E24]") {
  const graph::Graph g =
      over({[](Ref o) {
             pl::run_scoped(
                 [&](Ref both) {
                   const Value rank = axis_index("z");
                   pl::semaphore_wait(both, rank, {.decrement = false});
                   o[{axis_index("i"), rank}] = rank;
                   pl::semaphore_signal(both);
                 },
                 {gpu::SemaphoreType::REGULAR()}, {.collective_axes = {"z"}});
           }},
           gpu::Mesh{.grid = {4}, .grid_names = {"i"}, .cluster = {2}, .cluster_names = {"z"}},
           {.name = "ranks", .out_type = {{4, 2}, i32}}, {});
  CHECK(compile_problem(g, "sm_90a") == "");
  CHECK_THROWS_WITH(compile_problem(g, "sm_80"), Catch::Matchers::ContainsSubstring(
                                                     "a cluster of 2 blocks needs sm_90 or newer"));
}

TEST_CASE("what kernels print and check compiles for every architecture") {
  pl::enable_debug_checks();
  const graph::Graph g =
      over({[](Ref x, Ref o) {
             const Value wg = axis_index("wg");
             pl::debug_check(x[_] < 4.0f, "small");
             pl::debug_print("{} of {}: {}", wg, axis_index("i"), pl::max(x[_]));
             pl::debug_print("{}", pl::Value(x[{0, ds(0, 100)}]).astype(f16));
             o[{axis_index("i"), wg}] = pl::sum(x[_]);
           }},
           gpu::Mesh{.grid = {30}, .grid_names = {"i"}, .num_threads = 2, .thread_name = "wg"},
           {.name = "tells", .out_type = {{30, 2}, f32}}, {array({30, 1000})});
  pl::enable_debug_checks(false);
  check_architectures(g);
}
