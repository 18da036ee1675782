// Loops whose copies to shared memory are made for iterations to come: interpreter and emulator
// agree, races on, for any number of stages and of iterations, poison out of bounds included.
#include <algorithm>
#include <optional>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "palladium/gpu.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/wgmma_lint.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

std::string decided(const graph::Graph& g, int cc = 80) {
  return lowered::to_text(cuda::lower(g, {.compute_capability = cc}));
}

bool is_pipelined(const graph::Graph& g, int cc = 80) {
  return decided(g, cc).find("ahead ring") != std::string::npos;
}

// By TMA alone, with barriers.
bool is_fetched_ahead(const graph::Graph& g) {
  const auto rings = cuda::lower(g, {.compute_capability = 90}).rings;
  return !rings.empty() &&
         std::ranges::all_of(rings, [](const lowered::Ring& r) { return r.fetched && !r.copied; });
}

struct Product {
  Dim m = 64, n = 64, k = 128;
  int block_m = 64, block_n = 64, block_k = 32;
  DType dtype = f16;
  int num_stages = 0, num_warps = 0;
  bool guarded = false;
  std::optional<bool> warp_specialize = {};
};

// Sums over a sequential axis of as many iterations as blocks of K.
graph::Graph product(const Product& p) {
  const auto body = [=](Ref a, Ref b, Ref o) {
    const Value k = program_id(2);
    when(k == 0, [&] { o[_] = zeros({p.block_m, p.block_n}, f32); });
    Value x = a[_], y = b[_];
    if (p.guarded) {
      const auto inside = [&](int rows, int columns, int along) {
        return iota(i32, {rows, columns}, along) + k * p.block_k < p.k.value();
      };
      x = where(inside(p.block_m, p.block_k, 1), x, zeros({p.block_m, p.block_k}, p.dtype));
      y = where(inside(p.block_k, p.block_n, 0), y, zeros({p.block_k, p.block_n}, p.dtype));
    }
    o[_] = o[_] + dot(x, y);
  };
  return traced(
      body,
      {.name = "product",
       .out_type = ShapeDtype{{p.m, p.n}, f32},
       .grid = {cdiv(p.m, p.block_m), cdiv(p.n, p.block_n), cdiv(p.k, p.block_k)},
       .in_specs = {{{p.block_m, p.block_k},
                     [](Index i, Index, Index k) {
                       return Indices{i, k};
                     }},
                    {{p.block_k, p.block_n},
                     [](Index, Index j, Index k) {
                       return Indices{k, j};
                     }}},
       .out_specs = {{{p.block_m, p.block_n},
                      [](Index i, Index j, Index) {
                        return Indices{i, j};
                      }}},
       .compiler_params = {.dimension_semantics = {parallel, parallel, sequential},
                           .num_warps = p.num_warps,
                           .num_stages = p.num_stages,
                           .warp_specialize = p.warp_specialize}},
      {{ShapeDtype{{p.m, p.k}, p.dtype}, false}, {ShapeDtype{{p.k, p.n}, p.dtype}, false}});
}

// Of program i, which has too much to stage all of it, the products of i blocks, in a loop from
// `low` in steps of `step`.
graph::Graph sums_in_loop(int num_stages, int programs, int low = 0, int step = 1,
                          DType dtype = f16) {
  const auto body = [=](Ref a, Ref b, Ref o) {
    o[_] = loop(
        low, low + program_id(0) * step, {.step = step},
        [&](Index i, Value acc) {
          const Index at = (i - low) * (16 / step);
          return acc + dot(a[{_, ds(at, 16)}], b[{ds(at, 16), _}]);
        },
        zeros({64, 64}, f32));
  };
  return traced(body,
                {.name = "sums",
                 .out_type = ShapeDtype{{64 * programs, 64}, f32},
                 .grid = {programs},
                 .out_specs = {{{64, 64},
                                [](Index i) {
                                  return Indices{i, 0};
                                }}},
                 .compiler_params = {.num_stages = num_stages}},
                {{ShapeDtype{{64, 16 * programs + 2048}, dtype}, false},
                 {ShapeDtype{{16 * programs + 2048, 64}, dtype}, false}});
}

