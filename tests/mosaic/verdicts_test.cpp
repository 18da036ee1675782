// What is said at compile time of barriers and copies by hand: of which bodies nothing, of which
// with a remark, an error, or that they are not explored.
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace verdicts {

/// A ring of two slots between two warpgroups, of so many steps, which may be a number of the call.
template <class Steps>
void ring(const Ref& x, const Ref& o, const Ref& s, const Ref& full, const Ref& empty, Steps steps,
          bool waits = true) {
  const Value wg = axis_index("wg");
  pl::when(wg == 0, [&] {
    pl::loop(0, steps, [&](Index i) {
      pl::when(i >= 2, [&] { gpu::barrier_wait(empty.at(i % 2)); });
      gpu::copy_gmem_to_smem(x.at(i), s.at(i % 2), full.at(i % 2));
    });
  });
  pl::when(wg == 1, [&] {
    pl::loop(0, steps, [&](Index i) {
      if (waits) gpu::barrier_wait(full.at(i % 2));
      o[i] = s[i % 2];
      pl::when(i + 2 < steps, [&] { gpu::barrier_arrive(empty.at(i % 2)); });
    });
  });
}

gpu::KernelOptions of_ring(const char* name, std::int64_t rows) {
  return {.name = name,
          .out_type = {{rows, 128}, f32},
          .num_threads = 2,
          .thread_name = "wg",
          .scratch_types = {gpu::SMEM({2, 128}, f32), gpu::Barrier({.num_barriers = 2}),
                            gpu::Barrier({.num_barriers = 2})}};
}

Kernel kernel_of(int steps, bool waits = true) {
  return gpu::kernel(
      [=](Ref x, Ref o, Ref s, Ref full, Ref empty) { ring(x, o, s, full, empty, steps, waits); },
      of_ring("ring", steps));
}

std::string verdict_of(int steps) {
  return test::verdict_of(kernel_of(steps), {ShapeDtype{{steps, 128}, f32}});
}

TEST_CASE("a ring is followed for as long as it is, and not explored beyond what is looked at") {
  for (const int steps : {1, 2, 3, 500})
    CHECK_THAT(verdict_of(steps), ContainsSubstring("good: 1 way"));
  CHECK_THAT(verdict_of(20000), ContainsSubstring("not explored: more than") &&
                                    ContainsSubstring("things happen on its ways"));
}

TEST_CASE("a counterexample is a remark with both lines, and an error where all is checked") {
  const Lowered wrong = kernel_of(4, false).lower(ShapeDtype{{4, 128}, f32});
  const auto says_both = [](const std::string& text) {
    for (const char* words :
         {"race on scratch[0]: thread 1 reads at verdicts_test.cpp:",
          "a copy of thread 0 that began at verdicts_test.cpp:", "nothing orders the two"})
      CHECK_THAT(text, ContainsSubstring(words));
  };
  const CompileOptions hopper{.arch = "sm_90a"};
  says_both(refused([&] { (void)wrong.cuda_source(hopper); }));
  const Environment off("PALLADIUM_VERIFY", "0");
  std::vector<Remark> told;
  for (const Remark& r : wrong.report(hopper).remarks)
    if (r.text.starts_with("its barriers and copies by hand do not go together: "))
      told.push_back(r);
  REQUIRE(told.size() == 1);
  says_both(told[0].text);
  CHECK(told[0].at.line > 0);
  CHECK_THAT(wrong.schedule(hopper), ContainsSubstring("begins to copy args[0][0,0:128]"));
}

TEST_CASE(
    "what is not explored is a remark, at once, and no error; of what is good nothing is said") {
  const CompileOptions hopper{.arch = "sm_90a"};
  const std::string words = "whether its barriers and copies by hand go together is not explored: ";
  const auto told = [&](int steps) {
    std::vector<Remark> remarks;
    for (const Remark& r :
         kernel_of(steps).lower(ShapeDtype{{steps, 128}, f32}).report(hopper).remarks)
      if (r.text.find("by hand") != std::string::npos) remarks.push_back(r);
    return remarks;
  };
  CHECK(told(4).empty());
  const std::vector<Remark> remarks = told(20000);
  REQUIRE(remarks.size() == 1);
  CHECK_THAT(remarks[0].text, ContainsSubstring(words + "more than"));
  CHECK(remarks[0].at.line > 0);
  const Lowered endless = kernel_of(20000).lower(ShapeDtype{{20000, 128}, f32});
  CHECK(endless.cuda_source(hopper).find("ring_kernel") != std::string::npos);
  // Of a thread's own time, since others run beside it; some times what it takes alone.
  const std::clock_t begin = std::clock();
  (void)endless.schedule(hopper);
  const double ms = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  CHECK(ms < 500);
}

TEST_CASE("a number of steps that is loaded is several, and no counterexample") {
  for (const bool waits : {true, false}) {
    const Kernel k = gpu::kernel([=](Ref x, Ref n, Ref o, Ref s, Ref full,
                                     Ref empty) { ring(x, o, s, full, empty, Value(n[0]), waits); },
                                 of_ring("loaded", 8));
    const std::string verdict =
        test::verdict_of(k, {ShapeDtype{{8, 128}, f32}, ShapeDtype{{1}, i32}});
    if (waits)
      CHECK_THAT(verdict, ContainsSubstring("good: 3 ways"));
    else
      CHECK_THAT(verdict, ContainsSubstring("not explored: what is given at verdicts_test.cpp:") &&
                              ContainsSubstring("race on scratch[0]"));
  }
}

TEST_CASE("programs of a grid, first and last, go through one body") {
  const auto verdict = [](bool is_right) {
    const Kernel k = gpu::kernel(
        [=](Ref x, Ref o, Ref s, Ref done) {
          const Value row = program_id(0);
          gpu::copy_gmem_to_smem(x.at(row), s, done);
          if (is_right)
            gpu::barrier_wait(done);
          else
            pl::when(row != 3, [&] { gpu::barrier_wait(done); });
          o[row] = s[_];
        },
        {.name = "rows",
         .out_type = {{4, 128}, f32},
         .grid = {4},
         .grid_names = {"rows"},
         .scratch_types = {gpu::SMEM({128}, f32), gpu::Barrier()}});
    return test::verdict_of(k, {ShapeDtype{{4, 128}, f32}});
  };
  CHECK_THAT(verdict(true), ContainsSubstring("good: 2 ways"));
  CHECK_THAT(verdict(false), ContainsSubstring("race on scratch[0]"));
}

TEST_CASE("what is written in part is not explored where it may be a race") {
  const auto verdict = [](bool is_own) {
    const Kernel k = gpu::kernel(
        [=](Ref x, Ref o, Ref s, Ref both) {
          const Value wg = axis_index("wg");
          const Value v = x[wg];
          pl::store(is_own ? s.at(wg) : s.at(0), v, {.mask = v > 0.0f});
          gpu::barrier_arrive(both);
          gpu::barrier_wait(both);
          o[wg] = s[0];
        },
        {.name = "part",
         .out_type = {{2, 128}, f32},
         .num_threads = 2,
         .thread_name = "wg",
         .scratch_types = {gpu::SMEM({2, 128}, f32), gpu::Barrier({.num_arrivals = 2})}});
    return test::verdict_of(k, {ShapeDtype{{2, 128}, f32}});
  };
  CHECK_THAT(verdict(true), ContainsSubstring("good: 1 way"));
  CHECK_THAT(verdict(false),
             ContainsSubstring("not explored: data decide whether there is a race on scratch[0]"));
}

}  // namespace verdicts
