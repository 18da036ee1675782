// Operands of products that are loaded with masks: of what TMA brings whole, what a mask leaves out
// is cleared, in iterations in which it leaves anything out.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "codegen/base/format.hpp"
#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

constexpr int rows = 64, keys = 64, d = 64, most = 320;

int count(const lowered::Statements& list,
          const std::function<bool(const lowered::Statement&)>& is) {
  int n = 0;
  for (const lowered::Statement& s : list) {
    n += is(s);
    lowered::for_each_body(s, [&](const lowered::Statements& body) { n += count(body, is); });
  }
  return n;
}
int count_masked(const lowered::Program& l) {
  int n = 0;
  lowered::for_each_list(l, [&](const lowered::Statements& list) {
    n += count(list, [](const lowered::Statement& s) {
      return std::holds_alternative<lowered::IfMasked>(s.what);
    });
  });
  return n;
}

// starts[i] to starts[i + 1]: the rows of a sequence, one behind the other; a program has 64 of
// one.
graph::Graph attention_of_lengths(const CompilerParams& params, bool causal) {
  const auto body = [=](Ref starts, Ref q, Ref k, Ref v, Ref o) {
    const Value start = starts[program_id(0)], stop = starts[program_id(0) + 1];
    const Value first = start + program_id(1) * rows;
    when(first < stop, [&] {
      const Value row = iota(i32, {rows, 1}, 0) + first;
      const Value asked = load(q.at({ds(first, rows), _}), {.mask = row < stop, .other = 0});
      const auto iteration = [&](Index i, Value top, Value total, Value sums) {
        const Value at = start + i * keys, key = iota(i32, {keys, 1}, 0) + at;
        const Value column = iota(i32, {1, keys}, 1) + at;
        const auto block = [&](const Ref& x) {
          return load(x.at({ds(at, keys), _}), {.mask = key < stop, .other = 0});
        };
        const Value s = dot(asked, block(k), {.trans_b = true}) * 0.17f;
        const Value seen = causal ? (column <= row) & (column < stop) : column < stop;
        const Value masked = where(seen, s, -1e30f);
        const Value next = maximum(top, max(masked, {.axis = {1}, .keepdims = true}));
        const Value p = exp2(masked - next), shrink = exp2(top - next);
        return carry(next, total * shrink + sum(p, {.axis = {1}, .keepdims = true}),
                     sums * shrink + dot(p.astype(f16), block(v)));
      };
      const auto [top, total, sums] =
          loop(0, cdiv(stop - start, keys), iteration, full({rows, 1}, -1e30f, f32),
               zeros({rows, 1}, f32), zeros({rows, d}, f32));
      store(o.at({ds(first, rows), _}), (sums / total).astype(f16), {.mask = row < stop});
    });
  };
  const auto whole = [](Index, Index, Ref) { return Indices{0, 0}; };
  return traced(
      body,
      {.name = "of_lengths",
       .out_type = ShapeDtype{{most, d}, f16},
       .num_scalar_prefetch = 1,
       .grid = {3, 5},
       .in_specs = {{{most, d}, whole}, {{most, d}, whole}, {{most, d}, whole}},
       .out_specs = {{{most, d}, whole}},
       .compiler_params = params},
      {array({4}, i32), array({most, d}, f16), array({most, d}, f16), array({most, d}, f16)});
}

test::Call call_with_starts(const graph::Graph& g, const std::array<std::int32_t, 4>& starts) {
  Random random(5);
  test::Call call = random_call(g, {}, random, true);
  std::memcpy(call.arrays[0].data(), starts.data(), sizeof starts);
  return call;
}

// Against the interpreter.
std::string difference_of(const graph::Graph& g, int cc,
                          const std::array<std::int32_t, 4>& starts) {
  const lowered::Program l = cuda::lower(g, {.compute_capability = cc});
  const test::Call before = call_with_starts(g, starts);
  test::Call here = before, there = before;
  run_interpreter(g, here);
  run_emulator(l, there);
  return difference(g, here, there, tolerance_of(g, before));
}

}  // namespace