graph::Graph specialized(graph::Graph g, bool specialize = true) {
  g.bodies[0].warp_specialize = specialize;
  return g;
}

bool has_producer(const graph::Graph& g, int cc = 90) {
  return cuda::lower(g, {.compute_capability = cc}).bodies[0].agents.size() > 1;
}

// Sums of sums, until an element of them is large enough.
graph::Graph sums_until(float enough) {
  const auto body = [=](Ref a, Ref b, Ref o) {
    const auto add = [&](Index i, Value acc) {
      return acc + dot(a[{_, ds(i * 16, 16)}], b[{ds(i * 16, 16), _}]);
    };
    const auto [turns, sum] =
        while_loop([&](Value turns, Value sum) { return (turns < 4) & (max(sum) < enough); },
                   [&](Value turns, Value sum) { return carry(turns + 1, loop(0, 3, add, sum)); },
                   Value(0).astype(i32), zeros({64, 64}, f32));
    o[_] = sum + turns.astype(f32);
  };
  return traced(body, {.name = "until", .out_type = ShapeDtype{{64, 64}, f32}},
                {{ShapeDtype{{64, 48}, f16}, false}, {ShapeDtype{{48, 64}, f16}, false}});
}

// Sums of sums, over a sequential axis and a loop.
graph::Graph loop_in_loop(int num_stages) {
  const auto body = [](Ref a, Ref b, Ref o) {
    const Value k = program_id(0);
    when(k == 0, [&] { o[_] = zeros({64, 64}, f32); });
    const Value inner = loop(
        0, 3,
        [&](Index i, Value acc) {
          return acc + dot(a[{_, ds(i * 16, 16)}], b[{ds(i * 16, 16), _}]);
        },
        zeros({64, 64}, f32));
    o[_] = o[_] + inner;
  };
  return traced(
      body,
      {.name = "nested",
       .out_type = ShapeDtype{{64, 64}, f32},
       .grid = {4},
       .in_specs = {{{64, 48},
                     [](Index k) {
                       return Indices{0, k};
                     }},
                    {{48, 64},
                     [](Index k) {
                       return Indices{k, 0};
                     }}},
       .out_specs = {{{64, 64},
                      [](Index) {
                        return Indices{0, 0};
                      }}},
       .compiler_params = {.dimension_semantics = {sequential}, .num_stages = num_stages}},
      {{ShapeDtype{{64, 192}, f16}, false}, {ShapeDtype{{192, 64}, f16}, false}});
}

}  // namespace

TEST_CASE("a product is the same for any number of stages and of iterations") {
  for (int stages = 1; stages <= 5; ++stages)
    for (const int iterations : {1, 2, stages, stages + 1}) {
      CAPTURE(stages, iterations);
      const graph::Graph g = product({.k = 32 * iterations, .num_stages = stages});
      CHECK(is_pipelined(g) == (stages > 1));
      CHECK(on_all_targets(g, {}, 80) == "");
    }
}

TEST_CASE("a product of symbolic sizes is the same for any number of stages and of iterations") {
  const Dim m = dim("m"), n = dim("n", {.multiple_of = 8}), k = dim("k", {.multiple_of = 8});
  for (int stages = 1; stages <= 5; ++stages) {
    const graph::Graph g = product({.m = m, .n = n, .k = k, .num_stages = stages});
    CHECK(is_pipelined(g) == (stages > 1));
    for (const int iterations : {0, 1, 2, stages, stages + 1}) {
      CAPTURE(stages, iterations);
      CHECK(on_all_targets(g, {64, 64, 32 * iterations}, 80) == "");
    }
  }
}

