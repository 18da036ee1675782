// Sums that follow a maximum are multiplied where it grows, and left alone where that would be by
// one: interpreter and emulator agree with plain C++, whichever rows grow when.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/targets.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

constexpr std::int64_t blocks = 6, columns = 32, d = 64;

// What the largest score of a row is, in powers of two, in each block.
using Level = std::function<float(std::int64_t row, std::int64_t block)>;

struct Growth {
  const char* name;
  Level level;
};

// Of one row of a warp, of one warp, of all; early, late, by nothing and by fractions.
const std::vector<Growth> growths{
    {"never behind the first block", [](auto, auto block) { return block == 0 ? 3.f : -1.f; }},
    {"always", [](auto, auto block) { return 1.5f * static_cast<float>(block); }},
    {"in the last block, one row of 64",
     [](auto row, auto block) { return row % 64 == 37 && block == blocks - 1 ? 5.f : 0.f; }},
    {"one row of each warp in its own block",
     [](auto row, auto block) { return row % 16 == block ? 4.f : 0.f; }},
    {"one warp's rows", [](auto row, auto block) { return row / 16 == 1 ? 2.f * block : 0.f; }},
    {"to what it was", [](auto, auto) { return 2.f; }},
};

std::int64_t hash(std::int64_t i) { return (i * 2654435761) >> 7 & 0xff; }

// The scores of a block are some below its level, and one is there.
Array scores_of(std::int64_t rows, const Level& level) {
  return make_array<float>({rows, blocks * columns}, [&](std::int64_t i) {
    const std::int64_t row = i / (blocks * columns), column = i % (blocks * columns);
    const bool is_largest = column % columns == hash(row) % columns;
    const auto below = is_largest ? 0 : 0.25f + static_cast<float>(hash(i)) / 64;
    return level(row, column / columns) - below;
  });
}

auto softmax_times(std::int64_t rows, DType t) {
  return [=](Ref scores, Ref v, Ref o) {
    const auto block = [&](Index i, Value top, Value total, Value sums) {
      const Slice now = ds(i * columns, columns);
      const Value s = scores[{_, now}];
      const Value next = maximum(top, max(s, {.axis = 1, .keepdims = true}));
      const Value p = exp2(s - next), shrink = exp2(top - next);
      return carry(next, total * shrink + sum(p, {.axis = 1, .keepdims = true}),
                   sums * shrink + dot(p.astype(t), v[{now, _}]));
    };
    const auto [top, total, sums] = loop(0, blocks, block, full({rows, 1}, -1e30f, f32),
                                         zeros({rows, 1}, f32), zeros({rows, d}, f32));
    o[_] = sums / total;
  };
}

double largest_error(const Array& scores, const Array& v, const Array& o) {
  const std::int64_t rows = o.shape()[0], keys = blocks * columns;
  const Array wide = v.astype(f32);
  double error = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* const s = scores.data<float>() + r * keys;
    double total = 0;
    std::vector<double> row(static_cast<std::size_t>(d));
    for (std::int64_t k = 0; k < keys; ++k) {
      const double p = std::exp2(static_cast<double>(s[k]) - *std::max_element(s, s + keys));
      total += p;
      for (std::int64_t j = 0; j < d; ++j)
        row[static_cast<std::size_t>(j)] += p * wide.data<float>()[k * d + j];
    }
    for (std::int64_t j = 0; j < d; ++j)
      error = test::worst_of(
          error, std::abs(row[static_cast<std::size_t>(j)] / total - o.data<float>()[r * d + j]));
  }
  return error;
}

}  // namespace

TEST_CASE("a sum that follows a maximum is right whichever rows grow when") {
  for (const DType t : {f16, bf16, f32})
    for (const std::int64_t rows : {16, 64, 128}) {
      const Array v = make_array<float>({blocks * columns, d}, [](std::int64_t i) {
                        return static_cast<float>(hash(i)) / 64 - 2;
                      }).astype(t);
      const Kernel k = pallas_call(softmax_times(rows, t),
                                   {.name = "softmax_times", .out_type = {{rows, d}, f32}});
      for (const Growth& g : growths) {
        INFO(g.name << ", " << t.name() << ", " << rows << " rows");
        const Array scores = scores_of(rows, g.level);
        for_each_target("softmax_times", [&](Target target) {
          const Array o = on_cpu(k.on(target)(on(target, scores), on(target, v)));
          CHECK(largest_error(scores, v, o) < (t == f32 ? 2e-5 : t == f16 ? 2e-3 : 2e-2));
        });
      }
    }
}

TEST_CASE("multiplying by one is left out where a maximum decides the factor") {
  const auto asks = [](std::int64_t rows, int cc) {
    const graph::Graph g =
        traced(softmax_times(rows, f16), {.name = "softmax_times", .out_type = {{rows, d}, f32}},
               {array({rows, blocks * columns}, f32), array({blocks * columns, d}, f16)});
    CHECK(on_all_targets(g, {}, cc) == "");
    return cuda::emit(g, {.compute_capability = cc}).text.find("vote_any") != std::string::npos;
  };
  for (const int cc : {75, 80, 90, 120}) {
    CAPTURE(cc);
    // Products of mma.sync take sums while others are being multiplied.
    CHECK(asks(64, cc) == (cc == 90));
    CHECK(asks(128, cc) == (cc == 90));
  }
  CHECK_FALSE(asks(16, 90));
}
