// Blurs an 8-bit image with the shipped kernel, whose blocks are windows that overlap, and compares
// with plain loops.
//
//   blur [IMAGE.npy]      a matrix of u8; without, one of 480 x 640
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "palladium/ops/blur.hpp"
#include "palladium/palladium.hpp"

namespace {

pl::Array checkers(std::int64_t height, std::int64_t width) {
  const pl::Array a = pl::Array::empty({height, width}, pl::u8);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<std::uint8_t>()[i] = (i / width / 16 + i % width / 16) % 2 ? 255 : i % 64;
  return a;
}

int largest_error(const pl::Array& image, const pl::Array& blurred) {
  constexpr std::int64_t radius = 2;
  const std::int64_t height = image.shape()[0], width = image.shape()[1];
  int error = 0;
  for (std::int64_t i = 0; i < height; ++i)
    for (std::int64_t j = 0; j < width; ++j) {
      int sum = 0, count = 0;
      for (auto y = std::max(i - radius, 0L); y <= std::min(i + radius, height - 1); ++y)
        for (auto x = std::max(j - radius, 0L); x <= std::min(j + radius, width - 1); ++x) {
          sum += image.data<std::uint8_t>()[y * width + x];
          ++count;
        }
      const int mean = (sum + count / 2) / count;
      error = std::max(error, std::abs(blurred.data<std::uint8_t>()[i * width + j] - mean));
    }
  return error;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 2) return std::fprintf(stderr, "blur [IMAGE.npy]\n"), 2;
  const pl::Array image = argc == 2 ? pl::load_npy(argv[1]) : checkers(480, 640);

  const pl::Array blurred = pl::ops::blur()(image.to(pl::default_device()));

  const int error = largest_error(image, blurred.to(pl::Device::cpu()));
  std::printf("blur: %s on %s, largest error %d\n", pl::to_string(image.type()).c_str(),
              pl::to_string(pl::default_target()), error);
  return error == 0 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
