// Loops with products from bounds that are computed, over several axes, by several warpgroups, and
// chains of products along an axis: interpreter and emulator agree, races on.
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

void check(const std::string& name, const graph::Graph& g,
           const std::vector<std::int64_t>& symbols = {},
           const std::vector<int>& architectures = {90, 80}) {
  for (const int cc : architectures) {
    INFO(name << " on " << cc);
    try {
      CHECK(problem_of(g, symbols, cc) == "");
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
}

// ---- bounds

struct Bounds {
  std::function<Value(const Value&i)> low, high;
  std::int64_t base = 0, step = 1;  // the block of an iteration is (i - base) / step
  const char* name = "";
  int programs = 4;
};

enum class Loop { one, two, attention };
enum class Style { loop, grid };

// A sum of products, two of them that share an operand, or a chain of two products.
graph::Graph over(const Bounds& t, Loop kind, int stages, std::optional<bool> specialize) {
  const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
    const Value i = program_id(0);
    const Value x = q[_];
    const auto block = [&](const Ref& of, const Value& n) -> Value {
      return of[{ds((n - Value(static_cast<int>(t.base))) / static_cast<int>(t.step) * 32, 32), _}];
    };
    const auto one = [&](Index n, Value sum) {
      return sum + dot(x, block(k, n), {.trans_b = true}).astype(f32);
    };
    const auto two = [&](Index n, Value a, Value b) {
      return carry(a + dot(x, block(k, n), {.trans_b = true}),
                   b + dot(x, block(v, n), {.trans_b = true}));
    };
    const auto chain = [&](Index n, Value top, Value total, Value acc) {
      const Value s = dot(x, block(k, n), {.trans_b = true}) * 0.0625f;
      const Value next = maximum(top, max(s, {.axis = {1}, .keepdims = true}));
      const Value p = exp2(s - next), shrink = exp2(top - next);
      return carry(next, total * shrink + pl::sum(p, {.axis = {1}, .keepdims = true}),
                   acc * shrink + dot(p.astype(f16), block(v, n)));
    };
    const LoopOptions by{.step = t.step};
    const Value none = zeros({64, 32}, f32), low = t.low(i), high = t.high(i);
    if (kind == Loop::one) {
      o[_] = loop(low, high, by, one, none);
    } else if (kind == Loop::two) {
      const auto [a, b] = loop(low, high, by, two, none, none);
      o[_] = a - b;
    } else {
      const auto [top, total, acc] =
          loop(low, high, by, chain, full({64, 1}, -1e30f, f32), zeros({64, 1}, f32), none);
      o[_] = acc / maximum(total, 1);
    }
  };
  const auto own = [](Index i) { return Indices{i, 0}; };
  const auto all = [](Index) { return Indices{0, 0}; };
  const Dim rows = 64 * t.programs;
  return traced(body,
                {.name = "over",
                 .out_type = ShapeDtype{{rows, 32}, f32},
                 .grid = {t.programs},
                 .in_specs = {{{64, 32}, own}, {{512, 32}, all}, {{512, 32}, all}},
                 .out_specs = {{{64, 32}, own}},
                 .compiler_params = {.num_stages = stages, .warp_specialize = specialize}},
                {array({rows, 32}, f16), array({512, 32}, f16), array({512, 32}, f16)});
}

const Bounds bounds[] = {
    {[](const Value& i) { return i; }, [](const Value&) { return Value(3); }, 0, 1,
     "from the program's number to 3"},
    {[](const Value& i) { return i / 2; }, [](const Value& i) { return i; }, 0, 1,
     "from half of it to it"},
    {[](const Value& i) { return maximum(i - 1, 0); }, [](const Value& i) { return i + 1; }, 0, 1,
     "a window"},
    {[](const Value& i) { return i; }, [](const Value& i) { return i * 3; }, 0, 2, "by two"},
    {[](const Value& i) { return i - 5; }, [](const Value& i) { return i * 2 - 5; }, -5, 1,
     "below zero"},
    {[](const Value& i) { return INT32_MAX - i; }, [](const Value&) { return Value(INT32_MAX); },
     INT32_MAX - 5, 1, "to the largest number"},
    {[](const Value& i) { return INT32_MAX - 1 - 2 * i; },
     [](const Value&) { return Value(INT32_MAX); }, INT32_MAX - 11, 2,
     "to the largest number by two"},
    {[](const Value& i) { return INT32_MIN + i; },
     [](const Value&) { return Value(INT32_MIN + 2); }, INT32_MIN, 1, "from the least number"},
    {[](const Value&) { return Value(INT32_MAX - 1); },
     [](const Value& i) { return INT32_MAX - 2 + i; }, INT32_MAX - 5, 3, "a step over the end"},
};

// ---- axes

// Two axes after the parallel one, the sum begun by the first of both and stored by the last, or of
// the inner one alone, and then added to the output.
graph::Graph two_axes(bool both, MemorySpace where, bool persistent) {
  const auto body = [=](Ref a, Ref b, Ref o, Ref s) {
    const Value k = program_id(1), l = program_id(2);
    const Value first = l == 0, last = l == num_programs(2) - 1;
    if (both) {
      when((k == 0) & first, [&] { s[_] = zeros({64, 64}, f32); });
      s[_] += dot(a[_], b[_]);
      when((k == num_programs(1) - 1) & last, [&] { o[_] = s[_]; });
      return;
    }
    when(k == 0, [&] { when(first, [&] { o[_] = full({64, 64}, 3, f32); }); });
    when(first, [&] { s[_] = full({64, 64}, k.astype(f32), f32); });
    s[_] += dot(a[_], b[_]);
    when(last, [&] { o[_] += s[_] * 2; });
  };
  return traced(body,
                {.name = "two_axes",
                 .out_type = ShapeDtype{{320, 64}, f32},
                 .grid = {5, 2, 3},
                 .in_specs = {{{64, 32},
                               [](Index i, Index k, Index l) {
                                 return Indices{i, k * 3 + l};
                               }},
                              {{32, 64},
                               [](Index, Index k, Index l) {
                                 return Indices{k * 3 + l, 0};
                               }}},
                 .out_specs = {{{64, 64},
                                [](Index i, Index, Index) {
                                  return Indices{i, 0};
                                }}},
                 .scratch_types = {where({64, 64}, f32)},
                 .compiler_params = {.dimension_semantics = {parallel, sequential, sequential},
                                     .persistent = persistent}},
                {array({320, 192}, f16), array({192, 64}, f16)});
}

// Scratch of `rows` x `columns`, of which parts are added to.
graph::Graph in_parts(int rows, int columns, MemorySpace where, bool parts, int warps) {
  const auto body = [=](Ref a, Ref b, Ref o, Ref s) {
    const Value k = program_id(0);
    when(k == 0, [&] { s[_] = zeros({rows, columns}, f32); });
    if (parts) {
      for (const int half : {0, 1}) {
        const Slice at = ds(half * rows / 2, rows / 2);
        s[{at, _}] = s[{at, _}] + dot(a[{at, _}], b[_]);
      }
    } else {
      s[_] += dot(a[_], b[_]);
    }
    when(k == num_programs(0) - 1, [&] { o[_] = s[_]; });
  };
  return traced(body,
                {.name = "in_parts",
                 .out_type = ShapeDtype{{rows, columns}, f32},
                 .grid = {3},
                 .in_specs = {{{rows, 32},
                               [](Index k) {
                                 return Indices{0, k};
                               }},
                              {{32, columns},
                               [](Index k) {
                                 return Indices{k, 0};
                               }}},
                 .out_specs = {{{rows, columns},
                                [](Index) {
                                  return Indices{0, 0};
                                }}},
                 .scratch_types = {where({rows, columns}, f32)},
                 .compiler_params = {.dimension_semantics = {sequential}, .num_warps = warps}},
                {array({rows, 96}, f16), array({96, columns}, f16)});
}

// Of two sums the first is sent, and the second is still added up meanwhile: in four iterations of
// three slots, the last of which has the one where the ring begins.
graph::Graph sent_beside(Style style, bool both_first) {
  const auto finish = [=](const Ref& o, const Ref& rows, const Value& a, const Value& b) {
    if (both_first) rows[_] = pl::sum(b, {.axis = {1}, .keepdims = true});
    o[_] = a.astype(bf16);
    if (!both_first) rows[_] = pl::sum(b, {.axis = {1}, .keepdims = true});
  };
  const Shape whole{128, 64}, numbers{128, 1};
  PallasCallOptions options{.name = "sent_beside",
                            .out_type = {ShapeDtype{whole, bf16}, ShapeDtype{numbers, f32}},
                            .compiler_params = {.num_stages = 3}};
  const std::vector<trace::ArgumentType> types{array({128, 256}, bf16), array({256, 64}, bf16),
                                               array({256, 64}, bf16)};
  if (style == Style::loop) {
    const auto some = [](Index i) { return Indices{i, 0}; };
    const auto all = [](Index) { return Indices{0, 0}; };
    options.grid = {2};
    options.in_specs = {{{64, 256}, some}, {{256, 64}, all}, {{256, 64}, all}};
    options.out_specs = {{{64, 64}, some}, {{64, 1}, some}};
    return traced(
        [=](Ref x, Ref y, Ref z, Ref o, Ref rows) {
          const auto add = [&](Index k, Value a, Value b) {
            const Slice now = ds(k * 64, 64);
            const Value left = x[{_, now}];
            return carry(a + dot(left, y[{now, _}]), b + dot(left, z[{now, _}]));
          };
          const auto [a, b] = loop(0, 4, add, zeros({64, 64}, f32), zeros({64, 64}, f32));
          finish(o, rows, a, b);
        },
        options, types);
  }
  const auto some = [](Index i, Index) { return Indices{i, 0}; };
  const auto right = [](Index, Index k) { return Indices{k, 0}; };
  options.grid = {2, 4};
  options.in_specs = {{{64, 64},
                       [](Index i, Index k) {
                         return Indices{i, k};
                       }},
                      {{64, 64}, right},
                      {{64, 64}, right}};
  options.out_specs = {{{64, 64}, some}, {{64, 1}, some}};
  options.scratch_types = {gpu::REGS({64, 64}, f32), gpu::REGS({64, 64}, f32)};
  options.compiler_params.dimension_semantics = {parallel, sequential};
  return traced(
      [=](Ref x, Ref y, Ref z, Ref o, Ref rows, Ref a, Ref b) {
        const Value k = program_id(1);
        when(k == 0, [&] { a[_] = zeros({64, 64}, f32), b[_] = zeros({64, 64}, f32); });
        const Value left = x[_];
        a[_] += dot(left, y[_]);
        b[_] += dot(left, z[_]);
        when(k == 3, [&] {
          const Value first = a[_], second = b[_];
          finish(o, rows, first, second);
        });
      },
      options, types);
}

// ---- several Pallas threads

// Each of two warpgroups adds up products of its rows, in scratch of which each has a part or a
// copy.
graph::Graph by_warpgroups(bool shared) {
  const Body body = [=](Ref a, Ref b, Ref o, Ref s) {
    const Value row = axis_index("i") * 128 + axis_index("wg") * 64;
    const auto sum = [&](const Ref& held) {
      held[_] = zeros({64, 64}, f32);
      loop(0, 4, [&](Index k) {
        held[_] += dot(a[{ds(row, 64), ds(k * 32, 32)}], b[{ds(k * 32, 32), _}]);
      });
      o[{ds(row, 64), _}] = held[_];
    };
    if (shared)
      sum(s.at(axis_index("wg")));
    else
      sum(s);
  };
  const Meshes meshes =
      gpu::Mesh{.grid = {2}, .grid_names = {"i"}, .num_threads = 2, .thread_name = "wg"};
  PallasCallOptions options{.name = "by_warpgroups", .out_type = {{256, 64}, f32}};
  options.scratch_types =
      shared ? ScratchTypes{gpu::SMEM({2, 64, 64}, f32)} : ScratchTypes{gpu::REGS({64, 64}, f32)};
  const std::vector<trace::ArgumentType> types{array({256, 128}, f16), array({128, 64}, f16)};
  return trace::trace({&body, 1}, options, types, here(), nullptr, nullptr, {},
                      {.meshes = &meshes, .is_list = meshes.is_list});
}

// ---- attention along an axis

struct Along {
  MemorySpace sums = gpu::REGS, numbers = gpu::REGS;
  int steps = 3, stages = 0;
  std::optional<bool> specialize = {};
  bool persistent = false, by_table = false;
};

graph::Graph attention_along(const Along& t) {
  const auto with = [=](const Ref& q, const Ref& k, const Ref& v, const Ref& o, const Ref& top,
                        const Ref& total, const Ref& acc) {
    const Value j = program_id(1);
    when(j == 0, [&] {
      top[_] = full({64, 1}, -1e30f, f32);
      total[_] = zeros({64, 1}, f32);
      acc[_] = zeros({64, 32}, f32);
    });
    const Value s = dot(q[_], k[_], {.trans_b = true}) * 0.0625f, before = top[_];
    const Value next = maximum(before, max(s, {.axis = {1}, .keepdims = true}));
    const Value p = exp2(s - next), shrink = exp2(before - next);
    total[_] = total[_] * shrink + pl::sum(p, {.axis = {1}, .keepdims = true});
    acc[_] = acc[_] * shrink + dot(p.astype(f16), v[_]);
    top[_] = next;
    when(j == num_programs(1) - 1, [&] { o[_] = acc[_] / total[_]; });
  };
  PallasCallOptions options{
      .name = "attention_along",
      .out_type = ShapeDtype{{320, 32}, f32},
      .num_scalar_prefetch = t.by_table ? 1 : 0,
      .grid = {5, t.steps},
      .scratch_types = {t.numbers({64, 1}, f32), t.numbers({64, 1}, f32), t.sums({64, 32}, f32)},
      .compiler_params = {.dimension_semantics = {parallel, sequential},
                          .num_stages = t.stages,
                          .warp_specialize = t.specialize,
                          .persistent = t.persistent}};
  if (t.by_table) {
    const auto own = [](Index i, Index, Ref) { return Indices{i, 0}; };
    const auto page = [](Index, Index j, Ref table) { return Indices{table[j], 0}; };
    options.in_specs = {{{64, 32}, own}, {{32, 32}, page}, {{32, 32}, page}};
    options.out_specs = {{{64, 32}, own}};
    return traced([=](Ref, Ref q, Ref k, Ref v, Ref o, Ref top, Ref total,
                      Ref acc) { with(q, k, v, o, top, total, acc); },
                  options,
                  {array({t.steps}, i32), array({320, 32}, f16), array({256, 32}, f16),
                   array({256, 32}, f16)});
  }
  const auto own = [](Index i, Index) { return Indices{i, 0}; };
  const auto block = [](Index, Index j) { return Indices{j, 0}; };
  options.in_specs = {{{64, 32}, own}, {{32, 32}, block}, {{32, 32}, block}};
  options.out_specs = {{{64, 32}, own}};
  return traced(
      with, options,
      {array({320, 32}, f16), array({32 * t.steps, 32}, f16), array({32 * t.steps, 32}, f16)});
}

}  // namespace

