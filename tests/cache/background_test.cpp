// Kernels compiled in the background and by several threads at once: each case in a process of its
// own, with an NVRTC that does as it is told.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <latch>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "palladium/palladium.hpp"
#include "runtime/build/program.hpp"
#include "tests/support/compile_helper.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/wait_until.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;
using test::Folder;

namespace {

using std::chrono::milliseconds;

constexpr const char* arch = "sm_90a";

Kernel doubling(const std::string& name) {
  return pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2.f; },
                     {.name = name, .out_type = {{128}, f32}});
}
Lowered lowered(const std::string& name) { return doubling(name).lower(ShapeDtype{{128}, f32}); }

/// Of 64x64 blocks, so many.
Lowered product(std::int64_t programs) {
  const BlockSpec rows{{64, 64}, [](Index i) { return Indices{i, 0}; }};
  return pallas_call([](Ref x, Ref y, Ref o) { o[_] = dot(x[_], y[_]); },
                     {.name = "product",
                      .out_type = {{64 * programs, 64}, f32},
                      .grid = {programs},
                      .in_specs = {rows, {}},
                      .out_specs = {rows}})
      .lower(ShapeDtype{{64 * programs, 64}, f16}, ShapeDtype{{64, 64}, f16});
}

double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

/// How often the fake NVRTC has been asked, in a process that under_fake() started.
std::size_t compiles() {
  const std::string path = std::getenv("TEST_COMPILES");
  return files::exists(path) ? test::text_of(path).size() : 0;
}
void wait_for_compiles(std::size_t count) {
  test::wait_until("the fake NVRTC", [&] { return compiles() >= count; });
}
/// Lets the compiles go on that are told to do so "until %/go".
void let_go() { REQUIRE(files::publish(std::getenv("TEST_GO"), "go")); }
/// What would take a minute and more ends in so many seconds, however busy the machine.
constexpr double soon = 30;
/// For helpers that start from now on.
void now_do(const std::string& orders) {
  ::setenv("FAKE_NVRTC",
           ("count " + std::string(std::getenv("TEST_COMPILES")) + ";" + orders).c_str(), 1);
}

/// What a future's end is in words.
std::string error_of(const CompileFuture& future) {
  try {
    future.get();
    return "";
  } catch (const CudaError& error) {
    return error.what();
  }
}

/// Runs a hidden test case where NVRTC is the fake.
test::Finished under_fake(const std::string& hidden, const std::string& orders,
                          std::vector<test::Variable> more = {}) {
  const Folder folder;
  const auto replaced = [&](std::string text) {
    for (std::size_t at; (at = text.find("%")) != std::string::npos;)
      text.replace(at, 1, folder.path());
    return text;
  };
  for (const test::Variable& variable :
       std::vector<test::Variable>{{"PALLADIUM_NVRTC", test::fake_toolchain().library},
                                   {"PALLADIUM_CACHE_DIR", folder / "cache"},
                                   {"PALLADIUM_DUMP_DIR", folder / "dump"},
                                   {"TEST_COMPILES", folder / "compiles"},
                                   {"TEST_GO", folder / "go"},
                                   {"FAKE_NVRTC", replaced("count %/compiles;" + orders)}})
    more.push_back(variable);
  test::Finished child = test::run_hidden("HIDDEN " + hidden, more);
  INFO(child.out << child.err);
  CHECK(child.status == 0);
  return child;
}

}  // namespace

TEST_CASE("HIDDEN background", "[.]") {
  const CompileFuture future = lowered("a").compile_async({.arch = arch});
  const Compiled compiled = future.get();
  CHECK_FALSE(compiled.from_cache());
  CHECK(compiled.arch() == arch);
  CHECK(compiled.key() == lowered("a").key({.arch = arch}));
  CHECK(future.wait_for(0));
  CHECK(future.get().key() == compiled.key());
  CHECK(lowered("a").compile({.arch = arch}).from_cache());
  CHECK(lowered("a").compile_async({.arch = arch}).get().from_cache());
  CHECK(compiles() == 1);
}

TEST_CASE("a kernel compiled in the background is the one that compile() gives") {
  under_fake("background", "");
}

TEST_CASE("HIDDEN waiting", "[.]") {
  const CompileFuture future = lowered("a").compile_async({.arch = arch});
  CHECK_FALSE(future.wait_for(0));
  CHECK(seconds_of([&] { CHECK_FALSE(future.wait_for(0.1)); }) >= 0.1);
  future.cancel();
  CHECK(future.wait_for(0));
  now_do("");
  CHECK(lowered("a").compile_async({.arch = arch}).wait_for(1000));
}

