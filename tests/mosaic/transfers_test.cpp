// Copies that add to what is there, that wait at no barrier, that only bring near, that store to
// another block; and barriers and copies where there is no TMA.
#include <algorithm>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace transfers {

const InterpretParams watched{.detect_races = true};

// ---- reductions

Kernel reducing(const char* op, DType t, std::int64_t columns, int blocks) {
  return gpu::kernel(
      [=](Ref x, Ref sum, Ref s, Ref b) {
        gpu::copy_gmem_to_smem(x.at(axis_index("i")), s, b);
        gpu::barrier_wait(b);
        gpu::copy_smem_to_gmem(s, sum, {.reduction_op = op});
        gpu::wait_smem_to_gmem(0);
      },
      {.name = "reducing",
       .grid = {blocks},
       .grid_names = {"i"},
       .scratch_types = {gpu::SMEM({columns}, t), gpu::Barrier()},
       .interpret = watched});
}

TEST_CASE("blocks add rows to one row by copies, each element at once [M29]") {
  for (const DType t : {f32, f16, bf16, i32, u32})
    for (const std::int64_t columns : {128, 23})
      for_each_target("add", [&](Target target) {
        constexpr int blocks = 40;
        const Kernel k = reducing("add", t, columns, blocks);
        const Array sum = on(target, Array::full({columns}, t, 2));
        k.on(target)(on(target, Array::full({blocks, columns}, t, 1)), new_ref(sum));
        const Array now = on_cpu(sum).astype(f32);
        bool right = true;
        for (std::int64_t i = 0; i < columns; ++i)
          right = right && now.data<float>()[i] == blocks + 2.0f;
        CHECK(right);
      });
}

TEST_CASE("copies keep the least and the greatest, and combine bits") {
  struct Case {
    const char* op;
    std::int32_t (*of)(std::int32_t, std::int32_t);
  };
  const Case cases[] = {{"min", [](auto a, auto b) { return std::min(a, b); }},
                        {"max", [](auto a, auto b) { return std::max(a, b); }},
                        {"and", [](auto a, auto b) { return a & b; }},
                        {"or", [](auto a, auto b) { return a | b; }},
                        {"xor", [](auto a, auto b) { return a ^ b; }}};
  constexpr int blocks = 5, columns = 64;
  for (const Case& c : cases)
    for_each_target(c.op, [&](Target target) {
      const auto element = [](std::int64_t i) {
        return static_cast<std::int32_t>((i * 2654435761u) ^ (i << 7));
      };
      const Array x = make_array<std::int32_t>({blocks, columns}, element);
      const Array sum = on(target, make_array<std::int32_t>({columns}, [&](std::int64_t i) {
                             return element(i + 1000);
                           }));
      reducing(c.op, i32, columns, blocks).on(target)(on(target, x), new_ref(sum));
      const std::vector<std::int32_t> now = elements<std::int32_t>(sum);
      bool right = true;
      for (std::int64_t i = 0; i < columns; ++i) {
        std::int32_t expected = element(i + 1000);
        for (int b = 0; b < blocks; ++b) expected = c.of(expected, element(b * columns + i));
        right = right && now[static_cast<std::size_t>(i)] == expected;
      }
      CHECK(right);
    });
  const std::string text =
      reducing("max", i32, columns, blocks)
          .lower(ShapeDtype{{blocks, columns}, i32}, new_ref(Array::zeros({columns}, i32)))
          .cuda_source({.arch = "sm_90a"});
  CHECK_THAT(text, ContainsSubstring("pl::tma_reduce<pl::reduce_max>("));
}

TEST_CASE("a reduction that TMA has not, threads make; one that there is not is refused") {
  const std::string text = reducing("max", f32, 64, 2)
                               .lower(ShapeDtype{{2, 64}, f32}, new_ref(Array::zeros({64}, f32)))
                               .cuda_source({.arch = "sm_90a"});
  CHECK_THAT(text, ContainsSubstring("pl::atomic_max("));
  const auto lowered = [](const char* op, DType t) {
    return refused([&] {
      reducing(op, t, 64, 2).lower(ShapeDtype{{2, 64}, t}, new_ref(Array::zeros({64}, t)));
    });
  };
  CHECK_THAT(lowered("mul", i32),
             ContainsSubstring("copy_smem_to_gmem: there is no reduction_op 'mul', but add, min, "
                               "max, and, or, xor, inc, dec"));
  CHECK_THAT(lowered("and", f32),
             ContainsSubstring("copy_smem_to_gmem_reduce: atomic_and does not support f32"));
}

// ---- without a barrier

