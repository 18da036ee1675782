// Semaphores and memory of the launch: the same on interpreter and emulator, who block for real.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

std::vector<std::int32_t> numbers(const Array& a) {
  const Array on_host = on_cpu(a);
  const auto values = on_host.values<const std::int32_t>();
  return {values.begin(), values.end()};
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("semaphores count up and down [C103] [M55]") {
  for_each_target("counts", [](Target target) {
    const Kernel k = gpu::kernel(
                         [](Ref o, Ref s) {
                           for (int i = 0; i < 4; ++i) pl::semaphore_signal(s.at(i), i + 1);
                           for (int i = 0; i < 4; ++i) {
                             const Value n = pl::semaphore_read(s.at(i));
                             o[i] = n;
                           }
                           for (int i = 0; i < 4; ++i) pl::semaphore_wait(s.at(i), 1 + i / 2);
                           pl::loop(0, 4, [&](Index i) {
                             const Value n = pl::semaphore_read(s.at(i));
                             o[i + 4] = n;
                           });
                         },
                         {.name = "counts",
                          .out_type = {{8}, i32},
                          .scratch_types = {gpu::SemaphoreType::REGULAR({4})}})
                         .on(target);
    for (int call = 0; call < 2; ++call)
      CHECK(numbers(k()) == std::vector<std::int32_t>{1, 2, 3, 4, 0, 1, 1, 2});
  });
}

TEST_CASE("a body hands what it computes to another through shared memory") {
  for_each_target("hand_over", [](Target target) {
    const gpu::Mesh mesh{.grid = {3}, .grid_names = {"i"}};
    constexpr int steps = 5;
    const Kernel k = pl::kernel({[](Ref x, Ref, Scratch s) {  // the producer
                                   pl::loop(0, steps, [&](Index step) {
                                     const Value slot = step % 2;
                                     pl::semaphore_wait(s["empty"].at(slot));
                                     s["buffer"][slot] = x[{axis_index("i"), step}] * 2;
                                     pl::semaphore_signal(s["full"].at(slot));
                                   });
                                 },
                                 [](Ref, Ref o, Scratch s) {  // the consumer
                                   for (int slot = 0; slot < 2; ++slot)
                                     pl::semaphore_signal(s["empty"].at(slot));
                                   pl::loop(0, steps, [&](Index step) {
                                     const Value slot = step % 2;
                                     pl::semaphore_wait(s["full"].at(slot));
                                     o[{axis_index("i"), step}] = s["buffer"][slot] + step;
                                     pl::semaphore_signal(s["empty"].at(slot));
                                   });
                                 }},
                                {.name = "hand_over",
                                 .out_type = {{3, steps, 256}, i32},
                                 .mesh = {mesh, mesh},
                                 .scratch_types = {{"buffer", gpu::SMEM({2, 256}, i32)},
                                                   {"full", gpu::SemaphoreType::REGULAR({2})},
                                                   {"empty", gpu::SemaphoreType::REGULAR({2})}}})
                         .on(target);
    const Array x = make_array<std::int32_t>({3, steps, 256}, [](std::int64_t i) { return i; });
    const std::vector<std::int32_t> o = numbers(k(on(target, x)));
    for (std::size_t i = 0; i < o.size(); ++i)
      CHECK(o[i] == static_cast<std::int32_t>(2 * i + i / 256 % steps));
  });
}

TEST_CASE("threads of a block have in common what a collective scope allocates [E21]") {
  for_each_target("collective", [](Target target) {
    const Kernel k = gpu::kernel(
                         [](Ref x, Ref o, Ref ready) {
                           const Value thread = axis_index("wg");
                           const Value doubled = pl::run_scoped(
                               [&](Ref both) {
                                 pl::when(thread == 0, [&] {
                                   both[_] = x[_] + 1;
                                   pl::semaphore_signal(ready);
                                 });
                                 pl::when(thread == 1, [&] {
                                   pl::semaphore_wait(ready);
                                   o[_] = both[_] * 2;
                                 });
                                 return thread * 2;
                               },
                               {gpu::SMEM({128}, i32)}, {.collective_axes = {"wg"}});
                           pl::when(doubled == 3, [&] { o[_] = x[_]; });
                         },
                         {.name = "collective",
                          .out_type = {{128}, i32},
                          .num_threads = 2,
                          .thread_name = "wg",
                          .scratch_types = {gpu::SemaphoreType::REGULAR()}})
                         .on(target);
    const Array x = make_array<std::int32_t>({128}, [](std::int64_t i) { return i; });
    const std::vector<std::int32_t> o = numbers(k(on(target, x)));
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<std::int32_t>(2 * i + 2));
  });
}

