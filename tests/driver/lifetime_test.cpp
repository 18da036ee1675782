// Kernels on devices: prepared before a capture, kept by graphs, and unloaded when nobody can
// launch them any more and nothing of them runs.
#include <dlfcn.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "palladium/palladium.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/kernel.hpp"
#include "runtime/driver/memory.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/support/folder.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;
using test::Environment;
using test::Folder;
namespace abi = driver::abi;

namespace {

/// Another kernel for every factor.
Kernel scaled(int factor) {
  return pallas_call([=](Ref x, Ref o) { o[_] = x[_] * static_cast<float>(factor); },
                     {.name = "scaled", .out_type = {{128}, f32}})
      .on(Target::cuda);
}

/// What programs do with streams and graphs, and Palladium does not.
template <class... Parameters>
void call(const char* name, Parameters... parameters) {
  static void* const library = dlopen(test::fake_libcuda().c_str(), RTLD_NOW);
  const auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name));
  REQUIRE(function != nullptr);
  INFO(name);
  REQUIRE(function(parameters...) == 0);
}

/// An executable graph of what `body` launches into a stream.
class Captured {
 public:
  Captured(const driver::Stream& stream, const auto& body) {
    call("cuStreamBeginCapture_v2", stream.handle(), 0);
    body();
    call("cuStreamEndCapture", stream.handle(), &graph_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    if (graph_) call("cuGraphDestroy", graph_);
    if (executable_) call("cuGraphDestroy", executable_);
  }
  /// From now on only what was made of it lives.
  void instantiate() {
    call("cuGraphInstantiateWithFlags", &executable_, graph_, 0ull);
    call("cuGraphDestroy", graph_);
    graph_ = nullptr;
  }
  void launch(const driver::Stream& stream) const {
    call("cuGraphLaunch", executable_, stream.handle());
  }

 private:
  abi::Graph graph_ = nullptr, executable_ = nullptr;
};

struct Fixture {
  Fixture() { unload_unused_kernels(); }
  ~Fixture() {
    unload_unused_kernels();
    CHECK(fake.unloaded_while_running == 0);
    CHECK(fake.spoiled_captures == 0);
  }
  Array array(int device = 0) const { return Array::zeros({128}, f32).to(Device::cuda(device)); }

