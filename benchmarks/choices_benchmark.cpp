// What choices of blocks, warps, stages and order make of a product and of attention on the first
// GPU: a line for each, the fastest of a case first. Defaults of `ops` and of lowering follow from
// it.
//
//   benchmark_choices [CASE...]                beginnings of names of cases
//   benchmark_choices --predict [CASE...]      what the timeline says of them: needs no GPU
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu_timing.hpp"
#include "codegen/base/format.hpp"
#include "palladium/palladium.hpp"

using namespace palladium;
using pl::_;

namespace {

struct Candidate {
  std::string name;
  Kernel kernel;
};

struct Case {
  std::string name;
  std::vector<ShapeDtype> inputs;
  ShapeDtype output;
  double flops = 0;
  std::vector<Candidate> candidates = {};
};

std::string words(const CompilerParams& p) {
  std::string text;
  if (p.num_warps) text += fmt::format(" warps {}", p.num_warps);
  if (p.num_stages) text += fmt::format(" stages {}", p.num_stages);
  if (p.warp_specialize) text += *p.warp_specialize ? " specialised" : " unspecialised";
  if (p.persistent) text += " persistent";
  if (p.grid_order) text += fmt::format(" rows {}", p.grid_order->rows);
  return text;
}

// ---- products

struct Tile {
  int m, n, k;
};

Candidate product(std::int64_t size, DType t, const Tile& tile, const CompilerParams& params) {
  const auto body = [=](Ref a, Ref b, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * tile.k, tile.k);
      return sum + dot(a[{_, now}], b[{now, _}]);
    };
    o[_] = loop(0, size / tile.k, add, zeros({tile.m, tile.n}, f32)).astype(t);
  };
  return {fmt::format("{}x{}x{}{}", tile.m, tile.n, tile.k, words(params)),
          pallas_call(body, {.name = "matmul",
                             .out_type = {{size, size}, t},
                             .grid = {size / tile.m, size / tile.n},
                             .in_specs = {{{tile.m, size},
                                           [](Index i, Index) {
                                             return Indices{i, 0};
                                           }},
                                          {{size, tile.n},
                                           [](Index, Index j) {
                                             return Indices{0, j};
                                           }}},
                             .out_specs = {{{tile.m, tile.n},
                                            [](Index i, Index j) {
                                              return Indices{i, j};
                                            }}},
                             .compiler_params = params})};
}

Case products(std::int64_t size, DType t) {
  const ShapeDtype square{{size, size}, t};
  Case c{fmt::format("matmul_{}_{}", t.name(), size),
         {square, square},
         square,
         2.0 * static_cast<double>(size * size * size)};
  const std::pair<Tile, int> tiles[] = {
      {{128, 128, 64}, 4}, {{128, 128, 64}, 8}, {{128, 256, 64}, 8},  {{256, 128, 64}, 8},
      {{64, 256, 64}, 4},  {{128, 192, 64}, 8}, {{128, 256, 128}, 8}, {{256, 256, 64}, 16}};
  for (const auto& [tile, warps] : tiles) {
    if (size % tile.n != 0) continue;
    for (const int stages : {0, 3, 4, 5})
      for (const bool persistent : {false, true})
        c.candidates.push_back(product(
            size, t, tile, {.num_warps = warps, .num_stages = stages, .persistent = persistent}));
    c.candidates.push_back(product(size, t, tile, {.num_warps = warps, .warp_specialize = true}));
    c.candidates.push_back(product(size, t, tile, {.num_warps = warps, .warp_specialize = false}));
    for (const int rows : {1, 4, 8, 16})
      c.candidates.push_back(
          product(size, t, tile,
                  {.num_warps = warps, .grid_order = grouped(rows), .persistent = rows == 8}));
  }
  return c;
}

// As people write it: K is an axis of the grid, and the sum an accumulator in registers or shared
// memory that the first program zeroes and the last one stores.
Candidate along_axis(std::int64_t size, DType t, const Tile& tile, bool in_shared_memory) {
  const std::int64_t steps = size / tile.k;
  const auto body = [=](Ref a, Ref b, Ref o, Ref sum) {
    const Value step = program_id(2);
    when(step == 0, [&] { sum[_] = zeros({tile.m, tile.n}, f32); });
    sum[_] += dot(a[_], b[_]);
    when(step == steps - 1, [&] { o[_] = sum[_].astype(t); });
  };
  const Shape block = {tile.m, tile.n};
  return {fmt::format("{}x{}x{} along an axis, summed in {}", tile.m, tile.n, tile.k,
                      in_shared_memory ? "SMEM" : "REGS"),
          pallas_call(
              body,
              {.name = "matmul",
               .out_type = {{size, size}, t},
               .grid = {size / tile.m, size / tile.n, steps},
               .in_specs = {{{tile.m, tile.k},
                             [](Index i, Index, Index k) {
                               return Indices{i, k};
                             }},
                            {{tile.k, tile.n},
                             [](Index, Index j, Index k) {
                               return Indices{k, j};
                             }}},
               .out_specs = {{{tile.m, tile.n},
                              [](Index i, Index j, Index) {
                                return Indices{i, j};
                              }}},
               .scratch_types = {in_shared_memory ? gpu::SMEM(block, f32) : gpu::REGS(block, f32)},
               .compiler_params = {.dimension_semantics = {parallel, parallel, sequential}}})};
}