TEST_CASE("each element of a batch of mesh kernels has semaphores of its own") {
  for_each_target("batch", [](Target target) {
    const Kernel k = vmap(gpu::kernel(
                              [](Ref x, Ref o, Ref own) {
                                const Ref all = pl::get_global(gpu::SemaphoreType::REGULAR());
                                const Value here = axis_index("b");
                                pl::semaphore_signal(own, here + 1);
                                pl::semaphore_signal(all, Value(x[here]));
                                pl::semaphore_wait(all, 6, {.decrement = false});
                                const Value mine = pl::semaphore_read(own);
                                const Value sum = pl::semaphore_read(all);
                                o[here] = mine * 100 + sum;
                              },
                              {.name = "batch",
                               .out_type = {{2}, i32},
                               .grid = {2},
                               .grid_names = {"b"},
                               .scratch_types = {gpu::SemaphoreType::REGULAR()}}))
                         .on(target);
    const Array x = make_array<std::int32_t>({3, 2}, [](std::int64_t i) { return i % 2 ? 4 : 2; });
    CHECK(numbers(k(on(target, x))) == std::vector<std::int32_t>{106, 206, 106, 206, 106, 206});
  });
}

TEST_CASE("blocks wait for each other by semaphores of the launch, one per place of use [C101] [M54]") {
  for_each_target("global", [](Target target) {
    const Kernel k =
        gpu::kernel(
            [](Ref o) {
              const Ref first = pl::get_global(gpu::SemaphoreType::REGULAR());
              const Ref second = pl::get_global(gpu::SemaphoreType::REGULAR());
              pl::when(axis_index("b") == 0, [&] {
                pl::semaphore_signal(first, 5);
                pl::semaphore_signal(second, 10);
              });
              pl::when(axis_index("b") == 1, [&] {
                pl::semaphore_wait(first, 5, {.decrement = false});
                pl::semaphore_wait(second, 10, {.decrement = false});
                const Value a = pl::semaphore_read(first);
                const Value b = pl::semaphore_read(second);
                o[0] = a;
                o[1] = b;
              });
            },
            {.name = "global", .out_type = {{2}, i32}, .grid = {10}, .grid_names = {"b"}})
            .on(target);
    CHECK(numbers(k()) == std::vector<std::int32_t>{5, 10});
    CHECK(numbers(k()) == std::vector<std::int32_t>{5, 10});
  });
}

namespace {

/// Of as many programs, each of which holds so much shared memory, all wait for all, twice.
Kernel barrier(std::int64_t programs, std::int64_t shared_bytes) {
  return gpu::kernel(
      [=](Ref o, Ref) {
        const Ref all = pl::get_global(gpu::SemaphoreType::REGULAR());
        const Ref cells = pl::get_global(gpu::GMEM({programs}, i32));
        const Value b = axis_index("b");
        cells[b] = b * 3;
        pl::semaphore_signal(all);
        pl::semaphore_wait(all, programs, {.decrement = false});
        const Value next = cells[(b + 1) % programs];
        pl::semaphore_signal(all);
        pl::semaphore_wait(all, 2 * programs, {.decrement = false});
        cells[b] = next + 1;
        o[b] = cells[b];
      },
      {.name = "barrier",
       .out_type = {{programs}, i32},
       .grid = {programs},
       .grid_names = {"b"},
       .scratch_types = {gpu::SMEM({shared_bytes}, u8)}});
}

}  // namespace

TEST_CASE("as many blocks wait for each other as a GPU holds at once") {
  for_each_target("barrier", [](Target target) {
    for (const std::int64_t programs : {1, 4, 5, 33, 132}) {
      CAPTURE(programs);
      const std::vector<std::int32_t> o = numbers(barrier(programs, 200 << 10).on(target)());
      for (std::int64_t i = 0; i < programs; ++i)
        CHECK(o[static_cast<std::size_t>(i)] == (i + 1) % programs * 3 + 1);
    }
  });
}

