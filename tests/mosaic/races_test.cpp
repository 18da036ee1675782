// Who relies on an asynchronous copy before it is known to be done, and programs in which a
// barrier, a wait, an arrival or a commit is left out: the interpreter says so, with both lines.
#include <optional>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace races {

std::string line(int number) { return "races_test.cpp:" + std::to_string(number); }

const gpu::KernelOptions in_shared{.name = "shared",
                                   .out_type = {{128}, f32},
                                   .scratch_types = {gpu::SMEM({128}, f32), gpu::Barrier()}};

TEST_CASE("a copy to memory that was written needs a commit between the two [M96]") {
  for (int at = 0; at < 4; ++at) {
    const auto commit = [at](int here) {
      if (here == at) gpu::commit_smem();
    };
    const std::string found = races_of(
        [=](Ref x, Ref o, Ref s, Ref b) {
          commit(0);
          s[_] = zeros({128}, f32);
          commit(1);
          gpu::copy_gmem_to_smem(x, s, b);
          commit(2);
          gpu::barrier_wait(b);
          commit(3);
          o[_] = s[_];
        },
        in_shared, {counted({128})});
    CAPTURE(at);
    if (at == 1)
      CHECK(found == "");
    else
      CHECK_THAT(found, ContainsSubstring("race on scratch[0]") &&
                            ContainsSubstring("no plgpu::commit_smem() stands between the two"));
  }
}

TEST_CASE("a copy of what was written needs a commit between the two [M97]") {
  for (int at = 0; at < 3; ++at) {
    const auto commit = [at](int here) {
      if (here == at) gpu::commit_smem();
    };
    const std::string found = races_of(
        [=](Ref x, Ref o, Ref s, Ref) {
          commit(0);
          s[_] = x[_];
          commit(1);
          gpu::copy_smem_to_gmem(s, o);
          commit(2);
          gpu::wait_smem_to_gmem(0);
        },
        in_shared, {counted({128})});
    CAPTURE(at);
    if (at == 1)
      CHECK(found == "");
    else
      CHECK_THAT(found, ContainsSubstring("race on scratch[0]"));
  }
}

TEST_CASE("of two groups the one that may be under way is not read [M98]") {
  const auto sends = [](int pending, std::optional<int> again) {
    return races_of(
        [=](Ref x, Ref o, Ref s, Ref seen) {
          s[_] = x[_];
          gpu::commit_smem();
          for (int i = 0; i < 2; ++i) gpu::copy_smem_to_gmem(s.at(i), o.at(i));
          gpu::wait_smem_to_gmem(pending);
          if (again) gpu::wait_smem_to_gmem(*again);
          seen[_] = o[_];
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "sends",
         .out_type = {{2, 128}, f32},
         .scratch_types = {gpu::SMEM({2, 128}, f32), gpu::SMEM({2, 128}, f32)}},
        {counted({2, 128})});
  };
  CHECK_THAT(sends(1, {}), ContainsSubstring("race on outputs[0]"));
  CHECK(sends(0, {}) == "");
  CHECK(sends(0, 1) == "");
}

TEST_CASE("who waits until a copy has read may write its source, not read its destination [M99]") {
  const auto waits = [](bool reads) {
    return races_of(
        [=](Ref x, Ref o, Ref s, Ref) {
          s[_] = x[_];
          gpu::commit_smem();
          gpu::copy_smem_to_gmem(s, o);
          gpu::wait_smem_to_gmem(0, {.wait_read_only = true});
          s[_] = zeros({128}, f32);
          if (reads) s[_] = o[_];
        },
        in_shared, {counted({128})});
  };
  CHECK(waits(false) == "");
  CHECK_THAT(waits(true), ContainsSubstring("race on outputs[0]"));
}

TEST_CASE("a thread does not end while a copy reads its memory [M100]") {
  const auto ends = [](bool waits) {
    return races_of(
        [=](Ref x, Ref o, Ref s, Ref) {
          s[_] = x[_];
          gpu::commit_smem();
          gpu::copy_smem_to_gmem(s, o);
          if (waits) gpu::wait_smem_to_gmem(0, {.wait_read_only = true});
        },
        in_shared, {counted({128})});
  };
  CHECK(ends(true) == "");
  CHECK_THAT(ends(false),
             ContainsSubstring("copy_smem_to_gmem: thread 0 ends before the copy has read what it "
                               "copies: plgpu::wait_smem_to_gmem(0)"));
}

