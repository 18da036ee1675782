// Adds two vectors with the shipped kernel and compares with a plain loop.
//
//   vector_add [X.npy Y.npy]      vectors of f32; without, some of 1,000,003 elements
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "palladium/ops/add.hpp"
#include "palladium/palladium.hpp"

namespace {

pl::Array waves(std::int64_t n, float step) {
  const pl::Array a = pl::Array::empty({n}, pl::f32);
  for (std::int64_t i = 0; i < n; ++i) a.data<float>()[i] = std::sin(step * static_cast<float>(i));
  return a;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 1 && argc != 3) return std::fprintf(stderr, "vector_add [X.npy Y.npy]\n"), 2;
  const pl::Array x = argc == 3 ? pl::load_npy(argv[1]) : waves(1'000'003, 0.5f);
  const pl::Array y = argc == 3 ? pl::load_npy(argv[2]) : waves(1'000'003, 0.3f);

  // The kernel runs where there is something to run it: on a GPU, else in the interpreter.
  const pl::Kernel add = pl::ops::add();
  const pl::Device device = pl::default_device();
  const pl::Array sum = add(x.to(device), y.to(device));

  const pl::Array z = sum.to(pl::Device::cpu());
  float error = 0;
  for (std::int64_t i = 0; i < z.size(); ++i)
    error =
        std::max(error, std::abs(z.data<float>()[i] - (x.data<float>()[i] + y.data<float>()[i])));
  std::printf("vector_add: %s on %s, largest error %g\n", pl::to_string(z.type()).c_str(),
              pl::to_string(pl::default_target()), error);
  return error == 0 ? 0 : 1;
} catch (const pl::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
