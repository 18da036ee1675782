// The interpreter against plain C++ loops, and calls of it against JAX's interpret mode.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
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

// As a user waits: `run` is told how many cores.
void report_cores(const char* name, int runs, const auto& run) {
  const auto wait = [&](int cores) {
    return best_of(runs, benchmark::wall_seconds, [&] { run(cores); });
  };
  const double one_core = wait(1), two = wait(2);
  std::printf("interpreter %-34s %8.2f ms   target >= 1.7x one core %8.2f ms   %.2fx\n", name,
              1e3 * two, 1e3 * one_core, one_core / two);
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
  report_cores("f32 matmul 1024^3, two cores", 3, run);
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
  report_cores("f32 add of 2^20, two cores", 20, run);
}

// ---- whole calls, beside peers/jax_interpret.py

using pl::_;
using Make = std::function<Kernel(int cores)>;

InterpretParams on(int cores) {
  InterpretParams params;
  params.num_cores_per_device = cores;
  return params;
}

Kernel softmax_rows(int cores) {
  const BlockSpec row{{1, 1024}, [](Index i) { return Indices{i, 0}; }};
  return pallas_call(
      [](Ref x, Ref o) {
        const Value v = x[_], e = pl::exp(v - pl::max(v, {.axis = 1, .keepdims = true}));
        o[_] = e / pl::sum(e, {.axis = 1, .keepdims = true});
      },
      {.out_type = {{1024, 1024}, f32},
       .grid = 1024,
       .in_specs = {row},
       .out_specs = {row},
       .interpret = on(cores)});
}

Kernel matmul_512(int cores) {
  return pallas_call(
      [](Ref x, Ref y, Ref o) {
        when(program_id(2) == 0, [&] { o[_] = zeros({64, 64}); });
        o[_] += dot(x[_], y[_]);
      },
      {.out_type = {{512, 512}, f32},
       .grid = {8, 8, 16},
       .in_specs = {BlockSpec{{64, 32},
                              [](Index i, Index, Index k) {
                                return Indices{i, k};
                              }},
                    BlockSpec{{32, 64},
                              [](Index, Index j, Index k) {
                                return Indices{k, j};
                              }}},
       .out_specs = {BlockSpec{{64, 64},
                               [](Index i, Index j, Index) {
                                 return Indices{i, j};
                               }}},
       .interpret = on(cores)});
}

Kernel add_blocks(int cores) {
  const BlockSpec block{{1024}, [](Index i) { return i; }};
  return pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; }, {.out_type = {{1 << 20}, f32},
                                                                       .grid = 1024,
                                                                       .in_specs = {block, block},
                                                                       .out_specs = {block},
                                                                       .interpret = on(cores)});
}

/// `count` adds a block of so many numbers to the bins.
Kernel histogram_by(int cores, int blocks, std::int64_t block, void (*count)(Ref x, Ref o)) {
  return pallas_call(
      [count](Ref x, Ref o) {
        when(program_id(0) == 0, [&] { o[_] = zeros({256}, i32); });
        count(x, o);
      },
      {.out_type = {{256}, i32},
       .grid = blocks,
       .in_specs = {BlockSpec{{block}, [](Index i) { return i; }}},
       .out_specs = {BlockSpec{{256}}},
       .interpret = on(cores)});
}

// One by one, as a loop on numbers.
Kernel histogram(int cores) {
  return histogram_by(cores, 16, 1024,
                      [](Ref x, Ref o) { pl::loop(0, 1024, [&](Index i) { o[x[i]] += 1; }); });
}

// A block at once.
Kernel histogram_at_once(int cores) {
  return histogram_by(cores, 64, 1 << 14, [](Ref x, Ref o) {
    pl::atomic_add(o.at(x[_]), pl::full({1 << 14}, 1, i32));
  });
}

/// What the histogram takes a compiler's loop.
void bound_of_histogram(const Array& numbers) {
  std::vector<std::int32_t> bins(256);
  const std::int32_t* x = numbers.data<std::int32_t>();
  const double seconds = best_of(20, [&] {
    for (std::int64_t i = 0; i < numbers.size(); ++i) ++bins[static_cast<std::size_t>(x[i])];
  });
  std::printf("interpreter histogram: a plain -O2 loop %.3f ms, %d counted\n", 1e3 * seconds,
              bins[0]);
}

