// Masks as users write them, in every iteration of a loop over blocks of keys: where a block is
// wholly seen nobody asks, and what comes out is in every bit what it is where somebody does.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "codegen/base/format.hpp"
#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

constexpr int rows = 64, keys = 32, d = 32, programs = 4, blocks = rows * programs / keys;

/// What a mask is made of: numbers of queries [rows, 1] and of keys [1, keys], the number of the
/// iteration and of its block, and a prefetched number.
struct Asked {
  Value row, column, i, block, length;
};

struct Case {
  const char* name;
  std::function<Value(const Asked&, const Value& s)> masked;
  std::function<Value(const Value&first)> low, high;  // of blocks; `first`: the first query
  bool split = true;                                  // there is a loop in which nobody asks
  bool descends = false;
  int step = 1;
};

const auto none = [](const Value&) { return full({}, 0, i32); };
const auto all = [](const Value&) { return full({}, blocks, i32); };
const auto seen_blocks = [](const Value& first) { return (first + rows + (keys - 1)) / keys; };
const auto near_blocks = [](const Value& first) { return maximum(first - 100, 0) / keys; };

Value causal(const Asked& t, const Value& s) { return where(t.column <= t.row, s, -1e30f); }

const Case cases[] = {
    {"causal", causal, none, seen_blocks},
    {"causal, over all blocks", causal, none, all},
    {"causal, hidden rather than seen",
     [](const Asked& t, const Value& s) { return where(t.column > t.row, -1e30f, s); }, none,
     seen_blocks},
    {"not hidden",
     [](const Asked& t, const Value& s) { return where(!(t.row < t.column), s, -1e30f); }, none,
     seen_blocks},
    {"causal from the last block to the first", causal, none, seen_blocks, true, true},
    {"causal by every second block", causal, none, all, true, false, 2},
    {"window",
     [](const Asked& t, const Value& s) {
       return where((t.column <= t.row) & (t.row - t.column < 100), s, -1e30f);
     },
     near_blocks, seen_blocks},
    {"outside of a window, hidden",
     [](const Asked& t, const Value& s) {
       return where((t.column > t.row) | (t.row - t.column >= 100), -1e30f, s);
     },
     none, all},
    {"up to a length",
     [](const Asked& t, const Value& s) { return where(t.column < t.length, s, -1e30f); }, none,
     all},
    {"up to a length, and causal, one after the other",
     [](const Asked& t, const Value& s) {
       return where(t.column < t.length, causal(t, s), -1e30f);
     },
     none, seen_blocks},
    {"added",
     [](const Asked& t, const Value& s) { return s + where(t.column <= t.row, 0.0f, -1e30f); },
     none, seen_blocks},
    {"up to the lesser of two",
     [](const Asked& t, const Value& s) {
       return where(t.column <= minimum(t.row, t.length - 1), s, -1e30f);
     },
     none, seen_blocks},
    {"in the first blocks or seen",
     [](const Asked& t, const Value& s) {
       return where((t.i < 2) | (t.column <= t.row), s, -1e30f);
     },
     none, seen_blocks},
    {"queries alone", [](const Asked& t, const Value& s) { return where(t.row < 200, s, -1e30f); },
     none, all},
    {"by the parity of the place",
     [](const Asked& t, const Value& s) { return where((t.column + t.row) % 2 == 0, s, -1e30f); },
     none, all, false},
    {"by what was computed",
     [](const Asked&, const Value& s) { return where(s > 0.5f, s, -1e30f); }, none, all, false},
};

graph::Graph attention_of(const Case& t, int stages, std::optional<bool> specialize) {
  const auto body = [=](Ref lengths, Ref q, Ref k, Ref v, Ref o) {
    const Value first = program_id(0) * rows, length = lengths[program_id(0)];
    const Value low = t.low(first), high = t.high(first);
    const auto iteration = [&](Index i, Value top, Value total, Value sums) {
      const Value block = t.descends ? high - 1 - (i - low) : Value(i), at = block * keys;
      const Asked asked{iota(i32, {rows, 1}, 0) + first, iota(i32, {1, keys}, 1) + at, i, block,
                        length};
      const Value s = t.masked(asked, dot(q[_], k[{ds(at, keys), _}], {.trans_b = true}) * 0.17f);
      const Value next = maximum(top, max(s, {.axis = {1}, .keepdims = true}));
      const Value p = exp2(s - next), shrink = exp2(top - next);
      return carry(next, total * shrink + sum(p, {.axis = {1}, .keepdims = true}),
                   sums * shrink + dot(p.astype(f16), v[{ds(at, keys), _}]));
    };
    const auto [top, total, sums] =
        loop(low, high, {.step = t.step}, iteration, full({rows, 1}, -1e30f, f32),
             zeros({rows, 1}, f32), zeros({rows, d}, f32));
    o[_] = sums / total;
  };
  const auto own = [](Index i, Ref) { return Indices{i, 0}; };
  const auto whole = [](Index, Ref) { return Indices{0, 0}; };
  const std::int64_t n = rows * programs;
  return traced(
      body,
      {.name = "masked",
       .out_type = ShapeDtype{{n, d}, f32},
       .num_scalar_prefetch = 1,
       .grid = {programs},
       .in_specs = {{{rows, d}, own}, {{n, d}, whole}, {{n, d}, whole}},
       .out_specs = {{{rows, d}, own}},
       .compiler_params = {.num_stages = stages, .warp_specialize = specialize}},
      {array({programs}, i32), array({n, d}, f16), array({n, d}, f16), array({n, d}, f16)});
}

