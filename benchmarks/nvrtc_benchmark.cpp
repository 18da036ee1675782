// What NVRTC takes for the text of each shipped kernel, beside what it takes for the same kernel by
// hand (benchmarks/peers/*.cu); and from a C++ lambda to a cubin, beside Triton from a Python
// function to one. The two take turns; each is the least of several.
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/timing.hpp"
#include "cache/text_digest.hpp"
#include "codegen/nvrtc/find_helper.hpp"
#include "codegen/nvrtc/pool.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/ops/registry.hpp"
#include "palladium/palladium.hpp"
#include "runtime/build/program.hpp"

using namespace palladium;
using pl::_;

namespace {

constexpr const char* arch = "sm_90a";
constexpr int runs = 9;

Lowered shipped(const char* name) {
  const ops::Entry& e = ops::find(name);
  return e.factory().lower(std::vector<ArgType>(e.inputs.begin(), e.inputs.end()));
}

/// A row to a program, as in the README; the shipped one has four.
Lowered softmax() {
  const BlockSpec row{{1, 1000}, [](Index i) { return Indices{i, 0}; }};
  const ShapeDtype x{{dim("m"), 1000}, f32};
  return pallas_call(
             [](Ref x, Ref o) {
               Value v = x[_];
               Value e = exp(v - max(v, {.axis = {1}, .keepdims = true}));
               o[_] = e / sum(e, {.axis = {1}, .keepdims = true});
             },
             {.name = "softmax",
              .out_type = x,
              .grid = {dim("m")},
              .in_specs = {row},
              .out_specs = {row}})
      .lower(x);
}

Lowered layer_norm() {
  const BlockSpec rows{{4, 768}, [](Index i) { return Indices{i, 0}; }};
  const BlockSpec all{{1, 768}, [](Index) { return Indices{0, 0}; }};
  const ShapeDtype x{{dim("m"), 768}, f32}, weight{{1, 768}, f32};
  return pallas_call(
             [](Ref x, Ref weight, Ref o) {
               Value v = x[_];
               Value centred = v - sum(v, {.axis = {1}, .keepdims = true}) / 768.0f;
               Value variance = sum(centred * centred, {.axis = {1}, .keepdims = true}) / 768.0f;
               o[_] = centred * rsqrt(variance + 1e-5f) * weight[_];
             },
             {.name = "layer_norm",
              .out_type = x,
              .grid = {cdiv(dim("m"), 4)},
              .in_specs = {rows, all},
              .out_specs = {rows}})
      .lower(x, weight);
}

/// f16 in blocks of 64 x 64, k in steps of 32.
Lowered matmul_f16() {
  const ShapeDtype square{{1024, 1024}, f16};
  return pallas_call(
             [](Ref a, Ref b, Ref o) {
               o[_] = f16(loop(
                   0, 1024 / 32,
                   [&](Value k, Value total) {
                     return total + dot(a[{_, ds(k * 32, 32)}], b[{ds(k * 32, 32), _}]);
                   },
                   zeros({64, 64}, f32)));
             },
             {.name = "matmul",
              .out_type = square,
              .grid = {16, 16},
              .in_specs = {{{64, 1024},
                            [](Index i, Index) {
                              return Indices{i, 0};
                            }},
                           {{1024, 64},
                            [](Index, Index j) {
                              return Indices{0, j};
                            }}},
              .out_specs = {{{64, 64},
                             [](Index i, Index j) {
                               return Indices{i, j};
                             }}}})
      .lower(square, square);
}

/// Causal, f16, rows of 128.
Lowered attention() {
  const auto of = [](Dim heads) { return ShapeDtype{{dim("b"), heads, 2048, 128}, f16}; };
  return ops::attention({.causal = true}).lower(of(16), of(16), of(16));
}

nvrtc::Request request_of(const std::string& text) {
  return {.source = runtime::full_text(text), .arch = arch};
}

std::string peer(const std::string& name) {
  std::ifstream file(PALLADIUM_PEERS "/" + name + ".cu");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double nvrtc_ms(nvrtc::Pool& pool, const nvrtc::Request& request) {
  const auto outcome = pool.compile(request, *nvrtc::toolchain().found);
  if (outcome.end == nvrtc::Pool::End::result && outcome.result.ok)
    return outcome.result.milliseconds;
  std::fprintf(stderr, "%s%s\n", outcome.why.c_str(), outcome.result.log.c_str());
  std::exit(1);
}

void compare_with_hand(nvrtc::Pool& pool, const char* name, const Lowered& kernel) {
  const nvrtc::Request ours = request_of(kernel.cuda_source({.arch = arch})),
                       theirs = request_of(peer(name));
  double our_ms = 1e30, their_ms = 1e30;
  for (int run = 0; run < runs; ++run) {
    our_ms = std::min(our_ms, nvrtc_ms(pool, ours));
    their_ms = std::min(their_ms, nvrtc_ms(pool, theirs));
  }
  std::printf("NVRTC on %-12s %9.1f ms   target <= 1.25 x  by hand %.1f ms (%.2f x)%s\n", name,
              our_ms, their_ms, our_ms / their_ms,
              std::string(name) == "blur" ? ", and <= 130 ms" : "");
  std::fflush(stdout);
}

/// Milliseconds by name, as the script tells them; empty where there is no Triton.
std::map<std::string, double> triton_ms() {
  const char* chosen = std::getenv("PYTHON");
  const std::string command = std::string(chosen != nullptr ? chosen : "python3") +
                              " '" PALLADIUM_PEERS "/triton_compile.py'";
  std::map<std::string, double> result;
  FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) return result;
  char name[32];
  double ms = 0;
  while (std::fscanf(out, "%31s %lf", name, &ms) == 2) result[name] = ms;
  ::pclose(out);
  return result;
}

/// At most `share` of what Triton takes.
void compare_with_triton(const char* name, Lowered (*kernel)(),
                         const std::map<std::string, double>& triton, double share = 1) {
  const double ms = 1e3 * benchmark::best_of(runs, benchmark::wall_seconds,
                                             [&] { (void)kernel().compile({.arch = arch}); });
  const auto theirs = triton.find(name);
  std::printf("lambda to cubin, %-12s %9.1f ms   target <= %.1f x Triton  ", name, ms, share);
  if (theirs == triton.end())
    std::puts("(Triton is missing: PYTHON names one that has it)");
  else
    std::printf("%.1f ms (%.2f x)\n", theirs->second, ms / theirs->second);
  std::fflush(stdout);
}

}  // namespace

int main() try {
  if (!nvrtc::toolchain().found) {
    std::puts("no NVRTC: nothing to measure");
    return 0;
  }
  ::setenv("PALLADIUM_CACHE_DIR", "/dev/null", 1);
  ::setenv("PALLADIUM_LOG", "off", 1);
  nvrtc::Pool pool({.program = nvrtc::find_helper().path, .digest = cache::text_digest}, 1);
  for (const char* name : {"add", "matmul", "blur"}) compare_with_hand(pool, name, shipped(name));
  compare_with_hand(pool, "softmax", softmax());
  compare_with_hand(pool, "softmax_rows", shipped("softmax"));
  compare_with_hand(pool, "layer_norm", layer_norm());

  const std::map<std::string, double> triton = triton_ms();
  compare_with_triton(
      "add", [] { return shipped("add"); }, triton);
  compare_with_triton("softmax", softmax, triton);
  compare_with_triton(
      "softmax_rows", [] { return shipped("softmax"); }, triton);
  compare_with_triton("layer_norm", layer_norm, triton);
  compare_with_triton("matmul", matmul_f16, triton);
  compare_with_triton("attention", attention, triton, 0.5);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
