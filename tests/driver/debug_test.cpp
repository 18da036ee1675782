// What kernels tell from a GPU: a buffer of each launch, read when somebody waits for it.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "palladium/palladium.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/memory.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;
using test::CapturedStdout;

namespace {

constexpr int line_of_check = __LINE__ + 6;
Kernel teller() {
  pl::enable_debug_checks();
  return pallas_call(
             [](Ref x, Ref o) {
               pl::debug_print("{} of {}", program_id(0), pl::sum(x[_]));
               pl::debug_check(x[_] > 0.0f, "all are positive");
               pl::debug_print("x {}", x[_]);
               o[_] = x[_];
             },
             {.name = "teller",
              .out_type = {{4}, f32},
              .grid = {2},
              .in_specs = {BlockSpec{{2}, [](Index i) { return i; }}},
              .out_specs = {BlockSpec{{2}, [](Index i) { return i; }}}})
      .on(Target::cuda);
}

/// Plays what a launch of it tells: numbers as codegen/device/common/debug.cuh puts them.
struct Player {
  bool fails = false;
  std::uint64_t lost = 0;
  std::vector<const void*> buffers = {};

  void operator()(const fake_cuda::Launch& launch) {
    auto* buffer = launch.argument<std::uint64_t*>(2);
    buffers.push_back(buffer);
    CHECK(buffer[1] == std::uint64_t{1} << 17);
    for (std::size_t i = 2; i < buffer[1]; ++i)
      if (buffer[i] != 0) FAIL("number " << i << " is " << buffer[i]);
    const auto tell = [&](std::vector<std::uint64_t> numbers) {
      for (const std::uint64_t n : numbers) buffer[buffer[0]++] = n;
    };
    tell({1, 0, 0x40400000});  // site 0: 0 of 3
    tell({3, 0x3f800000, 0x40000000});
    tell({1, 1, 0xffffffff40e00000});
    buffer[2] = lost;
    if (!fails) return;
    buffer[3] = 2;
    buffer[4] = 1;
  }
};

struct Fixture {
  fake_cuda::State& fake = test::fake_driver();
  test::Folder folder;
  test::Environment cache{"PALLADIUM_CACHE_DIR", folder.path()};
  Player player;
  const Kernel k = teller();
  const Array x = Array::full({4}, f32, 1).to(Device::cuda(0));
  std::size_t pinned = fake.pinned_allocations, events = fake.events;

  Fixture() {
    fake.on_launch = [this](const fake_cuda::Launch& launch) { player(launch); };
  }
  ~Fixture() { pl::enable_debug_checks(false); }
};

const std::string lines = "0 of 3\nx [0]: 1\nx [1]: 2\n1 of 7\n";

}  // namespace

TEST_CASE_METHOD(Fixture, "what a kernel told is printed once somebody waits for it") {
  const CapturedStdout out;
  const Array o = k(x);
  k.into({o}, {x});
  CHECK(out.text() == "");
  CHECK(fake.pinned_allocations == pinned + 2);
  CHECK(player.buffers.at(0) != player.buffers.at(1));
  (void)o.to(Device::cpu());
  CHECK(out.text() == lines + lines);
  (void)o.to(Device::cpu());
  k.into({o}, {x});
  pl::debug_flush();
  pl::debug_flush();
  CHECK(out.text() == lines + lines + lines);
  CHECK(fake.pinned_allocations == pinned);
  CHECK(fake.events == events);
}

TEST_CASE_METHOD(Fixture, "a check that failed on a GPU is the error of who waits") {
  player.fails = true;
  const Array o = k(x);
  std::string text, message;
  int line = 0;
  {
    const CapturedStdout out;
    try {
      (void)o.to(Device::cpu());
    } catch (const CompileError& e) {
      message = e.what();
      line = e.at().line;
    }
    text = out.text();
  }
  CHECK_THAT(message, ContainsSubstring("debug_check: all are positive (program (1))"));
  CHECK(line == line_of_check);
  CHECK(text == lines);
  CHECK_NOTHROW(o.to(Device::cpu()));
}

TEST_CASE_METHOD(Fixture, "what was told stands before the error of a kernel that broke") {
  const CapturedStdout out;
  const Array o = k(x);
  for (const char* call : {"cuStreamSynchronize", "cuEventQuery"}) fake.results[call] = 700;
  CHECK_THROWS_WITH(o.to(Device::cpu()), ContainsSubstring("cuStreamSynchronize"));
  fake.results.clear();
  CHECK(out.text() == lines);
}

TEST_CASE_METHOD(Fixture, "memory that a kernel may still write to is not given back") {
  fake.results["cuEventRecord"] = 700;
  CHECK_THROWS_WITH(k(x), ContainsSubstring("cuEventRecord"));
  fake.results.clear();
  CHECK(fake.pinned_allocations == pinned + 1);
  CHECK_NOTHROW(pl::debug_flush());
}

TEST_CASE_METHOD(Fixture, "calls of debug_print that found no room are counted in the log") {
  const CapturedStdout out;
  const test::CapturedStderr log;
  player.lost = 12;
  k(x);
  pl::debug_flush();
  CHECK(out.text() == lines);
  CHECK_THAT(log.text(), ContainsSubstring("kernel 'teller': 12 of the calls of debug_print"));
}

TEST_CASE_METHOD(Fixture, "so many launches whose prints nobody reads wait for the first of them") {
  const CapturedStdout out;
  for (int i = 0; i < 70; ++i) k(x);
  CHECK(out.text().size() >= lines.size());
  CHECK(fake.pinned_allocations < pinned + 64);
  pl::debug_flush();
  CHECK(out.text().size() == 70 * lines.size());
}

TEST_CASE_METHOD(Fixture, "a kernel that prints is not captured in a graph") {
  const CapturedStdout out;
  const Array o = k(x);
  pl::debug_flush();
  const driver::ContextScope context(0);
  const driver::Stream own;
  const Stream stream(reinterpret_cast<CUstream_st*>(own.handle()));
  fake.capturing = true;
  CHECK_THROWS_WITH(k.on(stream).into({o}, {x}), ContainsSubstring("captured in a graph cannot"));
  fake.capturing = false;
}