TEST_CASE("loops with products from computed bounds agree, of none to some iterations") {
  std::size_t number = 0;
  for (const Bounds& t : bounds)
    for (const Loop kind : {Loop::one, Loop::two, Loop::attention})
      for (const auto& [stages, specialize] : {std::pair{2, std::optional(true)},
                                               {3, std::optional(true)},
                                               {2, std::optional(false)}}) {
        const std::size_t turn = number++ % 3;
        if (!is_full() && (turn == 1 || (turn == 2 && kind != Loop::attention))) continue;
        INFO(t.name << ", kind " << static_cast<int>(kind) << ", " << stages << " stages, "
                    << *specialize);
        check("loop", over(t, kind, stages, specialize), {},
              is_full() ? std::vector{90, 80} : std::vector{turn == 2 ? 80 : 90});
      }
}

TEST_CASE("sums over two axes agree") {
  for (const bool both : {true, false})
    for (const bool persistent : {false, true})
      for (const auto& [name, where] : {std::pair{"registers", gpu::REGS}, {"shared", gpu::SMEM}}) {
        if (!is_full() && persistent != (std::string(name) == "registers")) continue;
        INFO(name << (both ? ", of both" : "") << (persistent ? ", persistent" : ""));
        check("two axes", two_axes(both, where, persistent));
      }
}

