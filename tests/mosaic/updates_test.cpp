// Reductions by copies as natural numbers, updates of another block's memory, and whom semaphores
// tell.
#include <algorithm>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace updates {

const InterpretParams watched{.detect_races = true};

// ---- inc and dec

Kernel counting(const char* op, DType t, std::int64_t columns, int blocks) {
  return gpu::kernel(
      [=](Ref x, Ref sum, Ref s, Ref b) {
        gpu::copy_gmem_to_smem(x, s, b);
        gpu::barrier_wait(b);
        gpu::copy_smem_to_gmem(s, sum, {.reduction_op = op});
        gpu::wait_smem_to_gmem(0);
      },
      {.name = "counting",
       .grid = {blocks},
       .grid_names = {"i"},
       .scratch_types = {gpu::SMEM({columns}, t), gpu::Barrier()},
       .interpret = watched});
}

TEST_CASE("copies count up to a bound, and down from it, by TMA or by threads") {
  for (const bool up : {true, false})
    for (const DType t : {u32, i32})
      for (const std::int64_t columns : {64, 23})
        for_each_target(up ? "inc" : "dec", [&](Target target) {
          constexpr int blocks = 7;
          const auto bound = [](std::int64_t i) { return static_cast<std::uint32_t>(i % 9); };
          const auto start = [](std::int64_t i) {
            return static_cast<std::uint32_t>(i % 5 == 4 ? 0xfffffff0u : i % 12);
          };
          const Array x = make_array<std::uint32_t>({columns}, bound).astype(t);
          Array begin = make_array<std::uint32_t>({columns}, start);
          if (t == i32) {
            Array same = Array::zeros({columns}, i32);
            std::copy_n(begin.data<std::uint32_t>(), columns,
                        reinterpret_cast<std::uint32_t*>(same.data<std::int32_t>()));
            begin = same;
          }
          const Array sum = on(target, begin);
          const Kernel k = counting(up ? "inc" : "dec", t, columns, blocks).on(target);
          k(on(target, x), new_ref(sum));
          const Array now = on_cpu(sum);
          bool right = true;
          for (std::int64_t i = 0; i < columns; ++i) {
            std::uint32_t expected = start(i);
            const std::uint32_t b = bound(i);
            for (int n = 0; n < blocks; ++n)
              expected = up ? (expected >= b ? 0 : expected + 1)
                            : (expected == 0 || expected > b ? b : expected - 1);
            const auto given = t == u32 ? now.data<std::uint32_t>()[i]
                                        : static_cast<std::uint32_t>(now.data<std::int32_t>()[i]);
            right = right && given == expected;
          }
          CHECK(right);
        });
  const auto text = [](DType t) {
    return counting("inc", t, 64, 2)
        .lower(ShapeDtype{{64}, t}, new_ref(Array::zeros({64}, t)))
        .cuda_source({.arch = "sm_90a"});
  };
  CHECK_THAT(text(u32), ContainsSubstring("pl::tma_reduce<pl::reduce_inc>("));
  CHECK_THAT(text(i32), ContainsSubstring("pl::atomic_inc("));
  CHECK_THAT(refused([&] { text(f32); }),
             ContainsSubstring("atomic_inc does not support f32, but i32, u32"));
}

// ---- another block's memory

TEST_CASE("two blocks add to each other's memory, element by element at once [M50]") {
  struct Case {
    const char* op;
    std::int32_t (*of)(std::int32_t, std::int32_t);
  };
  const Case cases[] = {{"add", [](auto a, auto b) { return a + b; }},
                        {"min", [](auto a, auto b) { return std::min(a, b); }},
                        {"max", [](auto a, auto b) { return std::max(a, b); }},
                        {"and", [](auto a, auto b) { return a & b; }},
                        {"or", [](auto a, auto b) { return a | b; }},
                        {"xor", [](auto a, auto b) { return a ^ b; }}};
  for (const Case& c : cases)
    for_each_target(c.op, [&](Target target) {
      const Kernel k = gpu::kernel(
          [&](Ref x, Ref o, Ref s, Ref b, Ref begun) {
            const Value block = axis_index("x");
            s[_] = full({64, 32}, 10, i32);
            gpu::barrier_arrive(begun);
            gpu::barrier_wait(begun);
            gpu::async_store_smem(x[block], s, b,
                                  {.cluster_idx = 1 - block, .cluster_dim = "x", .atomic = c.op});
            gpu::barrier_wait(b);
            o[block] = s[_];
          },
          {.name = "adds",
           .out_type = {{2, 64, 32}, i32},
           .cluster = {2},
           .cluster_names = {"x"},
           .scratch_types = {gpu::SMEM({64, 32}, i32), gpu::Barrier(),
                             gpu::ClusterBarrier({.collective_axes = {"x"}})},
           .interpret = watched});
      const Array x = make_array<std::int32_t>({2, 64, 32}, [](std::int64_t i) { return i - 900; });
      const std::vector<std::int32_t> o = elements<std::int32_t>(k.on(target)(on(target, x)));
      bool right = true;
      for (std::int64_t i = 0; i < 4096; ++i)
        right = right && o[static_cast<std::size_t>(i)] ==
                             c.of(10, static_cast<std::int32_t>((i + 2048) % 4096 - 900));
      CHECK(right);
      CHECK_THAT(verdict_of(k, {ShapeDtype{{2, 64, 32}, i32}}),
                 Catch::Matchers::StartsWith("good"));
    });
}

