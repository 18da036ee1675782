// NVRTC and ptxas on barriers and copies by hand, for the architectures that have them.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace compiled {

TEST_CASE("barriers and copies by hand compile for Hopper and Blackwell without spills") {
  constexpr int steps = 8, slots = 2;
  const Kernel k = gpu::kernel(
      [](Ref x, Ref o, Ref in, Ref out, Ref odd, Ref full, Ref empty) {
        const Value wg = axis_index("wg"), block = axis_index("i");
        pl::when(wg == 0, [&] {
          pl::loop(0, steps, [&](Index i) {
            pl::when(i >= slots, [&] { gpu::barrier_wait(empty.at(i % slots)); });
            gpu::copy_gmem_to_smem(x.at({block, ds(i * 64, 64)}), in.at(i % slots),
                                   full.at(i % slots));
          });
        });
        pl::when(wg == 1, [&] {
          pl::loop(0, steps, [&](Index i) {
            const Value done = gpu::barrier_test(full.at(i % slots));
            pl::when(!done, [&] { gpu::barrier_wait(full.at(i % slots)); });
            gpu::wait_smem_to_gmem(0, {.wait_read_only = true});
            out[_] = pl::exp(in[i % slots]);
            gpu::commit_smem();
            gpu::copy_smem_to_gmem(out, o.at({block, ds(i * 64, 64)}), {.predicate = i < steps});
            pl::when(i + slots < steps, [&] { gpu::barrier_arrive(empty.at(i % slots)); });
          });
          gpu::copy_gmem_to_smem(x.at({block, 0, ds(0, 23)}), odd, empty.at(0));
          gpu::barrier_wait(empty.at(0));
          gpu::wait_smem_to_gmem(0);
        });
      },
      {.name = "by_hand",
       .out_type = {{4, steps * 64, 64}, f32},
       .grid = {4},
       .grid_names = {"i"},
       .num_threads = 2,
       .thread_name = "wg",
       .scratch_types = {gpu::SMEM({slots, 64, 64}, f32), gpu::SMEM({64, 64}, f32),
                         gpu::SMEM({23}, f32), gpu::Barrier({.num_barriers = slots}),
                         gpu::Barrier({.num_barriers = slots})}});
  const Lowered lowered = k.lower(ShapeDtype{{4, steps * 64, 64}, f32});
  CHECK_THAT(
      lowered.schedule({.arch = "sm_90a"}),
      Catch::Matchers::ContainsSubstring(
          "not explored: whether a barrier_test succeeds is for the order of threads to say"));
  for (const char* arch : {"sm_90", "sm_90a", "sm_100a"}) {
    INFO(arch);
    const Resources r = lowered.compile({.arch = arch}).resources();
    CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
    for (const std::string& warning : r.warnings) FAIL_CHECK(warning);
  }
}

TEST_CASE("copies of several matrices, and of odd rows, compile for Hopper and Blackwell") {
  const std::vector<gpu::Transform> swizzled{gpu::SwizzleTransform(128)};
  const Kernel k = gpu::kernel(
      [](Ref x, Ref y, Ref o, Ref many, Ref odd, Ref b) {
        gpu::copy_gmem_to_smem(x, many, b, {.collective_axes = {"x"}});
        gpu::barrier_wait(b);
        gpu::copy_gmem_to_smem(y, odd, b);
        gpu::barrier_wait(b);
        many[{_, ds(0, 5), ds(0, 64)}] = many[{_, ds(0, 5), ds(0, 64)}] + odd[{ds(0, 2), _, _}];
        gpu::commit_smem();
        gpu::copy_smem_to_gmem(many, o.at(axis_index("x")));
        gpu::wait_smem_to_gmem(0);
      },
      {.name = "matrices",
       .out_type = {{2, 2, 32, 128}, f16},
       .cluster = {2},
       .cluster_names = {"x"},
       .scratch_types = {gpu::SMEM({2, 32, 128}, f16, {.transforms = swizzled}),
                         gpu::SMEM({3, 5, 64}, f16, {.transforms = swizzled}), gpu::Barrier()}});
  const Lowered lowered = k.lower(ShapeDtype{{2, 32, 128}, f16}, ShapeDtype{{3, 5, 64}, f16});
  for (const char* arch : {"sm_90a", "sm_100a"}) {
    INFO(arch);
    const Resources r = lowered.compile({.arch = arch}).resources();
    CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
    for (const std::string& warning : r.warnings) FAIL_CHECK(warning);
  }
  for_each_target("matrices", [&](Target target) {
    const Array x = make_array<float>({2, 32, 128}, [](std::int64_t i) { return i % 512; });
    const Array y = make_array<float>({3, 5, 64}, [](std::int64_t i) { return i % 100; });
    const std::vector<float> o = elements<float>(
        on_cpu(k.on(target)(on(target, x.astype(f16)), on(target, y.astype(f16)))).astype(f32));
    bool right = true;
    for (std::size_t i = 0; i < o.size(); ++i) {
      const std::size_t at = i % 8192, plane = at / 4096, row = at / 128 % 32, column = at % 128;
      const std::size_t added = (plane * 5 + row) * 64 + column;
      const float more = row < 5 && column < 64 ? static_cast<float>(added % 100) : 0;
      right = right && o[i] == static_cast<float>(at % 512) + more;
    }
    CHECK(right);
  });
}

