// Sums along axes on which nothing is done from some iteration on: loops end there.
#include "tests/support/targets.hpp"
#include "tests/user_kernels/along_k.hpp"

#include <cmath>
#include <limits>

#include "codegen/base/format.hpp"
#include "palladium/gpu.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

constexpr std::int64_t steps = 6, bm = 64, bk = 32, bn = 64;
constexpr std::int32_t lowest_end = std::numeric_limits<std::int32_t>::min(),
                       highest_end = std::numeric_limits<std::int32_t>::max();

struct Ending {
  const char* name;
  Value (*goes_on)(const Value& k, const Value& n);
  std::int64_t (*iterations)(std::int64_t n);  // that go on, of any number of them
};

std::int64_t above_zero(std::int64_t n) { return std::clamp<std::int64_t>(n, 0, steps); }

const Ending endings[] = {
    {"k < n", [](const Value& k, const Value& n) { return k < n; }, above_zero},
    {"n > k", [](const Value& k, const Value& n) { return n > k; }, above_zero},
    {"k <= n", [](const Value& k, const Value& n) { return k <= n; },
     [](std::int64_t n) { return above_zero(n + 1); }},
    {"k * 32 < n", [](const Value& k, const Value& n) { return k * 32 < n; },
     [](std::int64_t n) { return above_zero(n <= 0 ? 0 : (n - 1) / 32 + 1); }},
    {"n >= 3 * k", [](const Value& k, const Value& n) { return n >= 3 * k; },
     [](std::int64_t n) { return above_zero(n < 0 ? 0 : n / 3 + 1); }},
    // Wraps around.
    {"k * 2^30 < n", [](const Value& k, const Value& n) { return k * (1 << 30) < n; },
     [](std::int64_t n) {
       std::int64_t on = 0;
       for (std::int64_t k = 0; k < steps; ++k)
         on += static_cast<std::int32_t>(static_cast<std::uint32_t>(k) << 30) < n;
       return on;
     }},
};

// Where sums are, and what else an iteration does.
enum class Form : std::uint8_t { scratch, output, beside, persistent };

// Sums of products with blocks of b that a table names, of row i for as long as ends[i] says.
Kernel sums(const Ending& ending, Form form) {
  const auto goes_on = ending.goes_on;
  const bool in_output = form == Form::output || form == Form::beside;
  const auto body = [=](Ref ends, Ref, Ref a, Ref b, Ref o, Ref done, Ref s) {
    const Value k = program_id(1);
    const Ref sum = in_output ? o : s;
    when(k == 0, [&] {
      sum[_] = zeros({bm, bn}, f32);
      done[{0, 0}] = Value(0);
    });
    when(goes_on(k, ends[program_id(0)]), [&] { sum[_] += dot(a[_], b[_]); });
    if (form == Form::beside) done[{0, 0}] = done[{0, 0}] + 1;
    if (!in_output) when(k == num_programs(1) - 1, [&] { o[_] = s[_]; });
  };
  const BlockSpec a{{bm, bk},
                    [](Index i, Index k, Ref, Ref) {
                      return Indices{i, k};
                    }},
      b{{bk, bn},
        [](Index i, Index k, Ref, Ref table) {
          return Indices{table[{i, k}], 0};
        }},
      o{{bm, bn},
        [](Index i, Index, Ref, Ref) {
          return Indices{i, 0};
        }},
      done{{1, 1}, [](Index i, Index, Ref, Ref) {
             return Indices{i, 0};
           }};
  return pallas_call(body, {.name = "sums",
                            .out_type = {{{2 * bm, bn}, f32}, {{2, 1}, i32}},
                            .num_scalar_prefetch = 2,
                            .grid = {2, steps},
                            .in_specs = {a, b},
                            .out_specs = {o, done},
                            .scratch_types = {gpu::REGS({bm, bn}, f32)},
                            .compiler_params = {.dimension_semantics = {parallel, sequential},
                                                .persistent = form == Form::persistent}});
}

