// Blocks of a cluster: barriers at which all of them arrive, memory that they see of each other,
// and copies that they share.
#include <algorithm>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace clusters {

/// A kernel of a cluster of two blocks along "x", one behind the other along the grid.
gpu::KernelOptions of_two(const Shape& shape, ScratchTypes scratch) {
  return {.name = "two_blocks",
          .out_type = {shape, f32},
          .cluster = {2},
          .cluster_names = {"x"},
          .scratch_types = std::move(scratch),
          .interpret = InterpretParams{.detect_races = true}};
}

/// Of counted({2, 64, 32}): each half is what the other one was.
bool gives_halves_of_other_block(const Array& array) {
  const std::vector<float> o = elements<float>(array);
  for (std::size_t i = 0; i < o.size(); ++i)
    if (o[i] != static_cast<float>((i + 2048) % 4096)) return false;
  return true;
}

TEST_CASE("a block reads the shared memory of another one of its cluster [M49]") {
  for_each_target("read", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref b) {
          const Value block = axis_index("x");
          s[_] = x[block];
          gpu::barrier_arrive(b);
          gpu::barrier_wait(b);
          o[block] = gpu::cluster_ref(s, {{"x", 1 - block}})[_];
        },
        of_two({2, 64, 32}, {gpu::SMEM({64, 32}, f32), gpu::ClusterBarrier({{"x"}})}));
    CHECK(gives_halves_of_other_block(k.on(target)(on(target, counted({2, 64, 32})))));
  });
}

TEST_CASE("a block stores to the shared memory of another one of its cluster [M49]") {
  for_each_target("write", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref b) {
          const Value block = axis_index("x");
          const Ref other = gpu::cluster_ref(s, {{"x", 1 - block}});
          for (int half = 0; half < 2; ++half)
            other.at(ds(32 * half, 32))[_] = x[{block, ds(32 * half, 32), _}];
          gpu::barrier_arrive(b);
          gpu::barrier_wait(b);
          o[block] = s[_];
        },
        of_two({2, 64, 32}, {gpu::SMEM({64, 32}, f32), gpu::ClusterBarrier({{"x"}})}));
    CHECK(gives_halves_of_other_block(k.on(target)(on(target, counted({2, 64, 32})))));
  });
}

TEST_CASE("a copy that blocks share brings all of it to each of them [M37]") {
  for_each_target("shared", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref b) {
          gpu::copy_gmem_to_smem(x, s, b, {.collective_axes = {"x"}});
          gpu::barrier_wait(b);
          o[axis_index("x")] = s[_];
        },
        of_two({2, 128}, {gpu::SMEM({128}, f32), gpu::Barrier()}));
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({128}))));
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<float>(i % 128));
    CHECK_THAT(k.lower(ShapeDtype{{128}, f32}).cuda_source({.arch = "sm_90a"}),
               ContainsSubstring("pl::tma_load_multicast(") &&
                   ContainsSubstring("mbarrier_arrive_expect_tx(") && ContainsSubstring(", 512)"));
  });
}