TEST_CASE("all threads of two blocks count in one, and see what they added to [M51]") {
  for_each_target("counts", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref s, Ref met) {
          const auto meet = [&] {
            gpu::barrier_arrive(met);
            gpu::barrier_wait(met);
          };
          s[_] = full({8}, 0, i32);
          meet();
          for (int i = 0; i < 3; ++i)
            pl::atomic_add(gpu::cluster_ref(s, {{"x", 0}}), full({8}, 1, i32));
          meet();
          o[axis_index("x")] = s[_];
        },
        {.name = "counts",
         .out_type = {{2, 8}, i32},
         .cluster = {2},
         .cluster_names = {"x"},
         .scratch_types = {gpu::SMEM({8}, i32), gpu::ClusterBarrier({.collective_axes = {"x"}})},
         .interpret = watched});
    const std::vector<std::int32_t> o = elements<std::int32_t>(k.on(target)());
    for (std::size_t i = 0; i < 16; ++i) CHECK(o[i] == (i < 8 ? 6 : 0));
  });
}

TEST_CASE("updates that another block's memory does not take are refused") {
  const auto told = [](DType t, auto update) {
    return refused([&] {
      gpu::kernel(
          [&](Ref o, Ref s) {
            update(gpu::cluster_ref(s, {{"x", 0}}));
            o[_] = s[_];
          },
          {.out_type = {{4}, t},
           .cluster = {2},
           .cluster_names = {"x"},
           .scratch_types = {gpu::SMEM({4}, t)}})
          .lower();
    });
  };
  CHECK_THAT(told(f32, [](Ref there) { pl::atomic_add(there, full({4}, 1, f32)); }),
             ContainsSubstring("takes atomic_add, _max, _min, _and, _or and _xor of i32, u32, i64 "
                               "and u64, given atomic_add of f32"));
  CHECK_THAT(told(i32, [](Ref there) { pl::atomic_xchg(there, full({4}, 1, i32)); }),
             ContainsSubstring("given atomic_xchg of i32"));
}

// ---- whom semaphores tell

Kernel handed(const char* scope) {
  return gpu::kernel(
      [=](Ref x, Ref o, Ref room, Ref) {
        const Ref turn = get_global(gpu::SemaphoreType::REGULAR());
        const Value block = axis_index("i");
        pl::when(block == 0, [&] {
          room[_] = x[_] + 1.0f;
          semaphore_signal(turn, 1, {.memory_scope = scope});
        });
        pl::when(block == 1, [&] {
          semaphore_wait(turn, 1, {.memory_scope = scope});
          o[_] = room[_];
        });
      },
      {.name = "handed",
       .out_type = {{{32}, f32}, {{32}, f32}},
       .grid = {2},
       .grid_names = {"i"},
       .scratch_types = {gpu::SMEM({4}, f32)},
       .interpret = watched});
}

TEST_CASE("semaphores tell those whom their scope names, and all who count with them [M54]") {
  for (const char* scope : {"gpu", "sys"})
    for_each_target(scope, [&](Target target) {
      const auto [o, room] = handed(scope).on(target)(on(target, counted({32}))).unpack<2>();
      CHECK(elements<float>(o)[31] == 32);
    });
  const auto text = [](const char* scope) {
    return handed(scope).lower(ShapeDtype{{32}, f32}).cuda_source({.arch = "sm_90a"});
  };
  CHECK_THAT(text("sys"), ContainsSubstring("pl::semaphore_signal<pl::system_scope,") &&
                              ContainsSubstring("pl::semaphore_wait<pl::system_scope,"));
  CHECK_THAT(text(nullptr), ContainsSubstring("pl::semaphore_signal<pl::gpu,"));
  CHECK_THAT(refused([&] { text("cta"); }),
             ContainsSubstring("semaphore_signal: memory_scope 'cta' leaves out blocks that count "
                               "with this semaphore, which is one for all of the launch"));
  CHECK_THAT(refused([&] { text("device"); }),
             ContainsSubstring("there is no memory_scope 'device', but cta, cluster, gpu and sys"));
}

}  // namespace updates