  fake_cuda::State& fake = test::fake_driver();
  Folder folder;
  Environment cache{"PALLADIUM_CACHE_DIR", folder.path()};
  driver::ContextScope context{0};
  driver::Stream own;
  Stream stream{reinterpret_cast<CUstream_st*>(own.handle())};
};

std::size_t resident_bytes() {
  std::size_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE_METHOD(Fixture, "a first call under capture is refused before anything illegal happens") {
  const Kernel kernel = scaled(2);
  const Array x = array(), z = array();
  const Captured graph(own, [&] {
    CHECK_THROWS_WITH(
        kernel.on(stream).into({z}, {x}),
        ContainsSubstring("'scaled' is called for the first time on a stream that is being "
                          "captured") &&
            ContainsSubstring("prepare()"));
    CHECK(fake.count("cuLibraryLoadData") == 0);
  });
  kernel.into({z}, {x});
  CHECK(fake.launches.size() == 1);
}

TEST_CASE_METHOD(Fixture, "a prepared kernel is launched under capture on every device at once") {
  const Kernel kernel = scaled(3);
  std::vector<Array> x, z;
  for (const int device : {0, 1}) {
    x.push_back(array(device));
    z.push_back(array(device));
  }
  kernel.prepare({x[0]});
  CHECK(fake.count("cuLibraryLoadData") == 2);
  CHECK(fake.launches.empty());
  const std::size_t calls = fake.calls.size();
  const Captured graph(own, [&] { kernel.on(stream).into({z[0]}, {x[0]}); });
  const driver::ContextScope other(1);
  const driver::Stream second;
  const Captured on_second(second, [&] {
    kernel.on(Stream(reinterpret_cast<CUstream_st*>(second.handle()))).into({z[1]}, {x[1]});
  });
  for (std::size_t i = calls; i < fake.calls.size(); ++i) {
    CHECK(fake.calls[i] != "cuLibraryLoadData");
    CHECK(fake.calls[i] != "cuKernelGetFunction");
  }
  kernel.prepare({x[0]});
  kernel.prepare({ShapeDtype{{128}, f32}});
  CHECK(fake.count("cuLibraryLoadData") == 2);
}

TEST_CASE_METHOD(Fixture, "kernels are prepared from types alone, and without a GPU to launch on") {
  const Kernel kernel = scaled(4);
  kernel.prepare({ShapeDtype{{128}, f32}});
  CHECK(fake.count("cuLibraryLoadData") == 2);
  const Array x = array(), z = array();
  kernel.into({z}, {x});
  CHECK(fake.count("cuLibraryLoadData") == 2);
  scaled(5).on(Target::interpreter).prepare({ShapeDtype{{128}, f32}});
  CHECK_THROWS_AS(kernel.prepare({ShapeDtype{{64}, f32}, ShapeDtype{{64}, f32}}), CompileError);
}

TEST_CASE_METHOD(Fixture, "loading in one thread does not spoil what another captures") {
  const Array x = array(), z = array();
  const Captured graph(own, [&] {
    scaled(6).into({z}, {x});
    CHECK(unload_unused_kernels() == 1);
  });
  CHECK(fake.count("cuLibraryLoadData") == 1);
}

TEST_CASE_METHOD(Fixture, "a kernel stays loaded while one Kernel of the same key lives") {
  const Array x = array(), z = array();
  std::optional<Kernel> first = scaled(7), second = scaled(7);
  first->into({z}, {x});
  second->into({z}, {x});
  CHECK(fake.count("cuLibraryLoadData") == 1);
  first.reset();
  CHECK(unload_unused_kernels() == 0);
  second->into({z}, {x});
  second.reset();
  // Unused, but not forgotten before somebody says so.
  scaled(7).into({z}, {x});
  CHECK(fake.count("cuLibraryLoadData") == 1);
  const std::size_t loaded = fake.libraries;
  CHECK(unload_unused_kernels() == 1);
  CHECK(fake.libraries == loaded - 1);
  scaled(7).into({z}, {x});
  CHECK(fake.count("cuLibraryLoadData") == 2);
}

TEST_CASE_METHOD(Fixture,
                 "a graph keeps the kernels that it launches, and what was made of it too") {
  const Array x = array(), z = array();
  std::optional<Kernel> kernel = scaled(8);
  kernel->prepare({x});
  unload_unused_kernels();
  const std::size_t loaded = fake.libraries;
  {
    Captured graph(own, [&] { kernel->on(stream).into({z}, {x}); });
    kernel.reset();
    unload_unused_kernels();
    CHECK(fake.libraries == loaded - 1);  // that of the other device
    graph.instantiate();
    unload_unused_kernels();
    graph.launch(own);
    CHECK(fake.libraries == loaded - 1);
  }
  CHECK(unload_unused_kernels() == 1);
}

TEST_CASE_METHOD(Fixture, "a kernel that ran in a context of the program's own stays loaded") {
  const Array x = array(), z = array();
  driver::abi::Context own_context = nullptr;
  call("cuCtxCreate_v2", &own_context, 0u, 0);
  scaled(9).into({z}, {x});
  call("cuCtxDestroy_v2", own_context);
  CHECK(unload_unused_kernels() == 0);
  CHECK(fake.launches.size() == 1);
}

TEST_CASE_METHOD(Fixture, "a process keeps a bounded number of kernels that nobody uses") {
  const Array x = array(), z = array();
  std::vector<CompileFuture> compiling;
  for (int i = 0; i < 70; ++i)
    compiling.push_back(scaled(1000 + i).lower(x).compile_async({.arch = "sm_90a"}));
  for (const CompileFuture& each : compiling) each.get();
  const std::size_t loaded = fake.libraries;
  for (int i = 0; i < 70; ++i) scaled(1000 + i).into({z}, {x});
  CHECK(fake.libraries - loaded == 65);
  CHECK(unload_unused_kernels() == 65);
  CHECK(fake.libraries == loaded);
}

TEST_CASE_METHOD(Fixture, "ten thousand loads and unloads leave nothing") {
  const std::vector<std::byte> cubin = test::fake_cubin("scaled");
  std::string rejection;
  const auto load_and_unload = [&](int times) {
    for (int i = 0; i < times; ++i)
      REQUIRE(driver::Kernel::load(cubin, "scaled", 0, rejection).has_value());
  };
  const std::size_t loaded = fake.libraries;
  fake.recording = false;
  load_and_unload(1000);
  const std::size_t before = resident_bytes();
  load_and_unload(10'000);
  CHECK(resident_bytes() < before + (1 << 20));
  CHECK(fake.libraries == loaded);
}

TEST_CASE_METHOD(Fixture, "whatever the order of launches, graphs and ends, no kernel is missing") {
  const Array x = array(), z = array();
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::map<int, Kernel> kernels;
    std::vector<std::unique_ptr<Captured>> graphs;
    for (int step = 0; step < 120; ++step) {
      const int which = static_cast<int>(random() % 6);
      const auto kernel = [&]() -> const Kernel& {
        return kernels.try_emplace(which, scaled(100 + which)).first->second;
      };
      switch (random() % 6) {
      case 0: kernel().into({z}, {x}); break;
      case 1: kernel().on(stream).into({z}, {x}); break;
      case 2:
        kernel().prepare({x});
        graphs.push_back(std::make_unique<Captured>(own, [&] {
          kernel().on(stream).into({z}, {x});
          if (random() % 4 == 0) kernels.erase(which);
          if (random() % 4 == 0) unload_unused_kernels();
        }));
        graphs.back()->instantiate();
        break;
      case 3: kernels.erase(which); break;
      case 4:
        if (!graphs.empty() && random() % 2 == 0)
          graphs.erase(graphs.begin() + static_cast<std::ptrdiff_t>(random() % graphs.size()));
        unload_unused_kernels();
        break;
      case 5:
        for (const auto& graph : graphs) graph->launch(own);
        break;
      }
    }
  }
  CHECK(fake.graphs == 0);
  CHECK(fake.unloaded_while_running == 0);
}
