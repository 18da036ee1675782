// Four of the shipped kernels on what this machine has: traced, compiled, found again in the cache,
// run and compared with plain C++. This is what scripts/demo runs.
//
//   palladium_demo [ARRAY.npy...]
//
// The arrays go to the kernels for their kind: vectors of f32, two, to add; an image (a matrix of
// u8) to blur; of matrices of f32 one to softmax, two to matmul, of three the first to softmax.
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "palladium/cache.hpp"
#include "palladium/ops/add.hpp"
#include "palladium/ops/blur.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"

namespace {

using Arrays = std::vector<pl::Array>;

/// Calls `value` for each element.
template <class T, class F>
pl::Array made(const pl::Shape& shape, F value) {
  const pl::Array a = pl::Array::empty(shape, pl::dtype_of<T>);
  for (T& element : a.values<T>()) element = static_cast<T>(value());
  return a;
}

pl::Array numbers(const pl::Shape& shape, unsigned seed) {
  std::minstd_rand random(seed);
  return made<float>(shape, [&] { return static_cast<float>(random() % 20001) / 1e4f - 1; });
}

pl::Array pixels(const pl::Shape& shape) {
  std::minstd_rand random(1);
  return made<std::uint8_t>(shape, [&] { return random() >> 8; });
}

double largest_magnitude(const pl::Array& a) {
  float largest = 0;
  for (const float value : a.values<float>()) largest = std::max(largest, std::abs(value));
  return largest;
}

// The kernels as plain loops.

pl::Array plain_add(const Arrays& in) {
  const float *x = in[0].data<float>(), *y = in[1].data<float>();
  return made<float>(in[0].shape(), [&] { return *x++ + *y++; });
}

pl::Array plain_softmax(const Arrays& in) {
  const pl::Array y = pl::Array::empty(in[0].shape(), pl::f32);
  const std::int64_t columns = in[0].shape()[1];
  for (std::int64_t start = 0; start < y.size(); start += columns) {
    const float* x = in[0].data<float>() + start;
    const double top = *std::max_element(x, x + columns);
    double sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) sum += std::exp(x[i] - top);
    for (std::int64_t i = 0; i < columns; ++i)
      y.data<float>()[start + i] = static_cast<float>(std::exp(x[i] - top) / sum);
  }
  return y;
}

pl::Array plain_matmul(const Arrays& in) {
  const std::int64_t m = in[0].shape()[0], k = in[0].shape()[1], n = in[1].shape()[1];
  const float *a = in[0].data<float>(), *b = in[1].data<float>();
  std::vector<double> sums(m * n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t j = 0; j < n; ++j) sums[i * n + j] += double(a[i * k + l]) * b[l * n + j];
  return made<float>({m, n}, [sum = sums.data()]() mutable { return *sum++; });
}

pl::Array plain_blur(const Arrays& in) {
  const std::int64_t height = in[0].shape()[0], width = in[0].shape()[1], radius = 2;
  std::int64_t at = 0;
  return made<std::uint8_t>(in[0].shape(), [&] {
    const std::int64_t i = at / width, j = at % width;
    ++at;
    int sum = 0, count = 0;
    for (auto y = std::max(i - radius, 0L); y <= std::min(i + radius, height - 1); ++y)
      for (auto x = std::max(j - radius, 0L); x <= std::min(j + radius, width - 1); ++x, ++count)
        sum += in[0].data<std::uint8_t>()[y * width + x];
    return (sum + count / 2) / count;
  });
}

struct Case {
  const char* name;
  pl::Kernel (*kernel)();
  Arrays inputs;
  pl::Array (*plain)(const Arrays&);
  double tolerance;
};

/// The largest difference; infinite where one of the two is not a number.
template <class T>
double difference(const pl::Array& a, const pl::Array& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = a.data<T>()[i], y = b.data<T>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double d = std::abs(x - y);
    largest = std::max(largest, std::isnan(d) ? INFINITY : d);
  }
  return largest;
}

double error_of(const pl::Array& result, const pl::Array& expected) {
  if (pl::to_string(result.type()) != pl::to_string(expected.type())) return INFINITY;
  return result.dtype() == pl::u8 ? difference<std::uint8_t>(result, expected)
                                  : difference<float>(result, expected);
}

std::vector<Case> cases(const std::vector<std::string>& files) {
  Arrays vectors, matrices, images;
  for (const std::string& file : files) {
    const pl::Array a = pl::load_npy(file);
    if (a.rank() == 1 && a.dtype() == pl::f32)
      vectors.push_back(a);
    else if (a.rank() == 2 && a.dtype() == pl::f32)
      matrices.push_back(a);
    else if (a.rank() == 2 && a.dtype() == pl::u8)
      images.push_back(a);
    else
      throw pl::CompileError(file + " is " + pl::to_string(a.type()) +
                             "; the demo takes vectors and matrices of f32 and matrices of u8");
  }
  if (vectors.size() % 2 != 0 || vectors.size() > 2 || matrices.size() > 3 || images.size() > 1)
    throw pl::CompileError(
        "the demo takes two vectors or none, at most three matrices of f32 and one of u8");
  if (vectors.empty()) vectors = {numbers({1'000'003}, 1), numbers({1'000'003}, 2)};
  if (images.empty()) images = {pixels({480, 640})};
  if (matrices.size() % 2 == 0) matrices.insert(matrices.begin(), numbers({200, 1000}, 3));
  if (matrices.size() == 1) {
    matrices.push_back(numbers({1000, 700}, 4));
    matrices.push_back(numbers({700, 300}, 5));
  }
  const pl::Array &a = matrices[1], &b = matrices[2];
  if (vectors[0].size() != vectors[1].size() || a.shape()[1] != b.shape()[0])
    throw pl::CompileError("the demo adds vectors of one length and multiplies m x k by k x n");
  // A sum of products in f32 is off by a few roundings of the largest that it can be.
  const double largest_sum = double(a.shape()[1]) * largest_magnitude(a) * largest_magnitude(b);
  return {{"add", pl::ops::add, vectors, plain_add, 0},
          {"softmax", pl::ops::softmax, {matrices[0]}, plain_softmax, 1e-6},
          {"matmul", [] { return pl::ops::matmul(); }, {a, b}, plain_matmul, 1e-6 * largest_sum},
          {"blur", pl::ops::blur, images, plain_blur, 0}};
}

