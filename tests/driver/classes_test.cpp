// The classes of calls that a kernel keeps, and what serves a call while its own is compiled.
#include <sys/stat.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "codegen/base/process.hpp"
#include "palladium/palladium.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"
#include "tests/support/targets.hpp"
#include "tests/support/wait_until.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;
using test::Environment;

namespace {

/// `name`: of a test, so that no other has loaded its kernels.
Kernel copy(const char* name) {
  return pallas_call(
             [](Ref x, Ref o) { o[_] = x[_]; },
             [=](ShapeDtype x) {
               const auto [m, n] = x.shape.unpack<2>();
               const BlockSpec tile{{8, 64}, [](Index i, Index j) { return Indices{i, j}; }};
               return PallasCallOptions{.name = name,
                                        .out_type = x,
                                        .grid = {cdiv(m, 8), cdiv(n, 64)},
                                        .in_specs = {tile},
                                        .out_specs = {tile}};
             })
      .on(Target::cuda);
}

constexpr std::int64_t most_stride = 1 << 20;  // an address is a larger number

/// Copies as the kernel does, by the arguments that it gets: behind an array its stride, or none.
void play_copy(const fake_cuda::Launch& launch) {
  const auto at = [&](std::size_t i) { return launch.argument<std::int64_t>(i); };
  const std::size_t count = launch.arguments.size();
  const std::int64_t m = at(count - 2), n = at(count - 1);
  const bool x_apart = at(1) < most_stride, o_apart = count == (x_apart ? 6 : 5);
  const auto* x = launch.argument<const float*>(0);
  auto* o = launch.argument<float*>(x_apart ? 2 : 1);
  const std::int64_t from = x_apart ? at(1) : n, to = o_apart ? at(count - 3) : n;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) o[i * to + j] = x[i * from + j];
}

/// What a call gives is what it was given, whichever kernel ran.
void call(const Kernel& k, std::int64_t m, std::int64_t n, std::int64_t lead = 0) {
  const Array memory = test::make_array<float>({m * n + lead}, [](auto i) { return i % 100; });
  const Array there = memory.to(Device::cuda(0));
  const Device gpu = Device::cuda(0);
  const Array x =
      Array::view(static_cast<float*>(there.data()) + lead, {m, n}, f32, {.device = &gpu});
  const Array y = test::on_cpu(k(x));
  INFO(m << " x " << n << ", " << lead << " elements behind");
  bool right = y.shape() == x.shape();
  for (std::int64_t i = 0; i < m * n && right; ++i)
    right = y.data<float>()[i] == memory.data<float>()[i + lead];
  CHECK(right);
}

/// The same of rows of any length up to a bound; counts how often it is traced.
Kernel copy_rows(const char* name, int* traces) {
  return pallas_call(
             [](Ref x, Ref o) { o[_] = x[_]; },
             [=](ShapeDtype x) {
               ++*traces;
               const auto [m, n] = x.shape.unpack<2>();
               const BlockSpec row{{1, bounded(n, size_class(n, 64))}, [](Index i) {
                                     return Indices{i, 0};
                                   }};
               return PallasCallOptions{
                   .name = name, .out_type = x, .grid = {m}, .in_specs = {row}, .out_specs = {row}};
             })
      .on(Target::cuda);
}

struct Fixture {
  Fixture() { fake.on_launch = play_copy; }

  std::size_t loads() const { return fake.count("cuLibraryLoadData"); }
  fake_cuda::State& fake = test::fake_driver();
  test::Folder folder;
  Environment cache{"PALLADIUM_CACHE_DIR", folder / "cache"};
};

/// A test in a process of its own, where the class of odd numbers of columns is in the cache.
struct Child {
  Child() { fake.on_launch = play_copy; }
  std::size_t loads() const { return fake.count("cuLibraryLoadData"); }

  fake_cuda::State& fake = test::fake_driver();
  const std::string folder = std::getenv("TEST_FOLDER");
};