TEST_CASE("sequences of any lengths, one behind the other, are fetched as they lie") {
  const std::array<std::int32_t, 4> all[] = {
      {0, 64, 192, 320}, {0, 1, 65, 320},    {7, 7, 70, 300},     {0, 63, 63, 64},
      {0, 0, 0, 0},      {1, 320, 320, 320}, {100, 229, 230, 319}};
  std::size_t n = 0;
  for (const std::optional<bool> specialize : {std::optional(true), std::optional(false)})
    for (const int stages : {2, 3}) {
      for (const bool causal : {false, true}) {
        CompilerParams params{.num_warps = 4, .num_stages = stages, .warp_specialize = specialize};
        params.allow_revisit = true;
        params.dimension_semantics = {parallel, parallel};
        const graph::Graph g = attention_of_lengths(params, causal);
        INFO(stages << " stages, causal " << causal << ", a producer " << *specialize);
        const lowered::Program l = cuda::lower(g, {.compute_capability = 90});
        CHECK(count_masked(l) >= 3);
        CHECK(protocol_problem(l) == "");
        for (const auto& starts : all)
          if (is_full() || ++n % 3 == 0) {
            INFO(starts[0] << " " << starts[1] << " " << starts[2] << " " << starts[3]);
            CHECK(difference_of(g, 90, starts) == "");
          }
      }
    }
}

namespace {

/// What a mask is made of: rows and columns of a block, numbers of its begin along both.
struct Asked {
  Value row, column, i, k, limit;
};

struct Mask {
  const char* name;
  std::function<Value(const Asked&)> of_a, of_b;  // none: without
  bool by_tma = true;
  int other = 0;
};

const Mask masks[] = {
    {"the end of K", [](const Asked& t) { return t.column + t.k < t.limit; },
     [](const Asked& t) { return t.row + t.k < t.limit; }},
    {"the end of K in A alone", [](const Asked& t) { return t.column + t.k < t.limit; }, {}},
    {"rows of A", [](const Asked& t) { return t.row + t.i < t.limit; }, {}},
    {"rows of A and the end of K",
     [](const Asked& t) { return (t.row + t.i < 100) & (t.column + t.k < t.limit); },
     [](const Asked& t) { return t.row + t.k < t.limit; }},
    {"columns of B", {}, [](const Asked& t) { return t.column < t.limit; }},
    {"a triangle", [](const Asked& t) { return t.column + t.k <= t.row + t.i; }, {}},
    {"not a triangle", [](const Asked& t) { return !(t.column + t.k <= t.row + t.i); }, {}},
    {"what is odd, which nobody knows beforehand",
     [](const Asked& t) { return (t.column + t.row) % 2 == 0; },
     {},
     false},
    {"where another number than 0 stands",
     [](const Asked& t) { return t.row + t.i < t.limit; },
     {},
     false,
     1},
};

enum class Style { loop, grid };

graph::Graph masked_product(const Mask& m, Style style, int steps, const CompilerParams& params) {
  const auto step = [=](const Ref& limits, const Ref& a, const Ref& b, const Value& k) {
    const Value limit = limits[0], i = program_id(0) * rows;
    const auto block = [&](const Ref& x, const auto& mask, int height, int width) {
      const Asked asked{iota(i32, {height, 1}, 0), iota(i32, {1, width}, 1), i, k, limit};
      if (!mask) return load(x);
      return load(x, {.mask = broadcast_to(mask(asked), {height, width}), .other = m.other});
    };
    return dot(block(a, m.of_a, rows, 64), block(b, m.of_b, 64, 128));
  };
  PallasCallOptions options{.name = "masked_product",
                            .out_type = ShapeDtype{{128, 128}, f32},
                            .num_scalar_prefetch = 1,
                            .compiler_params = params};
  const std::vector<trace::ArgumentType> types{array({1}, i32), array({128, 64 * steps}, f16),
                                               array({64 * steps, 128}, f16)};
  if (style == Style::grid) {
    options.grid = {2, steps};
    options.in_specs = {{{rows, 64},
                         [](Index i, Index k, Ref) {
                           return Indices{i, k};
                         }},
                        {{64, 128}, [](Index, Index k, Ref) {
                           return Indices{k, 0};
                         }}};
    options.out_specs = {{{rows, 128}, [](Index i, Index, Ref) { return Indices{i, 0}; }}};
    options.compiler_params.dimension_semantics = {parallel, sequential};
    return traced(
        [=](Ref limits, Ref a, Ref b, Ref o) {
          when(program_id(1) == 0, [&] { o[_] = zeros({rows, 128}, f32); });
          o[_] += step(limits, a, b, program_id(1) * 64);
        },
        options, types);
  }
  options.grid = {2};
  options.in_specs = {{{rows, 64 * steps},
                       [](Index i, Ref) {
                         return Indices{i, 0};
                       }},
                      {{64 * steps, 128}, [](Index, Ref) {
                         return Indices{0, 0};
                       }}};
  options.out_specs = {{{rows, 128}, [](Index i, Ref) { return Indices{i, 0}; }}};
  return traced(
      [=](Ref limits, Ref a, Ref b, Ref o) {
        o[_] = loop(
            0, steps,
            [&](Index n, Value s) {
              return s + step(limits, a.at({_, ds(n * 64, 64)}), b.at({ds(n * 64, 64), _}), n * 64);
            },
            zeros({rows, 128}, f32));
      },
      options, types);
}

}  // namespace