/// The loops in which conditions are known in some iterations; `forget`: are no more.
int known_loops(lowered::Statements& list, bool forget) {
  int count = 0;
  for (lowered::Statement& s : list) {
    const auto look = [&](lowered::KnownIterations& known) {
      count += !known.empty();
      if (forget) known = {};
    };
    if (auto* const loop = std::get_if<lowered::Loop>(&s.what)) look(loop->known);
    if (auto* const loop = std::get_if<lowered::GridLoop>(&s.what)) look(loop->known);
    lowered::for_each_body(s,
                           [&](lowered::Statements& body) { count += known_loops(body, forget); });
  }
  return count;
}
int known_loops(lowered::Program& l, bool forget) {
  int count = 0;
  for_each_list(l, [&](lowered::Statements& list) { count += known_loops(list, forget); });
  return count;
}

/// How the program differs from what it is where every iteration asks.
std::string difference_from_asking(const graph::Graph& g, int cc) {
  lowered::Program l = cuda::lower(g, {.compute_capability = cc});
  Random random(11);
  test::Call known = random_call(g, {}, random, true);
  for (std::int64_t i = 0; i < programs; ++i) {
    const std::int32_t length[] = {70, 300, 0, 129};
    std::memcpy(known.arrays[0].data() + 4 * i, &length[i], 4);
  }
  test::Call asked = known;
  run_emulator(l, known);
  known_loops(l, true);
  run_emulator(l, asked);
  return difference(g, known, asked);
}

void check(const std::string& name, const graph::Graph& g, int cc, bool split) {
  INFO(name << " on " << cc);
  try {
    lowered::Program l = cuda::lower(g, {.compute_capability = cc});
    CHECK((known_loops(l, false) > 0) == split);
    CHECK(problem_of(g, {}, cc) == "");
    if (split) CHECK(difference_from_asking(g, cc) == "");
  } catch (const std::exception& e) {
    FAIL_CHECK(e.what());
  }
}

}  // namespace

TEST_CASE("masks of attention are asked for where a block is seen in part, in rotated loops, too") {
  std::size_t number = 0;
  for (const Case& t : cases) {
    ++number;
    check(t.name, attention_of(t, 2, true), 90, t.split);
    if (is_full() || number % 3 == 0) check(t.name, attention_of(t, 3, false), 90, t.split);
    if (is_full() || number % 3 == 1) check(t.name, attention_of(t, 0, {}), 80, t.split);
  }
}

namespace {

// Blocks of rows along a sequential axis, added up where they are seen.
graph::Graph along_axis(const Dim& steps, bool shared, bool asks_count) {
  const auto body = [=](Ref a, Ref b, Ref o, Ref s) {
    const Value k = program_id(1), row = iota(i32, {64, 1}, 0) + program_id(0) * 64;
    const Value column = iota(i32, {1, 64}, 1);
    when(k == 0, [&] { s[_] = zeros({64, 64}, f32); });
    const Value seen =
        asks_count ? column + k * 64 < (num_programs(1) - 1) * 64 + 7 : column + k * 64 <= row + 40;
    s[_] += where(seen, dot(a[_], b[_]), 0.5f);
    when(k == num_programs(1) - 1, [&] { o[_] = s[_]; });
  };
  return traced(body,
                {.name = "along_axis",
                 .out_type = ShapeDtype{{128, 64}, f32},
                 .grid = {2, steps},
                 .in_specs = {{{64, 32},
                               [](Index i, Index k) {
                                 return Indices{i, k};
                               }},
                              {{32, 64},
                               [](Index, Index k) {
                                 return Indices{k, 0};
                               }}},
                 .out_specs = {{{64, 64},
                                [](Index i, Index) {
                                  return Indices{i, 0};
                                }}},
                 .scratch_types = {(shared ? gpu::SMEM : gpu::REGS)({64, 64}, f32)},
                 .compiler_params = {.dimension_semantics = {parallel, sequential}}},
                {array({128, steps * 32}, f16), array({steps * 32, 64}, f16)});
}

}  // namespace