const gpu::KernelOptions barrier_alone{
    .name = "alone", .out_type = {{1}, i32}, .scratch_types = {gpu::Barrier()}};

TEST_CASE("a barrier does not complete twice before somebody has seen that it did [M101]") {
  const Kernel k = gpu::kernel(
                       [](Ref o, Ref b) {
                         o[0] = 1;
                         gpu::barrier_arrive(b);
                         gpu::barrier_arrive(b);
                         gpu::barrier_wait(b);
                         gpu::barrier_wait(b);
                       },
                       barrier_alone)
                       .on(Target::interpreter);
  CHECK_THAT(refused([&] { k(); }),
             ContainsSubstring("completed phase 1, but no threads observed phase 0"));
}

TEST_CASE("each completion of a barrier is waited for [M102]") {
  const auto waits = [](int count) {
    const Kernel k = gpu::kernel(
                         [count](Ref o, Ref b) {
                           o[0] = 1;
                           for (int i = 0; i < 2; ++i) {
                             gpu::barrier_arrive(b);
                             if (i < count) gpu::barrier_wait(b);
                           }
                         },
                         barrier_alone)
                         .on(Target::interpreter);
    return refused([&] { k(); });
  };
  CHECK(waits(2) == "");
  CHECK_THAT(waits(1), ContainsSubstring("when scratch[0][0] was deallocated") &&
                           ContainsSubstring("had only observed it up to phase 0, but it completed "
                                             "up to phase 1"));
}

// ---- wrong programs

/// What one of them leaves out, or does otherwise.
enum class Fault {
  none,
  wait_full,
  wait_empty,
  arrive_empty,
  commit,
  wait_sent,
  wait_sent_at_end,
  same_slot,
  one_slot_more,
  other_barrier,
  too_few_arrivals,
  arrives_twice,
  waits_twice,
};

// Of every step a block comes to one of two slots, and goes from there by way of another room.
void pipeline(const Ref& x, const Ref& o, const Ref& s, const Ref& out, const Ref& full,
              const Ref& empty, Fault fault) {
  constexpr int steps = 6, slots = 2;
  const Value wg = axis_index("wg");
  pl::when(wg == 0, [&] {
    pl::loop(0, steps, [&](Index i) {
      const Value slot = fault == Fault::same_slot ? Value(i % 1) : Value(i % slots);
      const int ahead = fault == Fault::one_slot_more ? slots + 1 : slots;
      if (fault != Fault::wait_empty)
        pl::when(i >= ahead, [&] { gpu::barrier_wait(empty.at(i % slots)); });
      const Value told = fault == Fault::other_barrier ? Value((i + 1) % slots) : Value(i % slots);
      gpu::copy_gmem_to_smem(x.at(i), s.at(slot), full.at(told));
    });
  });
  pl::when(wg == 1, [&] {
    pl::loop(0, steps, [&](Index i) {
      const Value slot = i % slots;
      if (fault != Fault::wait_full) gpu::barrier_wait(full.at(slot));
      if (fault == Fault::waits_twice) gpu::barrier_wait(full.at(slot));
      if (fault != Fault::wait_sent) gpu::wait_smem_to_gmem(0, {.wait_read_only = true});
      out[_] = s[slot] * 2.0f;
      if (fault != Fault::commit) gpu::commit_smem();
      gpu::copy_smem_to_gmem(out, o.at(i));
      const int times = fault == Fault::arrives_twice ? 2 : fault == Fault::arrive_empty ? 0 : 1;
      pl::when(i + slots < steps, [&] {
        for (int n = 0; n < times; ++n) gpu::barrier_arrive(empty.at(slot));
      });
    });
    if (fault != Fault::wait_sent_at_end) gpu::wait_smem_to_gmem(0);
  });
}

Kernel kernel_of(Fault fault) {
  const int arrivals = fault == Fault::too_few_arrivals ? 2 : 1;
  return gpu::kernel(
      [=](Ref x, Ref o, Ref s, Ref out, Ref full, Ref empty) {
        pipeline(x, o, s, out, full, empty, fault);
      },
      {.name = "pipeline",
       .out_type = {{6, 128}, f32},
       .num_threads = 2,
       .thread_name = "wg",
       .scratch_types = {gpu::SMEM({2, 128}, f32), gpu::SMEM({128}, f32),
                         gpu::Barrier({.num_barriers = 2}),
                         gpu::Barrier({.num_arrivals = arrivals, .num_barriers = 2})},
       .interpret = InterpretParams{.detect_races = true}});
}

