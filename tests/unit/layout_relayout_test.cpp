// Plans between layouts, executed on the CPU for all threads.
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>

#include "codegen/layout/constructors.hpp"
#include "codegen/layout/relayout.hpp"
#include "codegen/layout/transfer.hpp"
#include "palladium/error.hpp"
#include "tests/support/layouts.hpp"

namespace palladium::layout {
namespace {

TEST_CASE("3,000 relayouts between random layouts deliver every element", "[layout]") {
  Random random(1);
  std::map<Move, int> kinds;
  Wavefronts total;
  int conflict_free = 0;
  for (int n = 0; n < 3000; ++n) {
    const Extents domain = random_domain(random);
    const int warps = random_warps(random);
    const Layout from = random_layout(random, domain, true, warps);
    Layout to = random_layout(random, domain, true, warps);
    if (n % 3 == 0) {  // a few exchanged bits: renamings and shuffles
      to = from;
      for (int i = pick(random, 1, 3); i > 0 && !to.reg.empty(); --i) {
        const int registers = static_cast<int>(to.reg.size());
        std::uint32_t& image = to.reg[static_cast<std::size_t>(pick(random, 0, registers - 1))];
        std::uint32_t& other =
            i == 1 ? to.reg.back() : to.lane[static_cast<std::size_t>(pick(random, 0, 4))];
        if (other != 0) std::swap(image, other);
      }
    }
    check(from);
    check(to);
    const int bytes = 1 << pick(random, 0, 3);
    PlanOptions options;
    options.scratch_limit = 1024 << pick(random, 0, 5);
    options.matrix_stores = pick(random, 0, 1) != 0;
    const Plan plan = plan_relayout(from, to, bytes, options);
    REQUIRE(run(plan) == "");
    REQUIRE(plan.scratch_bytes <= options.scratch_limit);
    REQUIRE(plan.cost == relayout_cost(from, to, bytes, options));
    ++kinds[plan.kind];
    if (plan.kind != Move::Shared) continue;
    const Wavefronts w = wavefronts(plan);
    conflict_free += w.counted == w.ideal;
    total.counted += w.counted;
    total.ideal += w.ideal;
  }
  INFO("no-op " << kinds[Move::Noop] << ", rename " << kinds[Move::Rename] << ", shuffle "
                << kinds[Move::Shuffle] << ", shared " << kinds[Move::Shared] << ", memory "
                << kinds[Move::Memory] << "; conflict-free " << conflict_free << ", wavefronts "
                << total.counted << " of ideal " << total.ideal);
  CHECK(kinds[Move::Shuffle] > 100);
  CHECK(kinds[Move::Rename] > 50);
  CHECK(kinds[Move::Shared] > 1000);
  CHECK(conflict_free >= kinds[Move::Shared] * 98 / 100);
  CHECK(static_cast<double>(total.counted) <= 1.01 * static_cast<double>(total.ideal));
}

Layout with_reg_and_lane_mixed(Random& random, Layout l) {
  // Invertible additions among register and lane images keep every element in its warp.
  std::vector<std::uint32_t*> images;
  for (std::uint32_t& image : l.reg) images.push_back(&image);
  for (std::uint32_t& image : l.lane) {
    if (image != 0) images.push_back(&image);
  }
  const int count = static_cast<int>(images.size());
  for (int n = pick(random, 1, 3); n > 0 && count > 0; --n) {
    const int i = pick(random, 0, count - 1), j = pick(random, 0, count - 1);
    if (i != j) *images[static_cast<std::size_t>(i)] ^= *images[static_cast<std::size_t>(j)];
  }
  return l;
}

TEST_CASE("3,000 relayouts between layouts that are no permutations of bits deliver every element",
          "[layout]") {
  Random random(2);
  std::map<Move, int> kinds;
  for (int n = 0; n < 3000; ++n) {
    const int warps = random_warps(random);
    const Layout base = random_layout(random, random_domain(random), true, warps);
    const Layout from = with_reg_and_lane_mixed(random, base);
    const Layout to = n % 5 == 0 ? random_layout(random, base.domain, false, warps)
                                 : with_reg_and_lane_mixed(random, from);
    check(from);
    check(to);
    const Plan plan = plan_relayout(from, to, 1 << pick(random, 0, 3));
    REQUIRE(run(plan) == "");
    ++kinds[plan.kind];
  }
  CHECK(kinds[Move::Shuffle] > 500);
  CHECK(kinds[Move::Memory] > 500);
}

TEST_CASE("a copy that every thread holds is read in place", "[layout]") {
  // Each thread has all elements: whatever is wanted needs no other thread.
  Random random(3);
  for (int n = 0; n < 200; ++n) {
    const int warps = random_warps(random);
    const Layout to = random_layout(random, {16, 8}, true, warps);
    const Plan plan = plan_relayout(replicated({16, 8}, warps), to, 4);
    REQUIRE(run(plan) == "");
    CHECK(plan.shuffle.shuffles == 0);
  }
}

const int swap_dims[] = {1, 0};

struct Named {
  const char* what;
  Layout from, to;
  int bytes;
  const char* plan;
};

TEST_CASE("relayouts that kernels need go the expected way", "[layout]") {
  const Layout acc = accumulator({64, 64}), wide = accumulator({64, 128});
  const Layout row = drop(wide, 1), transposed = transpose(acc, swap_dims);
  const Named table[] = {
      {"P of attention is the A operand", acc, operand_a({64, 64}, 16), 2, "nothing moves"},
      {"fp8 P becomes the A operand", acc, operand_a({64, 64}, 8), 1,
       "8 shuffles, 16 selects, 4 elements to a word"},
      {"8-bit A, widened, becomes 16-bit A", widen(operand_a({64, 64}, 16), 4),
       operand_a({64, 64}, 16), 1, "4 shuffles, 16 selects, 4 elements to a word"},
      {"f32 accumulator to rows", wide, strided({64, 128}, 8), 4,
       "st.v4 / ld.v4, 2 steps of 16384 B"},
      {"bf16 accumulator to rows", wide, strided({64, 128}, 8), 2,
       "st.v8 / ldmatrix, 1 step of 16384 B"},
      {"rows to the A operand", strided({64, 64}, 8), operand_a({64, 64}, 16), 2,
       "st.v8 / ldmatrix, 1 step of 8192 B"},
      {"f32 transpose", acc, transposed, 4, "st.v4 / ld.v4, 1 step of 16384 B"},
      {"a row vector to one element per thread", row, strided({64}, 1), 4,
       "st.v2 / ld.v1, 1 step of 256 B"},
      {"tensor memory to accumulator", tensor_memory_rows({128, 32}), accumulator({128, 32}), 4,
       "st.v4 / ld.v2, 1 step of 16384 B"},
      {"registers in another order", transpose(tensor_memory_rows({128, 8}), swap_dims),
       transpose(grow_tile(tensor_memory_rows({128, 8}), std::vector<int>{7, 3}), swap_dims), 4,
       "nothing moves"},
      {"f32 accumulator of 8 warps to rows", accumulator({128, 64}, {8, 1}),
       strided({128, 64}, 8, full_width, 8), 4, "st.v2 / ld.v4, 2 steps of 16384 B"},
      {"f32 transpose by 16 warps", accumulator({64, 64}, {4, 4}),
       transpose(accumulator({64, 64}, {4, 4}), swap_dims), 4, "st.v1 / ld.v1, 1 step of 16384 B"},
      {"a row vector of 16 warps to one element per thread",
       drop(accumulator({256, 64}, {16, 1}), 1), strided({256}, 1, full_width, 16), 4,
       "st.v2 / ld.v1, 1 step of 1024 B"},
      {"a 128x128 transpose fits 16 KiB by turns", strided({128, 128}, 4),
       transpose(strided({128, 128}, 4), swap_dims), 4, "st.v1 / ld.v1, 4 steps of 16384 B"},
  };
  for (const Named& n : table) {
    const Plan plan = plan_relayout(n.from, n.to, n.bytes);
    INFO(n.what);
    CHECK(run(plan) == "");
    CHECK(describe(plan) == n.plan);
  }
}

TEST_CASE("ragged values are moved whole and only whole", "[layout]") {
  for (const Extents& domain :
       {Extents{7, 13}, {64, 24}, {64, 136}, {100, 37}, {1, 1000}, {3, 5}}) {
    for (const int warps : {4, 8, 16}) {
      const Layout layouts[] = {
          accumulator(domain, {4, warps / 4}), strided(domain, 1, full_width, warps),
          strided(domain, 2, full_width, warps), strided(domain, 4, full_width, warps),
          strided(domain, 4, 8, warps)};
      for (const Layout& from : layouts) {
        for (const Layout& to : layouts) {
          for (const int bytes : {1, 2, 4, 8}) REQUIRE(run(plan_relayout(from, to, bytes)) == "");
        }
      }
    }
  }
}

TEST_CASE("a plan without shuffles, matrix moves or room is another plan that works", "[layout]") {
  const Layout acc = accumulator({64, 64}), rows = strided({64, 64}, 8);
  PlanOptions options;
  options.matrix_moves = false;
  CHECK(describe(plan_relayout(acc, rows, 2, options)) == "stmatrix / ld.v8, 1 step of 8192 B");
  options.matrix_stores = false;
  CHECK(describe(plan_relayout(acc, rows, 2, options)) == "st.v2 / ld.v8, 1 step of 8192 B");
  options.scratch_limit = 2048;
  const Plan steps = plan_relayout(acc, rows, 2, options);
  CHECK(run(steps) == "");
  CHECK(steps.scratch_bytes <= 2048);
  options.scratch_limit = 64;
  const Plan windows = plan_relayout(acc, rows, 2, options);
  CHECK(run(windows) == "");
  CHECK(describe(windows) == "row-major st.v2 / ld.v8, 128 windows of 64 B");
  options = {};
  options.shuffles = false;
  const Plan shared = plan_relayout(acc, operand_a({64, 64}, 8), 1, options);
  CHECK(shared.kind == Move::Shared);
  CHECK(shared.warp_barrier);
  CHECK(run(shared) == "");
}

TEST_CASE("a relayout may reshape", "[layout]") {
  Random random(4);
  std::map<Move, int> kinds;
  const std::pair<Extents, Extents> shapes[] = {{{64, 24}, {64, 3, 8}}, {{1536}, {64, 24}},
                                                {{64, 24}, {64, 8, 3}}, {{7, 13}, {13, 7}},
                                                {{32, 64}, {2048}},     {{16, 128}, {128, 16}}};
  for (int n = 0; n < 180; ++n) {
    const auto& [a, b] = shapes[n % 6];
    const int warps = random_warps(random);
    const Layout from = random_layout(random, a, true, warps);
    Layout to = random_layout(random, b, true, warps);
    if (n % 4 == 0) {
      if (const auto free = reshape(from, b)) to = canonical(*free);
    }
    if (n % 4 == 1) {
      if (const auto free = reshape(from, b)) to = with_reg_and_lane_mixed(random, *free);
    }
    const int bytes = 1 << pick(random, 0, 3);
    const Plan plan = plan_relayout(from, to, bytes), back = plan_relayout(to, from, bytes);
    REQUIRE(run(plan) == "");
    REQUIRE(run(back) == "");
    REQUIRE(relayout_cost(from, to, bytes) == plan.cost);
    ++kinds[plan.kind];
  }
  CHECK(kinds[Move::Memory] > 20);
  CHECK(kinds[Move::Shared] > 20);
  CHECK(kinds[Move::Noop] + kinds[Move::Rename] > 10);
  CHECK_THROWS_AS(plan_relayout(accumulator({64, 24}), accumulator({64, 32}), 4), InternalError);
  CHECK_THROWS_AS(relayout_cost(accumulator({64, 24}), accumulator({64, 32}), 4), InternalError);
}

TEST_CASE("slices, concatenations, broadcasts and transposes go through row-major memory",
          "[layout]") {
  const Layout whole = accumulator({64, 24}), part = strided({60, 7}, 1);
  MemorySide store, load;
  store.strides = row_major_strides({64, 24});
  load.strides = store.strides;
  load.offset = 3 * 24 + 5;  // [3:63, 5:12]
  for (const std::int64_t limit : {16384, 512, 16}) {
    PlanOptions options;
    options.scratch_limit = limit;
    const Plan slice = plan_through_memory(whole, part, 4, store, load, 64 * 24, options);
    CHECK(run(slice) == "");
    CHECK(slice.scratch_bytes <= limit);
  }
  MemorySide transposed;
  transposed.strides = {1, 24};
  CHECK(run(plan_through_memory(whole, accumulator({24, 64}), 2, store, transposed, 64 * 24)) ==
        "");
  MemorySide repeated;
  repeated.strides = {0, 24, 1};
  CHECK(run(plan_through_memory(whole, strided({3, 64, 24}, 4), 4, store, repeated, 64 * 24)) ==
        "");
}

TEST_CASE("a relayout between programs of different widths is refused", "[layout]") {
  const Layout four = strided({64, 64}, 4), eight = strided({64, 64}, 4, full_width, 8);
  CHECK_THROWS_AS(plan_relayout(four, eight, 4), InternalError);
  CHECK_THROWS_AS(relayout_cost(eight, four, 4), InternalError);
}

TEST_CASE("a plan's cost orders what the hardware would", "[layout]") {
  const Layout acc = accumulator({64, 64}), rows = strided({64, 64}, 8);
  CHECK(relayout_cost(acc, acc, 4) == 0);
  CHECK(relayout_cost(acc, operand_a({64, 64}, 8), 1) < relayout_cost(acc, rows, 1));
  CHECK(relayout_cost(acc, rows, 2) < relayout_cost(acc, rows, 4));
  CHECK(relayout_cost(accumulator({64, 24}), strided({64, 24}, 1), 4) <
        relayout_cost(accumulator({64, 48}), strided({64, 48}, 1), 4));
  // A wider program moves twice the elements at the throughput of one, and waits as long.
  const double narrow = relayout_cost(acc, rows, 4);
  const double wide =
      relayout_cost(accumulator({64, 64}, {4, 2}), strided({64, 64}, 8, full_width, 8), 4);
  CHECK(wide == narrow);
  // Huge values cost time proportional to nothing.
  const Layout huge = strided({1 << 20}, 4), other = strided({1 << 20}, 1);
  CHECK(relayout_cost(huge, other, 4) > 1e4);
  CHECK(relayout_cost(strided({1024, 1024}, 4), transpose(strided({1024, 1024}, 4), swap_dims), 4) >
        1e4);
}

}  // namespace
}  // namespace palladium::layout