TEST_CASE("masks along a sequential axis are asked for where a block is seen in part") {
  for (const bool asks_count : {false, true})
    for (const bool shared : {false, true})
      for (const int cc : {90, 80}) {
        const std::string name = fmt::format("{} {}", asks_count, shared);
        check(name, along_axis(5, shared, asks_count), cc, true);
        const graph::Graph g = along_axis(dim("steps", {.at_most = 64}), shared, asks_count);
        for (const std::int64_t steps : {1, 2, 4}) {
          INFO(name << ", " << steps << " steps on " << cc);
          CHECK(problem_of(g, {steps}, cc) == "");
        }
      }
}

namespace {

/// Elements of `x` added up where the condition holds, in iterations from low to high.
graph::Graph counted(std::int64_t low, std::int64_t high, int step,
                     const std::function<Value(const Value& i, const Value& at)>& condition) {
  return traced(
      [=](Ref x, Ref o) {
        const auto iteration = [&](Index i, Value sum) {
          return sum * 3 + where(condition(i, iota(i32, {32, 64}, 1)), x[_] + i, -1);
        };
        o[_] = loop(full({}, static_cast<int>(low), i32), full({}, static_cast<int>(high), i32),
                    {.step = step}, iteration, zeros({32, 64}, i32));
      },
      {.name = "counted", .out_type = ShapeDtype{{32, 64}, i32}}, {array({32, 64}, i32)});
}

}  // namespace

TEST_CASE("iterations in which a sum wraps are asked") {
  constexpr std::int64_t most = INT32_MAX, least = INT32_MIN;
  struct Wrapped {
    const char* name;
    std::int64_t low, high;
    int step;
    std::function<Value(const Value& i, const Value& at)> condition;
  };
  const Wrapped all[] = {
      {"the number and a coordinate", most - 70, most, 8,
       [](const Value& i, const Value& at) { return i + at > 0; }},
      {"the number and a coordinate, to the end", most - 40, most, 1,
       [](const Value& i, const Value& at) { return i + at >= 40; }},
      {"a multiple", -5, 6, 1, [](const Value& i, const Value& at) { return i * (1 << 29) <= at; }},
      {"a multiple that is not looked at", -5, 6, 1,
       [](const Value& i, const Value& at) { return i * (1 << 18) * (1 << 12) <= at; }},
      {"a difference", least, least + 9, 1,
       [](const Value& i, const Value& at) { return i - at < 0; }},
      {"from the least number", least, least + 200, 64,
       [](const Value& i, const Value& at) { return at - i > 0; }},
      {"a coordinate from the largest number", -3, 70, 9,
       [=](const Value& i, const Value& at) { return at + static_cast<int>(most - 20) > i; }},
      {"no iterations", 9, 3, 1, [](const Value& i, const Value& at) { return i < at; }},
      {"over the end", 0, 200, 7, [](const Value& i, const Value& at) { return i * 3 < at + 300; }},
      {"down", 0, 40, 1, [](const Value& i, const Value& at) { return at - i * 5 > -100; }},
  };
  for (const Wrapped& w : all) {
    INFO(w.name);
    const graph::Graph g = counted(w.low, w.high, w.step, w.condition);
    CHECK(on_all_targets(g) == "");
  }
}

TEST_CASE("a loop that is too long to be written again says so") {
  const graph::Graph g = traced(
      [](Ref x, Ref y, Ref o) {
        loop(0, 9, [&](Index i) {
          const Value s = dot(x[_], y[_], {.trans_b = true});
          const Value row = iota(i32, {64, 1}, 0), column = iota(i32, {1, 128}, 1) + i * 128;
          for (int n = 0; n < 16; ++n)
            o[{n, _, _}] = max(where(column <= row + 300 + n, s * static_cast<float>(n), -1.0f),
                               {.axis = {1}, .keepdims = true});
        });
      },
      {.name = "long", .out_type = ShapeDtype{{16, 64, 1}, f32}},
      {array({64, 32}, f16), array({128, 32}, f16)});
  lowered::Program l = cuda::lower(g, {.compute_capability = 90});
  CHECK(known_loops(l, false) == 0);
  CHECK(std::ranges::count_if(l.remarks, [](const Remark& r) {
          return r.text.starts_with("conditions on elements are asked in every iteration");
        }) == 1);
}

