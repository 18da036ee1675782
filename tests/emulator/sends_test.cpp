// Results of products that TMA stores, by way of panels in shared memory.
#include <algorithm>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int hopper = 90;

struct Product {
  std::int64_t m = 100, n = 72, k = 64;
  std::int64_t block_m = 64, block_n = 64;
  int num_warps = 4;
  bool persistent = false;
};

// a @ b, of floats of 16 bits, and what is made of the product before it is stored.
graph::Graph rounded(DType t, const Product& p, DType out, auto make) {
  const auto blocks = [](std::int64_t rows, std::int64_t columns, bool left, bool right) {
    return BlockSpec{{rows, columns},
                     [=](Index i, Index j) {
                       return Indices{left ? i : Index(0), right ? j : Index(0)};
                     },
                     {.fill = 0}};
  };
  const std::int64_t depth = (p.k + 31) / 32 * 32;
  graph::Graph g = traced(
      [=](Ref a, Ref b, Ref o) {
        const auto add = [&](Index l, Value sum) {
          return sum + dot(a[{_, ds(l * 32, 32)}], b[{ds(l * 32, 32), _}]);
        };
        o[_] = make(loop(0, depth / 32, add, zeros({p.block_m, p.block_n}, f32)));
      },
      {.name = "rounded",
       .out_type = {{p.m, p.n}, out},
       .grid = {cdiv(p.m, p.block_m), cdiv(p.n, p.block_n)},
       .in_specs = {blocks(p.block_m, depth, true, false), blocks(depth, p.block_n, false, true)},
       .out_specs = {BlockSpec{{p.block_m, p.block_n},
                               [](Index i, Index j) {
                                 return Indices{i, j};
                               }}}},
      {array({p.m, p.k}, t), array({p.k, p.n}, t)});
  g.persistent = p.persistent;
  return by_warps(p.num_warps, std::move(g));
}
graph::Graph rounded(DType t, const Product& p) {
  return rounded(t, p, t, [t](const Value& sum) { return sum.astype(t); });
}

// The same as bytes: rounded, within their numbers, or what is positive.
graph::Graph in_bytes(DType t, const Product& p) {
  return rounded(bf16, p, t, [t](const Value& sum) {
    if (t == u8 || t == bool_) return (sum > 0.0f).astype(t);
    if (t == i8) return clamp(-128.0f, round(sum * 0.25f), 127.0f).astype(t);
    return clamp(-448.0f, sum * 0.5f, 448.0f).astype(t);
  });
}

std::ptrdiff_t sends(const graph::Graph& g, int cc = hopper) {
  const auto l = cuda::lower(g, {.compute_capability = cc});
  return std::ranges::count(l.storages, true, &lowered::Storage::is_sent);
}

}  // namespace

TEST_CASE("results of products that are rounded to 16 bits are stored by TMA") {
  for (const DType t : {f16, bf16})
    for (const int warps : {4, 8})
      for (const bool persistent : {false, true}) {
        CAPTURE(t.name(), warps, persistent);
        const graph::Graph g = rounded(
            t, {.m = 300, .n = 136, .block_m = 128, .num_warps = warps, .persistent = persistent});
        CHECK(sends(g) == 1);
        CHECK(sends(g, 80) == 0);
        CHECK(on_all_targets(g, {}, hopper) == "");
      }
}

TEST_CASE("results of any size are stored as far as their array goes") {
  for_seeds(1, 6, [](std::uint64_t seed) {
    Random random(seed);
    const Product p{.m = random.between(1, 300),
                    .n = 8 * random.between(1, 40),
                    .k = 8 * random.between(1, 20),
                    .block_m = 16 * random.between(1, 8),
                    .block_n = 16 * random.between(1, 8),
                    .num_warps = random.pick({4, 8}),
                    .persistent = random.pick({false, true})};
    CAPTURE(p.m, p.n, p.k, p.block_m, p.block_n, p.num_warps, p.persistent);
    const graph::Graph g = rounded(random.pick({f16, bf16}), p);
    CHECK(sends(g) == 1);
    CHECK(on_all_targets(g, {}, hopper) == "");
  });
}

