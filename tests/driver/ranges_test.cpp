// What a profiler sees of the host by NVTX: a fake one, in a process of its own.
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "codegen/base/files.hpp"
#include "palladium/palladium.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/fake_nvtx/fake_nvtx.hpp"
#include "tests/support/compile_helper.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"

using namespace palladium;
using pl::_;
using test::Environment;

namespace {

std::string profiler() { return test::binary_dir() + "/tests/fake/libfake_nvtx.so"; }

/// What was recorded since the last call, as text: ranges inside of others stand in braces behind
/// them, threads are divided by " | ". A range that was not closed has "..." behind it, an end that
/// closes nothing is "}".
std::string recorded() {
  fake_nvtx::State& state = fake_nvtx::state(profiler());
  const std::lock_guard lock(state.mutex);
  struct Thread {
    std::string text;
    std::vector<bool> has_inner = {};
  };
  std::map<std::thread::id, Thread> threads;
  std::vector<std::thread::id> order;
  for (const fake_nvtx::Event& event : state.events) {
    if (!threads.contains(event.thread)) order.push_back(event.thread);
    auto& [text, has_inner] = threads[event.thread];
    CHECK(event.domain == "palladium");
    if (event.pushed.empty()) {
      if (has_inner.empty() || has_inner.back()) text += "}";
      if (!has_inner.empty()) has_inner.pop_back();
      continue;
    }
    const bool is_first_inside = !has_inner.empty() && !has_inner.back();
    if (is_first_inside) has_inner.back() = true;
    text += (is_first_inside ? "{" : text.empty() ? "" : ", ") + event.pushed;
    has_inner.push_back(false);
  }
  state.events.clear();
  std::string all;
  for (const std::thread::id id : order) {
    all += (all.empty() ? "" : " | ") + threads[id].text;
    for (std::size_t open = threads[id].has_inner.size(); open > 0; --open) all += "...";
  }
  return all;
}

Kernel twice(const char* name) {
  return pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2.0f; },
                     {.name = name, .out_type = {{128}, f32}});
}

Kernel out_of_bounds(const char* name) {
  return pallas_call([](Ref x, Ref i, Ref o) { o[0] = x[Value(i[0])]; },
                     {.name = name, .out_type = {{1}, f32}});
}

Kernel untraceable() {
  return pallas_call(
      [](Ref x, Ref o) {
        o[_] = x[{0, 0, 0}];
      },
      {.name = "untraceable", .out_type = {{128}, f32}});
}

test::Finished run_with_profiler(const std::string& hidden,
                                 std::vector<test::Variable> variables = {}) {
  std::string path;
  if (!files::resolve(profiler(), path)) SKIP("needs nvtx3/nvToolsExt.h when configured");
  variables.emplace_back("NVTX_INJECTION64_PATH", profiler());
  return test::run_hidden("HIDDEN " + hidden, variables);
}

}  // namespace

TEST_CASE("HIDDEN ranges on the CPU", "[.]") {
  const Array x = Array::full({128}, f32, 1), three = Array::full({1}, i32, 3);
  const Kernel seen = twice("seen").on(Target::interpreter);
  seen(x);
  CHECK(fake_nvtx::state(profiler()).is_attached);
  CHECK(recorded() == "trace seen, launch seen");
  seen(x);
  CHECK(recorded() == "launch seen");
  CHECK_THROWS_AS(untraceable()(x), CompileError);
  CHECK(recorded() == "trace untraceable");
  CHECK_THROWS_AS(out_of_bounds("far")(Array::full({2}, f32, 1), three), CompileError);
  CHECK(recorded() == "trace far, launch far");

  const Kernel emulated = twice("emulated").on(Target::emulator);
  emulated(x);
  CHECK(recorded() == "trace emulated, lower emulated, launch emulated{compile emulated}");
  emulated(x);
  CHECK(recorded() == "launch emulated");
  const Kernel wrong = out_of_bounds("wrong").on(Target::emulator);
  CHECK_THROWS_AS(wrong(Array::full({2}, f32, 1), three), CompileError);
  CHECK(recorded() == "trace wrong, lower wrong, launch wrong{compile wrong}");
}

