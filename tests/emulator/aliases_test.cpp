// Outputs that are inputs, and inputs that are written: the same on interpreter and emulator.
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "codegen/cuda/emit.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/targets.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

template <class T>
std::vector<T> counted(std::size_t n) {
  std::vector<T> v(n);
  std::iota(v.begin(), v.end(), T(1));
  return v;
}

}  // namespace

TEST_CASE("no thread reads an aliased block after another has stored it") {
  for_each_target("least", [](Target target) {
    const Kernel k = pallas_call(
                         [](Ref x, Ref o) {
                           const Value v = x[_];
                           pl::when(program_id(0) == 0, [&] { o[_] = v; });
                           o[_] = broadcast_to(pl::min(v), {17});
                         },
                         {.name = "least",
                          .out_type = {{17}, i16},
                          .grid = {4},
                          .input_output_aliases = {{0, 0}}})
                         .on(target);
    std::vector<std::int16_t> v = counted<std::int16_t>(17);
    const Array x = Array::view(std::span(v));
    const Array y = on_cpu(k(on(target, x)));
    for (const std::int16_t e : y.values<std::int16_t>()) CHECK(e == 1);
  });
}

// A block of fewer elements than threads is read by all of them, and stored by some.
TEST_CASE("nobody reads a block for a body that does not, while others store to its alias") {
  const auto run = [](const BlockSpec& input, bool persistent) {
    for_each_target("unread", [&](Target target) {
      const Kernel k = pallas_call([](Ref, Ref o) { o[_] = full({8}, 5, i8); },
                                   {.name = "unread",
                                    .out_type = {{6, 8}, i8},
                                    .grid = {6},
                                    .in_specs = {input},
                                    .out_specs = {{{pl::squeezed, 8},
                                                   [](Index i) {
                                                     return Indices{i, 0};
                                                   }}},
                                    .input_output_aliases = {{0, 0}},
                                    .compiler_params = {.persistent = persistent}})
                           .on(target);
      std::vector<std::int8_t> v(48, 1);
      const Array y = on_cpu(k(on(target, Array::view(v.data(), {6, 8}, i8))));
      for (const std::int8_t e : y.values<std::int8_t>()) CHECK(e == 5);
    });
  };
  const auto map = [](Index i) { return Indices{i, 0}; };
  for (const bool persistent : {false, true}) {
    run({{pl::squeezed, 8}, map}, persistent);
    run({{pl::squeezed, 8}, map, {.memory_space = gpu::SMEM}}, persistent);
  }
}

TEST_CASE("an output that is an input with gaps between its rows has them too") {
  for (const Target target : {Target::interpreter, Target::emulator}) {
    const Kernel k =
        pallas_call([](Ref x, Ref o) { o[_] = x[_] + 1.f; },
                    {.name = "next", .out_type = {{3, 4}, f32}, .input_output_aliases = {{0, 0}}})
            .on(target);
    std::vector<float> v = counted<float>(3 * 7);
    const std::int64_t strides[] = {7, 1};
    k(Array::view(v.data(), {3, 4}, f32, {.strides = strides}));
    for (std::size_t i = 0; i < v.size(); ++i) {
      CAPTURE(to_string(target), i);
      CHECK(v[i] == static_cast<float>(i + (i % 7 < 4 ? 2 : 1)));
    }
  }
}

TEST_CASE("a block holds what it held, wherever it is pinned, after its alias was written") {
  for_each_target("old", [](Target target) {
    const auto pinned = BlockSpec({.memory_space = gpu::GMEM});
    const Kernel k = pallas_call(
                         [](Ref x, Ref o, Ref old) {
                           o[_] = zeros({8}, f32);
                           old[_] = x[_];
                         },
                         {.name = "old",
                          .out_type = {{{8}, f32}, {{8}, f32}},
                          .in_specs = {pinned},
                          .out_specs = {pinned, {}},
                          .input_output_aliases = {{0, 0}}})
                         .on(target);
    std::vector<float> v = counted<float>(8);
    const auto [o, old] = k(on(target, Array::view(std::span(v)))).unpack<2>();
    CHECK(on_cpu(o).values<float>()[3] == 0);
    CHECK(on_cpu(old).values<float>()[3] == 4);
  });
}