TEST_CASE("sums in scratch agree, however large it is and by whatever parts it is added to") {
  check("parts in shared memory", in_parts(128, 64, gpu::SMEM, true, 0));
  check("parts in registers", in_parts(128, 64, gpu::REGS, true, 0));
  check("more than registers", in_parts(256, 128, gpu::SMEM, true, 4));
  check("by 8 warps", in_parts(128, 128, gpu::SMEM, false, 8));
  check("few columns", in_parts(64, 8, gpu::SMEM, false, 4));
  check("few rows", in_parts(16, 24, gpu::SMEM, false, 4));
}

TEST_CASE("a sum that is sent behind its loop leaves alone what others are still made of") {
  for (const Style style : {Style::loop, Style::grid})
    for (const bool both_first : {false, true})
      check(both_first ? "sent second" : "sent first", sent_beside(style, both_first));
}

TEST_CASE("sums of several warpgroups agree") {
  for (const bool shared : {false, true})
    check(shared ? "in shared memory" : "in registers", by_warpgroups(shared));
}

TEST_CASE("attention along an axis agrees, wherever its sums are") {
  std::size_t number = 0;
  for (const int steps : {1, 2, 3, 5})
    for (const std::optional<bool> specialize : {std::optional<bool>(), std::optional(true)})
      for (const bool persistent : {false, true})
        for (int where = 0; where < 3; ++where) {
          const std::size_t turn = number++ % 5;
          if (!is_full() && turn != 0) continue;
          const Along t{.sums = where == 0 ? gpu::REGS : gpu::SMEM,
                        .numbers = where == 2 ? gpu::SMEM : gpu::REGS,
                        .steps = steps,
                        .stages = specialize ? 2 : 0,
                        .specialize = specialize,
                        .persistent = persistent};
          INFO(steps << " steps" << (specialize ? ", specialised" : "")
                     << (persistent ? ", persistent" : "") << ", in " << where);
          check("attention", attention_along(t), {},
                is_full() || number % 2 == 0 ? std::vector{90, 80} : std::vector{90});
        }
}

TEST_CASE("attention along an axis by a table agrees: nobody reads behind its end") {
  for (const int steps : {1, 2, 4})
    for (const bool persistent : {false, true}) {
      INFO(steps << " steps" << (persistent ? ", persistent" : ""));
      if (!is_full() && persistent && steps != 2) continue;
      check("attention",
            attention_along({.steps = steps,
                             .stages = 2,
                             .specialize = true,
                             .persistent = persistent,
                             .by_table = true}),
            {}, is_full() ? std::vector{90, 80} : std::vector{90});
    }
}