TEST_CASE("more blocks that wait for each other than a GPU holds are its error of such a launch") {
  const Kernel k = barrier(133, 200 << 10).on(Target::emulator);
  CHECK_THROWS_AS(k(), CudaError);
  const std::string told = message_of([&] { k(); });
  CHECK_THAT(told,
             ContainsSubstring("kernel 'barrier' (grid 133x1x1, block 128x1x1, 204800 bytes") &&
                 ContainsSubstring("of whose blocks 132 fit at once") &&
                 ContainsSubstring("sm_90a, H100 SXM") &&
                 ContainsSubstring("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"));
  // By threads alone; nobody waits, and so all of them need not run at once.
  CHECK_THAT(message_of([&] { barrier(2113, 16).on(Target::emulator)(); }),
             ContainsSubstring("of whose blocks 2112 fit at once"));
  const Kernel alone = gpu::kernel(
      [](Ref o) { o[axis_index("b")] = axis_index("b"); },
      {.name = "alone", .out_type = {{3000}, i32}, .grid = {3000}, .grid_names = {"b"}});
  CHECK(numbers(alone.on(Target::emulator)()).back() == 2999);
}

TEST_CASE("blocks that wait for each other are counted in whole clusters") {
  const auto clusters = [](std::int64_t programs) {
    return gpu::kernel(
               [=](Ref o, Ref) {
                 const Ref all = pl::get_global(gpu::SemaphoreType::REGULAR());
                 const Value b = axis_index("b"), z = axis_index("z");
                 pl::semaphore_signal(all);
                 pl::semaphore_wait(all, 8 * programs, {.decrement = false});
                 o[{b, z}] = b * 8 + z;
               },
               {.name = "clusters",
                .out_type = {{programs, 8}, i32},
                .grid = {programs},
                .grid_names = {"b"},
                .cluster = {8},
                .cluster_names = {"z"},
                .scratch_types = {gpu::SMEM({200 << 10}, u8)}})
        .on(Target::emulator);
  };
  const std::vector<std::int32_t> o = numbers(clusters(16)());
  for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<std::int32_t>(i));
  CHECK_THAT(
      message_of([&] { clusters(17)(); }),
      ContainsSubstring("cluster 8x1x1") && ContainsSubstring("of whose blocks 128 fit at once"));
}

TEST_CASE("blocks of a cluster count together by semaphores of a scope, those of others apart") {
  for_each_target("cluster", [](Target target) {
    const Kernel k = gpu::kernel(
                         [](Ref o, Ref cells) {
                           const Value place = axis_index("b"), y = axis_index("y"),
                                       x = axis_index("x");
                           pl::run_scoped(
                               [&](Ref all, Ref row) {
                                 const Ref own = cells.at(place);
                                 own[{y, x}] = y * 10 + x + 1;
                                 pl::semaphore_signal(all.at(1), y + 1);
                                 pl::semaphore_signal(row);
                                 pl::semaphore_wait(all.at(1), 6, {.decrement = false});
                                 o[{place, y, x, 0}] = own[{1 - y, 1 - x}];
                                 const Value n = pl::semaphore_read(row);
                                 o[{place, y, x, 1}] = n;
                               },
                               {gpu::SemaphoreType::REGULAR({2}), gpu::SemaphoreType::REGULAR()},
                               {.collective_axes = {"y", "x"}});
                           pl::run_scoped(
                               [&](Ref row) {
                                 pl::semaphore_signal(row, x + 1);
                                 pl::semaphore_wait(row, 3, {.decrement = false});
                                 const Value n = pl::semaphore_read(row);
                                 o[{place, y, x, 2}] = n;
                               },
                               {gpu::SemaphoreType::REGULAR()}, {.collective_axes = {"x"}});
                         },
                         {.name = "cluster",
                          .out_type = {{{3, 2, 2, 3}, i32}, {{3, 2, 2}, i32}},
                          .grid = {3},
                          .grid_names = {"b"},
                          .cluster = {2, 2},
                          .cluster_names = {"y", "x"}})
                         .on(target);
    const auto [o, cells] = k().unpack<2>();
    const std::vector<std::int32_t> n = numbers(o);
    for (std::size_t i = 0; i < 12; ++i) {
      const auto y = static_cast<std::int32_t>(i / 2 % 2), x = static_cast<std::int32_t>(i % 2);
      CHECK(n[3 * i] == (1 - y) * 10 + 2 - x);
      CHECK((n[3 * i + 1] >= 1 && n[3 * i + 1] <= 4));
      CHECK(n[3 * i + 2] == 3);
    }
  });
}