/// Runs a hidden test case with a helper that does as the script says before it compiles.
void under_helper(const std::string& hidden, const char* kernel, const std::string& script,
                  std::vector<test::Variable> more = {}) {
  (void)test::fake_driver();
  const test::Folder folder;
  const std::string helper = folder / "helper";
  REQUIRE(files::publish(helper, "#!/bin/sh\n" + script + "\nexec '" + test::binary_dir() +
                                     "/palladium-compile' \"$@\"\n"));
  REQUIRE(::chmod(helper.c_str(), 0700) == 0);
  {
    const Environment cache("PALLADIUM_CACHE_DIR", folder / "cache");
    const Array odd = test::make_array<float>({3, 13}, [](auto i) { return i; });
    copy(kernel).lower(odd).compile({.arch = default_arch()});
  }
  for (const test::Variable& variable :
       std::vector<test::Variable>{{"PALLADIUM_CACHE_DIR", folder / "cache"},
                                   {"PALLADIUM_COMPILE_HELPER", helper},
                                   {"TEST_FOLDER", folder.path()}})
    more.push_back(variable);
  const test::Finished child = test::run_hidden("HIDDEN " + hidden, more);
  INFO(child.out << child.err);
  CHECK(child.status == 0);
}
const std::string wait_for_go = "while [ ! -e \"$TEST_FOLDER/go\" ]; do sleep 0.01; done";

}  // namespace

TEST_CASE_METHOD(Child, "HIDDEN class in the background", "[.]") {
  const Kernel k = copy("class_background");
  call(k, 3, 13);
  CHECK(loads() == 1);
  for (int i = 0; i < 3; ++i) call(k, 3, 64);  // served by the other class
  call(k, 5, 13);
  CHECK(loads() == 1);
  REQUIRE(files::publish(folder + "/go", "go"));
  test::wait_until("the class is loaded", [&] {
    call(k, 3, 64);
    return loads() == 2;
  });
  for (const std::int64_t n : {64, 128, 13, 12}) call(k, 9, n);
  CHECK(loads() == 2);
}

TEST_CASE("a class is compiled in the background where another serves its calls") {
  under_helper("class in the background", "class_background", wait_for_go);
}

TEST_CASE_METHOD(Fixture, "the first call of a size whose class has been called traces nothing") {
  int traces = 0;
  const Kernel k = copy_rows("rows_of_a_class", &traces);
  call(k, 3, 48);
  CHECK(traces == 1);
  const std::size_t loaded = loads();
  for (const std::int64_t n : {4, 64, 8, 60, 20}) call(k, n, n);
  CHECK(traces == 1);
  CHECK(loads() == loaded);
  call(k, 5, 68);
  CHECK(traces == 2);
  CHECK(loads() == loaded + 1);
  for (const std::int64_t n : {128, 72, 16, 124}) call(k, 7, n);
  CHECK(traces == 2);
  CHECK(loads() == loaded + 1);
}

TEST_CASE_METHOD(Fixture, "a class of which no other serves the calls is waited for") {
  const Kernel k = copy("class_waited_for");
  call(k, 3, 64);
  call(k, 3, 13);
  CHECK(loads() == 2);
}

TEST_CASE_METHOD(Fixture, "a class that is in the cache is loaded when it is called") {
  {
    const Kernel k = copy("class_in_cache");
    call(k, 3, 64);
  }
  const Kernel k = copy("class_in_cache");
  unload_unused_kernels();
  const std::size_t before = loads();
  call(k, 3, 13);
  call(k, 3, 64);
  CHECK(loads() == before + 2);
}

TEST_CASE_METHOD(Child, "HIDDEN class that is not compiled", "[.]") {
  const Kernel k = copy("class_lost");
  call(k, 3, 13);
  const test::CapturedStderr log;
  test::wait_until("the failure", [&] {
    call(k, 3, 64);
    return log.text().find("serves calls of") != std::string::npos;
  });
  for (int i = 0; i < 3; ++i) call(k, 4, 64);
  CHECK(loads() == 1);
  const std::string text = log.text();
  CHECK_THAT(text, ContainsSubstring("a kernel that knows less of the sizes serves calls of "
                                     "'class_lost': "));
  CHECK(text.find("serves calls of") == text.rfind("serves calls of"));
}

