// Prints the canonical graphs, keys and CUDA C++ of kernels that use the whole language, of those
// that we ship and of random ones, for comparing builds of two host compilers: C++ leaves the order
// of evaluation to them, what is recorded and emitted must not depend on it.
#include <cstdio>
#include <string>
#include <vector>

#include "codegen/cuda/emit.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/trace/trace.hpp"
#include "palladium/ops/registry.hpp"
#include "palladium/palladium.hpp"
#include "runtime/build/key.hpp"
#include "tests/support/random_graph.hpp"

using pl::_;
using pl::ds;

namespace {

using Arguments = std::vector<pl::trace::ArgumentType>;

pl::trace::ArgumentType array(pl::Shape shape, pl::DType dtype = pl::f32) {
  return {{shape, dtype}, false};
}
pl::trace::ArgumentType number(pl::DType dtype = pl::f32) { return {{{}, dtype}, true}; }

std::string emitted(const pl::graph::Graph& g, int compute_capability) {
  try {
    const auto e = pl::cuda::emit(g, {.compute_capability = compute_capability});
    return pl::cuda::compiled_text(g, e);
  } catch (const pl::CompileError& e) {
    return std::string(e.what()) + '\n';
  }
}

void dump(const pl::graph::Graph& g) {
  std::printf("%s%s\n\n", pl::graph::to_text(g).c_str(),
              pl::runtime::key_of(g, "sm_90a").hex().c_str());
  for (const int compute_capability : {75, 90})
    std::printf("%s\n", emitted(g, compute_capability).c_str());
}

void dump(const pl::Body& body, const pl::PallasCallOptions& options, const Arguments& arguments) {
  dump(pl::trace::trace({&body, 1}, options, arguments, pl::here()));
}

pl::Value helper(const pl::Value& a, const pl::Value& b) { return a * b - b; }

pl::Value sum_of(const pl::Ref& r, int n) {
  return pl::loop(
      0, n, [=](pl::Index i, pl::Value c) { return c + r[i]; }, 0.f);
}

void orders_of_evaluation() {
  const Arguments xyz{array({8}), array({8}), array({8})};
  const auto named = [](const char* name) {
    return pl::PallasCallOptions{.name = name, .out_type = {{8}, pl::f32}};
  };
  dump([](pl::Ref x, pl::Ref y, pl::Ref,
          pl::Ref o) { o[_] = pl::exp(x[_]) * pl::exp(y[_]) + helper(x[_], y[_] * 2); },
       named("nested_calls"), xyz);
  dump([](pl::Ref x, pl::Ref y, pl::Ref z,
          pl::Ref o) { o[_] = pl::where(x[_] > 0, pl::exp(y[_]), pl::log(z[_])); },
       named("choices"), xyz);
  dump([](pl::Ref x, pl::Ref y, pl::Ref z,
          pl::Ref o) { o[_] = helper(x[_], helper(y[_], z[_])) + helper(pl::exp(x[_]), y[_]); },
       named("helpers"), xyz);
  dump(
      [](pl::Ref x, pl::Ref y, pl::Ref z, pl::Ref o) {
        const pl::Value a = helper(pl::exp(x[_]), pl::exp(y[_]));
        o[_] = z[_];
        o[_] += a;
        o[_] -= helper(o[_], x[_]);
      },
      named("updates"), xyz);
  pl::PallasCallOptions in_place = named("swap_beside_read");
  in_place.input_output_aliases = {{0, 0}};
  dump(
      [](pl::Ref x, pl::Ref y, pl::Ref z, pl::Ref o) {
        const pl::Value a = helper(y[_], pl::swap(x, z[_]));
        o[_] = a + pl::fma(x[_], y[_], z[_]);
      },
      in_place, xyz);
  dump([](pl::Ref x, pl::Ref y, pl::Ref,
          pl::Ref o) { o[_] = pl::full({8}, helper(sum_of(x, 4), sum_of(y, 5))); },
       named("loops_beside_each_other"), xyz);
  dump(
      [](pl::Ref x, pl::Ref y, pl::Ref z, pl::Ref o) {
        const pl::Value m = x[_] > y[_];
        o[_] = helper(pl::load(x, {.mask = m, .other = 0}), pl::load(z, {.mask = y[_] < 3}));
        pl::store(o, helper(y[_], z[_]), {.mask = (x[_] > 1) & (y[_] < z[_])});
      },
      named("masks"), xyz);
}

void values() {
  dump(
      [](pl::Ref x, pl::Ref a, pl::Ref o) {
        const pl::Value i = pl::iota(pl::i32, {16}), wide = pl::f32(i);
        const pl::Value root = pl::where(i % 2 == 0, pl::sqrt(wide), pl::pow(wide, 0.5));
        o[_] = pl::bf16(pl::f32(x[_]) * wide) + pl::minimum(x[_], 1) - pl::bf16(root);
        o[ds(0, 8, 2)] = pl::bf16(a[0] & 1) * x[ds(8, 8)];
      },
      {.name = "casts", .out_type = {{16}, pl::bf16}},
      {array({16}, pl::bf16), array({4}, pl::i32)});
  dump(
      [](pl::Ref x, pl::Ref o) {
        const pl::Value v = x[_];
        const pl::Value bits = ((v << 3) | (v >> 29)) ^ ~v;
        o[_] = pl::maximum(bits % 7, -v) & 0xff;
        o[_] = pl::where(!(v == 0), pl::abs(bits) / v, pl::sign(v));
      },
      {.name = "integers", .out_type = {{32}, pl::i32}}, {array({32}, pl::i32)});
  dump(
      [](pl::Ref x, pl::Ref o, pl::Ref p) {
        const pl::Value v = x[_];
        o[_] = pl::sum(v, {.axis = {0, -1}}) + pl::max(pl::min(v, {.axis = 2}), {.axis = 0});
        p[_] = v.transpose({2, 0, 1}) *
               pl::reshape(pl::sum(v, {.axis = 1, .keepdims = true}), {4, 2, 1});
      },
      {.name = "reductions", .out_type = {{{3}, pl::f32}, {{4, 2, 3}, pl::f32}}},
      {array({2, 3, 4})});
  dump([](pl::Value alpha, pl::Ref x, pl::Value shift, pl::Ref y,
          pl::Ref o) { o[_] = alpha * x[_] + y[_] + pl::f32(shift); },
       {.name = "scalars", .out_type = {{8}, pl::f32}},
       {number(), array({8}), number(pl::i32), array({8})});
  dump(
      [](pl::Ref x, pl::Ref o) {
        pl::Ref rows = x.at({pl::ellipsis, ds(8, 8)}).transpose({1, 0});
        o[{0, _}] = rows[{1, ds(0, 4)}];
        o.at(1)[_] = pl::Value(rows.at(pl::program_id(0))[ds(0, 4)]);
        o[{2, ds(0, 2)}] = pl::f32(x.bitcast(pl::i32).reshape({-1})[ds(3, 2)]);
      },
      {.name = "views", .out_type = {{3, 4}, pl::f32}, .grid = {2}}, {array({4, 16})});
}

void kernels() {
  const pl::BlockSpec block{{1024}, [](pl::Index i) { return i; }};
  dump([](pl::Ref x, pl::Ref y, pl::Ref o) { o[_] = x[_] + y[_]; },
       {.name = "vector_add",
        .out_type = {{1'000'003}, pl::f32},
        .grid = {pl::cdiv(1'000'003, 1024)},
        .in_specs = {block, block},
        .out_specs = {block}},
       {array({1'000'003}), array({1'000'003})});

  const pl::BlockSpec row{{1, 1000}, [](pl::Index i) { return pl::Indices{i, 0}; }};
  dump(
      [](pl::Ref x, pl::Ref o) {
        const pl::Value v = x[_];
        const pl::Value e = pl::exp(v - pl::max(v, {.axis = 1, .keepdims = true}));
        o[_] = e / pl::sum(e, {.axis = 1, .keepdims = true});
      },
      {.name = "softmax",
       .out_type = {{pl::dim("m"), 1000}, pl::f32},
       .grid = {pl::dim("m")},
       .in_specs = {row},
       .out_specs = {row}},
      {array({pl::dim("m"), 1000})});

  dump(
      [](pl::Ref a, pl::Ref b, pl::Ref o, pl::Ref acc) {
        pl::when(pl::program_id(2) == 0, [&] { acc[_] = pl::zeros({128, 64}); });
        acc[_] += pl::dot(a[_], b[_]);
        pl::when(pl::program_id(2) == pl::num_programs(2) - 1, [&] { o[_] = pl::f16(acc[_]); });
      },
      {.name = "matmul",
       .out_type = {{1000, 300}, pl::f16},
       .grid = {{"i", pl::cdiv(1000, 128)}, {"j", pl::cdiv(300, 64)}, {"k", pl::cdiv(700, 32)}},
       .in_specs = {{{128, 32},
                     [](pl::Index i, pl::Index, pl::Index k) {
                       return pl::Indices{i, k};
                     }},
                    {{32, 64},
                     [](pl::Index, pl::Index j, pl::Index k) {
                       return pl::Indices{k, j};
                     }}},
       .out_specs = {{{128, 64},
                      [](pl::Index i, pl::Index j, pl::Index) {
                        return pl::Indices{i, j};
                      }}},
       .scratch_types = {{"acc", plgpu::SMEM({128, 64}, pl::f32)}}},
      {array({1000, 700}, pl::f16), array({700, 300}, pl::f16)});

  dump(
      [](pl::Ref x, pl::Ref o) {
        const pl::Value row = pl::program_id(0) * 32 + pl::iota(pl::i32, {32, 32}, 0);
        const pl::Value column = pl::program_id(1) * 32 + pl::iota(pl::i32, {32, 32}, 1);
        pl::Value total = pl::zeros({32, 32}), taps = total;
        for (int dy = 0; dy < 5; ++dy)
          for (int dx = 0; dx < 5; ++dx) {
            const pl::Value inside =
                (row + dy >= 2) & (row + dy < 482) & (column + dx >= 2) & (column + dx < 642);
            total += pl::where(inside, pl::f32(x[{ds(dy, 32), ds(dx, 32)}]), 0);
            taps += pl::where(inside, 1.f, 0.f);
          }
        o[_] = pl::u8(pl::round(total / taps));
      },
      {.name = "blur",
       .out_type = {{480, 640}, pl::u8},
       .grid = {15, 20},
       .in_specs = {{{pl::Element(36, {2, 2}), pl::Element(36, {2, 2})},
                     [](pl::Index i, pl::Index j) {
                       return pl::Indices{i * 32, j * 32};
                     }}},
       .out_specs = {{{32, 32},
                      [](pl::Index i, pl::Index j) {
                        return pl::Indices{i, j};
                      }}}},
      {array({480, 640}, pl::u8)});

  dump(
      [](pl::Ref q, pl::Ref k, pl::Ref v, pl::Ref o, pl::Ref lse) {
        const pl::Value qs = q[_] * 0.125f;
        auto [m, l, acc] = pl::loop(
            0, 4,
            [&](pl::Index i, pl::Value m, pl::Value l, pl::Value acc) {
              const pl::Value s = pl::dot(qs, k[ds(i * 16, 16)], {.trans_b = true});
              const pl::Value next = pl::maximum(m, pl::max(s, {.axis = 1, .keepdims = true}));
              const pl::Value alpha = pl::exp(m - next), p = pl::exp(s - next);
              return pl::carry(next, l * alpha + pl::sum(p, {.axis = 1, .keepdims = true}),
                               acc * alpha + pl::dot(p, v[ds(i * 16, 16)]));
            },
            pl::full({16, 1}, -1e30, pl::f32), pl::zeros({16, 1}), pl::zeros({16, 32}));
        o[_] = acc / l;
        pl::when(pl::program_id(0) > 0, [&] { lse[_] = m + pl::log(l); });
      },
      {.name = "attention",
       .out_type = {{{2, 64, 32}, pl::f32}, {{2, 64, 1}, pl::f32}},
       .grid = {2, 4},
       .in_specs = {{{pl::squeezed, 16, 32},
                     [](pl::Index h, pl::Index i) {
                       return pl::Indices{h, i, 0};
                     }},
                    {{pl::squeezed, 64, 32},
                     [](pl::Index h, pl::Index) {
                       return pl::Indices{h, 0, 0};
                     }},
                    {{pl::squeezed, 64, 32},
                     [](pl::Index h, pl::Index) {
                       return pl::Indices{h, 0, 0};
                     }}},
       .out_specs = {{{pl::squeezed, 16, 32},
                      [](pl::Index h, pl::Index i) {
                        return pl::Indices{h, i, 0};
                      }},
                     {{pl::squeezed, 16, 1},
                      [](pl::Index h, pl::Index i) {
                        return pl::Indices{h, i, 0};
                      }}}},
      {array({2, 64, 32}), array({2, 64, 32}), array({2, 64, 32})});

  struct In {
    pl::Ref x, y;
  };
  struct Work {
    pl::Ref sum, flag;
  };
  dump(
      [](In in, pl::Ref o, Work w) {
        w.sum[_] = in.x[_] + in.y[_];
        pl::when(in.x[0] > in.y[1], [&] { w.flag[_] = 1; });
        o[_] = w.sum[_] * pl::f32(pl::Value(w.flag[0]));
      },
      {.name = "structs",
       .out_type = {{8}, pl::f32},
       .scratch_types = {plgpu::REGS({8}, pl::f32), plgpu::SMEM({1}, pl::i32)},
       .input_output_aliases = {{0, 0}}},
      {array({8}), array({8})});

  dump(
      [](pl::Ref x, pl::Ref o) {
        const pl::Value half = pl::axis_index("half");
        pl::loop(0, pl::axis_size("half") + half, {.unroll = 1},
                 [&](pl::Index i) { o[i] = x[i] + pl::f32(half * pl::axis_size("row")); });
      },
      {.name = "cluster",
       .out_type = {{64, 8}, pl::f32},
       .grid = {{"row", pl::dim("n")}},
       .cluster = {2},
       .cluster_names = {"half"},
       .in_specs = {{{pl::squeezed, 4},
                     [](pl::Index i) {
                       return pl::Indices{i, pl::axis_index("half")};
                     }}},
       .out_specs = {{{pl::squeezed, 4},
                      [](pl::Index i) {
                        return pl::Indices{i, pl::axis_index("half")};
                      }}}},
      {array({pl::dim("n"), 8})});

  dump(
      [](pl::Ref x, pl::Ref o) {
        pl::when(pl::program_id(0) == 0, [&] { o[_] = 0; });
        pl::when(x[0] > 0, [&] {
          pl::loop(0, 8, {.step = 2, .unroll = 0},
                   [&](pl::Index i) { pl::when(x[i] < 4, [&] { o[_] += x[i] + x[i + 1]; }); });
        });
      },
      {.name = "revisit",
       .out_type = {{1}, pl::f32},
       .grid = {16},
       .in_specs = {{{8}, [](pl::Index i) { return i; }}},
       .out_specs = {{{1}, [](pl::Index) { return 0; }}},
       .compiler_params = {.fma = false}},
      {array({128})});
}

void shipped_kernels() {
  for (const pl::ops::Entry& entry : pl::ops::registry()) {
    const std::vector<pl::ArgType> types(entry.inputs.begin(), entry.inputs.end());
    dump(pl::graph::from_json(entry.factory().lower(types).json()));
  }
}

void random_kernels() {
  for (int seed = 0; seed < 300; ++seed) dump(pl::test::random_kernel(seed, {}).graph);
}

}  // namespace

int main() {
  try {
    orders_of_evaluation();
    values();
    kernels();
    shipped_kernels();
    random_kernels();
  } catch (const pl::Error& e) {
    std::fprintf(stderr, "dump_graphs: %s\n", e.what());
    return 1;
  }
}