TEST_CASE("masks of any kind leave out of products what they say") {
  std::size_t n = 0;
  for (const Mask& m : masks)
    for (const Style style : {Style::loop, Style::grid})
      for (const std::optional<bool> specialize : {std::optional(true), std::optional(false)}) {
        if (!is_full() && ++n % 2 == 0) continue;
        const graph::Graph g = masked_product(
            m, style, 4, {.num_warps = 4, .num_stages = 3, .warp_specialize = specialize});
        const lowered::Program l = cuda::lower(g, {.compute_capability = 90});
        INFO(m.name << (style == Style::loop ? ", loop" : ", grid") << ", a producer "
                    << *specialize);
        CHECK((count_masked(l) > 0) == m.by_tma);
        CHECK(protocol_problem(l) == "");
        for (const std::int32_t limit : {0, 1, 63, 64, 130, 256}) {
          INFO("up to " << limit);
          Random random(3);
          test::Call here = random_call(g, {}, random, true);
          std::memcpy(here.arrays[0].data(), &limit, 4);
          test::Call there = here;
          run_interpreter(g, here);
          run_emulator(l, there);
          CHECK(difference(g, here, there) == "");
        }
      }
}

namespace {

// Two products with operands that one mask is said for, once for both.
graph::Graph products_under_one_mask(const CompilerParams& params, int steps) {
  const auto body = [=](Ref limits, Ref a, Ref b, Ref w, Ref o) {
    const Value limit = limits[0];
    const auto add = [&](Index n, Value sum) {
      const Value at = n * 64, key = iota(i32, {1, 64}, 1) + at;
      const Value inside = broadcast_to(key < limit, {rows, 64});
      const auto block = [&](const Ref& x) {
        return load(x.at({_, ds(at, 64)}), {.mask = inside, .other = 0});
      };
      const Value weights = load(w.at({ds(at, 64), _}));
      return sum + dot(block(a), weights) - dot(block(b), weights);
    };
    o[_] = loop(0, steps, add, zeros({rows, 128}, f32));
  };
  const auto row = [](Index i, Ref) { return Indices{i, 0}; };
  return traced(body,
                {.name = "under_one_mask",
                 .out_type = ShapeDtype{{128, 128}, f32},
                 .num_scalar_prefetch = 1,
                 .grid = {2},
                 .in_specs = {{{rows, 64 * steps}, row},
                              {{rows, 64 * steps}, row},
                              {{64 * steps, 128},
                               [](Index, Ref) {
                                 return Indices{0, 0};
                               }}},
                 .out_specs = {{{rows, 128}, row}},
                 .compiler_params = params},
                {array({1}, i32), array({128, 64 * steps}, f16), array({128, 64 * steps}, f16),
                 array({64 * steps, 128}, f16)});
}

}  // namespace

TEST_CASE(
    "a mask that several operands have in common is asked in iterations that it decides not") {
  for (const std::optional<bool> specialize : {std::optional(true), std::optional(false)}) {
    const graph::Graph g = products_under_one_mask(
        {.num_warps = 4, .num_stages = 3, .warp_specialize = specialize}, 4);
    const lowered::Program l = cuda::lower(g, {.compute_capability = 90});
    INFO("a producer " << *specialize);
    CHECK(count_masked(l) >= 2);
    const bool keeps_it = std::ranges::any_of(
        l.storages, [](const lowered::Storage& s) { return s.dtype.is_bool() && !s.is_scalar(); });
    CHECK(!keeps_it);
    CHECK(protocol_problem(l) == "");
    for (const std::int32_t limit : {0, 1, 64, 130, 256}) {
      INFO("up to " << limit);
      Random random(3);
      test::Call here = random_call(g, {}, random, true);
      std::memcpy(here.arrays[0].data(), &limit, 4);
      test::Call there = here;
      const test::Call before = here;
      run_interpreter(g, here);
      run_emulator(l, there);
      CHECK(difference(g, here, there, tolerance_of(g, before)) == "");
    }
  }
}