TEST_CASE("what TMA fetches ahead is the same for any number of stages and of iterations") {
  const Dim m = dim("m", {.at_most = 1 << 12}),
            n = dim("n", {.multiple_of = 8, .at_most = 1 << 12}),
            k = dim("k", {.multiple_of = 8, .at_most = 1 << 12});
  for (int stages = 1; stages <= 5; ++stages) {
    const graph::Graph g = product({.m = m, .n = n, .k = k, .num_stages = stages});
    CHECK(is_fetched_ahead(g) == (stages > 1));
    for (const std::string& found :
         unpinned_registers(cuda::emit(g, {.compute_capability = 90}).text))
      FAIL_CHECK(found);
    for (const int iterations : {0, 1, 2, stages, stages + 1, 3 * stages + 1}) {
      CAPTURE(stages, iterations);
      CHECK(on_all_targets(g, {64, 64, 32 * iterations}, 90) == "");
    }
  }
}

TEST_CASE("a result is sent from where a ring of shorter rows was") {
  for (const int k : {16, 32}) {
    const graph::Graph g = traced(
        [=](Ref a, Ref b, Ref o) {
          const auto add = [&](Index l, Value sum) {
            return sum + dot(a[{_, ds(l * k, k)}], b[{_, ds(l * k, k)}], {.trans_b = true});
          };
          o[_] = loop(0, 4, add, zeros({64, 64}, f32)).astype(f16);
        },
        {.name = "sent", .out_type = ShapeDtype{{64, 64}, f16}},
        {{ShapeDtype{{64, 4 * k}, f16}, false}, {ShapeDtype{{64, 4 * k}, f16}, false}});
    CAPTURE(k);
    CHECK(is_fetched_ahead(g));
    CHECK(on_all_targets(g, {}, 90) == "");
  }
}

TEST_CASE("loops whose operands TMA fetches ahead are the same, alone and in another") {
  for (const int stages : {2, 5}) {
    const graph::Graph g = sums_in_loop(stages, stages + 2);
    CHECK(is_fetched_ahead(g));
    CHECK(on_all_targets(g, {}, 90) == "");
  }
  for (const int stages : {2, 3}) {
    CHECK(is_fetched_ahead(loop_in_loop(stages)));
    CHECK(on_all_targets(loop_in_loop(stages), {}, 90) == "");
  }
}

TEST_CASE(
    "what a producer fetches is the same for any number of stages, of iterations and of warps") {
  const Dim m = dim("m", {.at_most = 1 << 12}),
            n = dim("n", {.multiple_of = 8, .at_most = 1 << 12}),
            k = dim("k", {.multiple_of = 8, .at_most = 1 << 12});
  for (const auto& [stages, warps] : {std::pair{2, 4}, {3, 8}, {5, 4}, {2, 16}}) {
    const graph::Graph g = product({.m = m,
                                    .n = n,
                                    .k = k,
                                    .block_m = 16 * warps,
                                    .num_stages = stages,
                                    .num_warps = warps,
                                    .warp_specialize = true});
    CHECK(has_producer(g));
    const std::string text = cuda::emit(g, {.compute_capability = 90}).text;
    for (const std::string& found : unpinned_registers(text)) FAIL_CHECK(found);
    for (const int iterations : {0, 1, 2, stages, stages + 1, 3 * stages + 1}) {
      CAPTURE(stages, warps, iterations);
      CHECK(on_all_targets(g, {72, 64, 32 * iterations}, 90) == "");
    }
  }
}