TEST_CASE("results of bytes leave threads in pairs, from where products leave them") {
  for (const DType t : {f8e4m3, f8e5m2, i8, u8, bool_})
    for (const auto& [m, n] : {std::pair(64, 64), {64, 160}, {128, 96}, {128, 128}, {128, 256}})
      for (const bool persistent : {false, true}) {
        const int warps = m / 16;
        CAPTURE(t.name(), m, n, persistent);
        const graph::Graph g = in_bytes(t, {.m = m + 44,
                                            .n = n + 16,
                                            .block_m = m,
                                            .block_n = n,
                                            .num_warps = warps,
                                            .persistent = persistent});
        CHECK(sends(g) == 1);
        const std::string text = cuda::emit(g, {.compute_capability = hopper}).text;
        CHECK_THAT(text, ContainsSubstring("pl::store_shared<2>("));
        CHECK_THAT(text, !ContainsSubstring("pl::load_shared"));
        CHECK_THAT(text, !ContainsSubstring("pl::store_global"));
        CHECK(on_all_targets(g, {}, hopper) == "");
      }
}

TEST_CASE("bytes are rounded in pairs, however much they are computed of") {
  for (const DType t : {f8e4m3, i8, u8}) {
    const auto make = [t](Value x) {
      for (int i = 0; i < 8; ++i) x = maximum(x * 0.5f, x - 3.0f);
      return clamp(0.0f, x, 100.0f).astype(t);
    };
    CAPTURE(t.name());
    const graph::Graph g = rounded(f16, {.m = 64, .n = 64}, t, make);
    CHECK_THAT(cuda::emit(g, {.compute_capability = hopper}).text,
               ContainsSubstring("pl::to_all<2>("));
    CHECK(on_all_targets(g, {}, hopper) == "");
  }
}

TEST_CASE("results of bytes of any size are stored as far as their array goes") {
  for_seeds(1, 8, [](std::uint64_t seed) {
    Random random(seed);
    const std::int64_t multiple = random.pick({16, 16, 8, 1});
    const Product p{.m = random.between(1, 300),
                    .n = multiple * random.between(1, 20),
                    .k = 8 * random.between(1, 20),
                    .block_m = 16 * random.between(1, 8),
                    .block_n = 16 * random.between(1, 8),
                    .num_warps = random.pick({4, 8}),
                    .persistent = random.pick({false, true})};
    const DType t = random.pick({f8e4m3, f8e5m2, i8, u8, bool_});
    CAPTURE(t.name(), p.m, p.n, p.k, p.block_m, p.block_n, p.num_warps, p.persistent);
    const graph::Graph g = in_bytes(t, p);
    CHECK(sends(g) == (p.n % 16 == 0 && p.block_n % 32 == 0));
    for (const int cc : {80, hopper, 120}) CHECK(on_all_targets(g, {}, cc) == "");
  });
}

TEST_CASE("rows that are quantised by their greatest element stay where products leave them") {
  for (const std::int64_t n : {64, 96, 128}) {
    CAPTURE(n);
    const graph::Graph g =
        by_warps(8, traced(
                        [](Ref a, Ref b, Ref o, Ref scale) {
                          const Value sum = dot(a[_], b[_]);
                          const Value most = max(abs(sum), {.axis = 1, .keepdims = true}) * 0x1p-7f;
                          o[_] = round(sum / maximum(most, 1e-8f)).astype(i8);
                          scale[_] = most;
                        },
                        {.name = "quantised", .out_type = {{{128, n}, i8}, {{128, 1}, f32}}},
                        {array({128, 64}, f16), array({64, n}, f16)}));
    CHECK(sends(g) == 1);
    CHECK_THAT(cuda::emit(g, {.compute_capability = hopper}).text,
               !ContainsSubstring("pl::load_shared"));
    CHECK(on_all_targets(g, {}, hopper) == "");
  }
}