TEST_CASE(
    "copies are shared along some axes of a cluster, and each block has its own along others "
    "[M36]") {
  struct Case {
    std::vector<Dim> cluster;
    std::vector<std::string> shared;
  };
  const Case cases[] = {{{2, 2}, {"x"}},      {{2, 2}, {"y"}},      {{2, 2}, {"x", "y"}},
                        {{1, 2}, {"x", "y"}}, {{4, 1}, {"x"}},      {{2, 4}, {"x", "y"}},
                        {{1, 1}, {"x", "y"}}, {{4, 2}, {"y", "x"}}, {{2, 1}, {}}};
  for (const Case& c : cases)
    for_each_target("along", [&](Target target) {
      const Kernel k = gpu::kernel(
          [c](Ref x, Ref o, Ref s, Ref b) {
            // What differs between blocks that share nothing is theirs.
            const auto own = [&](const char* axis) {
              return std::ranges::find(c.shared, axis) == c.shared.end() ? axis_index(axis)
                                                                         : Value(0);
            };
            const Value row = own("x") * 4 + own("y");
            gpu::copy_gmem_to_smem(x.at(row), s, b, {.collective_axes = c.shared});
            gpu::barrier_wait(b);
            o[axis_index({"x", "y"})] = s[_];
          },
          {.name = "along",
           .out_type = {{c.cluster[0].value() * c.cluster[1].value(), 64, 64}, f16},
           .cluster = c.cluster,
           .cluster_names = {"x", "y"},
           .scratch_types = {gpu::SMEM({64, 64}, f16), gpu::Barrier()},
           .interpret = InterpretParams{.detect_races = true}});
      const Array x = make_array<float>({16, 64, 64}, [](std::int64_t i) { return i / 64 % 1024; });
      const std::vector<float> o =
          elements<float>(on_cpu(k.on(target)(on(target, x.astype(f16)))).astype(f32));
      const auto is_shared = [&](const char* axis) {
        return std::ranges::find(c.shared, axis) != c.shared.end();
      };
      bool right = true;
      for (std::size_t i = 0; i < o.size(); ++i) {
        const std::size_t block = i / 4096,
                          columns = static_cast<std::size_t>(c.cluster[1].value());
        const std::size_t row =
            (is_shared("x") ? 0 : block / columns * 4) + (is_shared("y") ? 0 : block % columns);
        right = right && o[i] == static_cast<float>((row * 64 + i % 4096 / 64) % 1024);
      }
      CHECK(right);
    });
}

TEST_CASE(
    "blocks that differ along one axis, or a group of them, meet at a cluster barrier [M46]") {
  struct Case {
    std::vector<gpu::ClusterAxes> axes;
    int arrivals;
  };
  const Case cases[] = {{{"x"}, 2},
                        {{"y"}, 2},
                        {{"z"}, 2},
                        {{"x", "z"}, 3},
                        {{"x", "y", "z"}, 4},
                        {{gpu::ClusterAxes{"x", "y"}}, 4},
                        {{gpu::ClusterAxes{"x", "y"}, "z"}, 5}};
  for (const Case& c : cases)
    for_each_target("meet", [&](Target target) {
      // Of more than two, one who has met all may come again where another has not been told yet.
      const int times = c.arrivals == 2 ? 3 : 1;
      const Kernel k = gpu::kernel(
          [=](Ref o, Ref b) {
            const Value block = axis_index({"x", "y", "z"});
            pl::loop(0, times, [&](Index) {
              gpu::barrier_arrive(b);
              gpu::barrier_wait(b);
            });
            o[block] = block;
          },
          {.name = "meet",
           .out_type = {{8}, i32},
           .cluster = {2, 2, 2},
           .cluster_names = {"x", "y", "z"},
           .scratch_types = {gpu::ClusterBarrier({.collective_axes = c.axes})},
           .interpret = InterpretParams{.detect_races = true}});
      const std::vector<std::int32_t> o = elements<std::int32_t>(k.on(target)());
      for (std::int32_t i = 0; i < 8; ++i) CHECK(o[static_cast<std::size_t>(i)] == i);
      CHECK_THAT(verdict_of(k, {}), Catch::Matchers::StartsWith("good"));
      CHECK_THAT(k.lower().cuda_source({.arch = "sm_90a"}),
                 ContainsSubstring(", " + std::to_string(c.arrivals) + ");"));
    });
}