TEST_CASE("a producer goes through loops as they are written, where it knows their bounds") {
  const graph::Graph sums = specialized(sums_in_loop(3, 6, -3));
  CHECK(has_producer(sums));
  CHECK(on_all_targets(sums, {}, 90) == "");
  // Two loops, one after the other, of which the second does more than add up.
  const auto body = [](Ref a, Ref b, Ref o) {
    const auto at = [](Ref x, Index i, int along) -> Value {
      return along == 0 ? Value(x[{ds(i * 16, 16), _}]) : Value(x[{_, ds(i * 16, 16)}]);
    };
    const Value first = loop(
        0, 5, [&](Index i, Value acc) { return acc + dot(at(a, i, 1), at(b, i, 0)); },
        zeros({64, 64}, f32));
    o[_] = loop(
        program_id(0), 5,
        [&](Index i, Value acc) { return acc * 2 + dot(at(a, i, 1), at(b, i, 0)); }, first);
  };
  const graph::Graph two = specialized(traced(body,
                                              {.name = "two",
                                               .out_type = ShapeDtype{{128, 64}, f32},
                                               .grid = {2},
                                               .out_specs = {{{64, 64},
                                                              [](Index i) {
                                                                return Indices{i, 0};
                                                              }}},
                                               .compiler_params = {.num_stages = 2}},
                                              {array({64, 2048}, f16), array({2048, 64}, f16)}));
  CHECK(has_producer(two));
  CHECK(on_all_targets(two, {}, 90) == "");
  for (const int stages : {2, 3}) {
    const graph::Graph nest = specialized(loop_in_loop(stages));
    CHECK(has_producer(nest));
    CHECK(on_all_targets(nest, {}, 90) == "");
  }
  // Of a loop that only what is computed ends who computes fetches.
  const graph::Graph searching = specialized(sums_until(40));
  CHECK_FALSE(has_producer(searching));
  CHECK(on_all_targets(searching, {}, 90) == "");
}

TEST_CASE("a producer is there where products alone wait for it, or where it is asked for") {
  const Product p{.m = 512, .n = 512, .k = 1024, .block_m = 128, .block_n = 256, .block_k = 64};
  CHECK(has_producer(product(p)));
  CHECK_FALSE(has_producer(specialized(product(p), false)));
  CHECK_FALSE(has_producer(product(p), 80));
  CHECK_FALSE(has_producer(specialized(product(p)), 80));
  CHECK_FALSE(has_producer(product({.k = 1024})));
  CHECK(has_producer(specialized(product({.k = 1024}))));
  Product few = p;
  few.k = 128;
  CHECK_FALSE(has_producer(product(few)));
}

TEST_CASE("operands of which TMA fetches one are copied ahead together") {
  // Rows of 72 bytes are copied by 8.
  const graph::Graph g = product({.m = 72, .n = 36, .k = 160, .block_n = 32, .num_stages = 3});
  const auto l = cuda::lower(g, {.compute_capability = 90});
  REQUIRE(l.rings.size() == 1);
  CHECK(l.rings.front().fetched);
  CHECK(l.rings.front().copied);
  CHECK(on_all_targets(g, {}, 90) == "");
}

TEST_CASE("one product of a loop is in flight while the next is issued, if all adds up") {
  const auto text = [](const graph::Graph& g) {
    return cuda::emit(g, {.compute_capability = 90}).text;
  };
  const std::string adds = text(product({.k = 1024, .num_stages = 3}));
  CHECK(adds.find("pl::wgmma_wait<1>();") < adds.find("pl::wgmma_wait<0>();"));
  CHECK(adds.find("_Pragma(\"unroll 3\")") != std::string::npos);
  CHECK(text(loop_in_loop(3)).find("pl::wgmma_wait<1>();") == std::string::npos);
}

TEST_CASE("a loop is the same for any number of stages and of iterations") {
  for (int stages = 1; stages <= 5; ++stages) {
    CAPTURE(stages);
    const graph::Graph g = sums_in_loop(stages, stages + 2);
    CHECK(is_pipelined(g) == (stages > 1));
    CHECK(on_all_targets(g, {}, 80) == "");
    CHECK(on_all_targets(sums_in_loop(stages, 7, -3, 4, bf16), {}, 80) == "");
  }
}