TEST_CASE("HIDDEN ranges with a driver", "[.]") {
  fake_cuda::State& fake = test::fake_driver();
  const Array x = Array::full({128}, f32, 1).to(Device::cuda(0));
  const Kernel cold = twice("cold").on(Target::cuda);
  const Array y = cold(x);
  CHECK(recorded() ==
        "trace cold, find cold, compile cold{lower cold, nvrtc cold}, load cold, launch cold");
  cold.into({y}, {x});
  CHECK(recorded() == "launch cold");
  REQUIRE(fake.launches.size() == 2);
  fake.results["cuLaunchKernelEx"] = 700;
  CHECK_THROWS_AS(cold.into({y}, {x}), CudaError);
  CHECK(recorded() == "launch cold");
  fake.results.clear();

  twice("warm").lower(ShapeDtype{{128}, f32}).compile({.arch = "sm_90a"});
  (void)recorded();
  twice("warm").on(Target::cuda)(x);
  CHECK(recorded() == "trace warm, find warm, load warm, launch warm");
}

TEST_CASE("HIDDEN ranges of compiles", "[.]") {
  const Lowered behind = twice("behind").lower(ShapeDtype{{128}, f32});
  behind.compile_async({.arch = "sm_90a"}).get();
  CHECK(recorded() == "trace behind | find behind, compile behind{lower behind, nvrtc behind}");

  const Lowered refused = twice("refused").lower(ShapeDtype{{128}, f32});
  const Environment refuse("FAKE_NVRTC", "refuse refused_kernel");
  CHECK_THROWS_AS(refused.compile({.arch = "sm_90a"}), CudaError);
  CHECK(recorded() == "trace refused, find refused, compile refused{lower refused, nvrtc refused}");
}

TEST_CASE("HIDDEN no ranges", "[.]") {
  twice("seen").on(Target::interpreter)(Array::full({128}, f32, 1));
  CHECK_FALSE(fake_nvtx::state(profiler()).is_attached);
  CHECK(recorded() == "");
}

TEST_CASE("a profiler sees trace, compile and launch of a kernel on the CPU by its name") {
  const test::Finished child = run_with_profiler("ranges on the CPU", {{"PALLADIUM_NVTX", "1"}});
  INFO(child.out << child.err);
  CHECK(child.status == 0);
}

TEST_CASE("a profiler sees trace, look-up, compile, load and launch of a kernel on a GPU") {
  const test::Folder cache;
  const test::Finished child =
      run_with_profiler("ranges with a driver", {{"PALLADIUM_NVTX", "1"},
                                                 {"PALLADIUM_NVRTC", test::toolchain().library},
                                                 {"PALLADIUM_CACHE_DIR", cache.path()}});
  INFO(child.out << child.err);
  CHECK(child.status == 0);
}

TEST_CASE("a profiler sees compiles of other threads, and such that are refused, to their end") {
  const test::Folder folder;
  const test::Finished child =
      run_with_profiler("ranges of compiles", {{"PALLADIUM_NVTX", "1"},
                                               {"PALLADIUM_COMPILE", "in-process"},
                                               {"PALLADIUM_NVRTC", test::fake_toolchain().library},
                                               {"PALLADIUM_DUMP_DIR", folder / "dump"},
                                               {"PALLADIUM_CACHE_DIR", folder / "cache"}});
  INFO(child.out << child.err);
  CHECK(child.status == 0);
}

TEST_CASE("who does not ask for ranges has none, whatever profiler there is") {
  for (const char* value : {"", "0"}) {
    const test::Finished child = run_with_profiler("no ranges", {{"PALLADIUM_NVTX", value}});
    INFO(value << ": " << child.out << child.err);
    CHECK(child.status == 0);
  }
}
