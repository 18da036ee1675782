// A CUDA program with pointers and a stream of its own, in which the shipped softmax is one more
// kernel on that stream.
#include <cuda.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"

namespace {

void check(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "interop: CUDA error %d\n", result);
  std::exit(1);
}

}  // namespace

int main() try {
  constexpr int rows = 333, columns = 1000;
  constexpr std::size_t bytes = sizeof(float) * rows * columns;
  std::vector<float> host(rows * columns);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 7) - 3;

  check(cuInit(0));
  CUcontext context;
  check(cuDevicePrimaryCtxRetain(&context, 0));
  check(cuCtxSetCurrent(context));
  CUstream stream;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr x, y;
  check(cuMemAllocAsync(&x, bytes, stream));
  check(cuMemAllocAsync(&y, bytes, stream));
  check(cuMemcpyHtoDAsync(x, host.data(), bytes, stream));

  const pl::Kernel softmax = pl::ops::softmax();
  const auto in = pl::Array::view(reinterpret_cast<void*>(x), {rows, columns}, pl::f32);
  const auto out = pl::Array::view(reinterpret_cast<void*>(y), {rows, columns}, pl::f32);
  softmax.on(stream).into({out}, {in});

  std::vector<float> result(host.size());
  check(cuMemcpyDtoHAsync(result.data(), y, bytes, stream));
  check(cuStreamSynchronize(stream));
  double error = 0;
  for (std::size_t row = 0; row < host.size(); row += columns) {
    double sum = 0;
    for (int i = 0; i < columns; ++i) sum += std::exp(host[row + i]);
    for (int i = 0; i < columns; ++i)
      error = std::fmax(error, std::abs(result[row + i] - std::exp(host[row + i]) / sum));
  }
  std::printf("interop: %d rows on the program's stream, largest error %.2g\n", rows, error);
  return error < 1e-6 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