Kernel cumsum_rows(int cores) {
  const BlockSpec rows{{8, 1024}, [](Index i) { return Indices{i, 0}; }};
  return pallas_call([](Ref x, Ref o) { o[_] = pl::cumsum(x[_], {.axis = 1}); },
                     {.out_type = {{1024, 1024}, f32},
                      .grid = 128,
                      .in_specs = {rows},
                      .out_specs = {rows},
                      .interpret = on(cores)});
}

/// Milliseconds of the first call and of later ones by name, as the script tells them; empty where
/// there is no JAX.
std::map<std::string, std::pair<double, double>> jax_ms() {
  const char* chosen = std::getenv("PYTHON");
  const std::string command = std::string(chosen != nullptr ? chosen : "python3") +
                              " '" PALLADIUM_PEERS "/jax_interpret.py'";
  std::map<std::string, std::pair<double, double>> result;
  FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) return result;
  char name[32];
  double first = 0, steady = 0;
  while (std::fscanf(out, "%31s %lf %lf", name, &first, &steady) == 3)
    result[name] = {first, steady};
  ::pclose(out);
  return result;
}

void compare_with_jax(const std::string& name, const Make& make, std::initializer_list<Arg> args,
                      const std::map<std::string, std::pair<double, double>>& jax) {
  const auto run = [&](const Kernel& k) { (void)k.call(args); };
  const double first = 1e3 * benchmark::best_of(3, benchmark::wall_seconds, [&] { run(make(0)); });
  const Kernel kept = make(0), one = make(1), two = make(2);
  for (const Kernel* k : {&kept, &one, &two}) run(*k);
  const auto steady = [&](const Kernel& k) {
    return 1e3 * benchmark::best_of(20, benchmark::wall_seconds, [&] { run(k); });
  };
  const double all = steady(kept), on_one = steady(one), on_two = steady(two);
  std::printf("interpreter %-17s first call %8.2f ms, later %8.3f ms", name.c_str(), first, all);
  if (const auto theirs = jax.find(name); theirs != jax.end())
    std::printf("   target >= 5x JAX %8.2f ms, %8.3f ms   %.1fx, %.1fx", theirs->second.first,
                theirs->second.second, theirs->second.first / first, theirs->second.second / all);
  else
    std::printf("   target >= 5x JAX (missing: PYTHON names one that has it)");
  std::printf("   two cores, target >= 1.7x: %.2fx\n", on_one / on_two);
  std::fflush(stdout);
}

template <class T>
Array filled(const Shape& shape) {
  Array a = Array::empty(shape, dtype_of<T>);
  for (std::int64_t i = 0; i < a.size(); ++i) a.data<T>()[i] = static_cast<T>(i * 37 % 17);
  return a;
}

/// Those named, or all.
void compare_with_jax(const std::set<std::string>& named) {
  const auto jax = jax_ms();
  const Array square = filled<float>({1024, 1024}), small = filled<float>({512, 512});
  const Array line = filled<float>({1 << 20}), numbers = filled<std::int32_t>({1 << 14}),
              many_numbers = filled<std::int32_t>({1 << 20});
  const auto compare = [&](const char* name, const Make& make, std::initializer_list<Arg> args) {
    if (named.empty() || named.contains(name)) compare_with_jax(name, make, args, jax);
  };
  compare("softmax", softmax_rows, {square});
  compare("matmul", matmul_512, {small, small});
  compare("add", add_blocks, {line, line});
  compare("histogram", histogram, {numbers});
  compare("histogram_at_once", histogram_at_once, {many_numbers});
  bound_of_histogram(numbers);
  compare("cumsum", cumsum_rows, {square});
}

}  // namespace

/// Names of kernels leave the others out.
int main(int argc, char** argv) {
  const std::set<std::string> named(argv + 1, argv + argc);
  if (named.empty()) {
    matmul(1024, 128);
    add(1 << 20, 1024);
  }
  compare_with_jax(named);
}