/// What a target says of it.
std::string result_of(Fault fault, Target target = Target::interpreter) {
  const Kernel k = kernel_of(fault).on(target);
  return refused([&] { k(counted({6, 128})); });
}

std::string verdict_of(Fault fault) {
  return test::verdict_of(kernel_of(fault), {ShapeDtype{{6, 128}, f32}});
}

TEST_CASE("a pipeline of two warpgroups in which nothing lacks is right") {
  CHECK(result_of(Fault::none) == "");
  CHECK_THAT(verdict_of(Fault::none), ContainsSubstring("good: 1 way, "));
}

TEST_CASE("each thing that is left out of a pipeline is found, with the line of the user") {
  const std::pair<Fault, const char*> faults[] = {
      {Fault::wait_full, "race on scratch[0]"},
      {Fault::wait_empty, "no threads observed"},
      {Fault::arrive_empty, "deadlock"},
      {Fault::commit, "no plgpu::commit_smem() stands between the two"},
      {Fault::wait_sent, "race on scratch[1]"},
      {Fault::wait_sent_at_end, "ends before the copy has read what it copies"},
      {Fault::same_slot, "race on scratch[0]"},
      {Fault::one_slot_more, "phase"},
      {Fault::other_barrier, ""},
      {Fault::too_few_arrivals, "deadlock"},
      {Fault::arrives_twice, "no threads observed"},
      {Fault::waits_twice, "deadlock"},
  };
  for (const auto& [fault, words] : faults) {
    CAPTURE(static_cast<int>(fault), words);
    const std::string found = result_of(fault);
    CHECK(found != "");
    CHECK_THAT(found, ContainsSubstring(words));
    CHECK_THAT(found, ContainsSubstring("races_test.cpp:"));
    const std::string verdict = verdict_of(fault);
    CHECK_THAT(verdict,
               ContainsSubstring("counterexample") && ContainsSubstring("races_test.cpp:"));
  }
}

TEST_CASE("the emulator finds it in the emitted text, too, but for what lowering puts right") {
  const std::pair<Fault, const char*> faults[] = {
      {Fault::none, ""},
      {Fault::wait_full, "race"},
      {Fault::wait_empty, "race"},
      {Fault::arrive_empty, "deadlock"},
      {Fault::commit, ""},
      {Fault::wait_sent, "race"},
      {Fault::wait_sent_at_end, "returns without waiting"},
      {Fault::same_slot, "race"},
      {Fault::one_slot_more, "race"},
      {Fault::other_barrier, "race"},
      {Fault::too_few_arrivals, "deadlock"},
      {Fault::arrives_twice, "race"},
      {Fault::waits_twice, "deadlock"},
  };
  const Environment off("PALLADIUM_VERIFY", "0");
  for (const auto& [fault, words] : faults) {
    CAPTURE(static_cast<int>(fault), words);
    const std::string found = result_of(fault, Target::emulator);
    const bool is_right = std::string(words).empty();
    CHECK((found == "") == is_right);
    CHECK_THAT(found, ContainsSubstring(words));
    if (!is_right) CHECK_THAT(found, ContainsSubstring("races_test.cpp:"));
  }
}

TEST_CASE("threads that wait for each other's arrivals in a ring are a deadlock, told with lines") {
  const Kernel k = gpu::kernel(
                       [](Ref o, Ref b) {
                         const Value wg = axis_index("wg");
                         gpu::barrier_wait(b.at(wg));
                         gpu::barrier_arrive(b.at(1 - wg));
                         o[wg] = wg;
                       },
                       {.name = "ring",
                        .out_type = {{2}, i32},
                        .num_threads = 2,
                        .thread_name = "wg",
                        .scratch_types = {gpu::Barrier({.num_barriers = 2})}})
                       .on(Target::interpreter);
  const int waits = __LINE__ - 10;
  const std::string found = refused([&] { k(); });
  CHECK_THAT(found, ContainsSubstring("deadlock: all threads that are left wait for barriers"));
  CHECK_THAT(found,
             ContainsSubstring("thread 0 of program () waits at") &&
                 ContainsSubstring(line(waits)) &&
                 ContainsSubstring("until scratch[0][0] completes phase 0; 0 of 1 arrivals"));
}

}  // namespace races