TEST_CASE("a loop near the largest and the least index is pipelined") {
  CHECK(on_all_targets(sums_in_loop(4, 5, INT32_MAX - 8, 2), {}, 80) == "");
  CHECK(on_all_targets(sums_in_loop(4, 5, INT32_MIN, 2), {}, 80) == "");
}

TEST_CASE("ragged products are the same, guarded or as the array ends") {
  for (const int stages : {1, 2, 3, 5})
    for (const auto& [m, n, k] :
         {std::tuple{70, 40, 96}, {64, 72, 100}, {33, 64, 104}, {8, 8, 8}}) {
      CAPTURE(stages, m, n, k);
      const Product p{.m = m, .n = n, .k = k, .num_stages = stages, .guarded = true};
      CHECK(on_all_targets(product(p), {}, 80) == "");
    }
  // What the user does not guard is undefined to him on every target.
  const Dim m = dim("m"), n = dim("n"), k = dim("k");
  for (const int depth : {32, 40, 64, 72}) {
    CAPTURE(depth);
    CHECK(on_all_targets(product({.m = m, .n = n, .k = k}), {72, 80, depth}, 80) == "");
  }
}

TEST_CASE("a guard that asks what the block's own bounds are leaves a plain copy") {
  const std::string text = decided(product({.k = 100, .guarded = true}));
  CHECK(text.find("asynchronously zeros") != std::string::npos);
  CHECK(is_pipelined(product({.k = 104, .guarded = true})));
}

TEST_CASE("a guard of one dimension leaves copies of blocks that end along others, too") {
  const Dim m = dim("m"), n = dim("n", {.multiple_of = 8});
  for (const graph::Graph& g : {product({.m = 70, .n = 40, .k = 104, .guarded = true}),
                                product({.m = m, .n = n, .k = 104, .guarded = true})}) {
    CHECK(is_pipelined(g));
    CHECK(decided(g).find("plain loads") == std::string::npos);
  }
  CHECK(on_all_targets(product({.m = m, .n = n, .k = 104, .guarded = true}), {70, 40}, 80) == "");
}

TEST_CASE("blocks of any shape are pipelined, padded to whole fragments") {
  for (const auto& [bm, bn, bk] :
       {std::tuple{16, 8, 16}, {48, 24, 48}, {64, 64, 40}, {32, 40, 8}}) {
    CAPTURE(bm, bn, bk);
    const Product p{.m = 96, .n = 80, .k = 120, .block_m = bm, .block_n = bn, .block_k = bk};
    CHECK(on_all_targets(product(p), {}, 80) == "");
    CHECK(on_all_targets(product(p), {}, 75) == "");
  }
}

TEST_CASE("wide programs, and operands that no tensor core takes, are pipelined") {
  for (const int warps : {4, 8, 16})
    CHECK(on_all_targets(product({.m = 128, .block_m = 128, .num_stages = 3, .num_warps = warps}),
                         {}, 80) == "");
  for (const DType t : {f32, bf16, f16}) {
    CAPTURE(t.name());
    const graph::Graph g = product({.dtype = t, .num_stages = 3});
    CHECK(is_pipelined(g));
    CHECK(on_all_targets(g, {}, 80) == "");
    CHECK_FALSE(is_pipelined(g, 75));
  }
}

TEST_CASE("a loop in a loop has a pipeline of its own") {
  for (const int stages : {2, 3, 5}) {
    const graph::Graph g = loop_in_loop(stages);
    CHECK(is_pipelined(g));
    CHECK(on_all_targets(g, {}, 80) == "");
  }
}