TEST_CASE("what is sent lies where a ring was that nobody reads any more") {
  const Product p{.m = 256, .n = 512, .k = 512, .block_m = 128, .block_n = 256, .num_warps = 8};
  const auto shared_bytes = [](const graph::Graph& g) {
    return cuda::lower(g, {.compute_capability = hopper}).shared_bytes;
  };
  const auto offsets = [](const lowered::Program& l) {
    const auto sent = std::ranges::find(l.storages, true, &lowered::Storage::is_sent);
    return std::pair(sent->shared().offset, l.storages[l.rings.front().storage].shared().offset);
  };
  const auto [sent, ring] = offsets(cuda::lower(rounded(f16, p), {.compute_capability = hopper}));
  CHECK(sent == ring);
  CHECK(on_all_targets(rounded(f16, p), {}, hopper) == "");

  // A block that goes on to other programs fetches for these meanwhile.
  Product again = p;
  again.persistent = true;
  const auto l = cuda::lower(rounded(f16, again), {.compute_capability = hopper});
  const auto [own, other] = offsets(l);
  CHECK((own + (64 << 10) <= other ||
         other + l.rings.front().slots * l.rings.front().slot_bytes <= own));
  CHECK(shared_bytes(rounded(f16, again)) <= 227 << 10);
  CHECK(on_all_targets(rounded(f16, again), {}, hopper) == "");
}

TEST_CASE("warpgroups of a persistent block send rows of their own, and none waits for another") {
  const Product shapes[] = {
      {.m = 500, .n = 192, .k = 96, .block_m = 128, .num_warps = 8},
      {.m = 512, .n = 128, .k = 32, .block_m = 256, .num_warps = 8},
      {.m = 300, .n = 256, .k = 64, .block_m = 128, .block_n = 128, .num_warps = 8},
      {.m = 600, .n = 64, .k = 160, .block_m = 256, .num_warps = 16}};
  for (Product p : shapes) {
    p.persistent = true;
    CAPTURE(p.m, p.n, p.k, p.block_m, p.block_n, p.num_warps);
    for (graph::Graph g : {rounded(f16, p), in_bytes(f8e4m3, p)}) {
      g.bodies[0].warp_specialize = true;
      const auto l = cuda::lower(g, {.compute_capability = hopper});
      CHECK(lowered::sends_by_warpgroups(l));
      const std::string text = cuda::emit(l).text;
      CHECK_THAT(text, ContainsSubstring("pl::warpgroup_sync_in<"));
      CHECK_THAT(text, !ContainsSubstring("pl::program_sync<"));
      CHECK(on_all_targets(g, {}, hopper) == "");
    }
  }
}

TEST_CASE("what is sent under a condition, and what is sent whole, agree in loops of warpgroups") {
  const auto graph_of = [](bool turned) {
    return by_warps(
        8,
        traced(
            [=](Ref a, Ref b, Ref o, Ref p) {
              loop(0, 4, [&](Index i) {
                const Slice rows = ds(i * 128, 128);
                const Value sum = loop(
                    0, 3,
                    [&](Index l, Value s) {
                      const Slice k = ds(l * 32, 32);
                      return s + dot(a[{rows, k}], b[{k, _}]);
                    },
                    zeros({128, 64}, f32));
                o[{rows, _}] = f16(sum);
                const Value more = f16(maximum(sum, 0));
                when(i != 2, [&] {
                  if (turned)
                    p[{i, _, _}] = transpose(more);
                  else
                    p[{i, _, _}] = more;
                });
              });
            },
            {.name = "iterations",
             .out_type = {{{512, 64}, f16},
                          turned ? ShapeDtype{{4, 64, 128}, f16} : ShapeDtype{{4, 128, 64}, f16}}},
            {array({512, 96}, f16), array({96, 64}, f16)}));
  };
  for (const bool turned : {false, true})
    for (const bool by_producer : {false, true}) {
      CAPTURE(turned, by_producer);
      graph::Graph g = graph_of(turned);
      g.bodies[0].warp_specialize = by_producer;
      CHECK(sends(g) == 2);
      const auto l = cuda::lower(g, {.compute_capability = hopper});
      CHECK(lowered::sends_by_warpgroups(l) == (by_producer && !turned));
      CHECK(on_all_targets(g, {}, hopper) == "");
    }
}