// Blocks behind the end are no numbers.
void check(Target target, const Kernel& kernel, const Ending& ending, Form form,
           const std::array<std::int32_t, 2>& ends) {
  const auto block = [](std::int64_t i, std::int64_t k) { return (5 * k + i) % steps; };
  std::array<std::int64_t, 2> iterations{};
  for (const std::size_t i : {0, 1}) iterations[i] = ending.iterations(ends[i]);
  const Array n = make_array<std::int32_t>(
      {2}, [&](std::int64_t i) { return ends[static_cast<std::size_t>(i)]; });
  const bool wraps = std::string_view(ending.name).find("2^30") != std::string_view::npos;
  const Array table = make_array<std::int32_t>({2, steps}, [&](std::int64_t at) {
    const std::int64_t i = at / steps, k = at % steps;
    return wraps || k < iterations[static_cast<std::size_t>(i)] ? block(i, k) : steps;
  });
  const Array a = make_array<float16_t>({2 * bm, steps * bk}, [](std::int64_t) { return 1.0f; });
  const Array b = make_array<float16_t>({(steps + 1) * bk, bn}, [](std::int64_t at) {
    const std::int64_t of = at / (bk * bn);
    return of == steps ? NAN : static_cast<float>(of + 1);
  });
  const auto results =
      kernel.on(target)(on(target, n), on(target, table), on(target, a), on(target, b));
  for (const std::int64_t i : {0, 1}) {
    float expected = 0;
    for (std::int64_t k = 0; k < steps; ++k) {
      const auto as_asked = wraps ? static_cast<std::int32_t>(static_cast<std::uint32_t>(k) << 30) <
                                        ends[static_cast<std::size_t>(i)]
                                  : k < iterations[static_cast<std::size_t>(i)];
      if (as_asked) expected += static_cast<float>(bk * (block(i, k) + 1));
    }
    CAPTURE(i, ends[static_cast<std::size_t>(i)]);
    CHECK(on_cpu(results[0]).values<float>()[static_cast<std::size_t>(i * bm * bn + 77)] ==
          expected);
    if (form == Form::beside)
      CHECK(on_cpu(results[1]).values<std::int32_t>()[static_cast<std::size_t>(i)] == steps);
  }
}

}  // namespace

TEST_CASE("sums along an axis end where its condition says, however that is asked") {
  for (const Ending& ending : endings)
    for_each_target(ending.name, [&](Target target) {
      for (const Form form : {Form::scratch, Form::output, Form::beside, Form::persistent}) {
        CAPTURE(static_cast<int>(form));
        const Kernel kernel = sums(ending, form);
        for (const auto& ends : {std::array{0, 1},
                                 {2, 5},
                                 {6, 7},
                                 {64, 97},
                                 {lowest_end, highest_end},
                                 {-1, highest_end - 1},
                                 {160, 192}})
          check(target, kernel, ending, form, ends);
      }
    });
}

TEST_CASE("an end that iterations change is asked for in each of them") {
  const BlockSpec a{{bm, bk},
                    [](Index k) {
                      return Indices{0, k};
                    }},
      b{{bk, bn},
        [](Index k) {
          return Indices{k, 0};
        }},
      o{{bm, bn},
        [](Index) {
          return Indices{0, 0};
        }},
      left{{1}, [](Index) { return Indices{0}; }};
  const auto body = [](Ref a, Ref b, Ref, Ref o, Ref left) {
    const Value k = program_id(0);
    when(k == 0, [&] { o[_] = zeros({bm, bn}, f32); });
    when(k < left[0], [&] {
      o[_] += dot(a[_], b[_]);
      left[_] = left[_] - 1;
    });
  };
  const Kernel sums = pallas_call(body, {.name = "sums",
                                         .out_type = {{{bm, bn}, f32}, {{1}, i32}},
                                         .grid = {steps},
                                         .in_specs = {a, b, left},
                                         .out_specs = {o, left},
                                         .input_output_aliases = {{2, 1}},
                                         .compiler_params = {.dimension_semantics = {sequential}}});
  const Array ones = make_array<float16_t>({bm, steps * bk}, [](std::int64_t) { return 1.0f; });
  for_each_target("of a block", [&](Target target) {
    for (const int n : {0, 1, 4, 5, 6}) {
      const Array end = make_array<std::int32_t>({1}, [&](std::int64_t) { return n; });
      const auto results = sums.on(target)(
          on(target, ones), on(target, ones.reshape({steps * bk, bn})), on(target, end));
      CAPTURE(n);
      CHECK(on_cpu(results[0]).values<float>()[77] == static_cast<float>(bk * ((n + 1) / 2)));
    }
  });
}