namespace {

constexpr int queries = 64, block_keys = 64, key_blocks = 3;

/// How a row of scores loses the keys of other sequences than its own.
enum class Hides { by_place, by_data, by_sum, by_factor };

struct HiddenBlocks {
  int d = 64;
  float low = -1e30f;  // of what is hidden
  Hides how = Hides::by_place;
  bool by_two = false;  // exp2 of scores that are multiplied by log2(e)
};

// The second half of the rows sees nothing of the first block of keys.
graph::Graph hidden_blocks(const HiddenBlocks& p) {
  constexpr float log2e = 1.44269504f;
  const float scale = 1 / std::sqrt(static_cast<float>(p.d));
  const auto body = [=](Ref q, Ref k, Ref v, Ref numbers, Ref sums, Ref o) {
    const Value asked = q[_], row = iota(i32, {queries, 1}, 0);
    const auto add = [&](Index i, Value top, Value total, Value sum) {
      const Slice now = ds(i * block_keys, block_keys);
      const Value column = iota(i32, {1, block_keys}, 1) + i * block_keys;
      Value s = dot(asked, k[{now, _}], {.trans_b = true}) * scale;
      if (p.how == Hides::by_place) s = where((row < 32) | (column >= block_keys), s, p.low);
      if (p.how == Hides::by_data)
        s = where((row < 32) | (numbers[now].reshape({1, block_keys}) > 0), s, p.low);
      if (p.how == Hides::by_sum) s = s + sums[{_, now}];
      if (p.how == Hides::by_factor) {
        const Value seen = numbers[now].reshape({1, block_keys}).astype(f32);
        s = s + where(row < 32, 0.0f, 1.0f) * ((1 - seen) * p.low);
      }
      if (p.by_two) s = s * log2e;
      const Value next = maximum(top, max(s, {.axis = 1, .keepdims = true}));
      const auto power = [&](const Value& x) { return p.by_two ? exp2(x) : exp(x); };
      const Value weights = power(s - next), shrink = power(top - next);
      return carry(next, total * shrink + pl::sum(weights, {.axis = 1, .keepdims = true}),
                   sum * shrink + dot(weights.astype(f16), v[{now, _}]));
    };
    const auto [top, total, sum] =
        loop(0, key_blocks, add, full({queries, 1}, p.by_two ? p.low * log2e : p.low, f32),
             zeros({queries, 1}, f32), zeros({queries, p.d}, f32));
    o[_] = sum / total;
  };
  const std::int64_t keys = block_keys * key_blocks;
  return traced(body,
                {.name = "hidden_blocks",
                 .out_type = ShapeDtype{{queries, p.d}, f32},
                 .compiler_params = {.num_warps = 4, .approx_math = true}},
                {array({queries, p.d}, f16), array({keys, p.d}, f16), array({keys, p.d}, f16),
                 array({keys}, i32), array({queries, keys}, f32)});
}

// Of which sequence keys are, and the same as numbers that are added.
void hide_first_block(test::Call& call, float low) {
  const std::int64_t keys = block_keys * key_blocks;
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(keys), 1);
  std::fill_n(numbers.begin(), block_keys, 0);
  std::vector<float> sums(static_cast<std::size_t>(queries * keys), 0);
  for (int row = 32; row < queries; ++row) std::fill_n(sums.begin() + row * keys, block_keys, low);
  std::memcpy(call.arrays[3].data(), numbers.data(), numbers.size() * 4);
  std::memcpy(call.arrays[4].data(), sums.data(), sums.size() * 4);
}

bool all_finite(const test::Call& call) {
  const std::vector<std::byte>& bytes = call.arrays.back();
  std::vector<float> all(bytes.size() / 4);
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return std::ranges::all_of(all, [](float x) { return std::isfinite(x) && std::abs(x) < 100; });
}

}  // namespace

TEST_CASE("a block of which a mask leaves nothing of a row has no weight under approximate maths") {
  for (const Hides how : {Hides::by_place, Hides::by_data, Hides::by_sum, Hides::by_factor})
    for (const bool by_two : {false, true})
      for (const int d : {32, 64, 128})
        for (const float low : {-1e9f, -1e10f, -1e30f}) {
          INFO("d " << d << ", " << low << ", kind " << static_cast<int>(how) << ", by two "
                    << by_two);
          const graph::Graph g = hidden_blocks({d, low, how, by_two});
          Random random(3);
          test::Call here = random_call(g, {}, random, true);
          hide_first_block(here, low);
          test::Call there = here;
          const test::Call before = here;
          run_interpreter(g, here);
          CHECK(all_finite(here));
          if (!is_full() && d != 128) continue;
          run_emulator(cuda::lower(g, {.compute_capability = 90}), there);
          CHECK(difference(g, here, there, tolerance_of(g, before)) == "");
        }
}