TEST_CASE("what a loop sends has been read before the next iteration stages") {
  const graph::Graph g = traced(
      [](Ref a, Ref b, Ref o, Ref p) {
        loop(0, 5, [&](Index i) {
          const Value sum = dot(a[{ds(i * 64, 64), _}], b[_]);
          o[{ds(i * 64, 64), _}] = f16(sum);
          when(i != 2, [&] { p[{i, _, _}] = f16(maximum(sum, 0)); });
        });
      },
      {.name = "iterations", .out_type = {{{320, 64}, f16}, {{5, 64, 64}, f16}}},
      {array({320, 32}, f16), array({32, 64}, f16)});
  CHECK(sends(g) == 2);
  CHECK(on_all_targets(g, {}, hopper) == "");
  const std::string text = cuda::emit(g, {.compute_capability = hopper}).text;
  CHECK_THAT(text, ContainsSubstring("pl::bulk_wait_read<0>()"));
}

TEST_CASE("a sequential axis sends what each of its programs stores") {
  const graph::Graph g = traced(
      [](Ref a, Ref b, Ref o, Ref total) {
        const Value sum = dot(a[_], b[_]);
        when(program_id(0) == 0, [&] { total[_] = zeros({64, 64}, f32); });
        total[_] += sum;
        o[_] = bf16(sum);
      },
      {.name = "axis",
       .out_type = {{{192, 64}, bf16}, {{64, 64}, f32}},
       .grid = {3},
       .in_specs = {{{64, 32},
                     [](Index i) {
                       return Indices{i, 0};
                     }},
                    {{32, 64},
                     [](Index) {
                       return Indices{0, 0};
                     }}},
       .out_specs = {{{64, 64},
                      [](Index i) {
                        return Indices{i, 0};
                      }},
                     {{64, 64},
                      [](Index) {
                        return Indices{0, 0};
                      }}}},
      {array({192, 32}, bf16), array({32, 64}, bf16)});
  CHECK(sends(g) == 1);
  CHECK(on_all_targets(g, {}, hopper) == "");
}

TEST_CASE("what TMA cannot store is stored by threads, and why is said") {
  const auto remarks = [](const graph::Graph& g) {
    std::string all;
    for (const Remark& r : cuda::lower(g, {.compute_capability = hopper}).remarks)
      if (r.at.line > 0) all += r.text + "\n";
    return all;
  };
  const graph::Graph odd = rounded(f16, {.n = 100});
  CHECK(sends(odd) == 0);
  CHECK_THAT(remarks(odd),
             ContainsSubstring("outputs[0]: stored by threads, not by TMA, because its "
                               "rows do not end at multiples of 16 bytes"));
  CHECK(on_all_targets(odd, {}, hopper) == "");

  const auto kept = [](auto body) {
    return traced(body, {.name = "kept", .out_type = {{64, 64}, f16}},
                  {array({64, 32}, f16), array({32, 64}, f16)});
  };
  const graph::Graph read = kept([](Ref a, Ref b, Ref o) {
    o[_] = f16(dot(a[_], b[_]));
    o[{ds(0, 8), _}] = o[{ds(8, 8), _}];
  });
  const graph::Graph masked = kept([](Ref a, Ref b, Ref o) {
    o[_] = zeros({64, 64}, f16);
    store(o.at({_, _}), f16(dot(a[_], b[_])), {.mask = iota(i32, {64, 64}, 0) < 20});
  });
  const graph::Graph turned = kept([](Ref a, Ref b, Ref o) {
    o.transpose({1, 0})[_] = f16(dot(a[_], b[_]));
  });
  for (const graph::Graph* const g : {&read, &masked, &turned}) {
    CHECK(sends(*g) == 0);
    CHECK(on_all_targets(*g, {}, hopper) == "");
  }
}