TEST_CASE("a future can be waited for in portions") { under_fake("waiting", "sleep 60000"); }

TEST_CASE("HIDDEN one compile", "[.]") {
  std::vector<std::string> keys(64);
  std::latch all_there(64);
  run_threads(64, [&](int i) {
    const Lowered kernel = lowered("a");
    all_there.arrive_and_wait();
    keys[static_cast<std::size_t>(i)] =
        (i % 2 == 0 ? kernel.compile({.arch = arch}) : kernel.compile_async({.arch = arch}).get())
            .key();
  });
  CHECK(compiles() == 1);
  for (const std::string& key : keys) CHECK(key == keys[0]);
}

TEST_CASE("64 threads that ask for one kernel compile it once") {
  under_fake("one compile", "sleep 300");
}

TEST_CASE("64 threads that ask for one kernel compile it once, with no cache to meet in") {
  under_fake("one compile", "sleep 1000", {{"PALLADIUM_CACHE_DIR", "/proc/none"}});
}

TEST_CASE("HIDDEN others go on", "[.]") {
  std::vector<CompileFuture> futures;
  for (const char* name : {"a", "b", "c", "d"})
    futures.push_back(lowered(name).compile_async({.arch = arch}));
  wait_for_compiles(2);
  std::this_thread::sleep_for(milliseconds(200));
  CHECK(compiles() == 2);
  set_compile_jobs(3);
  futures.push_back(lowered("e").compile_async({.arch = arch}));
  wait_for_compiles(3);
  for (const CompileFuture& future : futures) future.cancel();
  CHECK_THROWS_WITH(set_compile_jobs(0),
                    "set_compile_jobs: expected a number from 1 to 1024, got 0");
}

TEST_CASE("as many kernels are compiled at once as there may be helpers") {
  under_fake("others go on", "sleep 60000", {{"PALLADIUM_COMPILE_JOBS", "2"}});
}

TEST_CASE("HIDDEN a call compiles", "[.]") {
  const Kernel kernel = doubling("a").on(Target::cuda);
  const Array x = Array::zeros({128}, f32).to(Device::cuda(0));
  std::atomic<bool> is_done = false;
  std::thread caller([&] {
    try {
      kernel(x);
    } catch (const std::exception&) {
      // The fake's cubin is none.
    }
    is_done = true;
  });
  wait_for_compiles(1);
  kernel.lower(ShapeDtype{{128}, f32});
  CHECK_FALSE(is_done);
  let_go();
  caller.join();
}

TEST_CASE("while a call compiles a kernel, others may trace the same one") {
  under_fake("a call compiles", "until %/go",
             {{"PALLADIUM_LIBCUDA", test::binary_dir() + "/tests/fake/libcuda.so.1"}});
}

TEST_CASE("HIDDEN cancel", "[.]") {
  const CompileFuture future = lowered("a").compile_async({.arch = arch});
  wait_for_compiles(1);
  std::thread waiting([&] { CHECK_THAT(error_of(future), ContainsSubstring("cancelled")); });
  std::this_thread::sleep_for(milliseconds(50));
  CHECK(seconds_of([&] {
          future.cancel();
          waiting.join();
          CHECK(error_of(future) == "compiling 'a' for sm_90a was cancelled");
        }) < soon);
  now_do("");
  CHECK_FALSE(lowered("a").compile({.arch = arch}).from_cache());
  CHECK(compiles() == 2);
  // What is done stays done.
  const CompileFuture done = lowered("a").compile_async({.arch = arch});
  done.get();
  done.cancel();
  CHECK(error_of(done).empty());
}

TEST_CASE("a cancelled compile ends at once and poisons nothing") {
  under_fake("cancel", "sleep 60000");
}

TEST_CASE("HIDDEN cancel one of two", "[.]") {
  const CompileFuture first = lowered("a").compile_async({.arch = arch});
  const CompileFuture second = lowered("a").compile_async({.arch = arch});
  first.cancel();
  CHECK_THAT(error_of(first), ContainsSubstring("was cancelled"));
  let_go();
  CHECK(error_of(second).empty());
  CHECK(compiles() == 1);
}

TEST_CASE("a compile that somebody else wants too goes on when one cancels") {
  under_fake("cancel one of two", "until %/go");
}

