// The interpreter against plain C++ loops.
#include <cstdio>
#include <vector>

#include "benchmarks/timing.hpp"
#include "codegen/trace/trace.hpp"
#include "palladium/palladium.hpp"
#include "runtime/interpreter/interpreter.hpp"

namespace {

using namespace palladium;
using benchmark::best_of;
using interpreter::Buffer;

void report(const char* name, double ours, const char* target, const char* peer, double theirs) {
  std::printf("interpreter %-34s %8.2f ms   target %-6s %s %8.2f ms   %.2fx\n", name, 1e3 * ours,
              target, peer, 1e3 * theirs, ours / theirs);
}

void report_cores(const char* name, double ours, double one_core) {
  std::printf("interpreter %-34s %8.2f ms   target >= 1.7x one core %8.2f ms   %.2fx\n", name,
              1e3 * ours, 1e3 * one_core, one_core / ours);
}

graph::Graph traced(const Body& body, const PallasCallOptions& options,
                    std::vector<ShapeDtype> inputs) {
  std::vector<trace::ArgumentType> arguments;
  for (const ShapeDtype& t : inputs) arguments.push_back({t});
  return trace::trace({&body, 1}, options, arguments, here());
}

void matmul(std::int64_t n, std::int64_t block) {
  std::vector<float> a(n * n), b(n * n), c(n * n), d(n * n);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 17) - 8;
    b[i] = static_cast<float>(i % 13) - 6;
  }
  const BlockSpec as{{block, block},
                     [](Index i, Index, Index k) {
                       return Indices{i, k};
                     }},
      bs{{block, block},
         [](Index, Index j, Index k) {
           return Indices{k, j};
         }},
      cs{{block, block}, [](Index i, Index j, Index) {
           return Indices{i, j};
         }};
  const ShapeDtype type{{n, n}, f32};
  const graph::Graph g = traced(
      [=](Ref a, Ref b, Ref c) {
        when(program_id(2) == 0, [&] { c[_] = zeros({block, block}); });
        c[_] += dot(a[_], b[_]);
      },
      {.out_type = type,
       .grid = {n / block, n / block, n / block},
       .in_specs = {as, bs},
       .out_specs = {cs}},
      {type, type});
  const auto run = [&](int cores) {
    interpreter::run(g, {{{a.data(), {n, n}}, {b.data(), {n, n}}, {c.data(), {n, n}}}, {}, {}},
                     {.cores = cores});
  };
  const double ours = best_of(3, [&] { run(1); });
  const double theirs = best_of(3, [&] {
    for (std::int64_t i0 = 0; i0 < n; i0 += block)
      for (std::int64_t j0 = 0; j0 < n; j0 += block) {
        for (std::int64_t i = i0; i < i0 + block; ++i)
          for (std::int64_t j = j0; j < j0 + block; ++j) d[i * n + j] = 0;
        for (std::int64_t k0 = 0; k0 < n; k0 += block)
          for (std::int64_t i = i0; i < i0 + block; ++i)
            for (std::int64_t k = k0; k < k0 + block; ++k)
              for (std::int64_t j = j0; j < j0 + block; ++j)
                d[i * n + j] += a[i * n + k] * b[k * n + j];
      }
  });
  if (c != d) std::printf("interpreter matmul: WRONG RESULT\n");
  report("f32 matmul 1024^3, blocks of 128", ours, "<= 3x", "plain -O2 loops", theirs);
  report_cores("f32 matmul 1024^3, two cores", best_of(3, [&] { run(2); }), ours);
}

void add(std::int64_t n, std::int64_t block) {
  std::vector<float> x(n, 1), y(n, 2), z(n), w(n);
  const BlockSpec spec{{block}, [](Index i) { return i; }};
  const ShapeDtype type{{n}, f32};
  const graph::Graph g =
      traced([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
             {.out_type = type, .grid = {n / block}, .in_specs = {spec, spec}, .out_specs = {spec}},
             {type, type});
  const auto run = [&](int cores) {
    interpreter::run(g, {{{x.data(), {n}}, {y.data(), {n}}, {z.data(), {n}}}, {}, {}},
                     {.cores = cores});
  };
  const double ours = best_of(5, [&] { run(1); });
  const double theirs = best_of(5, [&] {
    for (std::int64_t i = 0; i < n; ++i) w[i] = x[i] + y[i];
  });
  if (z != w) std::printf("interpreter add: WRONG RESULT\n");
  report("f32 add of 2^20, blocks of 1024", ours, "", "plain -O2 loop ", theirs);
  report_cores("f32 add of 2^20, two cores", best_of(5, [&] { run(2); }), ours);
}

}  // namespace

int main() {
  matmul(1024, 128);
  add(1 << 20, 1024);
}