class Clock {
 public:
  double ms() const {
    const std::chrono::duration<double, std::milli> passed = now() - start_;
    return passed.count();
  }

 private:
  static std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }
  std::chrono::steady_clock::time_point start_ = now();
};

/// Makes the kernel cache an empty folder of its own while it lives.
class EmptyCache {
 public:
  EmptyCache() {
    if (::mkdtemp(folder_.data()) == nullptr)
      throw pl::CompileError("the demo cannot make a folder " + folder_);
    if (const char* value = std::getenv(variable)) before_ = value;
    ::setenv(variable, folder_.c_str(), 1);
  }
  EmptyCache(const EmptyCache&) = delete;
  ~EmptyCache() {
    if (before_.empty())
      ::unsetenv(variable);
    else
      ::setenv(variable, before_.c_str(), 1);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 private:
  static constexpr const char* variable = "PALLADIUM_CACHE_DIR";
  std::string folder_ = std::filesystem::temp_directory_path() / "palladium-demo-XXXXXX";
  std::string before_;
};

/// As a program does that has just started: traces, and compiles or finds.
pl::Compiled compile(const Case& c) {
  const std::vector<pl::ArgType> types(c.inputs.begin(), c.inputs.end());
  return c.kernel().lower(types).compile();
}

void show_compile(const Case& c, bool cold) {
  pl::Compiled::Times times;
  if (cold) times = compile(c).times();
  const Clock clock;
  const pl::Compiled found = compile(c);
  const double start = clock.ms();
  if (!found.from_cache()) throw pl::CudaError("the cache did not keep the kernel");
  std::printf("%-8s %-12s trace %.2f ms, ", c.name, found.arch().c_str(), found.times().trace);
  if (cold) std::printf("lower %.2f ms, NVRTC %.0f ms, ", times.lower, times.nvrtc);
  std::printf("cached start %.2f ms\n", start);
}

/// Whether the result is right.
bool show_run(const Case& c, pl::Target target, const pl::Array& expected) {
  Arrays inputs;
  std::string types;
  for (const pl::Array& a : c.inputs) {
    inputs.push_back(a.to(pl::device_of(target)));
    types += (types.empty() ? "" : ", ") + pl::to_string(a.type());
  }
  const pl::Kernel kernel = c.kernel().on(target);
  const Clock clock;
  const pl::Array result = inputs.size() == 1 ? kernel(inputs[0]) : kernel(inputs[0], inputs[1]);
  const double error = error_of(result.to(pl::Device::cpu()), expected);
  const bool ok = error <= c.tolerance;
  std::printf("%-8s %-12s %s in %.0f ms, largest error %.2g%s\n", "", pl::to_string(target),
              types.c_str(), clock.ms(), error, ok ? "" : "  FAILED");
  return ok;
}

bool show(const Case& c, const std::vector<pl::Target>& targets, bool cold) {
  bool ok = true;
  const auto attempt = [&](auto step) {
    try {
      ok = step() && ok;
    } catch (const pl::Error& error) {
      std::printf("%-8s FAILED: %s\n", c.name, error.what());
      ok = false;
    }
    std::fflush(stdout);
  };
  attempt([&] { return show_compile(c, cold), true; });
  const pl::Array expected = c.plain(c.inputs);
  for (const pl::Target target : targets) attempt([&] { return show_run(c, target, expected); });
  return ok;
}

bool is_set(const char* variable, const std::string& value) {
  const char* found = std::getenv(variable);
  return found != nullptr && (value.empty() ? *found != 0 : found == value);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<Case> all = cases({argv + 1, argv + argc});
  const pl::Diagnosis machine = pl::diagnose();
  if (!machine.problem.empty()) throw pl::CudaError(machine.problem);
  bool has_nvrtc = false;
  for (const pl::Finding& f : machine.findings) {
    std::printf("%-15s %s\n", f.name.c_str(), f.found.c_str());
    if (f.name == "nvrtc") has_nvrtc = f.ok;
  }
  std::vector<pl::Target> targets = {machine.target};
  if (machine.target != pl::Target::cuda && !is_set("PALLADIUM_TARGET", ""))
    targets = {pl::Target::interpreter, pl::Target::emulator};
  std::string names;
  for (const pl::Target t : targets)
    names += (names.empty() ? "" : " and ") + std::string(to_string(t));

  // Where nothing can be compiled, what the user's cache holds must do.
  const bool cold = has_nvrtc && !is_set("PALLADIUM_JIT", "off");
  std::printf("\n");
  int failed = 0;
  if (cold) {
    const EmptyCache cache;
    for (const Case& c : all) failed += !show(c, targets, true);
  } else {
    for (const Case& c : all) failed += !show(c, targets, false);
  }
  if (cold && failed == 0) {
    for (const Case& c : all) compile(c);
    std::printf("The kernels are in %s from now on.\n", pl::cache_root().c_str());
  }
  std::printf("demo: %zu kernels on %s, %d failed\n", all.size(), names.c_str(), failed);
  return failed == 0 ? 0 : 1;
} catch (const pl::Error& error) {
  std::fprintf(stderr, "demo: %s\n", error.what());
  return 1;
}
