// Kernels of weaker facts in the place of those that cannot be compiled.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <set>

#include "cache/store.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/palladium.hpp"
#include "runtime/build/weaker.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/hidden.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;
using test::Environment;

namespace {

Kernel copy() {
  return pallas_call(
             [](Ref x, Ref o) { o[_] = x[_]; },
             [](ShapeDtype x) {
               const auto [m, n] = x.shape.unpack<2>();
               const BlockSpec tile{{8, 64}, [](Index i, Index j) { return Indices{i, j}; }};
               return PallasCallOptions{.name = "weak_copy",
                                        .out_type = x,
                                        .grid = {cdiv(m, 8), cdiv(n, 64)},
                                        .in_specs = {tile},
                                        .out_specs = {tile}};
             })
      .on(Target::cuda);
}

/// Copies as the kernel does, by the arguments that it gets: with strides or without.
void play_copy(const fake_cuda::Launch& launch) {
  const bool strided = launch.arguments.size() == 6;
  const auto* x = launch.argument<const float*>(0);
  auto* o = launch.argument<float*>(strided ? 2 : 1);
  const auto m = launch.argument<std::int64_t>(strided ? 4 : 2);
  const auto n = launch.argument<std::int64_t>(strided ? 5 : 3);
  const auto from = strided ? launch.argument<std::int64_t>(1) : n;
  const auto to = strided ? launch.argument<std::int64_t>(3) : n;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) o[i * to + j] = x[i * from + j];
}

/// x + y as far as x goes, cut alike, whose options ask for nothing.
Kernel add() {
  return pallas_call(
             [](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
             [](ShapeDtype x, ShapeDtype) {
               const auto [m, n] = x.shape.unpack<2>();
               const BlockSpec tile{{8, 64}, [](Index i, Index j) { return Indices{i, j}; }};
               return PallasCallOptions{.name = "weak_add",
                                        .out_type = x,
                                        .grid = {cdiv(m, 8), cdiv(n, 64)},
                                        .in_specs = {tile, tile},
                                        .out_specs = {tile}};
             })
      .on(Target::cuda);
}

/// By the symbols that it gets: those of x, then y's rows, then its columns, if they may differ.
void play_add(const fake_cuda::Launch& launch) {
  const auto* x = launch.argument<const float*>(0);
  const auto* y = launch.argument<const float*>(1);
  auto* o = launch.argument<float*>(2);
  const auto m = launch.argument<std::int64_t>(3), n = launch.argument<std::int64_t>(4);
  const auto of_y = launch.arguments.size() == 7 ? launch.argument<std::int64_t>(6) : n;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) o[i * n + j] = x[i * n + j] + y[i * of_y + j];
}

/// Adds matrices of n columns, y of one row more where `taller`.
void call_add(std::int64_t m, std::int64_t n, bool taller = false) {
  const Array x = test::make_array<float>({m, n}, [](auto i) { return i % 100; });
  const Array y = test::make_array<float>({m + taller, n}, [](auto i) { return i % 7; });
  const Array o = test::on_cpu(add()(x.to(Device::cuda(0)), y.to(Device::cuda(0))));
  bool right = true;
  for (std::int64_t i = 0; i < x.size(); ++i)
    right &= o.data<float>()[i] == x.data<float>()[i] + y.data<float>()[i];
  INFO(m << " x " << n);
  CHECK(right);
}

void call(std::int64_t m, std::int64_t n) {
  const Array x = test::make_array<float>({m, n}, [](auto i) { return i % 100; });
  const Array y = test::on_cpu(copy()(x.to(Device::cuda(0))));
  INFO(m << " x " << n);
  CHECK(std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.size()) * 4) == 0);
}

/// Compiles the kernel for such an array into the cache.
void warm(const ArgType& x) { copy().lower(x).compile({.arch = default_arch()}); }

struct Fixture {
  Fixture() { fake.on_launch = play_copy; }