Kernel unbarred(int waits, int columns = 64) {
  return gpu::kernel(
      [=](Ref x, Ref o, Ref s) {
        for (int i = 0; i < 2; ++i) gpu::copy_gmem_to_smem(x.at(i), s.at(i));
        pl::loop(0, 4, [&](Index i) {
          if (waits >= 0) gpu::wait_gmem_to_smem(waits);
          o[i] = s[i % 2] + 1.0f;
          pl::when(i < 2, [&] { gpu::copy_gmem_to_smem(x.at(i + 2), s.at(i % 2)); });
        });
        gpu::wait_gmem_to_smem(0);
      },
      {.name = "unbarred",
       .out_type = {{4, 8, columns}, f32},
       .scratch_types = {gpu::SMEM({2, 8, columns}, f32)},
       .interpret = watched});
}

TEST_CASE("copies to shared memory without a barrier are awaited by number, from sm_80 on") {
  for (const int columns : {64, 23, 2})
    for_each_target("unbarred", [&](Target target) {
      const std::vector<float> o =
          elements<float>(unbarred(0, columns).on(target)(on(target, counted({4, 8, columns}))));
      bool right = true;
      for (std::size_t i = 0; i < o.size(); ++i) right = right && o[i] == static_cast<float>(i + 1);
      CHECK(right);
    });
  const Lowered k = unbarred(0).lower(ShapeDtype{{4, 8, 64}, f32});
  for (const char* arch : {"sm_80", "sm_90a"}) {
    INFO(arch);
    CHECK_THAT(k.cuda_source({.arch = arch}), ContainsSubstring("pl::copy_async<4>(") &&
                                                  ContainsSubstring("pl::cp_async_commit()") &&
                                                  ContainsSubstring("pl::cp_async_wait<0>()"));
    const Resources r = k.compile({.arch = arch}).resources();
    CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
  }
  CHECK_THAT(k.cuda_source({.arch = "sm_75"}), !ContainsSubstring("copy_async"));
  CHECK_THAT(
      refused([] {
        gpu::kernel([](Ref) { gpu::wait_gmem_to_smem(-1); }, {.out_type = {{4}, f32}}).lower();
      }),
      ContainsSubstring("wait_gmem_to_smem: expected 0 or more copies"));
}

TEST_CASE(
    "a wait for copies without a barrier that is left out, or waits for too few, is found out") {
  const std::vector<ArgType> types{ShapeDtype{{4, 8, 64}, f32}};
  for (const int waits : {-1, 1, 2}) {
    INFO(waits);
    const std::string found = refused([&] {
      unbarred(waits).on(Target::interpreter)(counted({4, 8, 64}));
    });
    CHECK_THAT(found, ContainsSubstring("scratch[0]") && ContainsSubstring("transfers_test.cpp:"));
    CHECK_THAT(verdict_of(unbarred(waits), types), Catch::Matchers::StartsWith("counterexample"));
  }
  CHECK_THAT(verdict_of(unbarred(0), types), Catch::Matchers::StartsWith("good"));
  const auto forgotten = [](Ref x, Ref o, Ref s) {
    gpu::copy_gmem_to_smem(x, s);
    o[_] = zeros({64}, f32);
  };
  const auto options = gpu::KernelOptions{
      .name = "forgotten", .out_type = {{64}, f32}, .scratch_types = {gpu::SMEM({64}, f32)}};
  CHECK_THAT(races_of(forgotten, options, {counted({64})}),
             ContainsSubstring("ends before the copy is there: plgpu::wait_gmem_to_smem(0)"));
}

// ---- near

TEST_CASE("what is brought near is as it was [M42]") {
  for (const Shape& shape : {Shape{64, 128}, Shape{5, 7}})
    for_each_target("near", [&](Target target) {
      const Kernel k = gpu::kernel(
          [](Ref x, Ref o, Ref s, Ref b) {
            gpu::async_prefetch(x);
            gpu::copy_gmem_to_smem(x, s, b);
            gpu::barrier_wait(b);
            o[_] = s[_];
          },
          {.name = "near",
           .out_type = {shape, f32},
           .scratch_types = {gpu::SMEM(shape, f32), gpu::Barrier()},
           .interpret = watched});
      CHECK(elements<float>(k.on(target)(on(target, counted(shape)))) ==
            elements<float>(counted(shape)));
      const Lowered lowered = k.lower(ShapeDtype{shape, f32});
      const std::string text = lowered.cuda_source({.arch = "sm_90a"});
      if (shape[0].value() == 64) {
        CHECK_THAT(text, ContainsSubstring("pl::tma_prefetch("));
        CHECK_THAT(lowered.compile({.arch = "sm_90a"}).ptx(),
                   ContainsSubstring("cp.async.bulk.prefetch.tensor"));
      } else {
        bool told = false;
        for (const Remark& r : lowered.report({.arch = "sm_90a"}).remarks)
          told = told || r.text.find("async_prefetch: nothing is brought near, because") !=
                             std::string::npos;
        CHECK(told);
      }
    });
}

// ---- to another block