TEST_CASE("deadlocks and races of a cluster are told with its blocks") {
  const auto told = [](Target target, auto body) {
    return message_of([&] {
      gpu::kernel(body, {.name = "cluster",
                         .out_type = {{{2, 2}, i32}},
                         .grid = {2},
                         .grid_names = {"b"},
                         .cluster = {2},
                         .cluster_names = {"z"},
                         .scratch_types = {gpu::SemaphoreType::REGULAR()}})
          .on(target)();
    });
  };
  const auto scoped = [](auto body) {
    pl::run_scoped(body, {gpu::SemaphoreType::REGULAR()}, {.collective_axes = {"z"}});
  };
  const int line = __LINE__ + 3;
  const auto stuck = [=](Ref, Ref own) {
    scoped([&](Ref both) { pl::semaphore_signal(both); });
    pl::semaphore_wait(own);
  };
  const std::string deadlock = told(Target::interpreter, stuck);
  CHECK_THAT(deadlock, ContainsSubstring("program (1) block (1) waits at"));
  CHECK_THAT(deadlock, ContainsSubstring("until scratch[0] is 1; it is 0"));
  for (const Target target : {Target::interpreter, Target::emulator})
    CHECK_THAT(told(target, stuck),
               ContainsSubstring("semaphores_test.cpp:" + std::to_string(line)));
  const auto late = [=](Ref o, Ref) {
    const Value b = axis_index("b"), z = axis_index("z");
    scoped([&](Ref both) {
      pl::when(z == 0, [&] {
        o[{b, 0}] = z;
        pl::semaphore_signal(both);
        o[{b, 0}] = z + 1;
      });
      pl::when(z == 1, [&] {
        pl::semaphore_wait(both);
        o[{b, 1}] = o[{b, 0}] + 1;
      });
    });
  };
  for (const Target target : {Target::interpreter, Target::emulator})
    CHECK_THAT(told(target, late), ContainsSubstring("race"));
}

TEST_CASE("semaphores of the launch are asked for in and outside of control flow [C102] [M54]") {
  for_each_target("inside", [](Target target) {
    const Kernel k =
        gpu::kernel(
            [](Ref o) {
              const Ref first = pl::get_global(gpu::SemaphoreType::REGULAR());
              pl::semaphore_signal(first, 3);
              pl::when(axis_index("b") == 0, [&] {
                const Ref inner = pl::get_global(gpu::SemaphoreType::REGULAR({2}));
                pl::semaphore_signal(inner.at(1), 7);
                const Value n = pl::semaphore_read(inner.at(1));
                o[1] = n;
              });
              const Ref last = pl::get_global(gpu::SemaphoreType::REGULAR());
              pl::semaphore_signal(last, 11);
              const Value a = pl::semaphore_read(first);
              const Value b = pl::semaphore_read(last);
              o[0] = a;
              o[2] = b;
            },
            {.name = "inside", .out_type = {{3}, i32}, .grid = {1}, .grid_names = {"b"}})
            .on(target);
    CHECK(numbers(k()) == std::vector<std::int32_t>{3, 7, 11});
  });
}

TEST_CASE("memory of the launch is zero at its start and what blocks hand on after") {
  for_each_target("relay", [](Target target) {
    const Kernel k =
        gpu::kernel(
            [](Ref o) {
              const Ref sum = pl::get_global(gpu::GMEM({64}, i32));
              const Ref turn = pl::get_global(gpu::SemaphoreType::REGULAR());
              const Value b = axis_index("b");
              pl::semaphore_wait(turn, b, {.decrement = false});
              sum[_] = sum[_] + b + 1;
              pl::when(b == 3, [&] { o[_] = sum[_]; });
              pl::semaphore_signal(turn);
            },
            {.name = "relay", .out_type = {{64}, i32}, .grid = {4}, .grid_names = {"b"}})
            .on(target);
    for (int call = 0; call < 2; ++call)
      for (const std::int32_t n : numbers(k())) CHECK(n == 10);
  });
}

TEST_CASE("a value that was loaded before a wait is what the memory held then") {
  for_each_target("before", [](Target target) {
    const Kernel k =
        gpu::kernel(
            [](Ref o) {
              const Ref cell = pl::get_global(gpu::GMEM({128}, i32));
              const Ref read = pl::get_global(gpu::SemaphoreType::REGULAR());
              const Ref written = pl::get_global(gpu::SemaphoreType::REGULAR());
              pl::when(axis_index("b") == 0, [&] {
                const Value before = cell[_];
                pl::semaphore_signal(read);
                pl::semaphore_wait(written);
                o[0] = before;
                o[1] = cell[_];
              });
              pl::when(axis_index("b") == 1, [&] {
                pl::semaphore_wait(read);
                cell[_] = full({128}, 7, i32);
                pl::semaphore_signal(written);
              });
            },
            {.name = "before", .out_type = {{2, 128}, i32}, .grid = {2}, .grid_names = {"b"}})
            .on(target);
    const std::vector<std::int32_t> o = numbers(k());
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == (i < 128 ? 0 : 7));
  });
}