  fake_cuda::State& fake = test::fake_driver();
  test::Folder folder;
  Environment cache{"PALLADIUM_CACHE_DIR", folder.path()};
};

const ShapeDtype any_size{{dim("m"), dim("n")}, f32};

}  // namespace

TEST_CASE_METHOD(Fixture, "a kernel that knows nothing of its sizes serves every size") {
  warm(any_size);
  const Environment off("PALLADIUM_JIT", "off");
  const test::CapturedStderr log;
  for (const auto& [m, n] : {std::pair{1, 1}, {8, 8}, {3, 1000}, {1000, 8}, {7, 13}}) call(m, n);
  CHECK_THAT(log.text(), ContainsSubstring("'weak_copy' for sm_") &&
                             ContainsSubstring("which knows less of the sizes and arrays, serves "
                                               "this call, for 'weak_copy'") &&
                             ContainsSubstring("PALLADIUM_JIT=off"));
}

TEST_CASE_METHOD(Fixture, "of kernels that serve a call the one that knows most does") {
  warm(any_size);
  warm(ShapeDtype{{dim("m"), dim("n", {.multiple_of = 4})}, f32});
  const Environment off("PALLADIUM_JIT", "off");
  const auto served_by = [&](std::int64_t n) {
    const test::CapturedStderr log;
    call(3, n);
    return log.text();
  };
  const auto key = [&](const Dim& n) {
    return copy().lower(ShapeDtype{{dim("m"), n}, f32}).key({.arch = default_arch()}).substr(0, 6);
  };
  CHECK_THAT(served_by(12), ContainsSubstring(key(dim("n", {.multiple_of = 4}))));
  CHECK_THAT(served_by(13), ContainsSubstring(key(dim("n"))));
}

TEST_CASE_METHOD(Fixture, "a kernel that knows more than holds serves nobody") {
  warm(ShapeDtype{{dim("m"), dim("n", {.multiple_of = 4})}, f32});
  const Environment off("PALLADIUM_JIT", "off");
  const test::CapturedStderr log;
  call(3, 12);
  CHECK_THROWS_WITH(call(3, 13), ContainsSubstring("PALLADIUM_JIT=off forbids to compile it"));
}

TEST_CASE_METHOD(Fixture,
                 "a kernel of any offsets serves arrays of few elements, and no other way") {
  const auto vector_copy = [] {
    return pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                       [](ShapeDtype x) {
                         const BlockSpec piece{{64}, [](Index i) { return i; }};
                         return PallasCallOptions{.name = "weak_vector_copy",
                                                  .out_type = x,
                                                  .grid = {cdiv(x.shape[0], 64)},
                                                  .in_specs = {piece},
                                                  .out_specs = {piece}};
                       })
        .on(Target::cuda);
  };
  fake.on_launch = nullptr;
  const auto lowered = [&](DimOptions n) {
    return vector_copy().lower(ShapeDtype{{dim("n", n)}, f32});
  };
  const auto key = [&](DimOptions n) {
    return lowered(n).key({.arch = default_arch()}).substr(0, 6);
  };
  const Device gpu = Device::cuda(0);
  const auto served_by = [&](std::int64_t n) {
    const Environment off("PALLADIUM_JIT", "off");
    const test::CapturedStderr log;
    const auto array = [&](std::uintptr_t at) {
      return Array::view(reinterpret_cast<void*>(at << 44), {n}, f32, {.device = &gpu});
    };
    const Array x = array(1), o = array(2);
    vector_copy().into({o}, {x});
    return log.text();
  };
  constexpr std::int64_t few = 1 << 20, many = std::int64_t{1} << 32;
  lowered({.at_most = few}).compile({.arch = default_arch()});
  CHECK(served_by(7) == "");
  CHECK_THAT(served_by(8), ContainsSubstring(key({.at_most = few})));
  CHECK_THROWS_WITH(served_by(many + 1), ContainsSubstring("PALLADIUM_JIT=off forbids"));
  lowered({}).compile({.arch = default_arch()});
  CHECK(served_by(many + 1) == "");
  CHECK_THAT(served_by(many), ContainsSubstring(key({})));
}