TEST_CASE("a value is stored to another block, which waits for it [M49]") {
  for (const bool by_name : {false, true})
    for_each_target("store", [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref o, Ref s, Ref b) {
            const Value block = axis_index("x");
            if (by_name)
              gpu::async_store_smem(x[block], s, b, {.cluster_idx = 1 - block, .cluster_dim = "x"});
            else
              gpu::async_store_smem(x[block], gpu::cluster_ref(s, {{"x", 1 - block}}), b);
            gpu::barrier_wait(b);
            o[block] = s[_];
          },
          {.name = "store",
           .out_type = {{2, 64, 32}, f32},
           .cluster = {2},
           .cluster_names = {"x"},
           .scratch_types = {gpu::SMEM({64, 32}, f32), gpu::Barrier()},
           .interpret = watched});
      const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({2, 64, 32}))));
      bool right = true;
      for (std::size_t i = 0; i < o.size(); ++i)
        right = right && o[i] == static_cast<float>((i + 2048) % 4096);
      CHECK(right);
      CHECK_THAT(verdict_of(k, {ShapeDtype{{2, 64, 32}, f32}}),
                 Catch::Matchers::StartsWith("good"));
    });
  const auto own = [] {
    gpu::kernel([](Ref x, Ref, Ref s, Ref b) { gpu::async_store_smem(x[_], s, b); },
                {.out_type = {{4}, f32},
                 .cluster = {2},
                 .cluster_names = {"x"},
                 .scratch_types = {gpu::SMEM({4}, f32), gpu::Barrier()}})
        .lower(ShapeDtype{{4}, f32});
  };
  CHECK_THAT(refused(own),
             ContainsSubstring("async_store_smem: expected memory of a block of the cluster"));
}

// ---- without TMA

TEST_CASE("barriers, copies and pipelines run from sm_80 on") {
  const Environment arch("PALLADIUM_ARCH", "sm_80");
  constexpr int steps = 6, slots = 2;
  const Kernel ring = gpu::kernel(
      [](Ref x, Ref o, Ref in, Ref out, Ref full, Ref empty) {
        const Value wg = axis_index("wg");
        pl::when(wg == 0, [&] {
          pl::loop(0, steps, [&](Index i) {
            pl::when(i >= slots, [&] { gpu::barrier_wait(empty.at(i % slots)); });
            gpu::copy_gmem_to_smem(x.at(i), in.at(i % slots), full.at(i % slots));
          });
        });
        pl::when(wg == 1, [&] {
          pl::loop(0, steps, [&](Index i) {
            const Value done = gpu::barrier_test(full.at(i % slots));
            pl::when(!done, [&] { gpu::barrier_wait(full.at(i % slots)); });
            gpu::wait_smem_to_gmem(0, {.wait_read_only = true});
            out[_] = in[i % slots] + 1.0f;
            gpu::commit_smem();
            gpu::copy_smem_to_gmem(out, o.at(i));
            pl::when(i + slots < steps, [&] { gpu::barrier_arrive(empty.at(i % slots)); });
          });
          gpu::wait_smem_to_gmem(0);
        });
      },
      {.name = "ring",
       .out_type = {{steps, 16, 64}, f32},
       .num_threads = 2,
       .thread_name = "wg",
       .scratch_types = {gpu::SMEM({slots, 16, 64}, f32), gpu::SMEM({16, 64}, f32),
                         gpu::Barrier({.num_barriers = slots}),
                         gpu::Barrier({.num_barriers = slots})},
       .interpret = watched});
  const BlockSpec tile{{16, 64}, [](Index i) { return Indices{i, 0}; }};
  const Kernel pipeline = gpu::kernel(
      [=](Ref x, Ref o) {
        gpu::emit_pipeline(
            [](const std::vector<Value>&, Ref in, Ref out) { out[_] = in[_] + 1.0f; },
            {.grid = {6}, .in_specs = {tile}, .out_specs = {tile}, .max_concurrent_steps = 3})(x,
                                                                                               o);
      },
      {.name = "pipeline", .out_type = {{96, 64}, f32}, .interpret = watched});
  const auto is_next = [](const Array& o) {
    const std::vector<float> values = elements<float>(o);
    bool right = true;
    for (std::size_t i = 0; i < values.size(); ++i)
      right = right && values[i] == static_cast<float>(i + 1);
    return right;
  };
  for_each_target("old", [&](Target target) {
    CHECK(is_next(ring.on(target)(on(target, counted({steps, 16, 64})))));
    CHECK(is_next(pipeline.on(target)(on(target, counted({96, 64})))));
  });
  for (const Lowered& k :
       {ring.lower(ShapeDtype{{steps, 16, 64}, f32}), pipeline.lower(ShapeDtype{{96, 64}, f32})})
    for (const char* name : {"sm_80", "sm_86", "sm_89"}) {
      INFO(name);
      const Resources r = k.compile({.arch = name}).resources();
      CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
      for (const std::string& warning : r.warnings) FAIL_CHECK(warning);
    }
}

}  // namespace transfers
