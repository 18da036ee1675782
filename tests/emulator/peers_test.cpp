// The kernels by hand that benchmarks/nvrtc_benchmark.cpp compares with: they compute what the
// shipped kernels compute.
#include <cmath>

#include "codegen/base/files.hpp"
#include "palladium/ops/registry.hpp"
#include "runtime/emulator/emulator.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/targets.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

std::string text_of_peer(const std::string& name) {
  std::string text;
  REQUIRE(files::read(source_dir() + "/benchmarks/peers/" + name + ".cu", 1 << 20, text));
  return text;
}

emulator::Buffer buffer(const char* name, Array& a, bool written = false) {
  return {.base = a.data(),
          .bytes = static_cast<std::size_t>(a.size() * a.dtype().bytes()),
          .name = name,
          .written = written,
          .element_bytes = a.dtype().bytes()};
}

/// What the peer makes of the inputs and, behind the output, a number that it is given.
Array run_peer(const std::string& name, std::vector<Array> inputs, Array out, std::int64_t blocks,
               std::uint32_t shared_bytes, std::int64_t number) {
  std::vector<emulator::Buffer> buffers;
  std::vector<void*> pointers;
  for (Array& a : inputs) buffers.push_back(buffer("args", a));
  buffers.push_back(buffer("outputs[0]", out, true));
  for (emulator::Buffer& b : buffers) pointers.push_back(b.base);
  std::vector<void*> parameters;
  for (void*& p : pointers) parameters.push_back(&p);
  parameters.push_back(&number);
  emulator::run({.kernel = name,
                 .text = text_of_peer(name),
                 .grid = {blocks, 1, 1},
                 .shared_bytes = shared_bytes,
                 .parameters = parameters.data(),
                 .buffers = buffers,
                 .options = {.out_of_bounds = emulator::OutOfBounds::zero}});
  return out;
}

template <class T>
void check_near(const Array& found, const Array& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  double worst = 0;
  for (std::int64_t i = 0; i < found.size(); ++i)
    worst = test::worst_of(worst, std::abs(static_cast<double>(found.data<T>()[i]) -
                                           static_cast<double>(expected.data<T>()[i])));
  CHECK(worst <= tolerance);
}

Array numbers(const Shape& shape, int modulus) {
  return make_array<float>(shape, [=](std::int64_t i) {
    return static_cast<float>(i * 7919 % modulus - modulus / 2) / 8;
  });
}

Array shipped(const char* name, std::initializer_list<Arg> inputs) {
  return ops::find(name).factory().on(Target::interpreter).call(inputs);
}

}  // namespace

TEST_CASE("the addition by hand gives what the shipped one gives, for whole blocks and a part") {
  for (const std::int64_t n : {2048, 2500}) {
    const Array x = numbers({n}, 101), y = numbers({n}, 97);
    check_near<float>(run_peer("add", {x, y}, Array::empty({n}, f32), (n + 1023) / 1024, 0, n),
                      shipped("add", {x, y}), 0);
  }
}

TEST_CASE("the softmax by hand gives what the shipped one gives") {
  const Array x = numbers({3, 1000}, 61);
  check_near<float>(run_peer("softmax", {x}, Array::empty({3, 1000}, f32), 3, 32, 0),
                    shipped("softmax", {x}), 1e-6);
}

TEST_CASE("the layer norm by hand gives rows of mean 0 and variance 1, weighed") {
  const Array x = numbers({6, 768}, 59), weight = numbers({768}, 11);
  Array expected = Array::empty({6, 768}, f32);
  for (int row = 0; row < 6; ++row) {
    const float* v = x.data<float>() + row * 768;
    double mean = 0, variance = 0;
    for (int j = 0; j < 768; ++j) mean += v[j] / 768.0;
    for (int j = 0; j < 768; ++j) variance += (v[j] - mean) * (v[j] - mean) / 768;
    for (int j = 0; j < 768; ++j)
      expected.data<float>()[row * 768 + j] =
          static_cast<float>((v[j] - mean) / std::sqrt(variance + 1e-5) * weight.data<float>()[j]);
  }
  check_near<float>(run_peer("layer_norm", {x, weight}, Array::empty({6, 768}, f32), 2, 0, 6),
                    expected, 1e-5);
}

TEST_CASE("the product by hand gives what the shipped one gives, with ragged sides") {
  const Array a = numbers({70, 700}, 13), b = numbers({700, 300}, 17);
  check_near<float>(
      run_peer("matmul", {a, b}, Array::empty({70, 300}, f32), 10, 64 * 144 + 32 * 272, 70),
      shipped("matmul", {a, b}), 1e-3);
}

TEST_CASE("the blur by hand gives what the shipped one gives, at the borders too") {
  const Array x = make_array<std::uint8_t>({480, 640}, [](std::int64_t i) { return i * i % 251; });
  check_near<std::uint8_t>(run_peer("blur", {x}, Array::empty({480, 640}, u8), 300, 20 * 96, 0),
                           shipped("blur", {x}), 0);
}