TEST_CASE_METHOD(Fixture, "a kernel for arrays with gaps serves those without") {
  const auto apart = [](std::int64_t stride) {
    return test::make_array<float>({3 * stride}, [](auto i) { return i; }).to(Device::cuda(0));
  };
  const Array from = apart(101), to = apart(103);
  const auto view = [](const Array& memory, std::int64_t stride) {
    const std::int64_t strides[] = {stride, 1};
    const Device gpu = Device::cuda(0);
    return Array::view(memory.data(), {3, 7}, f32, {.strides = strides, .device = &gpu});
  };
  copy().into({view(to, 103)}, {view(from, 101)});
  const Environment off("PALLADIUM_JIT", "off");
  const test::CapturedStderr log;
  call(3, 7);
  CHECK(fake.launches.back().argument<std::int64_t>(1) == 7);
  CHECK_THAT(log.text(), ContainsSubstring("serves this call"));
}

TEST_CASE_METHOD(Fixture, "a kernel of extents that differ serves calls in which they are equal") {
  fake.on_launch = play_add;
  const auto lowered = [](const Dim& rows, const Dim& columns) {
    return add().lower(any_size, ShapeDtype{{rows, columns}, f32});
  };
  const auto key = [](const Lowered& l) { return l.key({.arch = default_arch()}).substr(0, 6); };
  const Lowered apart = lowered(dim("rows"), dim("columns")),
                alike = lowered(dim("rows"), dim("n"));
  apart.compile({.arch = default_arch()});
  const Environment off("PALLADIUM_JIT", "off");
  const auto served_by = [&](std::int64_t n, bool taller) {
    const test::CapturedStderr log;
    call_add(5, n, taller);
    return log.text();
  };
  // Both symbols of rows get the one number.
  CHECK_THAT(served_by(13, false), ContainsSubstring(key(apart)));
  CHECK(fake.launches.back().arguments.size() == 7);
  CHECK(fake.launches.back().argument<std::int64_t>(5) == 5);
  CHECK(fake.launches.back().argument<std::int64_t>(6) == 13);
  CHECK_THAT(served_by(13, true), ContainsSubstring(key(apart)));
  CHECK(fake.launches.back().argument<std::int64_t>(5) == 6);

  {
    const Environment on("PALLADIUM_JIT", "on");
    alike.compile({.arch = default_arch()});
  }
  CHECK_THAT(served_by(13, false), ContainsSubstring(key(alike)));
  CHECK(fake.launches.back().arguments.size() == 6);
  CHECK_THAT(served_by(13, true), ContainsSubstring(key(alike)));
}

TEST_CASE_METHOD(Fixture, "a kernel of equal extents serves no call in which they differ") {
  fake.on_launch = play_add;
  add().lower(any_size, any_size).compile({.arch = default_arch()});
  const Environment off("PALLADIUM_JIT", "off");
  const test::CapturedStderr log;
  call_add(5, 13);
  CHECK_THROWS_WITH(call_add(5, 13, true),
                    ContainsSubstring("PALLADIUM_JIT=off forbids to compile it"));
}

TEST_CASE("HIDDEN calls where there is no NVRTC", "[.]") {
  test::fake_driver().on_launch = play_copy;
  call(2, 8);
  call(3, 7);
}

TEST_CASE_METHOD(Fixture, "where there is no NVRTC a warmed kernel serves every size") {
  warm(any_size);
  const test::Finished child = test::run_hidden(
      "HIDDEN calls where there is no NVRTC",
      {{"PALLADIUM_NVRTC", "/nonexistent"}, {"PALLADIUM_CACHE_DIR", folder.path()}});
  INFO(child.out << child.err);
  CHECK(child.status == 0);
  CHECK_THAT(child.err, ContainsSubstring("serves this call, for 'weak_copy' for sm_") &&
                            ContainsSubstring("NVRTC 12.9 or newer is needed"));
}