// c = a @ b by clusters of 2 x 2 blocks: those of a row of tiles share A's, those of a column B's.
// A slot is filled again when all who share one of its tiles have read it.
constexpr int tile = 64, steps = 5, slots = 2;
void multiply_in_clusters(Ref a, Ref b, Ref c, Ref a_smem, Ref b_smem, Ref full, Ref empty) {
  const Value row = axis_index({"m", "x"}) * tile, column = axis_index({"n", "y"}) * tile;
  const auto fetch = [&](const Value& step) {
    const Value slot = step % slots;
    gpu::copy_gmem_to_smem(a.at({ds(row, tile), ds(step * tile, tile)}), a_smem.at(slot),
                           full.at(slot), {.collective_axes = {"y"}});
    gpu::copy_gmem_to_smem(b.at({ds(step * tile, tile), ds(column, tile)}), b_smem.at(slot),
                           full.at(slot), {.collective_axes = {"x"}});
  };
  for (int step = 0; step < slots; ++step) fetch(i32(step));
  pl::run_scoped(
      [&](Ref acc) {
        pl::loop(0, steps, [&](Index step) {
          const Value slot = step % slots;
          gpu::barrier_wait(full.at(slot));
          gpu::wgmma(acc, a_smem.at(slot), b_smem.at(slot));
          gpu::wgmma_wait(0);
          pl::when(step + slots < steps, [&] {
            gpu::barrier_arrive(empty.at(slot));
            gpu::barrier_wait(empty.at(slot));
            fetch(step + slots);
          });
        });
        c[{ds(row, tile), ds(column, tile)}] = acc[_];
      },
      {gpu::ACC({tile, tile}, f32)});
}

TEST_CASE("a product whose blocks share tiles with those of their row and of their column [M71]") {
  for_each_target("matmul", [](Target target) {
    const std::int64_t m = 256, n = 128, k = steps * tile;
    const Kernel kernel = gpu::kernel(
        multiply_in_clusters,
        {.name = "clusters",
         .out_type = {{m, n}, f32},
         .grid = {m / tile / 2, n / tile / 2},
         .grid_names = {"m", "n"},
         .cluster = {2, 2},
         .cluster_names = {"x", "y"},
         .scratch_types = {gpu::SMEM({slots, tile, tile}, f16), gpu::SMEM({slots, tile, tile}, f16),
                           gpu::Barrier({.num_arrivals = 2, .num_barriers = slots}),
                           gpu::ClusterBarrier(
                               {.collective_axes = {"x", "y"}, .num_barriers = slots})},
         .interpret = InterpretParams{.detect_races = true}});
    const auto a = [](std::int64_t i, std::int64_t p) { return (3 * i + 5 * p) % 7 - 3; };
    const auto b = [](std::int64_t p, std::int64_t j) { return (2 * p + 3 * j) % 5 - 2; };
    const Array x = make_array<float>({m, k}, [&](std::int64_t i) { return a(i / k, i % k); });
    const Array y = make_array<float>({k, n}, [&](std::int64_t i) { return b(i / n, i % n); });
    const std::vector<float> c =
        elements<float>(kernel.on(target)(on(target, x.astype(f16)), on(target, y.astype(f16))));
    bool right = true;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        float expected = 0;
        for (std::int64_t p = 0; p < k; ++p) expected += static_cast<float>(a(i, p) * b(p, j));
        right = right && c[static_cast<std::size_t>(i * n + j)] == expected;
      }
    CHECK(right);
    const std::vector<ArgType> types{ShapeDtype{{m, k}, f16}, ShapeDtype{{k, n}, f16}};
    CHECK_THAT(verdict_of(kernel, types), Catch::Matchers::StartsWith("good"));
    const std::string source = kernel.lower(types).cuda_source({.arch = "sm_90a"});
    CHECK_THAT(source, ContainsSubstring("pl::tma_load_multicast("));
    const Resources r = kernel.lower(types).compile({.arch = "sm_90a"}).resources();
    CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
    for (const std::string& warning : r.warnings) FAIL_CHECK(warning);
    // Of products and copies alone blocks tell each other without waiting for stores of threads.
    CHECK_THAT(source, ContainsSubstring("pl::mbarrier_arrive_remote(") &&
                           !ContainsSubstring("pl::mbarrier_arrive_cluster("));
  });
}