TEST_CASE("HIDDEN cancel in the queue", "[.]") {
  const CompileFuture first = lowered("a").compile_async({.arch = arch});
  wait_for_compiles(1);
  const CompileFuture queued = lowered("b").compile_async({.arch = arch});
  queued.cancel();
  let_go();
  CHECK(error_of(first).empty());
  lowered("c").compile({.arch = arch});
  CHECK(compiles() == 2);
}

TEST_CASE("a compile that is cancelled before its turn never starts") {
  under_fake("cancel in the queue", "until %/go", {{"PALLADIUM_COMPILE_JOBS", "1"}});
}

TEST_CASE("HIDDEN deadline", "[.]") {
  const std::string late = "compiling 'a' for sm_90a took longer than its deadline of 0.2 s";
  const double seconds = seconds_of([&] {
    CHECK(error_of(lowered("a").compile_async({.arch = arch, .deadline = 0.2})) == late);
  });
  CHECK(seconds >= 0.2);
  CHECK(seconds < soon);
  CHECK_THROWS_WITH(lowered("a").compile({.arch = arch, .deadline = 0.2}), late);
  now_do("");
  CHECK_FALSE(lowered("a").compile({.arch = arch, .deadline = 60}).from_cache());
  CHECK_THROWS_WITH(
      lowered("a").compile({.deadline = -1}),
      ContainsSubstring("'a': a deadline is a number of seconds, 0 or more, not -1") &&
          ContainsSubstring("background_test.cpp:"));
}

TEST_CASE("a compile that takes longer than its deadline is an error") {
  under_fake("deadline", "sleep 60000");
}

TEST_CASE("HIDDEN refusal", "[.]") {
  std::vector<std::string> errors(4);
  run_threads(4, [&](int i) {
    errors[static_cast<std::size_t>(i)] = error_of(lowered("a").compile_async({.arch = arch}));
  });
  for (const std::string& error : errors) {
    CHECK_THAT(error, ContainsSubstring("NVRTC 13.0 refuses 'a' for sm_90a:\nkernel.cu(1): error: "
                                        "refused as told"));
    CHECK(error == errors[0]);
  }
  CHECK(compiles() == 1);
  // Who asks again hears the same, at once.
  double fastest = 1;
  for (int i = 0; i < 20; ++i) {
    const Lowered again = lowered("a");
    std::string error;
    fastest = std::min(fastest, seconds_of([&] {
                         try {
                           again.compile({.arch = arch});
                         } catch (const CudaError& refusal) {
                           error = refusal.what();
                         }
                       }));
    CHECK(error == errors[0]);
  }
  CHECK(fastest < 1e-3);
  CHECK(compiles() == 1);
  // Another kernel, or the same one mended, is another question.
  now_do("");
  CHECK(lowered("b").compile({.arch = arch}).cubin().size() > 4);
  const Lowered mended =
      pallas_call([](Ref x, Ref o) { o[_] = x[_] * 3.f; }, {.name = "a", .out_type = {{128}, f32}})
          .lower(ShapeDtype{{128}, f32});
  CHECK(mended.compile({.arch = arch}).cubin().size() > 4);
  CHECK(compiles() == 3);
}

TEST_CASE("all who ask for what NVRTC refuses get its words, and NVRTC is asked once") {
  under_fake("refusal", "sleep 200;unless %/file;refuse", {{"PALLADIUM_COMPILE_JOBS", "1"}});
}

TEST_CASE("HIDDEN blame", "[.]") {
  int load = 0;
  const Kernel k = pallas_call(
      [&](Ref x, Ref o) {
        load = __LINE__ + 1;
        const Value v = x[_];
        o[_] = v * 2.f;
      },
      {.name = "blamed", .out_type = {{128}, f32}});
  const Lowered lowered = k.lower(ShapeDtype{{128}, f32});
  CHECK_THAT(error_of(lowered.compile_async({.arch = arch})),
             ContainsSubstring("error: refused as told  (from background_test.cpp:" +
                               std::to_string(load) + ")"));
}

TEST_CASE("what NVRTC says of a load names the line that loads, not that of its store") {
  under_fake("blame", "refuse load_global_nc<1>(&a0");
}