TEST_CASE("weaker graphs of equal extents know less of their equality first") {
  const auto of = [](const std::string& y, const std::string& facts) {
    return test::graph_of("kernel k\n  grid cdiv(s0, 64)\n" + facts +
                          R"(  args[0]: f32[s0] in blocks [64]
    { %0: i32[]
      yield %0
    }
  args[1]: f16[)" + y + R"(] in blocks [64]
    { %0: i32[]
      yield %0
    }
  outputs[0]: f32[s0] in blocks [64]
    { %0: i32[]
      yield %0
    }
{ %0: ref block f32[64] %1: ref block f16[64] %2: ref block f32[64]
  %3: f32[64] = load %0
  store %2, %3
})");
  };
  runtime::Specialization s;
  s.graph = of("s0", "  symbol 0: multiple of 8\n");
  s.apart.reset(new runtime::Specialization::Apart{
      of("s1", "  symbol 0: multiple of 4\n  symbol 1: multiple of 8\n"), {0, 0}});
  const auto weaker = runtime::weaker_graphs(s);
  REQUIRE(weaker.size() == 3 + 8);  // less multiple, less pointer; the same apart, of two symbols
  std::set<std::string> all{graph::canonical_bytes(s.graph)};
  for (const runtime::Weaker& w : weaker) {
    graph::verify(w.graph, "weaker");
    CHECK(all.insert(graph::canonical_bytes(w.graph)).second);
    CHECK(w.symbols == std::vector<std::uint32_t>(static_cast<std::size_t>(w.graph.num_symbols)));
  }
  CHECK(std::ranges::count(weaker, 2, [](const auto& w) { return w.graph.num_symbols; }) == 8);
  CHECK(weaker.back().graph.facts.multiples.empty());
}

TEST_CASE("weaker graphs know less, those that know most come first, the last one nothing") {
  runtime::Specialization s;
  graph::Graph& g = s.graph;
  g = test::graph_of(R"(kernel k
  grid cdiv(s0, 8), cdiv(s1, 64)
  symbol 1: multiple of 8
  offsets below 2^31
  args[0]: f16[s0,s1] in blocks [8,64]
    { %0: i32[] %1: i32[]
      yield %0, %1
    }
  outputs[0]: f16[s0,s1] in blocks [8,64]
    { %0: i32[] %1: i32[]
      yield %0, %1
    }
{ %0: ref block f16[8,64] %1: ref block f16[8,64]
  %2: f16[8,64] = load %0
  store %1, %2
})");
  std::vector<graph::Graph> weaker;
  for (const runtime::Weaker& w : runtime::weaker_graphs(s)) weaker.push_back(w.graph);
  REQUIRE(weaker.size() == 15);
  for (const graph::Graph& w : weaker) {
    graph::verify(w, "weaker");
    CHECK(graph::canonical_bytes(w) != graph::canonical_bytes(g));
    if (w.facts.multiples.empty())
      for (const BlockMapping& m : w.mapping.block_mappings) CHECK((!m.dense || m.alignment == 2));
  }
  const auto& first = weaker.front();
  CHECK_FALSE(first.short_offsets);
  CHECK(first.facts == g.facts);
  CHECK(first.mapping.block_mappings[0].alignment == 16);
  const auto& last = weaker.back();
  CHECK(last.facts.multiples.empty());
  CHECK_FALSE(last.short_offsets);
  CHECK_FALSE(last.mapping.block_mappings[1].dense);
  CHECK(last.mapping.block_mappings[1].alignment == 2);
  s.graph = last;
  CHECK(runtime::weaker_graphs(s).empty());
}