TEST_CASE("what blocks cannot divide, or TMA cannot copy, they do not share") {
  const auto share = [](const Shape& shape) {
    return refused([&] {
      (void)gpu::kernel(
          [](Ref x, Ref, Ref s, Ref b) {
            gpu::copy_gmem_to_smem(x, s, b, {.collective_axes = {"x"}});
            gpu::barrier_wait(b);
          },
          of_two({2}, {gpu::SMEM(shape, f32), gpu::Barrier()}))
          .lower(ShapeDtype{shape, f32})
          .cuda_source({.arch = "sm_90a"});
    });
  };
  CHECK(share({1, 64}) == "");  // whose columns are divided
  CHECK_THAT(share({5, 7}),
             ContainsSubstring("copy_gmem_to_smem: 2 blocks cannot share a copy of ref smem "
                               "f32[5,7]: no extent is a multiple of 2"));
  CHECK_THAT(share({2, 3}),
             ContainsSubstring("copy_gmem_to_smem: 2 blocks cannot share the copy, because TMA "
                               "cannot bring a part of it: ") &&
                 ContainsSubstring("without collective_axes each block copies all of it") &&
                 ContainsSubstring("clusters_test.cpp:"));
}

TEST_CASE("each block brings its part of what is partitioned") {
  for_each_target("partitioned", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref b) {
          gpu::copy_gmem_to_smem(x, s, b, {.collective_axes = {"x"}, .partitioned = 1});
          gpu::barrier_wait(b);
          o[axis_index("x")] = s[_];
        },
        of_two({2, 8, 32}, {gpu::SMEM({8, 32}, f32), gpu::Barrier()}));
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({8, 64}))));
    bool right = true;
    for (std::size_t i = 0; i < o.size(); ++i)
      right = right && o[i] == static_cast<float>(i % 256 / 32 * 64 + i / 256 * 32 + i % 32);
    CHECK(right);
  });
}

TEST_CASE("scratch of a run_scoped is that of the block where blocks see each other's") {
  for_each_target("scoped", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          const Value block = axis_index("x");
          pl::run_scoped(
              [&](Ref s, Ref b) {
                s[_] = x[block];
                gpu::barrier_arrive(b);
                gpu::barrier_wait(b);
                o[block] = gpu::cluster_ref(s, {{"x", 1 - block}})[_];
              },
              {gpu::SMEM({256}, f32), gpu::ClusterBarrier({{"x"}})});
        },
        of_two({2, 256}, {}));
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({2, 256}))));
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<float>((i + 256) % 512));
  });
}

// ---- what is refused

std::string traced(const Body& body, ScratchTypes scratch) {
  return refused([&] {
    gpu::kernel(body, of_two({2, 64}, std::move(scratch))).lower(ShapeDtype{{64}, f32});
  });
}

TEST_CASE("what is no cluster, no memory of one, or no part of a copy is refused") {
  const ScratchTypes room{gpu::SMEM({64}, f32), gpu::Barrier()};
  CHECK_THAT(traced(
                 [](Ref, Ref, Ref s, Ref) {
                   gpu::cluster_ref(s, {{"q", 0}});
                 },
                 room),
             ContainsSubstring("cluster_ref: no axis is named 'q'"));
  CHECK_THAT(traced(
                 [](Ref x, Ref, Ref, Ref) {
                   gpu::cluster_ref(x, {{"x", 0}});
                 },
                 room),
             ContainsSubstring("cluster_ref: expected a Ref in SMEM"));
  CHECK_THAT(
      traced([](Ref, Ref, Ref, Ref) {}, {gpu::SMEM({64}, f32), gpu::ClusterBarrier({{"x", "x"}})}),
      ContainsSubstring("ClusterBarrier: 'x' stands in collective_axes twice"));
  CHECK_THAT(traced(
                 [](Ref x, Ref, Ref s, Ref b) {
                   gpu::copy_gmem_to_smem(x, gpu::cluster_ref(s, {{"x", 0}}), b);
                 },
                 room),
             ContainsSubstring("memory of another block of the cluster is loaded and stored to"));
  CHECK_THAT(traced(
                 [](Ref x, Ref, Ref s, Ref b) {
                   gpu::copy_gmem_to_smem(x, s, b, {.collective_axes = {"x"}, .partitioned = 0});
                 },
                 room),
             ContainsSubstring("copy_gmem_to_smem: expected source shape to be [128], given [64]: "
                               "dimension 0 is partitioned over 2 blocks"));
  const auto in_no_cluster = [] {
    gpu::kernel(
        [](Ref, Ref s) {
          gpu::cluster_ref(s, {{"x", 0}});
        },
        {.out_type = {{4}, f32}, .scratch_types = {gpu::SMEM({4}, f32)}})
        .lower();
  };
  CHECK_THAT(refused(in_no_cluster), ContainsSubstring("cluster_ref: no axis is named 'x'"));
}