TEST_CASE("what a loop yields is read before the last store of its body overwrites it") {
  for_each_target("late", [](Target target) {
    const Kernel k = pallas_call(
                         [](Ref x, Ref shelf, Ref o) {
                           shelf[_] = zeros({128}, f32);
                           o[_] = loop(
                               0, 3, {},
                               [&](Index i, Value) {
                                 Value before = shelf[_];
                                 shelf[_] = x[_] + i.astype(f32);
                                 return before;
                               },
                               zeros({128}, f32));
                         },
                         {.name = "late", .out_type = {{{128}, f32}, {{128}, f32}}})
                         .on(target);
    std::vector<float> v = counted<float>(128);
    const auto [shelf, o] = k(on(target, Array::view(std::span(v)))).unpack<2>();
    const Array last = on_cpu(o), stored = on_cpu(shelf);
    for (std::size_t i = 0; i < v.size(); ++i) {
      CHECK(last.values<float>()[i] == v[i] + 1);
      CHECK(stored.values<float>()[i] == v[i] + 2);
    }
  });
}

namespace {

struct InPlace {
  std::string name;
  Body body;
  bool waits = false, aliased = true;
  int arrays = 2;
};

// Of arrays, blocks of [16, 256] of [64, 256], as many outputs that are the first of them.
graph::Graph graph_of(const InPlace& k, int outputs) {
  const ShapeDtype x{{64, 256}, f32};
  const BlockSpec rows{{16, 256}, [](Index i) { return Indices{i, 0}; }};
  PallasCallOptions options{.name = "updated",
                            .out_type = std::vector<ShapeDtype>(outputs, x),
                            .grid = {4},
                            .in_specs = std::vector<BlockSpec>(k.arrays, rows),
                            .out_specs = std::vector<BlockSpec>(outputs, rows)};
  for (int i = 0; k.aliased && i < outputs; ++i) options.input_output_aliases.push_back({i, i});
  return traced(k.body, options, std::vector(static_cast<std::size_t>(k.arrays), array(x.shape)));
}

}  // namespace

TEST_CASE("who stores what it has read itself waits for nobody, others do") {
  const auto row = [](Index i) { return ds(i, 1); };
  const InPlace one[] = {
      {"axpy", [](Ref y, Ref x, Ref o) { o[_] = y[_] + x[_] * 2.0f; }},
      {"twice",
       [](Ref y, Ref x, Ref o) {
         o[_] = y[_] + x[_];
         o[_] = o[_] * 0.5f;
       }},
      {"rows",
       [=](Ref y, Ref x, Ref o) {
         loop(0, 16, [&](Index i) { o[{row(i), _}] = y[{row(i), _}] * x[{row(i), _}]; });
       },
       false, false},
      // Rows that others have read, or columns that others have.
      {"shifted",
       [=](Ref y, Ref, Ref o) {
         o[_] = concatenate({y[{ds(8, 8), _}], y[{ds(0, 8), _}]}, 0);
       },
       true},
      {"turned", [](Ref y, Ref, Ref o) { o[_] = flip(y[_], 1); }, true},
  };
  const auto check = [](const InPlace& k, int outputs) {
    INFO(k.name);
    const graph::Graph g = graph_of(k, outputs);
    for (const int cc : {80, 90}) {
      const std::string text = cuda::emit(g, {.compute_capability = cc}).text;
      CAPTURE(cc, text);
      CHECK((text.find("_sync()") != std::string::npos) == k.waits);
      CHECK(on_all_targets(g, {}, cc) == "");
    }
  };
  for (const InPlace& k : one) check(k, 1);
  check({"momentum",
         [](Ref p, Ref m, Ref g, Ref np, Ref nm) {
           const Value moved = m[_] * 0.9f + g[_];
           nm[_] = moved;
           np[_] = p[_] - moved * 0.1f;
         },
         false, true, 3},
        2);
}