TEST_CASE("HIDDEN death", "[.]") {
  CHECK_THROWS_WITH(
      lowered("a").compile({.arch = arch}),
      ContainsSubstring("compiling 'a' for sm_90a: the compile helper was killed by signal 6 "
                        "(Aborted) and had said:\nall is lost\n") &&
          ContainsSubstring("the text is in ") && ContainsSubstring("dump/a."));
  CHECK(compiles() == 2);
  now_do("");
  CHECK_FALSE(lowered("a").compile({.arch = arch}).from_cache());
}

TEST_CASE("a compile that kills its helpers is an error that names kernel, death and text") {
  const test::Finished child = under_fake("death", "say all is lost;abort");
  CHECK_THAT(child.err, ContainsSubstring("the compile is tried once more"));
}

TEST_CASE("HIDDEN many", "[.]") {
  std::vector<CompileFuture> futures;
  for (int i = 0; i < 50; ++i)
    futures.push_back(lowered("k" + std::to_string(i)).compile_async({.arch = arch}));
  for (const CompileFuture& future : futures) CHECK_FALSE(future.get().from_cache());
  CHECK(compiles() == 50);
}

TEST_CASE("many kernels can be asked for at once") {
  under_fake("many", "", {{"PALLADIUM_COMPILE_JOBS", "3"}});
}

TEST_CASE("HIDDEN changed environment", "[.]") {
  const std::string before = runtime::store().root(), after = before + ".after";
  const CompileFuture future = lowered("a").compile_async({.arch = arch});
  wait_for_compiles(1);
  ::setenv("PALLADIUM_CACHE_DIR", after.c_str(), 1);
  ::setenv("PALLADIUM_JIT", "off", 1);
  let_go();
  CHECK_FALSE(future.get().from_cache());
  CHECK(cache::Store(before).list().size() == 1);
  CHECK(cache::Store(after).list().empty());
}

TEST_CASE("a compile in the background goes by the environment of the moment it was asked for") {
  under_fake("changed environment", "until %/go");
}