TEST_CASE("a block that there is not is an error of who looks for it") {
  const Kernel k = gpu::kernel(
      [](Ref o, Ref s, Ref n) {
        s[_] = zeros({64}, f32);
        n[0] = i32(5);
        const Value block = n[0];
        o[axis_index("x")] = gpu::cluster_ref(s, {{"x", block}})[_];
      },
      of_two({2, 64}, {gpu::SMEM({64}, f32), gpu::REGS({1}, i32)}));
  CHECK_THAT(refused([&] { k.on(Target::interpreter)(); }),
             ContainsSubstring("cluster_ref: there is no block 5 in a cluster of 2"));
}

// ---- wrong programs

struct Wrong {
  const char* name;
  void (*body)(Ref x, Ref o, Ref s, Ref full, Ref met);
  const char* words;
};

void fetch(Ref x, Ref s, Ref full, int row) {
  gpu::copy_gmem_to_smem(x.at(row), s.at(row % 2), full.at(row % 2), {.collective_axes = {"x"}});
}
void meet(Ref met, int number) {
  gpu::barrier_arrive(met.at(number));
  gpu::barrier_wait(met.at(number));
}

const Wrong programs[] = {
    {"right: a ring of two slots that blocks fill for each other",
     [](Ref x, Ref o, Ref s, Ref full, Ref met) {
       for (int i = 0; i < 2; ++i) fetch(x, s, full, i);
       for (int i = 0; i < 4; ++i) {
         gpu::barrier_wait(full.at(i % 2));
         o[{axis_index("x"), i, _}] = s[i % 2];
         if (i >= 2) continue;
         meet(met, i % 2);
         fetch(x, s, full, i + 2);
       }
     },
     ""},
    {"a slot is filled again before the other block has read it",
     [](Ref x, Ref o, Ref s, Ref full, Ref) {
       for (int i = 0; i < 2; ++i) fetch(x, s, full, i);
       for (int i = 0; i < 4; ++i) {
         gpu::barrier_wait(full.at(i % 2));
         o[{axis_index("x"), i, _}] = s[i % 2];
         if (i < 2) fetch(x, s, full, i + 2);
       }
     },
     "race on scratch[0]"},
    {"a slot is freed before it is read",
     [](Ref x, Ref o, Ref s, Ref full, Ref met) {
       for (int i = 0; i < 2; ++i) fetch(x, s, full, i);
       for (int i = 0; i < 4; ++i) {
         gpu::barrier_wait(full.at(i % 2));
         if (i < 2) gpu::barrier_arrive(met.at(i % 2));
         o[{axis_index("x"), i, _}] = s[i % 2];
         if (i >= 2) continue;
         gpu::barrier_wait(met.at(i % 2));
         fetch(x, s, full, i + 2);
       }
     },
     "race on scratch[0]"},
    {"the mask is short: one block does not share",
     [](Ref x, Ref o, Ref s, Ref full, Ref) {
       pl::cond(
           axis_index("x") == 0, [&] { fetch(x, s, full, 0); },
           [&] { gpu::copy_gmem_to_smem(x.at(0), s.at(0), full.at(0)); });
       gpu::barrier_wait(full.at(0));
       o[{axis_index("x"), 0, _}] = s[0];
     },
     "deadlock"},
    {"one block alone shares a copy",
     [](Ref x, Ref o, Ref s, Ref full, Ref) {
       pl::when(axis_index("x") == 0, [&] {
         fetch(x, s, full, 0);
         gpu::barrier_wait(full.at(0));
         o[{0, 0, _}] = s[0];
       });
     },
     "deadlock"},
    {"the wait for the copy is left out",
     [](Ref x, Ref o, Ref s, Ref full, Ref) {
       fetch(x, s, full, 0);
       o[{axis_index("x"), 0, _}] = s[0];
       gpu::barrier_wait(full.at(0));
     },
     "scratch[0]"},
    {"the arrival of one block is left out",
     [](Ref x, Ref o, Ref s, Ref, Ref met) {
       s[0] = x[0];
       pl::when(axis_index("x") == 0, [&] { gpu::barrier_arrive(met.at(0)); });
       gpu::barrier_wait(met.at(0));
       o[{axis_index("x"), 0, _}] = s[0];
     },
     "deadlock"},
    {"another block's memory is read before that has arrived",
     [](Ref x, Ref o, Ref s, Ref, Ref met) {
       s[0] = x[0];
       gpu::barrier_arrive(met.at(0));
       o[{axis_index("x"), 0, _}] = gpu::cluster_ref(s, {{"x", 1 - axis_index("x")}})[0];
       gpu::barrier_wait(met.at(0));
     },
     "scratch[0]"},
    {"another block's memory is read without a barrier",
     [](Ref x, Ref o, Ref s, Ref, Ref) {
       s[0] = x[0];
       o[{axis_index("x"), 0, _}] = gpu::cluster_ref(s, {{"x", 1 - axis_index("x")}})[0];
     },
     "scratch[0]"},
    {"what the other block still reads is overwritten",
     [](Ref x, Ref o, Ref s, Ref, Ref met) {
       s[0] = x[0];
       meet(met, 0);
       o[{axis_index("x"), 0, _}] = gpu::cluster_ref(s, {{"x", 1 - axis_index("x")}})[0];
       s[0] = x[1];
     },
     "race on scratch[0]"},
    {"a store to another block is not told to it",
     [](Ref x, Ref o, Ref s, Ref, Ref met) {
       meet(met, 0);
       gpu::cluster_ref(s, {{"x", 1 - axis_index("x")}})[0] = x[0];
       o[{axis_index("x"), 0, _}] = s[0];
     },
     "scratch[0]"},
    {"both blocks store to one place of one block",
     [](Ref x, Ref o, Ref s, Ref, Ref met) {
       gpu::cluster_ref(s, {{"x", 0}})[0] = x[0];
       meet(met, 0);
       o[{axis_index("x"), 0, _}] = gpu::cluster_ref(s, {{"x", 0}})[0];
     },
     "race on scratch[0]"},
};

TEST_CASE("programs whose blocks do not go together are found out, with the lines") {
  for (const Wrong& w : programs) {
    INFO(w.name);
    const std::string found = races_of(
        [body = w.body](Ref x, Ref o, Ref s, Ref full, Ref met) { body(x, o, s, full, met); },
        of_two({2, 4, 64}, {gpu::SMEM({2, 64}, f32), gpu::Barrier({.num_barriers = 2}),
                            gpu::ClusterBarrier({.collective_axes = {"x"}, .num_barriers = 2})}),
        {counted({4, 64})});
    if (*w.words == '\0') {
      CHECK(found == "");
    } else {
      CHECK_THAT(found, ContainsSubstring(w.words) && ContainsSubstring("clusters_test.cpp:"));
    }
  }
}

}  // namespace clusters