Case idioms(std::int64_t size, DType t) {
  const ShapeDtype square{{size, size}, t};
  Case c{fmt::format("idioms_{}_{}", t.name(), size),
         {square, square},
         square,
         2.0 * static_cast<double>(size * size * size)};
  for (const Tile& tile : {Tile{128, 128, 64}, Tile{128, 256, 64}}) {
    c.candidates.push_back(product(size, t, tile, {}));
    for (const bool in_shared_memory : {false, true})
      c.candidates.push_back(along_axis(size, t, tile, in_shared_memory));
  }
  return c;
}

// ---- attention

struct Attention {
  std::int64_t rows, columns, d;
  bool causal, longest_first;
};

constexpr std::int64_t batch = 4, heads = 16, length = 4096;

// As ops::attention, with its blocks and their order given.
Candidate attention(const Attention& a, CompilerParams params) {
  params.approx_math = true;
  const std::int64_t blocks = cdiv(length, a.rows);
  const auto block_of = [=](auto i) { return a.longest_first ? blocks - 1 - i : i + 0; };
  const std::int64_t asking =
      !a.causal || a.columns % a.rows == 0 ? 1 : cdiv(a.rows - 1, a.columns) + 1;
  const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
    const auto factor =
        static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(a.d)));
    const Value first = block_of(Value(program_id(2))) * a.rows,
                row = iota(i32, {a.rows, 1}, 0) + first;
    const Value end = a.causal ? minimum(first + a.rows, length) : full({}, length, i32);
    const Value iterations = (end + (a.columns - 1)) / a.columns;
    const auto iteration = [&](Value i, Value top, Value total, Value sums) {
      const Value at = (iterations - 1 - i) * a.columns;
      const Value column = iota(i32, {1, a.columns}, 1) + at;
      const Value seen = a.causal ? column <= minimum(row, length - 1) : column < length;
      Value s = dot(q[_], k[{ds(at, a.columns), _}], {.trans_b = true});
      s = where((i >= asking) | seen, s, -HUGE_VALF);
      const Value next = maximum(top, max(s, {.axis = 1, .keepdims = true}) * factor);
      const Value p = exp2(s * factor - next), shrink = exp2(top - next);
      return carry(next, total * shrink + sum(p, {.axis = 1, .keepdims = true}),
                   sums * shrink + dot(p.astype(v.dtype()), v[{ds(at, a.columns), _}]));
    };
    const auto [top, total, sums] = loop(0, iterations, iteration, full({a.rows, 1}, -1e30f, f32),
                                         zeros({a.rows, 1}, f32), zeros({a.rows, a.d}, f32));
    o[_] = (sums / total).astype(o.dtype());
  };
  const auto of_queries = [=](Index b, Index h, Index i) { return Indices{b, h, block_of(i), 0}; };
  const auto of_keys = [](Index b, Index h, Index) { return Indices{b, h, 0, 0}; };
  const BlockSpec some{{squeezed, squeezed, a.rows, a.d}, of_queries},
      all{{squeezed, squeezed, cdiv(length, a.columns) * a.columns, a.d}, of_keys, {.fill = 0}};
  return {fmt::format("{} queries {} keys{}{}", a.rows, a.columns,
                      a.longest_first ? " longest first" : "", words(params)),
          pallas_call(body, {.name = "attention",
                             .out_type = {{batch, heads, length, a.d}, f16},
                             .grid = {batch, heads, blocks},
                             .in_specs = {some, all, all},
                             .out_specs = {some},
                             .compiler_params = params})};
}

Case attentions(std::int64_t d, bool causal) {
  const ShapeDtype x{{batch, heads, length, d}, f16};
  Case c{fmt::format("attention_{}_{}", d, causal ? "causal" : "full"),
         {x, x, x},
         x,
         4.0 * batch * heads * length * length * static_cast<double>(d) / (causal ? 2 : 1)};
  for (const std::int64_t rows : {64, 128, 256})
    for (const std::int64_t columns : {64, 96, 128, 160, 176, 192})
      for (const bool longest_first : {false, true}) {
        if (longest_first && !causal) continue;
        const Attention a{rows, columns, d, causal, longest_first};
        c.candidates.push_back(attention(a, {}));
        c.candidates.push_back(attention(a, {.num_stages = 2}));
        if (rows == 128) c.candidates.push_back(attention(a, {.num_warps = 4}));
        if (rows == 128) c.candidates.push_back(attention(a, {.persistent = true}));
      }
  return c;
}

// ---- measuring

struct Line {
  double us;
  std::string text;
};