TEST_CASE("HIDDEN many operations", "[.]") {
  std::vector<Lowered> kernels;
  for (int i = 0; i < 12; ++i) kernels.push_back(lowered("k" + std::to_string(i)));
  const int operations = std::atoi(std::getenv("TEST_OPERATIONS"));
  std::atomic<int> wrong = 0;
  run_threads(8, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::vector<CompileFuture> kept;
    for (int i = 0; i < operations / 8; ++i) {
      const Lowered& kernel = kernels[random() % kernels.size()];
      const CompileOptions options{.arch = arch, .deadline = random() % 8 == 0 ? 0.002 : 0};
      try {
        switch (random() % 8) {
        case 0: kept.push_back(kernel.compile_async(options)); break;
        case 1:
          if (!kept.empty()) kept[random() % kept.size()].cancel();
          break;
        case 2:
          if (kept.size() > 4) kept.clear();
          break;
        case 3:
          if (!kept.empty()) (void)kept.back().wait_for(1e-4);
          break;
        case 4: {
          const auto key = cache::parse_key(kernel.key({.arch = arch}));
          runtime::store().remove(*key, nvrtc::toolchain().found->id);
          break;
        }
        case 5:
          if (!kept.empty()) wrong += kept.back().get().cubin().empty();
          break;
        default: wrong += kernel.compile(options).cubin().empty();
        }
      } catch (const CudaError& error) {
        const std::string why = error.what();
        wrong += why.find("was cancelled") == std::string::npos &&
                 why.find("took longer than its deadline") == std::string::npos;
      }
      if (random() % 64 == 0) (void)cache_stats();
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("threads may compile, wait, cancel and drop as they like") {
  // Built with -DPALLADIUM_SANITIZE=thread, with TEST_OPERATIONS=100000 and (a helper forks)
  // TSAN_OPTIONS=die_after_fork=0, it reports nothing either.
  const char* const asked = std::getenv("TEST_OPERATIONS");
  const std::string operations = asked ? asked : "4000";
  for (const char* where : {"in-process", "helper"})
    under_fake("many operations", "",
               {{"TEST_OPERATIONS", operations}, {"PALLADIUM_COMPILE", where}});
}

TEST_CASE("HIDDEN dropped", "[.]") {
  lowered("a").compile_async({.arch = arch});
  test::wait_until("the entry", [] { return !runtime::store().list().empty(); });
  // From the cache, or of the compile that stored it and is about to end.
  lowered("a").compile({.arch = arch});
  CHECK(compiles() == 1);
}

TEST_CASE("a future that nobody keeps still fills the cache") { under_fake("dropped", "sleep 50"); }

TEST_CASE("HIDDEN exit", "[.]") {
  for (int i = 0; i < 4; ++i)
    lowered("k" + std::to_string(i)).compile_async({.arch = arch, .deadline = 1000});
  wait_for_compiles(1);
}

TEST_CASE("a program that ends gives up what it compiles") {
  CHECK(seconds_of([] {
          under_fake("exit", "sleep 60000", {{"PALLADIUM_COMPILE_JOBS", "2"}});
        }) < soon);
}

TEST_CASE("HIDDEN memory", "[.]") {
  CHECK_THROWS_WITH(lowered("a").compile({.arch = arch}), ContainsSubstring("out of memory"));
}

TEST_CASE("PALLADIUM_COMPILE_MEMORY bounds a compile") {
  under_fake("memory", "hog", {{"PALLADIUM_COMPILE_MEMORY", "200"}});
}

TEST_CASE("HIDDEN in this process", "[.]") {
  for (const char* name : {"a", "b", "c"})
    CHECK_FALSE(lowered(name).compile({.arch = arch}).from_cache());
  CHECK(lowered("d").compile_async({.arch = arch}).get().cubin().size() > 4);
  CHECK(compiles() == 4);
}

TEST_CASE("without a helper kernels are compiled in this process, after one warning") {
  const test::Finished child =
      under_fake("in this process", "", {{"PALLADIUM_COMPILE_HELPER", "/nonexistent/helper"}});
  const std::string warning = "warning kernels are compiled in this process";
  const std::size_t first = child.err.find(warning);
  REQUIRE(first != std::string::npos);
  CHECK(child.err.find(warning, first + 1) == std::string::npos);
  CHECK_THAT(child.err,
             ContainsSubstring("/nonexistent/helper: posix_spawn: No such file or directory"));
}

TEST_CASE("PALLADIUM_COMPILE=in-process compiles in this process without a word") {
  const test::Finished child = under_fake(
      "in this process", "",
      {{"PALLADIUM_COMPILE", "in-process"}, {"PALLADIUM_COMPILE_HELPER", "/nonexistent"}});
  CHECK(child.err.empty());
}

TEST_CASE("HIDDEN spills", "[.]") {
  const auto compiled = [](std::int64_t programs) {
    return product(programs).compile({.arch = "sm_90"});
  };
  // A multiprocessor has one program of a hundred, and several of a thousand.
  CHECK(compiled(100).resources().spill_store_bytes == 0);
  CHECK(compiles() == 1);
  CHECK(compiled(1000).resources().spill_store_bytes == 0);
  CHECK(compiles() == 3);
  CHECK(compiled(1000).from_cache());
}

TEST_CASE("registers that would spill leave no room for other blocks") {
  under_fake("spills", "spill PL_KERNEL(128, ");
}

TEST_CASE("HIDDEN spills alone", "[.]") {
  const Resources found = product(1000).compile({.arch = "sm_90"}).resources();
  CHECK(found.spill_store_bytes == 8);
  CHECK(found.spill_load_bytes == 4);
}

TEST_CASE("what spills is there where the same without is not") {
  for (const std::string end : {"abort", "refuse product"}) {
    INFO(end);
    under_fake("spills alone", "spill PL_KERNEL(128, ;only PL_KERNEL(128) ;" + end);
  }
}

TEST_CASE("HIDDEN bad variables", "[.]") {
  const auto message = [](const char* name, const char* value) {
    const test::Environment variable(name, value);
    try {
      lowered("a").compile({.arch = arch});
      return std::string();
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
  };
  CHECK(message("PALLADIUM_COMPILE", "never") ==
        "PALLADIUM_COMPILE is 'never'; it can be helper or in-process");
  CHECK(message("PALLADIUM_COMPILE_JOBS", "many") ==
        "PALLADIUM_COMPILE_JOBS is 'many'; it can be a number from 1 to 1024");
  CHECK(message("PALLADIUM_COMPILE_JOBS", "0") ==
        "PALLADIUM_COMPILE_JOBS is '0'; it can be a number from 1 to 1024");
  CHECK(message("PALLADIUM_COMPILE_MEMORY", "1g") ==
        "PALLADIUM_COMPILE_MEMORY is '1g'; it can be a number from 1 to 1048576");
  CHECK(message("PALLADIUM_COMPILE_MEMORY", "512").empty());
}

TEST_CASE("a variable about compiling that says nothing known is an error that says what can be") {
  under_fake("bad variables", "");
}