TEST_CASE("a class that cannot be compiled leaves its calls to the other") {
  const test::Folder dumps;
  under_helper("class that is not compiled", "class_lost", "",
               {{"PALLADIUM_COMPILE_MEMORY", "16"}, {"PALLADIUM_DUMP_DIR", dumps.path()}});
}

TEST_CASE_METHOD(Child, "HIDDEN class in a child", "[.]") {
  const Kernel k = copy("class_in_child");
  call(k, 3, 13);
  call(k, 3, 64);
  // What the parent compiles nobody compiles here; what is loaded serves as long as it may.
  std::optional<process::Child> child = process::Child::fork([&] {
    try {
      call(k, 3, 64);
    } catch (const Error&) {
      return 1;
    }
    return 0;
  });
  REQUIRE(child);
  REQUIRE(files::publish(folder + "/go", "go"));
  CHECK(child->wait().signal == 0);
  test::wait_until("the class is loaded", [&] {
    call(k, 3, 64);
    return loads() == 2;
  });
}

TEST_CASE("a child of a process that compiles a class in the background hangs in nothing") {
  under_helper("class in a child", "class_in_child", wait_for_go);
}

TEST_CASE_METHOD(Fixture, "threads that call two classes get their results from one or the other") {
  const Kernel k = copy("class_threads");
  call(k, 3, 13);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Device gpu = Device::cuda(0);
      for (int i = 0; i < 40; ++i) {
        const std::int64_t n = (i + t) % 2 == 0 ? 64 : 13;
        const Array x = test::make_array<float>({3, n}, [&](auto e) { return e + i; }).to(gpu);
        const Array y = test::on_cpu(k(x)), z = test::on_cpu(x);
        for (std::int64_t e = 0; e < y.size(); ++e)
          wrong += y.data<float>()[e] != z.data<float>()[e];
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(loads() <= 2);
}

namespace {

/// Calls of a copy into memory that is there, of which rows may be apart and begin anywhere.
struct Copies : Fixture {
  static constexpr std::int64_t most = 1 << 14;
  const Device gpu = Device::cuda(0);
  const Array from = test::make_array<float>({most}, [](auto i) { return i; }).to(gpu);
  const Array to = Array::zeros({most}, f32).to(gpu);

  Array view(const Array& memory, std::int64_t m, std::int64_t n, std::int64_t lead,
             std::int64_t apart) const {
    const std::int64_t strides[] = {n + apart, 1};
    ViewOptions options{.device = &gpu};
    if (apart != 0) options.strides = strides;
    return Array::view(static_cast<float*>(memory.data()) + lead, {m, n}, f32, options);
  }
  /// The launch that came of it.
  const fake_cuda::Launch& call_into(const Kernel& k, std::int64_t m, std::int64_t n,
                                     std::int64_t lead, std::int64_t x_apart,
                                     std::int64_t o_apart) {
    k.into({view(to, m, n, lead, o_apart)}, {view(from, m, n, lead, x_apart)});
    INFO(m << " x " << n << ", " << lead << " behind, " << x_apart << ", " << o_apart << " apart");
    const auto* const given = static_cast<const float*>(to.data()) + lead;
    bool right = true;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        right &= given[i * (n + o_apart) + j] == static_cast<float>(lead + i * (n + x_apart) + j);
    CHECK(right);
    const fake_cuda::Launch& launch = fake.launches.back();
    CHECK(launch.grid[0] == (m + 7) / 8 * ((n + 63) / 64));
    return launch;
  }
};

}  // namespace

TEST_CASE_METHOD(Copies,
                 "calls of sizes, classes and strides in turn are each launched as they are") {
  const Kernel k = copy("class_in_turn");
  const std::int64_t heights[] = {1, 3, 8, 9, 64}, widths[] = {1, 13, 12, 64, 128, 67};
  std::uint32_t random = 1;
  const auto below = [&](std::size_t n) {
    random = random * 1664525 + 1013904223;
    return static_cast<std::int64_t>((random >> 8) % n);
  };
  const auto rarely = [&](std::int64_t n) { return below(4) == 0 ? n : 0; };
  for (int i = 0; i < 600; ++i) {
    const std::int64_t m = heights[below(5)], n = widths[below(6)], lead = rarely(1),
                       x_apart = rarely(4);
    call_into(k, m, n, lead, x_apart, rarely(4));
  }
  // Without rows nothing is launched, before and after others.
  const std::size_t launches = fake.launches.size();
  for (int i = 0; i < 2; ++i) k.into({view(to, 0, 64, 0, 0)}, {view(from, 0, 64, 0, 0)});
  CHECK(fake.launches.size() == launches);
}

TEST_CASE_METHOD(Copies,
                 "a call beyond the classes that are kept takes the strongest that serves it") {
  const Kernel k = copy("class_strongest");
  const test::CapturedStderr log;
  CHECK(call_into(k, 3, 13, 0, 0, 0).arguments.size() == 4);
  // Each with a stride for each array that is not dense.
  CHECK(call_into(k, 3, 13, 0, 4, 0).arguments.size() == 5);
  CHECK(call_into(k, 3, 13, 0, 0, 4).arguments.size() == 5);
  call_into(k, 3, 64, 0, 4, 0);
  call_into(k, 3, 64, 0, 0, 4);
  for (int i = 0; i < 3; ++i) {
    // There is no kernel for dense arrays of aligned rows: that of dense ones serves, and not the
    // one that serves all.
    CHECK(call_into(k, 5, 64, 0, 0, 0).arguments.size() == 4);
    CHECK(call_into(k, 5, 13, 1, 4, 4).arguments.size() == 6);
  }
  CHECK_THAT(log.text(), ContainsSubstring("'class_strongest' keeps 6 classes"));
}

TEST_CASE_METHOD(Fixture, "a captured stream is served by what is loaded") {
  const Kernel k = copy("class_captured");
  call(k, 3, 13);
  const Array x = test::make_array<float>({3, 64}, [](auto i) { return i; }).to(Device::cuda(0));
  const Array o = Array::zeros({3, 64}, f32).to(Device::cuda(0));
  fake.capturing = true;
  k.into({o}, {x});
  fake.capturing = false;
  CHECK(loads() == 1);
  CHECK(fake.spoiled_captures == 0);
}

TEST_CASE_METHOD(Fixture, "a kernel keeps six classes, one of which serves all calls") {
  const Kernel add = pallas_call([](Ref a, Ref b, Ref c, Ref o) { o[_] = a[_] + b[_] + c[_]; },
                                 [](ShapeDtype a, ShapeDtype, ShapeDtype) {
                                   const BlockSpec piece{{64}, [](Index i) { return i; }};
                                   return PallasCallOptions{.name = "class_six",
                                                            .out_type = a,
                                                            .grid = {cdiv(a.shape[0], 64)},
                                                            .in_specs = {piece, piece, piece},
                                                            .out_specs = {piece}};
                                 })
                         .on(Target::cuda);
  fake.on_launch = nullptr;
  const Device gpu = Device::cuda(0);
  // Each pointer is aligned or not: eight classes of arrays, and two of sizes.
  const auto call = [&](int which, std::int64_t n) {
    std::vector<Array> all;
    for (std::uintptr_t i = 0; i < 4; ++i)
      all.push_back(
          Array::view(reinterpret_cast<void*>(((i + 1) << 44) + ((which >> i & 1) != 0 ? 4 : 0)),
                      {n}, f32, {.device = &gpu}));
    add.into({all[3]}, {all[0], all[1], all[2]});
  };
  const test::CapturedStderr log;
  for (int round = 0; round < 4; ++round)
    for (int which = 0; which < 16; ++which) {
      call(which, 64);
      call(which, 67);
    }
  test::wait_until("what is compiled in the background", [&] {
    const std::size_t before = loads();
    for (int which = 0; which < 16; ++which) call(which, 64);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return loads() == before;
  });
  CHECK(loads() <= 6);
  CHECK(fake.launches.size() >= 128);
  const std::string text = log.text();
  CHECK_THAT(text, ContainsSubstring("kernel 'class_six' keeps 6 classes"));
  CHECK(text.find("keeps 6 classes") == text.rfind("keeps 6 classes"));
}