TEST_CASE("a pipeline compiles for Hopper and Blackwell without spills") {
  const BlockSpec tile{{64, 128}, [](Index i) { return Indices{i, 0}; }};
  const Lowered lowered =
      gpu::kernel(
          [=](Ref x, Ref o) {
            gpu::emit_pipeline(
                [](const std::vector<Value>&, Ref in, Ref out) { out[_] = pl::exp(in[_]); },
                {.grid = {16}, .in_specs = {tile}, .out_specs = {tile}, .max_concurrent_steps = 3})(
                x, o);
          },
          {.name = "pipeline", .out_type = {{1024, 128}, f32}})
          .lower(ShapeDtype{{1024, 128}, f32});
  CHECK_THAT(lowered.cuda_source({.arch = "sm_90a"}),
             Catch::Matchers::ContainsSubstring("pl::tma_load(") &&
                 Catch::Matchers::ContainsSubstring("pl::bulk_wait_read<2>()"));
  for (const char* arch : {"sm_90a", "sm_100a"}) {
    INFO(arch);
    const Resources r = lowered.compile({.arch = arch}).resources();
    CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
    for (const std::string& warning : r.warnings) FAIL_CHECK(warning);
  }
}

void check_compiled(const Kernel& k, const std::vector<ArgType>& types) {
  const Resources r = k.lower(types).compile({.arch = "sm_90a"}).resources();
  CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
  for (const std::string& warning : r.warnings) FAIL_CHECK(warning);
}

TEST_CASE("sums of f16, an A of bytes in registers and unions compile for sm_90a without spills") {
  for (const DType t : {f16, f8e4m3, i8}) {
    INFO(t.name());
    const bool is_held = t != f16;
    const DType sum = t == i8 ? i32 : f16;
    const Kernel k = gpu::kernel(
        [=](Ref x, Ref y, Ref o, Ref a, Ref b, Ref out, Ref done) {
          gpu::copy_gmem_to_smem(x, a, done, {.oob_mode = gpu::OOBFillMode::ZEROS});
          gpu::copy_gmem_to_smem(y, b, done, {.oob_mode = gpu::OOBFillMode::ZEROS});
          gpu::barrier_wait(done);
          run_scoped(
              [&](Ref acc) {
                const Ref right = gpu::transpose_ref(b, {1, 0});
                if (is_held) {
                  const Value left = a[_];
                  gpu::wgmma(acc, left, right);
                } else {
                  gpu::wgmma(acc, a, right);
                }
                gpu::wgmma_wait(0);
                out[_] = acc[_];
              },
              {gpu::ACC({64, 128}, sum)});
          gpu::commit_smem();
          gpu::copy_smem_to_gmem(out, o, {.clipped = true});
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "short_sums",
         .out_type = {{64, 128}, sum},
         .scratch_types = {gpu::RefUnion({{gpu::SMEM({64, 64}, t), gpu::SMEM({128, 64}, t)},
                                          gpu::SMEM({64, 128}, sum)}),
                           gpu::Barrier({.num_arrivals = 2})}});
    check_compiled(k, {ShapeDtype{{64, 64}, t}, ShapeDtype{{128, 64}, t}});
  }
}

TEST_CASE("a pipeline that blocks of a cluster share, of arrays of any extent, compiles") {
  const Kernel k = gpu::kernel(
      [](Ref x, Ref o) {
        BlockSpec tile{{64, 64}, [](Index i) { return Indices{0, i}; }};
        BlockSpec shared = tile;
        shared.collective_axes = {"c"};
        gpu::emit_pipeline_warp_specialized(
            [](const std::vector<Value>&, Ref in, Ref out) { out[_] = in[_] + 1.0f; },
            {.grid = {4},
             .in_specs = {shared},
             .out_specs = {tile},
             .wg_axis = "wg",
             .num_compute_wgs = 1})(x, o.at(axis_index("c")));
      },
      {.name = "shared",
       .out_type = {{2, 60, 200}, f32},
       .cluster = {2},
       .cluster_names = {"c"},
       .num_threads = 2,
       .thread_name = "wg"});
  check_compiled(k, {ShapeDtype{{60, 200}, f32}});
}

}  // namespace compiled