TEST_CASE("an axis ends by what a program knows in front of it, whatever that is made of") {
  using Asked = std::function<Value(const Step&)>;
  const Asked endings[] = {
      [](const Step& s) { return s.k <= s.i; },
      [](const Step& s) { return s.i >= s.k; },
      [](const Step& s) { return s.k < s.i * 3; },
      [](const Step& s) { return s.k * 32 < (s.i + 1) * 48; },
      [](const Step& s) { return s.k < s.n - 1; },
      [](const Step& s) { return s.k < 2; },
      [](const Step& s) { return (s.k <= s.i) & (s.k < 3); },
  };
  for (const Asked& goes_on : endings)
    for (const Held held : {Held::registers, Held::shared, Held::output})
      for (const bool persistent : {false, true}) {
        const auto body = [&](const Step& s) {
          s.start(1);
          when(goes_on(s), [&] { s.s[_] += s.product(); });
          s.finish();
        };
        CAPTURE(&goes_on - endings, static_cast<int>(held), persistent);
        CHECK(problem_of(along_k({.held = held, .steps = 4, .persistent = persistent}, body), {},
                         90) == "");
        CHECK(problem_of(along_k({.held = held, .steps = 4}, body), {}, 80) == "");
        for (const std::int64_t some : {1, 5})
          CHECK(problem_of(along_k({.held = held}, body), {some}, 90) == "");
      }
}

TEST_CASE("causal attention along an axis ends at its diagonal") {
  constexpr std::int64_t rows = 64, columns = 32, d = 48, queries = 150;
  const auto body = [](Ref q, Ref k, Ref v, Ref o, Ref top, Ref total, Ref sums) {
    const Value i = program_id(0), j = program_id(1);
    when(j == 0, [&] {
      top[_] = full({rows, 1}, -1e30f, f32);
      total[_] = zeros({rows, 1}, f32);
      sums[_] = zeros({rows, d}, f32);
    });
    when(j * static_cast<int>(columns) <= i * static_cast<int>(rows) + static_cast<int>(rows) - 1,
         [&] {
           const Value row = iota(i32, {rows, 1}, 0) + i * static_cast<int>(rows),
                       column = iota(i32, {1, columns}, 1) + j * static_cast<int>(columns);
           const Value seen = (column <= row) & (column < static_cast<int>(queries));
           const Value s = where(seen, dot(q[_], k[_], {.trans_b = true}), -1e30f);
           const Value most = maximum(top[_], max(s, {.axis = 1, .keepdims = true}));
           const Value p = exp(s - most), scale = exp(top[_] - most);
           const Value values = where(iota(i32, {columns, 1}, 0) + j * static_cast<int>(columns) <
                                          static_cast<int>(queries),
                                      v[_], Value(0));
           total[_] = total[_] * scale + sum(p, {.axis = 1, .keepdims = true});
           sums[_] = sums[_] * scale + dot(p.astype(f16), values);
           top[_] = most;
         });
    when(j == num_programs(1) - 1, [&] { o[_] = (sums[_] / total[_]).astype(f16); });
  };
  const auto by_row = [](Index i, Index) { return Indices{i, 0}; };
  const auto by_column = [](Index, Index j) { return Indices{j, 0}; };
  const graph::Graph g = traced(
      body,
      {.name = "causal",
       .out_type = ShapeDtype{{queries, d}, f16},
       .grid = {cdiv(queries, rows), cdiv(queries, columns)},
       .in_specs = {{{rows, d}, by_row}, {{columns, d}, by_column}, {{columns, d}, by_column}},
       .out_specs = {{{rows, d}, by_row}},
       .scratch_types = {gpu::REGS({rows, 1}, f32), gpu::REGS({rows, 1}, f32),
                         gpu::REGS({rows, d}, f32)}},
      {array({queries, d}, f16), array({queries, d}, f16), array({queries, d}, f16)});
  for (const int compute_capability : {80, 90, 120})
    CHECK(problem_of(g, {}, compute_capability) == "");
}