TEST_CASE("what the kernel writes, and what that says where to find, is not copied ahead") {
  const auto remark = [](const graph::Graph& g) {
    std::string all;
    for (const Remark& r : cuda::lower(g, {.compute_capability = 80}).remarks) all += r.text + "\n";
    return all;
  };
  const auto sum = [](Ref table, Ref a, Ref b) {
    return loop(
        0, 4,
        [&](Index i, Value acc) {
          const Value at = table[i] * 16;
          return acc + dot(a[{_, ds(at, 16)}], b[{ds(i * 16, 16), _}]);
        },
        zeros({64, 64}, f32));
  };
  const std::vector<trace::ArgumentType> operands{array({64, 4096}, f16), array({4096, 64}, f16)};
  std::vector<trace::ArgumentType> with_table = operands;
  with_table.insert(with_table.begin(), array({4}, i32));
  const graph::Graph looked_up =
      traced([=](Ref table, Ref a, Ref b, Ref o) { o[_] = sum(table, a, b); },
             {.name = "by_table", .out_type = ShapeDtype{{64, 64}, f32}}, with_table);
  const std::string refusal = "not pipelined: the address depends on loaded data";
  CHECK(is_pipelined(looked_up));
  CHECK(remark(looked_up).find(refusal) == std::string::npos);
  CHECK(on_all_targets(looked_up, {}, 80) == "");
  const graph::Graph written = traced(
      [=](Ref a, Ref b, Ref o, Ref table) {
        table[_] = 3 - iota(i32, {4}, 0);
        o[_] = sum(table, a, b);
      },
      {.name = "by_own_table", .out_type = {ShapeDtype{{64, 64}, f32}, ShapeDtype{{4}, i32}}},
      operands);
  CHECK(is_pipelined(written));  // b alone
  CHECK(remark(written).find(refusal) != std::string::npos);
  CHECK(on_all_targets(written, {}, 80) == "");
  const auto in_place = [](Ref a, Ref o) {
    loop(0, 3, [&](Index i) {
      o[{ds(i * 16, 16), _}] = f16(dot(a[{ds(i * 16, 16), _}], a[{ds(i * 16, 16), _}]));
    });
  };
  const graph::Graph aliased = traced(
      in_place,
      {.name = "in_place", .out_type = ShapeDtype{{48, 16}, f16}, .input_output_aliases = {{0, 0}}},
      {{ShapeDtype{{48, 16}, f16}, false}});
  CHECK_FALSE(is_pipelined(aliased));
  CHECK(on_all_targets(aliased, {}, 80) == "");
}

TEST_CASE("as many stages are taken as shared memory has room for") {
  const Product p{.m = 128,
                  .n = 256,
                  .k = 1024,
                  .block_m = 128,
                  .block_n = 256,
                  .block_k = 64,
                  .num_stages = 8,
                  .num_warps = 8};
  const auto slots = [](const graph::Graph& g, int cc) {
    const auto l = cuda::lower(g, {.compute_capability = cc});
    return l.rings.empty() ? 1 : l.rings.front().slots;
  };
  CHECK(slots(product(p), 80) == 3);
  CHECK(slots(product(p), 90) == 4);
  CHECK(slots(product({.k = 1024, .num_stages = 8}), 80) == 8);
  CHECK(slots(product({.k = 1024}), 80) >= 3);
  CHECK(slots(product({.k = 64}), 80) == 2);
  CHECK(slots(product({.k = 32}), 80) == 1);
}

TEST_CASE("an iteration waits once, and has one barrier") {
  const std::string text =
      cuda::emit(product({.k = 1024, .num_stages = 3}), {.compute_capability = 80}).text;
  const auto count = [&](std::string_view of) {
    int n = 0;
    for (std::size_t at = text.find(of); at != text.npos; at = text.find(of, at + 1)) ++n;
    return n;
  };
  CHECK(count("pl::cp_async_wait<1>();") == 1);
  CHECK(count("_sync();") == 1);
  CHECK(count("pl::copy_async<8>(") == 4);  // of two operands, before the loop and in it
  CHECK(text.find("if (v") == text.npos);   // the accumulator is cleared before the loop
}