// ---- what is refused

TEST_CASE("a deadlock tells who waits on what, and where") {
  const int line = __LINE__ + 4;
  const auto body = [](Ref o, Ref s) {
    const Value b = axis_index("b");
    o[b] = b;
    pl::semaphore_wait(s.at(1), 2);
  };
  const auto call = [&](Target target) {
    return message_of([&] {
      gpu::kernel(body, {.name = "stuck",
                         .out_type = {{2}, i32},
                         .grid = {2},
                         .grid_names = {"b"},
                         .scratch_types = {gpu::SemaphoreType::REGULAR({3})}})
          .on(target)();
    });
  };
  const std::string told = call(Target::interpreter);
  CHECK_THAT(told, ContainsSubstring("deadlock"));
  CHECK_THAT(told, ContainsSubstring("program (0) waits at"));
  CHECK_THAT(told, ContainsSubstring("semaphores_test.cpp:" + std::to_string(line)));
  CHECK_THAT(told, ContainsSubstring("until scratch[0][1] is 2; it is 0"));
  CHECK_THAT(call(Target::emulator),
             ContainsSubstring("semaphores_test.cpp:" + std::to_string(line)));
}

TEST_CASE("races across semaphores are seen") {
  for (const Target target : {Target::interpreter, Target::emulator}) {
    CAPTURE(to_string(target));
    const std::string told = message_of([&] {
      gpu::kernel(
          [](Ref o) {
            const Ref cell = pl::get_global(gpu::GMEM({128}, i32));
            const Ref turn = pl::get_global(gpu::SemaphoreType::REGULAR());
            pl::when(axis_index("b") == 0, [&] {
              pl::semaphore_signal(turn);
              cell[_] = full({128}, 7, i32);
            });
            pl::when(axis_index("b") == 1, [&] {
              pl::semaphore_wait(turn);
              o[_] = cell[_];
            });
          },
          {.name = "late", .out_type = {{128}, i32}, .grid = {2}, .grid_names = {"b"}})
          .on(target)();
    });
    CHECK_THAT(told, ContainsSubstring("race"));
  }
}

TEST_CASE("what is no semaphore is refused, and a semaphore is no memory") {
  const auto call = [](auto body, Scoped scratch) {
    return message_of([&] {
      gpu::kernel(body, {.out_type = {{}, i32}, .scratch_types = {scratch}})
          .on(Target::interpreter)();
    });
  };
  const Scoped some = gpu::SemaphoreType::REGULAR({3}), one = gpu::SemaphoreType::REGULAR();
  CHECK_THAT(call([](Ref, Ref s) { pl::semaphore_signal(s); }, some),
             ContainsSubstring("semaphore_signal: expected one semaphore, given"));
  CHECK_THAT(call([](Ref, Ref s) { pl::semaphore_wait(s); }, some),
             ContainsSubstring("semaphore_wait: expected one semaphore, given"));
  CHECK_THAT(call([](Ref o, Ref) { pl::semaphore_wait(o); }, one),
             ContainsSubstring("semaphore_wait: expected a semaphore, given"));
  CHECK_THAT(call([](Ref o, Ref s) { o[_] = s[_]; }, one),
             ContainsSubstring("is read by pl::semaphore_read, signalled and waited for"));
  CHECK_THAT(call([](Ref, Ref s) { pl::semaphore_signal(s, 1.5f); }, one),
             ContainsSubstring("the increment must be an integer"));
  CHECK_THAT(message_of([] {
               pallas_call([](Ref, Ref) {}, {.out_type = {{}, i32},
                                             .scratch_types = {gpu::SemaphoreType::REGULAR()}})
                   .on(Target::interpreter)();
             }),
             ContainsSubstring("must be in SMEM or REGS"));
  CHECK_THAT(message_of([] {
               pallas_call([](Ref) { (void)pl::get_global(gpu::GMEM({1}, i32)); },
                           {.out_type = {{}, i32}})
                   .on(Target::interpreter)();
             }),
             ContainsSubstring("is no pl::kernel"));
}
