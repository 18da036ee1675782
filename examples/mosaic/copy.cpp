// Copies a matrix by the kernel beside this file, and compares.
#include "examples/mosaic/copy.hpp"

#include <cstdio>
#include <cstring>

int main() try {
  const std::int64_t rows = 512, columns = 256;
  const pl::Array x = pl::Array::empty({rows, columns}, pl::f32);
  for (std::int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>(i % 1000);
  const pl::Array o = mosaic::copy()(x.to(pl::default_device())).to(pl::Device::cpu());
  const bool same = std::memcmp(x.data<float>(), o.data<float>(),
                                static_cast<std::size_t>(x.size()) * sizeof(float)) == 0;
  std::printf("copy: %s on %s, %s\n", pl::to_string(o.type()).c_str(),
              pl::to_string(pl::default_target()), same ? "the same" : "another one");
  return same ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