std::string first_line(const Error& e) {
  const std::string all = e.what();
  return all.substr(0, all.find('\n'));
}

/// How far two results of f16 lie apart, by the squares of some of their elements.
double apart(const Array& a, const Array& b) {
  const auto *x = a.data<float16_t>(), *y = b.data<float16_t>();
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < a.size(); i += 29) {
    const double p = static_cast<float>(x[i]), q = static_cast<float>(y[i]);
    difference += (p - q) * (p - q);
    size += q * q;
  }
  return std::sqrt(difference / size);
}

void measure(const Case& c) {
  const Device gpu = device_of(Target::cuda);
  std::vector<ArgType> types(c.inputs.begin(), c.inputs.end());
  // They compile beside one another.
  std::vector<std::optional<CompileFuture>> compiles;
  std::vector<std::string> refusals(c.candidates.size());
  for (std::size_t i = 0; i < c.candidates.size(); ++i) {
    compiles.emplace_back();
    try {
      compiles.back() = c.candidates[i].kernel.on(Target::cuda).lower(types).compile_async();
    } catch (const Error& e) {
      refusals[i] = first_line(e);
    }
  }
  std::vector<Array> arrays;
  for (const ShapeDtype& t : c.inputs)
    arrays.push_back(Array::random(t.shape, f32, {.low = -1, .high = 1}).astype(t.dtype).to(gpu));
  std::optional<Array> expected;
  std::vector<Line> lines;
  for (std::size_t i = 0; i < c.candidates.size(); ++i) {
    const Candidate& candidate = c.candidates[i];
    if (!compiles[i]) {
      lines.push_back({1e30, fmt::format("       refused  {}: {}", candidate.name, refusals[i])});
      continue;
    }
    try {
      (void)compiles[i]->get();
      const Kernel kernel = candidate.kernel.on(Target::cuda);
      Array result = Array::full(c.output.shape, c.output.dtype, 0).to(gpu);
      const double us = benchmark::gpu_microseconds(
          [&] {
            if (arrays.size() == 2) kernel.into({result}, {arrays[0], arrays[1]});
            if (arrays.size() == 3) kernel.into({result}, {arrays[0], arrays[1], arrays[2]});
          },
          8);
      const Array got = result.to(Device::cpu());
      if (!expected) expected = got;
      const double off = apart(got, *expected);
      lines.push_back({us, fmt::format("{:10.1f} us {:8.1f} TFLOPS  {}{}", us, c.flops / us * 1e-6,
                                       candidate.name,
                                       off < 2e-3 ? "" : fmt::format("  WRONG by {:.2g}", off))});
    } catch (const Error& e) {
      lines.push_back({1e30, fmt::format("       refused  {}: {}", candidate.name, first_line(e))});
    }
  }
  std::ranges::stable_sort(lines, {}, &Line::us);
  for (const Line& l : lines) std::printf("%-22s %s\n", c.name.c_str(), l.text.c_str());
  std::fflush(stdout);
}

// A line for each loop: its cycles, how many blocks are at it side by side, what bounds it.
void predict(const Case& c) {
  const std::vector<ArgType> types(c.inputs.begin(), c.inputs.end());
  for (const Candidate& candidate : c.candidates) try {
      const Report report = candidate.kernel.lower(types).report({.arch = "sm_90a"});
      for (const Timeline::Loop& loop : report.timeline.loops)
        std::printf("%-22s %8.0f cycles %6.0f around %d blocks %3.0f %%  %s  by %s\n",
                    c.name.c_str(), loop.cycles, loop.around, loop.blocks, loop.fraction * 100,
                    candidate.name.c_str(), loop.bound_by.c_str());
      if (!report.timeline.unknown.empty())
        std::printf("%-22s %s: %s\n", c.name.c_str(), candidate.name.c_str(),
                    report.timeline.unknown.c_str());
    } catch (const Error& e) {
      std::printf("%-22s refused  %s: %s\n", c.name.c_str(), candidate.name.c_str(),
                  first_line(e).c_str());
    }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  const bool predicts = argc > 1 && std::strcmp(argv[1], "--predict") == 0;
  if (predicts) {
    --argc;
    ++argv;
  }
  if (!predicts && devices().empty()) {
    std::puts("no GPU: nothing to measure");
    return 0;
  }
  std::optional<driver::ContextScope> current;
  if (!predicts) current.emplace(0);
  const std::vector<std::function<Case()>> cases = {
      [] { return idioms(4096, f16); },      [] { return products(4096, f16); },
      [] { return products(8192, f16); },    [] { return attentions(128, true); },
      [] { return attentions(128, false); }, [] { return attentions(64, true); },
      [] { return attentions(64, false); }};
  for (const auto& make : cases) {
    const Case c = make();
    const auto wanted = [&](const char* beginning) { return c.name.starts_with(beginning); };
    if (argc < 2 || std::any_of(argv + 1, argv + argc, wanted)) predicts ? predict(c) : measure(c);
  }
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
